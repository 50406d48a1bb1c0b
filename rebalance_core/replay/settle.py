"""Who holds what once every member has seen the current view: one pass of each member."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from rebalance_core.model.clients import BYTES, DROP, UTF16, parse_version
from rebalance_core.model.errors import AllocationError
from rebalance_core.model.group_settings import BROADCASTING, BROKER_STRATEGIES, PROXY_REBALANCE
from rebalance_core.model.queue import MessageQueue, is_retry_topic
from rebalance_core.protocol.members import locks_on_addition
from rebalance_core.replay.group_state import GroupView, Member, ProcessKey, SharedTopic
from rebalance_core.strategies import AllocationStrategy
from rebalance_core.strategies.pop import WHOLE_BROKER, allocate_for_pop
from rebalance_core.strategies.spi import EMPTY_ARGUMENT

CONFIG_STRATEGY = "CONFIG"

Holdings: TypeAlias = Mapping[ProcessKey, frozenset[MessageQueue]]
StrategyKey: TypeAlias = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Taken:
    """The queues that one process takes messages from, beside those that it alone may have.

    Upstream: ``RebalanceImpl.processQueueTable`` and ``popProcessQueueTable``.

    Attributes:
        pulled: Queues of shared topics that it pulls.
        popped: Queues that it pops; queue id `WHOLE_BROKER` stands for all of a broker.
    """

    pulled: frozenset[MessageQueue] = frozenset()
    popped: frozenset[MessageQueue] = frozenset()


@dataclass(frozen=True, slots=True)
class Settled:
    """The queues of every live process, and the topics that some member could not allocate.

    Attributes:
        holdings: queues of topics that are not shared.
        frozen_topics: those of which some member got no answer.
        taken: of shared topics; processes that take nothing may be missing.
        unsure: queues that no process is known to hold, and a member may hold whose subscriptions
            or rules are not known: they are not nobody's; and all that are doubtful.
        doubtful: queues that a process holds or not, by rules of its client that were only read.
    """

    holdings: dict[ProcessKey, frozenset[MessageQueue]]
    frozen_topics: frozenset[str]
    taken: Mapping[ProcessKey, Taken] = field(default_factory=dict)
    unsure: frozenset[MessageQueue] = frozenset()
    doubtful: Holdings = field(default_factory=dict)


def strategy_key(member: Member) -> StrategyKey:
    """Strategies differ by text and, for the hash of 4.9, by client version."""
    return member.strategy, member.rules_version


def settle(
    state: GroupView,
    before: Holdings,
    strategies: Mapping[StrategyKey, AllocationStrategy],
    taken_before: Mapping[ProcessKey, Taken] | None = None,
    doubtful_before: Holdings | None = None,
) -> Settled:
    """Run one pass of every member on the current view.

    A member without an answer for a topic keeps what it pulled and popped of it; an answer to pull
    ends what it popped, and the other way round (``RebalanceImpl.updateMessageQueueAssignment``).
    Who comes new has nothing to keep.

    A queue whose order lock nobody gives stays with who holds it, and has no new owner.

    A member whose subscriptions are not known counts for every topic. Its retry topic apart, what
    it would hold of the topics that others subscribe is ``unsure``, and it freezes none of them. So
    is all that a member may hold of whose rules nothing is known. Where a rule decides that was
    only read, a member is left with what it holds either way; the rest is ``doubtful``.

    Args:
        state: the group as its members see it now.
        before: what each process held until now; processes that are gone are ignored.
        strategies: one for the `strategy_key` of each member.
        taken_before: what each process took of shared topics until now.
        doubtful_before: what was doubtful until now.
    """
    client_ids = {order: state.sorted_client_ids(order) for order in (UTF16, BYTES)}
    holdings: dict[ProcessKey, frozenset[MessageQueue]] = {}
    doubtful: dict[ProcessKey, frozenset[MessageQueue]] = {}
    taken: dict[ProcessKey, Taken] = {}
    frozen: set[str] = set()
    for key, member in state.members.items():
        shared = (taken_before or {}).get(key, Taken())
        held = Taken(before.get(key, frozenset()) | shared.pulled, shared.popped)
        may_hold = (doubtful_before or {}).get(key, frozenset())
        doubts = Doubts(held.pulled, may_hold)
        now = _pass(state, member, held, client_ids, strategies, frozen, doubts)
        if member.suspended:  # it runs no pass, but everybody else goes on counting it
            now, doubts.found = held, set(may_hold)
        if doubts.found:
            doubtful[key] = frozenset(doubts.found)
        alone = frozenset(queue for queue in now.pulled if queue.topic not in state.shared)
        holdings[key] = alone
        if state.shared or now.popped:
            taken[key] = Taken(now.pulled - alone, now.popped)
    unsure: set[MessageQueue] = set()
    for member in state.members.values():
        if not member.share_known:
            unsure.update(_may_hold(state, member, client_ids, strategies))
    unsure -= frozenset[MessageQueue]().union(*holdings.values())
    unsure.update(*doubtful.values())
    return Settled(holdings, frozenset(frozen), taken, frozenset(unsure), doubtful)


@dataclass(slots=True)
class Doubts:
    """The queues one process may hold or not after a pass, by rules that were only read.

    Attributes:
        held: what it surely held before.
        may_hold: what was doubtful before.
        found: what is doubtful now.
        ended: the pass may have ended, so that it keeps what it has of the topics that follow.
    """

    held: frozenset[MessageQueue]
    may_hold: frozenset[MessageQueue]
    found: set[MessageQueue] = field(default_factory=set)
    ended: bool = False

    def between(
        self, *outcomes: Iterable[MessageQueue], or_as_before: str | None = None
    ) -> list[MessageQueue]:
        """Return what it holds by each of the outcomes; what it holds by some only is doubtful.

        ``or_as_before``: the topic of which it may also keep what it had.
        """
        sets = [set(outcome) for outcome in outcomes]
        possible = set().union(*sets)
        if or_as_before is not None:
            sets.append({queue for queue in self.held if queue.topic == or_as_before})
            possible |= sets[-1] | {q for q in self.may_hold if q.topic == or_as_before}
        sure = set.intersection(*sets)
        self.found |= possible - sure
        return sorted(sure)


def _may_hold(
    state: GroupView,
    member: Member,
    client_ids: Mapping[str, list[str]],
    strategies: Mapping[StrategyKey, AllocationStrategy],
) -> Iterator[MessageQueue]:
    """Queues that a member of unknown subscriptions may hold: its share of every topic.

    Without a share of a topic it keeps what it had of it, which nobody knows. One whose rules are
    not known may hold any queue of its topics.
    """
    strategy = strategies[strategy_key(member)]
    for topic, queues in state.readable.items():
        if not member.rule_known:
            retry_read = is_retry_topic(topic) and "retry" in member.profile.read
            if member.subscribes(topic) or not member.subscriptions_known or retry_read:
                yield from queues
        elif topic != member.retry_topic:
            doubts = Doubts(frozenset(), frozenset())
            share = _share(state, member, topic, queues, client_ids, strategy, doubts)
            yield from queues if share is None or member.suspended else share
            yield from doubts.found


def _pass(
    state: GroupView,
    member: Member,
    held: Taken,
    client_ids: Mapping[str, list[str]],
    strategies: Mapping[StrategyKey, AllocationStrategy],
    frozen: set[str],
    doubts: Doubts,
) -> Taken:
    """Return what one member's pass surely leaves it with.

    Topics without an answer are added to ``frozen``, what it may have beside to ``doubts``.
    """
    pulled: set[MessageQueue] = set()
    popped: set[MessageQueue] = set()
    for topic in state.topics_of(member):
        strategy = strategies[strategy_key(member)]
        shared = state.shared.get(topic)
        pops = shared is not None and pops_topic(state, member, shared)
        answer: Sequence[MessageQueue] | None
        if shared is not None and pops:
            answer = _popped(state, member, shared, client_ids[UTF16], strategy)
        else:
            queues = state.readable[topic] if shared is None else shared.queues
            answer = _share(state, member, topic, queues, client_ids, strategy, doubts)
            answer = _with_locks(state, member, answer, held.pulled, doubts)
        profile = member.profile
        if answer is None and "no_queue" in profile.read:
            answer = doubts.between((), or_as_before=topic)
            doubts.ended |= profile.ends_pass
        elif answer is not None and doubts.ended:
            answer = doubts.between(answer, or_as_before=topic)
        if answer is None:
            frozen.add(topic)
            pulled.update(queue for queue in held.pulled if queue.topic == topic)
            popped.update(queue for queue in held.popped if queue.topic == topic)
        else:
            (popped if pops else pulled).update(answer)
    return Taken(frozenset(pulled), frozenset(popped))


def _with_locks(
    state: GroupView,
    member: Member,
    share: Sequence[MessageQueue] | None,
    held: frozenset[MessageQueue],
    doubts: Doubts,
) -> Sequence[MessageQueue] | None:
    """The share without new queues whose order lock nobody gives; whether a client asks for it may
    be doubtful.
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
    given = [q for q in share if q in held or q.broker_name not in state.lockless]
    return doubts.between(share, given) if "locks" in member.profile.read else given


def pops_topic(state: GroupView, member: Member, shared: SharedTopic) -> bool:
    """The member pops this topic; others pull their share of it (rocketmq.md §2.8, §14)."""
    if member.rebalance_mode == PROXY_REBALANCE:
        return True
    return shared.share_queue_num is not None and member.asks_broker(state.settings)


def _popped(
    state: GroupView,
    member: Member,
    shared: SharedTopic,
    client_ids: list[str],
    strategy: AllocationStrategy,
) -> Sequence[MessageQueue] | None:
    """Return the queues one member pops of a topic; None when it gets no answer."""
    if not shared.queues:
        return None
    if member.rebalance_mode == PROXY_REBALANCE:
        if state.settings.ordered:
            return shared.queues
        return [queue._replace(queue_id=WHOLE_BROKER) for queue in shared.queues]
    if strategy.name not in BROKER_STRATEGIES:
        return None
    assert shared.share_queue_num is not None
    try:
        return allocate_for_pop(
            strategy, member.client_id, shared.queues, client_ids, shared.share_queue_num
        )
    except AllocationError:
        return None


def _share(
    state: GroupView,
    member: Member,
    topic: str,
    queues: Sequence[MessageQueue],
    client_ids: Mapping[str, list[str]],
    strategy: AllocationStrategy,
    doubts: Doubts,
) -> Sequence[MessageQueue] | None:
    """One member's share of one topic; None when the pass leaves the topic as it is.

    A client whose strategies answer an empty argument with nothing lets go of the topic. Where it
    is not known in which order a client sorts, it has what it gets in either.
    """
    profile = member.profile
    without: Sequence[MessageQueue] | None = [] if profile.no_queue == DROP else None
    if not member.rule_known:
        return []
    if member.message_model == BROADCASTING:
        return queues or without
    if strategy.name not in BROKER_STRATEGIES and member.asks_broker(state.settings):
        return None
    if strategy.name == CONFIG_STRATEGY:
        # The list comes back whole for every topic; the other topics' passes take their own part.
        listed = strategy.allocate(member.client_id, queues, client_ids[profile.order])
        return [queue for queue in listed if queue.topic == topic]
    if not queues:
        return without
    given = sorted(queues) if profile.order == BYTES else queues, client_ids[profile.order]
    try:
        share = strategy.allocate(member.client_id, *given)
        if "order" in profile.read and given != (list(queues), client_ids[UTF16]):
            as_java = strategy.allocate(member.client_id, queues, client_ids[UTF16])
            share = doubts.between(share, as_java)
    except AllocationError as error:
        return without if error.java_class == EMPTY_ARGUMENT else None
    # the pass of another topic drops what it does not name itself
    return share if strategy.keeps_to_topic else [q for q in share if q.topic == topic]
