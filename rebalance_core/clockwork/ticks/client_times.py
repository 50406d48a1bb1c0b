"""When the timers of a client tick."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from rebalance_core.clockwork.delays import (
    PASS_LENGTH,
    ROUTE_ANSWER,
    START_UP,
    START_UP_ALIKE,
    STARTED_TOGETHER_US,
    TIMERS_AFTER,
)
from rebalance_core.clockwork.draws import DRAW_BITS, Timer, all_below, uniforms
from rebalance_core.clockwork.options import MS_US, RANDOM_PHASES
from rebalance_core.clockwork.ticks.event_times import EventTimes
from rebalance_core.clockwork.ticks.times import (
    BEFORE_ALL,
    FIRST_HEARTBEAT_US,
    FIRST_LOCK_RENEWAL_US,
    FIRST_POLL_US,
    HEARTBEAT_US,
    LOCK_RENEWAL_US,
    POLL_US,
    Times,
)
from rebalance_core.model.times import REBALANCE_WAIT_MS

_SHARE_ALIKE = np.uint64(round(START_UP_ALIKE * (1 << DRAW_BITS)))


class ClientTimes(EventTimes):
    """Times of clients' timers."""

    @cached_property
    def created(self) -> Times:
        """(lives, S): when the client was created."""
        entities = self._entities()[:, None]
        start_up = START_UP.many(self._start_up_draws(entities))
        phase = all_below(uniforms(self.seeds, entities, Timer.PHASE), POLL_US)
        unknown = np.where(self.unknown_phase[:, None], phase, 0)
        created: Times = self.joined - start_up - unknown
        return created

    def _start_up_draws(self, entities: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """(lives, S): in some futures those that started together are as slow as their first."""
        own = uniforms(self.seeds, entities, Timer.START_UP)
        first = self._first_of_start()
        alike = uniforms(self.seeds, entities[first], Timer.START_TOGETHER) < _SHARE_ALIKE
        return np.where(alike, own[first], own)

    def _first_of_start(self) -> NDArray[np.int64]:
        """(lives,): the first of those with whom a process was started, by their joins."""
        first: list[int] = []
        latest_us = None
        for life in self.script.lives:
            joined_us = life.joined.event_us
            together = latest_us is not None and joined_us - latest_us <= STARTED_TOGETHER_US
            first.append(first[-1] if together and not life.observed else life.index)
            latest_us = None if life.observed else joined_us
        return np.array(first, np.int64)

    @cached_property
    def unknown_phase(self) -> NDArray[np.bool_]:
        """(lives,): nothing is known of when its timers started."""
        everybody = self.options.phases == RANDOM_PHASES
        return np.array([everybody or life.observed for life in self.script.lives], bool)

    @cached_property
    def timers_start(self) -> Times:
        """(lives, S): when the periodic timers of a client start."""
        draws = uniforms(self.seeds, self._entities()[:, None], Timer.TIMERS_AFTER)
        started: Times = self.created + TIMERS_AFTER.many(draws)
        return started

    @cached_property
    def first_pass_end(self) -> Times:
        """(lives, S): where the clock of passes stands at first; of who joins, at its creation."""
        if not self.script.changes:
            return self.created
        entities = self._entities()[:, None]
        draws = uniforms(self.seeds, entities, Timer.PASS_PHASE)
        phase = all_below(draws, REBALANCE_WAIT_MS * MS_US)
        observed = np.array([life.observed for life in self.script.lives], bool)[:, None]
        before = self.script.begin_us - phase
        times: Times = np.where(observed, before, self.created)
        return times

    @cached_property
    def pass_length(self) -> Times:
        """(lives, S): of each pass of the process."""
        return PASS_LENGTH.many(uniforms(self.seeds, self._entities()[:, None], Timer.PASS_LENGTH))

    def poll_us(self, life: int, number: NDArray[np.int64]) -> Times:
        """Tick of a route poll; the route is that of the tick. ``number``: (..., S)."""
        tick: Times = self.timers_start[life] + FIRST_POLL_US + number * POLL_US
        return tick

    def poll_answered_us(self, life: int, number: NDArray[np.int64]) -> Times:
        """When the answer of a route poll is in use. ``number``: (..., S)."""
        entity = self.script.lives[life].entity
        draws = uniforms(self.seeds, entity, Timer.ROUTE_ANSWER, number)
        return self.poll_us(life, number) + ROUTE_ANSWER.many(draws)

    def first_poll_from(self, life: int, at_us: Times) -> NDArray[np.int64]:
        """The number of the first route poll at or after a time; (..., S)."""
        return _first_from(self.timers_start[life] + FIRST_POLL_US, POLL_US, at_us)

    def heartbeat_us(self, life: int, number: NDArray[np.int64]) -> Times:
        """Tick of a heartbeat."""
        tick: Times = self.timers_start[life] + FIRST_HEARTBEAT_US + number * HEARTBEAT_US
        return tick

    def first_heartbeat_from(self, life: int, at_us: Times) -> NDArray[np.int64]:
        """The number of the first heartbeat tick at or after a time; (..., S)."""
        return _first_from(self.timers_start[life] + FIRST_HEARTBEAT_US, HEARTBEAT_US, at_us)

    def last_lock_renewal(self, life: int, at_us: Times) -> Times:
        """The last tick of lockAll at or before a time; `BEFORE_ALL` if there was none."""
        first = self.timers_start[life] + FIRST_LOCK_RENEWAL_US
        number = (at_us - first) // LOCK_RENEWAL_US
        tick = first + number * LOCK_RENEWAL_US
        times: Times = np.where(number < 0, BEFORE_ALL, tick)
        return times


def _first_from(first: Times, period: int, at_us: Times) -> NDArray[np.int64]:
    numbers: NDArray[np.int64] = np.maximum(-((first - at_us) // period), 0)
    return numbers
