"""Runs a producer from beginning to end. The cost grows with changes of its state, not with
sends.
"""

from collections import Counter as Counts
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rebalance_core.model.queue import MessageQueue
from rebalance_core.producers.counter import POSITIVE_MASK, java_int
from rebalance_core.producers.cycle import Cycle
from rebalance_core.producers.model import ProducerGroup, ProducerModel, Variant
from rebalance_core.producers.send_failures import CONNECT
from rebalance_core.producers.tally import Choice, Tally
from rebalance_core.producers.thread import SendingThread

_COUNTS = ("sends", "failed")
_MAPS = ("attempts", "stored", "errors")
Chosen = dict[Any, int]


@dataclass(frozen=True, slots=True)
class _Moment:
    """The state of a producer when a send began."""

    tick: int
    counter: int
    gaps: dict[str, int]
    sure: tuple[object, ...]
    """the state that must not change within a round: time spent and draws used"""
    counts: dict[str, int]
    maps: tuple[Chosen, ...]


class Repetition:
    """Identical rounds of a producer without fault tolerance while a broker refuses every
    connection.

    Its entire state is then its place in the list. Two sends that begin at the same place begin
    equal rounds, as long as nothing takes time and no other broker gives a remarkable answer.
    """

    def __init__(self, thread: SendingThread, flush: Callable[[], None], chosen: Chosen) -> None:
        """Start one thread's run.

        Args:
            thread: The producer.
            flush: Adds the counts of jumps to the thread's counts and to ``chosen``.
            chosen: The attempts by queue in the current slice.
        """
        self._thread, self._flush, self._chosen = thread, flush, chosen
        self._seen: dict[tuple[int, int], _Moment] = {}

    def forget(self) -> None:
        """Forget the recorded moments, because the list or the slice changes."""
        self._seen.clear()

    def skip(self, tick: int, last: int) -> int:
        """Count as many whole rounds as fit; return the tick after them.

        Args:
            tick: The next send, which gets a remarkable answer.
            last: The first send that must not be counted, because something changes there.
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
        """Return how many more undisturbed rounds like the last one follow."""
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


def run_producer(
    model: ProducerModel,
    group: ProducerGroup,
    number: int,
    variant: Variant,
    *,
    choices: bool = False,
) -> Tally:
    """Simulate one producer.

    Between two remarkable answers, and while no isolation ends, round robin is arithmetic, so such
    sends are counted at once (`Cycle`). A remarkable send is walked through with its retries,
    except for rounds that repeat (`Repetition`).

    Args:
        model: The model to simulate.
        group: The producer's group.
        number: The producer's number in the group.
        variant: The producer's version and settings.
        choices: Whether the tally's ``choices`` are wanted.
    """
    return _Run(SendingThread(model, group, number, variant), choices).run()


class _Run:
    def __init__(self, thread: SendingThread, choices: bool) -> None:
        self.thread = thread
        self.cycles: dict[tuple[frozenset[str], int], Cycle] = {}
        self.choices = choices
        self.chosen: Counts[MessageQueue] = Counts()
        self.slice = (0, 0)
        self.repetition = Repetition(thread, self._flush, self.chosen)

    def run(self) -> Tally:
        thread, length = self.thread, self.thread.model.length_ms
        tick, last = 0, self.thread.first_tick(length)
        self.slice = (0, self._slice_end(0))
        while tick < last:
            now_ms = thread.time_of(tick)
            while now_ms >= self.slice[1]:
                self._end_slice()
            info = thread.producer.info
            thread.enter(now_ms)
            if thread.producer.info is not info:
                self._flush(info.queues)
                self.cycles = {}
                self.repetition.forget()
            tick = self._step(tick, now_ms)
        self._end_slice()
        thread.tally.isolations = list(thread.isolations.all())
        return thread.tally

    def _step(self, tick: int, now_ms: int) -> int:
        """Jump ahead while nothing changes, or send one message; return the next tick."""
        thread = self.thread
        change_ms = min(thread.next_change(now_ms), self.slice[1])
        due = thread.first_tick(change_ms) - tick
        cycle = self._cycle(now_ms)
        if cycle is None:
            if not thread.producer.info.queues:
                return self._no_route(tick, due)
            return self._walk(tick)
        counter = thread.producer.info.counter
        start = cycle.start(counter)
        ahead = [cycle.sends_before(b, start, thread.gaps[b]) for b in cycle.brokers]
        sends = min(due, cycle.most(counter), *ahead)
        if sends <= 0:
            behind = self.repetition.skip(tick, tick + due)
            return behind if behind > tick else self._walk(tick)
        self._jump(cycle, tick, start, sends)
        return tick + sends

    def _jump(self, cycle: Cycle, tick: int, start: int, sends: int) -> None:
        """Count sends that are all stored at once, and report their results to the fault table."""
        thread, strategy = self.thread, self.thread.producer.strategy
        thread.counts.sends += sends
        for broker in sorted(cycle.brokers, key=lambda b: cycle.sends_before(b, start, 0)):
            passed = cycle.chosen(broker, start, sends)
            if not passed:
                continue
            thread.gaps[broker] -= passed
            first = tick + cycle.sends_before(broker, start, 0)
            thread.chose(broker, thread.time_of(first))
            latest = tick + cycle.sends_before(broker, start, passed - 1)
            strategy.report(broker, 0, False, True, thread.time_of(latest))
        cycle.run(thread.producer.info.counter, start, sends)

    def _walk(self, tick: int) -> int:
        """Send a message, with everything that may follow from it; return the next tick."""
        thread = self.thread
        queues = list(thread.producer.info.queues)
        record, following = thread.send_at(tick)
        if self.choices:
            topic = thread.group.topic
            made = record.picks[: len(record.reports)]
            self.chosen.update(MessageQueue(topic, p.broker_name, p.queue_id) for p in made)
        if thread.producer.info.queues != queues:  # up to 5.1.3, the list may be rewritten
            self._flush(queues)
            self.cycles = {}
        return following

    def _no_route(self, tick: int, due: int) -> int:
        """Fail every message immediately while the route has no queue."""
        due = max(due, 1)
        self.thread.counts.sends += due
        self.thread.counts.failed += due
        return tick + due

    def _cycle(self, now_ms: int) -> Cycle | None:
        """Return the cycle of the current state, or None if each send changes it."""
        producer = self.thread.producer
        queues, faults = producer.info.queues, producer.strategy.faults
        if producer.info.counter.value is None or not queues:
            return None
        brokers = {queue.broker_name for queue in queues}
        profile, rounds = producer.strategy.profile, 0
        chosen = frozenset(b for b in brokers if faults.is_available(b, now_ms))
        if not chosen and profile.filters:
            chosen, rounds = frozenset(b for b in brokers if faults.is_reachable(b)), 1
            chosen, rounds = (chosen, 1) if chosen else (frozenset(brokers), 2)
        if not chosen:
            return None
        if (chosen, rounds) not in self.cycles:
            self.cycles[chosen, rounds] = Cycle(
                queues, chosen.__contains__, skips=profile.filters, idle_rounds=rounds
            )
        return self.cycles[chosen, rounds]

    def _flush(self, of: list[MessageQueue] | None = None) -> None:
        """Add the counts of all cycles, which are attempts that were stored at once.

        Args:
            of: The list over which they ran; None for the current list.
        """
        queues = self.thread.producer.info.queues if of is None else of
        counts = self.thread.counts
        for cycle in self.cycles.values():
            for place, sends in cycle.take_counts().items():
                queue = queues[place]
                counts.attempts[queue] += sends
                counts.stored[queue] += sends
                if self.choices:
                    self.chosen[queue] += sends

    def _end_slice(self) -> None:
        """Add the counts of a slice and continue with the next one."""
        self._flush()
        self.repetition.forget()
        from_ms, to_ms = self.slice
        for queue, sends in sorted(self.chosen.items()):
            choice = Choice(queue.broker_name, queue.queue_id, from_ms, to_ms, sends)
            self.thread.tally.choices.append(choice)
        self.chosen.clear()
        self.slice = (to_ms, self._slice_end(to_ms))

    def _slice_end(self, from_ms: int) -> int:
        """Return the end of a slice; slices end with phases and at multiples of ``slice_ms``."""
        slice_ms = self.thread.model.slice_ms
        ends = [phase.to_ms for phase in self.thread.phases if phase.to_ms > from_ms]
        return min((from_ms // slice_ms + 1) * slice_ms, *ends[:1] or [from_ms + slice_ms])
