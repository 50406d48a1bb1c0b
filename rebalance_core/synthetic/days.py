"""One group as it lives: who is there, what happens on each of its days, and the rows of it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from heapq import heappop, heappush
from typing import Any

from rebalance_core.model import events
from rebalance_core.model.group_settings import BROADCASTING
from rebalance_core.model.times import (
    CHANNEL_EXPIRY_MS,
    CHANNEL_SCAN_MS,
    DAY_MS,
    HEARTBEAT_MS,
    HOUR_MS,
    MINUTE_MS,
    SECOND_MS,
)
from rebalance_core.synthetic import groups
from rebalance_core.synthetic.draws import FIRST_GROUP, Draws, EventRows, Mix, Row
from rebalance_core.synthetic.fleet import FleetPlan
from rebalance_core.synthetic.groups import FleetGroup, FleetProcess, Seat, Seats
from rebalance_core.synthetic.topics import topic_of

# One group as it lives: who is there, what is going to happen, and the rows that come of it.

Action = Callable[..., None]


@dataclass(slots=True)
class Release:
    """The settings of the deployed program; None: those of the group's row."""

    version: str | None = None
    strategy: str | None = None
    subscriptions: tuple[str, ...] | None = None


class MemberLife:
    """The state of one group and its agenda, which `run` plays."""

    def __init__(self, plan: FleetPlan, group: FleetGroup, draws: Draws) -> None:
        self.plan = plan
        self.group = group
        self.draws = draws
        self.now_ms = plan.start_ms
        self.seats: list[Seat] = []
        self.release = Release()
        self.deploying_until_ms = 0
        self.rows = EventRows(group.cluster.name, FIRST_GROUP + group.number)
        self._maker = Seats(group, plan.start_ms, draws)
        self._live: set[FleetProcess] = set()
        self._agenda: list[tuple[int, int, Action, tuple[Any, ...]]] = []
        self._planned = 0

    def at(self, at_ms: int, action: Action, *arguments: Any) -> None:
        """Put an action on the agenda; at equal times the one planned first goes first."""
        self._planned += 1
        heappush(self._agenda, (max(at_ms, self.now_ms), self._planned, action, arguments))

    def after(self, delay_ms: int, action: Action, *arguments: Any) -> None:
        """Put an action on the agenda, ``delay_ms`` from now."""
        self.at(self.now_ms + delay_ms, action, *arguments)

    def run(self, until_ms: int) -> None:
        """Play what is on the agenda before that instant."""
        while self._agenda and self._agenda[0][0] < until_ms:
            self.now_ms, _, action, arguments = heappop(self._agenda)
            action(*arguments)

    def running(self) -> list[Seat]:
        """Seats with a live process, in the order they were made."""
        return [seat for seat in self.seats if seat.process is not None]

    def add_seat(self) -> Seat:
        """One more seat, still empty."""
        seat = self._maker.new_seat(self.now_ms)
        self.seats.append(seat)
        return seat

    def remove_seat(self, seat: Seat) -> None:
        """The seat is given up; its process leaves first."""
        self.stop(seat)
        if not seat.removed:
            seat.removed = True
            self.seats.remove(seat)
            self._maker.addresses.discard(seat.address)

    def start(self, seat: Seat, detail: str | None = None) -> None:
        """A process starts in the seat, unless it is given up or taken."""
        if seat.process is None and not seat.removed:
            seat.process = self._maker.new_process(seat, self.now_ms)
            self.join(seat, seat.process, detail)

    def reconnect(self, seat: Seat, client_id: str) -> FleetProcess | None:
        """A client joins on a new channel of the seat; None if that port is taken."""
        process = FleetProcess(client_id, self._maker.new_channel(seat))
        if process in self._live or seat.removed:
            return None
        self.join(seat, process)
        return process

    def stop(self, seat: Seat, event_type: str = events.CONSUMER_LEAVE, **values: Any) -> None:
        """The process in the seat leaves or is lost; nothing happens if there is none."""
        process, seat.process = seat.process, None
        if process is not None:
            self.tell(process, event_type, **values)

    def join(self, seat: Seat, process: FleetProcess, detail: str | None = None) -> None:
        """The join of a process with what its program and its seat set."""
        if process in self._live:  # the port by chance again: the old entry goes first
            self.tell(process, events.CONSUMER_LOST, detail="CLOSED")
        self._live.add(process)
        self._row(events.CONSUMER_JOIN, process, detail=detail, **self._own_settings(seat))

    def tell(self, process: FleetProcess, event_type: str, **values: Any) -> None:
        """An event about a process; nothing happens if it is no member."""
        if process in self._live:
            if event_type in (events.CONSUMER_LEAVE, events.CONSUMER_LOST):
                self._live.remove(process)
            self._row(event_type, process, **values)

    def set_mode(self, mode: str) -> None:
        """The request mode of all topics of the group is set."""
        for topic in self.group.settings.subscriptions or ():
            self.rows.add(
                self.now_ms, events.REQUEST_MODE, consumer_group=self.group.name, topic=topic,
                detail=mode,
            )  # fmt: skip

    def _row(self, event_type: str, process: FleetProcess, **values: Any) -> None:
        self.rows.add(
            self.now_ms,
            event_type,
            consumer_group=self.group.name,
            client_id=process.client_id,
            channel_id=process.channel_id,
            **values,
        )

    def _own_settings(self, seat: Seat) -> dict[str, Any]:
        """Columns of a join that differ from the group's row."""
        group, release = self.group, self.release
        columns: dict[str, Any] = {"version": release.version, "strategy": release.strategy}
        columns["subscriptions"] = release.subscriptions
        if group.settings.strategy == "CONFIG" and columns["strategy"] is None:
            topics = [topic_of(self.plan, group.cluster.number, topic) for topic in group.topics]
            start_ms = self.plan.start_ms
            columns["strategy"] = groups.config_text(
                group.cluster, topics, start_ms, seat.number, group.size
            )
        if not group.has_row and columns["subscriptions"] is None:
            columns["subscriptions"] = group.settings.subscriptions
        if seat.number % 2 and group.difference is not None:
            columns |= self._difference(group.difference)
        return columns

    def _difference(self, kind: str) -> dict[str, Any]:
        settings = self.group.settings
        topics = settings.subscriptions or ()
        if kind == "STRATEGY":
            return {"strategy": "AVG" if settings.strategy != "AVG" else "AVG_BY_CIRCLE"}
        if kind == "MESSAGE_MODEL":
            return {"message_model": BROADCASTING}
        if kind == "CONSUME_FROM_WHERE":
            return {"consume_from_where": "CONSUME_FROM_FIRST_OFFSET"}
        if len(topics) > 1:
            return {"subscriptions": topics[:-1]}
        more = 1 if self.group.topics == (0,) else 0
        other = topic_of(self.plan, self.group.cluster.number, more).name
        return {"subscriptions": tuple(sorted((*topics, other)))}


# The days of one group: what happens to it, when, and the rows of its whole life.

# What happens to a group: each function plays one incident, now and on the agenda.

DEPLOY_STEPS = 12  # a deploy restarts at most a twelfth of the members at a time, at least one
HALTED_CHANCE = 0.03
NEW_VERSION_CHANCE = 0.04
NEW_STRATEGY_CHANCE = 0.001
NEW_TOPIC_CHANCE = 0.01
NEW_STRATEGIES: Mix[str] = (
    ("AVG_BY_CIRCLE", 4), ("CONSISTENT_HASH(virtual_nodes=10)", 3), ("AVG", 3),
)  # fmt: skip

EXPIRED_SHARE = 0.3
NO_RETURN_CHANCE = 0.04


def deploy(life: MemberLife) -> None:
    """A rolling restart: one after another with a pause, new ids as the client makes them."""
    seats = life.draws.shuffled(life.seats)
    if not seats or life.now_ms < life.deploying_until_ms:
        return
    _new_release(life)
    pause_ms = life.draws.between(8 * SECOND_MS, 40 * SECOND_MS)
    at_once = -(-len(seats) // DEPLOY_STEPS)
    if life.draws.chance(HALTED_CHANCE):
        seats = seats[: len(seats) // 2]
    for i, seat in enumerate(seats):
        late_ms = life.draws.between(0, 3 * SECOND_MS)
        life.after(i // at_once * pause_ms + late_ms, restart, life, seat)
    life.deploying_until_ms = life.now_ms + (len(seats) // at_once + 1) * pause_ms + MINUTE_MS


def restart(life: MemberLife, seat: Seat) -> None:
    """One step of a deploy: a pod is replaced by a newer one, a host starts its process again."""
    if seat.process is None:
        life.start(seat)
    elif life.group.pods:
        life.start(life.add_seat())
        life.after(life.draws.between(2 * SECOND_MS, 15 * SECOND_MS), life.remove_seat, seat)
    else:
        life.stop(seat)
        life.after(life.draws.between(3 * SECOND_MS, 25 * SECOND_MS), life.start, seat)


def crash(life: MemberLife) -> None:
    """A process dies and comes back, mostly; sometimes no member is notified (EXPIRED)."""
    seats = life.running()
    if not seats:
        return
    seat = life.draws.pick(seats)
    process = seat.process
    if not life.draws.chance(EXPIRED_SHARE):
        life.stop(seat, events.CONSUMER_LOST, detail="CLOSED")
        if not life.draws.chance(NO_RETURN_CHANCE):
            life.after(life.draws.between(5 * SECOND_MS, 90 * SECOND_MS), life.start, seat)
        return
    life.stop(seat, events.CONSUMER_LOST, detail=events.EXPIRED)
    if process is not None and life.draws.chance(0.5):  # frozen, and thawed later
        life.after(int(life.draws.scattered(2e3, 6e5)), thaw, life, seat, process.client_id)
    else:  # the host is gone
        life.remove_seat(seat)
        life.after(int(life.draws.scattered(3e4, 1.2e6)), life.start, life.add_seat())


def thaw(life: MemberLife, seat: Seat, client_id: str) -> None:
    """The same process is back: the same client id on a new channel."""
    if seat.process is None:
        seat.process = life.reconnect(seat, client_id)


def flap(life: MemberLife, seat: Seat, times: int) -> None:
    """A crash loop: dies and is started again, and again."""
    life.stop(seat, events.CONSUMER_LOST, detail="CLOSED")
    life.after(life.draws.between(2 * SECOND_MS, 30 * SECOND_MS), life.start, seat)
    if times > 1:
        life.after(life.draws.between(MINUTE_MS, 6 * MINUTE_MS), flap, life, seat, times - 1)


def half_open(life: MemberLife) -> None:
    """A client connects anew while the brokers still keep its old channel: twice in the list."""
    seats = life.running()
    if not seats:
        return
    seat = life.draws.pick(seats)
    old = seat.process
    assert old is not None
    new = life.reconnect(seat, old.client_id)
    if new is not None:
        seat.process = new
        rest_ms = CHANNEL_EXPIRY_MS - life.draws.between(0, HEARTBEAT_MS)
        rest_ms += life.draws.between(0, CHANNEL_SCAN_MS)
        lost = partial(life.tell, old, events.CONSUMER_LOST, detail=events.EXPIRED)
        life.after(rest_ms, lost)


def second_copy(life: MemberLife) -> None:
    """The program is started twice under one client id, for minutes to hours."""
    seats = life.running()
    if seats:
        seat = life.draws.pick(seats)
        assert seat.process is not None
        duplicate = life.reconnect(seat, seat.process.client_id)
        if duplicate is not None:
            stay_ms = int(life.draws.scattered(5.0 * MINUTE_MS, 8.0 * HOUR_MS))
            life.after(stay_ms, life.tell, duplicate, events.CONSUMER_LEAVE)


def suspend(life: MemberLife) -> None:
    """A member is suspended and resumed later, if it is still the same process."""
    seats = life.running()
    if seats:
        process = life.draws.pick(seats).process
        assert process is not None
        life.tell(process, events.CONSUMER_SUSPEND)
        pause_ms = int(life.draws.scattered(2.0 * MINUTE_MS, 4.0 * HOUR_MS))
        life.after(pause_ms, life.tell, process, events.CONSUMER_RESUME)


def subscribe(life: MemberLife) -> None:
    """Members subscribe one more topic at run time and give it up later; some forget to."""
    topic = _other_topic(life)
    seats = life.running()
    if topic is None or not seats:
        return
    one_only = life.draws.chance(0.4)
    for seat in [life.draws.pick(seats)] if one_only else seats:
        process = seat.process
        assert process is not None
        delay_ms = life.draws.between(0, 20 * SECOND_MS)
        tell = partial(life.tell, process, topic=topic)
        life.after(delay_ms, tell, events.SUBSCRIBE)
        if life.draws.chance(0.9):
            back_ms = int(life.draws.scattered(20.0 * MINUTE_MS, 6.0 * HOUR_MS))
            life.after(delay_ms + back_ms, tell, events.UNSUBSCRIBE)


def _new_release(life: MemberLife) -> None:
    """Draw the settings that the new program changes; mostly none."""
    draws, release = life.draws, life.release
    if draws.chance(NEW_VERSION_CHANCE):
        release = replace(release, version=draws.mixed(groups.CLIENT_VERSIONS))
    if draws.chance(NEW_STRATEGY_CHANCE) and "ROOM" not in life.group.settings.strategy:
        release = replace(release, strategy=draws.mixed(NEW_STRATEGIES))
    if draws.chance(NEW_TOPIC_CHANCE):
        topic = _other_topic(life)
        now = release.subscriptions or life.group.settings.subscriptions or ()
        if topic is not None and topic not in now:
            release = replace(release, subscriptions=tuple(sorted({*now, topic})))
    life.release = release


def _other_topic(life: MemberLife) -> str | None:
    """A topic of the cluster that the group has not; None: it has all, or no luck."""
    cluster = life.group.cluster.number
    number = life.draws.between(0, life.plan.topics_in(cluster) - 1)
    if number in life.group.topics:
        return None
    return topic_of(life.plan, cluster, number).name


# The days of one group: when which incident happens, and the rows of its whole life.

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
"""Of a group's swing: how many members more by local hour."""


def group_events(plan: FleetPlan, number: int) -> Iterator[list[Row]]:
    """The rows of cluster_events about the members of one group, day by day.

    Cost: about 10 microseconds an event.
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
    """Put one day's incidents on the agenda; drawn at midnight, so later days change nothing."""
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
    """0 for Monday; 1970-01-01 was a Thursday."""
    return (plan.start_ms // DAY_MS + day + 3) % 7


def _working_hour_ms(group: FleetGroup, draws: Draws) -> int:
    """A time of day at which people work where the cluster is, from midnight UTC."""
    local = draws.mixed(WORKING_HOURS) * HOUR_MS + draws.between(0, HOUR_MS - 1)
    return (local - group.cluster.utc_offset_hours * HOUR_MS) % DAY_MS


def _begin_flapping(life: MemberLife) -> None:
    seats = life.running()
    if seats:
        times = int(life.draws.scattered(8, MOST_FLAPS))
        flap(life, life.draws.pick(seats), times)


def _scale(life: MemberLife, hour: int) -> None:
    """Autoscaling: newer seats go first, one every few seconds."""
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
    """A group that runs once a night: all join, work, and leave."""
    draws = life.draws
    begin_ms = life.now_ms + hour * HOUR_MS + draws.between(0, 20 * MINUTE_MS)
    end_ms = begin_ms + int(draws.scattered(20.0 * MINUTE_MS, 4.0 * HOUR_MS))
    for _ in range(life.group.size):
        seat = life.add_seat()
        life.at(begin_ms + draws.between(0, 30 * SECOND_MS), life.start, seat)
        life.at(end_ms + draws.between(0, 5 * MINUTE_MS), life.remove_seat, seat)
