"""Who holds what once every member has seen the current view: one pass of each member."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from rebalance_core.model.clients import BYTES, DROP, UTF16, parse_version
from rebalance_core.model.errors import AllocationError
from rebalance_core.model.group_settings import BROADCASTING, BROKER_STRATEGIES, PROXY_REBALANCE
from rebalance_core.model.queue import MessageQueue, is_retry_topic
from rebalance_core.protocol.members import locks_on_addition
from rebalance_core.replay.group_state import GroupView, Kind, Member, ProcessKey, SharedTopic
from rebalance_core.strategies import AllocationStrategy
from rebalance_core.strategies.pop import (
    WHOLE_BROKER,
    allocate_all_for_pop,
    allocate_for_pop,
    pops_whole_brokers,
)
from rebalance_core.strategies.spi import EMPTY_ARGUMENT, is_java_blank

CONFIG_STRATEGY = "CONFIG"

Holdings: TypeAlias = Mapping[ProcessKey, frozenset[MessageQueue]]
StrategyKey: TypeAlias = tuple[str, str]
NO_QUEUES: frozenset[MessageQueue] = frozenset()


class Held(dict[ProcessKey, frozenset[MessageQueue]]):
    """The queues of each process that has some; of any other, none."""

    def __missing__(self, key: ProcessKey) -> frozenset[MessageQueue]:
        """A process without an entry."""
        return NO_QUEUES


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
        holdings: queues of topics that are not shared; who has none may be missing.
        frozen_topics: those of which some member got no answer.
        taken: of shared topics; processes that take nothing may be missing.
        unsure: queues that no process is known to hold, and a member may hold whose subscriptions
            or rules are not known: they are not nobody's; and all that are doubtful.
        doubtful: queues that a process holds or not, by rules of its client that were only read.
    """

    holdings: Holdings
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

    A topic is divided once for all members that divide it alike, and those that had and get the
    same run one pass for all. Cost: O(members), and a pass of each that has or gets queues.

    Args:
        state: the group as its members see it now.
        before: what each process held until now; processes that are gone are ignored.
        strategies: one for the `strategy_key` of each member.
        taken_before: what each process took of shared topics until now.
        doubtful_before: what was doubtful until now.
    """
    divisions = _Divisions(state, strategies)
    earlier = _Before(before, taken_before or {}, doubtful_before or {})
    frozen: set[str] = set()
    left: dict[ProcessKey, Outcome] = {}
    for kind in state.kinds:
        left |= _passes(state, kind, earlier, divisions, frozen)
    holdings, taken = Held(), dict[ProcessKey, Taken]()
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
            taken[key] = Taken(now.pulled - alone, now.popped)
        if now.doubtful:
            doubtful[key] = now.doubtful
    unsure: set[MessageQueue] = set()
    for kind in state.kinds:
        if not kind.example.share_known:
            unsure.update(_may_hold(state, kind, divisions))
    unsure.difference_update(*holdings.values())
    unsure.update(*doubtful.values())
    return Settled(holdings, frozenset(frozen), taken, frozenset(unsure), doubtful)


class Outcome(NamedTuple):
    """What a pass surely leaves a process with, and the queues that it has or not."""

    pulled: frozenset[MessageQueue]
    popped: frozenset[MessageQueue]
    doubtful: frozenset[MessageQueue]


HAD_NOTHING = Outcome(NO_QUEUES, NO_QUEUES, NO_QUEUES)


class _Before:
    """What each process had before its pass."""

    def __init__(
        self, held: Holdings, taken: Mapping[ProcessKey, Taken], doubtful: Holdings
    ) -> None:
        self._held, self._taken, self._doubtful = held, taken, doubtful
        self.keys = held.keys() | taken.keys() | doubtful.keys()
        """Of those that may have had something."""

    def of(self, key: ProcessKey) -> Outcome:
        held, shared = self._held.get(key, NO_QUEUES), self._taken.get(key)
        may_hold = self._doubtful.get(key, NO_QUEUES)
        if shared is None:
            return Outcome(held, NO_QUEUES, may_hold)
        return Outcome(held | shared.pulled, shared.popped, may_hold)


def _passes(
    state: GroupView, kind: Kind, before: _Before, divisions: _Divisions, frozen: set[str]
) -> dict[ProcessKey, Outcome]:
    """What the passes of members of one kind leave them with; who is left with nothing may be
    missing.

    Topics without an answer are added to ``frozen``.
    """
    topics = state.topics_of(kind.example)
    divided = [divisions.of(kind, topic) for topic in topics]
    others = tuple(division.others for division in divided)
    named = frozenset[str]().union(*(division.named for division in divided))
    outcomes: dict[tuple[Outcome, tuple[Answer, ...]], Outcome] = {}

    def outcome(had: Outcome, answers: tuple[Answer, ...]) -> Outcome:
        if (had, answers) not in outcomes:
            asked = zip(topics, answers, strict=True)
            outcomes[had, answers] = _pass(state, kind.example, had, asked, frozen)
        return outcomes[had, answers]

    special = [key for key in kind.keys if key in before.keys or key[0] in named]
    left = {
        key: outcome(before.of(key), tuple([division.of(key[0]) for division in divided]))
        for key in special
    }
    if len(special) < len(kind.keys):
        of_others = outcome(HAD_NOTHING, others)
        if of_others != HAD_NOTHING:
            left |= {key: of_others for key in kind.keys if key not in left}
    return left


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


def _may_hold(state: GroupView, kind: Kind, divisions: _Divisions) -> Iterator[MessageQueue]:
    """Queues that members of unknown subscriptions may hold: their shares of every topic.

    Without a share of a topic they keep what they had of it, which is not known. One whose rules
    are not known may hold any queue of its topics.
    """
    member = kind.example
    for topic, queues in state.readable.items():
        if not member.rule_known:
            retry_read = is_retry_topic(topic) and "retry" in member.profile.read
            if member.subscribes(topic) or not member.subscriptions_known or retry_read:
                yield from queues
        elif topic != member.retry_topic:
            division = divisions.pulled(kind, topic, queues)
            client_ids = {client_id for client_id, _ in kind.keys}
            of_kind = division.named.keys() & client_ids
            answers = {division.of(client_id) for client_id in of_kind}
            if len(of_kind) < len(client_ids):
                answers.add(division.others)
            for answer in answers:
                doubts = Doubts(NO_QUEUES, NO_QUEUES)
                share = _known_share(answer, doubts)
                yield from queues if share is None or member.suspended else share
                yield from doubts.found


def _pass(
    state: GroupView,
    member: Member,
    had: Outcome,
    answers: Iterable[tuple[str, Answer]],
    frozen: set[str],
) -> Outcome:
    """Return what one member's pass leaves it with, by the answers for its topics, in order.

    Topics without an answer are added to ``frozen``.
    """
    pulled: set[MessageQueue] = set()
    popped: set[MessageQueue] = set()
    doubts = Doubts(had.pulled, had.doubtful)
    profile = member.profile
    for topic, answer in answers:
        shared = state.shared.get(topic)
        pops = shared is not None and pops_topic(state, member, shared)
        share = _known_share(answer, doubts)
        if not pops:
            share = _with_locks(state, member, share, had.pulled, doubts)
        if share is None and "no_queue" in profile.read:
            share = doubts.between((), or_as_before=topic)
            doubts.ended |= profile.ends_pass
        elif share is not None and doubts.ended:
            share = doubts.between(share, or_as_before=topic)
        if share is None:
            frozen.add(topic)
            pulled.update(queue for queue in had.pulled if queue.topic == topic)
            popped.update(queue for queue in had.popped if queue.topic == topic)
        else:
            (popped if pops else pulled).update(share)
    if member.suspended:  # it runs no pass, but everybody else goes on counting it
        now = had
    else:
        now = Outcome(frozenset(pulled), frozenset(popped), frozenset(doubts.found))
    return had if now == had else now  # what stays, as most does, is one object


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


# What members get of a topic when they ask for their shares.

Share: TypeAlias = Sequence[MessageQueue] | None
"""None: the pass leaves the topic as it is."""
Answer: TypeAlias = tuple[tuple[MessageQueue, ...] | None, ...]
"""A member's share; two, where it is not known in which order its client sorts."""
NO_SHARE: Answer = ((),)
NO_ANSWER: Answer = (None,)


def _known_share(answer: Answer, doubts: Doubts) -> Share:
    """What the member gets for sure."""
    if len(answer) == 1:
        return answer[0]
    return doubts.between(*(share or () for share in answer))


@dataclass(frozen=True, slots=True)
class Division:
    """One topic as members of one kind divide it.

    Attributes:
        others: The answer that they get, most of them.
        named: By client id, those of whom gets another one.
    """

    others: Answer
    named: Mapping[str, Answer] = field(default_factory=dict)

    def of(self, client_id: str) -> Answer:
        """The answer that a member gets."""
        return self.named.get(client_id, self.others)


class _Divisions:
    """What the members of a view get of its topics.

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

    def of(self, kind: Kind, topic: str) -> Division:
        """A topic as members of a kind pop or pull it."""
        shared = self._state.shared.get(topic)
        if shared is None:
            return self.pulled(kind, topic, self._state.readable[topic])
        if pops_topic(self._state, kind.example, shared):
            return self._popped(kind, shared)
        return self.pulled(kind, topic, shared.queues)

    def _popped(self, kind: Kind, shared: SharedTopic) -> Division:
        member = kind.example
        strategy = self._strategies[strategy_key(member)]
        if not shared.queues:
            return Division(NO_ANSWER)
        if member.rebalance_mode == PROXY_REBALANCE:
            if self._state.settings.ordered:
                return Division((shared.queues,))
            whole = (queue._replace(queue_id=WHOLE_BROKER) for queue in shared.queues)
            return Division((tuple(whole),))
        if strategy.name not in BROKER_STRATEGIES:
            return Division(NO_ANSWER)
        assert shared.share_queue_num is not None
        given = strategy, shared.queues, self._sorted(UTF16), shared.share_queue_num
        if pops_whole_brokers(shared.share_queue_num, len(self._sorted(UTF16))):
            return Division((tuple(allocate_for_pop(strategy, member.client_id, *given[1:])),))
        try:
            shares = allocate_all_for_pop(*given)
        except AllocationError:
            pass  # that of one member; others' may not
        else:
            return Division(NO_SHARE, {one: (tuple(share),) for one, share in shares.items()})

        def popped(client_id: str) -> Answer:
            try:
                return (tuple(allocate_for_pop(strategy, client_id, *given[1:])),)
            except AllocationError:
                return NO_ANSWER

        return Division(NO_SHARE, {client_id: popped(client_id) for client_id, _ in kind.keys})

    def pulled(self, kind: Kind, topic: str, queues: Sequence[MessageQueue]) -> Division:
        """A topic as members of a kind divide it by their strategy.

        Clients whose strategies answer an empty argument with nothing let go of the topic.
        """
        member, profile = kind.example, kind.example.profile
        strategy = self._strategies[strategy_key(member)]
        without: Answer = NO_SHARE if profile.no_queue == DROP else NO_ANSWER
        if not member.rule_known:
            return Division(NO_SHARE)
        if member.message_model == BROADCASTING:
            return Division((tuple(queues),) if queues else without)
        if strategy.name not in BROKER_STRATEGIES and member.asks_broker(self._state.settings):
            return Division(NO_ANSWER)
        if strategy.name == CONFIG_STRATEGY:
            # The list comes back whole for every topic; the other topics' passes take their own
            # part.
            listed = strategy.allocate(member.client_id, queues, self._sorted(profile.order))
            return Division((tuple(queue for queue in listed if queue.topic == topic),))
        return self._divided(kind, topic, queues, without) if queues else Division(without)

    def _divided(
        self, kind: Kind, topic: str, queues: Sequence[MessageQueue], without: Answer
    ) -> Division:
        """A topic with queues; ``without``: the answer to an empty argument."""
        profile, strategy = kind.example.profile, self._strategies[strategy_key(kind.example)]
        orders = [profile.order]
        if "order" in profile.read and not self._sort_alike(queues, profile.order):
            orders.append(UTF16)

        def own(shares: Iterable[list[MessageQueue]]) -> Answer:
            # the pass of another topic drops what it does not name itself
            given = (
                tuple(share if strategy.keeps_to_topic else [q for q in share if q.topic == topic])
                for share in shares
            )
            return tuple(dict.fromkeys(given))

        of_all = [self._shares_of_all(kind.example, topic, queues, order) for order in orders]
        given = [shares for shares in of_all if not isinstance(shares, AllocationError)]
        thrown = [error for error in of_all if isinstance(error, AllocationError)]
        if not thrown:
            having = {client_id for shares in given for client_id, share in shares.items() if share}
            return Division(
                NO_SHARE,
                {client_id: own(shares[client_id] for shares in given) for client_id in having},
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
            return Division(of_error(thrown[0]))
        return Division(NO_SHARE, {client_id: asked(client_id) for client_id, _ in kind.keys})

    def _shares_of_all(
        self, member: Member, topic: str, queues: Sequence[MessageQueue], order: str
    ) -> dict[str, list[MessageQueue]] | AllocationError:
        """The shares of all members by one member's strategy, or what some member's throws."""
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
        """True if clients that sort in an order have the lists that Java's have."""
        return _sorted(queues, order) == list(queues) and self._sorted(order) == self._sorted(UTF16)


def _sorted(queues: Sequence[MessageQueue], order: str) -> Sequence[MessageQueue]:
    """Queues that are in Java's order, in another one."""
    return sorted(queues) if order == BYTES else queues
