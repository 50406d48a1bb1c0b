"""Who had a queue from when to when, who should have had one, and the windows of the changes."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rebalance_core.clockwork.draws import TOPIC_VISIBLE
from rebalance_core.clockwork.options import MS_US, SECOND_US
from rebalance_core.clockwork.ownership_log import TAKEN, OwnershipLog, stretches_of
from rebalance_core.clockwork.script import LoggedTime, Script
from rebalance_core.clockwork.ticks import BEFORE_ALL, NEVER
from rebalance_core.kernels.segments import Bools, Ints, first_of_run
from rebalance_core.model.events import TOPIC_CONFIG, TOPIC_DELETED

# The stretches of time that a script's changes are simulated in, as arrays.

_RESTED_US = 60 * SECOND_US
"""As long as a change of a route takes; what happens later is seldom that change's doing."""


@dataclass(frozen=True, eq=False)
class Windows:
    """One place a change. A run is made of changes of which each begins before the last is over.

    Attributes:
        change_ms: of the change, as in the log.
        run: the number of its run.
        run_change_ms: the first change of its run.
        run_end_ms: until when its run is simulated.
        followed_ms: from the change to the next one, at most as long as a change is simulated.
    """

    change_ms: Ints
    run: Ints
    run_change_ms: Ints
    run_end_ms: Ints
    followed_ms: Ints
    _seen_us: Ints

    def change_of(self, at_us: Ints) -> Ints:
        """The newest change that a member may have seen by a time; -1: before all."""
        return np.searchsorted(self._seen_us, at_us, side="right") - 1


def windows_of(script: Script) -> Windows:
    """The windows of a script."""
    changes = script.changes
    change_ms = np.array([change.change_ms for change in changes], np.int64)
    begin_us = np.array([change.begin_us for change in changes], np.int64)
    end_us = np.array([change.end_us for change in changes], np.int64)
    # One that begins before an older one leaves nothing to it.
    newest_us = np.minimum.accumulate(begin_us[::-1])[::-1]
    for stretch in stretches_of(script):  # the first in it has all that happens before the next
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
        _seen_us=_seen_us(script, newest_us),
    )


def _seen_us(script: Script, begin_us: Ints) -> Ints:
    """Since when members may have seen a change: one of a topic may be logged after its effect.

    Only where the change before it has long been over: else what happens is rather that one's.
    """
    seen_us = begin_us.copy()
    for number, change in enumerate(script.changes):
        if number > 0 and not {TOPIC_CONFIG, TOPIC_DELETED}.isdisjoint(change.causes):
            rested_us = script.changes[number - 1].change_ms * MS_US + _RESTED_US
            early_us = max(int(begin_us[number]) + TOPIC_VISIBLE.shortest, rested_us)
            seen_us[number] = min(int(begin_us[number]), early_us)
    return seen_us


# Which queues somebody should have, and when: readable ones of topics that a member reads.

FIRST_MS = -(1 << 61)
LAST_MS = 1 << 61
"""Of stretches that are open: before and after every event."""

Stretch = tuple[int, int]


@dataclass(frozen=True, eq=False)
class ReadableAt:
    """Where queues are at a time each.

    Attributes:
        stretch: the last stretch that had begun; of another queue, or -1: none had.
        place: equal for two times of one queue if it did not change in between; even: inside.
        inside: the queue is readable and read by somebody.
    """

    stretch: Ints
    place: Ints
    inside: Bools


@dataclass(frozen=True, eq=False)
class ReadableSpans:
    """Stretches by queue, sorted; two of one queue never touch.

    Attributes:
        first: (queues + 1,) where the stretches of each queue begin.
        begin_ms: (stretches,) since when.
        end_ms: (stretches,) until when, exclusive.
    """

    first: Ints
    begin_ms: Ints
    end_ms: Ints

    def at(self, queue: Ints, at_ms: Ints) -> ReadableAt:
        """Return where each queue is at a time."""
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
        """Return a rising number of each stretch, and the bounds of the times in them."""
        finite = self.begin_ms[self.begin_ms > FIRST_MS]
        last = int(finite.max(initial=0))
        low = int(finite.min(initial=last)) - 1
        owner = np.repeat(np.arange(len(self.first) - 1), np.diff(self.first))
        return owner * (last - low + 1) + np.clip(self.begin_ms, low, last) - low, low, last

    def begin(self, stretch: Ints) -> Ints:
        """Return when stretches begin; any number that `at` gives will do."""
        return self.begin_ms[stretch] if len(self.begin_ms) else np.zeros(len(stretch), np.int64)

    def end(self, stretch: Ints) -> Ints:
        """Return when stretches end; any number that `at` gives will do."""
        return self.end_ms[stretch] if len(self.end_ms) else np.zeros(len(stretch), np.int64)

    def mask(self, at_ms: int) -> Bools:
        """(queues,) True for those that are in a stretch at this time."""
        queues = np.arange(len(self.first) - 1)
        return self.at(queues, np.full(len(queues), at_ms, np.int64)).inside


def readable_of(script: Script) -> ReadableSpans:
    """The stretches of every queue of a script, by the times of the log.

    A topic counts while a live member subscribes it; once no member is left, those of its last
    members do, as in the ledger.
    """
    wanted = _wanted(script)
    by_queue: list[list[Stretch]] = [[] for _ in script.queues]
    for topic, versions in enumerate(script.routes):
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


def _wanted(script: Script) -> list[list[Stretch]]:
    """By topic: when some live member subscribes it, or the last ones that lived did."""
    numbers = {topic: number for number, topic in enumerate(script.topics)}
    steps: list[tuple[int, int, frozenset[str] | None]] = []
    for life in script.lives:
        if life.ghost:
            continue
        steps += [(_ms(at), life.index, member.subscriptions) for at, member in life.states]
        if life.ending is not None:
            steps.append((_ms(life.ending.moment), life.index, None))
    steps.sort(key=lambda step: (step[0], step[2] is None))
    living: dict[int, frozenset[str]] = {}
    found: list[list[Stretch]] = [[] for _ in script.topics]
    before, since = frozenset[str](), 0
    for place, (at, life_index, topics) in enumerate(steps):
        if topics is None:
            living.pop(life_index, None)
        else:
            living[life_index] = topics
        if place + 1 < len(steps) and steps[place + 1][0] == at:
            continue
        now = frozenset[str]().union(*living.values()) if living else before
        if now != before:
            _close(found, numbers, before, since, at)
            before, since = now, at
    _close(found, numbers, before, since, LAST_MS)
    return found


def _close(
    found: list[list[Stretch]], numbers: dict[str, int], topics: frozenset[str], since: int, to: int
) -> None:
    for topic in topics:
        if topic in numbers:
            found[numbers[topic]].append((since, to))


def _joined(stretches: list[Stretch]) -> Iterator[Stretch]:
    """The stretches in order, those that touch as one."""
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


# Who had a queue from when to when, out of an ownership log.

_SMALL = 1 << 16


@dataclass(frozen=True, eq=False)
class MeasuredHoldings:
    """Equally long columns by queue, seed, then start.

    Attributes:
        seed: the place of the seed.
        queue: the number of the queue.
        life: the number of the process.
        start_us: when it took the queue; `BEFORE_ALL`: it had it before the first change.
        drop_us: when it gave it up; `NEVER`: it has it to the end.
    """

    seed: Ints
    queue: Ints
    life: Ints
    start_us: Ints
    drop_us: Ints


def holdings_of(script: Script, log: OwnershipLog, seeds: int) -> MeasuredHoldings:
    """The holdings of all seeds.

    Args:
        script: that was played.
        log: what came of it, in order.
        seeds: how many were played.
    """
    first = np.array(
        [(life, queue) for life, held in enumerate(script.initial) for queue in sorted(held)],
        np.int64,
    ).reshape(-1, 2)
    count = len(first) * seeds
    seed = np.concatenate([np.repeat(np.arange(seeds), len(first)), log.seed.astype(np.int64)])
    life = np.concatenate([np.tile(first[:, 0], seeds), log.life.astype(np.int64)])
    queue = np.concatenate([np.tile(first[:, 1], seeds), log.queue.astype(np.int64)])
    at_us = np.concatenate([np.full(count, BEFORE_ALL, np.int64), log.at_us])
    taken = np.concatenate([np.ones(count, np.bool_), log.delta == TAKEN])

    by_holder = in_order(queue, life, seed)
    other = first_of_run(queue[by_holder], life[by_holder], seed[by_holder])
    ends = ~other & ~taken[by_holder]
    ends[1:] &= taken[by_holder][:-1]
    ended = np.flatnonzero(ends)
    drop_us = np.full(len(seed), NEVER, np.int64)
    drop_us[by_holder[ended - 1]] = at_us[by_holder[ended]]

    begun = np.flatnonzero(taken)
    rows = begun[in_order(queue[begun], seed[begun])]
    return MeasuredHoldings(seed[rows], queue[rows], life[rows], at_us[rows], drop_us[rows])


def in_order(*keys: Ints) -> Ints:
    """Rows by these keys, none negative, the first one weighing most; equal ones stay in order.

    Numbers below 65,536 are sorted in linear time.
    """
    order: Ints | None = None
    for key in reversed(keys):
        small: NDArray[Any] = key.astype(np.uint16) if key.max(initial=0) < _SMALL else key
        if order is None:
            order = np.argsort(small, kind="stable")
        else:
            order = order[np.argsort(small[order], kind="stable")]
    assert order is not None
    return order
