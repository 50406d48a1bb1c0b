"""Arrays of times, and when what the log tells of happened: known to the millisecond, or to
the second.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from rebalance_core.clockwork.draws import (
    SHORTEST_SILENCE_US,
    SILENCE_SPREAD_US,
    Timer,
    all_below,
    uniforms,
)
from rebalance_core.clockwork.options import MS_US, SECOND_US, ClockOptions
from rebalance_core.clockwork.script import Life, Moment, Script
from rebalance_core.model.times import HEARTBEAT_MS, LOCK_RENEWAL_MS, ROUTE_POLL_MS

# Arrays of times, and the periods of the timers of a client.

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


# When what the log tells of happened: events are known to the millisecond, or to the second.


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

    def sightings_us(self, life: Life) -> list[Times]:
        """(S,) by sighting of a life; never before its join, nor before the one before it."""
        at = self.joined[life.index]
        found = []
        for sighting in life.sightings:
            at = np.maximum(at, self.true_us(sighting.moment))
            found.append(at)
        return found

    @cached_property
    def broker_lives_us(self) -> list[tuple[Times, Times]]:
        """By broker life: (S,) since when and until when; one after the other, as in the log.

        A lost host's ends before name servers notice it.
        """
        ended: dict[int, Times] = {}
        found = []
        for number, life in enumerate(self.script.broker_lives):
            up = ended.get(life.broker, np.full(len(self.seeds), BEFORE_ALL, np.int64))
            if life.up is not None:
                up = np.maximum(up, self.true_us(life.up))
            down = np.full(len(self.seeds), NEVER, np.int64)
            if life.down is not None:
                down = ended[life.broker] = np.maximum(up, self.true_us(life.down))
                if life.host_lost:
                    down = np.maximum(up, down - self._silence_us(number))
            found.append((up, down))
        return found

    @cached_property
    def lockless_us(self) -> list[tuple[Times, Times]]:
        """By stretch without order locks: (S,) since when and until when, as in the log."""
        ended: dict[int, Times] = {}
        found = []
        for stretch in self.script.lockless:
            since = self.true_us(stretch.since)
            since = np.maximum(since, ended.get(stretch.broker, since))
            until = np.full(len(self.seeds), NEVER, np.int64)
            if stretch.until is not None:
                until = ended[stretch.broker] = np.maximum(since, self.true_us(stretch.until))
            found.append((since, until))
        return found

    def _silence_us(self, number: int) -> Times:
        entity = self.script.broker_entities[self.script.broker_lives[number].broker]
        draws = uniforms(self.seeds, entity, Timer.SILENCE, number)
        return SHORTEST_SILENCE_US + all_below(draws, SILENCE_SPREAD_US)

    def _entities(self) -> NDArray[np.uint64]:
        return np.array([life.entity for life in self.script.lives], np.uint64)

    def _by_life(self, rows: list[Times]) -> Times:
        return np.stack(rows) if rows else np.empty((0, len(self.seeds)), np.int64)
