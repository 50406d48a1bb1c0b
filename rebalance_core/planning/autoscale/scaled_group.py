"""What is known about a group to scale, or why it cannot be simulated."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from rebalance_core.model.queue import is_retry_topic
from rebalance_core.model.times import SECOND_MS
from rebalance_core.planning.autoscale.arrivals import (
    LIKELY,
    WORLDS,
    Arrival,
    Rates,
    UnknownRateError,
    arrivals_of,
    rates_of,
)
from rebalance_core.planning.autoscale.closed_loop import Reader
from rebalance_core.planning.autoscale.recorded_replicas import (
    Recorded,
    Samples,
    recorded_during,
)
from rebalance_core.planning.autoscale.service_time import Uncommitted, sigma_of
from rebalance_core.planning.autoscale.transitions import Transitions
from rebalance_core.planning.group_sizes import CONCURRENT_THREADS
from rebalance_core.planning.rollout.futures import DeployedGroup
from rebalance_core.planning.scenario.pods import Start
from rebalance_core.replay.history import QueueOffset
from rebalance_core.timing.options import ClockOptions

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import ArrivalsRow, CapacityRow

LONGEST_S = 100 * 86_400
"""The maximum length of a replay; a longer one is probably a mistake, and ``--from`` and ``--to``
select a part.
"""


@dataclass(frozen=True, slots=True)
class Service:
    """A row of ``capacity``.

    Attributes:
        service_ms: the time that a thread takes per message, in each of `WORLDS`.
        threads: the threads of a member.
        batch: the number of messages per call of the listener.
        ordered: whether the listener is orderly; None for the group's setting.
        p99: the ratio to the mean that 99 % of the service times do not exceed.
    """

    service_ms: tuple[float, float, float]
    threads: int = CONCURRENT_THREADS
    batch: int = 1
    ordered: bool | None = None
    p99: float = 1.0


@dataclass(frozen=True, eq=False)
class ScaledGroup:
    """A group with its arrivals and a member's capacity.

    Attributes:
        group: the group at rest.
        rates: the rates, by world.
        readers: the readers, by world.
        reason: why it cannot be simulated, or None if it can.
        recorded: the replicas that it had; None if they are not requested.
    """

    group: DeployedGroup
    rates: Mapping[str, Rates]
    readers: Mapping[str, Reader]
    reason: str | None = None
    recorded: Recorded | None = None

    @property
    def worlds(self) -> tuple[str, ...]:
        """The worlds that differ."""
        return tuple(self.rates) or (LIKELY,)


@dataclass(frozen=True, eq=False)
class Workload:
    """The stated load and capacity of all groups.

    Attributes:
        arrivals: by cluster (None: every cluster) and topic; None: taken from the groups' own
            offsets.
        services: by cluster (None: every cluster) and group.
        default: the default for groups without a row; None: unknown.
        from_ms: the start of the replay; None: the start of the rates.
        to_ms: the end of the replay.
        recorded: replicas over time, keyed like services; None if they are not requested.
    """

    arrivals: Mapping[tuple[str | None, str], Sequence[Arrival]] | None
    services: Mapping[tuple[str | None, str], Service]
    default: Service | None = None
    from_ms: int | None = None
    to_ms: int | None = None
    recorded: Mapping[tuple[str | None, str], Samples] | None = None

    def of(self, group: DeployedGroup, offsets: Sequence[QueueOffset]) -> ScaledGroup:
        """Return a group with its rates and readers.

        Args:
            group: the group at rest.
            offsets: all observations of its queues' end offsets.
        """

        def unknown(reason: str) -> ScaledGroup:
            return ScaledGroup(group, {}, {}, reason)

        if group.trouble is not None:
            return unknown(f"it {group.trouble}")
        # a single play is enough to know the queues
        steps = Transitions(group, Start(0), 0, np.zeros(1, np.int64), ClockOptions())
        trouble = steps.trouble()
        if trouble is not None:
            return unknown(trouble)
        cluster, name = group.name
        service = self.services.get((cluster, name)) or self.services.get((None, name))
        service = service or self.default
        if service is None:
            return unknown("its service time is not known: give capacity a row or --service-time")
        queues = [queue for queue in steps.queues if not is_retry_topic(queue.topic)]
        if len(queues) < len(steps.queues):
            return unknown("it reads a retry topic by name")
        rows = self._arrivals(cluster, {queue.topic for queue in queues}, offsets)
        try:
            likely = self._rates(rows, steps, LIKELY)
        except UnknownRateError as error:
            return unknown(str(error))
        if likely.seconds > LONGEST_S:
            days = likely.seconds // 86_400
            return unknown(f"its rates span {days:,} days, at most {LONGEST_S // 86_400} are valid")
        readers = {world: _reader(service, group, world) for world in WORLDS}
        overload = _overload(likely, readers[LIKELY], steps)
        if overload is not None:
            return unknown(overload)
        wide = any(len(set(each.rates)) > 1 for each in rows) or len(set(service.service_ms)) > 1
        worlds = WORLDS if wide else (LIKELY,)
        rates = {w: likely if w == LIKELY else self._rates(rows, steps, w) for w in worlds}
        recorded = None
        if self.recorded is not None:
            samples = self.recorded.get((cluster, name)) or self.recorded.get((None, name))
            recorded = recorded_during(samples, likely)
        readers = {world: readers[world] for world in worlds}
        return ScaledGroup(group, rates, readers, recorded=recorded)

    def _rates(self, rows: Sequence[Arrival], steps: Transitions, world: str) -> Rates:
        return rates_of(rows, steps.queues, world, self.from_ms, self.to_ms)

    def _arrivals(
        self, cluster: str, topics: Iterable[str], offsets: Sequence[QueueOffset]
    ) -> list[Arrival]:
        if self.arrivals is None:
            return arrivals_of(offsets)
        return [
            row
            for topic in sorted(topics)
            for key in ((cluster, topic), (None, topic))
            for row in self.arrivals.get(key, ())
        ]


def _reader(service: Service, group: DeployedGroup, world: str) -> Reader:
    work_s = service.service_ms[WORLDS.index(world)] / SECOND_MS
    ordered = group.ordered if service.ordered is None else service.ordered
    return Reader(
        capacity=service.threads / work_s,
        of_queue=1 / work_s if ordered else np.inf,
        work_s=work_s * service.batch,
        cache=group.history.settings.pull_threshold_for_queue,
        # an orderly member commits after each call of its listener
        uncommitted=Uncommitted(0.0 if ordered else sigma_of(service.p99)),
    )


def _overload(rates: Rates, reader: Reader, steps: Transitions) -> str | None:
    """Return why no number of members can keep up with a queue's mean rate, or None."""
    mean = rates.arrived(np.array([float(rates.seconds)]))[0] / rates.seconds
    most = min(reader.capacity, reader.of_queue)
    worst = int(np.argmax(mean))
    if mean[worst] <= most:
        return None
    queue = steps.queues[worst]
    who = "a thread" if reader.of_queue < reader.capacity else "a member"
    return (
        f"{queue.topic}/{queue.broker_name}/{queue.queue_id} gets {mean[worst]:,.10g} messages a "
        f"second and {who} reads {most:,.10g}: no number of members is enough"
    )


def arrivals_by_topic(
    rows: Iterable[ArrivalsRow],
) -> dict[tuple[str | None, str], list[Arrival]]:
    """Group rows of ``arrivals`` by cluster and topic."""
    by_topic: dict[tuple[str | None, str], list[Arrival]] = {}
    for row in rows:
        likely = row["messages_per_second"]
        low = likely if row["low"] is None else row["low"]
        high = likely if row["high"] is None else row["high"]
        arrival = Arrival(
            row["from_ms"],
            row["to_ms"],
            row["topic"],
            row["broker_name"],
            row["queue_id"],
            (likely, low, high),
        )
        by_topic.setdefault((row["cluster"], row["topic"]), []).append(arrival)
    return by_topic


def services_by_group(
    rows: Iterable[CapacityRow],
) -> dict[tuple[str | None, str], Service]:
    """Key the rows of ``capacity`` by cluster and group."""
    services = {}
    for row in rows:
        likely = row["service_ms"]
        low = likely if row["service_ms_low"] is None else row["service_ms_low"]
        high = likely if row["service_ms_high"] is None else row["service_ms_high"]
        threads = CONCURRENT_THREADS if row["threads"] is None else row["threads"]
        p99 = 1.0 if row["service_ms_p99"] is None else row["service_ms_p99"] / likely
        service = Service((likely, low, high), threads, row["batch"] or 1, row["ordered"], p99)
        services[row["cluster"], row["consumer_group"]] = service
    return services
