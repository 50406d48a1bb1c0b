"""The elements of a segment as flat columns; an element is a lifetime in a future."""

import numpy as np
from numpy.typing import NDArray

from rebalance_core.client.rebalance_pass import EMPTY_IS_UNKNOWN
from rebalance_core.model.queue import is_retry_topic
from rebalance_core.timing.draws import DRAW_BITS, Timer, all_below, ticked
from rebalance_core.timing.reference.play import rested
from rebalance_core.timing.timer_periods import BEFORE_ALL, NEVER, Times
from rebalance_core.timing.vectorized.futures import Futures
from rebalance_core.timing.vectorized.play_segments import PlaySegment

Ints = NDArray[np.int64]


class Elements:
    """The state of each element of a segment; ordered by lifetime, then by future.

    Args:
        futures: the futures of the timeline; `keep` returns the state to it.
        segment: the part of the timeline.
        lifetimes: numbers of the lifetimes.

    Attributes:
        last_end: the end of the last pass.
        used: the time up to which wake-ups are used up or discarded.
        number: the number of the next pass.
        wait: the time until the next pass if no notice wakes the client.
        held: (topics, elements) sets of queues.
        limit: all passes begin before this.
        rest: when an unlogged stop may next shift the pass clock.
        rests: whether such a stop may occur in the segment.
        alike_us: passes that begin before this have the last pass's view.
    """

    def __init__(self, futures: Futures, segment: PlaySegment, lifetimes: Ints) -> None:
        self.futures, self.lifetimes = futures, lifetimes
        seeds = len(futures.seeds)
        self.lifetime = np.repeat(np.arange(len(lifetimes)), seeds)
        self.seed = np.tile(np.arange(seeds), len(lifetimes))
        self.ids = lifetimes[self.lifetime] * seeds + self.seed
        self._words_for: dict[int, NDArray[np.uint64]] = {}
        self.length = futures.ticks.pass_length[lifetimes].reshape(-1)
        self.lists_us = futures.ticks.lists_us[lifetimes][self.lifetime]
        self.round_us = futures.ticks.round_us[lifetimes].reshape(-1)
        self.number = futures.number[lifetimes].reshape(-1)
        self.last_end = futures.last_end[lifetimes].reshape(-1)
        self.wait = futures.wait[lifetimes].reshape(-1)
        self.held = futures.held[:, lifetimes].reshape(len(futures.timeline.topics), len(self.ids))
        self.used = futures.used[lifetimes].reshape(-1)
        self.asks_us = futures.asks_us[lifetimes].reshape(-1)
        self.asked = futures.asked[:, lifetimes].reshape(self.held.shape)
        self.masterless = futures.masterless[:, lifetimes].reshape(-1, len(self.ids))
        self.ends_us = futures.ends_us[lifetimes].reshape(-1)
        self.balances = futures.balances[lifetimes].reshape(-1)
        self.beats = futures.beats[lifetimes].reshape(-1)
        self.later_us = futures.later_us[:, lifetimes].reshape(-1, len(self.ids))
        self.ended = futures.ticks.ended[lifetimes].reshape(-1)
        traits = [futures.traits[lifetime] for lifetime in lifetimes.tolist()]
        leaves = np.array([each.leaves_in_time for each in traits], bool)[self.lifetime]
        stopped = futures.ticks.stopped[lifetimes].reshape(-1)
        passing = np.where(leaves, stopped, self.ended)
        passing = np.minimum(passing, futures.ticks.suspended[lifetimes].reshape(-1))
        self.limit = np.minimum(passing, segment.end_us)
        self._asks_before = np.where(leaves, NEVER, self.ended)
        self.min_interval = futures.ticks.periods.least[lifetimes, 0][self.lifetime]
        self.own_wait = futures.ticks.periods.wait[lifetimes, 0][self.lifetime]
        self.broadcasting = self._of_lifetimes([each.broadcasting for each in traits])
        self.beats_at_once = self._of_lifetimes([each.beats_at_once for each in traits])
        self.asks_nobody = self._of_lifetimes([each.asks_nobody for each in traits])
        self.heartbeats = self._of_lifetimes([each.heartbeats for each in traits])
        self.takes_locks = self._of_lifetimes([each.takes_locks for each in traits])
        self.observed = np.array([each.observed for each in futures.timeline.lifetimes])[lifetimes][
            self.lifetime
        ]
        self.shared = futures.ticks.shared[lifetimes][self.lifetime]
        self.is_v4 = self._of_lifetimes([each.version.is_v4 for each in traits])
        self.empty_is_unknown = self._of_lifetimes([e.version >= EMPTY_IS_UNKNOWN for e in traits])
        topics = futures.timeline.topics
        self.notifies_always = ~self.is_v4 & self._of_lifetimes(
            [
                any(
                    topic not in topics and (each.broadcasting or not is_retry_topic(topic))
                    for topic in each.member.subscriptions
                )
                for each in traits
            ]
        )
        self._comes = np.minimum(
            futures.ticks.created[lifetimes],
            futures.ticks.registered[lifetimes].min(axis=1, initial=NEVER),
        ).reshape(-1)
        self._comes[self.observed] = BEFORE_ALL
        self._rests = self._times_of_rest(segment)
        self.rest = np.full(len(self.ids), self._rests[0][0], np.int64)
        self.rests = len(self._rests) > 1
        self._rests_past = np.zeros(len(self.ids), np.int64)
        self.alike_us = np.full(len(self.ids), BEFORE_ALL, np.int64)
        self._asks_until_us = segment.asks_until_us
        self._since_us = segment.begin_us if segment.after_gap else BEFORE_ALL
        if segment.after_gap:
            at_rest = np.flatnonzero(self.asks_us == NEVER)  # others are running a pass
            self.used[at_rest] = segment.begin_us - 1
            self._pass_idly(at_rest, segment.begin_us - self.last_end[at_rest])

    def words_for(self, timer: int) -> NDArray[np.uint64]:
        """Return (elements,) the words from which a timer's draws derive."""
        if timer not in self._words_for:
            self._words_for[timer] = self.futures.words_for(timer)[self.lifetimes].reshape(-1)
        return self._words_for[timer]

    def draws(self, timer: int, who: Ints, number: Ints) -> NDArray[np.uint64]:
        """Return a timer's draws; ``number`` is (n,) or (K, n)."""
        return ticked(self.words_for(timer)[who], number)

    def always_notifies(self, who: Ints, begin: Times) -> NDArray[np.bool_]:
        """Return True where a pass visits a topic that never has a route (rocketmq.md §3.3)."""
        return self.notifies_always[who].copy()

    def next_begin(self, who: Ints, woken: Times) -> Times:
        """Return when each element's next pass begins; ``woken`` is its first unused wake-up."""
        last = self.last_end[who]
        woken = np.minimum(woken, self.next_later(who))
        soonest = np.maximum(woken, last + self.min_interval[who])
        # a pass due too late in the gap to end there begins with the segment
        begin: Times = np.maximum(np.minimum(last + self.wait[who], soonest), self._since_us)
        return begin

    def no_sooner(self, who: Ints) -> Times:
        """Return the time before which a wake-up has no effect: the element's next pass begins no
        earlier, and the element does not come to rest.
        """
        soonest: Times = np.minimum(self.last_end[who] + self.min_interval[who], self.rest[who] - 1)
        return soonest

    def next_act(self, begin: Times) -> Times:
        """Return (elements,) when each element next runs a pass or requests locks; `NEVER` if not
        in this segment.
        """
        passes = np.minimum(begin, self.rest)
        passes = np.where(passes < self.limit, passes, NEVER)
        in_it = (self.asks_us < self._asks_until_us) & (self.asks_us < self._asks_before)
        asks = np.where(in_it, self.asks_us, NEVER)
        return np.where(self.asks_us < NEVER, asks, passes)

    def next_later(self, who: Ints) -> Times:
        """Return the first unused wake-up that each element's passes have scheduled, or `NEVER`."""
        if not len(self.later_us):
            return np.full(len(who), NEVER, np.int64)
        later = self.later_us[:, who]
        next_us: Times = np.where(later > self.used[who], later, NEVER).min(axis=0, initial=NEVER)
        return next_us

    def wake_later(self, who: Ints, at_us: Times) -> None:
        """Schedule wake-ups."""
        for slot in self.later_us:
            free = slot[who] <= self.used[who]
            slot[who[free]] = at_us[free]
            who, at_us = who[~free], at_us[~free]
        if len(who):
            more = np.full((1, len(self.ids)), BEFORE_ALL, np.int64)
            more[0, who] = at_us
            self.later_us = np.concatenate([self.later_us, more])

    def follow(self, who: Ints, begin: Times, end: Times, balanced: NDArray[np.bool_]) -> None:
        """Record completed passes."""
        self.used[who], self.last_end[who] = begin, end
        self.number[who] += 1
        soon = ~balanced & (self.min_interval[who] > 0)
        self.wait[who] = np.where(soon, self.min_interval[who], self.own_wait[who])

    def settle(self, who: Ints, end: Times, balanced: NDArray[np.bool_]) -> None:
        """Record the answers to requests for order locks."""
        self.last_end[who] = end
        soon = ~balanced & (self.min_interval[who] > 0)
        self.wait[who] = np.where(soon, self.min_interval[who], self.own_wait[who])

    def put_out_of_step(self, who: Ints, woken: Times) -> None:
        """Apply unlogged stops to the pass clocks of elements that are at `rest`.

        ``reference.play`` does the same at the start of a change.
        """
        rest_us, past = self.rest[who], self._rests_past[who]
        present = (self._comes[who] < rest_us) & (self.ended[who] >= rest_us)
        present &= (self.last_end[who] <= rest_us) & (woken >= rest_us)
        present &= self.next_later(who) >= rest_us
        change = np.array([number for _, number in self._rests])[past]
        share = np.uint64(round(self.futures.timeline.out_of_step * (1 << DRAW_BITS)))
        moved = present & (self.draws(Timer.OUT_OF_STEP, who, change) < share)
        since = all_below(self.draws(Timer.PASS_PHASE, who, change + 2), self.wait[who])
        self.last_end[who] = np.where(moved, rest_us - since, self.last_end[who])
        self._rests_past[who] = past + 1
        self.rest[who] = np.array([at_us for at_us, _ in self._rests])[past + 1]

    def skip_before(self, who: Ints, before_us: Times) -> None:
        """Skip the periodic passes that begin before a time; they change nothing."""
        self._pass_idly(who, before_us - 1 - self.last_end[who] + self.length[who])

    def keep(self) -> None:
        """Pass the state to the next segment."""
        futures, lifetimes, shape = (
            self.futures,
            self.lifetimes,
            (len(self.lifetimes), len(self.futures.seeds)),
        )
        for name in ("asks_us", "ends_us", "balances", "beats"):
            getattr(futures, name)[lifetimes] = getattr(self, name).reshape(shape)
        more = len(self.later_us) - len(futures.later_us)
        if more:
            rows = np.full((more, *futures.used.shape), BEFORE_ALL, np.int64)
            futures.later_us = np.concatenate([futures.later_us, rows])
        futures.later_us[:, lifetimes] = self.later_us.reshape(-1, *shape)
        futures.asked[:, lifetimes] = self.asked.reshape(len(futures.timeline.topics), *shape)
        futures.masterless[:, lifetimes] = self.masterless.reshape(len(futures.masterless), *shape)
        futures.used[lifetimes] = self.used.reshape(shape)
        futures.number[lifetimes] = self.number.reshape(shape)
        futures.last_end[lifetimes] = self.last_end.reshape(shape)
        futures.wait[lifetimes] = self.wait.reshape(shape)
        futures.held[:, lifetimes] = self.held.reshape(len(futures.timeline.topics), *shape)

    def _pass_idly(self, who: Ints, for_us: Times) -> None:
        """Run as many whole periods (a wait and a pass) as fit into the time after the last
        pass.
        """
        period = self.wait[who] + self.length[who]
        passes = np.maximum(for_us, 0) // period
        self.last_end[who] += passes * period
        self.number[who] += passes

    def _times_of_rest(self, segment: PlaySegment) -> list[tuple[int, int]]:
        """Return (time, number of the change that begins then) for each rest, followed by
        `NEVER`.
        """
        timeline = self.futures.timeline
        times = [
            (timeline.changes[number].begin_us, number)
            for number in segment.changes
            if number > 0 and rested(timeline, number)
        ]
        return [*times, (NEVER, 0)]

    def _of_lifetimes(self, values: list[bool]) -> NDArray[np.bool_]:
        return np.array(values, bool)[self.lifetime]
