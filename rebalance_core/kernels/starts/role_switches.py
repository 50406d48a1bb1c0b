"""The losses and returns of masters that affect each queue.

See `replay.role_switches.RoleSwitches`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rebalance_core.kernels import segments
from rebalance_core.kernels.outages import OutageSpans, find_outages
from rebalance_core.kernels.ownership.prepared_groups import PreparedGroups
from rebalance_core.kernels.queues import Queues
from rebalance_core.kernels.segments import Bools, Ints
from rebalance_core.kernels.starts.lookups import SeenCommits, pick
from rebalance_core.model.events import MASTER_MODES, REFUSED, SLAVE_READ
from rebalance_core.model.times import SLAVE_COPY_MS
from rebalance_core.protocol.settling_windows import MASTER_BACK_MS

_WITHOUT_END = [MASTER_MODES.index(mode) for mode in (REFUSED, SLAVE_READ)]


@dataclass(frozen=True, slots=True)
class Switched:
    """The role switches of each row's queue that began before the end of its window."""

    count: Ints
    kept_ms: Ints
    """The time by which commits must have arrived for the answering broker to know them; `NEVER`:
    there is no switch.
    """
    settled_ms: Ints
    """When all switches are over; `NEVER`: a switch is still in progress; `NONE`: there is none."""

    def __len__(self) -> int:
        return len(self.count)

    @property
    def any(self) -> Bools:
        """Return True if there is such a switch."""
        return self.count > 0


class RoleSwitchArrays:
    """The outages of masters, for the queues of some groups.

    Args:
        prepared: the groups.
        queues: the queues to look up, by their index.
    """

    def __init__(self, prepared: PreparedGroups, queues: Queues) -> None:
        brokers = prepared.grid.brokers
        readable = (brokers.broker >= 0) & (prepared.grid.most_readable > 0)
        keys = segments.distinct(segments.pair(brokers.group[readable], brokers.broker[readable]))
        self._outages = outages = find_outages(prepared.encoded.events)
        key_index = segments.find(keys, segments.pair(brokers.group, np.maximum(brokers.broker, 0)))
        self._broker = np.where(brokers.broker >= 0, key_index, segments.NONE)[queues.topic_broker]
        first, end = outages.outages_of(*segments.halves(keys))
        # a queue that no client can read, because only CONFIG lists it, has none
        self._first_outage, self._last_outage = np.append(first, 0), np.append(end, 0)
        broker, self.began_ms, self.kept_ms, over_ms = _switches(keys, outages)
        first, end = segments.equal_range(broker, np.arange(len(keys)))
        self._first, self._end = np.append(first, 0), np.append(end, 0)
        self._least_kept = segments.running_min(self.kept_ms, broker)
        self._all_over = -segments.running_min(-over_ms, broker)

    def __bool__(self) -> bool:
        return len(self.began_ms) > 0

    def first(self, queue: Ints) -> Ints:
        """Return the position of each queue's first switch."""
        return self._first[self._broker[queue]]

    def until(self, queue: Ints, at_ms: Ints) -> Ints:
        """Count each queue's switches that began by a given moment."""
        first = self.first(queue)
        end = self._end[self._broker[queue]]
        return segments.bisect(self.began_ms, first, end, at_ms, right=True) - first

    def switched(self, queue: Ints, count: Ints) -> Switched:
        """Return the combined effect of the first `count` switches of each queue."""
        last = np.where(count > 0, self.first(queue) + count - 1, segments.NONE)
        kept_ms = np.append(self._least_kept, segments.NEVER)[last]
        return Switched(count, kept_ms, pick(self._all_over, last))

    def newest(self, commits: SeenCommits, queue: Ints, at_ms: Ints) -> Ints:
        """Return the newest commit up to a given moment that the answering broker knows.

        A master that has returned does not know commits that went to its slaves. Return `NONE` if
        there is no commit.
        """
        row, outages = commits.newest(queue, at_ms), self._outages
        first, end = self._outages_of(queue)
        left = np.flatnonzero((row >= 0) & (end > first))
        while len(left):
            sent_ms = commits.at_ms[row[left]]
            outage = (
                segments.bisect(outages.down_ms, first[left], end[left], sent_ms, right=True) - 1
            )
            up_ms = outages.up_ms[outage]
            lost = (outage >= first[left]) & (sent_ms < up_ms) & (up_ms <= at_ms[left])
            left, outage = left[lost], outage[lost]
            row[left] = commits.newest(queue[left], outages.down_ms[outage] - 1)
            left = left[row[left] >= 0]
        return row

    def lost_by(self, queue: Ints, at_ms: Ints) -> Bools:
        """Return whether the broker's own master was lost at or before a given moment."""
        first, end = self._outages_of(queue)
        return segments.bisect(self._outages.down_ms, first, end, at_ms, right=True) > first

    def has_no_end(self, queue: Ints, earliest_ms: Ints, latest_ms: Ints) -> Bools:
        """Return whether only slaves, which do not know a queue's end, are up throughout the
        window.
        """
        outages = self._outages
        first, end = self._outages_of(queue)
        outage = segments.bisect(outages.down_ms, first, end, earliest_ms, right=True) - 1
        outage = np.where(outage >= first, outage, segments.NONE)
        lasts = pick(outages.up_ms, outage) > latest_ms
        return lasts & np.isin(pick(outages.mode, outage), _WITHOUT_END)

    def _outages_of(self, queue: Ints) -> tuple[Ints, Ints]:
        broker = self._broker[queue]
        return self._first_outage[broker], self._last_outage[broker]


def _switches(keys: Ints, outages: OutageSpans) -> tuple[Ints, Ints, Ints, Ints]:
    """Return (key index, began_ms, kept_ms, settled_ms), sorted by key, began_ms and kept_ms.

    Args:
        keys: (group, broker) with readable queues, as sorted pairs.
        outages: the outages of all groups.
    """
    key_of = segments.find(keys, segments.pair(outages.group, outages.broker))
    mine = np.flatnonzero(key_of >= 0)
    back = mine[outages.up_ms[mine] != segments.NEVER]
    asker, other = segments.matching(segments.halves(keys)[0], outages.group[back])
    of = back[asker]
    apart = other != key_of[of]
    other, up_ms = other[apart], outages.up_ms[of[apart]]
    down_ms, own_up = outages.down_ms[mine], outages.up_ms[mine]
    broker = np.concatenate([key_of[mine], other])
    began_ms = np.concatenate([down_ms, up_ms])
    kept_ms = np.concatenate([down_ms - SLAVE_COPY_MS, up_ms])
    own_over = np.where(own_up == segments.NEVER, segments.NEVER, own_up + MASTER_BACK_MS)
    over_ms = np.concatenate([own_over, up_ms + MASTER_BACK_MS])
    order = np.lexsort((kept_ms, began_ms, broker))
    return broker[order], began_ms[order], kept_ms[order], over_ms[order]
