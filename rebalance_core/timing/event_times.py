"""When logged events happened: events are known to the millisecond, or to the second."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from rebalance_core.model.events import OFF
from rebalance_core.timing.delays import (
    LEAVE_BEGIN,
    LEAVE_BEGIN_TOGETHER,
    LEAVES_TOGETHER_US,
    NOTICE_TOGETHER,
    SHORTEST_SILENCE_US,
    SILENCE_SPREAD_US,
    STOP_AFTER,
    UNLOCK_TOGETHER,
)
from rebalance_core.timing.draws import Timer, all_below, draws_of, uniforms, words_of
from rebalance_core.timing.group_timeline import Life, LoggedTime, Script
from rebalance_core.timing.options import SECOND_US, ClockOptions
from rebalance_core.timing.timer_periods import BEFORE_ALL, NEVER, TimerPeriods, Times


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

    @cached_property
    def periods(self) -> TimerPeriods:
        """Return the periods of the timers of each life."""
        return TimerPeriods.of(self.script.lives)

    def true_us(self, moment: LoggedTime) -> Times:
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
        """(lives, S): the ends, `NEVER` for a process that stays; not before the last state.

        Of a graceful leave, when ``shutdown()`` begins: nothing is read from then on. Those that
        the log has at the same time begin one after the other, in an order that is drawn.
        """
        rows = []
        for life in self.script.lives:
            if life.ending is None:
                rows.append(np.full(len(self.seeds), NEVER, np.int64))
                continue
            at = np.maximum(self.states_us(life)[-1], self.true_us(life.ending.moment))
            if self._others_leaving(life, within_us=0):
                at += STOP_AFTER.many(draws_of(self.words[life.index], Timer.STOP_AFTER))
            rows.append(at)
        return self._by_life(rows)

    @cached_property
    def unlocked(self) -> Times:
        """(lives, S): when a process that leaves gracefully gives its order locks back."""
        rows = list(self.ended)
        for life in self.script.lives:
            others = self._others_leaving(life)
            if others:
                draws = draws_of(self.words[life.index], Timer.UNLOCK)
                rows[life.index] = rows[life.index] + others * UNLOCK_TOGETHER.many(draws)
        return self._by_life(rows)

    @cached_property
    def stopped(self) -> Times:
        """(lives, S): until when the passes of a process begin: to the end of its ``shutdown()``.

        A graceful leave is an interval: passes go on until the process unregisters.
        """
        rows = list(self.unlocked)
        for life in self.script.lives:
            if life.ending is None or not life.ending.graceful:
                continue
            draws = draws_of(self.words[life.index], Timer.LEAVE_BEGIN)
            others = self._others_leaving(life)
            length = others * LEAVE_BEGIN_TOGETHER.many(draws)
            rows[life.index] = rows[life.index] + (length if others else LEAVE_BEGIN.many(draws))
        return self._by_life(rows)

    @cached_property
    def notice_late(self) -> Times:
        """(lives, S): how much later a notice wakes a process once its ``shutdown()`` has begun."""
        shape = len(self.script.lives), len(self.seeds)
        late = np.zeros(shape, np.int64)
        for life in self.script.lives:
            if self._others_leaving(life):
                draws = draws_of(self.words[life.index], Timer.SLOW_NOTICE)
                late[life.index] = NOTICE_TOGETHER.many(draws)
        return late

    def _others_leaving(self, life: Life, within_us: int = LEAVES_TOGETHER_US) -> int:
        """How many others leave gracefully about when a life does, as the log has them."""
        if life.ending is None or not life.ending.graceful:
            return 0
        at_us = life.ending.moment.event_us
        low = bisect_left(self._leaves_us, at_us - within_us)
        return bisect_right(self._leaves_us, at_us + within_us) - low - 1

    @cached_property
    def _leaves_us(self) -> list[int]:
        """The graceful leaves of the log, in order."""
        endings = [life.ending for life in self.script.lives]
        return sorted(e.moment.event_us for e in endings if e is not None and e.graceful)

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

    @cached_property
    def notices_us(self) -> list[Times]:
        """By switch of how a broker notifies members: (S,) since when, as in the log."""
        since: dict[int, Times] = {}
        found = []
        for switch in self.script.notices:
            at = self.true_us(switch.since)
            at = since[switch.broker] = np.maximum(at, since.get(switch.broker, at))
            found.append(at)
        return found

    def notifies(
        self, broker: int, seeds: NDArray[np.int64] | slice, at_us: Times
    ) -> NDArray[np.bool_]:
        """Return whether a broker notifies members of what happens at times in futures at all."""
        found = np.ones(at_us.shape, bool)
        for switch, since in zip(self.script.notices, self.notices_us, strict=True):
            if switch.broker == broker:
                found = np.where(at_us >= since[seeds], switch.mode != OFF, found)
        return found

    def _silence_us(self, number: int) -> Times:
        entity = self.script.broker_entities[self.script.broker_lives[number].broker]
        draws = uniforms(self.seeds, entity, Timer.SILENCE, number)
        return SHORTEST_SILENCE_US + all_below(draws, SILENCE_SPREAD_US)

    @cached_property
    def words(self) -> NDArray[np.uint64]:
        """(lives, S) what the draws of a life begin with."""
        entities = np.array([life.entity for life in self.script.lives], np.uint64)
        return words_of(self.seeds, entities[:, None])

    def _by_life(self, rows: list[Times]) -> Times:
        return np.stack(rows) if rows else np.empty((0, len(self.seeds)), np.int64)
