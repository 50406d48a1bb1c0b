"""When each queue should have an owner: while it is readable and a member reads its topic."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from rebalance_core.kernels.segments import Bools, Ints
from rebalance_core.timing.group_timeline import GroupTimeline, LoggedTime
from rebalance_core.timing.options import MS_US

FIRST_MS = -(1 << 61)
LAST_MS = 1 << 61
"""The bounds of open-ended stretches, before the first and after the last event."""

Stretch = tuple[int, int]


@dataclass(frozen=True, eq=False)
class ReadableAt:
    """The state of each queue at a time.

    Attributes:
        stretch: the last stretch that had begun; if none had, a stretch of another queue, or -1.
        place: equal at two times if the queue did not change in between; even inside a stretch, odd
            outside.
        inside: whether the queue is readable and a member reads it.
    """

    stretch: Ints
    place: Ints
    inside: Bools


@dataclass(frozen=True, eq=False)
class ReadableSpans:
    """The stretches of each queue, sorted; there is always time between two stretches of a queue.

    Attributes:
        first: (queues + 1,) where the stretches of each queue begin.
        begin_ms: (stretches,) when each begins.
        end_ms: (stretches,) when each ends, exclusive.
    """

    first: Ints
    begin_ms: Ints
    end_ms: Ints

    def at(self, queue: Ints, at_ms: Ints) -> ReadableAt:
        """Return the state of each queue at a time."""
        if not len(self.begin_ms):
            nowhere = np.full(len(queue), -1, np.int64)
            return ReadableAt(nowhere, nowhere, np.zeros(len(queue), np.bool_))
        begins, low, last = self._begins
        wanted = queue * (last - low + 1) + np.clip(at_ms, low, last) - low
        stretch = np.searchsorted(begins, wanted, side="right") - 1
        begun = stretch >= self.first[queue]
        inside = begun & (at_ms < self.end_ms[stretch])
        return ReadableAt(stretch, 2 * stretch + ~inside, inside)

    @cached_property
    def _begins(self) -> tuple[Ints, int, int]:
        """One number per stretch, ascending with queue and start, and the bounds to which starts
        are clipped.
        """
        finite = self.begin_ms[self.begin_ms > FIRST_MS]
        last = int(finite.max(initial=0))
        low = int(finite.min(initial=last)) - 1
        owner = np.repeat(np.arange(len(self.first) - 1), np.diff(self.first))
        return owner * (last - low + 1) + np.clip(self.begin_ms, low, last) - low, low, last

    def begin(self, stretch: Ints) -> Ints:
        """Return when stretches begin; accept any number that `at` returns."""
        return self.begin_ms[stretch] if len(self.begin_ms) else np.zeros(len(stretch), np.int64)

    def end(self, stretch: Ints) -> Ints:
        """Return when stretches end; accept any number that `at` returns."""
        return self.end_ms[stretch] if len(self.end_ms) else np.zeros(len(stretch), np.int64)

    def mask(self, at_ms: int) -> Bools:
        """Return (queues,) whether each queue is in a stretch at this time."""
        queues = np.arange(len(self.first) - 1)
        return self.at(queues, np.full(len(queues), at_ms, np.int64)).inside


def readable_of(timeline: GroupTimeline) -> ReadableSpans:
    """Return the stretches of every queue in a timeline, in logged times.

    A topic counts while a live member subscribes to it. Without live members, the topics of the
    last members count, as in the ledger.
    """
    wanted = _wanted(timeline)
    by_queue: list[list[Stretch]] = [[] for _ in timeline.queues]
    for topic, versions in enumerate(timeline.routes):
        ends = [*(_ms(version.moment) for version in versions[1:]), LAST_MS]
        for version, end in zip(versions, ends, strict=True):
            since = _ms(version.moment)
            for begin, until in wanted[topic]:
                clipped = max(begin, since), min(until, end)
                if clipped[0] < clipped[1]:
                    for queue in version.queues:
                        by_queue[queue].append(clipped)
    joined = [list(_joined(stretches)) for stretches in by_queue]
    first = np.zeros(len(joined) + 1, np.int64)
    np.cumsum([len(each) for each in joined], out=first[1:])
    flat = np.array([each for stretches in joined for each in stretches], np.int64).reshape(-1, 2)
    return ReadableSpans(first, flat[:, 0], flat[:, 1])


def _wanted(timeline: GroupTimeline) -> list[list[Stretch]]:
    """Return when live members (or, without any, the last members) subscribe to each topic."""
    numbers = {topic: number for number, topic in enumerate(timeline.topics)}
    steps: list[tuple[int, int, frozenset[str] | None]] = []
    for lifetime in timeline.lifetimes:
        if lifetime.stale_entry:
            continue
        steps += [
            (_ms(moment), lifetime.index, member.subscriptions)
            for moment, member in lifetime.states
        ]
        if lifetime.ending is not None:
            steps.append((_ms(lifetime.ending.moment), lifetime.index, None))
    steps.sort(key=lambda step: (step[0], step[2] is None))
    living: dict[int, frozenset[str]] = {}
    stretches: list[list[Stretch]] = [[] for _ in timeline.topics]
    before, since = frozenset[str](), 0
    for place, (moment, lifetime_index, topics) in enumerate(steps):
        if topics is None:
            living.pop(lifetime_index, None)
        else:
            living[lifetime_index] = topics
        if place + 1 < len(steps) and steps[place + 1][0] == moment:
            continue
        now = frozenset[str]().union(*living.values()) if living else before
        if now != before:
            _close(stretches, numbers, before, since, moment)
            before, since = now, moment
    _close(stretches, numbers, before, since, LAST_MS)
    return stretches


def _close(
    stretches: list[list[Stretch]],
    numbers: dict[str, int],
    topics: frozenset[str],
    since: int,
    to: int,
) -> None:
    for topic in topics:
        if topic in numbers:
            stretches[numbers[topic]].append((since, to))


def _joined(stretches: list[Stretch]) -> Iterator[Stretch]:
    """Yield the stretches in order, merging adjacent ones."""
    open_begin = open_end = None
    for begin, end in sorted(stretches):
        if open_end is not None and begin <= open_end:
            open_end = max(open_end, end)
            continue
        if open_begin is not None and open_end is not None:
            yield open_begin, open_end
        open_begin, open_end = begin, end
    if open_begin is not None and open_end is not None:
        yield open_begin, open_end


def _ms(moment: LoggedTime | None) -> int:
    return FIRST_MS if moment is None else moment.event_us // MS_US
