"""The plan of a fleet: how much of what there is, resolved before anything is made."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from rebalance_core.contracts.inputs import YEAR_2000_MS
from rebalance_core.model import events
from rebalance_core.model.errors import UsageError
from rebalance_core.model.times import DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS
from rebalance_core.synthetic.draws import Draws, EventRows, Mix, Row, broker_names, cluster_name

MONDAY_MS = 1_767_571_200_000  # 2026-01-05T00:00:00Z, a Monday

TOPICS_PER_GROUP = 0.4  # a topic has 2.5 groups of its own, and popular ones many more
FEWEST_TOPICS = 3

# Measured means (10,000 groups, several seeds), for the rows a plan is expected to give.
EVENTS_PER_TOPIC = 2.6
MEMBERS_PER_GROUP = 9.0
CHANGES_PER_GROUP_DAY = 30.0
QUEUES_PER_GROUP = 10.1  # retry queues counted; topics are shared by groups
COMMITS_PER_GROUP = 31.5
ROWS_PER_GROUP = 0.98

RANGES = {
    "groups": (1, 10_000_000),
    "days": (1, 3_650),
    "seed": (-(2**63), 2**63 - 1),
    "start_ms": (YEAR_2000_MS, 4_102_444_800_000),  # to the year 2100
    "groups_per_cluster": (1, 100_000),
    "offset_hours": (1, 24),
}
"""The lowest and highest value of each number that makes a plan."""


@dataclass(frozen=True, slots=True)
class FleetPlan:
    """A fleet as it will be made; a plain value that can be printed and shipped.

    Everything that is made is a function of the plan and of the number of one cluster, topic or
    group. Full clusters keep their rows when ``groups`` grows, and the first days theirs when
    ``days`` grows.

    Attributes:
        groups: consumer groups, numbered from 0; the cluster of group g is g // groups_per_cluster.
        days: length of the trace.
        seed: any whole number.
        start_ms: first instant; what was there before is OBSERVED at it.
        groups_per_cluster: groups of a full cluster.
        offset_hours: hours between two observations of the offsets of all queues.

    Raises:
        UsageError: names every value out of range.
    """

    groups: int
    days: int
    seed: int
    start_ms: int = MONDAY_MS
    groups_per_cluster: int = 500
    offset_hours: int = 8

    def __post_init__(self) -> None:
        mistakes = list(self._mistakes())
        if mistakes:
            raise UsageError("\n".join(mistakes))

    def _mistakes(self) -> Iterator[str]:
        for name, (low, high) in RANGES.items():
            value = getattr(self, name)
            if not low <= value <= high:
                yield f"{name} {value}: not from {low} to {high}"

    @property
    def end_ms(self) -> int:
        """The first instant after the trace."""
        return self.start_ms + self.days * DAY_MS

    @property
    def clusters(self) -> int:
        """Number of clusters; only the last may have fewer groups than the others."""
        return -(-self.groups // self.groups_per_cluster)

    @property
    def topics(self) -> int:
        """Number of topics in all clusters; retry topics are not counted."""
        return (self.clusters - 1) * self.topics_of_full_cluster + self.topics_in(self.clusters - 1)

    @property
    def topics_of_full_cluster(self) -> int:
        """Topics of every cluster but perhaps the last."""
        return _topics(self.groups_per_cluster)

    @property
    def moments(self) -> tuple[int, ...]:
        """When the offsets are looked at: the start, every `offset_hours` after it, the end."""
        return (*range(self.start_ms, self.end_ms, self.offset_hours * HOUR_MS), self.end_ms)

    def groups_in(self, cluster: int) -> int:
        """Groups of one cluster."""
        return min(self.groups_per_cluster, self.groups - cluster * self.groups_per_cluster)

    def topics_in(self, cluster: int) -> int:
        """Topics of one cluster."""
        return _topics(self.groups_in(cluster))

    def place_of_group(self, group: int) -> tuple[int, int]:
        """Cluster of a group and the group's number in it."""
        return divmod(group, self.groups_per_cluster)

    def place_of_topic(self, topic: int) -> tuple[int, int]:
        """Cluster of a topic and the topic's number in it."""
        return divmod(topic, self.topics_of_full_cluster)

    def expected_rows(self) -> dict[str, int]:
        """About how many rows each table will have; small fleets differ by a factor of two."""
        per_group = MEMBERS_PER_GROUP + CHANGES_PER_GROUP_DAY * self.days
        observations = len(self.moments)
        return {
            "cluster_events": round(self.groups * per_group + self.topics * EVENTS_PER_TOPIC),
            "consumer_groups": round(self.groups * ROWS_PER_GROUP),
            "queue_offsets": round(self.groups * QUEUES_PER_GROUP * observations),
            "committed_offsets": round(self.groups * COMMITS_PER_GROUP * (observations - 1)),
        }

    def facts(self) -> dict[str, int]:
        """Everything above as plain values, in the order a person reads it."""
        return {
            "groups": self.groups,
            "days": self.days,
            "seed": self.seed,
            "clusters": self.clusters,
            "topics": self.topics,
            "start_ms": self.start_ms,
            "end_ms": self.end_ms,
            "groups_per_cluster": self.groups_per_cluster,
            "offset_hours": self.offset_hours,
            "offset_looks": len(self.moments),
        }


def _topics(groups: int) -> int:
    return max(FEWEST_TOPICS, round(groups * TOPICS_PER_GROUP))


# One cluster: its brokers, where they stand, and when they are lost.

BROKERS: Mix[int] = ((3, 3), (4, 4), (5, 2), (6, 3), (8, 3), (12, 1), (16, 0.6))
VERSIONS: Mix[str] = (
    ("4.9.4", 1), ("4.9.7", 2), ("5.1.4", 2), ("5.2.0", 1), ("5.3.1", 2), ("5.3.3", 3),
)  # fmt: skip
UTC_OFFSET_HOURS: Mix[int] = ((8, 5), (0, 2), (1, 1), (-5, 1))
ROOMS = ("idc1", "idc2", "idc3")
EVERY_NTH_HAS_ROOMS = 3

LOSSES_PER_BROKER_DAY = 0.06
MAINTENANCES_PER_DAY = 0.08  # all brokers stopped and started, one after another
LOSS_DETAILS: Mix[str] = (("STOPPED", 3), ("CLOSED", 5), (events.EXPIRED, 2))
NEW_BROKER_CHANCE_PER_DAY = 0.05


@dataclass(frozen=True, slots=True)
class Outage:
    """A broker is away in [from_ms, to_ms); it may come back after the trace."""

    from_ms: int
    to_ms: int
    detail: str


@dataclass(frozen=True, slots=True)
class Broker:
    """One broker name; ``since_ms`` is the start of the trace for those that were there before."""

    name: str
    room: str | None
    since_ms: int
    outages: tuple[Outage, ...]

    def is_up(self, at_ms: int) -> bool:
        """True while it can be asked."""
        away = any(outage.from_ms <= at_ms < outage.to_ms for outage in self.outages)
        return self.since_ms <= at_ms and not away


@dataclass(frozen=True, slots=True)
class Cluster:
    """One cluster; with ``rooms`` its brokers are named ``room@name``."""

    number: int
    name: str
    version: str
    utc_offset_hours: int
    rooms: tuple[str, ...]
    brokers: tuple[Broker, ...]


@lru_cache(maxsize=64)
def cluster_of(plan: FleetPlan, number: int) -> Cluster:
    """Cluster ``number`` of the plan."""
    draws = Draws(plan.seed, "cluster", number)
    turn = Draws(plan.seed, "rooms").between(0, EVERY_NTH_HAS_ROOMS - 1)
    rooms: tuple[str, ...] = ()
    if number % EVERY_NTH_HAS_ROOMS == turn:
        rooms = ROOMS[: draws.between(2, len(ROOMS))]
    version, offset = draws.mixed(VERSIONS), draws.mixed(UTC_OFFSET_HOURS)
    old = max(draws.mixed(BROKERS), 2 * len(rooms))
    late = _late_broker(plan, number)
    names = broker_names(draws, old + (late is not None), rooms)
    brokers = [
        Broker(
            name,
            rooms[i % len(rooms)] if rooms else None,
            plan.start_ms if i < old or late is None else late,
            _outages(plan, number, i) if i < old else (),
        )
        for i, name in enumerate(names)
    ]
    return Cluster(number, cluster_name(number), version, offset, rooms, tuple(brokers))


def broker_events(plan: FleetPlan, number: int) -> Iterator[list[Row]]:
    """The rows of cluster_events about the brokers of one cluster."""
    cluster = cluster_of(plan, number)
    rows = EventRows(cluster.name, 0)
    moves: list[tuple[int, int, str, str | None]] = []
    for i, broker in enumerate(cluster.brokers):
        observed = events.OBSERVED if broker.since_ms == plan.start_ms else None
        moves.append((broker.since_ms, i, events.BROKER_UP, observed))
        for outage in broker.outages:
            moves.append((outage.from_ms, i, events.BROKER_DOWN, outage.detail))
            moves.append((outage.to_ms, i, events.BROKER_UP, None))
    for at_ms, i, event_type, detail in sorted(moves, key=lambda move: move[:2]):
        if at_ms < plan.end_ms:
            version = cluster.version if event_type == events.BROKER_UP else None
            name = cluster.brokers[i].name
            rows.add(at_ms, event_type, broker_name=name, detail=detail, version=version)
    yield rows.take()


def _late_broker(plan: FleetPlan, cluster: int) -> int | None:
    """When the cluster gets one more broker; None: not in this trace."""
    for day in range(plan.days):
        draws = Draws(plan.seed, "new-broker", cluster, day)
        if draws.chance(NEW_BROKER_CHANCE_PER_DAY):
            return plan.start_ms + day * DAY_MS + draws.between(8 * HOUR_MS, 18 * HOUR_MS)
    return None


def _outages(plan: FleetPlan, cluster: int, broker: int) -> tuple[Outage, ...]:
    """Losses and maintenances of one broker, in order; none overlap."""
    outages: list[Outage] = []
    for day in range(plan.days):
        start_ms = plan.start_ms + day * DAY_MS
        outages += _maintenance(plan, cluster, broker, day, start_ms)
        draws = Draws(plan.seed, "losses", cluster, broker, day)
        if draws.chance(LOSSES_PER_BROKER_DAY):
            detail = draws.mixed(LOSS_DETAILS)
            from_ms = start_ms + draws.between(1, DAY_MS - 1)
            outages.append(Outage(from_ms, from_ms + _length_ms(draws, detail), detail))
    kept: list[Outage] = []
    for outage in sorted(outages, key=lambda outage: outage.from_ms):
        if not kept or outage.from_ms > kept[-1].to_ms + MINUTE_MS:
            kept.append(outage)
    return tuple(kept)


def _maintenance(
    plan: FleetPlan, cluster: int, broker: int, day: int, start_ms: int
) -> list[Outage]:
    draws = Draws(plan.seed, "maintenance", cluster, day)
    if not draws.chance(MAINTENANCES_PER_DAY):
        return []
    begin = start_ms + draws.between(HOUR_MS, 5 * HOUR_MS)
    from_ms = begin + broker * draws.between(6 * MINUTE_MS, 15 * MINUTE_MS)
    return [Outage(from_ms, from_ms + draws.between(40 * SECOND_MS, 4 * MINUTE_MS), "STOPPED")]


def _length_ms(draws: Draws, detail: str) -> int:
    longest = 6 * HOUR_MS if detail == events.EXPIRED else 40 * MINUTE_MS
    return int(draws.scattered(30 * SECOND_MS, longest))
