"""`Ticks` of one seed as plain numbers."""

from __future__ import annotations

from functools import cache, cached_property

import numpy as np

from rebalance_core.clockwork.draws import ROUTE_ANSWER, Timer, below, uniform
from rebalance_core.clockwork.options import ClockOptions
from rebalance_core.clockwork.script import Life, Script
from rebalance_core.clockwork.ticks import (
    FIRST_HEARTBEAT_US,
    FIRST_LOCK_RENEWAL_US,
    FIRST_POLL_US,
    HEARTBEAT_US,
    LOCK_RENEWAL_US,
    POLL_US,
    Ticks,
)


class Future:
    """Times of one future that no pass can change; microseconds since the epoch."""

    def __init__(self, script: Script, seed: int, options: ClockOptions) -> None:
        self.script, self.seed, self.options = script, seed, options
        self._ticks = ticks = Ticks(script, np.array([seed], np.int64), options)
        self.created: list[int] = ticks.created[:, 0].tolist()
        self.timers_start: list[int] = ticks.timers_start[:, 0].tolist()
        self.joined: list[int] = ticks.joined[:, 0].tolist()
        self.ended: list[int] = ticks.ended[:, 0].tolist()
        self.registered: list[list[int]] = ticks.registered[:, :, 0].tolist()
        self.unregistered: list[list[int]] = ticks.unregistered[:, :, 0].tolist()
        self.first_pass_end: list[int] = ticks.first_pass_end[:, 0].tolist()
        self.pass_length: list[int] = ticks.pass_length[:, 0].tolist()
        self._route_lag: list[int] = ticks.route_lag[:, 0].tolist()
        self._visible: list[list[int]] = [
            ticks.route_visible_us(topic)[:, 0].tolist() for topic in range(len(script.topics))
        ]

    @cached_property
    def broker_lives(self) -> list[tuple[int, int]]:
        """By broker life: since when it is up, and until when."""
        return [(int(up[0]), int(down[0])) for up, down in self._ticks.broker_lives_us]

    @cached_property
    def lockless(self) -> list[tuple[int, int]]:
        """By stretch without order locks: since when, and until when."""
        return [(int(since[0]), int(until[0])) for since, until in self._ticks.lockless_us]

    def sightings_us(self, life: Life) -> list[int]:
        """When each sighting of a life happened."""
        return [int(at[0]) for at in self._ticks.sightings_us(life)]

    def states_us(self, life: Life) -> list[int]:
        """Since when each state of a life holds."""
        return [int(since[0]) for since in self._ticks.states_us(life)]

    def visible_to_brokers_us(self, topic: int) -> list[int]:
        """Since when the name servers of brokers answer with each version of a route."""
        return self._visible[topic]

    def brokers_poll_us(self, broker: int, life: int, at_us: int) -> int | None:
        """A broker's last route poll until a time; None: its process had none yet.

        It polls as often as a client. Logs have when it registered, up to 10 s after its start, so
        the phase is not known.
        """
        draw = uniform(self.seed, self.script.broker_entities[broker], Timer.BROKER_POLL, life)
        polled_us = at_us - (at_us - below(draw, POLL_US)) % POLL_US
        return polled_us if polled_us >= self.broker_lives[life][0] else None

    @cache  # noqa: B019 - lives as long as the future
    def visible_us(self, life: int, topic: int) -> list[int]:
        """Since when the name server of one client answers with each version of a route."""
        return [at + self._route_lag[life] for at in self._visible[topic]]

    def poll_us(self, life: int, number: int) -> int:
        """Tick of a route poll."""
        return self.timers_start[life] + FIRST_POLL_US + number * POLL_US

    def poll_answered_us(self, life: int, number: int) -> int:
        """When the answer of a route poll is in use."""
        entity = self.script.lives[life].entity
        draw = uniform(self.seed, entity, Timer.ROUTE_ANSWER, number)
        return self.poll_us(life, number) + ROUTE_ANSWER.of(draw)

    def polls_before(self, life: int, at_us: int) -> int:
        """How many route polls have their tick before a time."""
        return _ticks_before(self.timers_start[life] + FIRST_POLL_US, POLL_US, at_us)

    def heartbeat_us(self, life: int, number: int) -> int:
        """Tick of a heartbeat."""
        return self.timers_start[life] + FIRST_HEARTBEAT_US + number * HEARTBEAT_US

    def heartbeats_before(self, life: int, at_us: int) -> int:
        """How many heartbeats have their tick before a time."""
        return _ticks_before(self.timers_start[life] + FIRST_HEARTBEAT_US, HEARTBEAT_US, at_us)

    def lock_renewal_us(self, life: int, number: int) -> int:
        """Tick of lockAll."""
        return self.timers_start[life] + FIRST_LOCK_RENEWAL_US + number * LOCK_RENEWAL_US

    def lock_renewals_before(self, life: int, at_us: int) -> int:
        """How many rounds of lockAll have their tick before a time."""
        return _ticks_before(
            self.timers_start[life] + FIRST_LOCK_RENEWAL_US, LOCK_RENEWAL_US, at_us
        )


def _ticks_before(first_us: int, period_us: int, at_us: int) -> int:
    return max(0, -((first_us - at_us) // period_us))
