"""Who must hold a queue in an epoch, worked out again from the ledger's own lists.

The rules are those of `replay.settle`, asked of one topic and of rows that name no process as the
holder; a test on random groups holds the two together.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from rebalance_core.explain.formula import Formula, formula_of
from rebalance_core.explain.held_before import held_before
from rebalance_core.explain.shares import Shares, strategy_of
from rebalance_core.explain.view import ProcessKey, Row, View, subscribes
from rebalance_core.model.errors import AllocationError
from rebalance_core.model.group_settings import (
    BROADCASTING,
    BROKER_REBALANCE,
    BROKER_STRATEGIES,
    PUSH,
)
from rebalance_core.model.queue import MessageQueue
from rebalance_core.model.versions import parse_version
from rebalance_core.protocol.members import asks_broker, locks_on_addition
from rebalance_core.replay.settle import CONFIG_STRATEGY
from rebalance_core.strategies import AllocationStrategy

COMPUTED, BROADCAST, LISTED = "COMPUTED", "BROADCASTING", "CONFIG"
SUSPENDED, NO_QUEUE, THROWS, BROKER_MODE = "SUSPENDED", "NO_READABLE_QUEUE", "THROWS", "BROKER_MODE"
NOT_SUBSCRIBED = "NOT_SUBSCRIBED"
OTHER = "OTHER_STRATEGY"
"""A strategy that RocketMQ does not have: nothing is worked out again."""
KEEPING = (SUSPENDED, NO_QUEUE, THROWS, BROKER_MODE)
"""Ways in which a process goes on holding what it held."""


@dataclass(frozen=True)
class Settlement:
    """One topic of one epoch under one assumption on what the ledger leaves open."""

    view: View
    before: View | None
    topic: str
    queues: tuple[MessageQueue, ...]
    """mqAll: the topic's readable queues."""
    broker_mode: bool = False
    """The group's members ask the brokers, as far as they can (rocketmq.md §2.8)."""
    lockless: frozenset[str] = frozenset()
    """Brokers without a master: an orderly group gets no new order lock there (rocketmq.md §15)."""

    @cached_property
    def _shares(self) -> Shares:
        return Shares(self.queues, self.view.client_ids)

    @cached_property
    def _outcomes(self) -> dict[tuple[Any, ...], str]:
        return {}

    @cached_property
    def _readable(self) -> frozenset[MessageQueue]:
        return frozenset(self.queues)

    @cached_property
    def _formulas(self) -> dict[tuple[str, MessageQueue, str | None], Formula | None]:
        return {}

    def can_read(self, queue: MessageQueue) -> bool:
        """True if the queue is in mqAll."""
        return queue in self._readable

    def formula(
        self, strategy: AllocationStrategy, queue: MessageQueue, client_id: str | None
    ) -> Formula | None:
        """`formula_of` the strategy; None where it throws for everybody, as `thrown` says."""
        key = (str(strategy), queue, client_id)
        if key not in self._formulas:
            ids = self.view.client_ids
            try:
                formula = formula_of(strategy, queue, self.queues, ids, client_id)
            except (AllocationError, ValueError):
                formula = None
            self._formulas[key] = formula
        return self._formulas[key]

    def outcome(self, member: Row) -> str:
        """What a pass of the process does with the topic: one of the constants above."""
        key = (member["client_id"], member["channel_id"])
        if key not in self._outcomes:
            self._outcomes[key] = self._outcome(member)
        return self._outcomes[key]

    def _outcome(self, member: Row) -> str:
        if member["suspended"]:
            return SUSPENDED
        if not subscribes(member, self.topic):
            return NOT_SUBSCRIBED
        if member["message_model"] == BROADCASTING:
            return BROADCAST if self.queues else NO_QUEUE
        strategy = strategy_of(member)
        name = member["strategy"] if strategy is None else strategy.name
        if name not in BROKER_STRATEGIES and self._asks_broker(member):
            return BROKER_MODE
        if strategy is None:
            return OTHER
        if name == CONFIG_STRATEGY:
            return LISTED
        if not self.queues:
            return NO_QUEUE
        return THROWS if isinstance(self._shares.share(member), str) else COMPUTED

    def _asks_broker(self, member: Row) -> bool:
        # only push groups that are not orderly come into question; ledgers of contract 1 do not
        # have each member's own mode
        mode = member.get("rebalance_mode") or BROKER_REBALANCE
        return self.broker_mode and asks_broker(
            mode, PUSH, member["message_model"], False, member["version"]
        )

    def thrown(self, member: Row) -> str:
        """The exception of a process whose strategy throws."""
        share = self._shares.share(member)
        return share if isinstance(share, str) else ""

    def takes(self, member: Row, queue: MessageQueue) -> bool:
        """True if a pass of the process takes the queue; not for those that run none.

        A queue whose order lock nobody gives stays with who held it; of several processes of an
        id any may have.
        """
        if queue not in self._asked_for(member):
            return False
        return self._gets_lock(member, queue) or self._held_by_it(member, queue)[1]

    def taken_by(self, member: Row) -> tuple[frozenset[MessageQueue], frozenset[MessageQueue]]:
        """The queues of the topic that a pass of the process takes: for sure, and at most.

        Both are empty for those that run none. They differ as `takes` says.
        """
        share = {queue for queue in self._asked_for(member) if queue.topic == self.topic}
        locked = [queue for queue in share if not self._gets_lock(member, queue)]
        held = {queue: self._held_by_it(member, queue) for queue in locked}
        return (
            frozenset(queue for queue in share if held.get(queue, (True, True))[0]),
            frozenset(queue for queue in share if held.get(queue, (True, True))[1]),
        )

    def _asked_for(self, member: Row) -> frozenset[MessageQueue]:
        """What a pass of the process wants; of a CONFIG list, other topics too."""
        outcome = self.outcome(member)
        if outcome == BROADCAST:
            return self._readable
        if outcome not in (COMPUTED, LISTED):
            return frozenset()
        share = self._shares.share(member)
        assert not isinstance(share, str)
        return share

    def _gets_lock(self, member: Row, queue: MessageQueue) -> bool:
        """False: the queue needs an order lock, and nobody gives it."""
        if queue.broker_name not in self.lockless:
            return True
        version = parse_version(member["version"])
        # Only an orderly push group has brokers that lack its locks.
        return not locks_on_addition(
            PUSH, member["message_model"], ordered=True, client_version=version
        )

    def _held_by_it(self, member: Row, queue: MessageQueue) -> tuple[bool, bool]:
        """Whether the process held the queue before: for sure, and possibly."""
        if not self._was_there(member):
            return False, False
        client_id = member["client_id"]
        fewest, most = held_before(self.before, queue)
        return fewest[client_id] >= self._earlier[client_id], most[client_id] > 0

    def expected(self, queue: MessageQueue) -> dict[str, tuple[int, int]]:
        """Client id -> fewest and most of its processes that hold the queue; no other client does.

        More than one number is possible only for several processes of one id of which some keep
        what they held, or get no new order lock: the ledger does not say which of them held it.
        """
        held, held_at_most = held_before(self.before, queue)
        computed, retaining = Counter[str](), self._keeping.copy()
        for member in self._passing:
            if queue in self._asked_for(member):
                if self._gets_lock(member, queue):
                    computed[member["client_id"]] += 1
                elif self._was_there(member):
                    retaining[member["client_id"]] += 1
        result = {}
        for client_id in {*computed, *self._others, *(held_at_most.keys() & retaining.keys())}:
            count = retaining[client_id]
            low = max(0, held[client_id] - (self._earlier[client_id] - count)) if count else 0
            high = min(count, held_at_most[client_id]) + self._others[client_id]
            if computed[client_id] + high:
                result[client_id] = (computed[client_id] + low, computed[client_id] + high)
        return result

    def _was_there(self, member: Row) -> bool:
        there = frozenset[ProcessKey]() if self.before is None else self.before.processes
        return (member["client_id"], member["channel_id"]) in there

    @cached_property
    def _passing(self) -> list[Row]:
        """Processes that run a pass of the topic."""
        passing = (COMPUTED, LISTED, BROADCAST)
        return [member for member in self.view.members if self.outcome(member) in passing]

    @cached_property
    def _others(self) -> Counter[str]:
        """Processes of each id whose strategy is not worked out."""
        return Counter(m["client_id"] for m in self.view.members if self.outcome(m) == OTHER)

    @cached_property
    def _keeping(self) -> Counter[str]:
        """Processes of each id that keep what they held, if they were there before."""
        return Counter(
            member["client_id"]
            for member in self.view.members
            if self.outcome(member) in KEEPING and self._was_there(member)
        )

    @cached_property
    def _earlier(self) -> Counter[str]:
        """Processes of each id before."""
        there = frozenset[ProcessKey]() if self.before is None else self.before.processes
        return Counter(client_id for client_id, _ in there)

    def agrees(self, queue: MessageQueue) -> bool:
        """True if the ledger's holders are the expected ones."""
        held, expected = self.view.held_by(queue), self.expected(queue)
        return all(expected.get(c, (0, 0))[1] >= n for c, n in held.items()) and all(
            low <= held[client_id] for client_id, (low, _) in expected.items()
        )
