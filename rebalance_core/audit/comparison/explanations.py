"""What else explains observed ownership: duplicate ids, other member lists, another strategy."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from functools import cache, cached_property

from rebalance_core.audit.case import PERSISTENT_MS, GroupCase, Row
from rebalance_core.audit.comparison.observations import ClientObservation, Observation, address_of
from rebalance_core.audit.comparison.prediction import Prediction, holds
from rebalance_core.audit.evidence.dumps import answers_at, broker_answers, proxy_answers
from rebalance_core.audit.evidence.duplicate_ids import duplicate_ids_at
from rebalance_core.audit.evidence.formatting import listed
from rebalance_core.model.errors import AllocationError
from rebalance_core.model.events import BROKER_UP
from rebalance_core.model.queue import MessageQueue
from rebalance_core.protocol.windows import ORDER_LOCK_MS
from rebalance_core.strategies import allocate_group, parse_strategy

CANDIDATES = ("AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH")
"""Strategies without parameters that a foreign member may use."""
FOREIGN_CLIENTS = 2
"""One holder alone fits many strategies."""
NEAR_MS = ORDER_LOCK_MS
"""What was seen or said so shortly before or after counts as seen at the same time."""

Owners = Mapping[MessageQueue, tuple[str, ...]]


class Allocations:
    """How the queues of one epoch are allocated to clients; each question is answered once."""

    def __init__(self, case: GroupCase, prediction: Prediction, at_ms: int) -> None:
        self.prediction = prediction
        self._at_ms = at_ms
        self.members = tuple(
            # cidAll: one who does not subscribe the topic counts too
            row["client_id"]
            for row in case.rows("memberships")
            if holds(row, at_ms)
        )
        self.owners = cache(self._owners)

    def _owners(self, strategy: str, topic: str, clients: tuple[str, ...]) -> Owners:
        """Owners of every queue of the topic; empty where the strategy cannot divide them."""
        queues = self.prediction.queues(topic, self._at_ms)
        if not queues or not clients:
            return {}
        try:
            return allocate_group(parse_strategy(strategy), queues, clients)
        except AllocationError:
            return {}


class Explanations:
    """What explains the observations of one time; answers of a whole topic are kept.

    Args:
        case: the group.
        observed: all observations of it, in order of time.
        allocations: of the epoch of that time.
        at_ms: the time.
    """

    def __init__(
        self, case: GroupCase, observed: Sequence[Observation], allocations: Allocations, at_ms: int
    ) -> None:
        self._case = case
        self._observed = observed
        self._allocations = allocations
        self._prediction = allocations.prediction
        self._at_ms = at_ms
        self.other_strategy = cache(self._other_strategy)
        self.older_view = cache(self._older_view)
        self._by_lists = cache(self._allocated_by_lists)

    @cached_property
    def duplicate_ids(self) -> set[str]:
        """Client ids of two processes, now or within the life of a lost connection."""
        return duplicate_ids_at(self._case, self._at_ms, NEAR_MS)

    @cached_property
    def broker_returned(self) -> str:
        """The return of a broker, after which it lists members wrongly for a while
        (rocketmq.md §13 no. 5).
        """
        for epoch in reversed(self._case.epochs):
            age_ms = self._at_ms - epoch["from_ms"]
            if 0 <= age_ms <= PERSISTENT_MS and BROKER_UP in epoch["causes"]:
                return f"{BROKER_UP} {age_ms // 1000} s before"
        return ""

    def other_list(self, queue: MessageQueue, holder: str | None) -> str:
        """The broker whose list of members explains this holder; None: the queue has no owner."""
        for note, owners in self._by_lists(queue.topic):
            if fits(holder, owners.get(queue, ())):
                return note
        return ""

    def _older_view(self, topic: str) -> Row | None:
        """The newest earlier epoch whose ownership of a topic is the live one, queue by queue.

        It counts where queues are held by nobody that the epoch gave to nobody or did not have:
        what members held before and hold still, each queue tells by itself.
        """
        live = self._live.get(topic, {})
        now = self._case.epoch_at(self._at_ms)
        if now is None or "" not in live.values() or not any(live.values()):
            return None
        for epoch in reversed(self._case.epochs):
            if epoch["epoch"] >= now["epoch"]:
                continue
            owners = {
                queue: tuple(self._prediction.owners(queue, epoch["from_ms"])) for queue in live
            }
            if all(fits(live[queue] or None, owners[queue]) for queue in live):
                return epoch
        return None

    def _other_strategy(self, topic: str) -> str:
        """The strategy that explains every live holder of a topic, while the group uses another."""
        live = self._live.get(topic, {})
        if len(set(live.values()) - {""}) < FOREIGN_CLIENTS:
            return ""
        used = {row["strategy"] for row in self._case.rows("memberships")}
        held = {queue: holder for queue, holder in live.items() if holder}
        if any(self._allocates(name, topic, held) for name in used):
            return ""  # who holds a queue holds it by the group's own strategy
        for name in CANDIDATES:
            if name in used:
                continue
            if self._allocates(name, topic, live):
                return name
        return ""

    def _allocates(self, strategy: str, topic: str, live: Mapping[MessageQueue, str]) -> bool:
        """True if the strategy gives these queues to whoever has them; empty: to nobody."""
        owners = self._allocations.owners(strategy, topic, self._allocations.members)
        return bool(owners) and all(fits(live[q] or None, owners.get(q, ())) for q in live)

    @cached_property
    def _live(self) -> Mapping[str, Mapping[MessageQueue, str]]:
        """By topic the holder of each queue observed around that time; empty: no owner."""
        live: dict[str, dict[MessageQueue, str]] = {}
        begin = bisect_left(
            self._observed, self._at_ms - NEAR_MS, key=lambda observation: observation.at_ms
        )
        end = bisect_right(
            self._observed, self._at_ms + NEAR_MS, key=lambda observation: observation.at_ms
        )
        for observation in self._observed[begin:end]:
            if isinstance(observation, ClientObservation):
                for queue in observation.held:
                    live.setdefault(queue.topic, {})[queue] = observation.client_id
            else:
                live.setdefault(observation.queue.topic, {})[observation.queue] = (
                    observation.address
                )
        return live

    @cached_property
    def _lists(self) -> Mapping[str, tuple[str, ...]]:
        """The members as a broker or proxy lists them now, where they are others than the
        ledger's.
        """
        rows = (*broker_answers(self._case), *proxy_answers(self._case))
        lists = {
            broker: [row["client_id"] for row in answer if row["client_id"]]
            for broker, answer in answers_at(rows, self._at_ms, NEAR_MS).items()
        }
        members = sorted(self._allocations.members)
        return {
            broker: tuple(sorted(clients))
            for broker, clients in sorted(lists.items())
            if clients and sorted(clients) != members
        }

    def _allocated_by_lists(self, topic: str) -> list[tuple[str, Owners]]:
        """What each of the other lists makes of a topic, with words on it."""
        strategies = {row["strategy"] for row in self._case.members}
        if len(strategies) != 1:
            return []
        return [
            (
                f"{broker} lists other members: {listed(clients, 5)}",
                self._allocations.owners(min(strategies), topic, clients),
            )
            for broker, clients in self._lists.items()
        ]


def fits(holder: str | None, owners: Sequence[str]) -> bool:
    """True if the holder, a client id or its address, is an owner; None fits an unowned queue."""
    if holder is None:
        return not owners
    return any(holder in (owner, address_of(owner)) for owner in owners)
