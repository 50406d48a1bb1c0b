"""The shares of a topic that members get."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from rebalance_core.model.client_profile import BYTES, DROP, UTF16
from rebalance_core.model.errors import AllocationError
from rebalance_core.model.group_settings import BROADCASTING, BROKER_STRATEGIES, PROXY_REBALANCE
from rebalance_core.model.queue import MessageQueue
from rebalance_core.replay.group_view import GroupView, Kind
from rebalance_core.replay.member import Member
from rebalance_core.replay.shared_topics import SharedTopic
from rebalance_core.strategies import AllocationStrategy
from rebalance_core.strategies.pop import (
    WHOLE_BROKER,
    allocate_all_for_pop,
    allocate_for_pop,
    pops_whole_brokers,
)
from rebalance_core.strategies.spi import EMPTY_ARGUMENT, is_java_blank

CONFIG_STRATEGY = "CONFIG"

StrategyKey: TypeAlias = tuple[str, str]


def strategy_key(member: Member) -> StrategyKey:
    """Return the key of a member's strategy: its text and, for the 4.9 hash, the client version."""
    return member.strategy, member.rules_version


@dataclass(slots=True)
class UncertainHoldings:
    """The queues that a process may hold after a pass, by rules known only from source code.

    Attributes:
        held: the queues that it certainly held before the pass.
        may_hold: the queues that it may have held before the pass.
        doubtful: the queues that it may hold after the pass.
        ended: whether the pass may have ended, so that the process keeps its queues in the
            remaining topics.
    """

    held: frozenset[MessageQueue]
    may_hold: frozenset[MessageQueue]
    doubtful: set[MessageQueue] = field(default_factory=set)
    ended: bool = False

    def between(
        self, *outcomes: Iterable[MessageQueue], or_as_before: str | None = None
    ) -> list[MessageQueue]:
        """Return the queues that are in all outcomes; record those in only some outcomes as
        doubtful.

        ``or_as_before`` is the topic whose earlier queues it may also keep.
        """
        sets = [set(outcome) for outcome in outcomes]
        possible = set().union(*sets)
        if or_as_before is not None:
            sets.append({queue for queue in self.held if queue.topic == or_as_before})
            possible |= sets[-1] | {q for q in self.may_hold if q.topic == or_as_before}
        sure = set.intersection(*sets)
        self.doubtful |= possible - sure
        return sorted(sure)


def pops_topic(state: GroupView, member: Member, shared: SharedTopic) -> bool:
    """Return whether the member pops this topic (rocketmq.md §2.8, §14)."""
    if member.rebalance_mode == PROXY_REBALANCE:
        return True
    return shared.share_queue_num is not None and member.asks_broker(state.settings)


Share: TypeAlias = Sequence[MessageQueue] | None
"""None if the pass leaves the topic unchanged."""
Answer: TypeAlias = tuple[tuple[MessageQueue, ...] | None, ...]
"""A member's share; two shares if its client's sort order is unknown."""
NO_SHARE: Answer = ((),)
NO_ANSWER: Answer = (None,)


def known_share(answer: Answer, uncertain: UncertainHoldings) -> Share:
    """Return the queues that the member certainly gets, or its only possible answer."""
    if len(answer) == 1:
        return answer[0]
    return uncertain.between(*(share or () for share in answer))


@dataclass(frozen=True, slots=True)
class TopicAllocation:
    """The answers that members of the same kind get for a topic.

    Attributes:
        others: The answer for most members.
        named: The answers that differ, by client id.
    """

    others: Answer
    named: Mapping[str, Answer] = field(default_factory=dict)

    def answer_for(self, client_id: str) -> Answer:
        """Return the answer that a member gets."""
        return self.named.get(client_id, self.others)


class TopicAllocations:
    """The shares of topics that the members of a view get.

    Args:
        state: The view.
        strategies: One for the `strategy_key` of each member.
    """

    def __init__(
        self, state: GroupView, strategies: Mapping[StrategyKey, AllocationStrategy]
    ) -> None:
        self._state, self._strategies = state, strategies
        self._client_ids: dict[str, list[str]] = {}
        self._shares: dict[
            tuple[StrategyKey, str, str], dict[str, list[MessageQueue]] | AllocationError
        ] = {}

    def allocation_of(self, kind: Kind, topic: str) -> TopicAllocation:
        """Return the answers for a topic that members of a kind pop or pull."""
        shared = self._state.shared.get(topic)
        if shared is None:
            return self.pulled(kind, topic, self._state.readable[topic])
        if pops_topic(self._state, kind.example, shared):
            return self._popped(kind, shared)
        return self.pulled(kind, topic, shared.queues)

    def _popped(self, kind: Kind, shared: SharedTopic) -> TopicAllocation:
        member = kind.example
        strategy = self._strategies[strategy_key(member)]
        if not shared.queues:
            return TopicAllocation(NO_ANSWER)
        if member.rebalance_mode == PROXY_REBALANCE:
            if self._state.settings.ordered:
                return TopicAllocation((shared.queues,))
            whole = (queue._replace(queue_id=WHOLE_BROKER) for queue in shared.queues)
            return TopicAllocation((tuple(whole),))
        if strategy.name not in BROKER_STRATEGIES:
            return TopicAllocation(NO_ANSWER)
        assert shared.share_queue_num is not None
        arguments = strategy, shared.queues, self._sorted(UTF16), shared.share_queue_num
        if pops_whole_brokers(shared.share_queue_num, len(self._sorted(UTF16))):
            return TopicAllocation(
                (tuple(allocate_for_pop(strategy, member.client_id, *arguments[1:])),)
            )
        try:
            shares = allocate_all_for_pop(*arguments)
        except AllocationError:
            pass  # the member's own; those of others may not
        else:
            return TopicAllocation(
                NO_SHARE, {client_id: (tuple(share),) for client_id, share in shares.items()}
            )

        def popped(client_id: str) -> Answer:
            try:
                return (tuple(allocate_for_pop(strategy, client_id, *arguments[1:])),)
            except AllocationError:
                return NO_ANSWER

        return TopicAllocation(
            NO_SHARE, {client_id: popped(client_id) for client_id, _ in kind.keys}
        )

    def pulled(self, kind: Kind, topic: str, queues: Sequence[MessageQueue]) -> TopicAllocation:
        """Return the allocation of a topic to members of a kind by their strategy.

        Clients whose strategies return nothing for an empty argument release the topic.
        """
        member, profile = kind.example, kind.example.profile
        strategy = self._strategies[strategy_key(member)]
        without: Answer = NO_SHARE if profile.no_queue == DROP else NO_ANSWER
        if not member.rule_known:
            return TopicAllocation(NO_SHARE)
        if member.message_model == BROADCASTING:
            return TopicAllocation((tuple(queues),) if queues else without)
        if strategy.name not in BROKER_STRATEGIES and member.asks_broker(self._state.settings):
            return TopicAllocation(NO_ANSWER)
        if strategy.name == CONFIG_STRATEGY:
            # The list comes back whole for every topic; the other topics' passes take their own
            # part.
            listed = strategy.allocate(member.client_id, queues, self._sorted(profile.order))
            return TopicAllocation((tuple(queue for queue in listed if queue.topic == topic),))
        return self._divided(kind, topic, queues, without) if queues else TopicAllocation(without)

    def _divided(
        self, kind: Kind, topic: str, queues: Sequence[MessageQueue], without: Answer
    ) -> TopicAllocation:
        """Return the division of a topic with queues; ``without`` is the answer to an empty
        argument.
        """
        profile, strategy = kind.example.profile, self._strategies[strategy_key(kind.example)]
        orders = [profile.order]
        if "order" in profile.read and not self._sort_alike(queues, profile.order):
            orders.append(UTF16)

        def own(shares: Iterable[list[MessageQueue]]) -> Answer:
            # another topic's pass drops queues that it does not name itself
            kept = (
                tuple(share if strategy.keeps_to_topic else [q for q in share if q.topic == topic])
                for share in shares
            )
            return tuple(dict.fromkeys(kept))

        of_all = [self._shares_of_all(kind.example, topic, queues, order) for order in orders]
        shares_by_order = [shares for shares in of_all if not isinstance(shares, AllocationError)]
        thrown = [error for error in of_all if isinstance(error, AllocationError)]
        if not thrown:
            having = {
                client_id
                for shares in shares_by_order
                for client_id, share in shares.items()
                if share
            }
            return TopicAllocation(
                NO_SHARE,
                {
                    client_id: own(shares[client_id] for shares in shares_by_order)
                    for client_id in having
                },
            )

        def of_error(error: AllocationError) -> Answer:
            return without if error.java_class == EMPTY_ARGUMENT else NO_ANSWER

        def asked(client_id: str) -> Answer:
            try:
                return own(
                    strategy.allocate(client_id, _sorted(queues, order), self._sorted(order))
                    for order in orders
                )
            except AllocationError as error:
                return of_error(error)

        if strategy.throws_for_all and not any(map(is_java_blank, self._sorted(UTF16))):
            return TopicAllocation(of_error(thrown[0]))
        return TopicAllocation(
            NO_SHARE, {client_id: asked(client_id) for client_id, _ in kind.keys}
        )

    def _shares_of_all(
        self, member: Member, topic: str, queues: Sequence[MessageQueue], order: str
    ) -> dict[str, list[MessageQueue]] | AllocationError:
        """Return the shares of all members by a member's strategy, or the error that it raises for
        a member.
        """
        key = strategy_key(member), topic, order
        if key not in self._shares:
            strategy, mq_all = self._strategies[key[0]], _sorted(queues, order)
            try:
                self._shares[key] = strategy.allocate_all(mq_all, self._sorted(order))
            except AllocationError as error:
                self._shares[key] = error
        return self._shares[key]

    def _sorted(self, order: str) -> list[str]:
        if order not in self._client_ids:
            self._client_ids[order] = self._state.sorted_client_ids(order)
        return self._client_ids[order]

    def _sort_alike(self, queues: Sequence[MessageQueue], order: str) -> bool:
        """Return True if clients that sort in this order have the same lists as Java's."""
        return _sorted(queues, order) == list(queues) and self._sorted(order) == self._sorted(UTF16)


def _sorted(queues: Sequence[MessageQueue], order: str) -> Sequence[MessageQueue]:
    """Return queues, given in Java's order, in another order."""
    return sorted(queues) if order == BYTES else queues
