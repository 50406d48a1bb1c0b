"""Let processes join, change and leave as the timeline states."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from rebalance_core.client.process import ProcessQueue, start_process
from rebalance_core.model.client_profile import BYTES, DROP
from rebalance_core.model.group_settings import PUSH, GroupSettings
from rebalance_core.replay.member import Member
from rebalance_core.strategies import parse_strategy
from rebalance_core.timing.draws import Timer, below
from rebalance_core.timing.group_timeline import ProcessLifetime, Sighting
from rebalance_core.timing.operations import Operation
from rebalance_core.timing.ownership_log import GIVEN_UP
from rebalance_core.timing.reference import heartbeats, known_routes, membership
from rebalance_core.timing.reference.agenda import (
    passes_while_suspended,
    schedule_pass,
    wake_instance,
)
from rebalance_core.timing.reference.event_queue import Kind
from rebalance_core.timing.reference.order_locks import schedule_renewal, unlock_all
from rebalance_core.timing.reference.pass_clock import PassClock
from rebalance_core.timing.reference.world import RESUMED, Client, World
from rebalance_core.timing.shared_instances import SharedInstanceWakes
from rebalance_core.timing.timer_periods import NEVER

DEFAULT = GroupSettings()


def schedule_lifetime(world: World, lifetime: ProcessLifetime) -> None:
    """Schedule a process's events; observed processes appear with the first change.

    A stale entry is only an entry in a member list.
    """
    agenda, future, index = world.agenda, world.future, lifetime.index
    registered = [
        (at_us, broker)
        for broker, at_us in enumerate(future.registered[index])
        if at_us < NEVER and not lifetime.observed
    ]
    if not lifetime.stale_entry:
        comes_us = min([future.created[index], *(at_us for at_us, _ in registered)])
        if not lifetime.observed:
            agenda.put(comes_us, Kind.TIMELINE, partial(come, world, lifetime), process=index)
            started = partial(_started, world, index)
            agenda.put(future.joined[index], Kind.NOTICE, started, process=index)
        for number, at_us in list(enumerate(future.states_us(lifetime)))[1:]:
            change = partial(_change, world, lifetime, number)
            agenda.put(at_us, Kind.TIMELINE, change, process=index)
        if lifetime.ending is not None:
            agenda.put(
                future.ended[index], Kind.TIMELINE, partial(_go, world, lifetime), process=index
            )
    for at_us, broker in registered:
        agenda.put(
            at_us,
            Kind.MEMBERSHIP,
            partial(membership.join, world, lifetime, broker),
            process=index,
            broker=broker,
        )
    _schedule_lists(world, lifetime)


def _schedule_lists(world: World, lifetime: ProcessLifetime) -> None:
    """Schedule the later changes of brokers' lists: at a single broker, or at all when the process
    ends.
    """
    index = lifetime.index
    seen_us = world.future.sightings_us(lifetime)
    for sighting, at_us in zip(lifetime.sightings, seen_us, strict=True):
        see = partial(_see, world, lifetime, sighting)
        world.agenda.put(at_us, Kind.MEMBERSHIP, see, process=index, broker=sighting.broker)
    for broker, at_us in enumerate(world.future.unregistered[index]):
        if lifetime.ending is not None and at_us < NEVER:
            end = partial(
                membership.unregister,
                world,
                lifetime,
                world.brokers[broker],
                notify=lifetime.ending.notified,
            )
            world.agenda.put(at_us, Kind.MEMBERSHIP, end, process=index, broker=broker)


def join_instances(worlds: Sequence[World]) -> None:
    """Connect worlds of the same agenda: groups that share client instances."""
    by_group = {world.timeline.consumer_group: world for world in worlds}
    for world in worlds:
        wakes = SharedInstanceWakes(world.future.ticks)
        for timeline in world.timeline.together[1:]:
            if sharing_group := by_group.get(timeline.consumer_group):
                for lifetime, group_life, comes_to in wakes.links(timeline):
                    sharing_group.together.setdefault(lifetime, []).append(
                        (world, group_life, comes_to)
                    )


def come(world: World, lifetime: ProcessLifetime) -> Client:
    """Create a process with running timers that knows the routes of its topics but holds
    nothing.
    """
    member, index = lifetime.states[0][1], lifetime.index
    process = start_process(
        lifetime.client_id,
        replace(
            world.timeline.settings,
            client_version=member.rules_version,
            message_model=member.message_model,
            # The simulation ignores start offsets.
            consume_from_where=DEFAULT.consume_from_where,
        ),
        parse_strategy(member.strategy, version=member.rules_version),
    )
    profile = member.profile
    process.lets_go, process.by_bytes = profile.no_queue == DROP, profile.order == BYTES
    process.ends_pass = profile.ends_pass
    client = Client(
        lifetime,
        member,
        process,
        PassClock(
            world.future.first_pass_end[index],
            world.future.min_interval[index],
            world.future.pass_length[index],
            world.future.wait[index],
        ),
    )
    only = lifetime.only_broker
    client.reachable = {b.number for b in world.brokers if only in (None, b.number)}
    if not lifetime.observed:
        client.joining = {
            b
            for b, registered_us in enumerate(world.future.registered[index])
            if registered_us < NEVER
        }
    world.clients[index] = client
    known_routes.first_routes(world, client)
    _keep_pace(world, index)
    if not world.idle:
        schedule_timers(world, client)
    return client


def schedule_timers(world: World, client: Client) -> None:
    """Schedule the next tick of each of a client's timers."""
    known_routes.schedule_poll(world, client)
    heartbeats.schedule_heartbeat(world, client, world.now_us)
    schedule_renewal(world, client, world.now_us)
    schedule_pass(world, client)


def place_observed(world: World) -> None:
    """Create the processes from before the log, which all brokers list, with the first epoch's
    queues.
    """
    observed = [lifetime for lifetime in world.timeline.lifetimes if lifetime.observed]
    for lifetime in observed:
        if not lifetime.stale_entry and world.future.ended[lifetime.index] > world.now_us:
            client = come(world, lifetime)
            heartbeats.register_silently(world, client)
            client.held = set(world.timeline.initial[lifetime.index])
            held = (world.timeline.queues[queue] for queue in client.held)
            client.process.table = {queue: ProcessQueue(0) for queue in held}
    for lifetime in observed:
        if lifetime.stale_entry and lifetime.only_broker is not None:
            world.brokers[lifetime.only_broker].entries[lifetime.index] = None


def _started(world: World, index: int) -> None:
    """Wake a started push consumer, whose ``start()`` ends with a wake-up."""
    if world.timeline.settings.consumer_type == PUSH:
        wake_instance(world, index)


def _change(world: World, lifetime: ProcessLifetime, number: int) -> None:
    """Change topics, suspend or resume; brokers notify at once only of new topics
    (rocketmq.md §6.2).
    """
    client = world.clients.get(lifetime.index)
    if client is None:
        return
    before, client.member = client.member, lifetime.states[number][1]
    _take_settings(client, client.member)
    _keep_pace(world, lifetime.index)
    if client.member.subscriptions - before.subscriptions:
        heartbeats.heartbeat(world, client, Operation.SUBSCRIBES, number)
    if before.suspended and not client.member.suspended:
        _resume(world, client, number)


def _keep_pace(world: World, index: int) -> None:
    """Let a suspended group's instance run an unbalanced pass every second, as it does since
    5.2.
    """
    itself = (world, index)
    everybody = [
        itself,
        *((other, lifetime) for other, lifetime, _ in world.together.get(index, ())),
    ]
    for each, lifetime in everybody if len(everybody) > 1 else ():
        client = each.clients.get(lifetime)
        if client is None:
            continue
        around = (other.clients.get(place) for other, place, _ in each.together.get(lifetime, ()))
        spins = any(c is not None and _spins(c) for c in around)
        clock = client.clock
        clock.own_wait_us = clock.min_interval_us if spins else each.future.wait[lifetime]
        if spins and clock.wait_us > clock.own_wait_us:
            clock.wait_us = clock.own_wait_us
            schedule_pass(each, client)


def _spins(client: Client) -> bool:
    return client.member.suspended and not passes_while_suspended(client)


def _resume(world: World, client: Client, number: int) -> None:
    """Run ``resume()``'s pass at once; the pass clock has kept running meanwhile."""
    if not passes_while_suspended(client):
        draw = world.draw(client.lifetime.entity, Timer.PASS_PHASE, number)
        since = below(draw, client.clock.min_interval_us)
        client.clock.spin(world.now_us - since)
    if client.in_pass or world.idle:
        schedule_pass(world, client)
    else:
        world.begin_pass(world, client, RESUMED)


def _take_settings(client: Client, member: Member) -> None:
    if str(client.process.strategy) != member.strategy:
        client.process.strategy = parse_strategy(member.strategy, version=member.rules_version)


def _see(world: World, lifetime: ProcessLifetime, sighting: Sighting) -> None:
    """Apply a sighting, in which one broker loses a process (or a stale entry for it) or sees it
    return.
    """
    client, broker = world.clients.get(lifetime.index), world.brokers[sighting.broker]
    if not sighting.listed:
        if client is not None:
            client.reachable.discard(broker.number)
        membership.unregister(world, lifetime, broker, notify=sighting.notified)
    elif client is not None:
        client.reachable.add(broker.number)
        if heartbeats.is_reached(broker, client) and not broker.lists(client.index):
            membership.register(world, client, broker)


def _go(world: World, lifetime: ProcessLifetime) -> None:
    """End a process, which stops reading although its connections may persist for a while.

    A process that takes order locks and leaves gracefully releases its locks; its passes continue.
    """
    client = world.clients.get(lifetime.index)
    if client is None:
        return
    for queue in sorted(client.held):
        world.rows.append((lifetime.index, queue, world.now_us, GIVEN_UP))
    if (
        lifetime.ending is None
        or not lifetime.ending.graceful
        or not client.process.locks_on_addition
    ):
        _gone(world, lifetime)
        return
    client.leaving = True
    unlock = partial(unlock_all, world, client)
    world.agenda.put(
        world.future.unlocked[lifetime.index], Kind.TIMELINE, unlock, process=lifetime.index
    )
    gone = partial(_gone, world, lifetime)
    world.agenda.put(
        world.future.stopped[lifetime.index], Kind.TIMELINE, gone, process=lifetime.index
    )


def _gone(world: World, lifetime: ProcessLifetime) -> None:
    del world.clients[lifetime.index]
    _keep_pace(world, lifetime.index)
