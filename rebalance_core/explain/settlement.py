"""Who must hold a queue in an epoch, worked out again from the ledger's own lists.

The rules are those of `replay.settle`, asked of one topic and of rows that name no process as the
holder; a test on random groups holds the two together.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

from rebalance_core.explain.formula import Formula, formula_of
from rebalance_core.explain.held_before import held_before
from rebalance_core.explain.view import ProcessKey, Row, View, subscribes
from rebalance_core.model.errors import AllocationError, UsageError
from rebalance_core.model.group_settings import (
    BROADCASTING,
    BROKER_REBALANCE,
    BROKER_STRATEGIES,
    PUSH,
)
from rebalance_core.model.queue import MessageQueue
from rebalance_core.model.versions import parse_version
from rebalance_core.protocol.asks_broker import asks_broker
from rebalance_core.protocol.order_locks import locks_on_addition
from rebalance_core.replay.settle import CONFIG_STRATEGY
from rebalance_core.strategies import AllocationStrategy, parse_strategy

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
    def _shares(self) -> dict[tuple[str, str], dict[str, frozenset[MessageQueue]] | str]:
        """Per (strategy text, version) the share of each client, or what is thrown."""
        return {}

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

    def strategy_of(self, member: Row) -> AllocationStrategy | None:
        """The strategy of a process; None if its text is none of RocketMQ's."""
        return parsed_strategy(member["strategy"], member["version"])

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
        strategy = self.strategy_of(member)
        name = member["strategy"] if strategy is None else strategy.name
        if name not in BROKER_STRATEGIES and self._asks_broker(member):
            return BROKER_MODE
        if strategy is None:
            return OTHER
        if name == CONFIG_STRATEGY:
            return LISTED
        if not self.queues:
            return NO_QUEUE
        return THROWS if isinstance(self._share(member), str) else COMPUTED

    def _asks_broker(self, member: Row) -> bool:
        # only push groups that are not orderly come into question; ledgers of contract 1 do not
        # have each member's own mode
        mode = member.get("rebalance_mode") or BROKER_REBALANCE
        return self.broker_mode and asks_broker(
            mode, PUSH, member["message_model"], False, member["version"]
        )

    def thrown(self, member: Row) -> str:
        """The exception of a process whose strategy throws."""
        share = self._share(member)
        return share if isinstance(share, str) else ""

    def takes(self, member: Row, queue: MessageQueue) -> bool:
        """True if a pass of the process takes the queue; not for those that run none."""
        outcome = self.outcome(member)
        if outcome == BROADCAST:
            return queue in self._readable and self._gets_lock(member, queue)
        if outcome not in (COMPUTED, LISTED):
            return False
        share = self._share(member)
        return not isinstance(share, str) and queue in share and self._gets_lock(member, queue)

    def _gets_lock(self, member: Row, queue: MessageQueue) -> bool:
        """False: the order lock of a queue that is new to the process, and nobody gives it."""
        if queue.broker_name not in self.lockless:
            return True
        version = parse_version(member["version"])
        # Only an orderly push group has brokers that lack its locks.
        if not locks_on_addition(
            PUSH, member["message_model"], ordered=True, client_version=version
        ):
            return True
        key = (member["client_id"], member["channel_id"])
        there = self.before is not None and key in self.before.processes
        return there and held_before(self.before, queue)[1][member["client_id"]] > 0

    def taken_by(self, member: Row) -> frozenset[MessageQueue]:
        """All queues of the topic that a pass of the process takes; not for those that run none."""
        outcome = self.outcome(member)
        if outcome == BROADCAST:
            return frozenset(q for q in self._readable if self._gets_lock(member, q))
        if outcome not in (COMPUTED, LISTED):
            return frozenset()
        share = self._share(member)
        assert not isinstance(share, str)
        return frozenset(q for q in share if q.topic == self.topic and self._gets_lock(member, q))

    def expected(self, queue: MessageQueue) -> dict[str, tuple[int, int]]:
        """Client id -> fewest and most of its processes that hold the queue; no other client does.

        More than one number is possible only for several processes of one id of which some keep
        what they held: the ledger does not say which of them held it.
        """
        held, held_at_most = held_before(self.before, queue)
        computed = Counter(
            member["client_id"] for member in self._passing if self.takes(member, queue)
        )
        result = {}
        for client_id in {*computed, *self._others, *(held_at_most.keys() & self._keeping.keys())}:
            keeping = self._keeping[client_id]
            low = max(0, held[client_id] - (self._earlier[client_id] - keeping)) if keeping else 0
            high = min(keeping, held_at_most[client_id]) + self._others[client_id]
            if computed[client_id] + high:
                result[client_id] = (computed[client_id] + low, computed[client_id] + high)
        return result

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
        there = frozenset[ProcessKey]() if self.before is None else self.before.processes
        return Counter(
            member["client_id"]
            for member in self.view.members
            if self.outcome(member) in KEEPING
            and (member["client_id"], member["channel_id"]) in there
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

    def _share(self, member: Row) -> frozenset[MessageQueue] | str:
        key = (member["strategy"], member["version"])
        strategy = self.strategy_of(member)
        if strategy is None:
            return f"unknown strategy {member['strategy']}"
        if key not in self._shares:
            self._shares[key] = self._all_shares(strategy)
        shares = self._shares[key]
        if isinstance(shares, str):
            # Somebody's allocation throws; others' may not.
            try:
                own = strategy.allocate(member["client_id"], self.queues, self.view.client_ids)
            except AllocationError as error:
                return str(error)
            return frozenset(own)
        return shares.get(member["client_id"], frozenset())

    def _all_shares(self, strategy: AllocationStrategy) -> dict[str, frozenset[MessageQueue]] | str:
        try:
            shares = strategy.allocate_all(self.queues, self.view.client_ids)
        except AllocationError as error:
            return str(error)
        return {client_id: frozenset(share) for client_id, share in shares.items()}


@lru_cache(maxsize=1024)
def parsed_strategy(text: str, version: str) -> AllocationStrategy | None:
    """The strategy of a text under a client version; None if it is none of RocketMQ's."""
    try:
        return parse_strategy(text, version=version)
    except UsageError:
        return None
