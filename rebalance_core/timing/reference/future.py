"""The event times of one simulated future, as plain numbers for the reference engine."""

from __future__ import annotations

from functools import cache, cached_property

import numpy as np

from rebalance_core.model.events import ON
from rebalance_core.model.times import NOTICE_BATCH_MS
from rebalance_core.timing.delays import ROUTE_ANSWER
from rebalance_core.timing.draws import Timer, below, uniform
from rebalance_core.timing.group_timeline import GroupTimeline, ProcessLifetime
from rebalance_core.timing.options import ClockOptions
from rebalance_core.timing.ticks import Ticks
from rebalance_core.timing.timer_periods import (
    FIRST_HEARTBEAT_US,
    FIRST_LOCK_RENEWAL_US,
    FIRST_POLL_US,
    LOCK_RENEWAL_US,
    POLL_US,
)


class Future:
    """The times in a future that do not depend on its passes, from the `Ticks` of a seed, in
    microseconds since the epoch.
    """

    def __init__(self, timeline: GroupTimeline, seed: int, options: ClockOptions) -> None:
        self.timeline, self.seed, self.options = timeline, seed, options
        self.ticks = ticks = Ticks(timeline, np.array([seed], np.int64), options)
        self.created: list[int] = ticks.created[:, 0].tolist()
        self.timers_start: list[int] = ticks.timers_start[:, 0].tolist()
        self._beats_start: list[int] = ticks.beats_start[:, 0].tolist()
        self._own_start: list[int] = ticks.own_start[:, 0].tolist()
        self.joined: list[int] = ticks.joined[:, 0].tolist()
        self.ended: list[int] = ticks.ended[:, 0].tolist()
        self.unlocked: list[int] = ticks.unlocked[:, 0].tolist()
        self.notice_late: list[int] = ticks.notice_late[:, 0].tolist()
        self.stopped: list[int] = ticks.stopped[:, 0].tolist()
        self.registered: list[list[int]] = ticks.registered[:, :, 0].tolist()
        self.unregistered: list[list[int]] = ticks.unregistered[:, :, 0].tolist()
        self.first_pass_end: list[int] = ticks.first_pass_end[:, 0].tolist()
        self.pass_length: list[int] = ticks.pass_length[:, 0].tolist()
        self.round_us: list[int] = ticks.round_us[:, 0].tolist()
        self._poll: list[int] = ticks.periods.poll[:, 0].tolist()
        self._beat: list[int] = ticks.periods.beat[:, 0].tolist()
        self.wait: list[int] = ticks.periods.wait[:, 0].tolist()
        self.min_interval: list[int] = ticks.periods.least[:, 0].tolist()
        self._route_lag: list[int] = ticks.route_lag[:, 0].tolist()
        self._visible: list[list[int]] = [
            ticks.route_visible_us[topic][:, 0].tolist() for topic in range(len(timeline.topics))
        ]

    @cached_property
    def broker_lifetimes(self) -> list[tuple[int, int]]:
        """Return the start and end of each broker lifetime."""
        return [(int(up[0]), int(down[0])) for up, down in self.ticks.broker_lifetimes_us]

    @cached_property
    def lockless(self) -> list[tuple[int, int]]:
        """Return the start and end of each period without order locks."""
        return [(int(since[0]), int(until[0])) for since, until in self.ticks.lockless_us]

    def notices(self, broker: int, at_us: int) -> str:
        """Return how a broker notifies members of changes at a time: one of `NOTICE_MODES`."""
        mode = ON
        for switch, since in zip(self.timeline.notices, self.ticks.notices_us, strict=True):
            if switch.broker == broker and since[0] <= at_us:
                mode = switch.mode
        return mode

    def next_batch_us(self, broker: int, lifetime: int, at_us: int) -> int:
        """Return when a broker that batches its notices sends the next batch."""
        period = NOTICE_BATCH_MS * 1_000
        entity = self.timeline.broker_entities[broker]
        draw = uniform(self.seed, entity, Timer.NOTICE_BATCH, lifetime)
        return at_us + (below(draw, period) - at_us) % period

    def sightings_us(self, lifetime: ProcessLifetime) -> list[int]:
        """Return when each sighting of a lifetime happened."""
        return [int(times[0]) for times in self.ticks.sightings_us(lifetime)]

    def states_us(self, lifetime: ProcessLifetime) -> list[int]:
        """Return the start of each state of a lifetime."""
        return [int(since[0]) for since in self.ticks.states_us(lifetime)]

    def visible_to_brokers_us(self, topic: int) -> list[int]:
        """Return when the brokers' name servers first answer with each version of a route."""
        return self._visible[topic]

    def brokers_poll_us(self, broker: int, lifetime: int, at_us: int) -> int | None:
        """Return a broker's last route poll up to a time, or None if its process has not polled
        yet.

        It polls as often as a client. Logs record its registration, which follows its start by up
        to 10 s, so the phase is unknown.
        """
        draw = uniform(
            self.seed, self.timeline.broker_entities[broker], Timer.BROKER_POLL, lifetime
        )
        polled_us = at_us - (at_us - below(draw, POLL_US)) % POLL_US
        return polled_us if polled_us >= self.broker_lifetimes[lifetime][0] else None

    @cache  # noqa: B019 - lives as long as the future
    def visible_us(self, lifetime: int, topic: int) -> list[int]:
        """Return when a client's name server first answers with each version of a route."""
        return [visible_us + self._route_lag[lifetime] for visible_us in self._visible[topic]]

    def poll_us(self, lifetime: int, number: int) -> int:
        """Return the tick of a route poll."""
        return self.timers_start[lifetime] + FIRST_POLL_US + number * self._poll[lifetime]

    def poll_answered_us(self, lifetime: int, number: int) -> int:
        """Return when the client begins to use the answer to a route poll."""
        entity = self.timeline.lifetimes[lifetime].entity
        draw = uniform(self.seed, entity, Timer.ROUTE_ANSWER, number)
        return self.poll_us(lifetime, number) + ROUTE_ANSWER.delay_of(draw)

    def polls_before(self, lifetime: int, at_us: int) -> int:
        """Return how many route polls have their tick before a time."""
        return _ticks_before(
            self.timers_start[lifetime] + FIRST_POLL_US, self._poll[lifetime], at_us
        )

    def heartbeat_us(self, lifetime: int, number: int) -> int:
        """Return the tick of a heartbeat."""
        return self._beats_start[lifetime] + FIRST_HEARTBEAT_US + number * self._beat[lifetime]

    def heartbeats_before(self, lifetime: int, at_us: int) -> int:
        """Return how many heartbeats have their tick before a time."""
        return _ticks_before(
            self._beats_start[lifetime] + FIRST_HEARTBEAT_US, self._beat[lifetime], at_us
        )

    def lock_renewal_us(self, lifetime: int, number: int) -> int:
        """Return the tick of lockAll."""
        return self._own_start[lifetime] + FIRST_LOCK_RENEWAL_US + number * LOCK_RENEWAL_US

    def lock_renewals_before(self, lifetime: int, at_us: int) -> int:
        """Return how many rounds of lockAll have their tick before a time."""
        return _ticks_before(
            self._own_start[lifetime] + FIRST_LOCK_RENEWAL_US, LOCK_RENEWAL_US, at_us
        )


def _ticks_before(first_us: int, period_us: int, at_us: int) -> int:
    return max(0, -((first_us - at_us) // period_us))
