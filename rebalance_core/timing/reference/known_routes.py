"""The routes that clients know from their polls and from the fetches of passes (rocketmq.md §6.1,
rocketmq.md §6.3).

Upstream: ``MQClientInstance.updateTopicRouteInfoFromNameServer``. A client never goes back to an
older version, and never adopts a route without a broker (TOPIC_NOT_EXIST keeps the old one).
"""

from bisect import bisect_right
from collections.abc import Mapping
from functools import partial

from rebalance_core.timing.group_timeline import RouteVersion
from rebalance_core.timing.reference.event_queue import Kind
from rebalance_core.timing.reference.world import Client, ReferenceBroker, World


def visible(world: World, client: Client, topic: int, at_us: int) -> int | None:
    """Return the route version that the client's name server returns, or None for
    TOPIC_NOT_EXIST.
    """
    since = world.future.visible_us(client.index, topic)
    version = bisect_right(since, at_us) - 1
    if version < 0 or world.timeline.routes[topic][version].gone:
        return None
    return version


def brokers_route(world: World, broker: ReferenceBroker, topic: str) -> RouteVersion | None:
    """Return the route that a broker uses to allocate, from its last poll or fetched at the first
    request.
    """
    number = world.topic_numbers.get(topic)
    if number is None:
        return None
    since = world.future.visible_to_brokers_us(number)
    polled_us = world.future.brokers_poll_us(broker.number, broker.lifetime, world.now_us)
    version = -1 if polled_us is None else bisect_right(since, polled_us) - 1
    if version < 0:
        version = bisect_right(since, world.now_us) - 1
    route = world.timeline.routes[number][version] if version >= 0 else None
    return None if route is None or route.gone else route


def known_route(world: World, client: Client, topic: str) -> RouteVersion | None:
    """Return the route of a topic in the client's tables."""
    number = world.topic_numbers.get(topic)
    version = None if number is None else client.versions.get(number)
    return None if number is None or version is None else world.timeline.routes[number][version]


def known_brokers(world: World, client: Client) -> list[int]:
    """Return ``brokerAddrTable``, the brokers in the routes that the client knows."""
    routes = (known_route(world, client, topic) for topic in client.member.subscriptions)
    return sorted(
        {broker for route in routes if route is not None for broker in route.heartbeat_targets}
    )


def adopt(client: Client, versions: Mapping[int, int]) -> None:
    """Adopt the given versions, keyed by topic, if they are newer than those that the client
    knows.
    """
    for topic, version in versions.items():
        client.versions[topic] = max(version, client.versions.get(topic, version))


def answers(world: World, client: Client, at_us: int) -> dict[int, int]:
    """Return the name server's answer at a moment for all topics to which the client subscribes."""
    versions = {n: visible(world, client, n, at_us) for n in subscribed(world, client)}
    return {topic: version for topic, version in versions.items() if version is not None}


def first_routes(world: World, client: Client) -> None:
    """Give a starting client its first routes, or its initial routes if it predates the log."""
    adopt(client, answers(world, client, world.future.created[client.index]))
    if not client.lifetime.observed:
        return
    for topic in subscribed(world, client):
        for number, version in enumerate(world.timeline.routes[topic]):
            since = None if version.moment is None else version.moment.event_us
            if not version.gone and (since is None or since <= client.lifetime.joined.event_us):
                adopt(client, {topic: number})


def schedule_poll(world: World, client: Client) -> None:
    """Schedule the client's next route poll."""
    at_us = world.future.poll_us(client.index, client.next_poll)
    poll = partial(_poll, world, client, world.stretch)
    world.agenda.put(at_us, Kind.POLL, poll, process=client.index)


def _poll(world: World, client: Client, stretch: int) -> None:
    """Poll routes as they are at the tick, or when the scheduler thread gets to it."""
    if not world.ticks(client, stretch):
        return
    if client.scheduler_free_us > world.now_us:
        again = partial(_poll, world, client, stretch)
        world.agenda.put(client.scheduler_free_us, Kind.POLL, again, process=client.index)
        return
    number = client.next_poll
    client.next_poll += 1
    arrive = partial(adopt, client, answers(world, client, world.now_us))
    late_us = world.now_us - world.future.poll_us(client.index, number)
    answered_us = world.future.poll_answered_us(client.index, number) + late_us
    world.agenda.put(answered_us, Kind.POLL, arrive, process=client.index)
    schedule_poll(world, client)


def catch_up(world: World, client: Client, until_us: int) -> None:
    """Apply all route polls up to a time at once."""
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
    """Return the numbers of the client's topics that ever have a route."""
    numbers = map(world.topic_numbers.get, client.member.subscriptions)
    return sorted(number for number in numbers if number is not None)
