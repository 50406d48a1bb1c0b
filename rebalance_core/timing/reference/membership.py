"""Member lists, and which members a broker notifies of changes (rocketmq.md §6.2).

Upstream: ``ConsumerManager``, ``ConsumerGroupInfo``, ``DefaultConsumerIdsChangeListener``.
"""

from functools import partial

from rebalance_core.model.events import BATCHED, OFF
from rebalance_core.model.group_settings import BROADCASTING
from rebalance_core.replay.member import Member
from rebalance_core.timing.delays import NOTICE
from rebalance_core.timing.draws import DRAW_BITS, Timer
from rebalance_core.timing.group_timeline import ProcessLifetime
from rebalance_core.timing.operations import Operation, operation_id
from rebalance_core.timing.reference.agenda import wake_instance
from rebalance_core.timing.reference.event_queue import Kind
from rebalance_core.timing.reference.world import Client, ReferenceBroker, World

BROADCASTING_IS_SILENT = (5, 3, 1)
"""The first version whose brokers send no notices to a BROADCASTING group."""
NEWEST_NOTICE_WINS = (5, 3, 3)
"""The first version in which a newer notification stops the loop of an older one."""


def member_list(world: World, broker: ReferenceBroker) -> tuple[str, ...] | None:
    """Return the answer to GET_CONSUMER_LIST_BY_GROUP, one client id per entry, or None if the
    broker is down or lists no member.

    ``ConsumerManageProcessor``: an empty list is an error, which the client treats as no answer.
    """
    if not broker.up or not broker.entries:
        return None
    return tuple(world.timeline.lifetimes[lifetime].client_id for lifetime in broker.entries)


def join(world: World, lifetime: ProcessLifetime, number: int) -> None:
    """Let a broker see a process, or a stale entry for it, for the first time."""
    broker, client = world.brokers[number], world.clients.get(lifetime.index)
    if client is not None:
        client.joining.discard(number)
    if not broker.up or (client is None and not lifetime.stale_entry):
        return
    broker.entries[lifetime.index] = (
        _unlisted(world, lifetime, broker) if lifetime.stale_entry else lifetime.index
    )
    member = lifetime.states[0][1] if client is None else client.member
    broker.topics = member.subscriptions
    _tell(world, broker, lifetime, member, Operation.JOINS)


def _unlisted(world: World, stale_entry: ProcessLifetime, broker: ReferenceBroker) -> int | None:
    """Return the process that a stale entry reconnects and that the broker does not list, or
    None.
    """
    for client in world.clients.values():
        if client.lifetime.client_id == stale_entry.client_id and not broker.lists(client.index):
            return client.index
    return None


def register(world: World, client: Client, broker: ReferenceBroker) -> None:
    """Register a client with a new or returned broker for the first time in the broker's
    lifetime.
    """
    broker.entries[client.index] = client.index
    broker.topics = client.member.subscriptions
    _tell(world, broker, client.lifetime, client.member, Operation.AGAIN)


def subscribe(
    world: World, client: Client, broker: ReferenceBroker, operation: Operation, number: int
) -> None:
    """Apply a heartbeat of a listed member, whose topics become the group's.

    ``ConsumerGroupInfo.updateSubscription`` notifies all members of a new or missing topic.
    """
    topics, broker.topics = broker.topics, client.member.subscriptions
    if topics is not None and topics != broker.topics:
        _tell(world, broker, client.lifetime, client.member, operation, number)


def unregister(
    world: World, lifetime: ProcessLifetime, broker: ReferenceBroker, *, notify: bool
) -> None:
    """Remove a process and its connections from a broker's list; a scan notifies no members."""
    listed = [
        entry for entry, client in broker.entries.items() if lifetime.index in (entry, client)
    ]
    if not listed:
        return
    for entry in listed:
        del broker.entries[entry]
    if notify:
        _tell(world, broker, lifetime, lifetime.states[-1][1], Operation.GOES)


def _tell(
    world: World,
    broker: ReferenceBroker,
    lifetime: ProcessLifetime,
    member: Member,
    operation: Operation,
    number: int = 0,
) -> None:
    """Send NOTIFY_CONSUMER_IDS_CHANGED to all listed members, including a new one."""
    version = world.broker_version
    if member.message_model == BROADCASTING and version >= BROADCASTING_IS_SILENT:
        return
    closes = operation == Operation.GOES  # the group's switch may forbid all other notices
    mode = world.future.notices(broker.number, world.now_us)
    if mode == OFF or not (closes or world.timeline.settings.notified):
        return
    sent_us, batch = world.now_us, None
    if mode == BATCHED:
        sent_us = world.future.next_batch_us(broker.number, broker.lifetime, world.now_us)
        broker.batch += 1
        batch = broker.batch, broker.lifetime
    broker.told_us = sent_us
    name = world.timeline.brokers[broker.number]
    tick = operation_id(lifetime.entity, name, broker.lifetime, operation, number)
    lost = round(world.future.options.lost_notices * (1 << DRAW_BITS))
    for target in sorted({client for client in broker.entries.values() if client is not None}):
        entity = world.timeline.lifetimes[target].entity
        if not world.timeline.lifetimes[target].is_notified:
            continue
        if lost and world.draw(entity, Timer.NOTICE_LOST, tick) < lost:
            continue
        woken_us = sent_us + NOTICE.delay_of(world.draw(entity, Timer.NOTICE, tick))
        woken_us += world.future.options.one_way_us
        if woken_us >= world.future.ended[target]:
            woken_us += world.future.notice_late[target]
        world.agenda.put(
            woken_us,
            Kind.NOTICE,
            partial(_deliver, world, broker, sent_us, target, batch),
            process=target,
            broker=broker.number,
        )


def _deliver(
    world: World, broker: ReferenceBroker, sent_us: int, target: int, batch: tuple[int, int] | None
) -> None:
    if batch is not None and batch != (broker.batch, broker.lifetime):
        return
    if world.broker_version >= NEWEST_NOTICE_WINS and broker.told_us > sent_us:
        return
    wake_instance(world, target)
