"""Sends that fail and are repeated alike, round after round, counted at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rebalance_core.producers.counter import POSITIVE_MASK, java_int
from rebalance_core.producers.sending.answers import CONNECT
from rebalance_core.producers.simulation.thread import SendingThread

_COUNTS = ("sends", "failed")
_MAPS = ("attempts", "stored", "errors")
Chosen = dict[Any, int]


@dataclass(frozen=True, slots=True)
class _Moment:
    """What a producer had done when a send began."""

    tick: int
    counter: int
    gaps: dict[str, int]
    sure: tuple[object, ...]
    """what must not change within a round: time spent, draws used up"""
    counts: dict[str, int]
    maps: tuple[Chosen, ...]


class Repetition:
    """Rounds of a producer without fault tolerance while a broker refuses every connection.

    The place in the list is its whole state then. Two sends that begin at the same place begin
    equal rounds, as long as nothing takes time and no other broker has a remarkable answer.
    """

    def __init__(self, thread: SendingThread, flush: Callable[[], None], chosen: Chosen) -> None:
        """Of one thread.

        Args:
            thread: The producer.
            flush: Puts what jumps counted into the thread's counts and into ``chosen``.
            chosen: Attempts by queue in the present slice.
        """
        self._thread, self._flush, self._chosen = thread, flush, chosen
        self._seen: dict[tuple[int, int], _Moment] = {}

    def forget(self) -> None:
        """The list or the slice is another from now on."""
        self._seen.clear()

    def skip(self, tick: int, last: int) -> int:
        """Count as many whole rounds as fit; the tick behind them.

        Args:
            tick: The send that is next, one with a remarkable answer.
            last: The first send that must not be counted: something changes there.
        """
        counter = self._thread.producer.info.counter
        if not self._may_repeat() or counter.value is None:
            return tick
        self._flush()
        place = (counter.value & POSITIVE_MASK) % len(self._thread.producer.info.queues)
        key = (self._thread.phase_number, place)
        now, before = self._moment(tick, counter.value), self._seen.get(key)
        rounds = 0 if before is None else self._rounds(before, now, last)
        if before is None or not rounds:
            self._seen[key] = now
            return tick
        self._count(before, now, rounds)
        self.forget()
        return tick + rounds * (now.tick - before.tick)

    def _may_repeat(self) -> bool:
        thread = self._thread
        counter = thread.producer.info.counter
        return (
            not thread.variant.fault_tolerance
            and not thread.waiting
            and (counter.masked or (counter.value or 0) >= 0)
            and any(how.outage == CONNECT for how in thread.phase.behaviours.values())
        )

    def _rounds(self, before: _Moment, now: _Moment, last: int) -> int:
        """How many more rounds like the last one nothing disturbs."""
        advance = now.counter - before.counter
        if before.sure != now.sure or advance <= 0:
            return 0
        fits = [(last - now.tick) // (now.tick - before.tick)]
        fits += [
            gap // (before.gaps[broker] - gap)
            for broker, gap in now.gaps.items()
            if before.gaps[broker] != gap
        ]
        fits.append((POSITIVE_MASK - (now.counter & POSITIVE_MASK)) // advance - 1)
        return max(min(fits), 0)

    def _count(self, before: _Moment, now: _Moment, rounds: int) -> None:
        thread = self._thread
        for name in _COUNTS:
            more = now.counts[name] - before.counts[name]
            setattr(thread.counts, name, now.counts[name] + rounds * more)
        for counted, then, since in zip(self._maps(), now.maps, before.maps, strict=True):
            for key, number in then.items():
                counted[key] = number + rounds * (number - since.get(key, 0))
        for broker, gap in now.gaps.items():
            thread.gaps[broker] = gap - rounds * (before.gaps[broker] - gap)
        counter = now.counter + rounds * (now.counter - before.counter)
        thread.producer.info.counter.value = java_int(counter)

    def _maps(self) -> tuple[Chosen, ...]:
        return (*(getattr(self._thread.counts, name) for name in _MAPS), self._chosen)

    def _moment(self, tick: int, counter: int) -> _Moment:
        counts = self._thread.counts
        return _Moment(
            tick,
            counter,
            dict(self._thread.gaps),
            (counts.held_back, counts.waited_ms, dict(counts.slow), self._thread.draws_used()),
            {name: getattr(counts, name) for name in _COUNTS},
            tuple(map(dict, self._maps())),
        )
