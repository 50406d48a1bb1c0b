"""When name servers first return each version of a route, and when clients learn it."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from rebalance_core.model.versions import parse_version
from rebalance_core.timing.delay import Delay
from rebalance_core.timing.delays import (
    BROKER_BACK,
    BROKER_BACK_4,
    BROKER_GONE,
    BROKER_GONE_4,
    TOPIC_VISIBLE,
)
from rebalance_core.timing.draws import Timer, draws_of, uniforms
from rebalance_core.timing.event_times import EventTimes
from rebalance_core.timing.group_timeline import LoggedTime, RouteVersion
from rebalance_core.timing.options import MS_US
from rebalance_core.timing.timer_periods import BEFORE_ALL, Times


class RouteTimes(EventTimes):
    """The times at which route versions become visible."""

    @cached_property
    def route_visible_us(self) -> tuple[Times, ...]:
        """For each topic, (versions, S) the time at which the name server first returns each route
        version.
        """
        shape = -1, len(self.seeds)
        rows = [[self._visible_us(each) for each in versions] for versions in self.timeline.routes]
        each_us = [np.array(times, np.int64).reshape(shape) for times in rows]
        return tuple(np.maximum.accumulate(times, axis=0) for times in each_us)

    def _visible_us(self, version: RouteVersion) -> Times:
        if version.moment is None:
            return np.full(len(self.seeds), BEFORE_ALL, np.int64)
        delay = self._way_to_name_servers(version.moment)
        if delay is None:
            return self.true_us(version.moment)
        broker = delay is not TOPIC_VISIBLE  # a registration covers all topics of the broker
        entity = version.moment.entity if broker else version.entity
        draws = uniforms(self.seeds, entity, Timer.ROUTE_VISIBLE)
        return self.true_us(version.moment) + delay.many(draws)

    def _way_to_name_servers(self, moment: LoggedTime) -> Delay | None:
        """Return the delay until name servers learn of the events at a moment, or None if the log
        records when they did.
        """
        lifetimes = self.timeline.broker_lifetimes
        old = parse_version(self.timeline.settings.broker_version) < (5,)
        ups, downs = (
            [lifetime.up for lifetime in lifetimes],
            [lifetime.down for lifetime in lifetimes],
        )
        if moment not in ups and moment not in downs:
            return TOPIC_VISIBLE
        if moment.to_the_second:
            return None
        if moment in ups and self.timeline.watched is not None:
            return None
        if moment in ups:
            return BROKER_BACK_4 if old else BROKER_BACK
        return BROKER_GONE_4 if old else BROKER_GONE

    @cached_property
    def route_lag(self) -> Times:
        """(lifetimes, S): how much later than other name servers a client's name server learns of
        routes.
        """
        shape = len(self.timeline.lifetimes), len(self.seeds)
        if not self.options.late_share:
            return np.zeros(shape, np.int64)
        draws = draws_of(self.words, Timer.NAME_SERVER)
        late = draws < np.uint64(round(self.options.late_share * (1 << 32)))
        return np.where(late, self.options.late_ms * MS_US, 0)
