"""Member lists, and whom a broker tells that its list changed (rocketmq.md §6.2).

Upstream: ``ConsumerManager``, ``ConsumerGroupInfo``, ``DefaultConsumerIdsChangeListener``.
"""

from __future__ import annotations

from functools import partial

from rebalance_core.clockwork.delays import NOTICE
from rebalance_core.clockwork.draws import DRAW_BITS, Timer
from rebalance_core.clockwork.loop.agenda import Kind
from rebalance_core.clockwork.loop.waking import wake
from rebalance_core.clockwork.loop.world import Broker, Client, World
from rebalance_core.clockwork.operations import Operation, operation_id
from rebalance_core.clockwork.script import Life
from rebalance_core.model.group_settings import BROADCASTING
from rebalance_core.replay.shared_topics import Member

BROADCASTING_IS_SILENT = (5, 3, 1)
"""From then on a broker tells a BROADCASTING group nothing."""
NEWEST_NOTICE_WINS = (5, 3, 3)
"""From then on a newer notification stops the loop of an older one."""


def member_list(world: World, broker: Broker) -> tuple[str, ...] | None:
    """GET_CONSUMER_LIST_BY_GROUP: one id an entry; None from a broker that is down or knows nobody.

    ``ConsumerManageProcessor``: an empty list is an error, which the client takes for no answer.
    """
    if not broker.up or not broker.entries:
        return None
    return tuple(world.script.lives[life].client_id for life in broker.entries)


def join(world: World, life: Life, number: int) -> None:
    """A broker sees a process, or a ghost of one, for the first time."""
    broker, client = world.brokers[number], world.clients.get(life.index)
    if client is not None:
        client.joining.discard(number)
    if not broker.up or (client is None and not life.ghost):
        return
    broker.entries[life.index] = _unlisted(world, life, broker) if life.ghost else life.index
    member = life.states[0][1] if client is None else client.member
    broker.topics = member.subscriptions
    _tell(world, broker, life, member, Operation.JOINS)


def _unlisted(world: World, ghost: Life, broker: Broker) -> int | None:
    """The process that a ghost is the new connection of: one that the broker does not list."""
    for client in world.clients.values():
        if client.life.client_id == ghost.client_id and not broker.lists(client.index):
            return client.index
    return None


def register(world: World, client: Client, broker: Broker) -> None:
    """A broker that is new, or came back, hears of a client for the first time in its life."""
    broker.entries[client.index] = client.index
    broker.topics = client.member.subscriptions
    _tell(world, broker, client.life, client.member, Operation.AGAIN)


def subscribe(
    world: World, client: Client, broker: Broker, operation: Operation, number: int
) -> None:
    """A heartbeat of a member that is listed: the topics it names become the group's.

    ``ConsumerGroupInfo.updateSubscription``: a topic that is new, or missing, is told to everybody.
    """
    topics, broker.topics = broker.topics, client.member.subscriptions
    if topics is not None and topics != broker.topics:
        _tell(world, broker, client.life, client.member, operation, number)


def unregister(world: World, life: Life, broker: Broker, *, told: bool) -> None:
    """A broker's list loses a process and its connections; scans tell nobody."""
    listed = [entry for entry, client in broker.entries.items() if life.index in (entry, client)]
    if not listed:
        return
    for entry in listed:
        del broker.entries[entry]
    if told:
        _tell(world, broker, life, life.states[-1][1], Operation.GOES)


def _tell(
    world: World,
    broker: Broker,
    life: Life,
    member: Member,
    operation: Operation,
    number: int = 0,
) -> None:
    """NOTIFY_CONSUMER_IDS_CHANGED to everybody in the list, the newcomer included."""
    version = world.broker_version
    if member.message_model == BROADCASTING and version >= BROADCASTING_IS_SILENT:
        return
    broker.told_us = world.now_us
    name = world.script.brokers[broker.number]
    tick = operation_id(life.entity, name, broker.life, operation, number)
    lost = round(world.future.options.lost_notices * (1 << DRAW_BITS))
    for target in sorted({client for client in broker.entries.values() if client is not None}):
        entity = world.script.lives[target].entity
        if lost and world.draw(entity, Timer.NOTICE_LOST, tick) < lost:
            continue
        world.agenda.put(
            world.now_us + NOTICE.of(world.draw(entity, Timer.NOTICE, tick)),
            Kind.NOTICE,
            partial(_deliver, world, broker, world.now_us, target),
            process=target,
            broker=broker.number,
        )


def _deliver(world: World, broker: Broker, sent_us: int, target: int) -> None:
    if world.broker_version >= NEWEST_NOTICE_WINS and broker.told_us > sent_us:
        return
    client = world.clients.get(target)
    if client is not None:
        wake(world, client)
