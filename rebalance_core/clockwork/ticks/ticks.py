"""Times that no pass can change, of many futures at once: joins, endings, registrations, ticks."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from rebalance_core.clockwork.draws import (
    BROKER_BACK,
    BROKER_BACK_4,
    BROKER_GONE,
    BROKER_GONE_4,
    TOPIC_VISIBLE,
    Delay,
    Timer,
    uniforms,
)
from rebalance_core.clockwork.options import MS_US
from rebalance_core.clockwork.script import Moment, RouteVersion
from rebalance_core.clockwork.ticks.client_times import ListTimes
from rebalance_core.clockwork.ticks.event_times import BEFORE_ALL, EventTimes, Times
from rebalance_core.model.versions import parse_version

# Since when name servers answer with a version of a route, and when clients hear of it.


class RouteTimes(EventTimes):
    """Times of routes."""

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
        delay = self._way_to_name_servers(version.moment)
        if delay is None:
            return self.true_us(version.moment)
        broker = delay is not TOPIC_VISIBLE  # which tells of all its topics at once
        entity = version.moment.entity if broker else version.entity
        draws = uniforms(self.seeds, entity, Timer.ROUTE_VISIBLE)
        return self.true_us(version.moment) + delay.many(draws)

    def _way_to_name_servers(self, moment: Moment) -> Delay | None:
        """By what happened then; None: it is when a name server heard of it."""
        lives = self.script.broker_lives
        old = parse_version(self.script.settings.broker_version) < (5,)
        ups, downs = ([life.up for life in lives], [life.down for life in lives])
        if moment not in ups and moment not in downs:
            return TOPIC_VISIBLE
        if moment.to_the_second:
            return None
        if moment in ups and self.script.known is not None:
            return None
        if moment in ups:
            return BROKER_BACK_4 if old else BROKER_BACK
        return BROKER_GONE_4 if old else BROKER_GONE

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


# All times of one script that no pass can change.


class Ticks(ListTimes, RouteTimes):
    """Times of one script in some futures.

    Attributes:
        script: what happens.
        seeds: (S,) of the futures.
        options: what was asked for.
    """
