"""Times in many futures that no pass can change: joins, ends, registrations and ticks.

Arrays have the seeds as their last axis and hold microseconds since the epoch. Begin with `Ticks`.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from rebalance_core.contracts.observed import START_UP as FITTED_START_UP
from rebalance_core.model.times import CHANNEL_SCAN_MS
from rebalance_core.timing.broker_requests import HEARTBEAT_THREADS, Registrations
from rebalance_core.timing.delays import (
    CHANNEL_CLOSE,
    CLOSE_STEP,
    PASS_LENGTH,
    RECORDED_BROKERS,
    ROUTE_ANSWER,
    START_UP,
    START_UP_ALIKE,
    STARTED_TOGETHER_US,
    TIMERS_AFTER,
    longest_lead_us,
)
from rebalance_core.timing.draws import DRAW_BITS, Timer, all_below, draws_of, uniforms
from rebalance_core.timing.event_times import EventTimes
from rebalance_core.timing.group_timeline import ProcessLifetime, came_first
from rebalance_core.timing.options import MS_US, RANDOM_PHASES
from rebalance_core.timing.pass_costs import round_us
from rebalance_core.timing.route_times import RouteTimes
from rebalance_core.timing.timer_periods import (
    BEFORE_ALL,
    FIRST_COMMIT_US,
    FIRST_HEARTBEAT_US,
    FIRST_POLL_US,
    NEVER,
    Times,
)

_SHARE_ALIKE = np.uint64(round(START_UP_ALIKE * (1 << DRAW_BITS)))


class ClientTimes(EventTimes):
    """The times of clients' timers.

    Groups with the same client id share an instance, and with it the scheduler of the first group.
    """

    @cached_property
    def sharing_groups(self) -> tuple[Ticks, ...]:
        """The `Ticks` of the other groups that share client instances with this group."""
        return tuple(
            Ticks(sharing_group, self.seeds, self.options)
            for sharing_group in self.timeline.together[1:]
        )

    @cached_property
    def shared(self) -> NDArray[np.bool_]:
        """(lifetimes,): whether another group uses the lifetime's client instance at any time."""
        return np.array([bool(sharing_groups) for sharing_groups in self.timeline.sharing], bool)

    @cached_property
    def _leaders(self) -> dict[int, tuple[Ticks, ProcessLifetime]]:
        """The `Ticks` and the lifetime of the instance's creator, for lifetimes that joined an
        existing instance.
        """
        leaders = {}
        for lifetime, shared in zip(self.timeline.lifetimes, self.timeline.sharing, strict=True):
            before = [(n, each) for n, each in shared if came_first(each) < came_first(lifetime)]
            if before:
                number, first = min(before, key=lambda numbered: came_first(numbered[1]))
                leaders[lifetime.index] = self.sharing_groups[number], first
        return leaders

    @cached_property
    def created(self) -> Times:
        """(lifetimes, S): when the client was created."""
        longest = np.maximum(self.periods.poll, self.periods.beat)
        phase = all_below(draws_of(self.words, Timer.PHASE), longest)
        unknown = np.where(self.unknown_phase[:, None], phase, 0)
        created: Times = self.joined - self.start_up_us - unknown
        return created

    @cached_property
    def start_up_us(self) -> Times:
        """(lifetimes, S): how long ``start()`` takes: the time in the options, or a recorded or
        fitted time. With many brokers, it takes at least as long as the registrations, for which it
        waits.
        """
        if self.options.start_up_ms is not None:
            return np.full_like(self.joined, self.options.start_up_ms * MS_US)
        fitted = self.options.fitted(FITTED_START_UP)
        if fitted is not None:
            start_up = fitted.many(self._start_up_draws())
        else:
            start_up = START_UP.many(self._start_up_draws()) + self._look_ups_us[:, None]
        if not self.starts_without_heartbeat:
            for each in self.registrations:
                if fitted is None:
                    start_up[each.lifetimes] += each.trips_us[:, None]
                if len(each.brokers) > RECORDED_BROKERS:
                    start_up[each.lifetimes] = np.maximum(
                        start_up[each.lifetimes], each.start_up_us
                    )
        return start_up

    @cached_property
    def _look_ups_us(self) -> Times:
        """(lifetimes,): the time to connect to a name server and look up each topic's route."""
        topics = [len(e.states[0][1].subscriptions) for e in self.timeline.lifetimes]
        return (np.array(topics, np.int64) + 2) * self.options.rtt_us  # includes the retry topic

    def _start_up_draws(self) -> NDArray[np.uint64]:
        """Return (lifetimes, S) draws; in some futures, processes that start together share the
        first one's draw.
        """
        drawn = draws_of(self.words, Timer.START_UP)
        first = self._first_of_start()
        alike = draws_of(self.words[first], Timer.START_TOGETHER) < _SHARE_ALIKE
        return np.where(alike, drawn[first], drawn)

    def _first_of_start(self) -> NDArray[np.int64]:
        """Return (lifetimes,) the first of the processes that started together with each lifetime,
        by join times.
        """
        first: list[int] = []
        latest_us = None
        for lifetime in self.timeline.lifetimes:
            joined_us = lifetime.joined.event_us
            together = latest_us is not None and joined_us - latest_us <= STARTED_TOGETHER_US
            first.append(first[-1] if together and not lifetime.observed else lifetime.index)
            latest_us = None if lifetime.observed else joined_us
        return np.array(first, np.int64)

    @cached_property
    def unknown_phase(self) -> NDArray[np.bool_]:
        """(lifetimes,): whether the start of the client's timers is unknown."""
        everybody = self.options.phases == RANDOM_PHASES
        return np.array(
            [everybody or lifetime.observed for lifetime in self.timeline.lifetimes], bool
        )

    @cached_property
    def own_start(self) -> Times:
        """(lifetimes, S): when the client's own timer, which runs ``lockAll``, starts."""
        draws = draws_of(self.words, Timer.TIMERS_AFTER)
        started: Times = self.created + TIMERS_AFTER.many(draws)
        return started

    @cached_property
    def instance_start(self) -> Times:
        """(lifetimes, S): when the scheduler of its instance started: polls, heartbeats,
        commits.
        """
        started = self.own_start.copy()
        for number, (sharing_group, first) in self._leaders.items():
            started[number] = sharing_group.own_start[first.index]
        return started

    @cached_property
    def timers_start(self) -> Times:
        """(lifetimes, S): the origin of the numbering of route polls."""
        return self._counted_from(self.periods.poll)

    @cached_property
    def beats_start(self) -> Times:
        """(lifetimes, S): the origin of the numbering of heartbeats."""
        return self._counted_from(self.periods.beat)

    def _counted_from(self, period: Times) -> Times:
        """Return the first times in step with the instance's scheduler that are not before the
        group exists.
        """
        late = np.maximum(self.created - self.instance_start, 0)
        late[[lifetime.index not in self._leaders for lifetime in self.timeline.lifetimes]] = 0
        started: Times = self.instance_start - (-late // period) * period
        return started

    def commit_age_us(
        self, lifetimes: NDArray[np.int64], seeds: NDArray[np.int64], at_us: Times
    ) -> Times:
        """Return (n,) the time since the last tick that committed the offsets of all groups of a
        client.

        Args:
            lifetimes: (n,) numbers of the clients.
            seeds: (n,) indices of the futures.
            at_us: (n,) the times at which the ages are measured.
        """
        persists = [
            lifetime.intervals.persist_consumer_offset_interval_ms
            for lifetime in self.timeline.lifetimes
        ]
        period = np.array(persists, np.int64)[lifetimes] * MS_US
        age: Times = (at_us - self.instance_start[lifetimes, seeds] - FIRST_COMMIT_US) % period
        return age

    @cached_property
    def first_pass_end(self) -> Times:
        """(lifetimes, S): the initial state of the pass clock; for a joining client, its
        creation.
        """
        if not self.timeline.changes:
            return self.created
        phase = all_below(draws_of(self.words, Timer.PASS_PHASE), self.periods.wait)
        observed = np.array([lifetime.observed for lifetime in self.timeline.lifetimes], bool)[
            :, None
        ]
        before = self.timeline.begin_us - phase
        # the clock of a running instance continues, and its last pass is unknown
        late = np.array(
            [lifetime.index in self._leaders for lifetime in self.timeline.lifetimes], bool
        )[:, None]
        created = np.where(late, self.created - self.periods.least, self.created)
        times: Times = np.where(observed, before, created)
        return times

    @cached_property
    def pass_length(self) -> Times:
        """(lifetimes, S): how long each pass of the process takes for all groups it serves."""
        length = PASS_LENGTH.many(draws_of(self.words, Timer.PASS_LENGTH))
        for lifetime, shared in zip(self.timeline.lifetimes, self.timeline.sharing, strict=True):
            for _, each in shared:
                draws = uniforms(self.seeds, each.entity, Timer.PASS_LENGTH)
                length[lifetime.index] += PASS_LENGTH.many(draws)
        # the retry topic's list as well
        length += self.lists_us[:, None] + self.options.rtt_us
        return length

    @cached_property
    def lists_us(self) -> Times:
        """(lifetimes,): how long a pass waits for round trips to get the members for its topics."""
        topics = [len(e.states[0][1].subscriptions) for e in self.timeline.lifetimes]
        return np.array(topics, np.int64) * self.options.rtt_us

    @cached_property
    def round_us(self) -> Times:
        """(lifetimes, S): the duration of a heartbeat round in excess of the recorded one."""
        brokers = [
            -(-len(lifetime.first_brokers) // HEARTBEAT_THREADS)
            if self.beats_at_once(lifetime)
            else len(lifetime.first_brokers)
            for lifetime in self.timeline.lifetimes
        ]
        draws = draws_of(self.words, Timer.HEARTBEAT_ROUND)
        return round_us(self.options, np.array(brokers, np.int64)[:, None], draws)

    def poll_us(self, lifetime: int, number: NDArray[np.int64]) -> Times:
        """Return the tick of a route poll, which determines the route that it gets; ``number`` is
        (..., S).
        """
        tick: Times = (
            self.timers_start[lifetime] + FIRST_POLL_US + number * self.periods.poll[lifetime]
        )
        return tick

    def poll_answered_us(self, lifetime: int, number: NDArray[np.int64]) -> Times:
        """Return when the client begins to use the answer to a route poll; ``number`` is (...,
        S).
        """
        draws = draws_of(self.words[lifetime], Timer.ROUTE_ANSWER, number)
        return self.poll_us(lifetime, number) + ROUTE_ANSWER.many(draws)

    def heartbeat_us(self, lifetime: int, number: NDArray[np.int64]) -> Times:
        """Return the tick of a heartbeat."""
        first = self.beats_start[lifetime] + FIRST_HEARTBEAT_US
        tick: Times = first + number * self.periods.beat[lifetime]
        return tick


_APART_US = 100 * MS_US
"""The earliest registrations of members that join together are spread over this time."""


class ListTimes(ClientTimes):
    """The times of registrations that no pass can change."""

    @cached_property
    def registered(self) -> Times:
        """(lifetimes, brokers, S): first registrations; `NEVER` where the join does not reach the
        broker.

        Times are counted back from the return of ``start()``, which follows the last registration.
        """
        shape = len(self.timeline.lifetimes), len(self.timeline.brokers), len(self.seeds)
        times = np.full(shape, NEVER, np.int64)
        for lifetime in self.timeline.lifetimes:
            if lifetime.observed:
                times[lifetime.index, list(lifetime.first_brokers)] = BEFORE_ALL
        for registrations in self.registrations:
            cells = np.ix_(registrations.lifetimes, registrations.brokers)
            times[cells] = self._at_join(registrations)
        return times

    def _at_join(self, registrations: Registrations) -> Times:
        """Return (n, brokers, S) when each broker registers each lifetime."""
        lifetimes, rank = registrations.lifetimes, registrations.rank
        joined = self.joined[lifetimes, None]
        longest = longest_lead_us(len(rank), self.options)
        earliest = np.maximum(self.created[lifetimes, None], joined - longest)
        if self.starts_without_heartbeat:
            # A slow start() waits for the route, and so does the first heartbeat.
            first = self.beats_start[lifetimes, None] + FIRST_HEARTBEAT_US
            register_us = first + registrations.total_us[:, rank + 1]
        else:
            register_us = joined - registrations.before_join_us
        # Makes the times distinct, so that their order in the arrays does not matter.
        offset = rank + lifetimes[:, None] * len(rank) % _APART_US
        times: Times = np.maximum(register_us, earliest + offset[:, :, None])
        return times

    @cached_property
    def unregistered(self) -> Times:
        """(lifetimes, brokers, S): when a broker removes it from its list at its end; `NEVER` if it
        stays.

        It does not check whether the client was registered there.
        """
        shape = len(self.timeline.lifetimes), len(self.timeline.brokers), len(self.seeds)
        times = np.full(shape, NEVER, np.int64)
        kinds: tuple[list[int], ...] = [], [], []
        for lifetime in self.timeline.lifetimes:
            if lifetime.ending is not None and self.timeline.brokers:
                kinds[
                    0 if lifetime.ending.graceful else 1 if lifetime.ending.notified else 2
                ].append(lifetime.index)
        graceful, closed, silent = (np.array(lifetimes, np.int64) for lifetimes in kinds)
        times[graceful] = self.stopped[graceful, None] + self.unregistrations_us(graceful)
        brokers = np.arange(shape[1])[:, None]
        times[closed] = self.ended[closed, None] + self._closed(closed, brokers)
        for number in silent.tolist():
            draws = draws_of(self.words[number], Timer.SCAN_PHASE, brokers)
            scan = all_below(draws, CHANNEL_SCAN_MS * MS_US)
            seen = list(self.timeline.lifetimes[number].first_brokers) or slice(None)
            late = np.maximum(scan - scan[seen].min(axis=0), 0)
            times[number] = self.ended[number] + late
        return times

    def _deaths(self, lifetimes: NDArray[np.int64]) -> list[list[int]]:
        """Return the indices of lifetimes that end at the same instant, as when a process or host
        dies.
        """
        deaths: dict[tuple[int, int], list[int]] = {}
        for place, number in enumerate(lifetimes.tolist()):
            ending = self.timeline.lifetimes[number].ending
            assert ending is not None
            alone = place + 1 if ending.moment.to_the_second else 0
            deaths.setdefault((ending.moment.event_us, alone), []).append(place)
        return list(deaths.values())

    def _closed(self, lifetimes: NDArray[np.int64], brokers: NDArray[np.int64]) -> Times:
        """Return (lifetimes, brokers, S) the time from a process's death until a broker handles its
        connection.

        The connections of processes that die at the same instant close together, and each broker
        handles them one after another.
        """
        close = CHANNEL_CLOSE.many(draws_of(self.words[lifetimes, None], Timer.CHANNEL_CLOSE))
        step = CLOSE_STEP.many(draws_of(self.words[lifetimes, None], Timer.CLOSE_STEP, brokers))
        entities = [self.timeline.lifetimes[number].entity for number in lifetimes.tolist()]
        for places in self._deaths(lifetimes):
            if len(places) > 1:
                close[places] = close[min(places, key=entities.__getitem__)]
                draws = draws_of(self.words[lifetimes[places], None], Timer.CLOSE_TURN)
                turn = np.argsort(draws, axis=0, kind="stable")
                waits = np.cumsum(np.take_along_axis(step[places], turn, axis=0), axis=0)
                handled = np.empty_like(waits)
                np.put_along_axis(handled, turn, waits, axis=0)
                step[places] = handled
        return close + step


class Ticks(ListTimes, RouteTimes):
    """A timeline's times in many futures.

    Attributes:
        timeline: what happens.
        seeds: (S,) the seeds of the futures.
        options: the simulation's options.
    """
