"""START_SKIPPED, START_REPLAYED, START_FAILED: where new owners began to read."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from rebalance_core.audit.dumps import by_topic, flag, queue_of
from rebalance_core.audit.group_snapshot import (
    Finding,
    GroupSnapshot,
    Rule,
    grouped,
    listed,
    plural,
    queue_names,
)
from rebalance_core.audit.logged_causes import is_initial
from rebalance_core.audit.offsets import messages
from rebalance_core.audit.outsiders import offsets_over_time
from rebalance_core.audit.recovery import ClientAnswers, Recovery, last_of
from rebalance_core.audit.refused_starts import RefusedStarts
from rebalance_core.audit.subjects import COMMITS, EVENTS
from rebalance_core.audit.subscriptions import is_broadcasting
from rebalance_core.audit.unknowns import QUEUES_BEFORE, QUEUES_CREATED
from rebalance_core.model import verdicts
from rebalance_core.model.events import BROKER_UP, TOPIC_CONFIG
from rebalance_core.model.group_settings import BROADCASTING
from rebalance_core.model.queue import MessageQueue, is_retry_topic
from rebalance_core.model.times import utc
from rebalance_core.model.verdicts import INFO, WARNING

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import FindingsRow, PullStartsRow

FROM_TIMESTAMP = "CONSUME_FROM_TIMESTAMP"
FROM_OLD = frozenset(
    {
        "CONSUME_FROM_FIRST_OFFSET",
        "CONSUME_FROM_MIN_OFFSET",
        "CONSUME_FROM_LAST_OFFSET_AND_FROM_MIN_WHEN_BOOT_FIRST",
    }
)
"""Settings for applications that want old messages; clients treat the last two as LAST_OFFSET."""


def first_starts(group: GroupSnapshot) -> list[PullStartsRow]:
    """Return the first start on each queue, because later starts continue from it.

    Queues whose earlier commits are unknown are left out: those on brokers that were not collected,
    and those without a commit where the group may have made one (`_may_have_committed`).
    """
    starts: dict[MessageQueue, PullStartsRow] = {}
    rows = sorted(group.tables["pull_starts"], key=lambda row: (row["epoch"], row["client_id"]))
    for row in rows:
        if row["broker_name"] not in group.run.missing:
            starts.setdefault(queue_of(row), row)
    return [row for row in starts.values() if not _may_have_committed(group, row)]


def _may_have_committed(group: GroupSnapshot, row: PullStartsRow) -> bool:
    """Return True if the group may have committed on the queue before the files begin.

    It has not if a consumerOffset.json of that time lacks it and the broker's log shows all
    since, if the group was created since, or if the queue was empty since.
    """
    broker, start_ms, stores = row["broker_name"], row["earliest_ms"], group.run.offsets_ms
    if row["stored_offset"] is not None or stores is None:
        return False
    stored_ms = stores.get(broker, start_ms + 1)
    if stored_ms <= start_ms and not group.run.coverage.of_broker(broker).gap(stored_ms, start_ms):
        return False
    created = any(
        fact["broker_name"] == broker and fact["first_ms"] <= start_ms
        for fact in group.facts["GROUP_CREATED"]
    )
    empty = any(end == 0 and at_ms <= start_ms for at_ms, end in _ends_seen(group, row))
    return not created and not empty


def _ends_seen(group: GroupSnapshot, row: PullStartsRow) -> list[tuple[int, int]]:
    """Return when the end of a start's queue was seen, and the end."""
    return [(end["observed_ms"], end["max_offset"]) for end in group.ends.get(queue_of(row), ())]


def asked_from(group: GroupSnapshot, client_id: str) -> str:
    """Return the ConsumeFromWhere of the member's last join, or otherwise the group's."""
    joins = [
        row
        for row in group.tables["cluster_events"]
        if row["client_id"] == client_id and row.get("consume_from_where")
    ]
    stated = max(joins, key=lambda row: row["event_ms"], default=group.settings)
    return stated.get("consume_from_where") or "CONSUME_FROM_LAST_OFFSET"


def is_assumed(group: GroupSnapshot, client_id: str) -> bool:
    """Return True if no file shows the member's ConsumeFromWhere, so its start is a guess."""
    stated = any(
        row["client_id"] == client_id and row.get("consume_from_where")
        for row in group.tables["cluster_events"]
    )
    return not stated and any(map(assumes_start, group.tables["findings"]))


def assumes_start(finding: FindingsRow) -> bool:
    """Return True if ingest reported that it assumed a group's ConsumeFromWhere."""
    return finding["rule_id"] == "INGEST_ASSUMED" and "consume_from_where" in dict(
        finding["evidence"]
    )


def begin(row: PullStartsRow) -> int:
    """Return where the first pull really begins."""
    corrected = row["corrected_offset"]
    return int((row["start_offset"] or 0) if corrected is None else corrected)


def begins(rows: Iterable[PullStartsRow]) -> str:
    """Return the offsets at which queues began, as a range.

    >>> begins([{"start_offset": 3, "corrected_offset": None}])
    '3'
    """
    begins = sorted({begin(row) for row in rows})
    return str(begins[0]) if len(begins) == 1 else f"{begins[0]} to {begins[-1]}"


def or_up_to(rows: Iterable[PullStartsRow]) -> str:
    """Return the range that the bounds of these starts leave open; empty if nothing.

    >>> or_up_to([{"start_offset_low": 0, "start_offset_high": 13}])
    ' by the estimate (bounds: 0 to 13)'
    """
    rows = [row for row in rows if row["start_offset_low"] != row["start_offset_high"]]
    if not rows:
        return ""
    low = min(int(row["start_offset_low"] or 0) for row in rows)
    highs = [row["start_offset_high"] for row in rows if row["start_offset_high"] is not None]
    if len(highs) < len(rows):
        return f" by the estimate (bounds: from {low} up)"
    return f" by the estimate (bounds: {low} to {max(highs)})"


def first_change(rows: Iterable[PullStartsRow]) -> int:
    """Return when the first of these starts was called for."""
    return min(int(row["change_ms"]) for row in rows)


def last_settled(rows: Iterable[PullStartsRow]) -> int:
    """Return the time by which the last of them has happened."""
    return max(int(row["latest_ms"]) for row in rows)


JUMPED = ("MAX_OFFSET", "TIMESTAMP_SEARCH", "RETRY_MAX")
"""Rules that apply without a commit and start after stored messages; after a commit none are
skipped.
"""
ZERO = ("BROKER_ZERO", "FIRST_ZERO")
KNOWN = "the group already read the topic, and should read new queues from their start"
NEW = "the group is new to the topic, and its setting asks for this"
NEW_QUEUES = {TOPIC_CONFIG, BROKER_UP}


def find_skipped(group: GroupSnapshot) -> Iterator[Finding]:
    """Yield a finding for each topic and rule, with messages counted (rocketmq.md §5)."""
    if is_broadcasting(group) or _was_broadcasting(group):
        return
    rows = [
        row
        for row in first_starts(group)
        if row["rule"] in JUMPED
        and (row["skipped"] or 0) > 0
        and not is_assumed(group, row["client_id"])
    ]
    held = _held_topics(group)
    causes = {row["epoch"]: set(row["causes"]) for row in group.epochs}
    asked = {
        client_id: asked_from(group, client_id) for client_id in {row["client_id"] for row in rows}
    }
    for topic, of_topic in by_topic(rows).items():
        for rule in sorted({row["rule"] or "" for row in of_topic}):
            late = [row for row in of_topic if row["rule"] == rule]
            by_why: dict[str, list[PullStartsRow]] = {}
            for row in late:
                why = _why_skipped(row, causes.get(row["epoch"], set()), held, asked)
                by_why.setdefault(why, []).append(row)
            for why, of_why in by_why.items():
                yield _skipped(topic, rule, of_why, why)


def _held_topics(group: GroupSnapshot) -> dict[str, int]:
    """Return topic -> the first settled epoch in which a member of the group held a queue of it."""
    calm = [row["epoch"] for row in group.epochs if not row["transient"]]
    topics: dict[str, int] = {}
    for row in group.tables["ownership"]:
        place = bisect_left(calm, row["from_epoch"])
        if row["client_id"] is None or place == len(calm):
            continue
        if row["to_epoch"] is None or calm[place] < row["to_epoch"]:
            topics[row["topic"]] = min(calm[place], topics.get(row["topic"], calm[place]))
    return topics


def _was_broadcasting(group: GroupSnapshot) -> bool:
    models = {row["message_model"] for row in group.tables["memberships"]}
    return models == {BROADCASTING}


def _why_skipped(
    row: PullStartsRow, causes: set[str], held: dict[str, int], asked: dict[str, str]
) -> str:
    if held.get(row["topic"], row["epoch"]) < row["epoch"] and NEW_QUEUES & causes:
        return KNOWN
    mode = asked[row["client_id"]]
    return f"the client takes {mode} for CONSUME_FROM_LAST_OFFSET" if mode in FROM_OLD else NEW


def _skipped(topic: str, rule: str, rows: list[PullStartsRow], why: str) -> Finding:
    count = sum(row["skipped"] or 0 for row in rows)
    queues = queue_names((row["broker_name"], row["queue_id"]) for row in rows)
    return Finding(
        f"{messages(count)} of {topic} skipped: {plural(len(rows), 'queue')} ({queues}) without a "
        f"commit began at {begins(rows)} ({rule}, from {utc(rows[0]['change_ms'])}); {why}.",
        {"queues": queues, "rule": rule, "skipped": str(count)},
        severity=INFO if why == NEW else WARNING,
        topic=topic,
        first_ms=first_change(rows),
        last_ms=last_settled(rows),
    )


def find_replayed(group: GroupSnapshot) -> Iterator[Finding]:
    """Yield a finding for each topic whose old messages a new group reads against its setting.

    Only an observation of the queue from before the group joined shows that they are old.
    """
    if is_broadcasting(group) or not group.epochs:
        return
    causes = {row["epoch"]: set(row["causes"]) for row in group.epochs}
    rows = [
        row
        for row in first_starts(group)
        if row["rule"] in ZERO
        and not is_retry_topic(row["topic"])
        and not causes.get(row["epoch"], set()) & NEW_QUEUES
        and asked_from(group, row["client_id"]) not in FROM_OLD
        and not is_assumed(group, row["client_id"])
    ]
    old = {queue_of(row): _unwanted(group, row) for row in rows}
    rows = [row for row in rows if old[queue_of(row)] > 0]
    alike = grouped(rows, lambda row: (row["topic"], _held_before(group, row)))
    for (topic, sure), of_topic in sorted(alike.items()):
        count = sum(old[queue_of(row)] for row in of_topic)
        queues = queue_names((row["broker_name"], row["queue_id"]) for row in of_topic)
        setting = asked_from(group, of_topic[0]["client_id"])
        unsure = or_up_to(of_topic)
        up_to = "up to " if unsure else ""
        yield Finding(
            f"{up_to}{messages(count)} of {topic} from before the group existed are consumed, "
            f"although it asks for {setting}: {plural(len(of_topic), 'queue')} ({queues}) began "
            f"at {begins(of_topic)}{unsure}.",
            {"queues": queues, "replayed": str(count), "rule": of_topic[0]["rule"]},
            topic=topic,
            first_ms=first_change(of_topic),
            last_ms=last_settled(of_topic),
            unknown=None if sure else QUEUES_BEFORE,
        )


def _held_before(group: GroupSnapshot, row: PullStartsRow) -> bool:
    """Return True if the queue certainly held messages after the start when the group began.

    What a row of pull_starts records about its queue is no newer than the start.
    """
    first = group.epochs[0]
    if is_initial(group, first):
        return False
    return row["epoch"] == first["epoch"] or any(
        at_ms <= first["from_ms"] and end > begin(row) for at_ms, end in _ends_seen(group, row)
    )


def _unwanted(group: GroupSnapshot, row: PullStartsRow) -> int:
    """Return the messages after the start that are older than the member asked for.

    They are at most those in the queue when it was first seen after the group joined; a younger
    queue has none.
    """
    end = row["max_offset"] or 0
    came_ms = group.epochs[0]["from_ms"]
    ends_seen = _ends_seen(group, row)
    later = [look for look in ends_seen if look[0] >= came_ms]
    end = min(end, min(later)[1]) if later else end
    if asked_from(group, row["client_id"]) == FROM_TIMESTAMP:
        since = group.settings.get("consume_timestamp_ms")
        before = [seen for at_ms, seen in ends_seen if since is not None and at_ms <= since]
        end = min(end, max(before, default=0))
    return int(end - begin(row))


def find_failed(group: GroupSnapshot) -> Iterator[Finding]:
    """Yield a finding for each topic on whose queues a member cannot or could not start."""
    last = {row["epoch"] for row in group.epochs if not row["transient"]}
    rows = [
        row
        for row in group.tables["pull_starts"]
        if row["status"] == verdicts.FAILED
        and row["epoch"] in last
        and not is_assumed(group, row["client_id"])
    ]
    if not rows:
        return
    end, starts = _ends_of_failures(group), RefusedStarts(group)
    judged = [(row, end(row)) for row in rows]
    lasting = {row["topic"] for row, over in judged if over is None}
    shown = [pair for pair in judged if pair[1] is None or pair[0]["topic"] not in lasting]
    alike = grouped(shown, lambda pair: (pair[0]["topic"], not _topic_undated(group, pair[0])))
    for (topic, sure), pairs in sorted(alike.items()):
        over = last_of(recovery for _, recovery in pairs)
        failed = [row for row, _ in pairs]
        why = starts.why(((queue_of(row), row["earliest_ms"]) for row in failed), "; ")
        yield _failed(topic, failed, over, why=why, sure=sure)


def _ends_of_failures(group: GroupSnapshot) -> Callable[[PullStartsRow], Recovery | None]:
    """Return a function that finds the end of a failed start.

    The queue has been read since, or is no longer the member's.
    """
    starts = grouped(group.tables["pull_starts"], lambda row: (queue_of(row), row["client_id"]))
    held = grouped(group.facts["HELD_QUEUE"], lambda fact: (queue_of(fact), fact["client_id"]))
    owned = grouped(group.tables["ownership"], lambda row: (queue_of(row), row["client_id"]))
    offsets, answers = offsets_over_time(group), ClientAnswers(group)

    def end(row: PullStartsRow) -> Recovery | None:
        queue, client_id, failed_ms = queue_of(row), row["client_id"], row["latest_ms"]
        name, key = _name(queue), (queue, client_id)
        shown = [
            Recovery(other["latest_ms"], f"{client_id} started on {name} then")
            for other in starts[key]
            if other["epoch"] > row["epoch"] and other["status"] == verdicts.OK
        ]
        shown += [
            Recovery(fact["first_ms"], f"{client_id} reads {name} according to its own dump")
            for fact in held.get(key, ())
            if fact["first_ms"] > failed_ms and not flag(fact["details"].get("dropped"))
        ]
        ends_seen = sorted(offsets.get(queue, ()))
        before = max((offset for ms, offset in ends_seen if ms <= failed_ms), default=-1)
        shown += [
            Recovery(ms, f"{offset} is committed on {name}")
            for ms, offset in ends_seen
            if ms > failed_ms and offset > before
        ]
        stays = (owner["to_ms"] for owner in owned.get(key, ()))
        ends = [ms for ms in stays if ms is None or ms > row["earliest_ms"]]
        gone = [ms for ms in ends if ms is not None]
        if ends and len(gone) == len(ends):
            shown.append(Recovery(max(gone), f"{name} is no longer a queue of {client_id}"))
        went = answers.went(client_id, failed_ms)
        shown += [] if went is None else [went]
        return min(shown, key=lambda recovery: recovery.at_ms, default=None)

    return end


def _name(queue: MessageQueue) -> str:
    return f"{queue.topic} {queue.broker_name}:{queue.queue_id}"


def _topic_undated(group: GroupSnapshot, row: PullStartsRow) -> bool:
    """Return True if only a later dump or store shows the topic on the broker.

    The topic may have existed there at the start.
    """
    return any(
        (topic["topic"], topic["broker_name"]) == (row["topic"], row["broker_name"])
        and topic["event_ms"] > row["earliest_ms"]
        and ".log" not in (topic["source"] or ".log")
        for topic in group.tables["topics"]
    )


def _failed(
    topic: str, rows: list[PullStartsRow], over: Recovery | None, *, why: str, sure: bool
) -> Finding:
    queues = queue_names((row["broker_name"], row["queue_id"]) for row in rows)
    ids = sorted({row["client_id"] for row in rows})
    return Finding(
        f"{listed(ids, 3)} cannot determine where to start on {topic} ({queues}): the queues do "
        f"not exist, or the client refuses its ConsumeFromWhere{why}.",
        {"queues": queues, "rules": listed(sorted({str(row["rule"]) for row in rows}))},
        topic=topic,
        client_id=ids[0] if len(ids) == 1 else None,
        first_ms=first_change(rows),
        last_ms=None if over is None else over.at_ms,
        unknown=None if sure else QUEUES_CREATED,
        ended_by="" if over is None else over.shown_by,
    )


_SEEN_BY = "pull_starts, consumer_groups, committed_offsets, queue_offsets"
SKIPPED = Rule(
    "START_SKIPPED",
    WARNING,
    "A member began to read queues after messages that the group never read. On new queues of a "
    "topic that the group already reads, these messages are lost; for a group new to the topic, "
    "its ConsumeFromWhere asks for this (INFO).",
    _SEEN_BY,
    "If you need the messages, reset the group's offsets for the topic by time "
    "(resetOffsetByTime). For new queues, commit before producers use them, or use "
    "CONSUME_FROM_FIRST_OFFSET.",
    find_skipped,
    reads=(COMMITS, EVENTS),
)
REPLAYED = Rule(
    "START_REPLAYED",
    WARNING,
    "A group that asks only for new messages started at the beginning of queues: the broker "
    "answers 0 for an unknown group while the queue's first message is in memory.",
    _SEEN_BY,
    "If you do not want the old messages, move the group to now (resetOffsetByTime -s now) before "
    "its first start, or skip them in the listener.",
    find_replayed,
    reads=(COMMITS, EVENTS),
)
FAILED = Rule(
    "START_FAILED",
    WARNING,
    "A member could not determine where to start on a queue and does not read it.",
    "pull_starts (FAILED); ownership, committed_offsets, QUEUE_PROGRESS, HELD_QUEUE, "
    "START_REFUSED, TOPIC_MISSING",
    "Check that the queue exists on the broker (a CONFIG list may name too many), and that the "
    "client accepts its ConsumeFromWhere.",
    find_failed,
    reads=(EVENTS,),
    state=True,
)
