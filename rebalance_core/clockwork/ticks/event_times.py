"""When what the log tells of happened: events are known to the millisecond, or to the second."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from rebalance_core.clockwork.delays import SHORTEST_SILENCE_US, SILENCE_SPREAD_US
from rebalance_core.clockwork.draws import Timer, all_below, uniforms
from rebalance_core.clockwork.options import SECOND_US, ClockOptions
from rebalance_core.clockwork.script import Life, Moment, Script
from rebalance_core.clockwork.ticks.times import NEVER, Times


@dataclass(frozen=True)
class EventTimes:
    """Times of events.

    Attributes:
        script: what happens.
        seeds: (S,) of the futures.
        options: what was asked for.
    """

    script: Script
    seeds: NDArray[np.int64]
    options: ClockOptions

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

    def broker_down_us(self, number: int) -> Times:
        """(S,) when a broker's life ends; a lost host's before name servers notice it."""
        life = self.script.broker_lives[number]
        if life.down is None:
            return np.full(len(self.seeds), NEVER, np.int64)
        down = self.true_us(life.down)
        if not life.host_lost:
            return down
        entity = self.script.broker_entities[life.broker]
        draws = uniforms(self.seeds, entity, Timer.SILENCE, number)
        silent = down - SHORTEST_SILENCE_US - all_below(draws, SILENCE_SPREAD_US)
        return silent if life.up is None else np.maximum(silent, self.true_us(life.up))

    def _entities(self) -> NDArray[np.uint64]:
        return np.array([life.entity for life in self.script.lives], np.uint64)

    def _by_life(self, rows: list[Times]) -> Times:
        return np.stack(rows) if rows else np.empty((0, len(self.seeds)), np.int64)
