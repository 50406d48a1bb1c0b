"""Times that no pass can change, of many futures at once: joins, endings, registrations, ticks.

Arrays have the seeds as their last axis and hold microseconds since the epoch.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from rebalance_core.clockwork.delays import (
    BROKER_STEP,
    CHANNEL_CLOSE,
    PASS_LENGTH,
    REGISTRATION_LEAD,
    ROUTE_ANSWER,
    ROUTE_VISIBLE,
    START_UP,
)
from rebalance_core.clockwork.draws import Timer, all_below, uniforms
from rebalance_core.clockwork.options import MS_US, RANDOM_PHASES, SECOND_US, ClockOptions
from rebalance_core.clockwork.script import Life, Moment, RouteVersion, Script
from rebalance_core.model.timers import (
    CHANNEL_SCAN_MS,
    HEARTBEAT_MS,
    LOCK_RENEWAL_MS,
    REBALANCE_WAIT_MS,
    ROUTE_POLL_MS,
)

Times = NDArray[np.int64]

NEVER = np.iinfo(np.int64).max // 2
"""Later than everything."""
BEFORE_ALL = -NEVER
"""From before the log."""

POLL_US = ROUTE_POLL_MS * MS_US
HEARTBEAT_US = HEARTBEAT_MS * MS_US
LOCK_RENEWAL_US = LOCK_RENEWAL_MS * MS_US
FIRST_POLL_US = 10 * MS_US
"""MQClientInstance.startScheduledTask: initial delay of the route poll."""
FIRST_HEARTBEAT_US = 1 * SECOND_US
"""MQClientInstance.startScheduledTask: initial delay of the heartbeat."""
FIRST_LOCK_RENEWAL_US = 1 * SECOND_US
"""ConsumeMessageOrderlyService.start: initial delay of lockMQPeriodically."""
_LEAVING = 1_000  # ticks of BROKER_STEP at the end of a life; below: at its join


@dataclass(frozen=True)
class Ticks:
    """Times of one script in some futures.

    Attributes:
        script: what happens.
        seeds: (S,) of the futures.
        options: what was asked for.
    """

    script: Script
    seeds: NDArray[np.int64]
    options: ClockOptions

    # --- events ---------------------------------------------------------------------------

    def true_us(self, moment: Moment) -> Times:
        """(S,) when an event happened."""
        if not moment.to_the_second:
            return np.full(len(self.seeds), moment.event_us, np.int64)
        draws = uniforms(self.seeds, moment.entity, Timer.EVENT_CLOCK)
        return moment.event_us + all_below(draws, SECOND_US)

    def states_us(self, life: Life) -> list[Times]:
        """(S,) by state of a life: since when it holds; never before the one before it."""
        since = [self.joined[life.index]]
        for moment, _ in life.states[1:]:
            since.append(np.maximum(since[-1], self.true_us(moment)))
        return since

    @cached_property
    def joined(self) -> Times:
        """(lives, S): the joins."""
        return self._by_life([self.true_us(life.joined) for life in self.script.lives])

    @cached_property
    def ended(self) -> Times:
        """(lives, S): the ends, `NEVER` for a process that stays; not before the last state."""
        rows = []
        for life in self.script.lives:
            if life.ending is None:
                rows.append(np.full(len(self.seeds), NEVER, np.int64))
            else:
                rows.append(np.maximum(self.states_us(life)[-1], self.true_us(life.ending.moment)))
        return self._by_life(rows)

    # --- routes ---------------------------------------------------------------------------

    def route_visible_us(self, topic: int) -> Times:
        """(versions, S): since when the name server answers with each version of a route."""
        rows: list[Times] = []
        for version in self.script.routes[topic]:
            at = self._visible_us(version)
            rows.append(at if not rows else np.maximum(rows[-1], at))
        return np.stack(rows) if rows else np.empty((0, len(self.seeds)), np.int64)

    def _visible_us(self, version: RouteVersion) -> Times:
        if version.moment is None:
            return np.full(len(self.seeds), BEFORE_ALL, np.int64)
        delay = ROUTE_VISIBLE.many(uniforms(self.seeds, version.entity, Timer.ROUTE_VISIBLE))
        return self.true_us(version.moment) + delay

    @cached_property
    def route_lag(self) -> Times:
        """(lives, S): how much later a client's name server learns of routes."""
        shape = len(self.script.lives), len(self.seeds)
        if not self.options.late_share:
            return np.zeros(shape, np.int64)
        entities = self._entities()[:, None]
        draws = uniforms(self.seeds, entities, Timer.NAME_SERVER)
        late = draws < np.uint64(round(self.options.late_share * (1 << 32)))
        return np.where(late, self.options.late_ms * MS_US, 0)

    # --- clients --------------------------------------------------------------------------

    @cached_property
    def created(self) -> Times:
        """(lives, S): when the client was created; its timers run from here."""
        entities = self._entities()[:, None]
        start_up = START_UP.many(uniforms(self.seeds, entities, Timer.START_UP))
        phase = all_below(uniforms(self.seeds, entities, Timer.PHASE), POLL_US)
        unknown = np.where(self.unknown_phase[:, None], phase, 0)
        created: Times = self.joined - start_up - unknown
        return created

    @cached_property
    def unknown_phase(self) -> NDArray[np.bool_]:
        """(lives,): nothing is known of when its timers started."""
        everybody = self.options.phases == RANDOM_PHASES
        return np.array([everybody or life.observed for life in self.script.lives], bool)

    @cached_property
    def first_pass_end(self) -> Times:
        """(lives, S): where the clock of passes stands at first; of who joins, at its creation."""
        if not self.script.changes:
            return self.created
        entities = self._entities()[:, None]
        draws = uniforms(self.seeds, entities, Timer.PASS_PHASE)
        phase = all_below(draws, REBALANCE_WAIT_MS * MS_US)
        observed = np.array([life.observed for life in self.script.lives], bool)[:, None]
        before = self.script.changes[0].begin_us - phase
        times: Times = np.where(observed, before, self.created)
        return times

    @cached_property
    def pass_length(self) -> Times:
        """(lives, S): of each pass of the process."""
        return PASS_LENGTH.many(uniforms(self.seeds, self._entities()[:, None], Timer.PASS_LENGTH))

    def poll_us(self, life: int, number: NDArray[np.int64]) -> Times:
        """Tick of a route poll; the route is that of the tick. ``number``: (..., S)."""
        tick: Times = self.created[life] + FIRST_POLL_US + number * POLL_US
        return tick

    def poll_answered_us(self, life: int, number: NDArray[np.int64]) -> Times:
        """When the answer of a route poll is in use. ``number``: (..., S)."""
        entity = self.script.lives[life].entity
        draws = uniforms(self.seeds, entity, Timer.ROUTE_ANSWER, number)
        return self.poll_us(life, number) + ROUTE_ANSWER.many(draws)

    def first_poll_from(self, life: int, at_us: Times) -> NDArray[np.int64]:
        """The number of the first route poll at or after a time; (..., S)."""
        return _first_from(self.created[life] + FIRST_POLL_US, POLL_US, at_us)

    def heartbeat_us(self, life: int, number: NDArray[np.int64]) -> Times:
        """Tick of a heartbeat."""
        tick: Times = self.created[life] + FIRST_HEARTBEAT_US + number * HEARTBEAT_US
        return tick

    def first_heartbeat_from(self, life: int, at_us: Times) -> NDArray[np.int64]:
        """The number of the first heartbeat tick at or after a time; (..., S)."""
        return _first_from(self.created[life] + FIRST_HEARTBEAT_US, HEARTBEAT_US, at_us)

    def last_lock_renewal(self, life: int, at_us: Times) -> Times:
        """The last tick of lockAll at or before a time; `BEFORE_ALL` if there was none."""
        first = self.created[life] + FIRST_LOCK_RENEWAL_US
        number = (at_us - first) // LOCK_RENEWAL_US
        tick = first + number * LOCK_RENEWAL_US
        times: Times = np.where(number < 0, BEFORE_ALL, tick)
        return times

    # --- brokers --------------------------------------------------------------------------

    @cached_property
    def broker_rank(self) -> NDArray[np.int64]:
        """(lives, brokers, S): the order in which a client goes through the brokers."""
        brokers = np.arange(len(self.script.brokers))
        entities = self._entities()[:, None, None]
        draws = uniforms(self.seeds, entities, Timer.BROKER_ORDER, brokers[:, None])
        # A stable sort: equal draws keep the order of the brokers.
        return np.argsort(np.argsort(draws, axis=1, kind="stable"), axis=1, kind="stable")

    @cached_property
    def registered(self) -> Times:
        """(lives, brokers, S): first registrations; `NEVER` where the join reaches no broker."""
        shape = len(self.script.lives), len(self.script.brokers), len(self.seeds)
        times = np.full(shape, NEVER, np.int64)
        for life in self.script.lives:
            given = np.array(life.first_brokers, int)
            if life.observed:
                times[life.index, given] = BEFORE_ALL
            elif len(given):
                rank = np.argsort(np.argsort(self.broker_rank[life.index, given], axis=0), axis=0)
                draws = uniforms(self.seeds, life.entity, Timer.REGISTRATION_LEAD)
                first = self.joined[life.index] - REGISTRATION_LEAD.many(draws)
                times[life.index, given] = first + self._steps(life, rank, 0)
        return times

    @cached_property
    def unregistered(self) -> Times:
        """(lives, brokers, S): when a broker's list loses it at its end; `NEVER` if it stays.

        Whether it is registered there is not asked.
        """
        shape = len(self.script.lives), len(self.script.brokers), len(self.seeds)
        times = np.full(shape, NEVER, np.int64)
        brokers = np.arange(len(self.script.brokers))[:, None]
        for life in self.script.lives:
            ending = life.ending
            if ending is None:
                continue
            at = self.ended[life.index]
            if ending.graceful:
                rank = self.broker_rank[life.index]
                times[life.index] = at + self._steps(life, rank + 1, _LEAVING)
            elif ending.told:
                draws = uniforms(self.seeds, life.entity, Timer.CHANNEL_CLOSE, brokers)
                times[life.index] = at + CHANNEL_CLOSE.many(draws)
            else:
                draws = uniforms(self.seeds, life.entity, Timer.SCAN_PHASE, brokers)
                scan = all_below(draws, CHANNEL_SCAN_MS * MS_US)
                seen = list(life.first_brokers) or list(range(len(brokers)))
                times[life.index] = at + np.maximum(scan - scan[seen].min(axis=0), 0)
        return times

    def _steps(self, life: Life, rank: NDArray[np.int64], tick: int) -> Times:
        """What a client's requests to ``rank`` brokers take, one after the other."""
        most = int(rank.max(initial=0))
        draws = uniforms(
            self.seeds, life.entity, Timer.BROKER_STEP, tick + np.arange(most)[:, None]
        )
        total = np.zeros((most + 1, len(self.seeds)), np.int64)
        np.cumsum(BROKER_STEP.many(draws), axis=0, out=total[1:])
        return np.take_along_axis(total, rank, axis=0)

    def _entities(self) -> NDArray[np.uint64]:
        return np.array([life.entity for life in self.script.lives], np.uint64)

    def _by_life(self, rows: list[Times]) -> Times:
        return np.stack(rows) if rows else np.empty((0, len(self.seeds)), np.int64)


def _first_from(first: Times, period: int, at_us: Times) -> NDArray[np.int64]:
    numbers: NDArray[np.int64] = np.maximum(-((first - at_us) // period), 0)
    return numbers
