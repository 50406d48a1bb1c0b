"""Divide the queues of groups of a few members by every strategy that has a form."""

import itertools
from dataclasses import dataclass

from hypothesis import strategies as st

from rebalance_core.model.events import Event
from rebalance_core.model.queue import MessageQueue
from rebalance_core.replay.history import GroupHistory
from rebalance_core.strategies import allocate_group, parse_strategy
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
    st.lists(st.integers(0, 9), min_size=1, max_size=len(BROKERS)).filter(any).map(tuple),
    st.lists(MEMBERS, min_size=1, max_size=4).map(
        lambda sets: tuple(now for now, _ in itertools.groupby(sets))
    ),
)
