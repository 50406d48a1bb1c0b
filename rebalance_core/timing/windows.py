"""The periods in which a timeline's changes are simulated, as arrays."""

from dataclasses import dataclass

import numpy as np

from rebalance_core.kernels.segments import Ints, first_of_run
from rebalance_core.model.events import TOPIC_CONFIG, TOPIC_DELETED
from rebalance_core.timing.delays import TOPIC_VISIBLE
from rebalance_core.timing.group_timeline import GroupTimeline
from rebalance_core.timing.options import MS_US, SECOND_US
from rebalance_core.timing.stretches import stretches_of

_RESTED_US = 60 * SECOND_US
"""The time that a route change takes to spread; later events are seldom its effects."""


@dataclass(frozen=True, eq=False)
class Windows:
    """The windows of all changes, as arrays with one value per change.

    Within a run, each change begins before the previous one is over.

    Attributes:
        change_ms: the time of the change, as logged.
        run: the number of its run.
        run_change_ms: the first change of its run.
        run_end_ms: the end of its run's simulation.
        followed_ms: the time from the change to the next one, or until the simulation of the change
            ends if that is sooner.
    """

    change_ms: Ints
    run: Ints
    run_change_ms: Ints
    run_end_ms: Ints
    followed_ms: Ints
    _seen_us: Ints

    def change_of(self, at_us: Ints) -> Ints:
        """Return the number of the latest change that a member may have seen by a time, or -1."""
        return np.searchsorted(self._seen_us, at_us, side="right") - 1


def windows_of(timeline: GroupTimeline) -> Windows:
    """Return the windows of a timeline."""
    changes = timeline.changes
    change_ms = np.array([change.change_ms for change in changes], np.int64)
    begin_us = np.array([change.begin_us for change in changes], np.int64)
    end_us = np.array([change.end_us for change in changes], np.int64)
    # A window that begins before that of an older change takes all of its time.
    newest_us = np.minimum.accumulate(begin_us[::-1])[::-1]
    for stretch in stretches_of(timeline):  # the first takes all until the next
        newest_us[stretch.changes.start] = stretch.begin_us
    alone = np.ones(len(changes), np.bool_)
    alone[1:] = newest_us[1:] > end_us[:-1]
    run = np.cumsum(alone) - 1
    first = np.maximum.accumulate(np.where(first_of_run(run), np.arange(len(run)), 0))
    end_ms = end_us // MS_US
    run_end_ms = np.zeros(len(changes), np.int64)
    np.maximum.at(run_end_ms, run, end_ms)
    following_ms = np.append(change_ms[1:], 0)
    touched = np.append(~alone[1:], False)
    return Windows(
        change_ms=change_ms,
        run=run,
        run_change_ms=change_ms[first],
        run_end_ms=run_end_ms[run],
        followed_ms=np.maximum(np.where(touched, following_ms, end_ms) - change_ms, 0),
        _seen_us=_seen_us(timeline, newest_us),
    )


def _seen_us(timeline: GroupTimeline, begin_us: Ints) -> Ints:
    """Return when members may first have seen each change, as topics may be logged after they take
    effect.

    This applies only if the previous change was long over; otherwise the event belongs to that
    change.
    """
    seen_us = begin_us.copy()
    for number, change in enumerate(timeline.changes):
        if number > 0 and not {TOPIC_CONFIG, TOPIC_DELETED}.isdisjoint(change.causes):
            rested_us = timeline.changes[number - 1].change_ms * MS_US + _RESTED_US
            early_us = max(int(begin_us[number]) + TOPIC_VISIBLE.shortest, rested_us)
            seen_us[number] = min(int(begin_us[number]), early_us)
    return seen_us
