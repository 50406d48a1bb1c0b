"""Messages that are redelivered again and again, as their retries show."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from rebalance_core.audit.dumps import number, seen_ms
from rebalance_core.audit.group_snapshot import (
    Finding,
    GroupSnapshot,
    Rule,
    known_topics,
    listed,
    plural,
)
from rebalance_core.audit.offsets import messages
from rebalance_core.audit.topic_readers import all_proxied
from rebalance_core.audit.unknowns import TIMEOUTS_UNLOGGED
from rebalance_core.model.queue import pop_retry_topics
from rebalance_core.model.times import MINUTE_MS, utc
from rebalance_core.model.verdicts import INFO, WARNING

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import (
        CommittedOffsetsRow,
        PopCountsFact,
    )


_Name: TypeAlias = Literal["acknowledgements", "put_back", "given", "given_again", "in_flight"]
"""A count of POP_COUNTS."""


MANY_TIMES = 3
"""Retries for each message read; a restart or crash causes one."""


FEWEST = 20
"""With fewer retries, a few failed messages would be a finding."""


UNACKNOWLEDGED = "metrics of brokers count no acknowledgement"
"""The reason if the newest metrics of each broker that counts the group's pops show none."""


INVISIBLE_ENDS = "the invisible time ends before consumption does"
"""The reason if INVISIBLE_TIME_TOO_SHORT is the cause, whose finding is the one to act on."""


COPIES_APART_MS = MINUTE_MS
"""Two copies of the offsets this far apart show whether it continues."""


class Span(NamedTuple):
    """The times between which copies show retries; each broker's stores are copied at different
    times.

    Attributes:
        first_ms, last_ms: the earliest and the latest copy of those with two; equal if there is
            none.
        apart_ms: the shortest time between the two copies of a queue, or of a broker; 0: one that
            had retries has only one copy, so that its retries may go on.
    """

    first_ms: int = 0
    last_ms: int = 0
    apart_ms: int = 0

    @classmethod
    def of_pairs(cls, pairs: Iterable[tuple[int, int]]) -> Span:
        """Return the span of the oldest and newest copy of each that had retries, epoch ms."""
        pairs = list(pairs)
        compared = [(first, last) for first, last in pairs if first < last]
        if not compared:
            return cls()
        return cls(
            min(first for first, _ in compared),
            max(last for _, last in compared),
            min(last - first for first, last in pairs),
        )


@dataclass(frozen=True, slots=True)
class Repeats:
    """The number of redeliveries of a topic's messages, by commits or by brokers' metrics.

    Attributes:
        read: an upper bound on the messages that were read: those of the topic up to the group's
            commits; by metrics, those that may have been delivered again are part of it.
        again: retries that the group read since the retry topic was created, or brokers started.
        lately: retries between two copies of the offsets, or of the metrics.
        span: the times of these copies.
    """

    read: int
    again: int
    lately: int
    span: Span


@dataclass(frozen=True, slots=True)
class Counted:
    """What brokers count of the pops of a topic.

    Attributes:
        repeats: the redeliveries.
        acknowledged: the acknowledgements; a renewal of the invisible time writes one, too.
        brokers: those that count it.
        until_ms: the time of the earliest of their newest metrics.
    """

    repeats: Repeats
    acknowledged: int
    brokers: tuple[str, ...]
    until_ms: int


def find_repeats(group: GroupSnapshot) -> Iterator[Finding]:
    """Yield a finding for each topic whose messages came `MANY_TIMES` on average."""
    topics = {topic for row in group.tables["memberships"] for topic in known_topics(row)}
    gone = [row["to_ms"] for row in group.tables["memberships"] if row["to_ms"] is not None]
    gone_ms = None if group.members else max(gone, default=None)
    for topic in sorted(topics):
        counted = counted_repeats(group, topic)
        found = repeats_of(group, topic)
        if found is None and counted is not None:
            found = counted.repeats
        if found is None or found.again < max(FEWEST, MANY_TIMES * found.read):
            continue
        if found.span.apart_ms >= COPIES_APART_MS and not found.lately:
            continue  # it is over, and commits of retries do not show when it began
        yield _repeats_finding(group, topic, found, counted, gone_ms)


def repeats_of(group: GroupSnapshot, topic: str) -> Repeats | None:
    """Return the repeats of a topic; None if the group has not read both it and a retry topic."""
    names = pop_retry_topics(group.consumer_group, topic)
    rows = [row for row in group.tables["committed_offsets"] if row["topic"] in (topic, *names)]
    newest, oldest = _commits(rows, newest=True), _commits(rows, newest=False)
    read = sum(row["committed_offset"] for row in newest.values() if row["topic"] == topic)
    retried = {
        queue: row
        for queue, row in newest.items()
        if row["topic"] in names and row["committed_offset"]
    }
    if not retried or all(name != topic for name, *_ in newest):
        return None
    again = sum(row["committed_offset"] for row in retried.values())
    before = sum(oldest[queue]["committed_offset"] for queue in retried)
    span = Span.of_pairs((seen_ms(oldest[queue]), seen_ms(row)) for queue, row in retried.items())
    return Repeats(read, again, again - before, span)


def counted_repeats(group: GroupSnapshot, topic: str) -> Counted | None:
    """Return the repeats of a topic from each broker's newest metrics; None if any lack a count.

    A message that was redelivered has been acknowledged, is popped, or waits in the retry topic: at
    most this many have arrived, even if a broker has restarted since it first delivered them.
    """
    rows = [row for row in group.facts["POP_COUNTS"] if row["topic"] == topic]
    ordered = sorted(rows, key=lambda row: row["first_ms"])
    newest = {row["broker_name"]: row for row in ordered}
    counting = [row for row in ordered if _count(row, "given_again") >= 0]
    oldest = {row["broker_name"]: row for row in reversed(counting)}
    acknowledged = _total(newest, "acknowledgements")
    given, again = _total(newest, "given"), _total(newest, "given_again")
    put_back, popped = _total(newest, "put_back"), _total(newest, "in_flight")
    counts = (acknowledged, given, again, put_back, popped)
    if min(counts) < 0:
        return None
    went = {broker: _count(row, "given_again") for broker, row in oldest.items()}
    lately = sum(
        now - went[broker] if went[broker] <= now else now
        for broker, now in ((broker, _count(row, "given_again")) for broker, row in newest.items())
    )
    came = acknowledged + popped + max(0, put_back - again)
    span = Span.of_pairs(
        (oldest[broker]["first_ms"], row["first_ms"])
        for broker, row in newest.items()
        if _count(row, "given_again")
    )
    repeats = Repeats(max(given, came), again, lately, span)
    until_ms = min(row["first_ms"] for row in newest.values())
    return Counted(repeats, acknowledged, tuple(sorted(newest)), until_ms)


def _count(row: PopCountsFact, name: _Name) -> int:
    """Return a count from the metrics; -1 if they do not show it."""
    return number(row["details"].get(name))


def _total(rows: Mapping[str, PopCountsFact], name: _Name) -> int:
    """Return the sum of all brokers' counts; -1 if one of them does not show it."""
    counts = [_count(row, name) for row in rows.values()]
    return -1 if min(counts, default=-1) < 0 else sum(counts)


def _commits(
    rows: Iterable[CommittedOffsetsRow], *, newest: bool
) -> dict[tuple[str, str, int], CommittedOffsetsRow]:
    """Return the newest or the oldest commit of each queue."""
    ordered = sorted(rows, key=seen_ms, reverse=not newest)
    return {(row["topic"], row["broker_name"], row["queue_id"]): row for row in ordered}


def _repeats_finding(
    group: GroupSnapshot,
    topic: str,
    found: Repeats,
    counted: Counted | None,
    gone_ms: int | None,
) -> Finding:
    expired = [fact for fact in group.facts["POP_TIMED_OUT"] if fact["topic"] == topic]
    reason = (
        INVISIBLE_ENDS
        if expired
        else UNACKNOWLEDGED
        if counted is not None and counted.acknowledged == 0
        else "not in these files: the listener fails, or messages are acknowledged late or never"
    )
    span = found.span
    compared = span.last_ms > span.first_ms and (found.lately or span.apart_ms)
    least = "" if span.apart_ms else "at least "
    lately = (
        f", {least}{found.lately:,} of them from {utc(span.first_ms)} to {utc(span.last_ms)}"
        if compared
        else ""
    )
    acknowledged = ""
    if counted is not None:
        start = "its start" if len(counted.brokers) == 1 else "their start"
        came = plural(counted.acknowledged, "acknowledgement")
        came += ", renewals included," if counted.acknowledged else ""
        acknowledged = (
            f"; {listed(counted.brokers)} counted {came} from {start} to {utc(counted.until_ms)}"
        )
    are = "are" if gone_ms is None else "were"
    return Finding(
        f"Messages of {topic} {are} delivered again and again: the group read at most "
        f"{messages(found.read)} of the topic, and {found.again:,} retries{lately}"
        f"{acknowledged}.",
        {
            "read_at_most": str(found.read),
            "retries": str(found.again),
            **({"retries_lately": str(found.lately)} if compared else {}),
            **({} if counted is None else {"acknowledgements": str(counted.acknowledged)}),
            "reason": reason,
        },
        severity=INFO if expired else None,
        unknown=None if _timeouts_are_logged(group) else TIMEOUTS_UNLOGGED,
        topic=topic,
        last_ms=gone_ms,
        ended_by="" if gone_ms is None else "the group's last member left",
    )


def _timeouts_are_logged(group: GroupSnapshot) -> bool:
    """Return False if members log timeouts and no client log of the group was read.

    Members behind proxies do not log it: the proxy answers them.
    """
    at_brokers = not all_proxied(group.tables["memberships"])
    logged = any("rocketmq_client" in row["source"] for row in group.tables["observed_facts"])
    return logged or not at_brokers


REPEATS = Rule(
    "REVIVE_REPEATS",
    WARNING,
    "A group reads retries of a topic at least three times as often as the topic's messages: it "
    "does not acknowledge them within their invisible time, so the broker keeps delivering them "
    "until the retries are used up.",
    "committed_offsets of the topic and of its POP retry topic, or POP_COUNTS (metrics of the "
    "broker); POP_TIMED_OUT",
    "Acknowledge each message within its invisible time: raise invisibleDuration "
    "(popInvisibleTime) above the time that a whole batch takes, or receive fewer at once. If the "
    "listener keeps failing on the same messages, fix it; they end up in the dead-letter topic.",
    find_repeats,
    state=True,
)
