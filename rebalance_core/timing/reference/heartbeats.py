"""Heartbeats: every 30 s, and after a pass that changed something (rocketmq.md §4.4, §6.1, §6.2).

Upstream: ``MQClientInstance.sendHeartbeatToAllBroker``.
"""

from functools import partial

from rebalance_core.timing.broker_requests import CONCURRENT_HEARTBEAT
from rebalance_core.timing.operations import Operation
from rebalance_core.timing.options import SECOND_US
from rebalance_core.timing.reference.event_queue import Kind
from rebalance_core.timing.reference.known_routes import known_brokers
from rebalance_core.timing.reference.membership import register, subscribe
from rebalance_core.timing.reference.world import Client, ReferenceBroker, World

REQUEST_TIMEOUT_US = 3 * SECOND_US
"""ClientConfig.mqClientApiTimeout, after which a request to a lost host fails."""


def heartbeat(world: World, client: Client, operation: Operation, number: int) -> None:
    """Send a heartbeat to each broker in the routes that the client knows."""
    for broker in reached_brokers(world, client):
        if broker.lists(client.index):
            subscribe(world, client, broker, operation, number)
        else:
            register(world, client, broker)


def reached_brokers(world: World, client: Client) -> list[ReferenceBroker]:
    """Return the brokers that a heartbeat of the client reaches, including those with which it is
    about to register.
    """
    reached = (world.brokers[number] for number in known_brokers(world, client))
    return [broker for broker in reached if is_reached(broker, client)]


def blocked_us(world: World, client: Client) -> int:
    """Return how long a heartbeat waits for lost hosts, which it contacts in turn.

    With ``enableConcurrentHeartbeat`` (5.5) it contacts all brokers at once.
    """
    silent = sum(world.brokers[number].silent for number in known_brokers(world, client))
    if world.future.options.concurrent_heartbeat and client.version >= CONCURRENT_HEARTBEAT:
        silent = min(silent, 1)
    return silent * REQUEST_TIMEOUT_US


def is_reached(broker: ReferenceBroker, client: Client) -> bool:
    """Return whether the client can reach the broker."""
    number = broker.number
    return broker.up and number in client.reachable and number not in client.joining


def schedule_heartbeat(world: World, client: Client, from_us: int) -> None:
    """Schedule the client's first heartbeat tick at or after a time."""
    _schedule(world, client, world.future.heartbeats_before(client.index, from_us))


def _schedule(world: World, client: Client, number: int) -> None:
    at_us = world.future.heartbeat_us(client.index, number)
    tick = partial(_tick, world, client, number, world.stretch)
    world.agenda.put(at_us, Kind.HEARTBEAT, tick, process=client.index)


def _tick(world: World, client: Client, number: int, stretch: int) -> None:
    """Send the timer's heartbeat; lost hosts delay all other work of the scheduler thread."""
    if not world.ticks(client, stretch):
        return
    if client.scheduler_free_us > world.now_us:
        again = partial(_tick, world, client, number, stretch)
        world.agenda.put(client.scheduler_free_us, Kind.HEARTBEAT, again, process=client.index)
        return
    client.scheduler_free_us = world.now_us + blocked_us(world, client)
    if not client.leaving:
        heartbeat(world, client, Operation.TICKS, number)
    _schedule(world, client, number + 1)


def register_silently(world: World, client: Client) -> None:
    """Apply the heartbeats of an idle period, after which every broker lists the client."""
    for broker in reached_brokers(world, client):
        if not broker.lists(client.index):
            broker.entries[client.index] = client.index
