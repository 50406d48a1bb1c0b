"""The kernels hold to the replay where members are clients of other languages."""

from dataclasses import replace

import pytest
from hypothesis import strategies as st

from rebalance_core.model.events import CONSUMER_JOIN, Event
from rebalance_core.replay.history import GroupHistory
from tests.unit.kernels.random_groups import TRAITS, fleets
from tests.unit.kernels.random_steps import CLIENTS
from tests.unit.kernels.test_equality import OVERRIDES, WAYS, Tally, Way, compare, run

MEMBERS = (
    (None, None),
    ("JAVA", None),
    ("GO", None),
    ("GO", "2.0.0"),
    ("GO", "2.1.1"),
    ("GO", "2.1.2"),
    ("GO", "4.5.2"),
    ("CPP", None),
    ("PYTHON", "2.0.0"),
    ("NODE", None),
    ("RUST", "1.0.0"),
    ("PHP", "7"),
)
"""Language and release."""


def translated(
    history: GroupHistory, members: tuple[tuple[str | None, str | None], ...]
) -> GroupHistory:
    """The group, the language of each client by its id."""

    def of(event: Event) -> Event:
        if event.event_type != CONSUMER_JOIN:
            return event
        language, release = members[CLIENTS.index(event.client_id or "") % len(members)]
        version = event.version if language in (None, "JAVA") else release
        return replace(event, language=language, version=version)

    return replace(history, events=tuple(map(of, history.events)))


@pytest.mark.parametrize(
    ("examples", "traits"), [(100, ()), (60, TRAITS)], ids=["plain", "of every kind"]
)
def test_kernels_and_replay_agree_on_every_language(
    seed: int, examples: int, traits: tuple[str, ...]
) -> None:
    tally = Tally()

    def check(
        fleet: tuple[GroupHistory, ...],
        members: list[tuple[str | None, str | None]],
        several: int,
        override: str | None,
        way: Way,
    ) -> None:
        chosen = ((None, None), *members[:several])
        compare([translated(group, chosen) for group in fleet], True, override, way, tally)

    arguments = fleets(traits), st.permutations(MEMBERS), st.integers(1, 3), OVERRIDES, WAYS
    run(examples, seed, arguments, check)
    assert tally.groups["REGULAR"] > 20
    assert tally.shared > 0
    assert tally.groups["LANGUAGE"] > 0
    assert tally.rows["pull_starts"] > 0
