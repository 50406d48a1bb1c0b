"""Where the first pop starts in a queue that members begin to share: the rows of pop_starts."""

from dataclasses import replace
from typing import Any

from rebalance_core.model.group_settings import PROXY_REBALANCE
from rebalance_core.model.queue import MessageQueue
from rebalance_core.model.verdicts import UNKNOWN
from rebalance_core.model.versions import parse_version
from rebalance_core.protocol.commits import COMMIT_TRANSIT_MS
from rebalance_core.protocol.pop_start import (
    POP_LAST,
    POP_MIN,
    POPS_FROM_MEMORY,
    first_pop_offset,
    last_message,
    pops_from_min,
)
from rebalance_core.protocol.settling_windows import ROUTE_MS
from rebalance_core.protocol.start_offset import STORED
from rebalance_core.replay.history import CommittedOffset, Epoch, GroupHistory, QueueOffset
from rebalance_core.replay.masters import MasterOutages
from rebalance_core.replay.member import Member
from rebalance_core.replay.offset_observations import CommittedOffsets, QueueOffsets
from rebalance_core.replay.outages import Outages
from rebalance_core.replay.role_switches import RoleSwitches
from rebalance_core.replay.shared_topics import SharedTopic
from rebalance_core.replay.start_rule import StartOffset
from rebalance_core.replay.stored_start import StoredStarts, highest
from rebalance_core.replay.topic_deletions import BEFORE_ALL_MS, DeletionsByQueue

Row = dict[str, Any]


class PopStarts:
    """The starts of the queues that members begin to share; `rows` receives the epochs in order.

    Args:
        history: the group with its observations.
    """

    def __init__(self, history: GroupHistory) -> None:
        self._history = history
        self._deletions = DeletionsByQueue(history)
        self._offsets = QueueOffsets(history.queue_offsets or (), self._deletions)
        self._commits = CommittedOffsets(history.committed_offsets or (), Outages(history.events))
        self._outages = MasterOutages(history.events)
        switches = RoleSwitches(history.events, ())
        self._stored = StoredStarts(self._offsets, self._commits, self._deletions, switches)
        self._shared: set[MessageQueue] = set()
        self._readable: set[MessageQueue] = set()
        """The queues that members of the group could read before the epoch, by pull or pop."""

    def rows(self, epoch: Epoch) -> list[Row]:
        """Return one row per readable queue that is shared now but was not in the previous
        epoch.
        """
        shared = {queue for topic in epoch.shared.values() for queue in topic.queues}
        rows = []
        if not epoch.initial:
            for name, topic in epoch.shared.items():
                modes = self._init_modes(epoch, name, topic)
                new = (queue for queue in topic.queues if queue not in self._shared)
                rows += [self._row(epoch, queue, modes) for queue in new]
        self._shared = shared
        self._readable |= shared
        self._readable.update(queue for queues in epoch.readable.values() for queue in queues)
        return rows

    def _init_modes(self, epoch: Epoch, name: str, topic: SharedTopic) -> set[bool]:
        """Return `pops_from_min` for the members that pop the topic."""
        settings = self._history.settings

        def pops(member: Member) -> bool:
            proxied = member.rebalance_mode == PROXY_REBALANCE
            asks = topic.share_queue_num is not None and member.asks_broker(settings)
            return member.subscribes(name) and (proxied or asks)

        return {
            pops_from_min(member.rebalance_mode, member.consume_from_where)
            for member in epoch.members.values()
            if pops(member)
        }

    def _start(
        self,
        queue: MessageQueue,
        window: tuple[int, int],
        stored: CommittedOffset | None,
        seen: QueueOffset | None,
        modes: set[bool],
    ) -> StartOffset:
        """Return the start, with bounds over all answers that the broker may give within the
        window.
        """
        earliest_ms, latest_ms = window
        top = self._offsets.max_by(queue, latest_ms, earliest_ms)
        if stored is not None:
            start = self._committed(queue, window, stored, top)
        elif queue in self._readable:
            start = StartOffset(STORED, None, 0, top, UNKNOWN)
        else:
            start = self._uncommitted(queue, window, seen, modes)
        outages = self._outages.outages_of(queue.broker_name)
        if any(outage.down_ms <= latest_ms for outage in outages):
            start = replace(start, low=0, high=highest(start.high, top))
        deleted_ms = self._deletions.last(queue, latest_ms)
        if max(BEFORE_ALL_MS, earliest_ms - ROUTE_MS - COMMIT_TRANSIT_MS) < deleted_ms:
            start = replace(start, low=0, high=None)
        return start

    def _committed(
        self,
        queue: MessageQueue,
        window: tuple[int, int],
        stored: CommittedOffset,
        top: int | None,
    ) -> StartOffset:
        """Return the start at the commit, which pulling owners and other pops may still advance."""
        earliest_ms, latest_ms = window
        after_ms = self._deletions.forgotten(queue, earliest_ms)
        arrived = self._commits.newest_arrived(queue, earliest_ms, after_ms)
        later = self._commits.since(queue, arrived, latest_ms) if arrived else []
        values = [stored.committed_offset, *(row.committed_offset for row in later)]
        low = min(values) if arrived else 0
        return StartOffset(STORED, values[0], low, highest(top, *values))

    def _uncommitted(
        self,
        queue: MessageQueue,
        window: tuple[int, int],
        seen: QueueOffset | None,
        modes: set[bool],
    ) -> StartOffset:
        """Return the start of a queue that the group reads for the first time."""
        starts = [self._by_mode(queue, window, seen, from_min) for from_min in sorted(modes)]
        if len(starts) == 1:
            return starts[0]
        return StartOffset(None, None, 0, highest(*(s.high for s in starts), 0), UNKNOWN)

    def _by_mode(
        self,
        queue: MessageQueue,
        window: tuple[int, int],
        seen: QueueOffset | None,
        from_min: bool,
    ) -> StartOffset:
        earliest_ms, latest_ms = window
        after = self._offsets.first_from(queue, latest_ms, earliest_ms)
        if from_min:
            most = None if after is None else after.min_offset
        else:
            most = None if after is None else last_message(after.max_offset)
        version = self._history.settings.broker_version
        from_memory = not from_min and parse_version(version) >= POPS_FROM_MEMORY
        if seen is None:
            rule = POP_MIN if from_min else None if from_memory else POP_LAST
            return StartOffset(rule, None, 0, most, UNKNOWN)
        rule, offset = first_pop_offset(
            from_min=from_min,
            min_offset=seen.min_offset,
            max_offset=seen.max_offset,
            head_cached=seen.head_cached,
            version=version,
        )
        low = 0 if from_memory and seen.min_offset <= 0 else offset
        return StartOffset(rule, offset, low, None if most is None else max(most, low))

    def _row(self, epoch: Epoch, queue: MessageQueue, modes: set[bool]) -> Row:
        earliest_ms, latest_ms = epoch.from_ms, epoch.latest_ms
        seen = self._offsets.newest(queue, earliest_ms)
        stored = None
        start = StartOffset(None, status=UNKNOWN)
        if self._history.committed_offsets is not None:
            stored = self._stored.newest(queue, earliest_ms)
            start = self._start(queue, (earliest_ms, latest_ms), stored, seen, modes)
        stored_offset = None if stored is None else stored.committed_offset
        skipped = None
        if start.offset is not None and seen is not None:
            skipped = max(0, start.offset - max(seen.min_offset, stored_offset or 0))
        return {
            "epoch": epoch.number,
            "change_ms": earliest_ms,
            "earliest_ms": earliest_ms,
            "latest_ms": latest_ms,
            **queue._asdict(),
            "start_offset": start.offset,
            "start_offset_low": start.low,
            "start_offset_high": start.high,
            "rule": start.rule,
            "stored_offset": stored_offset,
            "min_offset": None if seen is None else seen.min_offset,
            "max_offset": None if seen is None else seen.max_offset,
            "skipped": skipped,
            "status": start.status,
            "reason": None,
        }
