"""OFFSET_ROLLBACK: offsets that fall back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rebalance_core.audit.dumps import number, queue_of
from rebalance_core.audit.duplicate_ids import listed_duplicates, logged_duplicates
from rebalance_core.audit.group_snapshot import (
    Finding,
    GroupSnapshot,
    Rule,
    grouped,
    listed,
    plural,
    queue_names,
)
from rebalance_core.audit.logged_causes import explained, logged_near
from rebalance_core.audit.progress import STALE_STORE_MS, progress_rows
from rebalance_core.audit.subjects import CAUSES
from rebalance_core.audit.subscriptions import is_broadcasting
from rebalance_core.audit.unknowns import CLIENT_CLOCK_UNKNOWN
from rebalance_core.model.queue import MessageQueue, is_retry_topic, is_system_topic
from rebalance_core.model.times import MINUTE_MS, OFFSET_PERSIST_MS, SECOND_MS, utc
from rebalance_core.model.verdicts import INFO, WARNING
from rebalance_core.protocol.settling_windows import MASTER_BACK_MS
from rebalance_core.replay.masters import MasterOutage

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import (
        CommittedOffsetsRow,
    )


@dataclass(frozen=True, slots=True)
class CommitRollback:
    """Commits on a queue that moved back one or more times.

    Attributes:
        high, low: the two offsets of the largest single step.
        who: the committing client, if known.
        clocks: the two were dated by different hosts, one of them a client.
        steps: the number of steps back.
        read_again: the sum of all steps.
    """

    queue: MessageQueue
    high: int
    low: int
    first_ms: int
    last_ms: int
    who: str
    read_again: int
    clocks: bool = False
    steps: int = 1


def find(group: GroupSnapshot) -> Iterator[Finding]:
    """Yield a finding for a topic's unexplained falls, another for all explained ones."""
    if is_broadcasting(group):
        return
    falls = [fall for fall in all_falls(group) if outage_of(group, fall) is None]
    falls = _without_crossed(group, falls)
    duplicate_ids = sorted(
        {duplicate.client_id for duplicate in logged_duplicates(group)}
        | listed_duplicates(group).keys()
    )
    cause_of = {fall: explained(group, fall.first_ms, fall.last_ms) for fall in falls}
    plain = [fall for fall in falls if cause_of[fall] is None and not duplicate_ids]
    explained_falls = [fall for fall in falls if fall not in plain]
    unknown = group.run.coverage.client_clock_unknown
    for topic, unsure in sorted({(fall.queue[0], fall.clocks and unknown) for fall in plain}):
        of = [f for f in plain if (f.queue[0], f.clocks and unknown) == (topic, unsure)]
        yield replace(_finding(group, of, None), unknown=CLIENT_CLOCK_UNKNOWN if unsure else None)
    if explained_falls:
        causes = sorted({cause for fall in explained_falls if (cause := cause_of[fall])})
        if duplicate_ids:
            causes.insert(0, f"the duplicate client id {listed(duplicate_ids, 3)}")
        yield _finding(group, explained_falls, f"explained by {listed(causes, 3)}")


def _without_crossed(group: GroupSnapshot, falls: list[CommitRollback]) -> list[CommitRollback]:
    """Leave out falls after which no message is consumed again: two commits of the owner crossed.

    A client commits with its pulls and every `OFFSET_PERSIST_MS`, on different threads. If the
    older of two commits arrives last, the broker logs a fall by less than the client finishes
    between two of its regular commits, once, and the next commit is above both.
    """
    logged, times = {*_logged(group)}, Counter(fall.queue for fall in falls)
    progress = {queue_of(row): row for row in progress_rows(group)}

    def crossed(fall: CommitRollback) -> bool:
        row = progress.get(fall.queue)
        # only observations show it, and it stayed lower for longer than a commit takes
        once = fall in logged and fall.steps == 1 and times[fall.queue] == 1
        if row is None or not once:
            return False
        committed, rate = row["committed"] or 0, row["commit_rate"] or 0
        few = fall.high - fall.low <= rate * OFFSET_PERSIST_MS / SECOND_MS
        return few and committed >= fall.high and _one_owner(group, fall)

    return [fall for fall in falls if not crossed(fall)]


def _one_owner(group: GroupSnapshot, fall: CommitRollback) -> bool:
    """Return whether one member owned the queue from a minute before the fall to one after."""
    begin_ms, end_ms = fall.first_ms - MINUTE_MS, fall.last_ms + MINUTE_MS
    at_the_time = [
        row
        for row in group.tables["ownership"]
        if queue_of(row) == fall.queue
        and row["from_ms"] < end_ms
        and (row["to_ms"] is None or row["to_ms"] > begin_ms)
    ]
    return len(at_the_time) == 1 and at_the_time[0]["from_ms"] <= begin_ms


def all_falls(group: GroupSnapshot) -> list[CommitRollback]:
    """Return the falls that brokers logged, and those observed that no broker logged."""
    logged = _logged(group)
    of_queue = grouped(logged, lambda fall: fall.queue)
    return logged + [
        fall
        for fall in _observed(group)
        if not any(
            logged_fall.first_ms - STALE_STORE_MS <= fall.last_ms
            and fall.first_ms <= logged_fall.last_ms + STALE_STORE_MS
            for logged_fall in of_queue.get(fall.queue, ())
        )
    ]


def outage_of(group: GroupSnapshot, fall: CommitRollback) -> MasterOutage | None:
    """Return the outage of the queue's master that lowered it, which is OFFSETS_FELL_BACK."""
    for outage in group.run.masters.get(fall.queue.broker_name, ()):
        if outage.down_ms <= fall.last_ms and not outage.over(fall.first_ms - MASTER_BACK_MS):
            return outage
    return None


def _logged(group: GroupSnapshot) -> list[CommitRollback]:
    """Return commits below the stored offset, as logged by brokers."""
    falls = []
    for fact in group.facts["OFFSET_WENT_BACK"]:
        if is_system_topic(fact["topic"]):
            continue
        high = number(
            fact["details"].get("step_stored"), number(fact["details"].get("highest_stored"))
        )
        low = number(fact["details"].get("step_asked"), number(fact["details"].get("lowest_asked")))
        falls.append(
            CommitRollback(
                queue_of(fact),
                high,
                low,
                fact["first_ms"],
                fact["last_ms"],
                fact["details"].get("client_host", ""),
                read_again=number(fact["details"].get("read_again"), high - low),
                steps=number(fact["details"].get("steps"), 1),
            )
        )
    return falls


def _observed(group: GroupSnapshot) -> list[CommitRollback]:
    """Return falls between two observations further apart than a store's age.

    It fell by the first observation that is lower, and has stayed there since.
    """
    fallen = []
    for queue, rows in commits_of(group).items():
        high, low_ms = rows[0], None
        for row in rows[1:]:
            if row["committed_offset"] >= high["committed_offset"]:
                high, low_ms = row, None
                continue
            low_ms = row["observed_ms"] if low_ms is None else low_ms
            if row["observed_ms"] - high["observed_ms"] > STALE_STORE_MS:
                before, after = high["committed_offset"], row["committed_offset"]
                fallen.append(
                    CommitRollback(
                        queue,
                        before,
                        after,
                        low_ms,
                        row["observed_ms"],
                        row.get("client_id") or "",
                        read_again=before - after,
                        clocks=row.get("client_id") != high.get("client_id"),
                    )
                )
                high, low_ms = row, None
    return fallen


def commits_of(group: GroupSnapshot) -> dict[MessageQueue, list[CommittedOffsetsRow]]:
    """Return the commits of each queue in order of time."""
    rows = sorted(group.tables["committed_offsets"], key=lambda row: row["observed_ms"])
    return grouped(rows, queue_of)


def _unexplained(group: GroupSnapshot, falls: list[CommitRollback]) -> str:
    """State that no event explains the falls, and what happened to the brokers at the time."""
    near = {
        moment
        for fall in falls
        for moment in logged_near(group, [fall.queue.broker_name], fall.first_ms, fall.last_ms)
    }
    none = "; no event that this program reads explains it"
    shown = listed([words for _, words in sorted(near)], 4)
    return f"{none} (within two minutes: {shown})" if near else none


def _finding(group: GroupSnapshot, falls: list[CommitRollback], explanation: str | None) -> Finding:
    queues = {fall.queue for fall in falls}
    topics = sorted({queue[0] for queue in queues})
    worst = min(falls, key=lambda fall: (fall.low - fall.high, fall.first_ms, fall.queue))
    hosts = sorted({fall.who for fall in falls if fall.who})
    names = [
        f"{topic} {queue_names((b, n) for t, b, n in queues if t == topic)}" for topic in topics
    ]
    retry = all(is_retry_topic(topic) for topic in topics)
    steps, sum_of_all = sum(fall.steps for fall in falls), sum(fall.read_again for fall in falls)
    step = worst.high - worst.low
    are = "is" if step == 1 else "are"
    again = f"{plural(step, 'message')} {are} consumed again" if not retry else "retries repeat"
    if steps > 1 and not retry:
        again += f", {sum_of_all} in all {steps} falls"
    when = f"at {utc(worst.first_ms)}"
    if worst.last_ms - worst.first_ms >= SECOND_MS:
        when = f"between {utc(worst.first_ms)} and {utc(worst.last_ms)}"
    because = f"; {explanation}" if explanation else _unexplained(group, falls)
    alone = worst.queue if len(queues) == 1 else None
    first = min(fall.first_ms for fall in falls)
    return Finding(
        f"The committed offset of {plural(len(queues), 'queue')} went back ({listed(names, 4)}), "
        f"most from {worst.high} to {worst.low} {when}: {again}{because}.",
        {
            "queues": listed(names),
            "committed_by": listed(hosts),
            "falls": str(steps),
            "read_again": str(sum_of_all),
        },
        severity=INFO if explanation else WARNING,
        topic=topics[0] if len(topics) == 1 else None,
        broker_name=alone[1] if alone else None,
        queue_id=alone[2] if alone else None,
        first_ms=first,
        last_ms=max(fall.last_ms for fall in falls),
    )


RULE = Rule(
    "OFFSET_ROLLBACK",
    WARNING,
    "A client committed an offset below an earlier one, so messages are consumed again. INFO "
    "after a rebalance or with duplicate client ids, which explain it, and if only a client's "
    "log compared with another file shows it. Two commits by the owner that arrive in reverse "
    "order are not a finding.",
    "OFFSET_WENT_BACK, committed_offsets",
    "If an administrator reset the offsets (resetOffsetByTime, a rebuilt broker), accept it. "
    "Otherwise check the named hosts: two processes that commit one queue, or one process "
    "restarted from an old copy.",
    find,
    reads=(CAUSES,),
)
