"""The days of a group: determines when each incident happens, and yields all rows of the group."""

from collections.abc import Callable, Iterator

from rebalance_core.model import events
from rebalance_core.model.times import (
    DAY_MS,
    HOUR_MS,
    MINUTE_MS,
    SECOND_MS,
)
from rebalance_core.synthetic import groups
from rebalance_core.synthetic.draws import Draws, Mix
from rebalance_core.synthetic.event_rows import Row
from rebalance_core.synthetic.fleet import FleetPlan
from rebalance_core.synthetic.groups import FleetGroup
from rebalance_core.synthetic.incidents import (
    crash,
    deploy,
    flap,
    half_open,
    second_copy,
    subscribe,
    suspend,
)
from rebalance_core.synthetic.member_life import MemberLife

WEEKEND_FACTOR = 0.15
WORKING_HOURS: Mix[int] = (
    (8, 1), (9, 3), (10, 6), (11, 6), (12, 2), (13, 3), (14, 6), (15, 6), (16, 6), (17, 5),
    (18, 3), (19, 2), (20, 2), (21, 1), (22, 0.5), (2, 0.5),
)  # fmt: skip

CRASHES_PER_MEMBER_DAY = 0.04
FLAPPING_PER_DAY = 0.012
MOST_FLAPS = 80
RARE_PER_DAY: tuple[tuple[Callable[[MemberLife], None], float], ...] = (
    (half_open, 0.003),
    (second_copy, 0.001),
    (suspend, 0.002),
    (subscribe, 0.006),
)

SWING = (
    -0.5, -0.6, -0.7, -0.7, -0.7, -0.6, -0.4, -0.1, 0.2, 0.5, 0.8, 0.9,
    0.7, 0.6, 0.8, 0.8, 0.7, 0.6, 0.6, 0.8, 0.9, 0.6, 0.1, -0.3,
)  # fmt: skip
"""The share of a group's swing that applies, by local hour."""


def group_events(plan: FleetPlan, number: int) -> Iterator[list[Row]]:
    """Yield the rows of cluster_events about the members of a group, day by day.

    Cost: about 10 microseconds per event.
    """
    group = groups.group_of(plan, number)
    life = MemberLife(plan, group, Draws(plan.seed, "life", number))
    for from_start_ms, mode in group.request_modes:
        life.at(plan.start_ms + from_start_ms, life.set_mode, str(mode))
    life.run(plan.start_ms + 1)
    if group.batch_hour is None:
        for _ in range(group.size):
            life.start(life.add_seat(), events.OBSERVED)
    for day in range(plan.days):
        life.at(plan.start_ms + day * DAY_MS, _plan_day, life, day)
        life.run(plan.start_ms + (day + 1) * DAY_MS)
        yield life.rows.take()


def _plan_day(life: MemberLife, day: int) -> None:
    """Schedule a day's incidents; they are drawn at midnight, so that later days do not affect
    them.
    """
    group, draws = life.group, life.draws
    if group.batch_hour is not None:
        _plan_batch(life, group.batch_hour)
        return
    weekend = _weekday(life.plan, day) >= 5
    for _ in range(draws.count(group.deploys_per_day * (WEEKEND_FACTOR if weekend else 1.0))):
        life.after(_working_hour_ms(group, draws), deploy, life)
    for _ in range(draws.count(CRASHES_PER_MEMBER_DAY * len(life.seats))):
        life.after(draws.between(1, DAY_MS - 1), crash, life)
    if draws.chance(FLAPPING_PER_DAY):
        life.after(draws.between(1, DAY_MS - 1), _begin_flapping, life)
    for incident, per_day in RARE_PER_DAY:
        if draws.chance(per_day):
            life.after(draws.between(1, DAY_MS - 1), incident, life)
    if group.swing:
        for hour in range(24):
            life.after(hour * HOUR_MS + draws.between(0, 10 * MINUTE_MS), _scale, life, hour)


def _weekday(plan: FleetPlan, day: int) -> int:
    """Return the weekday, 0 for Monday; 1970-01-01 was a Thursday."""
    return (plan.start_ms // DAY_MS + day + 3) % 7


def _working_hour_ms(group: FleetGroup, draws: Draws) -> int:
    """Return a time of day, counted from midnight UTC, in working hours at the cluster's
    location.
    """
    local = draws.mixed(WORKING_HOURS) * HOUR_MS + draws.between(0, HOUR_MS - 1)
    return (local - group.cluster.utc_offset_hours * HOUR_MS) % DAY_MS


def _begin_flapping(life: MemberLife) -> None:
    seats = life.running()
    if seats:
        times = int(life.draws.scattered(8, MOST_FLAPS))
        flap(life, life.draws.pick(seats), times)


def _scale(life: MemberLife, hour: int) -> None:
    """Scale the group: newer seats leave first, one every few seconds."""
    group, draws = life.group, life.draws
    local_hour = (hour + group.cluster.utc_offset_hours) % 24
    wanted = max(1, round(group.size * (1 + group.swing * SWING[local_hour])))
    late_ms = 0
    for _ in range(wanted - len(life.seats)):
        late_ms += draws.between(SECOND_MS // 2, 6 * SECOND_MS)
        life.after(late_ms, life.start, life.add_seat())
    for seat in reversed(life.seats[wanted:]):
        late_ms += draws.between(SECOND_MS // 2, 4 * SECOND_MS)
        life.after(late_ms, life.remove_seat, seat)


def _plan_batch(life: MemberLife, hour: int) -> None:
    """Schedule a group that runs once per night: all members join, work and leave."""
    draws = life.draws
    begin_ms = life.now_ms + hour * HOUR_MS + draws.between(0, 20 * MINUTE_MS)
    end_ms = begin_ms + int(draws.scattered(20.0 * MINUTE_MS, 4.0 * HOUR_MS))
    for _ in range(life.group.size):
        seat = life.add_seat()
        life.at(begin_ms + draws.between(0, 30 * SECOND_MS), life.start, seat)
        life.at(end_ms + draws.between(0, 5 * MINUTE_MS), life.remove_seat, seat)
