"""How long clients take to register with all brokers when they start, and to unregister when they
leave.

``MQClientInstance.sendHeartbeatToAllBroker`` and ``unregisterClient`` iterate over
``brokerAddrTable`` in map order and wait for each answer (rocketmq.md §6.2), so both take longer
with more, or more distant, brokers.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from rebalance_core.contracts.observed import REGISTRATION, UNREGISTRATION
from rebalance_core.model.group_settings import LITE_PULL, PULL
from rebalance_core.model.versions import parse_version
from rebalance_core.producers.concurrent_map import ConcurrentMapOrder, java_hash
from rebalance_core.timing.delays import (
    LAST_LEAD,
    RECORDED_BROKERS,
    REGISTRATION_NEXT,
    REGISTRATION_STEP,
    UNREGISTRATION_NEXT,
    UNREGISTRATION_STEP,
)
from rebalance_core.timing.draws import Timer, draws_of, words_of
from rebalance_core.timing.group_timeline import GroupTimeline, ProcessLifetime, came_first
from rebalance_core.timing.options import ClockOptions
from rebalance_core.timing.timer_periods import Times

CONCURRENT_HEARTBEAT = (5, 5, 0)
"""The first version whose clients support ``enableConcurrentHeartbeat``."""
HEARTBEAT_THREADS = 2
"""``concurrentHeartbeatThreadPoolSize`` is the number of the client's processors; the recordings'
hosts have two.
"""
_ADDRESS_BUCKETS = 16
"""MQClientInstance.brokerAddrTable, a ConcurrentHashMap: heartbeats and unregistrations iterate
over it.
"""
# BROKER_STEP ticks from here on belong to the end of a lifetime, and smaller ones to its join
_LEAVING = 1_000


@dataclass(frozen=True, eq=False)
class Registrations:
    """The registrations of joining lifetimes that register with the same brokers.

    Attributes:
        lifetimes: (n,) the numbers of the lifetimes.
        brokers: (B,) the numbers of the brokers.
        rank: (B,) each broker's position in the order of registration.
        total_us: (n, B + 1, S) the total time of the last 0, 1, 2 … registrations.
        lead_us: (n, S) the time from the last registration to the return of ``start()``; may be
            negative.
        trips_us: (n,) the time that round trips take in all registrations.
    """

    lifetimes: NDArray[np.int64]
    brokers: NDArray[np.int64]
    rank: NDArray[np.int64]
    total_us: Times
    lead_us: Times
    trips_us: Times

    @property
    def before_join_us(self) -> Times:
        """(n, B, S) the time from each registration to the return of ``start()``."""
        return self.lead_us[:, None] + self.total_us[:, len(self.brokers) - 1 - self.rank]

    @property
    def since_first_us(self) -> Times:
        """(n, S) the time from the first registration to the return of ``start()``."""
        return self.lead_us + self.total_us[:, max(len(self.brokers) - 1, 0)]

    @property
    def start_up_us(self) -> Times:
        """(n, S) the shortest time from the call of ``start()`` to its return."""
        return np.maximum(self.lead_us, 0) + self.total_us[:, -1]


@dataclass(frozen=True)
class BrokerRequests:
    """Durations of the requests of each lifetime in each future.

    Attributes:
        timeline: what happens to the group.
        seeds: (S,) the futures.
        options: the simulation's options.
    """

    timeline: GroupTimeline
    seeds: NDArray[np.int64]
    options: ClockOptions

    @cached_property
    def words(self) -> NDArray[np.uint64]:
        """(lifetimes, S): the hashes of seed and entity from which a lifetime's draws derive."""
        entities = np.array([lifetime.entity for lifetime in self.timeline.lifetimes], np.uint64)
        return words_of(self.seeds, entities[:, None])

    @cached_property
    def broker_rank(self) -> NDArray[np.int64]:
        """(brokers,): each broker's rank in the Java map whose order clients follow."""
        names, masters = self.timeline.broker_names, self.timeline.masters
        walk = ConcurrentMapOrder[str](java_hash, _ADDRESS_BUCKETS)
        for name in names:
            walk.add(name)
        # A broker's addresses are visited in order of id; the master's is 0.
        order = [
            number
            for broker in map(names.index, walk)
            for number in (masters.get(broker), broker)
            if number is not None
        ]
        return np.argsort(order)

    @property
    def starts_without_heartbeat(self) -> bool:
        """Whether the timer sends the first heartbeat of the group's clients."""
        return self.timeline.settings.consumer_type in (LITE_PULL, PULL)

    def beats_at_once(self, lifetime: ProcessLifetime) -> bool:
        """Return whether a process sends several heartbeats at the same time."""
        version = parse_version(lifetime.states[0][1].rules_version)
        return self.options.concurrent_heartbeat and version >= CONCURRENT_HEARTBEAT

    @cached_property
    def registrations(self) -> tuple[Registrations, ...]:
        """The registrations of all joins, grouped by the brokers with which lifetimes register."""
        alike: dict[tuple[tuple[int, ...], bool], list[int]] = {}
        for lifetime in self.timeline.lifetimes:
            if not lifetime.observed:
                at_once = self.beats_at_once(lifetime)
                alike.setdefault((lifetime.first_brokers, at_once), []).append(lifetime.index)
        return tuple(
            self._registrations(np.array(lifetimes, np.int64), np.array(brokers, np.int64), at_once)
            for (brokers, at_once), lifetimes in alike.items()
        )

    def _registrations(
        self, lifetimes: NDArray[np.int64], brokers: NDArray[np.int64], at_once: bool
    ) -> Registrations:
        count = len(brokers)
        draws = self._draws(lifetimes, np.arange(count))
        fitted = self.options.fitted(REGISTRATION)
        if fitted is not None:
            steps, trip_us = fitted.many(draws), np.zeros(len(lifetimes), np.int64)
        else:
            steps = REGISTRATION_NEXT.many(draws)
            first = max(0, count - RECORDED_BROKERS)
            steps[:, first:] = REGISTRATION_STEP.many(draws[:, first:])
            # connect and send a heartbeat; a running instance is already connected
            trip_us = (2 - self._in_running_instance[lifetimes]) * self.options.rtt_us
        total = _running_total(steps + trip_us[:, None, None])
        if at_once:
            total = total[:, -(-np.arange(count + 1) // HEARTBEAT_THREADS)]
        lead = LAST_LEAD.many(draws_of(self.words[lifetimes], Timer.REGISTRATION_LEAD))
        by_first = self.joins_at_first_broker[lifetimes, None]
        lead = np.where(by_first, np.maximum(lead, 1), lead)
        rank = np.argsort(np.argsort(self.broker_rank[brokers]))
        in_turn = -(-count // HEARTBEAT_THREADS) if at_once else count
        return Registrations(lifetimes, brokers, rank, total, lead, trip_us * in_turn)

    def unregistrations_us(self, lifetimes: NDArray[np.int64]) -> Times:
        """Return (lifetimes, brokers, S) the time from a ``shutdown()`` to the client's removal by
        each broker.
        """
        first = UNREGISTRATION_STEP.many(
            draws_of(self.words[lifetimes, None], Timer.BROKER_STEP, _LEAVING)
        )
        ticks = _LEAVING + 1 + np.arange(int(self.broker_rank.max(initial=0)))
        fitted = self.options.fitted(UNREGISTRATION)
        draws = self._draws(lifetimes, ticks)
        if fitted is not None:
            steps = fitted.many(draws)
        else:
            steps = UNREGISTRATION_NEXT.many(draws) + self.options.rtt_us
        total = _running_total(steps)[:, self.broker_rank]
        return first + total + self.options.one_way_us

    @cached_property
    def joins_at_first_broker(self) -> NDArray[np.bool_]:
        """(lifetimes,): whether the lifetime's join time is the time of its first registration."""
        dated = [lifetime.joins_at_first_broker for lifetime in self.timeline.lifetimes]
        return np.array(dated, bool) & (not self.starts_without_heartbeat)

    @cached_property
    def _in_running_instance(self) -> NDArray[np.bool_]:
        """(lifetimes,): whether the lifetime joins a running client instance."""
        return np.array(
            [
                any(came_first(each) < came_first(lifetime) for _, each in shared)
                for lifetime, shared in zip(
                    self.timeline.lifetimes, self.timeline.sharing, strict=True
                )
            ],
            bool,
        )

    def _draws(self, lifetimes: NDArray[np.int64], ticks: NDArray[np.int64]) -> NDArray[np.uint64]:
        """Return (lifetimes, ticks, S) draws."""
        return draws_of(self.words[lifetimes, None], Timer.BROKER_STEP, ticks[:, None])


def _running_total(steps: Times) -> Times:
    """Return (n, K + 1, S) the sums of the first 0, 1, … K of (n, K, S) steps."""
    total = np.zeros((steps.shape[0], steps.shape[1] + 1, steps.shape[2]), np.int64)
    np.cumsum(steps, axis=1, out=total[:, 1:])
    return total
