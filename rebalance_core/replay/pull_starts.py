"""Where each new owner starts to read: pull_starts, with honest bounds."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from rebalance_core.model.group_settings import BROADCASTING, PULL
from rebalance_core.model.queue import MessageQueue
from rebalance_core.replay.changes import ADD, INITIAL, Change, holders_by_queue
from rebalance_core.replay.group_state import Member
from rebalance_core.replay.history import Epoch, GroupHistory
from rebalance_core.replay.observations import CommittedOffsets, QueueOffsets
from rebalance_core.replay.popped_queues import PoppedQueues, popped_start
from rebalance_core.replay.start_rule import (
    FAILED,
    LOCAL_STORE,
    OK,
    PULL_ALWAYS_ZERO,
    QUERY_FAILED,
    STORED,
    UNKNOWN,
    Start,
    missing_queue,
    uncommitted_start,
    zero,
)
from rebalance_core.rules.first_pull import first_pull_correction

Row = dict[str, Any]


@dataclass(slots=True)
class _Past:
    """Who held a queue before, and where its owner started."""

    clients: set[str] = field(default_factory=set)
    last_holders: set[str] = field(default_factory=set)
    released_ms: int | None = None
    """By when the last holder had given it up (a lost one: when it was lost); None: holds it."""
    low: int | None = None


class PullStarts:
    """Follows the epochs of one group and says where every ADD starts to read.

    Args:
        history: the group with its observations; ``committed_offsets`` None means that nothing is
            known about commits, so only the rules that always give 0 answer.
    """

    def __init__(self, history: GroupHistory) -> None:
        self._history = history
        self._offsets = QueueOffsets(history.queue_offsets or ())
        self._commits = CommittedOffsets(history.committed_offsets or ())
        self._past: dict[MessageQueue, _Past] = {}
        self._popped = PoppedQueues()

    def rows(self, epoch: Epoch, changes: list[Change]) -> list[Row]:
        """The rows of one epoch; to be called for every epoch, in order."""
        added = [change for change in changes if change.action == ADD]
        releases = self._releases(epoch, changes)
        rows, lows = [], {}
        for change in added:
            if change.kind == INITIAL:
                continue
            start = self._start(epoch, change, releases.get(change.queue))
            lows[change.queue] = start.low
            rows.append(self._row(epoch, change, start))
        self._remember(epoch, changes, releases, lows)
        self._popped.follow(epoch, changes)
        return rows

    def _releases(self, epoch: Epoch, changes: list[Change]) -> dict[MessageQueue, int]:
        """When each queue that loses its last earlier holder in this epoch is surely free."""
        dropped = {change.queue for change in changes if change.action != ADD}
        before = holders_by_queue(epoch.before, dropped)
        after = holders_by_queue(epoch.holdings, dropped)
        latest: dict[MessageQueue, int] = {}
        for change in changes:
            queue = change.queue
            if change.action != ADD and before[queue].keys().isdisjoint(after.get(queue, ())):
                latest[queue] = max(latest.get(queue, 0), change.latest_ms)
        return latest

    def _remember(
        self,
        epoch: Epoch,
        changes: list[Change],
        releases: dict[MessageQueue, int],
        lows: dict[MessageQueue, int | None],
    ) -> None:
        for queue, released_ms in releases.items():
            self._past[queue].released_ms = released_ms
        for queue in {change.queue for change in changes}:
            holders = {key[0] for key, queues in epoch.holdings.items() if queue in queues}
            if holders:
                past = self._past.setdefault(queue, _Past())
                past.clients |= holders
                past.last_holders = holders
                past.released_ms = None
                past.low = lows.get(queue, past.low)

    def _start(self, epoch: Epoch, change: Change, released_ms: int | None) -> Start:
        member = _adding_member(epoch, change)
        if self._history.settings.consumer_type == PULL:
            return zero(PULL_ALWAYS_ZERO)
        if missing_queue(epoch.readable, change.queue):
            return Start(QUERY_FAILED, status=FAILED)
        if self._history.committed_offsets is None:
            return Start(None, status=UNKNOWN)
        if member.message_model == BROADCASTING:
            return self._local_start(change, member)
        popped_ms = self._popped.since_ms(change.queue)
        if popped_ms is not None:
            return popped_start(change, popped_ms, self._commits, self._offsets)
        past = self._past.get(change.queue)
        if past is not None or self._commits.newest(change.queue, change.earliest_ms):
            return self._stored_start(epoch, change, past or _Past(), released_ms)
        return uncommitted_start(self._history, self._offsets, change, member)

    def _local_start(self, change: Change, member: Member) -> Start:
        """BROADCASTING: each client's own offset file."""
        commit = self._commits.newest(change.queue, change.earliest_ms, change.client_id)
        past = self._past.get(change.queue)
        if commit is None and (past is None or change.client_id not in past.clients):
            return uncommitted_start(self._history, self._offsets, change, member)
        high = self._offsets.max_by(change.queue, change.latest_ms)
        if commit is None:
            return Start(LOCAL_STORE, None, 0, high, UNKNOWN)
        later = self._commits.within(
            change.queue, change.earliest_ms, change.latest_ms, {change.client_id}
        )
        values = [commit.committed_offset, *(row.committed_offset for row in later)]
        return Start(LOCAL_STORE, values[-1], min(values), max(values))

    def _stored_start(
        self, epoch: Epoch, change: Change, past: _Past, released_ms: int | None
    ) -> Start:
        """The group's commit, which the last owner may still be moving."""
        queue, earliest_ms = change.queue, change.earliest_ms
        stored = self._commits.newest(queue, earliest_ms)
        inside = self._commits.within(queue, earliest_ms, change.latest_ms, past.clients)
        values = [row.committed_offset for row in inside]
        free_since = past.released_ms if released_ms is None else released_ms
        if stored is not None:
            values.append(stored.committed_offset)
            for client_id in past.last_holders:
                own = self._commits.newest(queue, earliest_ms, client_id)
                if own is not None:
                    values.append(own.committed_offset)
            if free_since is not None and stored.observed_ms >= free_since:
                return Start(STORED, stored.committed_offset, min(values), max(values))
        # Only who held the queue until now persists it on the way out; whoever lost it earlier,
        # was lost, or takes it back commits what it read afterwards.
        handing_over = past.last_holders - {change.client_id} - {key[0] for key in epoch.lost}
        handed_over = [
            row for row in inside if past.released_ms is None and row.client_id in handing_over
        ]
        estimate = handed_over[-1].committed_offset if handed_over else None
        if estimate is None:
            estimate = stored.committed_offset if stored is not None else past.low
        if stored is None and past.low is not None:
            values.append(past.low)
        low = min(values) if values else 0
        unseen_drop = released_ms is not None and not _was_lost(epoch, past)
        if not unseen_drop and any(row.client_id in past.last_holders for row in inside):
            high: int | None = max(values)
        else:
            top = self._offsets.max_by(queue, min(free_since or change.latest_ms, change.latest_ms))
            high = None if top is None else max([top, *values])
        return Start(STORED, estimate, low, high, UNKNOWN if estimate is None else OK)

    def _row(self, epoch: Epoch, change: Change, start: Start) -> Row:
        seen = self._offsets.newest(change.queue, change.earliest_ms)
        mine = change.client_id if start.rule == LOCAL_STORE else None
        stored = self._commits.newest(change.queue, change.earliest_ms, mine)
        stored_offset = None if stored is None else stored.committed_offset
        corrected = skipped = None
        if start.offset is not None and seen is not None:
            corrected = first_pull_correction(
                offset=start.offset,
                min_offset=seen.min_offset,
                max_offset=seen.max_offset,
                version=self._history.settings.broker_version,
            )
            effective = start.offset if corrected is None else corrected
            skipped = max(0, effective - max(seen.min_offset, stored_offset or 0))
        return {
            "epoch": epoch.number,
            "change_ms": epoch.from_ms,
            "earliest_ms": change.earliest_ms,
            "latest_ms": change.latest_ms,
            **change.queue._asdict(),
            "client_id": change.client_id,
            "start_offset": start.offset,
            "start_offset_low": start.low,
            "start_offset_high": start.high,
            "rule": start.rule,
            "stored_offset": stored_offset,
            "min_offset": None if seen is None else seen.min_offset,
            "max_offset": None if seen is None else seen.max_offset,
            "corrected_offset": corrected,
            "skipped": skipped,
            "status": start.status,
        }


def _was_lost(epoch: Epoch, past: _Past) -> bool:
    """Every last holder was lost in this epoch."""
    return past.last_holders <= {client_id for client_id, _ in epoch.lost}


def _adding_member(epoch: Epoch, change: Change) -> Member:
    """The process that takes the queue; of several with one id the first by channel id."""
    takers = [
        key
        for key, queues in epoch.holdings.items()
        if key[0] == change.client_id
        and change.queue in queues
        and change.queue not in epoch.before.get(key, frozenset())
    ]
    return epoch.members[min(takers, key=lambda key: key[1] or "")]
