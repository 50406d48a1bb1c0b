"""Arrival rates of each queue, as piecewise constant functions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from rebalance_core.kernels.segments import Bools, Ints
from rebalance_core.model.queue import MessageQueue
from rebalance_core.model.times import SECOND_MS, utc
from rebalance_core.planning.autoscale.hpa import Floats
from rebalance_core.replay.history import QueueOffset

LIKELY, LOW, HIGH = WORLDS = ("likely", "low", "high")
"""The value of an interval that applies: the likely one, or the one with the least or the most
work.
"""


@dataclass(frozen=True, slots=True)
class Arrival:
    """A row of ``arrivals``.

    Attributes:
        from_ms: the start.
        to_ms: the end, exclusive.
        topic: the topic.
        broker_name: the broker; None for all brokers of the topic, evenly by queue.
        queue_id: the queue; None for all queues of the broker, evenly.
        rates: messages per second in each of `WORLDS`.
    """

    from_ms: int
    to_ms: int
    topic: str
    broker_name: str | None
    queue_id: int | None
    rates: tuple[float, float, float]

    def covers(self, queue: MessageQueue) -> bool:
        """Return whether the row's messages arrive in the queue."""
        return (
            queue.topic == self.topic
            and self.broker_name in (None, queue.broker_name)
            and self.queue_id in (None, queue.queue_id)
        )

    @property
    def place(self) -> str:
        """The queues, described for error messages."""
        parts = (self.topic, self.broker_name, self.queue_id)
        return "/".join(str(part) for part in parts if part is not None)


class UnknownRateError(ValueError):
    """The rate of a queue is unknown; the message names the place."""


@dataclass(frozen=True, eq=False)
class Rates:
    """The rates of a group's queues; times are seconds after `begin_ms`.

    Attributes:
        begin_ms: epoch ms.
        edges: (pieces + 1,) where rates change, ascending from 0.
        rate: (pieces, queues) messages per second.
    """

    begin_ms: int
    edges: Floats
    rate: Floats

    def __post_init__(self) -> None:
        come = self.rate * np.diff(self.edges)[:, None]
        total = np.concatenate([np.zeros((1, self.rate.shape[1])), np.cumsum(come, axis=0)])
        object.__setattr__(self, "_total", total)

    @property
    def seconds(self) -> int:
        """The number of whole seconds with known rates."""
        return int(self.edges[-1])

    def piece(self, at_s: Floats | float) -> Ints:
        """Return the index of the piece at each time."""
        number = np.searchsorted(self.edges, at_s, side="right") - 1
        return np.asarray(np.clip(number, 0, len(self.rate) - 1))

    def arrived(self, at_s: Floats) -> Floats:
        """Return (times, queues) how many messages have arrived by each time; none arrive
        before 0.
        """
        inside = np.clip(at_s, 0.0, self.edges[-1])
        piece = self.piece(inside)
        total: Floats = self._total  # type: ignore[attr-defined]  # set where it is made
        return np.asarray(total[piece] + self.rate[piece] * (inside - self.edges[piece])[:, None])


def rates_of(
    arrivals: Sequence[Arrival],
    queues: Sequence[MessageQueue],
    world: str,
    from_ms: int | None = None,
    to_ms: int | None = None,
) -> Rates:
    """Return the rates of a group's queues.

    Args:
        arrivals: rows for its topics, in any order.
        queues: the queues that are allocated to its members.
        world: which value of an interval to use.
        from_ms: ignore arrivals before this; None for no limit.
        to_ms: ignore arrivals at or after this; None for no limit.

    The rates begin once every queue has a rate, and end when the first queue no longer has one.

    Raises:
        UnknownRateError: a queue has no rate at some time in between, two rates at once or no rate
            at all, or no whole second has a rate.
    """
    used = [each for each in arrivals if any(each.covers(queue) for queue in queues)]
    if not used:
        raise UnknownRateError(f"arrivals has no row of {', '.join(_topics(queues))}")
    used = [_cut(each, from_ms, to_ms) for each in used]
    used = [each for each in used if each.from_ms < each.to_ms]
    if not used:
        raise UnknownRateError("no second of --from to --to has a rate")
    marks = sorted({ms for each in used for ms in (each.from_ms, each.to_ms)})
    place = {ms: number for number, ms in enumerate(marks)}
    rate = np.zeros((len(marks) - 1, len(queues)))
    count = np.zeros((len(marks) - 1, len(queues)), np.int64)
    number = WORLDS.index(world)
    covered: dict[tuple[str, str | None, int | None], Ints] = {}
    for each in used:
        key = each.topic, each.broker_name, each.queue_id
        if key not in covered:
            covered[key] = np.array([n for n, q in enumerate(queues) if each.covers(q)], np.int64)
        of = covered[key]
        pieces = slice(place[each.from_ms], place[each.to_ms])
        rate[pieces, of] += each.rates[number] / len(of)
        count[pieces, of] += 1
    never = np.flatnonzero(~count.any(axis=0))
    if len(never):
        name = _name(queues[never[0]])
        raise UnknownRateError(f"arrivals has no rate of {name}, which the group reads")
    known = np.flatnonzero(count.all(axis=1))
    if not len(known):
        raise UnknownRateError("at no time does every queue have a rate")
    first, last = int(known[0]), int(known[-1]) + 1
    marks = marks[first : last + 1]
    _refuse(count[first:last], marks, queues)
    if marks[-1] - marks[0] < SECOND_MS:
        raise UnknownRateError("no second of --from to --to has a rate")
    edges = (np.array(marks, np.float64) - marks[0]) / SECOND_MS
    return Rates(marks[0], edges, rate[first:last])


def _cut(row: Arrival, from_ms: int | None, to_ms: int | None) -> Arrival:
    """Return the part of a row that lies within a time range."""
    begin = row.from_ms if from_ms is None else max(row.from_ms, from_ms)
    end = row.to_ms if to_ms is None else min(row.to_ms, to_ms)
    return replace(row, from_ms=begin, to_ms=end)


def _refuse(count: Ints, marks: Sequence[int], queues: Sequence[MessageQueue]) -> None:
    twice = np.argwhere(count > 1)
    if len(twice):
        piece, queue = twice[0]
        raise UnknownRateError(
            f"two rows of arrivals have a rate of {_name(queues[queue])} from {utc(marks[piece])}"
        )
    gaps = np.argwhere(count == 0)
    if not len(gaps):
        return
    piece, queue = gaps[0]
    known = np.asarray((count > 0).all(axis=1))
    best = _longest(known, marks)
    raise UnknownRateError(
        f"the rate of {_name(queues[queue])} is unknown from {utc(marks[piece])} to "
        f"{utc(marks[piece + 1])} ({len(set(gaps[:, 0].tolist()))} gaps); the longest time without "
        f"one is --from {best[0]} --to {best[1]}"
    )


def _longest(known: Bools, marks: Sequence[int]) -> tuple[int, int]:
    """Return the longest known period, in epoch ms."""
    best, begin = (marks[0], marks[0]), None
    for piece, is_known in enumerate([*known.tolist(), False]):
        if is_known and begin is None:
            begin = marks[piece]
        elif not is_known and begin is not None:
            best, begin = max(best, (begin, marks[piece]), key=lambda b: b[1] - b[0]), None
    return best


def _name(queue: MessageQueue) -> str:
    return f"{queue.topic}/{queue.broker_name}/{queue.queue_id}"


def _topics(queues: Iterable[MessageQueue]) -> list[str]:
    return sorted({queue.topic for queue in queues})


def arrivals_of(offsets: Iterable[QueueOffset]) -> list[Arrival]:
    """Return the mean rates between observations of each queue's end.

    A queue whose end moved backwards has no rate between the two observations, because its counter
    restarted or a broker lost messages.
    """
    looks: dict[MessageQueue, dict[int, int]] = {}
    for each in offsets:
        looks.setdefault(each.queue, {})[each.observed_ms] = each.max_offset
    rows = []
    for queue, ends in looks.items():
        ordered = sorted(ends.items())
        for (from_ms, earlier), (to_ms, later) in pairwise(ordered):
            if later >= earlier:
                rate = (later - earlier) * SECOND_MS / (to_ms - from_ms)
                rows.append(Arrival(from_ms, to_ms, *queue, (rate, rate, rate)))
    return rows
