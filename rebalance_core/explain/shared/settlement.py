"""What each client takes of a shared topic, worked out again from the ledger's own lists.

The rules are those of `replay.settle` for topics that members share (rocketmq.md §2.8, §14); tests
hold the two together.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from rebalance_core.explain.held_before import had_before
from rebalance_core.explain.settlement import (
    BROKER_MODE,
    KEEPING,
    NO_QUEUE,
    NOT_SUBSCRIBED,
    OTHER,
    SUSPENDED,
    THROWS,
    Settlement,
)
from rebalance_core.explain.shared.share_numbers import ShareNumbers
from rebalance_core.explain.shares import strategy_of
from rebalance_core.explain.view import Entries, Row, View, covers
from rebalance_core.model.errors import AllocationError
from rebalance_core.model.group_settings import (
    BROKER_STRATEGIES,
    CLIENT_REBALANCE,
    PROXY_REBALANCE,
    PUSH,
)
from rebalance_core.model.queue import MessageQueue
from rebalance_core.protocol.members import asks_broker
from rebalance_core.strategies.pop import WHOLE_BROKER, allocate_for_pop

POP, PROXY, PROXY_FIFO = "POP", "PROXY", "PROXY_FIFO"
NOTHING: Entries = frozenset()


@dataclass(frozen=True)
class SharedSettlement:
    """One shared topic of one epoch under one assumption on what the ledger leaves open.

    Attributes:
        view: the epoch.
        before: the epoch before, if there is one.
        topic: the topic.
        queues: mqAll.
        share: share numbers of its request mode; None: no member pops it by asking a broker.
        ordered: the group consumes in order.
        asks: members ask a broker where their mode says so: push consumers not in order do.
        lockless: as of `Settlement`, for members that pull.
    """

    view: View
    before: View | None
    topic: str
    queues: tuple[MessageQueue, ...]
    share: ShareNumbers | None
    ordered: bool = False
    lockless: frozenset[str] = frozenset()
    asks: bool = True

    @cached_property
    def _pulling(self) -> dict[bool, Settlement]:
        """The rules of members that pull, by whether they ask a broker."""
        return {
            asks: Settlement(self.view, self.before, self.topic, self.queues, asks, self.lockless)
            for asks in (False, True)
        }

    @cached_property
    def _single(self) -> Entries:
        return frozenset(self.queues)

    @cached_property
    def _whole(self) -> Entries:
        return frozenset(queue._replace(queue_id=WHOLE_BROKER) for queue in self.queues)

    @cached_property
    def _popped(self) -> dict[tuple[str, str], Entries | str]:
        return {}

    def pulling(self, member: Row) -> Settlement:
        """The rules that a member follows where it pulls."""
        return self._pulling[self._asks_broker(member)]

    def outcome(self, member: Row) -> str:
        """What a pass of the process does with the topic.

        POP, PROXY, PROXY_FIFO, or as `Settlement.outcome`.
        """
        outcome = self.pulling(member).outcome(member)
        if outcome in (SUSPENDED, NOT_SUBSCRIBED):
            return outcome
        if _mode(member) == PROXY_REBALANCE:
            if not self.queues:
                return NO_QUEUE
            return PROXY_FIFO if self.ordered else PROXY
        if self.share is None or not self._asks_broker(member) or outcome == BROKER_MODE:
            return outcome
        if not self.queues:
            return NO_QUEUE
        return THROWS if isinstance(self._pops(member), str) else POP

    def entries(self, member: Row) -> tuple[Entries, Entries] | None:
        """What a pass of the process leaves it with, as answers name it: for sure, and at most.

        None: what it had.
        """
        outcome = self.outcome(member)
        if outcome in KEEPING or outcome == OTHER:
            return None
        if outcome == NOT_SUBSCRIBED:
            return NOTHING, NOTHING
        if outcome == PROXY:
            return self._whole, self._whole
        if outcome == PROXY_FIFO:
            return self._single, self._single
        if outcome == POP:
            popped = self._pops(member)
            assert not isinstance(popped, str)
            return popped, popped
        return self.pulling(member).taken_by(member)

    @cached_property
    def expected(self) -> Mapping[str, tuple[Entries, Entries | None]]:
        """Client id -> what it reaches for sure, and what it may reach; None: anything.

        The two differ only where some of several processes of one id keep what they had, or get no
        new order lock, and where a strategy is not RocketMQ's.
        """
        processes = self.view.processes_of.items()
        return {client_id: self._expected(client_id, own) for client_id, own in processes}

    @cached_property
    def differing(self) -> frozenset[str]:
        """Clients of which the ledger's rows of the topic are not the expected ones."""
        rows = self.view.reach.get(self.topic, {})
        wrong = {
            client_id
            for client_id, (sure, possible) in self.expected.items()
            if not _within(sure, rows.get(client_id, NOTHING))
            or not (possible is None or _within(rows.get(client_id, NOTHING), possible))
        }
        return frozenset(wrong | (rows.keys() - self.expected.keys()))

    @property
    def agrees(self) -> bool:
        """True if the ledger's rows of the topic are the expected ones."""
        return not self.differing

    def _expected(self, client_id: str, processes: list[Row]) -> tuple[Entries, Entries | None]:
        sure, possible, anything = NOTHING, NOTHING, False
        for member in processes:
            entries = self.entries(member)
            if entries is not None:
                sure |= entries[0]
                possible |= entries[1]
            elif self.outcome(member) == OTHER:
                anything = True
            else:
                kept, alone = self._kept(client_id, member)
                possible |= kept
                sure |= kept if alone else NOTHING
        return sure, None if anything else sure | possible

    def _kept(self, client_id: str, member: Row) -> tuple[Entries, bool]:
        """What a process had, or some of it, and whether it had all of that alone."""
        if self.before is None:
            return NOTHING, True
        earlier = {key for key in self.before.processes if key[0] == client_id}
        if (client_id, member["channel_id"]) not in earlier:
            return NOTHING, True
        shown, hidden = had_before(self.before, self.topic, client_id)
        return shown | hidden, len(earlier) == 1 and not hidden

    def _asks_broker(self, member: Row) -> bool:
        return self.asks and asks_broker(
            _mode(member), PUSH, member["message_model"], self.ordered, member["version"]
        )

    def _pops(self, member: Row) -> Entries | str:
        """What the member pops, or the exception of its strategy."""
        assert self.share is not None
        if self.share.is_everything:
            return self._whole
        key = (member["strategy"], member["client_id"])
        if key not in self._popped:
            strategy = strategy_of(member)
            assert strategy is not None
            assert strategy.name in BROKER_STRATEGIES
            ids = self.view.client_ids
            try:
                popped = allocate_for_pop(
                    strategy, member["client_id"], self.queues, ids, self.share.any_of
                )
                self._popped[key] = frozenset(popped)
            except AllocationError as error:
                self._popped[key] = str(error)
        return self._popped[key]


def _mode(member: Row) -> str:
    return str(member.get("rebalance_mode") or CLIENT_REBALANCE)


def _within(entries: Entries, others: Entries) -> bool:
    return all(covers(others, queue) for queue in entries)
