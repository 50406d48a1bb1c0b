"""Times of logged events, which are known to the millisecond or only to the second."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from rebalance_core.model.events import OFF
from rebalance_core.timing.broker_requests import BrokerRequests
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
from rebalance_core.timing.draws import Timer, all_below, draws_of, uniforms
from rebalance_core.timing.group_timeline import LoggedTime, ProcessLifetime
from rebalance_core.timing.options import MS_US, SECOND_US
from rebalance_core.timing.timer_periods import BEFORE_ALL, NEVER, TimerPeriods, Times

_APART_US = 10 * MS_US
"""Members that the log records at the same time spread their first registrations over this
period.
"""


class EventTimes(BrokerRequests):
    """When the events of a timeline happen in each future."""

    @cached_property
    def periods(self) -> TimerPeriods:
        """The periods of each lifetime's timers."""
        return TimerPeriods.from_lifetimes(self.timeline.lifetimes)

    def true_us(self, moment: LoggedTime) -> Times:
        """Return (S,) the time of an event in each future."""
        if not moment.to_the_second:
            return np.full(len(self.seeds), moment.event_us, np.int64)
        draws = uniforms(self.seeds, moment.entity, Timer.EVENT_CLOCK)
        return moment.event_us + all_below(draws, SECOND_US)

    def states_us(self, lifetime: ProcessLifetime) -> list[Times]:
        """Return (S,) the start of each state of a lifetime, in ascending order."""
        since = [self.joined[lifetime.index]]
        for moment, _ in lifetime.states[1:]:
            since.append(np.maximum(since[-1], self.true_us(moment)))
        return since

    @cached_property
    def joined(self) -> Times:
        """(lifetimes, S): when each lifetime joins, which is when its ``start()`` returns."""
        joined = self._by_lifetime(
            [self.true_us(lifetime.joined) for lifetime in self.timeline.lifetimes]
        )
        for each in self.registrations:
            by_first = self.joins_at_first_broker[each.lifetimes, None]
            # makes the times distinct, so that their order in the arrays does not matter
            apart = each.lifetimes[:, None] % _APART_US
            joined[each.lifetimes] += np.where(by_first, each.since_first_us + apart, 0)
        return joined

    @cached_property
    def ended(self) -> Times:
        """(lifetimes, S): when each lifetime ends, but no earlier than its last state; `NEVER` if
        it stays.

        A graceful leave ends at the start of ``shutdown()``, after which the process reads nothing.
        Leaves logged at the same time begin one after another, in a random order.
        """
        rows = []
        for lifetime in self.timeline.lifetimes:
            if lifetime.ending is None:
                rows.append(np.full(len(self.seeds), NEVER, np.int64))
                continue
            end_us = np.maximum(self.states_us(lifetime)[-1], self.true_us(lifetime.ending.moment))
            if self._others_leaving(lifetime, within_us=0):
                end_us += STOP_AFTER.many(draws_of(self.words[lifetime.index], Timer.STOP_AFTER))
            rows.append(end_us)
        return self._by_lifetime(rows)

    @cached_property
    def suspended(self) -> Times:
        """(lifetimes, S): when the suspension began that lasts for the rest of each lifetime's
        stay; `NEVER` if there is none.

        It makes no more passes and sends no more pulls, but its other timers run on
        (rocketmq.md §3.2). Suspensions that end earlier do not count.
        """
        rows = []
        for lifetime in self.timeline.lifetimes:
            states = [member.suspended for _, member in lifetime.states]
            since = np.full(len(self.seeds), NEVER, np.int64)
            if states[-1]:
                first = len(states) - 1
                while first and states[first - 1]:
                    first -= 1
                since = self.states_us(lifetime)[first]
            rows.append(since)
        return self._by_lifetime(rows)

    @cached_property
    def unlocked(self) -> Times:
        """(lifetimes, S): when a process that leaves gracefully releases its order locks."""
        rows = list(self.ended)
        for lifetime in self.timeline.lifetimes:
            others = self._others_leaving(lifetime)
            if others:
                draws = draws_of(self.words[lifetime.index], Timer.UNLOCK)
                rows[lifetime.index] = rows[lifetime.index] + others * UNLOCK_TOGETHER.many(draws)
        return self._by_lifetime(rows)

    @cached_property
    def stopped(self) -> Times:
        """(lifetimes, S): the time until which a process begins passes, which is the end of its
        ``shutdown()``.

        A graceful leave takes time, and passes continue until the process unregisters.
        """
        rows = list(self.unlocked)
        for lifetime in self.timeline.lifetimes:
            if lifetime.ending is None or not lifetime.ending.graceful:
                continue
            draws = draws_of(self.words[lifetime.index], Timer.LEAVE_BEGIN)
            others = self._others_leaving(lifetime)
            length = others * LEAVE_BEGIN_TOGETHER.many(draws)
            rows[lifetime.index] = rows[lifetime.index] + (
                length if others else LEAVE_BEGIN.many(draws)
            )
        return self._by_lifetime(rows)

    @cached_property
    def notice_late(self) -> Times:
        """(lifetimes, S): the additional delay before a notice wakes a process whose ``shutdown()``
        has begun.
        """
        shape = len(self.timeline.lifetimes), len(self.seeds)
        late = np.zeros(shape, np.int64)
        for lifetime in self.timeline.lifetimes:
            if self._others_leaving(lifetime):
                draws = draws_of(self.words[lifetime.index], Timer.SLOW_NOTICE)
                late[lifetime.index] = NOTICE_TOGETHER.many(draws)
        return late

    def _others_leaving(
        self, lifetime: ProcessLifetime, within_us: int = LEAVES_TOGETHER_US
    ) -> int:
        """Return how many other processes are logged as leaving gracefully near a lifetime's
        leave.
        """
        if lifetime.ending is None or not lifetime.ending.graceful:
            return 0
        at_us = lifetime.ending.moment.event_us
        low = bisect_left(self._leaves_us, at_us - within_us)
        return bisect_right(self._leaves_us, at_us + within_us) - low - 1

    @cached_property
    def _leaves_us(self) -> list[int]:
        """The logged times of all graceful leaves, in order."""
        endings = [lifetime.ending for lifetime in self.timeline.lifetimes]
        return sorted(e.moment.event_us for e in endings if e is not None and e.graceful)

    def sightings_us(self, lifetime: ProcessLifetime) -> list[Times]:
        """Return (S,) the time of each sighting of a lifetime, in ascending order and not before
        its join.
        """
        sighted_us = self.joined[lifetime.index]
        times = []
        for sighting in lifetime.sightings:
            sighted_us = np.maximum(sighted_us, self.true_us(sighting.moment))
            times.append(sighted_us)
        return times

    @cached_property
    def broker_lifetimes_us(self) -> list[tuple[Times, Times]]:
        """(since, until) of each broker lifetime, each of shape (S,), in log order.

        A lost host's lifetime ends before name servers notice.
        """
        ended: dict[int, Times] = {}
        spans = []
        for number, lifetime in enumerate(self.timeline.broker_lifetimes):
            up = ended.get(lifetime.broker, np.full(len(self.seeds), BEFORE_ALL, np.int64))
            if lifetime.up is not None:
                up = np.maximum(up, self.true_us(lifetime.up))
            down = np.full(len(self.seeds), NEVER, np.int64)
            if lifetime.down is not None:
                down = ended[lifetime.broker] = np.maximum(up, self.true_us(lifetime.down))
                if lifetime.host_lost:
                    down = np.maximum(up, down - self._silence_us(number))
            spans.append((up, down))
        return spans

    @cached_property
    def lockless_us(self) -> list[tuple[Times, Times]]:
        """(since, until) of each period without order locks, each of shape (S,), in log order."""
        ended: dict[int, Times] = {}
        spans = []
        for stretch in self.timeline.lockless:
            since = self.true_us(stretch.since)
            since = np.maximum(since, ended.get(stretch.broker, since))
            until = np.full(len(self.seeds), NEVER, np.int64)
            if stretch.until is not None:
                until = ended[stretch.broker] = np.maximum(since, self.true_us(stretch.until))
            spans.append((since, until))
        return spans

    @cached_property
    def notices_us(self) -> list[Times]:
        """(S,) the time at which each broker switches its notice mode, in log order."""
        since: dict[int, Times] = {}
        switched_us = []
        for switch in self.timeline.notices:
            switch_us = self.true_us(switch.since)
            switch_us = since[switch.broker] = np.maximum(
                switch_us, since.get(switch.broker, switch_us)
            )
            switched_us.append(switch_us)
        return switched_us

    def notifies(
        self, broker: int, seeds: NDArray[np.int64] | slice, at_us: Times
    ) -> NDArray[np.bool_]:
        """Return whether a broker notifies members of an event, per future and time."""
        notifying = np.ones(at_us.shape, bool)
        for switch, since in zip(self.timeline.notices, self.notices_us, strict=True):
            if switch.broker == broker:
                notifying = np.where(at_us >= since[seeds], switch.mode != OFF, notifying)
        return notifying

    def _silence_us(self, number: int) -> Times:
        entity = self.timeline.broker_entities[self.timeline.broker_lifetimes[number].broker]
        draws = uniforms(self.seeds, entity, Timer.SILENCE, number)
        return SHORTEST_SILENCE_US + all_below(draws, SILENCE_SPREAD_US)

    def _by_lifetime(self, rows: list[Times]) -> Times:
        return np.stack(rows) if rows else np.empty((0, len(self.seeds)), np.int64)
