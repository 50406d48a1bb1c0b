"""Compares the size of a group with the groups that were measured, and estimates its
``start()``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from rebalance_core.contracts.observed import REGISTRATION, START_UP
from rebalance_core.timing.group_timeline import GroupTimeline
from rebalance_core.timing.options import MS_US, ClockOptions
from rebalance_core.timing.ticks import Ticks

MEASURED_BROKERS: Final = (2, 4)
"""The minimum and maximum number of brokers, including slaves, that a member of a timed recording
registers with.
"""
MEASURED_MEMBERS: Final = (1, 7)
"""The minimum and maximum number of simultaneous members of a group in a timed recording."""
MEASURED_QUEUES: Final = (1, 16)
"""The minimum and maximum number of queues per member in a timed recording (`Extent`)."""
DEFAULT_BASIS: Final = (
    f"default, measured on {MEASURED_BROKERS[0]} to {MEASURED_BROKERS[1]} brokers"
)
"""The origin of the durations of ``start()`` if there is no fit."""
_FUTURES = np.arange(1_000)


@dataclass(frozen=True, slots=True)
class Extent:
    """The sizes that the costs of a group's changes depend on.

    Attributes:
        brokers: the maximum number that a member registers with.
        members: the maximum number at any time.
        queues_a_member: readable queues per member, rounded up.
    """

    brokers: int
    members: int
    queues_a_member: int

    @property
    def extrapolated(self) -> str | None:
        """Return the sizes that exceed the measured range, with that range, or None if none
        does.
        """
        return "; ".join(self._beyond()) or None

    def _beyond(self) -> Iterator[str]:
        for count, (low, high), name in (
            (self.brokers, MEASURED_BROKERS, "brokers"),
            (self.members, MEASURED_MEMBERS, "members"),
            (self.queues_a_member, MEASURED_QUEUES, "queues a member"),
        ):
            if count > high:
                yield f"{count:,} {name} (measured {low} to {high})"


def extent_of(timeline: GroupTimeline) -> Extent:
    """Return the extent of a group."""
    lifetimes = timeline.lifetimes
    moments = [(lifetime.joined.event_us, 1) for lifetime in lifetimes]
    moments += [(lifetime.ending.moment.event_us, -1) for lifetime in lifetimes if lifetime.ending]
    members = most = 0
    for _, change in sorted(moments):
        members += change
        most = max(most, members)
    queues = sum(
        max((len(version.queues) for version in versions), default=0)
        for versions in timeline.routes
    )
    return Extent(
        brokers=max((len(lifetime.first_brokers) for lifetime in lifetimes), default=0),
        members=most,
        queues_a_member=-(-queues // max(most, 1)),
    )


def basis_of(options: ClockOptions) -> str:
    """Return the origin of the time that ``start()`` takes."""
    if options.start_up_ms is not None:
        return "given by --start-up-time"
    for kind in (START_UP, REGISTRATION):
        if options.fit is not None and options.fit.delay(kind) is not None:
            return options.fit.of_kind(kind).text
    return _default_of(options)


def delays_basis(options: ClockOptions) -> str:
    """Return the origin of all delays: that of each fitted kind, and the basis of the others."""
    kinds = [] if options.fit is None else options.fit.kinds
    fitted = [kind.text for kind in kinds if kind.delay is not None]
    return "; ".join([*fitted, f"else {_default_of(options)}" if fitted else _default_of(options)])


def _default_of(options: ClockOptions) -> str:
    if not options.rtt_us:
        return DEFAULT_BASIS
    return f"{DEFAULT_BASIS}, round trips of {options.rtt_us / MS_US:g} ms"


@dataclass(frozen=True, slots=True)
class StartUp:
    """The duration of ``start()`` over many futures.

    Attributes:
        brokers: the number of brokers that the member registers with.
        median_ms: not exceeded in half of the futures.
        p99_ms: not exceeded in 99 % of the futures.
        basis: the origin of these figures.
    """

    brokers: int
    median_ms: int
    p99_ms: int
    basis: str


def start_up_of(timeline: GroupTimeline, options: ClockOptions) -> StartUp | None:
    """Return how long ``start()`` takes for the member with the most brokers, or None without
    members.

    A startup probe has to allow for it. The option ``start_up_ms`` replaces the drawn value.
    """
    living = [lifetime for lifetime in timeline.lifetimes if not lifetime.stale_entry]
    if not living:
        return None
    largest = max(living, key=lambda lifetime: len(lifetime.first_brokers))
    alone = replace(
        timeline,
        lifetimes=(replace(largest, index=0, observed=False),),
        initial=(frozenset(),),
        sharing_groups=(),
    )
    us = Ticks(alone, _FUTURES, options).start_up_us[0]
    median, p99 = np.percentile(us, [50, 99], method="inverted_cdf") // MS_US
    return StartUp(len(largest.first_brokers), int(median), int(p99), basis_of(options))
