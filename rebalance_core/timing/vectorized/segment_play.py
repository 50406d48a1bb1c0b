"""Plays all passes of a segment, in as many rounds as needed.

Where no pass can change a member list, every element runs its next pass in every round. Where a
pass can, because it is the first to contact a fresh broker, a round runs only the passes that begin
no later than the first such pass in their future: their views can no longer change.
"""

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from rebalance_core.timing import timer_periods
from rebalance_core.timing.delays import DROP_AFTER
from rebalance_core.timing.reference import rebalancing
from rebalance_core.timing.reference.rebalancing import CHANNEL_AFTER_US, SAMPLE_AFTER_US
from rebalance_core.timing.timer_periods import Times
from rebalance_core.timing.vectorized.elements import Elements
from rebalance_core.timing.vectorized.futures import Futures, longest_pass_us
from rebalance_core.timing.vectorized.known_routes import KnownRoutes
from rebalance_core.timing.vectorized.locks import OrderLocks
from rebalance_core.timing.vectorized.member_lists import MemberList, MemberLists
from rebalance_core.timing.vectorized.orderly_passes import LATER_US
from rebalance_core.timing.vectorized.pass_outcome import PassOutcome
from rebalance_core.timing.vectorized.passes import Runner
from rebalance_core.timing.vectorized.play_segments import PlaySegment
from rebalance_core.timing.vectorized.segment_holdings import Moves
from rebalance_core.timing.vectorized.shares import QueueSets, Shares
from rebalance_core.timing.vectorized.sorted_rows import SortedRows
from rebalance_core.timing.vectorized.steady import Steady
from rebalance_core.timing.vectorized.wake_ups import WakeUps

Ints = NDArray[np.int64]


class SegmentPlay:
    """The passes of a segment.

    Args:
        futures: state of the processes; passed to the next segment.
        segment: the part of the timeline.
        lifetimes: numbers of the lifetimes that exist.
        shares: the shares of all topics.
        sets: sets of queues.
        moves: receives changes of holdings.
        locks: the locks of the brokers, if the group is orderly.
    """

    def __init__(
        self,
        futures: Futures,
        segment: PlaySegment,
        lifetimes: Ints,
        shares: Shares,
        sets: QueueSets,
        moves: list[Moves],
        locks: OrderLocks | None,
    ) -> None:
        self._futures, self._segment = futures, segment
        self._shares, self._with_locks = shares, locks is not None
        self._routes = KnownRoutes(futures, segment, lifetimes)
        self._lists = MemberLists(futures, segment, lifetimes, self._routes)
        self._elements = Elements(futures, segment, lifetimes)
        self._wake_ups = WakeUps(futures, segment, lifetimes, self._lists.lists)
        self._passes = Runner(
            elements=self._elements,
            routes=self._routes,
            lists=self._lists,
            shares=shares,
            sets=sets,
            moves=moves,
            locks=locks,
        )
        self._orderly = self._passes.orderly
        self._blind = self._routes.blind.reshape(len(lifetimes), -1)
        self._fresh = [place for place in self._lists.lists if place.is_fresh]
        self._longest_pass_us = longest_pass_us(futures.timeline, futures.options)
        self._woken = np.full(len(self._elements.ids), timer_periods.NEVER)
        self._woken_after = np.full(len(self._woken), timer_periods.NEVER)
        versions = [futures.traits[lifetime].version for lifetime in lifetimes.tolist()]
        self._channel_active = np.array([v >= rebalancing.CHANNEL_ACTIVE for v in versions])[
            self._elements.lifetime
        ]

    def play(self) -> None:
        """Run all passes, and pass the state to the next segment."""
        if self._with_locks:
            self._run_with_locks()
        elif self._fresh:
            self._run_in_order()
        else:
            self._run_in_rounds()
        self._elements.keep()
        self._routes.keep()
        self._lists.keep()

    def _run_in_rounds(self) -> None:
        """Run each element's next pass, round by round, until it is steady or the segment ends."""
        state, steady = self._elements, None
        if not self._futures.silences:
            steady = Steady(state, self._segment, self._routes, self._lists, self._shares)
        idle = list[Ints]()
        who, begin = self._due(np.arange(len(state.ids)))
        while len(who):
            if steady is None:
                self._run(who, begin)
            else:
                over = steady.is_steady(who, begin)
                idle.append(who[over])
                who, begin = who[~over], begin[~over]
                if len(who):
                    outcome = self._passes.run(who, begin)
                    state.follow(who, begin, outcome.end_us, outcome.balanced)
            who, begin = self._due(who)
        if idle:
            self._run_idly(np.concatenate(idle))

    def _run_idly(self, who: Ints) -> None:
        """Run the passes of steady elements, which only take time."""
        state = self._elements
        state.alike_us[who] = timer_periods.NEVER
        who, begin = self._due(who)
        while len(who):
            state.follow(who, begin, begin + state.length[who], np.ones(len(who), bool))
            self._skip_idle(who)
            who, begin = self._due(who)

    def _due(self, who: Ints) -> tuple[Ints, Times]:
        """Return the elements whose next pass begins in the segment, and when it begins."""
        begin = self._next_begin(who, np.full(len(who), timer_periods.NEVER))
        due = begin < self._elements.limit[who]
        return who[due], begin[due]

    def _run_in_order(self) -> None:
        """Run passes that may register a client, and later passes, in chronological order."""
        state = self._elements
        everyone = np.arange(len(state.ids))
        while True:
            begin = self._next_begin(everyone, np.zeros(len(everyone), np.int64))
            soonest = np.minimum(begin, state.rest)
            if not (soonest < state.limit).any():
                return
            first = self._first_registration(
                np.where(soonest < state.limit, soonest, timer_periods.NEVER)
            )
            begin = self._next_begin(everyone, first[state.seed])
            due = (begin < state.limit) & (begin < state.rest)
            who = np.flatnonzero(due & (begin <= first[state.seed]))
            outcome = self._run(who, begin[who])
            self._register(who, begin[who], outcome)

    def _run_with_locks(self) -> None:
        """Run passes, including requests for order locks, in chronological order wherever they can
        affect one another.

        A pass releases nothing until the shortest `DROP_AFTER` has elapsed, and a pass with an
        unchanged view releases nothing at all. Requests before that time are therefore decided in
        every future: each lock goes to the first request for it.
        """
        state = self._elements
        everyone = np.arange(len(state.ids))
        while True:
            begin = self._next_begin(everyone, np.zeros(len(everyone), np.int64))
            soonest = state.next_act(begin)
            if not (soonest < timer_periods.NEVER).any():
                return
            first = self._first_registration(soonest)
            begin = self._next_begin(everyone, first[state.seed])
            due = (
                (begin < state.limit)
                & (begin < state.rest)
                & (state.asks_us == timer_periods.NEVER)
            )
            who = np.flatnonzero(due & (begin <= first[state.seed]))
            if len(who):
                self._register(who, begin[who], self._run(who, begin[who]))
                begin[who] = self._next_begin(who, first[state.seed[who]])
            settled_us = np.minimum(self._of_futures(self._acts_anew(begin)), first)
            open_us = np.where(
                settled_us < timer_periods.NEVER,
                settled_us + DROP_AFTER.shortest,
                timer_periods.NEVER,
            )
            asks_us = np.where(
                state.asks_us < timer_periods.NEVER, state.next_act(begin), timer_periods.NEVER
            )
            asks = np.flatnonzero(asks_us < open_us[state.seed])
            if len(asks):
                self._ask(asks, settled_us)

    def _ask(self, who: Ints, settled_us: Times) -> None:
        state = self._elements
        assert self._orderly is not None
        who = self._orderly.first_to_ask(who)
        outcome, refused_until = self._orderly.ask_for_locks(who)
        state.settle(who, outcome.end_us, outcome.balanced)
        self._register(who, state.used[who], outcome)
        until = np.minimum(refused_until, settled_us[state.seed[who]])
        until = np.minimum(until, state.alike_us[who])
        until = np.minimum(until, self._woken_next(who))
        until = np.minimum(until, np.minimum(state.limit[who], state.rest[who]))
        rows = np.flatnonzero((state.last_end[who] < until) & ~state.beats[who])
        if len(rows):
            self._orderly.retry_in_vain(who[rows], until[rows])

    def _acts_anew(self, begin: Times) -> Times:
        """Return (elements,) the time before which none of the element's passes has a new
        effect.
        """
        state = self._elements
        everyone = np.arange(len(state.ids))
        end = np.maximum(state.used + state.length, state.asks_us)  # the earliest time
        woken = np.minimum(self._woken_next(everyone), state.next_later(everyone))
        again = np.maximum(end + state.min_interval, np.minimum(woken, end + LATER_US))
        again = np.where(state.rest > end, np.minimum(again, state.rest), again)
        again = np.where(state.asks_us < timer_periods.NEVER, again, np.minimum(begin, state.rest))
        again = np.where(again < state.limit, again, timer_periods.NEVER)
        return np.maximum(again, state.alike_us)

    def _of_futures(self, times: Times) -> Times:
        """Return (S,) the earliest of these times in each future."""
        first: Times = times.reshape(-1, len(self._futures.seeds)).min(axis=0)
        return first

    def _next_begin(self, who: Ints, known_until: Times) -> Times:
        """Return when each element's next pass begins, after any rests before ``known_until``."""
        state = self._elements
        woken = self._woken_next(who)
        begin = state.next_begin(who, woken)
        while state.rests:
            rests = (state.rest[who] <= begin) & (state.rest[who] <= known_until)
            rests &= (state.rest[who] < state.limit[who]) & (
                state.asks_us[who] == timer_periods.NEVER
            )
            rows = np.flatnonzero(rests)
            if not len(rows):
                break
            state.put_out_of_step(who[rows], woken[rows])
            begin[rows] = state.next_begin(who[rows], woken[rows])
        return begin

    def _woken_next(self, who: Ints) -> Times:
        """Return the first unused wake-up of each element, or `NEVER`."""
        used = self._elements.used[who]
        if self._fresh:
            return self._wake_ups.first_after(who, used)
        old = np.flatnonzero(self._woken_after[who] != used)
        if len(old):
            rows = who[old]
            enough_us = None if self._orderly is not None else self._elements.no_sooner(rows)
            self._woken[rows] = self._wake_ups.first_after(rows, used[old], enough_us)
            self._woken_after[rows] = used[old]
        return self._woken[who]

    def _run(self, who: Ints, begin: Times) -> PassOutcome:
        outcome = self._passes.run(who, begin)
        self._elements.follow(who, begin, outcome.end_us, outcome.balanced)
        self._note_view(who, begin + SAMPLE_AFTER_US, outcome)
        at_rest = who[self._elements.asks_us[who] == timer_periods.NEVER]
        self._skip_idle(at_rest)
        return outcome

    def _note_view(self, who: Ints, seen_us: Times, outcome: PassOutcome) -> None:
        """Record how long each element's passes have the same view, whichever broker they query."""
        state = self._elements
        seed = state.seed[who]
        until = self._changes.first_after(seed, seen_us)
        for place in self._fresh:
            until = np.minimum(until, _next_change(place, seed, seen_us, self._blind))
        until = np.minimum(until - SAMPLE_AFTER_US, self._routes.next_lesson(who, state.used[who]))
        # no other element asks, and a pass sees the routes that the previous pass fetched
        asked_us = (
            state.used[who] if self._orderly is not None else state.last_end[who] + state.wait[who]
        )
        rows = np.flatnonzero((asked_us < until) & ~outcome.fetched)
        rows = rows[self._passes.answers.calm(who[rows], seen_us[rows])]
        state.alike_us[who] = timer_periods.BEFORE_ALL
        state.alike_us[who[rows]] = until[rows]

    def _skip_idle(self, who: Ints) -> None:
        """Skip passes whose view has not changed, because they change nothing."""
        state = self._elements
        until = np.minimum(state.alike_us[who], self._woken_next(who))
        until = np.minimum(until, state.next_later(who))
        until = np.minimum(np.minimum(until, self._segment.end_us), state.rest[who])
        rows = np.flatnonzero(state.last_end[who] + state.wait[who] < until)
        state.skip_before(who[rows], until[rows])

    @cached_property
    def _changes(self) -> SortedRows:
        """(S, K): when brokers go up or down, and when lists that are not fresh change."""
        columns: list[Times] = []
        for place in self._lists.lists:
            columns += [place.up, place.down]
            if not place.is_fresh:
                columns += [*place.since[place.moving], *place.until[place.moving]]
        none = np.empty((len(self._futures.seeds), 0), np.int64)
        return SortedRows(np.stack(columns, axis=1) if columns else none)

    def _first_registration(self, begin: Times) -> Times:
        """Return (S,) the time before which no current or later pass registers a client."""
        first = np.full(len(begin), timer_periods.NEVER, np.int64)
        for place in self._fresh:
            assert place.known_us is not None
            possible_us = np.where(
                self._routes.blind, begin, place.known_us.reshape(-1) - self._longest_pass_us
            )
            soonest = np.maximum(begin, possible_us)
            missing = (place.since.reshape(-1) > begin) & ~place.joins.reshape(-1)
            first = np.where(missing, np.minimum(first, soonest), first)
        return self._of_futures(first)

    def _register(self, who: Ints, begin: Times, outcome: PassOutcome) -> None:
        """Register members with fresh brokers during their passes: by heartbeat and, since 5.2, by
        the request for members.
        """
        beats = np.flatnonzero(outcome.notifies)
        fetched = who[outcome.fetched]
        for place in self._fresh:
            number = self._lists.lists.index(place)
            asked = (outcome.sampled == number).any(axis=0) & self._channel_active[who]
            register_us = np.where(asked, begin + CHANNEL_AFTER_US, timer_periods.NEVER)
            end = outcome.end_us[beats]
            reached = self._routes.reads(place.broker, who[beats], end)
            register_us[beats] = np.where(
                reached, np.minimum(register_us[beats], end), register_us[beats]
            )
            earlier = self._registers(place, who, register_us)
            place.fed.reshape(-1)[who[earlier]] = True
            changed = bool(earlier.any())
            if len(fetched):
                changed |= self._ticks_after_fetch(place, fetched, outcome.end_us[outcome.fetched])
            if changed:
                self._refresh(place)

    def _registers(self, place: MemberList, who: Ints, register_us: Times) -> NDArray[np.bool_]:
        """Apply the registrations that occur earlier than expected; return which of them do."""
        state = self._elements
        seed = state.seed[who]
        since = place.since.reshape(-1)
        earlier = (
            (register_us < since[who])
            & (register_us < state.ended[who])
            & ~place.joins.reshape(-1)[who]
        )
        earlier &= (place.up[seed] <= register_us) & (register_us < place.down[seed])
        earlier &= place.joining.reshape(-1)[who] <= register_us
        since[who[earlier]] = register_us[earlier]
        return earlier

    def _ticks_after_fetch(self, place: MemberList, who: Ints, end: Times) -> bool:
        """Add heartbeat ticks after a pass has fetched a route that no poll had yet delivered."""
        assert place.known_us is not None
        state = self._elements
        started = self._futures.ticks.beats_start[state.lifetimes].reshape(-1)[who]
        period = self._futures.ticks.periods.beat[state.lifetimes, 0][state.lifetime[who]]
        known_us = np.maximum(end, place.up[state.seed[who]])
        known_us = np.maximum(known_us, place.joining.reshape(-1)[who])
        first = started + timer_periods.FIRST_HEARTBEAT_US
        beat_us = first + np.maximum(-((first - known_us) // period), 0) * period
        reads = self._routes.reads(place.broker, who, beat_us)
        flat = place.known_us.reshape(-1)
        flat[who] = np.where(reads, np.minimum(flat[who], known_us), flat[who])
        return bool(
            self._registers(place, who, np.where(reads, beat_us, timer_periods.NEVER)).any()
        )

    def _refresh(self, place: MemberList) -> None:
        for each in self._wake_ups.fresh:
            if each.place is place:
                each.refresh()


def _next_change(place: MemberList, seed: Ints, seen_us: Times, blind: NDArray[np.bool_]) -> Times:
    """Return when a fresh list next changes, or ``seen_us`` where a pass may change it at any
    time.
    """
    assert place.known_us is not None
    cells = np.ix_(place.moving, seed)
    since, until, known_us = place.since[cells], place.until[cells], place.known_us[cells]
    times = np.concatenate([since, until, known_us])
    next_us = np.where(times > seen_us, times, timer_periods.NEVER).min(
        axis=0, initial=timer_periods.NEVER
    )
    open_ = ((known_us <= seen_us) | blind[cells]) & (since > seen_us)
    return np.where(open_.any(axis=0), seen_us, next_us)
