"""Finds the queues that mqadmin reports as possibly blocked and whose commits confirm it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rebalance_core.audit.dumps import fresh, last_stated, number, queue_of
from rebalance_core.audit.group_snapshot import GroupSnapshot
from rebalance_core.audit.progress import STALE_STORE_MS, progress_rows
from rebalance_core.audit.recovery import Recovery
from rebalance_core.model.times import STANDSTILL_MS, utc

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import GroupQueueProgressRow, HeldQueueFact, StuckQueueFact


@dataclass(frozen=True, slots=True)
class BlockedQueue:
    """A queue whose client does not finish any messages.

    Attributes:
        fact: the client's answer, or mqadmin's remark about it.
        since_ms: when the client last finished a message.
        over: the later commit that advanced, if one is known.
    """

    fact: HeldQueueFact | StuckQueueFact
    since_ms: int
    over: Recovery | None = None


def blocked_queues(group: GroupSnapshot) -> list[BlockedQueue]:
    """Return the queues that have stood still for a long time, judging by commits where possible.

    mqadmin takes a single sample and calls a queue blocked after a minute without a finished
    message (ConsumerRunningInfo.analyzeProcessQueue), but a slow listener may finish a queue's
    messages in bursts that are just as far apart.
    """
    progress = {queue_of(row): row for row in progress_rows(group)}
    found = []
    for fact in fresh(group, group.facts["STUCK_QUEUE"], last_stated):
        if fact["details"].get("trouble") != "consume":
            continue
        # "maybe blocked, 597688ms"
        since_ms = fact["first_ms"] - number(fact["details"].get("count"), 0)
        row = progress.get(queue_of(fact))
        over = None if row is None else _moved_after(row, since_ms, fact["last_ms"])
        if row is None or not _is_slow(row, since_ms, fact["last_ms"], over):
            found.append(BlockedQueue(fact, since_ms, over))
    return found


def _moved_after(row: GroupQueueProgressRow, since_ms: int, at_ms: int) -> Recovery | None:
    """Return the commit of a message that was finished after ``at_ms``.

    The commit must have been lower at a time when the commit of all messages finished by
    ``since_ms`` had to be visible.
    """
    moved_ms, below_ms = row["waits_since_ms"], row["last_below_ms"]
    if moved_ms is None or below_ms is None:
        return None
    if moved_ms <= at_ms or below_ms < since_ms + STALE_STORE_MS:
        return None
    return Recovery(moved_ms, f"the commit moved by {utc(moved_ms)}")


def _is_slow(
    row: GroupQueueProgressRow, since_ms: int, seen_ms: int, over: Recovery | None
) -> bool:
    """Return True if the commit advances and was not seen unchanged for two minutes."""
    if over is not None:  # the commit may have advanced at once
        return seen_ms - since_ms < STANDSTILL_MS
    until_ms = max(row["committed_ms"] or seen_ms, seen_ms)
    return (row["commit_rate"] or 0) > 0 and until_ms - since_ms < STANDSTILL_MS
