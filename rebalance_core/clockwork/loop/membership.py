"""What clients know of routes: their polls, and what a pass asks for (rocketmq.md §6.1, §6.3).

Upstream: ``MQClientInstance.updateTopicRouteInfoFromNameServer``. A client never goes back to an
older version, and never adopts a route without a broker (TOPIC_NOT_EXIST keeps the old one).
"""

from bisect import bisect_right
from collections.abc import Mapping
from functools import partial

from rebalance_core.clockwork.draws import DRAW_BITS, NOTICE, Operation, Timer, operation_id
from rebalance_core.clockwork.loop.world import Client, Kind, LoopBroker, World, wake_instance
from rebalance_core.clockwork.options import SECOND_US
from rebalance_core.clockwork.script import Life, RouteVersion
from rebalance_core.model.events import BATCHED, OFF
from rebalance_core.model.group_settings import BROADCASTING
from rebalance_core.replay.group_state import Member


def visible(world: World, client: Client, topic: int, at_us: int) -> int | None:
    """The version of a route that the client's name server answers with; None: TOPIC_NOT_EXIST."""
    since = world.future.visible_us(client.index, topic)
    version = bisect_right(since, at_us) - 1
    if version < 0 or world.script.routes[topic][version].gone:
        return None
    return version


def brokers_route(world: World, broker: LoopBroker, topic: str) -> RouteVersion | None:
    """The route that a broker divides by: of its last poll, or fetched when it is asked first."""
    number = world.topic_numbers.get(topic)
    if number is None:
        return None
    since = world.future.visible_to_brokers_us(number)
    polled_us = world.future.brokers_poll_us(broker.number, broker.life, world.now_us)
    version = -1 if polled_us is None else bisect_right(since, polled_us) - 1
    if version < 0:
        version = bisect_right(since, world.now_us) - 1
    route = world.script.routes[number][version] if version >= 0 else None
    return None if route is None or route.gone else route


def known_route(world: World, client: Client, topic: str) -> RouteVersion | None:
    """The route of a topic in the client's tables."""
    number = world.topic_numbers.get(topic)
    version = None if number is None else client.known.get(number)
    return None if number is None or version is None else world.script.routes[number][version]


def known_brokers(world: World, client: Client) -> list[int]:
    """``brokerAddrTable``: who hears of the client by the routes that it knows of its topics."""
    routes = (known_route(world, client, topic) for topic in client.member.subscriptions)
    return sorted({broker for route in routes if route is not None for broker in route.hearing})


def adopt(client: Client, versions: Mapping[int, int]) -> None:
    """Take over the versions, by topic, that are newer than what the client knows."""
    for topic, version in versions.items():
        client.known[topic] = max(version, client.known.get(topic, version))


def answers(world: World, client: Client, at_us: int) -> dict[int, int]:
    """Return the name server's answer at a moment for all topics that the client subscribes."""
    found = {n: visible(world, client, n, at_us) for n in subscribed(world, client)}
    return {topic: version for topic, version in found.items() if version is not None}


def first_routes(world: World, client: Client) -> None:
    """Give a starting client its first routes; one from before the log gets those it began with."""
    adopt(client, answers(world, client, world.future.created[client.index]))
    if not client.life.observed:
        return
    for topic in subscribed(world, client):
        for number, version in enumerate(world.script.routes[topic]):
            since = None if version.moment is None else version.moment.event_us
            if not version.gone and (since is None or since <= client.life.joined.event_us):
                adopt(client, {topic: number})


def schedule_poll(world: World, client: Client) -> None:
    """Put the client's next route poll on the agenda."""
    at_us = world.future.poll_us(client.index, client.next_poll)
    poll = partial(_poll, world, client, world.stretch)
    world.agenda.put(at_us, Kind.POLL, poll, process=client.index)


def _poll(world: World, client: Client, stretch: int) -> None:
    """The route is that of the tick, or of when the scheduler thread comes to it."""
    if not world.ticks(client, stretch):
        return
    if client.scheduler_free_us > world.now_us:
        again = partial(_poll, world, client, stretch)
        world.agenda.put(client.scheduler_free_us, Kind.POLL, again, process=client.index)
        return
    number = client.next_poll
    client.next_poll += 1
    found = partial(adopt, client, answers(world, client, world.now_us))
    late_us = world.now_us - world.future.poll_us(client.index, number)
    answered_us = world.future.poll_answered_us(client.index, number) + late_us
    world.agenda.put(answered_us, Kind.POLL, found, process=client.index)
    schedule_poll(world, client)


def catch_up(world: World, client: Client, until_us: int) -> None:
    """Route polls up to a time, without going through them one by one."""
    future, index = world.future, client.index
    polls = future.polls_before(index, until_us + 1)
    if polls and future.poll_answered_us(index, polls - 1) > until_us:
        polls -= 1
    for topic in subscribed(world, client) if polls > client.next_poll else ():
        for version, since_us in enumerate(future.visible_us(index, topic)):
            poll = max(future.polls_before(index, since_us), client.next_poll)
            if (
                poll < polls
                and visible(world, client, topic, future.poll_us(index, poll)) == version
            ):
                adopt(client, {topic: version})
    client.next_poll = max(client.next_poll, polls)


def subscribed(world: World, client: Client) -> list[int]:
    """Numbers of the topics that the client subscribes, without those that never have a route."""
    numbers = map(world.topic_numbers.get, client.member.subscriptions)
    return sorted(number for number in numbers if number is not None)


# Member lists, heartbeats, and whom a broker tells that its list changed
# (rocketmq.md §6.1, §6.2).

# Member lists, and whom a broker tells that its list changed (rocketmq.md §6.2).
#
# Upstream: ``ConsumerManager``, ``ConsumerGroupInfo``, ``DefaultConsumerIdsChangeListener``.

BROADCASTING_IS_SILENT = (5, 3, 1)
"""From then on a broker tells a BROADCASTING group nothing."""
NEWEST_NOTICE_WINS = (5, 3, 3)
"""From then on a newer notification stops the loop of an older one."""


def member_list(world: World, broker: LoopBroker) -> tuple[str, ...] | None:
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


def _unlisted(world: World, ghost: Life, broker: LoopBroker) -> int | None:
    """The process that a ghost is the new connection of: one that the broker does not list."""
    for client in world.clients.values():
        if client.life.client_id == ghost.client_id and not broker.lists(client.index):
            return client.index
    return None


def register(world: World, client: Client, broker: LoopBroker) -> None:
    """A broker that is new, or came back, hears of a client for the first time in its life."""
    broker.entries[client.index] = client.index
    broker.topics = client.member.subscriptions
    _tell(world, broker, client.life, client.member, Operation.AGAIN)


def subscribe(
    world: World, client: Client, broker: LoopBroker, operation: Operation, number: int
) -> None:
    """A heartbeat of a member that is listed: the topics it names become the group's.

    ``ConsumerGroupInfo.updateSubscription``: a topic that is new, or missing, is told to everybody.
    """
    topics, broker.topics = broker.topics, client.member.subscriptions
    if topics is not None and topics != broker.topics:
        _tell(world, broker, client.life, client.member, operation, number)


def unregister(world: World, life: Life, broker: LoopBroker, *, notify: bool) -> None:
    """A broker's list loses a process and its connections; scans tell nobody."""
    listed = [entry for entry, client in broker.entries.items() if life.index in (entry, client)]
    if not listed:
        return
    for entry in listed:
        del broker.entries[entry]
    if notify:
        _tell(world, broker, life, life.states[-1][1], Operation.GOES)


def _tell(
    world: World,
    broker: LoopBroker,
    life: Life,
    member: Member,
    operation: Operation,
    number: int = 0,
) -> None:
    """NOTIFY_CONSUMER_IDS_CHANGED to everybody in the list, the newcomer included."""
    version = world.broker_version
    if member.message_model == BROADCASTING and version >= BROADCASTING_IS_SILENT:
        return
    closes = operation == Operation.GOES  # what the group's switch forbids, no life is told of
    mode = world.future.notices(broker.number, world.now_us)
    if mode == OFF or not (closes or world.script.settings.notified):
        return
    sent_us, batch = world.now_us, None
    if mode == BATCHED:
        sent_us = world.future.next_batch_us(broker.number, broker.life, world.now_us)
        broker.batch += 1
        batch = broker.batch, broker.life
    broker.told_us = sent_us
    name = world.script.brokers[broker.number]
    tick = operation_id(life.entity, name, broker.life, operation, number)
    lost = round(world.future.options.lost_notices * (1 << DRAW_BITS))
    for target in sorted({client for client in broker.entries.values() if client is not None}):
        entity = world.script.lives[target].entity
        if not world.script.lives[target].is_notified:
            continue
        if lost and world.draw(entity, Timer.NOTICE_LOST, tick) < lost:
            continue
        woken_us = sent_us + NOTICE.of(world.draw(entity, Timer.NOTICE, tick))
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
    world: World, broker: LoopBroker, sent_us: int, target: int, batch: tuple[int, int] | None
) -> None:
    if batch is not None and batch != (broker.batch, broker.life):
        return
    if world.broker_version >= NEWEST_NOTICE_WINS and broker.told_us > sent_us:
        return
    wake_instance(world, target)


# Heartbeats: every 30 s, and after a pass that changed something (rocketmq.md §4.4, §6.1, §6.2).
#
# Upstream: ``MQClientInstance.sendHeartbeatToAllBroker``.

REQUEST_TIMEOUT_US = 3 * SECOND_US
"""ClientConfig.mqClientApiTimeout: a request to a host that is lost."""
CONCURRENT_HEARTBEAT = (5, 5, 0)


def heartbeat(world: World, client: Client, operation: Operation, number: int) -> None:
    """One heartbeat to each broker of the routes that the client knows."""
    for broker in heard_by(world, client):
        if broker.lists(client.index):
            subscribe(world, client, broker, operation, number)
        else:
            register(world, client, broker)


def heard_by(world: World, client: Client) -> list[LoopBroker]:
    """Brokers that a heartbeat of the client reaches; those it is about to join hear of it then."""
    reached = (world.brokers[number] for number in known_brokers(world, client))
    return [broker for broker in reached if hears(broker, client)]


def blocked_us(world: World, client: Client) -> int:
    """Return how long a heartbeat waits for hosts that are lost, one after the other.

    With ``enableConcurrentHeartbeat`` (5.5) it asks all brokers at once.
    """
    silent = sum(world.brokers[number].silent for number in known_brokers(world, client))
    if world.future.options.concurrent_heartbeat and client.version >= CONCURRENT_HEARTBEAT:
        silent = min(silent, 1)
    return silent * REQUEST_TIMEOUT_US


def hears(broker: LoopBroker, client: Client) -> bool:
    """The broker is there for the client."""
    number = broker.number
    return broker.up and number in client.reachable and number not in client.joining


def schedule_heartbeat(world: World, client: Client, from_us: int) -> None:
    """Put the client's first heartbeat tick from a time on, on the agenda."""
    _schedule(world, client, world.future.heartbeats_before(client.index, from_us))


def _schedule(world: World, client: Client, number: int) -> None:
    at_us = world.future.heartbeat_us(client.index, number)
    tick = partial(_tick, world, client, number, world.stretch)
    world.agenda.put(at_us, Kind.HEARTBEAT, tick, process=client.index)


def _tick(world: World, client: Client, number: int, stretch: int) -> None:
    """The timer's heartbeat; lost hosts hold up whatever else the scheduler thread has to do."""
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
    """Leave behind what the heartbeats of an idle stretch do: every broker lists the client."""
    for broker in heard_by(world, client):
        if not broker.lists(client.index):
            broker.entries[client.index] = client.index
