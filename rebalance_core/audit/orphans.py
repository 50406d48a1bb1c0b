"""What holds at the end, since when, and whether for longer than a transient may."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, TypeVar

from rebalance_core.audit.case import PERSISTENT_MS, GroupCase, known_topics, listed
from rebalance_core.audit.dumps import number, queue_of, seen_ms
from rebalance_core.audit.subscriptions import stated_strategies, strategy_is_known
from rebalance_core.model.events import CONSUMER_JOIN, CONSUMER_LEAVE, CONSUMER_LOST, OBSERVED
from rebalance_core.model.group_settings import BROADCASTING
from rebalance_core.model.queue import MessageQueue, is_retry_topic, is_system_topic
from rebalance_core.model.times import utc
from rebalance_core.model.verdicts import FROZEN
from rebalance_core.protocol.members import ROUTE_MS

if TYPE_CHECKING:
    from rebalance_core.contracts.row_parts import Stretch
    from rebalance_core.contracts.rows import (
        ClusterEventsRow,
        EpochsRow,
        MembershipsRow,
        OwnershipRow,
    )

MEMBERS_CHANGE = {CONSUMER_JOIN, CONSUMER_LEAVE, CONSUMER_LOST}
Value = TypeVar("Value", bound=Hashable)
Stretched = TypeVar("Stretched", bound="Stretch")


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of a group's epochs; ``last_ms`` None: it holds at the end."""

    epoch: int
    first_ms: int
    last_ms: int | None


def span_of(row: Stretch) -> Span:
    """The stretch of a row of ownership, memberships or consumer_load."""
    return Span(row["from_epoch"], row["from_ms"], row["to_ms"])


def has_settled(case: GroupCase, epoch: int, topic: str | None = None) -> bool:
    """True if what this epoch brought has settled before the end."""
    settled = case.settled_by.get(epoch, 0)
    if topic is not None and is_retry_topic(topic):
        settled += ROUTE_MS
    return case.run.end_ms > settled


def is_long(case: GroupCase, span: Span) -> bool:
    """True if the stretch lasts longer than any transient."""
    last_ms = case.run.end_ms if span.last_ms is None else span.last_ms
    return last_ms - max(span.first_ms, case.run.start_ms) > PERSISTENT_MS


def is_persistent(case: GroupCase, span: Span) -> bool:
    """True if it holds at the end beyond the window of its cause, or held for long before."""
    if span.last_ms is None:
        return has_settled(case, span.epoch)
    return is_long(case, span)


def is_rolling(case: GroupCase, span: Span) -> bool:
    """True if the stretch is over and members came or went all the time: a rolling change."""
    if span.last_ms is None:
        return False
    moments = [
        row["from_ms"]
        for row in case.epochs
        if span.first_ms <= row["from_ms"] <= span.last_ms and MEMBERS_CHANGE & set(row["causes"])
    ]
    steps = pairwise([span.first_ms, *moments, span.last_ms])
    return all(after - before <= PERSISTENT_MS for before, after in steps)


def spans_where(
    rows: Iterable[Stretched],
    value: Callable[[Stretched], Value],
    holds: Callable[[Counter[Value]], bool],
) -> Iterator[Span]:
    """The stretches of epochs in which ``holds`` is true of how often each value is there."""
    changes: dict[int, list[tuple[int, Value, int]]] = {}
    for row in rows:
        one = value(row)
        changes.setdefault(row["from_epoch"], []).append((1, one, row["from_ms"]))
        if row["to_epoch"] is not None and row["to_ms"] is not None:
            changes.setdefault(row["to_epoch"], []).append((-1, one, row["to_ms"]))
    counts: Counter[Value] = Counter()
    open_since: tuple[int, int] | None = None
    for epoch in sorted(changes):
        for step, one, _ in changes[epoch]:
            counts[one] += step
            if not counts[one]:
                del counts[one]
        at_ms = changes[epoch][0][2]
        if holds(counts) and open_since is None:
            open_since = (epoch, at_ms)
        elif not holds(counts) and open_since is not None:
            yield Span(*open_since, at_ms)
            open_since = None
    if open_since is not None:
        yield Span(*open_since, None)


def mixed_spans(
    rows: Iterable[Stretched], value: Callable[[Stretched], Hashable]
) -> Iterator[Span]:
    """The stretches in which the rows that are there do not all have the same value."""
    return spans_where(rows, value, lambda counts: len(counts) > 1)


def rows_in_epoch(rows: Iterable[Stretched], epoch: int | None) -> list[Stretched]:
    """The rows that hold in this epoch; None: at the end."""
    if epoch is None:
        return [row for row in rows if row["to_epoch"] is None]
    return [
        row
        for row in rows
        if row["from_epoch"] <= epoch and (row["to_epoch"] is None or epoch < row["to_epoch"])
    ]


def subscribers(case: GroupCase, topic: str) -> list[MembershipsRow]:
    """Processes that are members at the end and subscribe the topic; its own retry topic counts."""
    if is_retry_topic(topic):
        return case.members
    return [row for row in case.members if topic in known_topics(row)]


def suspended_clients(case: GroupCase) -> set[str]:
    """Client ids that were suspended at some time: they hold queues and read nothing."""
    return {row["client_id"] for row in case.tables["memberships"] if row["suspended"]}


def is_broadcasting(case: GroupCase) -> bool:
    """True if the members at the end, or else the group's settings, say BROADCASTING."""
    models = {row["message_model"] for row in case.members}
    if models:
        return models == {BROADCASTING}
    return bool(case.settings.get("message_model") == BROADCASTING)


def offline_ms(case: GroupCase, first_ms: int, last_ms: int) -> int:
    """Return how long of this time the group had no member."""
    spent = 0
    for row in case.offline:
        until = case.run.end_ms if row["to_ms"] is None else row["to_ms"]
        spent += max(0, min(last_ms, until) - max(first_ms, row["from_ms"]))
    return spent


# How many messages stand in queues, and how many of them a group has not read.


class Offsets:
    """The newest offsets known of each queue.

    Attributes:
        ends: queue -> (minimum, maximum offset).
        commits: queue -> the committed offset; local stores of BROADCASTING left out.
        committed_ms: queue -> when it was seen.
    """

    def __init__(self, case: GroupCase) -> None:
        self.ends: dict[MessageQueue, tuple[int, int]] = {}
        self.commits: dict[MessageQueue, int] = {}
        self.committed_ms: dict[MessageQueue, int] = {}
        self._stores = case.run.offsets_ms
        self._none = {queue_of(fact) for fact in case.facts["NOTHING_COMMITTED"]}
        for row in sorted(case.tables["queue_offsets"], key=seen_ms):
            self.ends[queue_of(row)] = (row["min_offset"], row["max_offset"])
        for commit in sorted(case.tables["committed_offsets"], key=seen_ms):
            self.commits[queue_of(commit)] = commit["committed_offset"]
            self.committed_ms[queue_of(commit)] = commit["observed_ms"]

    def behind(self, queues: Iterable[MessageQueue]) -> int | None:
        """Messages of these queues after the commit, else after the minimum; None: unknown."""
        known = [queue for queue in queues if queue in self.ends]
        if not known:
            return None
        return sum(self.lag(queue) for queue in known)

    def lag(self, queue: MessageQueue) -> int:
        """Messages of one queue that the group has not read; 0 where its end is unknown."""
        if queue not in self.ends:
            return 0
        low, high = self.ends[queue]
        return max(0, high - max(low, self.commits.get(queue, low)))

    def committed(self, queues: Iterable[MessageQueue]) -> str:
        """Return how many of these queues have a commit: all, some or none; unknown: no store
        tells.
        """
        queues = list(queues)
        having = [queue for queue in queues if queue in self.commits]
        if len(having) == len(queues):
            return "all"
        stores = self._stores
        untold = [queue for queue in queues if queue not in self._none]
        if stores is not None and any(queue.broker_name not in stores for queue in untold):
            return "unknown"
        return "some" if having else "none"

    def stored(self, queues: Iterable[MessageQueue]) -> int | None:
        """Messages that stand in these queues; None: unknown."""
        known = [self.ends[queue] for queue in queues if queue in self.ends]
        return sum(high - low for low, high in known) if known else None


def backlog(case: GroupCase) -> dict[MessageQueue, int]:
    """Messages after the commit of each queue that has some.

    Where ``consumerProgress`` is newer than any look at a queue's end, it tells the difference.
    """
    offsets = Offsets(case)
    behind = {queue: offsets.lag(queue) for queue in offsets.commits}
    ended_ms: dict[MessageQueue, int] = {}
    for row in case.tables["queue_offsets"]:
        ended_ms[queue_of(row)] = max(seen_ms(row), ended_ms.get(queue_of(row), 0))
    for fact in case.facts["QUEUE_PROGRESS"]:
        queue = queue_of(fact)
        newer = fact["first_ms"] > ended_ms.get(queue, 0)
        if newer and fact["details"].get("names_cut") != "true":
            high = number(fact["details"].get("broker_offset"), 0)
            behind[queue] = high - number(fact["details"].get("consumer_offset"), high)
    return {
        queue: lag for queue, lag in behind.items() if lag > 0 and not is_system_topic(queue.topic)
    }


def messages(count: int | None) -> str:
    """A number of messages in words.

    >>> messages(None), messages(1)
    ('an unknown number of messages', '1 message')
    """
    if count is None:
        return "an unknown number of messages"
    return f"{count} message" + ("" if count == 1 else "s")


# Which logged event explains what is seen at some time.

SEEN_BEFORE_LOGGED_MS = 3_000
"""Server logs have seconds, and a client's first pass may come before its join is logged."""


def cause_before(case: GroupCase, at_ms: int, within_ms: int = PERSISTENT_MS) -> str | None:
    """The newest event of the group in the time before, in words; None if none is logged."""
    for epoch in reversed(case.epochs):
        if epoch["from_ms"] <= at_ms + SEEN_BEFORE_LOGGED_MS:
            if at_ms - epoch["from_ms"] > within_ms:
                return None
            if not is_initial(case, epoch):
                return cause_text(case, epoch)
    return None


def window_around(case: GroupCase, at_ms: int, after_ms: int = 0, before_ms: int = 0) -> str | None:
    """The event in whose window this time lies, the window made longer at both ends."""
    for epoch in case.epochs:
        begins = epoch["from_ms"] - before_ms - case.run.coverage.clock_error_ms
        within = begins <= at_ms <= case.settled_by[epoch["epoch"]] + after_ms
        if within and not is_initial(case, epoch):
            return cause_text(case, epoch)
    return None


def explained(case: GroupCase, first_ms: int, last_ms: int) -> str | None:
    """The event that explains a statement made from the first to the last time.

    Both must lie within `PERSISTENT_MS` of a logged event.
    """
    first, last = cause_before(case, first_ms), cause_before(case, last_ms)
    return last if first and last else None


def is_initial(case: GroupCase, epoch: EpochsRow) -> bool:
    """True if the epoch only says what was there before the log began: no cause of anything."""
    rows = _events_at(case, epoch["from_ms"])
    return bool(rows) and all(row.get("detail") == OBSERVED for row in rows)


def cause_text(case: GroupCase, epoch: EpochsRow) -> str:
    """The causes of an epoch with who and when."""
    who = {row["client_id"] for row in _events_at(case, epoch["from_ms"]) if row.get("client_id")}
    of_whom = f" of {listed(sorted(who), 3)}" if who else ""
    return f"{listed(epoch['causes'])}{of_whom} at {utc(epoch['from_ms'])}"


def _events_at(case: GroupCase, at_ms: int) -> list[ClusterEventsRow]:
    return [row for row in case.tables["cluster_events"] if row["event_ms"] == at_ms]


# Queues without an owner at the end, since when, and why.


def orphans(case: GroupCase) -> list[OwnershipRow]:
    """Queues without an owner at the end, past their window, of topics that a member subscribes.

    None where it is not known how the members divide.
    """
    if is_broadcasting(case) or not strategy_is_known(case):
        return []
    asked = {topic: bool(subscribers(case, topic)) for topic in {r["topic"] for r in case.owned}}
    return [
        row
        for row in case.owned
        if row["client_id"] is None
        and asked[row["topic"]]
        and has_settled(case, came_online(case, span_of(row)), row["topic"])
    ]


def came_online(case: GroupCase, span: Span) -> int:
    """The first epoch of the stretch from which on the group has members without a break."""
    epoch = span.epoch
    for row in case.offline:
        epoch = max(epoch, row["epoch"] + 1)
    return epoch


def reason(case: GroupCase, topic: str) -> str | None:
    """Return why the members' allocation leaves queues without an owner, where the members show
    it.
    """
    members = case.members
    ids = [row["client_id"] for row in members]
    if len({*map(stated_strategies(case), members)}) > 1:
        return "members use different strategies"
    if len({row["strategy"] for row in members}) > 1:
        return "clients of different languages do not divide alike"
    known = [row for row in members if row["subscriptions"] is not None]
    if len(subscribers(case, topic)) < len(known):
        return "a member that counts does not subscribe the topic"
    if len(ids) > len(set(ids)):
        return "a client id stands twice in the member list"
    if case.last_epoch is not None and case.last_epoch["status"] == FROZEN:
        return "the allocation failed (FROZEN)"
    if any(row["suspended"] for row in members):
        return "a suspended member does not take its share"
    return None
