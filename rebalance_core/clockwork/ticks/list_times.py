"""When clients register with brokers as they join, and when brokers lose them as they go."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from rebalance_core.clockwork.delays import (
    CHANNEL_CLOSE,
    CLOSE_STEP,
    LAST_LEAD,
    LEAVE_BEGIN,
    LONGEST_LEAD_MS,
    REGISTRATION_STEP,
    UNREGISTRATION_STEP,
    Delay,
)
from rebalance_core.clockwork.draws import Timer, all_below, uniforms
from rebalance_core.clockwork.options import MS_US
from rebalance_core.clockwork.script import Life
from rebalance_core.clockwork.ticks.client_times import ClientTimes
from rebalance_core.clockwork.ticks.times import (
    BEFORE_ALL,
    FIRST_HEARTBEAT_US,
    NEVER,
    Times,
)
from rebalance_core.model.group_settings import LITE_PULL, PULL
from rebalance_core.model.times import CHANNEL_SCAN_MS
from rebalance_core.producers.concurrent_map import ConcurrentMapOrder, java_hash

_ADDRESS_BUCKETS = 16
"""MQClientInstance.brokerAddrTable, a ConcurrentHashMap: heartbeats and unregistrations walk it."""
_HEARTBEAT_ONLY_BY_TIMER = (LITE_PULL, PULL)
"""Their ``start()`` sends none."""
_APART_US = 100 * MS_US
"""Earliest registrations of many members are spread over so much."""
_LEAVING = 1_000  # ticks of BROKER_STEP at the end of a life; below: at its join


class ListTimes(ClientTimes):
    """Times of registrations that no pass can change."""

    @cached_property
    def broker_rank(self) -> NDArray[np.int64]:
        """(brokers,): the order in which every client goes through them: that of its Java map."""
        names, masters = self.script.broker_names, self.script.masters
        walk = ConcurrentMapOrder[str](java_hash, _ADDRESS_BUCKETS)
        for name in names:
            walk.add(name)
        # A broker's own addresses are walked by id; the master's is 0.
        order = [
            number
            for broker in map(names.index, walk)
            for number in (masters.get(broker), broker)
            if number is not None
        ]
        return np.argsort(order)

    @cached_property
    def registered(self) -> Times:
        """(lives, brokers, S): first registrations; `NEVER` where the join reaches no broker.

        Counted back from the join: the last broker's is just before it.
        """
        shape = len(self.script.lives), len(self.script.brokers), len(self.seeds)
        times = np.full(shape, NEVER, np.int64)
        for life in self.script.lives:
            given = np.array(life.first_brokers, int)
            if life.observed:
                times[life.index, given] = BEFORE_ALL
            elif len(given):
                times[life.index, given] = self._at_join(life, given)
        return times

    def _at_join(self, life: Life, given: NDArray[np.int64]) -> Times:
        rank = np.argsort(np.argsort(self.broker_rank[given]))[:, None]
        rank = np.broadcast_to(rank, (len(given), len(self.seeds)))
        joined = self.joined[life.index]
        earliest = np.maximum(self.created[life.index], joined - LONGEST_LEAD_MS * MS_US)
        if self.script.settings.consumer_type in _HEARTBEAT_ONLY_BY_TIMER:
            # A slow start() waits for the route, and so does the first heartbeat.
            first = self.timers_start[life.index] + FIRST_HEARTBEAT_US
            at = first + self._steps(life, rank + 1, 0, REGISTRATION_STEP)
        else:
            draws = uniforms(self.seeds, life.entity, Timer.REGISTRATION_LEAD)
            steps = self._steps(life, len(given) - 1 - rank, 0, REGISTRATION_STEP)
            at = joined - LAST_LEAD.many(draws) - steps
        # At one time it would matter which of two came first.
        own = life.index * len(given) % _APART_US
        times: Times = np.maximum(at, earliest + rank + own)
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
            if ending is None or not len(brokers):
                continue
            at = self.ended[life.index]
            if ending.graceful:
                begin = LEAVE_BEGIN.many(uniforms(self.seeds, life.entity, Timer.LEAVE_BEGIN))
                rank = np.broadcast_to(self.broker_rank[:, None], shape[1:])
                steps = self._steps(life, rank + 1, _LEAVING, UNREGISTRATION_STEP)
                times[life.index] = at + begin + steps
            elif ending.told:
                close = CHANNEL_CLOSE.many(uniforms(self.seeds, life.entity, Timer.CHANNEL_CLOSE))
                draws = uniforms(self.seeds, life.entity, Timer.CLOSE_STEP, brokers)
                times[life.index] = at + close + CLOSE_STEP.many(draws)
            else:
                draws = uniforms(self.seeds, life.entity, Timer.SCAN_PHASE, brokers)
                scan = all_below(draws, CHANNEL_SCAN_MS * MS_US)
                seen = list(life.first_brokers) or list(range(len(brokers)))
                times[life.index] = at + np.maximum(scan - scan[seen].min(axis=0), 0)
        return times

    def _steps(self, life: Life, rank: NDArray[np.int64], tick: int, step: Delay) -> Times:
        """What a client's requests to ``rank`` brokers take, one after the other."""
        most = int(rank.max(initial=0))
        draws = uniforms(
            self.seeds, life.entity, Timer.BROKER_STEP, tick + np.arange(most)[:, None]
        )
        total = np.zeros((most + 1, len(self.seeds)), np.int64)
        np.cumsum(step.many(draws), axis=0, out=total[1:])
        return np.take_along_axis(total, rank, axis=0)
