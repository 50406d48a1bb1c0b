"""The kernels hold to the replay where members divide by an own strategy."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from hashlib import md5

import pytest
from hypothesis import strategies as st

from rebalance_core.model.queue import MessageQueue
from rebalance_core.replay.history import GroupHistory
from rebalance_core.strategies.registry import (
    register_hash_function,
    register_room_resolver,
    register_strategy,
)
from tests.plugins import (
    Asking,
    BeforeTheDash,
    NamesMore,
    OwnAverage,
    Sticky,
    ThrowsForThree,
    upstream_hash,
)
from tests.unit.kernels.fleets import build, reasons_of
from tests.unit.kernels.random_groups import TRAITS, fleets, groups
from tests.unit.kernels.test_equality import WAYS, Tally, Way, compare
from tests.unit.timing.test_vectorized_equals_reference import quietly

pytestmark = pytest.mark.usefixtures("registered_plugins")


def some_unowned(
    client_id: str, queues: Sequence[MessageQueue], client_ids: Sequence[str]
) -> list[MessageQueue]:
    """A third of the queues has no owner; the others go by chance of their names."""
    numbers = {q: md5(f"{q}{len(client_ids)}".encode()).digest()[0] for q in queues}
    mine = client_ids.index(client_id)
    return [q for q, n in numbers.items() if n % 3 and n % len(client_ids) == mine][::-1]


TAKEN = (OwnAverage(), Sticky(), Asking("SOME_UNOWNED", some_unowned))


@pytest.fixture(autouse=True)
def named(registered_plugins: None) -> None:
    for strategy in (*TAKEN, NamesMore(), ThrowsForThree()):
        register_strategy(strategy.name, strategy)
    register_hash_function("h", upstream_hash)
    register_room_resolver("r", BeforeTheDash())


@pytest.mark.parametrize(
    ("examples", "traits"), [(40, ()), (10, TRAITS)], ids=["plain", "of every kind"]
)
def test_kernels_and_replay_agree_on_own_strategies(
    seed: int, examples: int, traits: tuple[str, ...]
) -> None:
    tally = Tally()

    def check(fleet: tuple[GroupHistory, ...], retry: bool, text: str, way: Way) -> None:
        compare(fleet, retry, text, way, tally)

    names = [one.name for one in (*TAKEN, NamesMore(), ThrowsForThree())]
    quietly(check, examples, seed, fleets(traits), st.booleans(), st.sampled_from(names), WAYS)
    assert tally.kinds["CustomStrategy"] > examples / 4
    assert tally.shared > 0 or not traits


def test_members_of_one_group_divide_by_several(seed: int) -> None:
    tally = Tally()

    def check(fleet: tuple[GroupHistory, ...], names: tuple[str, ...], way: Way) -> None:
        compare([_mixed(group, names) for group in fleet], True, None, way, tally)

    names = st.permutations(["AVG", "CONSISTENT_HASH(virtual_nodes=3)", *(s.name for s in TAKEN)])
    quietly(check, 40, seed, fleets(()), names, WAYS)
    assert tally.kinds["CustomStrategy"] > 5
    assert tally.shared > 10


def _mixed(history: GroupHistory, names: tuple[str, ...]) -> GroupHistory:
    events = tuple(
        replace(event, strategy=names[number % 3]) if event.event_type == "CONSUMER_JOIN" else event
        for number, event in enumerate(history.events)
    )
    return replace(history, events=events)


def test_what_the_kernels_leave_to_the_replay(seed: int) -> None:
    texts = (
        "CONSISTENT_HASH(hash_function=h)", "MACHINE_ROOM_NEARBY-AVG(room_resolver=r)",
        "MACHINE_ROOM_NEARBY-OWN_AVG(room_separator=-)", "NAMES_MORE",
    )  # fmt: skip
    left = Counter[str]()

    def check(history: GroupHistory, text: str) -> None:
        if not any(event.event_type == "CONSUMER_JOIN" for event in history.events):
            return  # nobody divides
        its = replace(history.settings, message_model="CLUSTERING", rebalance_mode="CLIENT")
        events = tuple(replace(event, message_model=None) for event in history.events)
        group = replace(history, settings=its, events=events)
        found = reasons_of(build([group], override=text))
        left.update(f"{reason} {text}" for reason in found.values())

    quietly(check, 40, seed, groups(), st.sampled_from(texts))
    assert all(left[f"NO_KERNEL {text}"] > 0 for text in texts)
    assert not any(left[f"REGULAR {text}"] for text in texts[:3])
