"""The clients that must hold or reach a topic's queues in an epoch, from `replay.settle` on a
ledger's lists.

They result from a pass by each member, which depends on its process's previous queues. If no
process of the epoch can have kept a queue, earlier holdings do not matter. Otherwise, the rows of
the previous epoch show them (``queue_states`` identifies which of several processes with the same
id). They do not show whether a process pulled or popped a shared topic; in that case, the passes
are rerun from an epoch in which no process kept a queue.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

from rebalance_core.explain.view import (
    Entries,
    GroupRows,
    ProcessKey,
    View,
    key_of,
    subscribes,
    view_of,
)
from rebalance_core.model.client_profile import BYTES, UTF16
from rebalance_core.model.clients import profile_of_row, rules_version
from rebalance_core.model.errors import AllocationError, UsageError
from rebalance_core.model.group_settings import (
    BROADCASTING,
    BROKER_STRATEGIES,
    LITE_PULL,
    PROXY_REBALANCE,
    PUSH,
    GroupSettings,
)
from rebalance_core.model.queue import MessageQueue
from rebalance_core.model.verdicts import FROZEN
from rebalance_core.replay.group_view import GroupView
from rebalance_core.replay.member import Member
from rebalance_core.replay.settle import Settled, SharedHoldings, settle
from rebalance_core.replay.shared_topics import SharedTopic
from rebalance_core.replay.topic_shares import CONFIG_STRATEGY, pops_topic, strategy_key
from rebalance_core.strategies import AllocationStrategy, parse_strategy
from rebalance_core.strategies.formula import Formula, Question
from rebalance_core.strategies.pop import WHOLE_BROKER, Pop

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import MembershipsRow

COMPUTED, BROADCAST, MAX_LISTED = "COMPUTED", "BROADCASTING", "CONFIG"
POP, PROXY, PROXY_FIFO = "POP", "PROXY", "PROXY_FIFO"
SUSPENDED, NO_QUEUE, THROWS, BROKER_MODE = "SUSPENDED", "NO_READABLE_QUEUE", "THROWS", "BROKER_MODE"
NOT_SUBSCRIBED = "NOT_SUBSCRIBED"
OTHER = "OTHER_STRATEGY"
"""A strategy that RocketMQ does not have, so nothing is recomputed."""
KEEPING = (SUSPENDED, NO_QUEUE, THROWS, BROKER_MODE)
"""The ways in which a process keeps queues that it held."""
PASSING = (COMPUTED, MAX_LISTED, BROADCAST)
NOTHING = Settled({}, frozenset())

_IN_ORDER = GroupSettings(consumer_type=PUSH, ordered=True)
_ASKING = GroupSettings(consumer_type=PUSH, ordered=False)
_NEITHER = GroupSettings(consumer_type=LITE_PULL, ordered=False)


def _parsed(text: str, version: str) -> AllocationStrategy | None:
    try:
        return parse_strategy(text, version=version)
    except UsageError:
        return None


def strategy_of(member: MembershipsRow) -> AllocationStrategy | None:
    """Return a process's strategy, or None if its text names neither RocketMQ's nor a plugin."""
    version = rules_version(member["language"], member["version"])
    return _parsed(member["strategy"], version)


@dataclass(frozen=True)
class _UnknownStrategy(AllocationStrategy):
    """A strategy that RocketMQ does not have, so that its allocation is unknown.

    Attributes:
        text: the strategy, as spelled in the ledger.
    """

    text: str

    @property
    def name(self) -> str:
        """Return the text."""
        return self.text

    def allocate(
        self, client_id: str, queues: Sequence[MessageQueue], client_ids: Sequence[str]
    ) -> list[MessageQueue]:
        """Raise `AllocationError`."""
        raise AllocationError(f"unknown strategy {self.text}", "")


@dataclass(frozen=True)
class Settlement:
    """A topic in an epoch, settled anew.

    Attributes:
        view: the epoch.
        topic: the topic.
        group: the topic as members see it.
        now: the result of the members' passes; None if the ledger lacks rows for queues that they
            could read.
        strategies: the strategies of the members.
    """

    view: View
    topic: str
    group: GroupView
    now: Settled | None
    strategies: Mapping[tuple[str, str], AllocationStrategy]
    _thrown: dict[tuple[AllocationStrategy, str], dict[str, str]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    @property
    def known(self) -> bool:
        """Return True if the ledger shows which queues could be read."""
        return self.now is not None

    @property
    def shared(self) -> SharedTopic | None:
        """The topic as members share it, or None if they do not."""
        return self.group.shared.get(self.topic)

    @property
    def queues(self) -> tuple[MessageQueue, ...]:
        """The mqAll or, if unknown, all queues that may be in it."""
        if self.shared is not None:
            return self.shared.queues
        return tuple(self.group.readable[self.topic])

    @cached_property
    def _readable(self) -> frozenset[MessageQueue]:
        return frozenset(self.queues)

    def can_read(self, queue: MessageQueue) -> bool:
        """Return True if the queue is in mqAll or, for a whole broker, if one of its queues is."""
        if queue.queue_id == WHOLE_BROKER:
            return any(other.broker_name == queue.broker_name for other in self.queues)
        return queue in self._readable

    @cached_property
    def members(self) -> list[tuple[MembershipsRow, Member]]:
        """The rows of the processes, each with its input to `replay.settle`."""
        return [(row, self.group.members[key_of(row)]) for row in self.view.members]

    @cached_property
    def _outcomes(self) -> dict[ProcessKey, str]:
        return {key_of(row): self._outcome(row, member) for row, member in self.members}

    def outcome(self, row: MembershipsRow) -> str:
        """Return the effect of a pass of the process on the topic: one of the constants above."""
        return self._outcomes[key_of(row)]

    def _outcome(self, row: MembershipsRow, member: Member) -> str:
        if member.suspended:
            return SUSPENDED
        if not member.subscriptions:
            return NOT_SUBSCRIBED
        proxied = member.rebalance_mode == PROXY_REBALANCE
        if self.shared is not None and proxied:
            in_order = PROXY_FIFO if self.group.settings.ordered else PROXY
            return in_order if self.queues else NO_QUEUE
        if member.message_model == BROADCASTING:
            return BROADCAST if self.queues else NO_QUEUE
        name = self._strategy(member).name
        if name not in BROKER_STRATEGIES and member.asks_broker(self.group.settings):
            return BROKER_MODE
        if strategy_of(row) is None:
            return OTHER
        if name == CONFIG_STRATEGY:
            return MAX_LISTED
        if not self.queues:
            return NO_QUEUE
        pops = self.shared is not None and pops_topic(self.group, member, self.shared)
        if self.thrown(row):
            return THROWS
        return POP if pops else COMPUTED

    def thrown(self, row: MembershipsRow) -> str:
        """Return the exception that a process's strategy throws; empty if it does not throw."""
        member = self.group.members[key_of(row)]
        strategy, order = self._strategy(member), member.profile.order
        shared = self.shared
        number = None if shared is None else shared.share_queue_num
        if shared is not None and number is not None and pops_topic(self.group, member, shared):
            strategy, order = Pop(strategy, number), UTF16
        if (strategy, order) not in self._thrown:
            self._thrown[strategy, order] = _errors(strategy, *self._lists(order))
        return self._thrown[strategy, order].get(member.client_id, "")

    def _strategy(self, member: Member) -> AllocationStrategy:
        return self.strategies[strategy_key(member)]

    @cached_property
    def _entries(self) -> dict[ProcessKey, Entries]:
        now = NOTHING if self.now is None else self.now
        if self.shared is None:  # queues that a process popped and keeps are not owned
            now = replace(now, taken={})
        return {key: _had(now, key, self.topic) for key in self.view.keys}

    def entries(self, row: MembershipsRow) -> Entries:
        """Return the process's queues in the topic, as answers name them; empty if unknown."""
        return self._entries[key_of(row)]

    def takes(self, row: MembershipsRow, queue: MessageQueue) -> bool:
        """Return True if a pass of the process takes the queue; False if it runs none."""
        return self.outcome(row) in (*PASSING, POP, PROXY, PROXY_FIFO) and self.names(
            self.entries(row), queue
        )

    def names(self, entries: Entries, queue: MessageQueue) -> bool:
        """Return True if the entries name the queue, or its broker if it is readable.

        For a whole broker, return True if they name any of its queues.
        """
        if queue.queue_id == WHOLE_BROKER:
            return any(entry.broker_name == queue.broker_name for entry in entries)
        whole = queue._replace(queue_id=WHOLE_BROKER)
        may_be_read = not self.known or self.can_read(queue)
        return queue in entries or (may_be_read and whole in entries)

    def lists(self, row: MembershipsRow) -> tuple[Sequence[MessageQueue], Sequence[str]]:
        """Return mqAll and cidAll in the process's order."""
        return self._lists(self.group.members[key_of(row)].profile.order)

    def _lists(self, order: str) -> tuple[Sequence[MessageQueue], Sequence[str]]:
        if order == BYTES:
            return sorted(self.queues), sorted(self.view.client_ids)
        return self.queues, self.view.client_ids

    def formula(
        self,
        row: MembershipsRow,
        strategy: AllocationStrategy,
        queue: MessageQueue,
        client_id: str | None,
    ) -> Formula | None:
        """Return the formula of a process's strategy, or None if it throws for all; see
        `thrown`.
        """
        queues, client_ids = self.lists(row)
        try:
            formula = strategy.formula(Question(queue, queues, client_ids, client_id))
        except (AllocationError, ValueError):
            return None
        if formula.entry is None or client_ids == self.view.client_ids:
            return formula
        return replace(formula, entry=self.view.client_ids.index(client_ids[formula.entry]))

    def expected(self, queue: MessageQueue) -> dict[str, tuple[int, int]]:
        """Return client id -> minimum and maximum number of its processes that hold the queue;
        others hold none.

        The numbers differ only for processes whose strategy is not one of RocketMQ's.
        """
        sure, others = self._sure.get(queue, Counter()), self._others
        return {c: (sure[c], sure[c] + others[c]) for c in {*sure, *others}}

    @cached_property
    def _sure(self) -> dict[MessageQueue, Counter[str]]:
        """Return how many processes of each client id certainly hold a queue."""
        counts: dict[MessageQueue, Counter[str]] = {}
        for row, member in self.members:
            if self.outcome(row) != OTHER:
                for queue in self.entries(row):
                    counts.setdefault(queue, Counter())[member.client_id] += 1
        return counts

    @cached_property
    def _others(self) -> Counter[str]:
        """The processes of each id whose strategy is not computed."""
        return Counter(m.client_id for row, m in self.members if self.outcome(row) == OTHER)

    def agrees(self, queue: MessageQueue) -> bool:
        """Return True if the ledger's holders are as expected."""
        held, expected = self.view.held_by(queue), self.expected(queue)
        return all(expected.get(c, (0, 0))[1] >= n for c, n in held.items()) and all(
            low <= held[client_id] for client_id, (low, _) in expected.items()
        )

    @cached_property
    def differing(self) -> frozenset[str]:
        """The clients for which the ledger has unexpected rows for a shared topic."""
        rows, others = self.view.reach.get(self.topic, {}), set[str]()
        expected: dict[str, set[MessageQueue]] = {client_id: set() for client_id in rows}
        for row, member in self.members:
            if self.outcome(row) == OTHER:
                others.add(member.client_id)
            expected.setdefault(member.client_id, set()).update(self.entries(row))
        return frozenset(
            client_id
            for client_id, named in expected.items()
            if client_id not in others and rows.get(client_id, frozenset()) != _merged(named)
        )

    @property
    def fits(self) -> bool:
        """Whether all rows for the topic are as expected."""
        if self.shared is not None:
            return not self.differing
        return all(self.agrees(queue) for queue in self.view.queues.get(self.topic, ()))

    @property
    def unfit_brokers(self) -> frozenset[str]:
        """The brokers that have a queue with unexpected rows."""
        if self.shared is None:
            listed = self.view.queues.get(self.topic, ())
            return frozenset(q.broker_name for q in listed if not self.agrees(q))
        rows = self.view.reach.get(self.topic, {})
        return frozenset(
            queue.broker_name
            for row, member in self.members
            for queue in self.entries(row) - rows.get(member.client_id, frozenset())
        )


def _errors(
    strategy: AllocationStrategy, queues: Sequence[MessageQueue], client_ids: Sequence[str]
) -> dict[str, str]:
    """Return the error of each client whose allocation throws."""
    try:
        strategy.allocate_all(queues, client_ids)
    except AllocationError:
        pass  # for one client; the allocations of others may not throw
    else:
        return {}
    errors = {}
    for client_id in dict.fromkeys(client_ids):
        try:
            strategy.allocate(client_id, queues, client_ids)
        except AllocationError as error:
            errors[client_id] = str(error)
    return errors


class Settlements:
    """Settles the topics in a group's epochs anew.

    Args:
        rows: the group's ledger.
    """

    def __init__(self, rows: GroupRows) -> None:
        self._rows, self._settings = rows, _settings(rows)
        self._epochs = {row["epoch"]: row for row in rows.epochs}
        self._views: dict[int, View] = {}
        self._made: dict[tuple[int, str, GroupSettings], Settlement] = {}
        self._strategies: dict[tuple[str, str], AllocationStrategy] = {}

    def view(self, epoch: int) -> View | None:
        """Return the view of an epoch, or None if the rows lack it."""
        row = self._epochs.get(epoch)
        if row is not None and epoch not in self._views:
            self._views[epoch] = view_of(self._rows, row)
        return self._views.get(epoch)

    def of(self, epoch: int, topic: str) -> Settlement:
        """Return the settlement of a topic in an epoch.

        If a group pops nothing, its ledger does not record whether its members query a broker, nor
        whether they consume in order; the first of these settings that reproduces the rows is used
        or, if none does, the likeliest.
        """
        first = self._settled(epoch, topic, self._settings[0])
        if not first.known or first.fits:
            return first
        others = (self._settled(epoch, topic, settings) for settings in self._settings[1:])
        return next((settlement for settlement in others if settlement.fits), first)

    def _view(self, epoch: int) -> View:
        view = self.view(epoch)
        assert view is not None
        return view

    def _settled(self, epoch: int, topic: str, settings: GroupSettings) -> Settlement:
        first = epoch
        while (first, topic, settings) not in self._made and self._needs_before(first, topic):
            first -= 1
        for number in range(first, epoch + 1):
            key = number, topic, settings
            if key not in self._made:
                before = self._made.get((number - 1, topic, settings))
                self._made[key] = self._settle(number, topic, settings, before)
        return self._made[epoch, topic, settings]

    def _needs_before(self, epoch: int, topic: str) -> bool:
        """Return whether the queues that processes bring into the epoch depend on the passes of
        earlier epochs.
        """
        view, before = self._view(epoch), self.view(epoch - 1)
        if before is None or not _may_keep(view) or before.readable(topic) is None:
            return False
        return any(r["topic"] == topic and r["epoch"] < epoch for r in self._rows.pop_metrics)

    def _settle(
        self, epoch: int, topic: str, settings: GroupSettings, earlier: Settlement | None
    ) -> Settlement:
        view = self._view(epoch)
        queues = view.readable(topic)
        if queues is None:
            group = _group_view(view, topic, tuple(view.queues.get(topic, ())), settings)
            return Settlement(view, topic, group, None, self._strategies_of(group))
        group = _group_view(view, topic, queues, settings)
        before = NOTHING
        if _may_keep(view):
            if self._needs_before(epoch, topic) and earlier is not None and earlier.now:
                before = earlier.now
            elif epoch > 0:
                had = self.view(epoch - 1)
                before = _as_rows_say(view if had is None else had, topic)
        settled = self._passed(view, topic, group, before)
        if settings.ordered and view.row["masterless_queues"] and not settled.fits:
            # Masters are missing; the ledger does not show whose, so no broker grants order locks
            # where rows lack queues.
            group = _group_view(view, topic, queues, settings, settled.unfit_brokers)
            settled = self._passed(view, topic, group, before)
        return settled

    def _passed(self, view: View, topic: str, group: GroupView, before: Settled) -> Settlement:
        strategies = self._strategies_of(group)
        now = settle(group, before.holdings, strategies, before.taken)
        return Settlement(view, topic, group, now, strategies)

    def _strategies_of(self, group: GroupView) -> Mapping[tuple[str, str], AllocationStrategy]:
        for text, version in map(strategy_key, group.members.values()):
            if (text, version) not in self._strategies:
                strategy = _parsed(text, version) or _UnknownStrategy(text)
                self._strategies[text, version] = strategy
        return self._strategies


def _settings(rows: GroupRows) -> tuple[GroupSettings, ...]:
    """Return the settings that the group may have, as far as they matter, likeliest first."""
    if any(row["share_queue_num"] is not None for row in rows.pop_metrics):
        return (_ASKING,)
    ordered = {row["ordered"] for row in rows.pop_metrics} - {None}
    if True in ordered:
        return _IN_ORDER, GroupSettings(consumer_type=LITE_PULL, ordered=True)
    return (_ASKING, _NEITHER) if ordered else (_IN_ORDER, _ASKING)


def _may_keep(view: View) -> bool:
    """Return True if any process may have kept queues from the previous epoch."""
    return (
        view.row["status"] == FROZEN
        or bool(view.row["masterless_queues"])
        or any(member["suspended"] for member in view.members)
        or any(profile_of_row(member).may_be_doubtful for member in view.members)
    )


def _group_view(
    view: View,
    topic: str,
    queues: tuple[MessageQueue, ...],
    settings: GroupSettings,
    lockless: frozenset[str] = frozenset(),
) -> GroupView:
    """Return the group as its members see it, with respect to one topic.

    Other topics without a readable queue may end a member's pass before it reaches this topic.
    """
    ending = [
        other_topic
        for other_topic, count in view.counts.items()
        if not count and other_topic not in view.shared
    ]
    members = {
        key: Member(
            client_id=row["client_id"],
            channel_id=key[1],
            subscriptions=frozenset(
                name
                for name in (topic, *ending)
                if subscribes(row, name)
                if name == topic or profile_of_row(row).ends_pass
            ),
            strategy=row["strategy"],
            version=row["version"],
            message_model=row["message_model"],
            consume_from_where="",
            rebalance_mode=row["rebalance_mode"],
            suspended=row["suspended"],
            language=row["language"],
            profile=profile_of_row(row),
        )
        for key, row in zip(view.keys, view.members, strict=True)
    }
    shared = view.shared.get(topic)
    if shared is None:
        readable = dict.fromkeys(ending, ()) | {topic: queues}
        return GroupView(settings, members, readable, {}, lockless)
    of_topic = SharedTopic(queues, shared["share_queue_num"])
    return GroupView(settings, members, {}, {topic: of_topic}, lockless)


def _as_rows_say(view: View, topic: str) -> Settled:
    """Return each process's queues in a topic in an epoch, according to the ledger's rows."""
    holdings: dict[ProcessKey, set[MessageQueue]] = {key: set() for key in view.keys}
    keys_of: dict[str, list[ProcessKey]] = {}
    rows_of = dict(zip(view.keys, view.members, strict=True))
    # Of several processes with one id, those that subscribe to the topic are the likelier holders.
    for key in sorted(view.keys, key=lambda key: not subscribes(rows_of[key], topic)):
        keys_of.setdefault(key[0], []).append(key)
    for queue in view.queues.get(topic, ()):
        state = view.states.get(queue)
        for client_id, count in view.holders[queue].items():
            keys = keys_of.get(client_id, [])
            if count < len(keys) and state is not None:
                keys = [key for key in keys if key[1] in state["channel_ids"]] or keys
            for key in keys[:count]:
                holdings[key].add(queue)
    taken = {
        key: _taken_by_rows(view.reach.get(topic, {}).get(key[0], frozenset())) for key in view.keys
    }
    return Settled({key: frozenset(held) for key, held in holdings.items()}, frozenset(), taken)


def _taken_by_rows(entries: Entries) -> SharedHoldings:
    whole = frozenset(queue for queue in entries if queue.queue_id == WHOLE_BROKER)
    return SharedHoldings(entries - whole, whole)


def _had(settled: Settled, key: ProcessKey, topic: str) -> Entries:
    taken = settled.taken.get(key, SharedHoldings())
    had = settled.holdings.get(key, frozenset()) | taken.pulled | taken.popped
    return frozenset(queue for queue in had if queue.topic == topic)


def _merged(named: set[MessageQueue]) -> Entries:
    """Return a client's entries, without those whose broker is listed as a whole."""
    return frozenset(q for q in named if q._replace(queue_id=WHOLE_BROKER) not in named - {q})
