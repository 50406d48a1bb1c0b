"""Whether a group reads the messages in its queues, in one word from `queue_progress`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import inf
from typing import TYPE_CHECKING, Final, NamedTuple

from rebalance_core.audit.dumps import (
    holder_address,
    holders_at_end,
    last_stated,
    newest_answers,
    number,
    queue_of,
    seen_ms,
)
from rebalance_core.audit.group_snapshot import GroupSnapshot, grouped
from rebalance_core.audit.offsets import BETWEEN_READS, Offsets
from rebalance_core.audit.subscriptions import all_known, is_broadcasting
from rebalance_core.audit.topic_settings import configs, last_topics, readable_queues
from rebalance_core.contracts.progress import (
    COMMIT_FELL,
    END_BELOW_COMMIT,
    NO_COMMIT,
    NO_END,
    READ_APART,
)
from rebalance_core.model.queue import MessageQueue, is_retry_topic, is_system_topic
from rebalance_core.model.times import (
    MINUTE_MS,
    OFFSET_FLUSH_MS,
    OFFSET_PERSIST_MS,
    SECOND_MS,
    STANDSTILL_MS,
)
from rebalance_core.model.verdicts import (
    BROADCASTING,
    FALLS_BEHIND,
    IDLE,
    LITE_TOPIC,
    MOVES,
    SEEN_ONCE,
    STANDS_STILL,
    UNCHANGED,
    UNKNOWN,
    Progress,
)

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import (
        FlowControlledFact,
        GroupQueueProgressRow,
        QueueProgressFact,
    )

STORE_COPY_MS = 5_000
"""Copying a store takes at most this long."""
STALE_STORE_MS = OFFSET_PERSIST_MS + OFFSET_FLUSH_MS + STORE_COPY_MS
"""A value of consumerOffset.json may be this old."""
FALLING_MS: Final = 10 * MINUTE_MS
"""A group whose unread messages grow for this long is falling behind; anything shorter is a
burst."""
BURST_MS: Final = MINUTE_MS
"""Messages that arrive within this time may still be in progress: clients commit every 5 s and log
it once a minute."""
TAKEN: Final = 1
"""DefaultMQPushConsumer.consumeMessageBatchMaxSize: an orderly listener takes this many messages
from the cache at a time."""


class GroupProgress(NamedTuple):
    """A group's progress in its queues.

    Attributes:
        word: One of `PROGRESS`.
        reason: Why it is UNKNOWN; otherwise empty.
    """

    word: Progress
    reason: str = ""


def progress_rows(group: GroupSnapshot) -> list[GroupQueueProgressRow]:
    """Return the group's rows in `queue_progress`, without RocketMQ's own topics."""
    rows = group.tables["queue_progress"]
    return [row for row in rows if not is_system_topic(row["topic"])]


def stands_still(row: GroupQueueProgressRow) -> bool:
    """Return True if files show that the queue's commit does not advance while its end grows.

    Where the ends do not show it, `stuck_in_cache` may.
    """
    return row["still_since_ms"] is not None


class FullCache(NamedTuple):
    """A queue holder's cache that was full while the commit did not move.

    Attributes:
        client_id: The holder; None if its log does not name it.
        since_ms: The time since which both are shown, epoch ms.
        until_ms: The last time at which a line or a commit shows it.
    """

    client_id: str | None
    since_ms: int
    until_ms: int


def stuck_in_cache(group: GroupSnapshot) -> dict[MessageQueue, FullCache]:
    """Return the queues that stand still according to their holder's log, although their ends do
    not show it: no file has the end, or files show it too rarely.

    While its cache was full the holder did not pull, so messages waited beyond the commit. At two
    times, at least a standstill apart, the cache was full, and in between its first message stayed
    the same and is the one at the commit, or the commits were equal. A line after the last commit
    counts as at that commit. A time before the end was last seen at the commit does not count, nor
    does what ended FALLING_MS before the last look.
    """
    controlled = grouped(_of_holders(group), queue_of)
    stuck = {}
    recent_ms = last_look_ms(group) - FALLING_MS
    for row in progress_rows(group) if controlled else ():
        facts = controlled.get(queue_of(row), ())
        if not facts or stands_still(row) or row["reason"] == COMMIT_FELL:
            continue
        full = [*_with_same_first(row, facts), *_at_equal_commits(row, facts)]
        lasting = _lasting(row, full)
        until_ms = max((row["committed_ms"] or 0, *(to_ms for _, to_ms in lasting)))
        if lasting and until_ms >= recent_ms:
            newest = max(facts, key=last_stated)
            since_ms = min(from_ms for from_ms, _ in lasting)
            stuck[queue_of(row)] = FullCache(newest["client_id"], since_ms, until_ms)
    return stuck


def is_unfinished(row: GroupQueueProgressRow, fact: FlowControlledFact) -> bool:
    """Return True if the message at the commit stayed unfinished for the time of a standstill, as
    it was the first one in the full cache that the holder's log shows.
    """
    return bool(_lasting(row, _with_same_first(row, [fact])))


def _lasting(row: GroupQueueProgressRow, full: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the times of a full cache that span a standstill after the queue was last empty."""
    idle_ms = row["stored_ms"] or 0
    times_ms = [(max(from_ms, idle_ms), to_ms) for from_ms, to_ms in full]
    return [times for times in times_ms if times[1] - times[0] >= STANDSTILL_MS]


def last_look_ms(group: GroupSnapshot) -> int:
    """Return when a commit or an end of the group's queues was seen last, epoch ms."""
    rows = progress_rows(group)
    return max((max(row["committed_ms"] or 0, row["end_ms"] or 0) for row in rows), default=0)


def _with_same_first(
    row: GroupQueueProgressRow, facts: Iterable[FlowControlledFact]
) -> Iterator[tuple[int, int]]:
    """Yield the times between which the first message in a full cache was the same, if a commit
    that was seen since then is at it.

    An orderly listener has taken the message at the commit from the cache, so that the first one
    there is the next.
    """
    committed, seen_ms = row["committed"], row["committed_ms"]
    if committed is None or seen_ms is None:
        return
    for fact in facts:
        first = number(fact["details"].get("min_offset"))
        since_ms = number(fact["details"].get("min_since_ms"))
        if first - committed in (0, TAKEN) and since_ms <= seen_ms:
            yield since_ms, fact["last_ms"]


def _at_equal_commits(
    row: GroupQueueProgressRow, facts: Iterable[FlowControlledFact]
) -> Iterator[tuple[int, int]]:
    """Yield the first and the last time at which a cache was full while the commits were equal.

    A commit is made at most OFFSET_PERSIST_MS before a file shows it; if a fact begins earlier,
    only its last line counts, as the others may precede the commit.
    """
    waits_ms, seen_ms = row["waits_since_ms"], row["committed_ms"]
    if waits_ms is None or seen_ms is None:
        return
    facts = [f for f in facts if f["last_ms"] >= waits_ms and f["first_ms"] <= seen_ms]
    made_ms = waits_ms - OFFSET_PERSIST_MS
    times_ms = [max(ms, waits_ms) for fact in facts if (ms := fact["first_ms"]) >= made_ms]
    times_ms += [min(fact["last_ms"], seen_ms) for fact in facts]
    if times_ms:
        yield min(times_ms), max(times_ms)


def _of_holders(group: GroupSnapshot) -> Sequence[FlowControlledFact]:
    """Return the flow control logged by those who hold the queues at the end.

    If no file shows a member, for example when a log is read alone, the log's client is the holder.
    """
    facts = group.facts["FLOW_CONTROLLED"]
    if not facts or not group.tables["memberships"]:
        return facts
    held = holders_at_end(group)
    return [fact for fact in facts if fact["client_id"] in held.get(queue_of(fact), ())]


def falls_behind(row: GroupQueueProgressRow) -> bool:
    """Return whether the queue has more unread messages than before, beyond a burst, and the commit
    still moves.
    """
    return _backlog_grew(row, FALLING_MS) and not has_stopped(row, FALLING_MS)


def may_stand_still(row: GroupQueueProgressRow) -> bool:
    """Return whether the commit has stopped, although files show only that the backlog grew, not
    when: the messages may be newer than the time of a standstill.
    """
    stopped = _backlog_grew(row, STANDSTILL_MS) and has_stopped(row)
    return stopped and not (stands_still(row) or falls_behind(row))


def _backlog_grew(row: GroupQueueProgressRow, least_ms: int) -> bool:
    """Return whether more messages are unread than so long before, beyond a burst."""
    before, before_ms, unread = row["unread_before"], row["unread_before_ms"], row["unread"]
    end_ms, rate, read = row["end_ms"], row["end_rate"], row["commit_rate"]
    if before is None or before_ms is None or unread is None or end_ms is None:
        return False
    if rate is None or read is None or read >= rate or row["reason"] is not None:
        return False
    burst = rate * BURST_MS / SECOND_MS
    return end_ms - before_ms >= least_ms and unread - before > max(burst, 1)


def has_stopped(row: GroupQueueProgressRow, least_ms: int = STANDSTILL_MS) -> bool:
    """Return whether the commit has not moved for so long."""
    since_ms, seen_ms = row["waits_since_ms"], row["committed_ms"]
    return since_ms is not None and seen_ms is not None and seen_ms - since_ms >= least_ms


def first_loss_ms(row: GroupQueueProgressRow) -> int | None:
    """Return the earliest time at which the queue's messages are deleted unread if commit and end
    continue at their rates; None if that is never or unknown.

    The message that the group reads next was stored some time ago. Every second, this age grows by
    1 - commit rate / end rate, until it reaches the broker's retention time.
    """
    expires_ms, end_ms = row["expires_ms"], row["end_ms"]
    read, rate = row["commit_rate"], row["end_rate"]
    if expires_ms is None or end_ms is None or read is None or not rate or read >= rate:
        return None
    return end_ms + round((expires_ms - end_ms) / (1 - read / rate))


def deleted_unread(group: GroupSnapshot) -> dict[MessageQueue, int]:
    """Return the number of messages that brokers deleted before the group committed them, by queue:
    those between its newest commit and the queue's minimum.

    The newest minimum counts, as a topic that was created again begins at 0; but not one that was
    seen more than a minute after the commit, because the group may have committed since.
    """
    newest: dict[MessageQueue, tuple[int, int]] = {}
    rows = {
        queue_of(row): (row["committed"], row["committed_ms"])
        for row in progress_rows(group)
        if row["reason"] != LITE_TOPIC
    }
    for look in group.tables["queue_offsets"]:
        committed, seen_ms = rows.get(queue_of(look), (None, None))
        if committed is None or seen_ms is None or look["observed_ms"] > seen_ms + MINUTE_MS:
            continue
        if committed >= 0:
            seen = look["observed_ms"], look["min_offset"] - committed
            newest[queue_of(look)] = max(seen, newest.get(queue_of(look), seen))
    return {queue: count for queue, (_, count) in newest.items() if count > 0}


def is_unchanged(row: GroupQueueProgressRow) -> bool:
    """Return whether messages are unread and the commit has not moved for the time of a standstill.

    There is no evidence that messages arrived; otherwise `stands_still` would be true.
    """
    since_ms, seen_ms = row["waits_since_ms"], row["committed_ms"]
    if since_ms is None or seen_ms is None or not row["unread"]:
        return False
    return seen_ms - since_ms >= STANDSTILL_MS


def _end_not_seen(row: GroupQueueProgressRow) -> str | None:
    """Return why no file shows whether messages wait at a commit that has stood for the time of a
    standstill: the queue has no end, or only an older one that the commit has passed.
    """
    since_ms, seen_ms, end_ms = row["waits_since_ms"], row["committed_ms"], row["end_ms"]
    if since_ms is None or seen_ms is None or seen_ms - since_ms < STANDSTILL_MS:
        return None
    if end_ms is None:
        return NO_END
    passed = row["reason"] == END_BELOW_COMMIT and end_ms < since_ms
    return END_BELOW_COMMIT if passed else None


def is_idle(row: GroupQueueProgressRow) -> bool:
    """Return whether the queue has no unread messages and none arrived.

    A commit that advanced shows that messages arrived, even if the end was seen only once.
    """
    return row["unread"] == 0 and not row["end_rate"] and not row["commit_rate"]


def _is_above_end(row: GroupQueueProgressRow) -> bool:
    """Return whether the commit is further above the end than two reads of a busy queue explain."""
    committed, end = row["committed"], row["end_offset"]
    return committed is not None and end is not None and committed - end > BETWEEN_READS


def held_rows(group: GroupSnapshot) -> list[GroupQueueProgressRow]:
    """Return the rows of queues that a member holds at the end, by the ledger or by a dump, and
    whose commits concern them: those of a topic of type LITE do not.

    A consumerProgress alone names the address of a queue's holder, and no client id.
    """
    held = {*holders_at_end(group)}
    if not group.members:
        answers = newest_answers(group)
        held |= {queue for queue, answer in answers.items() if holder_address(answer)}
    return [
        row for row in progress_rows(group) if queue_of(row) in held and row["reason"] != LITE_TOPIC
    ]


def uncommitted_since(group: GroupSnapshot) -> dict[MessageQueue, int]:
    """Return since when, epoch ms, members have held the queues on which no file has a commit,
    although files show commits that are newer than the time by which one is due.
    """
    without = {queue_of(row) for row in held_rows(group) if row["committed"] is None}
    if not without:
        return {}
    offsets, asked = Offsets(group), newest_answers(group)
    since_ms: dict[MessageQueue, int] = {}
    for owned in group.owned:
        if owned["client_id"] is not None and (queue := queue_of(owned)) in without:
            since_ms[queue] = max(owned["from_ms"], since_ms.get(queue, 0))
    return {
        queue: from_ms
        for queue, from_ms in since_ms.items()
        if offsets.committed([queue]) == "none"
        and (
            _store_shows(group, queue, from_ms + STANDSTILL_MS)
            or (queue in asked and asked[queue]["first_ms"] >= from_ms + STANDSTILL_MS)
        )
    }


def never_committed(group: GroupSnapshot) -> dict[MessageQueue, int]:
    """Return the queues of `uncommitted_since` that received messages whose commit was due."""
    since_ms = uncommitted_since(group)
    asked = newest_answers(group) if since_ms else {}
    return {
        queue: ms
        for queue, ms in since_ms.items()
        if _came_between(group, queue, ms, _due_until(group, queue, asked.get(queue)))
    }


def _due_until(
    group: GroupSnapshot, queue: MessageQueue, answer: QueueProgressFact | None
) -> float:
    """Return until when messages had to arrive for the newest store or answer to have their
    commit, epoch ms.
    """
    if group.run.offsets_ms is None:  # tables without a collection: missing commits were not made
        return inf
    stored_ms = group.run.offsets_until_ms.get(queue.broker_name, 0) - STALE_STORE_MS
    answered_ms = 0 if answer is None else answer["first_ms"] - OFFSET_PERSIST_MS
    return max(stored_ms, answered_ms)


def _store_shows(group: GroupSnapshot, queue: MessageQueue, due_ms: int) -> bool:
    """Return whether a store of the broker was copied after a commit was due."""
    if group.run.offsets_ms is None:  # tables without a collection: missing commits were not made
        return True
    return group.run.offsets_until_ms.get(queue.broker_name, 0) >= due_ms


def _came_between(
    group: GroupSnapshot, queue: MessageQueue, since_ms: int, until_ms: float
) -> bool:
    """Return whether the end was seen to grow by ``until_ms``, after its holder had to commit.

    Where no end is older than that, the growth between two ends counts that are as far apart as a
    commit takes. An end of the same look counts if more than one message came: that one may be new.
    """
    due_ms = since_ms + STANDSTILL_MS
    ends = group.ends.get((queue.topic, queue.broker_name, queue.queue_id), ())
    until_look_ms = until_ms + MINUTE_MS
    ends = sorted((row for row in ends if row["observed_ms"] <= until_look_ms), key=seen_ms)
    before = [row for row in ends if row["observed_ms"] < due_ms]
    if not ends or ends[-1]["observed_ms"] < due_ms:
        return False
    first = before[-1] if before else ends[0]
    apart = bool(before) or ends[-1]["observed_ms"] - first["observed_ms"] >= STANDSTILL_MS
    new = 0 if ends[-1]["observed_ms"] <= until_ms else 1
    return apart and ends[-1]["max_offset"] - first["max_offset"] > new


def progress_of(group: GroupSnapshot) -> GroupProgress:
    """Return the group's progress: the worst word among its queues."""
    if is_broadcasting(group):
        return GroupProgress(UNKNOWN, BROADCASTING)
    rows = [row for row in progress_rows(group) if not is_retry_topic(row["topic"])]
    if any(map(stands_still, rows)) or stuck_in_cache(group):
        return GroupProgress(STANDS_STILL)
    if any(map(falls_behind, rows)):
        return GroupProgress(FALLS_BEHIND)
    if any(map(is_unchanged, rows)):
        return GroupProgress(UNKNOWN, UNCHANGED)
    held = [row for row in rows if row["client_id"] is not None] or rows
    unseen = next(filter(None, map(_end_not_seen, held)), None)
    if unseen is not None:
        return GroupProgress(UNKNOWN, unseen)
    if any(row["reason"] == LITE_TOPIC for row in rows):
        return GroupProgress(UNKNOWN, LITE_TOPIC)
    if any(not is_retry_topic(queue.topic) for queue in never_committed(group)):
        return GroupProgress(UNKNOWN, NO_COMMIT)
    if any(row["commit_rate"] for row in rows):
        return GroupProgress(MOVES)
    return _of_quiet(group, rows)


def _of_quiet(group: GroupSnapshot, rows: Sequence[GroupQueueProgressRow]) -> GroupProgress:
    """Return the progress of a group none of whose commits was seen to advance or stand still."""
    read = [row for row in rows if row["committed"] is not None]
    if not read:
        is_empty = _are_empty(group, rows)
        return GroupProgress(IDLE) if is_empty else GroupProgress(UNKNOWN, NO_COMMIT)
    if any(map(_is_above_end, read)):
        return GroupProgress(UNKNOWN, END_BELOW_COMMIT)
    if any(row["end_offset"] is None for row in read):
        return GroupProgress(UNKNOWN, NO_END)
    for reason in (COMMIT_FELL, READ_APART):
        if any(row["reason"] == reason for row in read):
            return GroupProgress(UNKNOWN, reason)
    if all(row["unread"] == 0 for row in read):
        return GroupProgress(MOVES if any(row["end_rate"] for row in read) else IDLE)
    return GroupProgress(UNKNOWN, SEEN_ONCE)


def _is_old(group: GroupSnapshot, end_ms: int | None) -> bool:
    return end_ms is None or end_ms < group.run.end_ms - FALLING_MS


def _are_empty(group: GroupSnapshot, rows: Sequence[GroupQueueProgressRow]) -> bool:
    """Return whether every queue that the group may read is shown, and had never received a message
    by the end of the collection. A broker's log does not show this: it shows only that a queue was
    empty when its topic was created.
    """
    if not rows or not all_known(group.members):
        return False
    if any(row["end_offset"] != 0 or _is_old(group, row["end_ms"]) for row in rows):
        return False
    shown = {queue_of(row) for row in rows}
    for topic in last_topics(group):
        queues = {MessageQueue(topic, *queue) for queue in readable_queues(group, topic)}
        if not is_system_topic(topic) and not (configs(group, topic) and queues <= shown):
            return False
    return True
