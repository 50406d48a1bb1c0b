"""The holders once every member has seen the current view, after one pass by each member."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from rebalance_core.model.queue import MessageQueue, is_retry_topic
from rebalance_core.model.versions import parse_version
from rebalance_core.protocol.order_locks import locks_on_addition
from rebalance_core.replay.group_view import GroupView, Kind
from rebalance_core.replay.member import Member, ProcessKey
from rebalance_core.replay.topic_shares import (
    Answer,
    StrategyKey,
    TopicAllocations,
    UncertainHoldings,
    known_share,
    pops_topic,
)
from rebalance_core.strategies import AllocationStrategy

Holdings: TypeAlias = Mapping[ProcessKey, frozenset[MessageQueue]]

NO_QUEUES: frozenset[MessageQueue] = frozenset()


class Held(dict[ProcessKey, frozenset[MessageQueue]]):
    """The queues by process; a process without an entry has none."""

    def __missing__(self, key: ProcessKey) -> frozenset[MessageQueue]:
        """Return no queues for a process without an entry."""
        return NO_QUEUES


@dataclass(frozen=True, slots=True)
class SharedHoldings:
    """The queues from which a process takes messages, other than those that it owns exclusively.

    Upstream: ``RebalanceImpl.processQueueTable`` and ``popProcessQueueTable``.

    Attributes:
        pulled: Queues of shared topics that it pulls.
        popped: Queues that it pops; queue id `strategies.pop.WHOLE_BROKER` stands for all of a
            broker.
    """

    pulled: frozenset[MessageQueue] = frozenset()
    popped: frozenset[MessageQueue] = frozenset()


@dataclass(frozen=True, slots=True)
class Settled:
    """The queues of every live process, and the topics that at least one member could not allocate.

    Attributes:
        holdings: queues of topics that are not shared; processes without queues may be missing.
        frozen_topics: topics for which at least one member got no answer.
        taken: the queues taken from shared topics; processes that take nothing may be missing.
        unsure: queues without a known holder that a member with unknown subscriptions or rules may
            hold, so that they do not count as unowned; and all doubtful queues.
        doubtful: queues whose holding depends on client rules known only from source code.
    """

    holdings: Holdings
    frozen_topics: frozenset[str]
    taken: Mapping[ProcessKey, SharedHoldings] = field(default_factory=dict)
    unsure: frozenset[MessageQueue] = frozenset()
    doubtful: Holdings = field(default_factory=dict)


def settle(
    state: GroupView,
    before: Holdings,
    strategies: Mapping[StrategyKey, AllocationStrategy],
    taken_before: Mapping[ProcessKey, SharedHoldings] | None = None,
    doubtful_before: Holdings | None = None,
) -> Settled:
    """Run one pass by every member on the current view.

    A member without an answer for a topic keeps what it pulled and popped there; an answer to pull
    ends what it popped, and vice versa (``RebalanceImpl.updateMessageQueueAssignment``). New
    members have nothing to keep.

    If no broker grants a queue's order lock, the queue stays with its holder and gets no new owner.

    A member whose subscriptions are unknown counts for every topic. Except for its retry topic, its
    shares of topics to which others subscribe are ``unsure``, and it freezes none of them. Also
    ``unsure`` are all queues that a member with unknown rules may hold. If a rule known only from
    source code applies, a member keeps the queues that it would hold either way; the rest are
    ``doubtful``.

    A topic is allocated once for all members that allocate it alike, and members with equal
    holdings and shares run one pass together. Cost: O(members), plus a pass by each member that has
    or gets queues.

    Args:
        state: the group as its members see it now.
        before: the holdings of each process until now; departed processes are ignored.
        strategies: one for the `strategy_key` of each member.
        taken_before: the queues of shared topics that each process took until now.
        doubtful_before: the queues that were doubtful until now.
    """
    allocations = TopicAllocations(state, strategies)
    earlier = _Before(before, taken_before or {}, doubtful_before or {})
    frozen: set[str] = set()
    left: dict[ProcessKey, Outcome] = {}
    for kind in state.kinds:
        left |= _passes(state, kind, earlier, allocations, frozen)
    holdings, taken = Held(), dict[ProcessKey, SharedHoldings]()
    doubtful: dict[ProcessKey, frozenset[MessageQueue]] = {}
    for key in state.members if left else ():
        now = left.get(key)
        if now is None:
            continue
        alone = now.pulled
        if state.shared:
            alone = frozenset(queue for queue in alone if queue.topic not in state.shared)
        if alone:
            holdings[key] = alone
        if now.popped or len(alone) < len(now.pulled):
            taken[key] = SharedHoldings(now.pulled - alone, now.popped)
        if now.doubtful:
            doubtful[key] = now.doubtful
    unsure: set[MessageQueue] = set()
    for kind in state.kinds:
        if not kind.example.share_known:
            unsure.update(_may_hold(state, kind, allocations))
    unsure.difference_update(*holdings.values())
    unsure.update(*doubtful.values())
    return Settled(holdings, frozenset(frozen), taken, frozenset(unsure), doubtful)


class Outcome(NamedTuple):
    """The queues that a process certainly pulls and pops after a pass, and those that it may
    hold.
    """

    pulled: frozenset[MessageQueue]
    popped: frozenset[MessageQueue]
    doubtful: frozenset[MessageQueue]


HAD_NOTHING = Outcome(NO_QUEUES, NO_QUEUES, NO_QUEUES)


class _Before:
    """The holdings of each process before its pass."""

    def __init__(
        self, held: Holdings, taken: Mapping[ProcessKey, SharedHoldings], doubtful: Holdings
    ) -> None:
        self._held, self._taken, self._doubtful = held, taken, doubtful
        self.keys = held.keys() | taken.keys() | doubtful.keys()
        """The processes that may have had something."""

    def outcome_of(self, key: ProcessKey) -> Outcome:
        held, shared = self._held.get(key, NO_QUEUES), self._taken.get(key)
        may_hold = self._doubtful.get(key, NO_QUEUES)
        if shared is None:
            return Outcome(held, NO_QUEUES, may_hold)
        return Outcome(held | shared.pulled, shared.popped, may_hold)


def _passes(
    state: GroupView, kind: Kind, before: _Before, allocations: TopicAllocations, frozen: set[str]
) -> dict[ProcessKey, Outcome]:
    """Return the results of the passes by a kind's members; those left without queues may be
    missing.

    Topics without an answer are added to ``frozen``.
    """
    topics = state.topics_of(kind.example)
    divided = [allocations.allocation_of(kind, topic) for topic in topics]
    others = tuple(allocation.others for allocation in divided)
    named = frozenset[str]().union(*(allocation.named for allocation in divided))
    outcomes: dict[tuple[Outcome, tuple[Answer, ...]], Outcome] = {}

    def outcome(had: Outcome, answers: tuple[Answer, ...]) -> Outcome:
        if (had, answers) not in outcomes:
            asked = zip(topics, answers, strict=True)
            outcomes[had, answers] = _pass(state, kind.example, had, asked, frozen)
        return outcomes[had, answers]

    special = [key for key in kind.keys if key in before.keys or key[0] in named]
    left = {
        key: outcome(
            before.outcome_of(key), tuple([allocation.answer_for(key[0]) for allocation in divided])
        )
        for key in special
    }
    if len(special) < len(kind.keys):
        of_others = outcome(HAD_NOTHING, others)
        if of_others != HAD_NOTHING:
            left |= {key: of_others for key in kind.keys if key not in left}
    return left


def _may_hold(
    state: GroupView, kind: Kind, allocations: TopicAllocations
) -> Iterator[MessageQueue]:
    """Yield queues that members with unknown subscriptions may hold: their shares of every topic.

    Without a share of a topic, they keep their earlier queues there, which are unknown. A member
    with unknown rules may hold any queue of its topics.
    """
    member = kind.example
    for topic, queues in state.readable.items():
        if not member.rule_known:
            retry_read = is_retry_topic(topic) and "retry" in member.profile.read
            if member.subscribes(topic) or not member.subscriptions_known or retry_read:
                yield from queues
        elif topic != member.retry_topic:
            allocation = allocations.pulled(kind, topic, queues)
            client_ids = {client_id for client_id, _ in kind.keys}
            of_kind = allocation.named.keys() & client_ids
            answers = {allocation.answer_for(client_id) for client_id in of_kind}
            if len(of_kind) < len(client_ids):
                answers.add(allocation.others)
            for answer in answers:
                uncertain = UncertainHoldings(NO_QUEUES, NO_QUEUES)
                share = known_share(answer, uncertain)
                yield from queues if share is None or member.suspended else share
                yield from uncertain.doubtful


def _pass(
    state: GroupView,
    member: Member,
    had: Outcome,
    answers: Iterable[tuple[str, Answer]],
    frozen: set[str],
) -> Outcome:
    """Return the outcome of a member's pass, given the answers for its topics, in order.

    Topics without an answer are added to ``frozen``.
    """
    pulled: set[MessageQueue] = set()
    popped: set[MessageQueue] = set()
    uncertain = UncertainHoldings(had.pulled, had.doubtful)
    profile = member.profile
    for topic, answer in answers:
        shared = state.shared.get(topic)
        pops = shared is not None and pops_topic(state, member, shared)
        share = known_share(answer, uncertain)
        if not pops:
            share = _with_locks(state, member, share, had.pulled, uncertain)
        if share is None and "no_queue" in profile.read:
            share = uncertain.between((), or_as_before=topic)
            uncertain.ended |= profile.ends_pass
        elif share is not None and uncertain.ended:
            share = uncertain.between(share, or_as_before=topic)
        if share is None:
            frozen.add(topic)
            pulled.update(queue for queue in had.pulled if queue.topic == topic)
            popped.update(queue for queue in had.popped if queue.topic == topic)
        else:
            (popped if pops else pulled).update(share)
    if member.suspended:  # it runs no pass, but all other members still count it
        now = had
    else:
        now = Outcome(frozenset(pulled), frozenset(popped), frozenset(uncertain.doubtful))
    return had if now == had else now  # unchanged holdings, as most are, remain the same object


def _with_locks(
    state: GroupView,
    member: Member,
    share: Sequence[MessageQueue] | None,
    held: frozenset[MessageQueue],
    uncertain: UncertainHoldings,
) -> Sequence[MessageQueue] | None:
    """Return the share without new queues for which no broker grants the order lock.

    Whether a client asks for the lock may be doubtful.
    """
    settings = state.settings
    if (
        share is None
        or not state.lockless
        or not locks_on_addition(
            settings.consumer_type,
            member.message_model,
            settings.ordered,
            parse_version(member.rules_version),
        )
    ):
        return share
    granted = [q for q in share if q in held or q.broker_name not in state.lockless]
    return uncertain.between(share, granted) if "locks" in member.profile.read else granted
