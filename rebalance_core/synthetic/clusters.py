"""A cluster: its brokers, their locations, and when they are lost."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from rebalance_core.model import events
from rebalance_core.model.times import DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS
from rebalance_core.synthetic.draws import Draws, Mix
from rebalance_core.synthetic.event_rows import EventRows, Row
from rebalance_core.synthetic.fleet import FleetPlan
from rebalance_core.synthetic.names import broker_names, cluster_name

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
class Downtime:
    """The period [from_ms, to_ms) in which a broker is down; it may return after the trace."""

    from_ms: int
    to_ms: int
    detail: str


@dataclass(frozen=True, slots=True)
class FleetBroker:
    """A broker name; ``since_ms`` is the start of the trace for brokers that existed before."""

    name: str
    room: str | None
    since_ms: int
    outages: tuple[Downtime, ...]

    def is_up(self, at_ms: int) -> bool:
        """Return whether the broker can be asked at this instant."""
        away = any(outage.from_ms <= at_ms < outage.to_ms for outage in self.outages)
        return self.since_ms <= at_ms and not away


@dataclass(frozen=True, slots=True)
class Cluster:
    """A cluster; with ``rooms`` its brokers are named ``room@name``."""

    number: int
    name: str
    version: str
    utc_offset_hours: int
    rooms: tuple[str, ...]
    brokers: tuple[FleetBroker, ...]


@lru_cache(maxsize=64)
def cluster_of(plan: FleetPlan, number: int) -> Cluster:
    """Return cluster ``number`` of the plan."""
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
        FleetBroker(
            name,
            rooms[i % len(rooms)] if rooms else None,
            plan.start_ms if i < old or late is None else late,
            _outages(plan, number, i) if i < old else (),
        )
        for i, name in enumerate(names)
    ]
    return Cluster(number, cluster_name(number), version, offset, rooms, tuple(brokers))


def broker_events(plan: FleetPlan, number: int) -> Iterator[list[Row]]:
    """Yield the rows of cluster_events about the brokers of a cluster."""
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
    """Return when another broker joins the cluster, or None if that is not during the trace."""
    for day in range(plan.days):
        draws = Draws(plan.seed, "new-broker", cluster, day)
        if draws.chance(NEW_BROKER_CHANCE_PER_DAY):
            return plan.start_ms + day * DAY_MS + draws.between(8 * HOUR_MS, 18 * HOUR_MS)
    return None


def _outages(plan: FleetPlan, cluster: int, broker: int) -> tuple[Downtime, ...]:
    """Return the losses and maintenance periods of a broker, in order, without overlaps."""
    outages: list[Downtime] = []
    for day in range(plan.days):
        start_ms = plan.start_ms + day * DAY_MS
        outages += _maintenance(plan, cluster, broker, day, start_ms)
        draws = Draws(plan.seed, "losses", cluster, broker, day)
        if draws.chance(LOSSES_PER_BROKER_DAY):
            detail = draws.mixed(LOSS_DETAILS)
            from_ms = start_ms + draws.between(1, DAY_MS - 1)
            outages.append(Downtime(from_ms, from_ms + _length_ms(draws, detail), detail))
    kept: list[Downtime] = []
    for outage in sorted(outages, key=lambda outage: outage.from_ms):
        if not kept or outage.from_ms > kept[-1].to_ms + MINUTE_MS:
            kept.append(outage)
    return tuple(kept)


def _maintenance(
    plan: FleetPlan, cluster: int, broker: int, day: int, start_ms: int
) -> list[Downtime]:
    draws = Draws(plan.seed, "maintenance", cluster, day)
    if not draws.chance(MAINTENANCES_PER_DAY):
        return []
    begin = start_ms + draws.between(HOUR_MS, 5 * HOUR_MS)
    from_ms = begin + broker * draws.between(6 * MINUTE_MS, 15 * MINUTE_MS)
    return [Downtime(from_ms, from_ms + draws.between(40 * SECOND_MS, 4 * MINUTE_MS), "STOPPED")]


def _length_ms(draws: Draws, detail: str) -> int:
    longest = 6 * HOUR_MS if detail == events.EXPIRED else 40 * MINUTE_MS
    return int(draws.scattered(30 * SECOND_MS, longest))
