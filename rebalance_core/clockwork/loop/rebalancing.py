"""One pass of one client, from its begin to what it leaves behind (rocketmq.md §3, §4).

What the pass decides is `run_pass`'s business, on what the client knows and one broker answers. A
consumer that takes order locks runs it in two steps, since others run meanwhile: it gives up queues
first and asks for the locks of new ones later.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from rebalance_core.client.pass_record import PassRecord, PassView
from rebalance_core.client.rebalance_pass import EMPTY_IS_UNKNOWN, run_pass
from rebalance_core.clockwork.delays import ADD_AFTER, DROP_AFTER
from rebalance_core.clockwork.draws import Timer, below
from rebalance_core.clockwork.loop.agenda import Kind
from rebalance_core.clockwork.loop.heartbeats import hears, heartbeat
from rebalance_core.clockwork.loop.membership import member_list, register
from rebalance_core.clockwork.loop.order_locks import (
    broker_answers,
    granted,
    note_backlog,
    release_after_pass,
)
from rebalance_core.clockwork.loop.pass_clock import MIN_INTERVAL
from rebalance_core.clockwork.loop.routes import adopt, answers, known_route
from rebalance_core.clockwork.loop.waking import schedule_pass, wake
from rebalance_core.clockwork.loop.world import Broker, Client, PassBegun, World
from rebalance_core.clockwork.operations import Operation
from rebalance_core.clockwork.ownership_log import GIVEN_UP, TAKEN
from rebalance_core.clockwork.script import RouteVersion
from rebalance_core.model.ordering import java_string_key
from rebalance_core.model.queue import MessageQueue

SAMPLE_AFTER_US = 1_000
"""When a pass has the member list, from its begin; no shorter than the shortest DROP_AFTER."""
CHANNEL_AFTER_US = 2_000
"""From 5.2 on: when a broker that a pass asked has the client's heartbeat (onChannelActive)."""
CHANNEL_ACTIVE = MIN_INTERVAL  # ISSUE #7296 came with 5.2, too


@dataclass(slots=True)
class _Pass:
    """A pass under way.

    Attributes:
        client: whose.
        number: counted over all passes of the client.
        begin_us: when it began.
        routes: what the client knew of its topics then; in Java's order of the topics.
        fetched: route versions that it asks for, by topic number, in use from its end on.
        view: what it decides on, once it has asked.
    """

    client: Client
    number: int
    begin_us: int
    routes: dict[str, RouteVersion | None]
    fetched: dict[int, int]
    view: PassView


def begin_pass(world: World, client: Client, trigger: str) -> None:
    """A pass begins: it takes the routes that the client knows, and asks for members next."""
    number = client.clock.begin(world.now_us)
    client.in_pass = True
    world.passes.append(PassBegun(client.index, number, world.now_us, trigger))
    topics = sorted(client.member.subscriptions, key=java_string_key)
    routes = {topic: known_route(world, client, topic) for topic in topics}
    one = _Pass(client, number, world.now_us, routes, _fetched(world, client), PassView({}, {}))
    world.agenda.put(
        world.now_us + SAMPLE_AFTER_US, Kind.PASS, partial(_decide, world, one),
        process=client.index,
    )  # fmt: skip


def _fetched(world: World, client: Client) -> dict[int, int]:
    """``findConsumerIdList`` fetches a route that is not known; 5.5 gives up before it asks."""
    if client.process.is_broadcasting or client.version >= EMPTY_IS_UNKNOWN:
        return {}
    found = answers(world, client, world.now_us)
    return {topic: version for topic, version in found.items() if topic not in client.known}


def _decide(world: World, one: _Pass) -> None:
    """The members are known: what is given up is decided, and without locks what is taken."""
    client = one.client
    if not world.lives(client):
        return
    queues: dict[str, tuple[MessageQueue, ...] | None] = {}
    members: dict[str, tuple[str, ...] | None] = {}
    for topic, route in one.routes.items():
        queues[topic] = (
            None if route is None else tuple(map(world.script.queues.__getitem__, route.queues))
        )
        members[topic] = _members(world, one, topic, route)
    one.view = PassView(queues, members)
    locks = client.process.locks_on_addition
    note_backlog(world, client)
    record = run_pass(client.process, one.view, broker_answers(world, no_locks=locks))
    if not (record.removed or record.truncated or record.added or record.locks):
        _end(
            world, one, record, heartbeat_due=record.heartbeats > 0, end_us=client.clock.last_end_us
        )
        return
    drop_us = one.begin_us + DROP_AFTER.of(_draw(world, one, Timer.DROP_AFTER))
    add_us = drop_us + ADD_AFTER.of(_draw(world, one, Timer.ADD_AFTER))
    client.clock.last_end_us = max(client.clock.last_end_us, add_us)
    gone = record.removed + record.truncated
    give_up = partial(_give_up, world, client, gone)
    world.agenda.put(drop_us, Kind.RELEASE, give_up, process=client.index)
    release_after_pass(world, client, record, drop_us)
    if locks:
        ask = partial(_ask_for_locks, world, one, record)
        world.agenda.put(add_us, Kind.REQUEST, ask, process=client.index)
    else:
        take = partial(_take, world, client, list(record.added))
        world.agenda.put(add_us, Kind.REQUEST, take, process=client.index)
        _end(
            world, one, record, heartbeat_due=record.heartbeats > 0, end_us=client.clock.last_end_us
        )


def _ask_for_locks(world: World, one: _Pass, dropped: PassRecord) -> None:
    """The second step of a pass that takes order locks."""
    client = one.client
    if not world.lives(client):
        return
    record = run_pass(client.process, one.view, broker_answers(world))
    granted(world, client, record)
    _take(world, client, list(record.added))
    due = dropped.heartbeats + record.heartbeats > 0
    _end(world, one, record, heartbeat_due=due, end_us=client.clock.last_end_us)


def _end(world: World, one: _Pass, record: PassRecord, *, heartbeat_due: bool, end_us: int) -> None:
    """What the pass leaves behind: the next wait, a heartbeat, routes, another pass soon."""
    client, index = one.client, one.client.index
    client.in_pass = False
    if record.balanced is False:
        client.clock.unbalanced()
    for later_ms in record.rebalance_later_ms:
        world.agenda.put(
            end_us + later_ms * 1_000, Kind.NOTICE, partial(_wake, world, client), process=index
        )
    if one.fetched:
        world.agenda.put(end_us, Kind.POLL, partial(adopt, client, one.fetched), process=index)
    if heartbeat_due:
        world.agenda.put(end_us, Kind.HEARTBEAT, partial(_heartbeat, world, one), process=index)
    schedule_pass(world, client)


def _members(
    world: World, one: _Pass, topic: str, route: RouteVersion | None
) -> tuple[str, ...] | None:
    """The member list of one broker of the route, any of them; no other is asked in this pass."""
    client = one.client
    if route is None or client.process.is_broadcasting:
        return None
    if not route.queues and client.version >= EMPTY_IS_UNKNOWN:
        return None
    draw = _draw(world, one, Timer.SAMPLE + world.topic_numbers[topic])
    broker = world.brokers[route.brokers[below(draw, len(route.brokers))]]
    found = member_list(world, broker)
    if client.version >= CHANNEL_ACTIVE and not broker.lists(client.index):
        world.agenda.put(
            one.begin_us + CHANNEL_AFTER_US, Kind.MEMBERSHIP,
            partial(_channel_active, world, client, broker),
            process=client.index, broker=broker.number,
        )  # fmt: skip
    return found


def _channel_active(world: World, client: Client, broker: Broker) -> None:
    """``onChannelActive``: a broker that a request went to gets a heartbeat at once."""
    if world.lives(client) and hears(broker, client) and not broker.lists(client.index):
        register(world, client, broker)


def _give_up(world: World, client: Client, queues: list[MessageQueue]) -> None:
    if world.lives(client):
        for queue in queues:
            number = world.queue_numbers[queue]
            if number in client.held:
                client.held.discard(number)
                world.rows.append((client.index, number, world.now_us, GIVEN_UP))


def _take(world: World, client: Client, queues: list[MessageQueue]) -> None:
    if world.lives(client):
        for queue in queues:
            number = world.queue_numbers[queue]
            client.held.add(number)
            world.rows.append((client.index, number, world.now_us, TAKEN))


def _heartbeat(world: World, one: _Pass) -> None:
    if world.lives(one.client):
        heartbeat(world, one.client, Operation.CHANGES, one.number)


def _wake(world: World, client: Client) -> None:
    if world.lives(client):
        wake(world, client)


def _draw(world: World, one: _Pass, timer: int) -> int:
    return world.draw(one.client.life.entity, timer, one.number)
