"""The incidents of a group; each function plays one, with later steps on the agenda."""

from dataclasses import replace
from functools import partial

from rebalance_core.model import events
from rebalance_core.model.times import (
    CHANNEL_EXPIRY_MS,
    CHANNEL_SCAN_MS,
    HEARTBEAT_MS,
    HOUR_MS,
    MINUTE_MS,
    SECOND_MS,
)
from rebalance_core.synthetic import groups
from rebalance_core.synthetic.draws import Mix
from rebalance_core.synthetic.member_life import MemberLife
from rebalance_core.synthetic.seats import Seat
from rebalance_core.synthetic.topics import topic_of

DEPLOY_STEPS = 12  # a deploy restarts at most a twelfth of the members at a time, at least one
HALTED_CHANCE = 0.03
NEW_VERSION_CHANCE = 0.04
NEW_STRATEGY_CHANCE = 0.001
NEW_TOPIC_CHANCE = 0.01
NEW_STRATEGIES: Mix[str] = (
    ("AVG_BY_CIRCLE", 4),
    ("CONSISTENT_HASH(virtual_nodes=10)", 3),
    ("AVG", 3),
)

EXPIRED_SHARE = 0.3
NO_RETURN_CHANCE = 0.04


def deploy(life: MemberLife) -> None:
    """Restart all members in turn with a pause, with new ids as the client makes them."""
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
    """Restart a member in a deploy: a new pod replaces a pod, and a host restarts its process."""
    if seat.process is None:
        life.start(seat)
    elif life.group.pods:
        life.start(life.add_seat())
        life.after(life.draws.between(2 * SECOND_MS, 15 * SECOND_MS), life.remove_seat, seat)
    else:
        life.stop(seat)
        life.after(life.draws.between(3 * SECOND_MS, 25 * SECOND_MS), life.start, seat)


def crash(life: MemberLife) -> None:
    """Crash a process, which usually returns; sometimes no member is notified (EXPIRED)."""
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
    if process is not None and life.draws.chance(0.5):  # frozen, and later thawed
        life.after(int(life.draws.scattered(2e3, 6e5)), thaw, life, seat, process.client_id)
    else:  # the host is gone
        life.remove_seat(seat)
        life.after(int(life.draws.scattered(3e4, 1.2e6)), life.start, life.add_seat())


def thaw(life: MemberLife, seat: Seat, client_id: str) -> None:
    """Return the same process: the same client id on a new channel."""
    if seat.process is None:
        seat.process = life.reconnect(seat, client_id)


def flap(life: MemberLife, seat: Seat, times: int) -> None:
    """Play a crash loop: a process dies and restarts repeatedly."""
    life.stop(seat, events.CONSUMER_LOST, detail="CLOSED")
    life.after(life.draws.between(2 * SECOND_MS, 30 * SECOND_MS), life.start, seat)
    if times > 1:
        life.after(life.draws.between(MINUTE_MS, 6 * MINUTE_MS), flap, life, seat, times - 1)


def half_open(life: MemberLife) -> None:
    """Reconnect a client while the brokers still have its old channel, so that it is listed
    twice.
    """
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
    """Run the program twice under the same client id, for minutes to hours."""
    seats = life.running()
    if seats:
        seat = life.draws.pick(seats)
        assert seat.process is not None
        duplicate = life.reconnect(seat, seat.process.client_id)
        if duplicate is not None:
            stay_ms = int(life.draws.scattered(5.0 * MINUTE_MS, 8.0 * HOUR_MS))
            life.after(stay_ms, life.tell, duplicate, events.CONSUMER_LEAVE)


def suspend(life: MemberLife) -> None:
    """Suspend a member and resume it later, if it is still the same process."""
    seats = life.running()
    if seats:
        process = life.draws.pick(seats).process
        assert process is not None
        life.tell(process, events.CONSUMER_SUSPEND)
        pause_ms = int(life.draws.scattered(2.0 * MINUTE_MS, 4.0 * HOUR_MS))
        life.after(pause_ms, life.tell, process, events.CONSUMER_RESUME)


def subscribe(life: MemberLife) -> None:
    """Subscribe to another topic at run time and unsubscribe later; some members never do."""
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
    """Draw the settings that the new program changes; usually none."""
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
    """Return a topic of the cluster that the group lacks, or None if it has all or the draw
    failed.
    """
    cluster = life.group.cluster.number
    number = life.draws.between(0, life.plan.topics_in(cluster) - 1)
    if number in life.group.topics:
        return None
    return topic_of(life.plan, cluster, number).name
