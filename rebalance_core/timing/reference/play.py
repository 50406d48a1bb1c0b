"""Play one future of a timeline, or several in turn."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from rebalance_core.timing.draws import DRAW_BITS, Timer, below
from rebalance_core.timing.group_timeline import GroupTimeline
from rebalance_core.timing.options import ClockOptions
from rebalance_core.timing.ownership_log import OwnershipLog, ownership_log
from rebalance_core.timing.reference import broker_lifetimes, processes
from rebalance_core.timing.reference.agenda import schedule_pass
from rebalance_core.timing.reference.event_queue import EventQueue, Kind
from rebalance_core.timing.reference.future import Future
from rebalance_core.timing.reference.heartbeats import register_silently
from rebalance_core.timing.reference.known_routes import catch_up
from rebalance_core.timing.reference.order_locks import remember_renewals
from rebalance_core.timing.reference.pass_clock import WAIT_US
from rebalance_core.timing.reference.rebalancing import begin_pass
from rebalance_core.timing.reference.world import Client, PassBegun, World
from rebalance_core.timing.stretches import stretches_of
from rebalance_core.timing.timer_periods import BEFORE_ALL, NEVER


@dataclass(frozen=True)
class Played:
    """A played future.

    Attributes:
        log: the takes and releases of all queues.
        passes: every simulated pass, in order of its start; idle passes between distant changes are
            only counted.
    """

    log: OwnershipLog
    passes: tuple[PassBegun, ...]


def play(timeline: GroupTimeline, seed: int, options: ClockOptions) -> OwnershipLog:
    """Play a future.

    Cost: one heap operation per event and one allocation per pass and topic.

    Args:
        timeline: what happens to the group.
        seed: the seed of the future.
        options: the simulation's options.
    """
    return play_with_passes(timeline, seed, options).log


def play_seeds_one_by_one(
    timeline: GroupTimeline, seeds: Sequence[int], options: ClockOptions
) -> OwnershipLog:
    """Return the log of all seeds, played in turn; its column ``seed`` is an index into
    ``seeds``.
    """
    rows = [
        (place, *row)
        for place, seed in enumerate(seeds)
        for row in _played(timeline, seed, options).rows
    ]
    return ownership_log(rows)


def play_with_passes(timeline: GroupTimeline, seed: int, options: ClockOptions) -> Played:
    """Return the log of `play` and the passes behind it."""
    world = _played(timeline, seed, options)
    return Played(ownership_log([(0, *row) for row in world.rows]), tuple(world.passes))


def _played(timeline: GroupTimeline, seed: int, options: ClockOptions) -> World:
    """Play a group, together with those that share its client instances."""
    agenda = EventQueue()
    timelines = timeline.together if timeline.changes else (timeline,)
    worlds = [_world(each, seed, options, agenda) for each in timelines]
    processes.join_instances(worlds)
    if timeline.changes:
        agenda.run_until(NEVER)
    return worlds[0]


def _world(timeline: GroupTimeline, seed: int, options: ClockOptions, agenda: EventQueue) -> World:
    """Return a group's world with all events of its timeline scheduled."""
    future = Future(timeline, seed, options)
    world = World(timeline, future, agenda, broker_lifetimes.brokers_at_first(timeline), begin_pass)
    broker_lifetimes.schedule_brokers(world)
    for lifetime in timeline.lifetimes:
        processes.schedule_lifetime(world, lifetime)
    ended_us = BEFORE_ALL
    for stretch in stretches_of(timeline):
        _put(world, stretch.begin_us, partial(_begin_stretch, world, ended_us))
        at_us = stretch.begin_us
        for number in stretch.changes:
            if number > 0 and rested(timeline, number):
                at_us = max(at_us, timeline.changes[number].begin_us)
                _put(world, at_us, partial(_put_out_of_step, world, number))
        ended_us = stretch.end_us
        _put(world, max(at_us, ended_us), partial(_end_stretch, world))
    return world


def _put(world: World, at_us: int, action: Callable[[], None]) -> None:
    world.agenda.put(at_us, Kind.STRETCH, action)


def _begin_stretch(world: World, ended_us: int) -> None:
    if ended_us == BEFORE_ALL:
        processes.place_observed(world)
    _take_up(world, ended_us)


def _end_stretch(world: World) -> None:
    world.idle = True


def _take_up(world: World, since_us: int) -> None:
    """Begin a stretch after applying what happened by itself since the last one."""
    clients = [world.clients[index] for index in sorted(world.clients)]
    for client in clients:
        if not client.in_pass:
            client.clock.skip_idle(world.now_us)
        _beat(world, client, since_us)
        catch_up(world, client, world.now_us)
    remember_renewals(world, clients, since_us)
    world.idle, world.stretch = False, world.stretch + 1
    for client in clients:
        processes.schedule_timers(world, client)


def rested(timeline: GroupTimeline, number: int) -> bool:
    """Return whether the previous change was long enough ago that all passes it caused are over."""
    changes = timeline.changes
    return changes[number].begin_us - changes[number - 1].begin_us >= WAIT_US


def _put_out_of_step(world: World, number: int) -> None:
    """Put some pass clocks out of step, as a suspended process or a long garbage collection
    would.
    """
    share = round(world.timeline.out_of_step * (1 << DRAW_BITS))
    for client in world.clients.values():
        clock, entity = client.clock, client.lifetime.entity
        at_rest = clock.woken_us is None and not client.in_pass and not client.member.suspended
        if client.leaving or not at_rest or clock.last_end_us > world.now_us:
            continue
        if world.draw(entity, Timer.OUT_OF_STEP, number) < share:
            since = below(world.draw(entity, Timer.PASS_PHASE, number + 2), clock.wait_us)
            clock.last_end_us = world.now_us - since
            schedule_pass(world, client)


def _beat(world: World, client: Client, since_us: int) -> None:
    """Apply the heartbeats since a time, the last of which reached the brokers known then."""
    number = world.future.heartbeats_before(client.index, world.now_us + 1) - 1
    at_us = world.future.heartbeat_us(client.index, number)
    if number >= 0 and at_us > since_us > BEFORE_ALL:
        catch_up(world, client, at_us)
        register_silently(world, client)
