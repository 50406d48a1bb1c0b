"""Play the passes and heartbeats of a segment for a group whose members' subscriptions differ.

A pass sends nothing to a broker until `SOONEST_US` after it begins, and no broker wakes a client in
less than the shortest `NOTICE`. Passes that begin before the sum of the two are therefore decided
in every future and run together.
"""

import numpy as np
from numpy.typing import NDArray

from rebalance_core.model.group_settings import PUSH
from rebalance_core.timing.delays import DROP_AFTER, NOTICE, PASS_LENGTH
from rebalance_core.timing.reference import rebalancing
from rebalance_core.timing.reference.rebalancing import CHANNEL_AFTER_US, SAMPLE_AFTER_US
from rebalance_core.timing.timer_periods import NEVER, Times
from rebalance_core.timing.vectorized.event_calendar import Calendar
from rebalance_core.timing.vectorized.futures import Futures
from rebalance_core.timing.vectorized.locks import OrderLocks
from rebalance_core.timing.vectorized.mixed_elements import MixedElements
from rebalance_core.timing.vectorized.mixed_state import MixedState
from rebalance_core.timing.vectorized.mixed_wakes import Wakes
from rebalance_core.timing.vectorized.open_lists import OpenLists
from rebalance_core.timing.vectorized.pass_outcome import PassOutcome
from rebalance_core.timing.vectorized.passes import Runner
from rebalance_core.timing.vectorized.play_segments import PlaySegment
from rebalance_core.timing.vectorized.segment_holdings import Moves
from rebalance_core.timing.vectorized.shares import QueueSets, Shares
from rebalance_core.timing.vectorized.subscribed_routes import SubscribedRoutes
from rebalance_core.timing.vectorized.topic_tables import TopicTables

Ints = NDArray[np.int64]
SOONEST_US = min(CHANNEL_AFTER_US, PASS_LENGTH.shortest)
"""The shortest time from the start of a pass to its first message to a broker."""


class MixedPlay:
    """The passes of a segment.

    Args:
        futures: state of the processes; passed to the next segment.
        mixed: state of the brokers; passed to the next segment.
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
        mixed: MixedState,
        segment: PlaySegment,
        lifetimes: Ints,
        shares: Shares,
        sets: QueueSets,
        moves: list[Moves],
        locks: OrderLocks | None,
    ) -> None:
        self._futures, self._segment = futures, segment
        self._routes = SubscribedRoutes(futures, segment, lifetimes, mixed)
        self._lists = OpenLists(futures, segment, lifetimes, self._routes, mixed)
        self._elements = MixedElements(futures, segment, lifetimes, self._routes.subscriptions)
        self._agenda = Calendar(futures, segment, lifetimes, self._lists.lists, mixed)
        self._wakes = Wakes(mixed, lifetimes)
        self._tables = TopicTables(
            self._elements, self._routes, self._lists.lists, self._agenda, self._wakes, mixed
        )
        self._passes = Runner(
            elements=self._elements,
            routes=self._routes,
            lists=self._lists,
            shares=shares,
            sets=sets,
            moves=moves,
            locks=locks,
        )
        self._started = self._own_wake_ups()
        versions = [futures.traits[lifetime].version for lifetime in lifetimes.tolist()]
        active = np.array([v >= rebalancing.CHANNEL_ACTIVE for v in versions])
        self._channel_active = active[self._elements.lifetime]
        self._fresh = any(place.is_fresh for place in self._lists.lists)
        # passes run once the member lists that they will read are known
        self._sees_us = SAMPLE_AFTER_US if self._fresh else 0
        # from the start of a pass until it first sends to a broker
        self._unheard_us = np.minimum(self._elements.length, SOONEST_US if self._fresh else NEVER)

    def play(self) -> None:
        """Run all passes, and pass the state to the next segment."""
        self._run_in_order()
        for each in (self._elements, self._routes, self._lists, self._agenda, self._wakes):
            each.keep()

    def _run_in_order(self) -> None:
        """Run the passes in chronological order wherever that order matters."""
        state = self._elements
        nothing = np.zeros(len(state.ids), np.int64)
        while True:
            begin = self._next_begin(nothing)
            soonest = state.next_act(begin)
            unheard_us = np.where(state.asks_us < NEVER, 0, self._unheard_us)
            heard_us = self._hear(self._first(soonest + unheard_us))
            begin = self._next_begin(heard_us[state.seed])
            acts = state.next_act(begin)
            asks = self._asking(acts, heard_us)
            due = (begin < state.limit) & (begin < state.rest) & (state.asks_us == NEVER)
            who = np.flatnonzero(due & (begin + self._sees_us < heard_us[state.seed]))
            if len(who):
                self._run(who, begin[who])
            if len(asks):
                self._ask(asks)
            # includes passes that the last event wakes, however long its notice takes
            over = not (len(who) or len(asks) or (np.minimum(soonest, acts) < NEVER).any())
            if over and not (self._agenda.next_us() < NEVER).any():
                return

    def _asking(self, soonest: Times, heard_us: Times) -> Ints:
        """Return the elements that request order locks before any other element in the same future
        requests or releases locks.
        """
        state = self._elements
        asks = (soonest == state.asks_us) & (soonest < NEVER)
        # no pass releases a lock earlier
        acts = np.where(asks, soonest, soonest + DROP_AFTER.shortest)
        asks &= (soonest == self._first(acts)[state.seed]) & (soonest <= heard_us[state.seed])
        who = np.flatnonzero(asks)
        one_each = np.unique(state.seed[who], return_index=True)[1]
        return np.asarray(who[one_each], np.int64)

    def _ask(self, who: Ints) -> None:
        assert self._passes.orderly is not None
        outcome, _ = self._passes.orderly.ask_for_locks(who)
        self._elements.settle(who, outcome.end_us, outcome.balanced)
        self._beat(who, self._elements.number[who] - 1, outcome)

    def _beat(self, who: Ints, number: Ints, outcome: PassOutcome) -> None:
        """Send the heartbeats of passes that changed something."""
        rows = np.flatnonzero(outcome.notifies & (outcome.end_us < self._elements.ended[who]))
        cells = self._elements.lifetime[who[rows]], self._elements.seed[who[rows]]
        self._agenda.beat_us[cells] = outcome.end_us[rows]
        self._agenda.beat_of[cells] = number[rows]

    def _first(self, times: Times) -> Times:
        """Return (S,) the earliest of these times in each future."""
        first: Times = times.reshape(-1, len(self._futures.seeds)).min(axis=0)
        return first

    def _hear(self, until_us: Times) -> Times:
        """Apply the brokers' events before a time; return (S,) the time up to which all are
        applied.

        As soon as a broker notifies a member, passes run as far as possible, which keeps all
        futures in step.
        """
        until_us, sent = np.minimum(until_us, NEVER), np.zeros(1, bool)
        while True:
            next_us = self._agenda.next_us()
            seeds = np.flatnonzero(next_us < until_us)
            if sent.any() or not len(seeds):
                return np.minimum(next_us, until_us)
            sent = self._tables.on_heartbeats(self._agenda.take(seeds))
            soonest = next_us[seeds] + NOTICE.shortest + SOONEST_US
            until_us[seeds] = np.where(sent, np.minimum(until_us[seeds], soonest), until_us[seeds])

    def _next_begin(self, known_until: Times) -> Times:
        """Return when each element's next pass begins, after any rests before ``known_until``."""
        state = self._elements
        everyone = np.arange(len(state.ids))
        woken = self._wakes.first_after(state.used)
        woken = np.where(self._started > state.used, np.minimum(woken, self._started), woken)
        begin = state.next_begin(everyone, woken)
        while True:
            rests = (state.rest <= begin) & (state.rest <= known_until) & (state.rest < state.limit)
            rests &= state.asks_us == NEVER
            rows = np.flatnonzero(rests)
            if not len(rows):
                return begin
            state.put_out_of_step(rows, woken[rows])
            begin[rows] = state.next_begin(rows, woken[rows])

    def _run(self, who: Ints, begin: Times) -> None:
        state = self._elements
        number = state.number[who]
        outcome = self._passes.run(who, begin)
        state.follow(who, begin, outcome.end_us, outcome.balanced)
        self._beat(who, number, outcome)
        if self._fresh:
            self._open_channels(who, begin, outcome)

    def _open_channels(self, who: Ints, begin: Times, outcome: PassOutcome) -> None:
        """Schedule the heartbeat to the broker that a pass queried (since 5.2)."""
        state = self._elements
        for number, place in enumerate(self._lists.lists):
            asked = (outcome.sampled == number).any(axis=0) & self._channel_active[who]
            since = place.since.reshape(-1)[who]
            rows = np.flatnonzero(asked & (since > begin + SAMPLE_AFTER_US))
            cells = state.lifetime[who[rows]], state.seed[who[rows]]
            self._agenda.channel_us[number][cells] = begin[rows] + CHANNEL_AFTER_US

    def _own_wake_ups(self) -> Times:
        """Return (elements,) the wake-up that ends a push consumer's ``start()``, or `NEVER`."""
        state, futures = self._elements, self._futures
        if futures.timeline.settings.consumer_type != PUSH:
            return np.full(len(state.ids), NEVER, np.int64)
        joined = futures.ticks.joined[state.lifetimes].reshape(-1)
        return np.where(state.observed, NEVER, joined)
