"""Every kernel divides a group's queues as its plain strategy does, epoch after epoch."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rebalance_core.kernels.ownership.owners import average_index
from rebalance_core.model.events import Event
from rebalance_core.model.queue import MessageQueue
from rebalance_core.replay.history import GroupHistory
from rebalance_core.strategies import allocate_group, parse_strategy
from rebalance_core.strategies.averagely import average_slice
from tests.unit.kernels.fleets import build, kernel_rows, reasons_of
from tests.unit.kernels.hypothesis_settings import RANDOM
from tests.unit.replay.histories import history, join, leave, topic

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
    "MACHINE_ROOM(consumer_idcs=)",
    "MACHINE_ROOM(consumer_idcs=r1)",
    "MACHINE_ROOM(consumer_idcs=r1|r2|)",
    f"MACHINE_ROOM_NEARBY-AVG{ROOMS}",
    f"MACHINE_ROOM_NEARBY-AVG_BY_CIRCLE{ROOMS}",
)
VERSION = "4.9.8"
Owners = dict[MessageQueue, tuple[str, ...]]


@dataclass(frozen=True)
class Divided:
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
GROUPS = st.builds(
    Divided,
    st.sampled_from(STRATEGIES),
    st.lists(st.integers(0, 9), min_size=1, max_size=len(BROKERS))
    .filter(any)
    .map(tuple),
    st.lists(MEMBERS, min_size=1, max_size=4)
    .map(lambda sets: tuple(now for now, _ in itertools.groupby(sets))),
)  # fmt: skip


def owners(groups: Sequence[Divided], cells_per_block: int) -> dict[str, list[Owners]]:
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


@settings(RANDOM, max_examples=40)
@given(st.lists(GROUPS, min_size=1, max_size=4), st.sampled_from((30, 1 << 17)))
def test_owners_are_those_of_the_plain_strategy(
    groups: list[Divided], cells_per_block: int
) -> None:
    found = owners(groups, cells_per_block)
    for number, group in enumerate(groups):
        assert found[f"g{number}"] == group.expected()


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_owners_of_a_group_that_grows_shrinks_and_changes_altogether(strategy: str) -> None:
    sets = ("c0 c1 c2", "c0 c1 c2 c3 c11 😀", "c1 c11", "c4 c5 c6 c7 c8 c9 c10 \uff5e", "c4 c0")
    group = Divided(
        strategy, (5, 3, 0, 4, 1, 2, 7, 1), tuple(frozenset(s.split()) for s in sets)
    )  # fmt: skip
    assert owners([group], 40)["g0"] == group.expected()


def test_average_index_inverts_the_slices_of_avg() -> None:
    for queues, members in itertools.product(range(1, 15), range(1, 17)):
        shares = [range(queues)[average_slice(i, queues, members)] for i in range(members)]
        slices = [index for index, share in enumerate(shares) for _ in share]
        every = np.full(queues, queues), np.full(queues, members)
        assert average_index(np.arange(queues), *every).tolist() == slices
