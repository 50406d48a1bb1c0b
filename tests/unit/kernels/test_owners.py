"""Every kernel divides a group's queues as its plain strategy does, by cells and by place."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rebalance_core.kernels import cells
from rebalance_core.kernels.ownership import strategy_kernels
from rebalance_core.kernels.ownership.by_place import OwnersByPlace
from rebalance_core.kernels.ownership.prepared_groups import PreparedGroups
from rebalance_core.model.events import Event
from rebalance_core.model.queue import MessageQueue, sort_queues
from rebalance_core.replay.history import GroupHistory
from rebalance_core.strategies import allocate_group, parse_strategy, registry
from rebalance_core.strategies.averagely import average_index, average_slice
from rebalance_core.strategies.config import Config
from rebalance_core.strategies.machine_room import tail_index
from rebalance_core.strategies.machine_room_nearby import MachineRoomNearby
from rebalance_core.strategies.vectorised import ByPlace, PlaceRule
from tests.unit.kernels.fleets import build, kernel_rows, reasons_of
from tests.unit.kernels.hypothesis_settings import RANDOM
from tests.unit.replay.histories import history, join, leave, topic

# Every kernel divides a group's queues as its plain strategy does, epoch after epoch.

CLIENTS = (*(f"c{number}" for number in range(12)), "\uff5e", "😀")
BROKERS = ("a", "r1@b", "r1@c", "r2@d", "r3@", "@e", "\uff5e", "😀")
ROOMS = (
    "(client_rooms=c:r1|c1:r2|c11:r3|\uff5e:\uff5e|😀:😀,"
    " broker_rooms=a:r1|r1:r1|r2:r2|r3:r4|@:😀|\uff5e:\uff5e|😀:none)"
)
STRATEGIES = (
    "AVG",
    "AVG_BY_CIRCLE",
    *(f"CONSISTENT_HASH(virtual_nodes={count})" for count in (0, 1, 2, 10)),
    "CONSISTENT_HASH(virtual_nodes=3, platform_charset=GBK)",
    "GO_CONSISTENT_HASH(virtual_nodes=3)",
    "MACHINE_ROOM(consumer_idcs=)",
    "MACHINE_ROOM(consumer_idcs=r1)",
    "MACHINE_ROOM(consumer_idcs=r1|r2|)",
    f"MACHINE_ROOM_NEARBY-AVG{ROOMS}",
    f"MACHINE_ROOM_NEARBY-AVG_BY_CIRCLE{ROOMS}",
)
VERSION = "4.9.8"
Owners = dict[MessageQueue, tuple[str, ...]]


@dataclass(frozen=True)
class OwnersDivided:
    """One group: who is there in each epoch, and queues that are always there."""

    strategy: str
    queues: tuple[int, ...]
    """Readable queues on each broker."""
    members: tuple[frozenset[str], ...]

    def readable(self) -> list[MessageQueue]:
        counts = zip(BROKERS, self.queues, strict=False)
        return [MessageQueue("T", broker, i) for broker, count in counts for i in range(count)]

    def history(self, name: str) -> GroupHistory:
        counts = zip(BROKERS, self.queues, strict=False)
        events: list[Event] = [topic(0, count, broker=broker) for broker, count in counts]
        for number, (before, now) in enumerate(
            itertools.pairwise((frozenset[str](), *self.members))
        ):
            at_ms = 1_000 * number
            events += [leave(at_ms, client_id) for client_id in sorted(before - now)]
            events += [join(at_ms, client_id) for client_id in sorted(now - before)]
        made = history(*events, strategy=self.strategy, client_version=VERSION)
        return GroupHistory(made.cluster, name, made.settings, made.events)

    def expected(self) -> list[Owners]:
        strategy = parse_strategy(self.strategy, version=VERSION)
        return [allocate_group(strategy, self.readable(), members) for members in self.members]


MEMBERS = st.frozensets(st.sampled_from(CLIENTS), min_size=1, max_size=len(CLIENTS))
OWNERS_GROUPS = st.builds(
    OwnersDivided,
    st.sampled_from(STRATEGIES),
    st.lists(st.integers(0, 9), min_size=1, max_size=len(BROKERS))
    .filter(any)
    .map(tuple),
    st.lists(MEMBERS, min_size=1, max_size=4)
    .map(lambda sets: tuple(now for now, _ in itertools.groupby(sets))),
)  # fmt: skip


def owners(groups: Sequence[OwnersDivided], cells_per_block: int) -> dict[str, list[Owners]]:
    """By group and epoch: the owners that the kernels say."""
    prepared = build(
        [group.history(f"g{number}") for number, group in enumerate(groups)], retry=False
    )
    assert set(reasons_of(prepared).values()) <= {"REGULAR"}
    found: dict[str, list[Owners]] = {
        f"g{number}": [{} for _ in group.members] for number, group in enumerate(groups)
    }
    rows = kernel_rows(prepared, ("ownership",), cells_per_block=cells_per_block)["ownership"]
    for row in rows:
        epochs = found[row["consumer_group"]]
        queue = MessageQueue(row["topic"], row["broker_name"], row["queue_id"])
        for owned in epochs[row["from_epoch"] : row["to_epoch"]]:
            assert queue not in owned
            owned[queue] = () if row["client_id"] is None else (row["client_id"],)
    return found


def test_every_strategy_with_a_form_is_drawn() -> None:
    """CONFIG divides nothing: `test_equality` has its lists."""
    drawn = {type(parse_strategy(text)) for text in STRATEGIES}
    formed = {one for one in (*registry.STRATEGIES, MachineRoomNearby) if "vectorised" in vars(one)}
    assert drawn == formed - {Config}


@settings(RANDOM, max_examples=40)
@given(st.lists(OWNERS_GROUPS, min_size=1, max_size=4), st.sampled_from((30, 1 << 17)))
def test_owners_are_those_of_the_plain_strategy(
    groups: list[OwnersDivided], cells_per_block: int
) -> None:
    found = owners(groups, cells_per_block)
    for number, group in enumerate(groups):
        assert found[f"g{number}"] == group.expected()


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_owners_of_a_group_that_grows_shrinks_and_changes_altogether(strategy: str) -> None:
    sets = ("c0 c1 c2", "c0 c1 c2 c3 c11 😀", "c1 c11", "c4 c5 c6 c7 c8 c9 c10 \uff5e", "c4 c0")
    group = OwnersDivided(
        strategy, (5, 3, 0, 4, 1, 2, 7, 1), tuple(frozenset(s.split()) for s in sets)
    )  # fmt: skip
    assert owners([group], 40)["g0"] == group.expected()


def test_average_index_inverts_the_slices_of_avg() -> None:
    for queues, members in itertools.product(range(1, 15), range(1, 17)):
        shares = [range(queues)[average_slice(i, queues, members)] for i in range(members)]
        slices = [index for index, share in enumerate(shares) for _ in share]
        every = np.full(queues, queues), np.full(queues, members)
        assert average_index(np.arange(queues), *every).tolist() == slices
        assert [average_index(place, queues, members) for place in range(queues)] == slices


def test_tail_index_inverts_the_slices_of_machine_room() -> None:
    for queues, members in itertools.product(range(1, 15), range(1, 17)):
        rooms = [MessageQueue("t", "r@a", number) for number in range(queues)]
        ids = [f"c{number:02}" for number in range(members)]
        shares = parse_strategy("MACHINE_ROOM(consumer_idcs=r)").allocate_all(rooms, ids)
        owners = [next(i for i, c in enumerate(ids) if queue in shares[c]) for queue in rooms]
        every = np.full(queues, queues), np.full(queues, members)
        assert tail_index(np.arange(queues), *every).tolist() == owners
        assert [tail_index(place, queues, members) for place in range(queues)] == owners


# Owners by place of the sorted list are those of the plain strategy, and those of the cells.

AVERAGING = ("AVG", "AVG_BY_CIRCLE")
BY_NUMBERS = OWNERS_GROUPS.flatmap(
    lambda group: st.sampled_from(AVERAGING).map(lambda name: replace(group, strategy=name))
)
Listed = dict[tuple[str, int], list[str]]
"""By group and epoch: the owner at each place of its only topic."""


def built(groups: Sequence[OwnersDivided]) -> PreparedGroups:
    return build([group.history(f"g{n}") for n, group in enumerate(groups)], retry=False)


def rule_of(strategy: str) -> PlaceRule:
    form = parse_strategy(strategy).vectorised()
    assert isinstance(form, ByPlace)
    return form.rule


def listed(prepared: PreparedGroups, strategy: str) -> Listed:
    """What the answers of one strategy say."""
    is_it = [str(one) == strategy for one in prepared.encoded.strategies]
    answers = OwnersByPlace(
        rule_of(strategy),
        np.array([*is_it, False], np.bool_)[prepared.encoded.groups.allocation],
        prepared.epochs,
        prepared.grid,
        prepared.roster,
    )
    names, roster = prepared.encoded.names, prepared.roster
    sizes = np.diff(prepared.grid.topic_first)
    of = np.repeat(prepared.grid.topics.group, sizes)
    epoch = np.arange(len(of)) - np.repeat(prepared.grid.topic_first[:-1], sizes)
    found: Listed = {}
    for cell, answer in zip(answers.topic_cell.tolist(), answers.answer.tolist(), strict=True):
        index = answers.index[answers.first[answer] : answers.first[answer + 1]]
        entries = roster.first[prepared.epochs.of_group[of[cell]] + epoch[cell]] + index
        owners = names.clients.take(pa.array(roster.client(entries))).to_pylist()
        found[names.groups[of[cell]].as_py(), int(epoch[cell])] = owners
    return found


def expected(groups: Sequence[OwnersDivided], strategy: str) -> Listed:
    made: Listed = {}
    for number, group in enumerate(groups):
        if group.strategy != strategy:
            continue
        for epoch, members in enumerate(group.members):
            owners = allocate_group(parse_strategy(strategy), group.readable(), members)
            made[f"g{number}", epoch] = [owners[queue][0] for queue in sort_queues(owners)]
    return made


@settings(RANDOM, max_examples=60)
@given(st.lists(BY_NUMBERS, min_size=1, max_size=5))
def test_every_place_has_the_owner_that_the_plain_strategy_gives(
    groups: list[OwnersDivided],
) -> None:
    prepared = built(groups)
    for strategy in AVERAGING:
        assert listed(prepared, strategy) == expected(groups, strategy)


@settings(RANDOM, max_examples=30)
@given(st.lists(BY_NUMBERS, min_size=1, max_size=5))
def test_cells_are_the_same_looked_up_by_place_and_computed(groups: list[OwnersDivided]) -> None:
    looked_up = kernel_rows(built(groups), ("ownership",))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(strategy_kernels, "MOST_LISTED", -1)
        assert kernel_rows(built(groups), ("ownership",)) == looked_up


@settings(RANDOM, max_examples=30)
@given(st.lists(BY_NUMBERS, min_size=1, max_size=5), st.sampled_from((1, 9, 1_000)))
def test_cells_are_the_same_looked_up_one_by_one_and_by_stretch(
    groups: list[OwnersDivided], cells_per_block: int
) -> None:
    prepared = built(groups)
    found = kernel_rows(prepared, ("ownership",), cells_per_block=cells_per_block)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cells, "MANY_QUEUES", 0)
        again = kernel_rows(prepared, ("ownership",), cells_per_block=cells_per_block)
    assert again == found


def test_topics_of_any_group_with_equal_numbers_have_one_answer() -> None:
    clients = tuple(f"c{number}" for number in range(5))
    pairs = [((5, 3), 2), ((4, 4), 2), ((8,), 3), ((8,), 2)]
    groups = [OwnersDivided("AVG", queues, (frozenset(clients[:n]),)) for queues, n in pairs]
    prepared = built(groups)
    everyone = np.ones(len(groups), np.bool_)
    answers = OwnersByPlace(
        rule_of("AVG"), everyone, prepared.epochs, prepared.grid, prepared.roster
    )
    assert answers.answer.tolist() == [0, 0, 1, 0]
    assert answers.index.tolist() == [0, 0, 0, 0, 1, 1, 1, 1, 0, 0, 0, 1, 1, 1, 2, 2]


def test_nothing_to_divide_has_no_answer() -> None:
    without_members = built([OwnersDivided("AVG", (0,), (frozenset({"c0"}),))])
    assert listed(without_members, "AVG") == {}
