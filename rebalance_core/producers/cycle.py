"""Round robin while nothing changes: finds the next queues without visiting each one."""

from bisect import bisect_left, bisect_right
from collections import Counter as Counts
from collections.abc import Callable, Sequence
from itertools import accumulate

from rebalance_core.model.queue import MessageQueue
from rebalance_core.producers.counter import POSITIVE_MASK, Counter, java_int


class Cycle:
    """The queues that a producer in a given state chooses cyclically.

    With ``skips`` (5.1.4+), the counter passes over queues that may not be chosen. Otherwise (up to
    5.1.3), it counts sends, and such a queue's turn goes to the next queue that may be chosen.
    Cost: O(queues) once, then O(log queues) for any number of sends.
    """

    def __init__(
        self,
        queues: Sequence[MessageQueue],
        may_choose: Callable[[str], bool],
        *,
        skips: bool,
        idle_rounds: int = 0,
    ) -> None:
        """Create the cycle for a state.

        Args:
            queues: The publish list.
            may_choose: Whether a broker may be chosen; at least one must qualify.
            skips: See the class.
            idle_rounds: The number of unsuccessful rounds before each choice (no broker passes).
        """
        self._size, self._skips, self._idle = len(queues), skips, idle_rounds * len(queues)
        open_places = [i for i, queue in enumerate(queues) if may_choose(queue.broker_name)]
        if skips:
            self._places = open_places
        else:
            ahead = [bisect_left(open_places, i) % len(open_places) for i in range(self._size)]
            self._places = [open_places[i] for i in ahead]
        self._turns: dict[str, list[int]] = {}
        for turn, place in enumerate(self._places):
            self._turns.setdefault(queues[place].broker_name, []).append(turn)
        self._whole = 0
        self._change = [0] * (len(self._places) + 1)

    @property
    def brokers(self) -> Sequence[str]:
        """Return the brokers that are chosen."""
        return list(self._turns)

    def most(self, counter: Counter) -> int:
        """Return a number of sends that are certain not to wrap the counter; 0 means that the sends
        must be walked.
        """
        if counter.value is None or (not counter.masked and counter.value < 0):
            return 0
        left = POSITIVE_MASK - (counter.value & POSITIVE_MASK) - self._size
        return max(left // (self._size + self._idle), 0)

    def start(self, counter: Counter) -> int:
        """Return the next turn."""
        place = ((counter.value or 0) & POSITIVE_MASK) % self._size
        if self._skips:
            return bisect_right(self._places, place) % len(self._places)
        return (place + 1) % self._size

    def sends_before(self, broker: str, start: int, passed: int) -> int:
        """Return the number of sends before the broker is chosen again, given that it was passed
        over ``passed`` times.
        """
        turns = self._turns[broker]
        rounds, index = divmod(bisect_left(turns, start) + passed, len(turns))
        return turns[index] + rounds * len(self._places) - start

    def chosen(self, broker: str, start: int, sends: int) -> int:
        """Count how often the broker is chosen in the next sends."""
        turns = self._turns[broker]
        rounds, rest = divmod(start + sends, len(self._places))
        return rounds * len(turns) + bisect_left(turns, rest) - bisect_left(turns, start)

    def run(self, counter: Counter, start: int, sends: int) -> None:
        """Count this many sends, and advance the counter past them."""
        length = len(self._places)
        rounds, rest = divmod(sends, length)
        self._whole += rounds
        end = start + rest
        self._add(start, min(end, length))
        if end > length:
            self._add(0, end - length)
        value = counter.value or 0
        advance = sends
        if self._skips:
            place = (value & POSITIVE_MASK) % self._size
            first = bisect_right(self._places, place)
            wraps, last = divmod(first + sends - 1, length)
            advance = self._places[last] + wraps * self._size - place + sends * self._idle
        counter.value = java_int(value + advance)

    def take_counts(self) -> dict[int, int]:
        """Return how often each place in the list was chosen since the last call, and reset the
        counts.
        """
        counts: Counts[int] = Counts()
        for place, extra in zip(self._places, accumulate(self._change), strict=False):
            if self._whole + extra:
                counts[place] += self._whole + extra
        self._whole = 0
        self._change = [0] * (len(self._places) + 1)
        return counts

    def _add(self, start: int, end: int) -> None:
        if end > start:
            self._change[start] += 1
            self._change[end] -= 1
