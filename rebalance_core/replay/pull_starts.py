"""The starts of new owners: pull_starts, with bounds that cover every possible answer."""

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import groupby, islice
from typing import Any

from rebalance_core.model.group_settings import BROADCASTING, PULL
from rebalance_core.model.queue import MessageQueue
from rebalance_core.model.verdicts import FAILED, UNKNOWN
from rebalance_core.protocol import start_offset
from rebalance_core.protocol.commits import COMMIT_TRANSIT_MS
from rebalance_core.protocol.first_pull import first_pull_correction
from rebalance_core.replay import start_rule
from rebalance_core.replay.changes import ADD, INITIAL, OwnerChange, holders_by_queue
from rebalance_core.replay.history import CommittedOffset, Epoch, GroupHistory, QueueOffset
from rebalance_core.replay.member import Member
from rebalance_core.replay.offset_observations import CommittedOffsets, QueueOffsets
from rebalance_core.replay.outages import Outages
from rebalance_core.replay.popped_queues import PoppedQueues, popped_start
from rebalance_core.replay.role_switches import RoleSwitches
from rebalance_core.replay.start_rule import StartOffset
from rebalance_core.replay.stored_start import Handover, Past, StoredStarts, highest
from rebalance_core.replay.topic_deletions import BEFORE_ALL_MS, DeletionsByQueue

Row = dict[str, Any]

OF_THE_QUEUE = (
    start_offset.STORED,
    start_offset.BROKER_ZERO,
    start_offset.MAX_OFFSET,
    start_offset.RETRY_MAX,
    start_offset.TIMESTAMP_SEARCH,
)
"""Rules whose answer changes when the topic is deleted and recreated."""


class PullStarts:
    """The starts of a group's ADDs, epoch by epoch.

    Args:
        history: the group with its observations; ``committed_offsets`` None means that commits are
            unknown, so only the rules that always give 0 apply.
        changes: the changes of every epoch, in order.
    """

    def __init__(
        self, history: GroupHistory, changes: Iterable[tuple[Epoch, list[OwnerChange]]]
    ) -> None:
        self._history = history
        self._deletions = DeletionsByQueue(history)
        self._offsets = QueueOffsets(history.queue_offsets or (), self._deletions)
        self._commits = CommittedOffsets(history.committed_offsets or (), Outages(history.events))
        changes = list(changes)
        readable = (q for epoch, _ in changes for queues in epoch.readable.values() for q in queues)
        brokers = {queue.broker_name for queue in readable}
        self._switches = RoleSwitches(history.events, brokers)
        self._stored = StoredStarts(self._offsets, self._commits, self._deletions, self._switches)
        self._past: dict[MessageQueue, Past] = {}
        self._popped = PoppedQueues()
        self._unsure: set[MessageQueue] = set()
        """Queues that a member may have read since their last known holder."""
        self._added: dict[MessageQueue, list[tuple[OwnerChange, Epoch]]] = {}
        for epoch, of_epoch in changes:
            for change in of_epoch:
                if change.action == ADD:
                    self._added.setdefault(change.queue, []).append((change, epoch))
        for added in self._added.values():
            added.sort(key=_earliest_ms)

    def rows(self, epoch: Epoch, changes: list[OwnerChange]) -> list[Row]:
        """Return the rows of an epoch; must be called for every epoch, in order."""
        held = holders_by_queue(epoch.holdings, {change.queue for change in changes})
        self._unsure |= epoch.unsure_before
        rows: list[Row] = []
        for queue, of_queue in groupby(changes, key=lambda change: change.queue):
            rows += self._of_queue(epoch, queue, list(of_queue), held.get(queue, {}))
        self._unsure -= held.keys()
        self._popped.follow(epoch, changes)
        return rows

    def _of_queue(
        self, epoch: Epoch, queue: MessageQueue, changes: list[OwnerChange], held: Mapping[str, int]
    ) -> list[Row]:
        past = self._past.setdefault(queue, Past())
        for change in changes:
            self._stored.follow_masters(past, change)
        adds = [change for change in changes if change.action == ADD]
        drops = [change for change in changes if change.action != ADD]
        gone_ms = max([past.gone_ms, *(change.latest_ms for change in drops)])
        stays = past.held and not past.last_holders.isdisjoint(held)
        rows: list[Row] = []
        lows: list[int | None] = []
        for change in adds:
            if change.kind == INITIAL:
                continue
            handover = Handover(
                change,
                past,
                gone_ms,
                stays=stays,
                others_start=self._others_start(change),
                persists=past.last_holders
                - {change.client_id}
                - {client_id for client_id, _ in epoch.lost},
            )
            start = self._start(epoch, handover)
            rows.append(self._row(epoch, change, start))
            lows.append(self._lowest(rows[-1], change, start))
        past.gone_ms, past.held = gone_ms, bool(held)
        if drops:
            past.dropped_ms = epoch.from_ms
        if held:
            _remember(past, adds, held, stays=stays, lows=lows)
        return rows

    def _others_start(self, change: OwnerChange) -> bool:
        """Return whether another client may start and commit before, at the same time or later.

        It may do so later only if the client of the change does not know yet that the queue passes
        to another client, or regains it within the window.
        """
        added = self._added[change.queue]
        first = bisect_left(added, change.earliest_ms, key=_earliest_ms)
        for other, epoch in islice(added, first, None):
            again = other.client_id == change.client_id
            if other.earliest_ms == change.earliest_ms:
                if not again:
                    return True
            elif other.earliest_ms > change.latest_ms:
                return False
            elif again or epoch.seen_late:
                return True
        return False

    def _start(self, epoch: Epoch, handover: Handover) -> StartOffset:
        change, queue = handover.change, handover.queue
        if self._history.settings.consumer_type == PULL:
            return start_rule.zero(start_offset.PULL_ALWAYS_ZERO)
        if start_rule.missing_queue(epoch.readable, queue):
            return StartOffset(start_offset.QUERY_FAILED, status=FAILED)
        if self._history.committed_offsets is None or queue in self._unsure:
            return StartOffset(None, status=UNKNOWN)
        member = _adding_member(epoch, change)
        if member.message_model == BROADCASTING:
            start = self._local_start(handover, member)
        elif (popped_ms := self._popped.since_ms(queue)) is not None:
            forgotten_ms = self._deletions.forgotten(queue, change.earliest_ms)
            before = self._commits.newest(queue, popped_ms, after_ms=forgotten_ms)
            stored = self._stored.newest(queue, change.earliest_ms)
            start = popped_start(change, before, stored, self._offsets)
            if handover.past.switches and start.low is not None:
                start = replace(start, low=0)
        else:
            start = self._group_start(handover, member)
        deleted = self._deletions.last(queue, change.latest_ms) > change.earliest_ms
        if deleted and start.low is not None and start.rule in OF_THE_QUEUE:
            return replace(start, low=0, high=None)
        return start

    def _group_start(self, handover: Handover, member: Member) -> StartOffset:
        """Return the start given by the broker's answer or, without one, by the client's own
        rule.
        """
        change, past, queue = handover.change, handover.past, handover.queue
        uncommitted = None
        if self._stored.may_be_unknown(queue, past, change.earliest_ms):
            uncommitted = self._uncommitted(change, member)
            others = handover.others_start or past.switches
            if others and uncommitted.low is not None:
                top = self._offsets.max_by(queue, change.latest_ms, change.earliest_ms)
                uncommitted = replace(uncommitted, low=0, high=highest(uncommitted.high, top))
        forgotten_ms = self._deletions.forgotten(queue, change.earliest_ms)
        forgotten = bool(past.last_holders) and not past.held and past.dropped_ms <= forgotten_ms
        if self._stored.newest(queue, change.earliest_ms) or (past.last_holders and not forgotten):
            return self._stored.start(handover, uncommitted)
        assert uncommitted is not None
        if forgotten and past.gone_ms + COMMIT_TRANSIT_MS > change.earliest_ms:
            # An owner that has not yet released the queue may still commit its progress in the old
            # queue.
            return replace(uncommitted, high=None)
        return uncommitted

    def _uncommitted(self, change: OwnerChange, member: Member) -> StartOffset:
        """Return the start if nothing is committed; only a queue's master knows the end."""
        start = start_rule.client_start(self._history, self._offsets, change, member)
        return start_rule.without_end(start) if self._switches.has_no_end(change) else start

    def _local_start(self, handover: Handover, member: Member) -> StartOffset:
        """Return the start given by a BROADCASTING client's own offset file."""
        change, queue = handover.change, handover.queue
        commit = self._commits.newest(queue, change.earliest_ms, change.client_id)
        if commit is None and change.client_id not in handover.past.clients:
            return self._uncommitted(change, member)
        high = self._offsets.max_by(queue, change.latest_ms, change.earliest_ms)
        if commit is None:
            return StartOffset(start_offset.LOCAL_STORE, None, 0, high, UNKNOWN)
        later = self._commits.within(
            queue, change.earliest_ms, change.latest_ms, {change.client_id}
        )
        values = [commit.committed_offset, *(row.committed_offset for row in later)]
        return StartOffset(start_offset.LOCAL_STORE, values[-1], min(values), max(values))

    def _decided_by(self, change: OwnerChange, start: StartOffset) -> CommittedOffset | None:
        """Return the newest earlier commit: the client's own if its local store applies."""
        if start.rule == start_offset.LOCAL_STORE:
            return self._commits.newest(change.queue, change.earliest_ms, change.client_id)
        return self._stored.newest(change.queue, change.earliest_ms)

    def _row(self, epoch: Epoch, change: OwnerChange, start: StartOffset) -> Row:
        seen = self._offsets.newest(change.queue, change.earliest_ms)
        stored = self._decided_by(change, start)
        stored_offset = None if stored is None else stored.committed_offset
        corrected = skipped = None
        if start.offset is not None and seen is not None:
            corrected = first_pull_correction(
                offset=start.offset,
                min_offset=seen.min_offset,
                max_offset=seen.max_offset,
                version=self._history.settings.broker_version,
            )
            if start.offset > seen.max_offset and not self._is_beyond(change, start, seen):
                corrected = None
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
            "reason": None,
        }

    def _is_beyond(self, change: OwnerChange, start: StartOffset, seen: QueueOffset) -> bool:
        """Return True if the start was committed before the observation but is beyond the observed
        end.

        Otherwise the queue has grown since, because a client that commits has read that far.
        """
        queue, by_ms = change.queue, seen.observed_ms
        if start.rule == start_offset.LOCAL_STORE:
            most = self._commits.highest(queue, BEFORE_ALL_MS, by_ms, change.client_id)
        else:
            forgotten_ms = self._deletions.forgotten(queue, change.earliest_ms)
            most = self._commits.highest(queue, forgotten_ms, by_ms)
        return most is not None and start.offset is not None and most >= start.offset

    def _lowest(self, row: Row, change: OwnerChange, start: StartOffset) -> int | None:
        """Return the lowest offset at which the owner can have begun to read, after correcting its
        first pull.

        An observation older than the commit does not bound it.
        """
        stored = self._decided_by(change, start)
        seen = self._offsets.newest(change.queue, change.earliest_ms)
        corrected: int | None = row["corrected_offset"]
        if start.low is None or corrected is None or seen is None or stored is None:
            return start.low
        return start.low if seen.observed_ms < stored.observed_ms else min(start.low, corrected)


def _remember(
    past: Past,
    adds: list[OwnerChange],
    held: Mapping[str, int],
    *,
    stays: bool,
    lows: list[int | None],
) -> None:
    """Record the effect of an epoch on a queue that still has a holder.

    Args:
        past: changed in place; the moment at which the queue was released is set.
        adds: the adds of the queue in this epoch.
        held: the processes of each client that now hold it.
        stays: whether a client that held it before still does.
        lows: the known lowest starts for those adds.
    """
    past.clients |= held.keys()
    past.last_holders = set(held)
    past.alone_ms = past.gone_ms if sum(held.values()) == 1 else None
    for change in adds:
        initial = change.kind == INITIAL
        past.taken_ms = BEFORE_ALL_MS if initial else max(past.taken_ms, change.latest_ms)
        past.since_ms = past.since_ms if stays else change.earliest_ms
    if lows:
        starts = [past.low, *lows] if stays else lows
        past.low = None if None in starts else min(low for low in starts if low is not None)


def _earliest_ms(added: tuple[OwnerChange, Epoch]) -> int:
    return added[0].earliest_ms


def _adding_member(epoch: Epoch, change: OwnerChange) -> Member:
    """Return the process that takes the queue; of several with the same id, the one with the lowest
    channel id.
    """
    takers = [
        key
        for key, queues in epoch.holdings.items()
        if key[0] == change.client_id
        and change.queue in queues
        and change.queue not in epoch.before.get(key, frozenset())
    ]
    return epoch.members[min(takers, key=lambda key: key[1] or "")]
