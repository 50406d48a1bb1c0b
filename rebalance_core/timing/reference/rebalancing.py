"""A client's pass: when it begins, which broker it queries and what it decides (rocketmq.md §3).

`run_pass` decides, from the client's knowledge and a broker's answer; `act` carries it out.
"""

from functools import partial

from rebalance_core.client.pass_record import PassView
from rebalance_core.client.process import ClientProcess
from rebalance_core.client.rebalance_pass import EMPTY_IS_UNKNOWN, run_pass
from rebalance_core.model.group_settings import BROKER_STRATEGIES
from rebalance_core.model.queue import MessageQueue, java_string_key
from rebalance_core.timing import draws
from rebalance_core.timing.draws import Timer
from rebalance_core.timing.group_timeline import RouteVersion
from rebalance_core.timing.reference import heartbeats, known_routes, membership
from rebalance_core.timing.reference.event_queue import Kind
from rebalance_core.timing.reference.order_locks import (
    broker_answers,
    note_backlog,
)
from rebalance_core.timing.reference.pass_effects import RunningPass, act, draw_of, end
from rebalance_core.timing.reference.world import RESUMED, Client, PassBegun, ReferenceBroker, World
from rebalance_core.timing.timer_periods import MIN_INTERVAL

SAMPLE_AFTER_US = 1_000
"""How long after its start a pass has the member list; at least the shortest DROP_AFTER."""
CHANNEL_AFTER_US = 2_000
"""The time from the start of a pass until the queried broker receives the client's heartbeat
(onChannelActive, since 5.2).
"""
CHANNEL_ACTIVE = MIN_INTERVAL  # ISSUE #7296 is also part of 5.2


def begin_pass(world: World, client: Client, trigger: str) -> None:
    """Begin a pass, which takes the routes that the client knows and then asks for members."""
    now_us, clock = world.now_us, client.clock
    resumed = trigger == RESUMED
    number = clock.begin_resumed() if resumed else clock.begin(now_us)
    client.in_pass = True
    world.passes.append(PassBegun(client.index, number, now_us, trigger))
    topics = sorted(client.member.subscriptions, key=java_string_key)
    running = RunningPass(
        client=client,
        number=number,
        begin_us=now_us,
        end_us=now_us + clock.length_us,
        resumed=resumed,
        routes={topic: known_routes.known_route(world, client, topic) for topic in topics},
        fetched=_fetched(world, client),
        view=PassView({}, {}),
    )
    decide = partial(_decide, world, running)
    world.agenda.put(now_us + SAMPLE_AFTER_US, Kind.PASS, decide, process=client.index)


def _fetched(world: World, client: Client) -> dict[int, int]:
    """Fetch unknown routes in ``findConsumerIdList``; 5.5 gives up before it queries a broker."""
    if client.process.is_broadcasting or client.version >= EMPTY_IS_UNKNOWN:
        return {}
    unknown = [
        topic for topic in known_routes.subscribed(world, client) if topic not in client.versions
    ]
    versions = {
        topic: known_routes.visible(world, client, topic, world.now_us) for topic in unknown
    }
    return {topic: version for topic, version in versions.items() if version is not None}


def _decide(world: World, running: RunningPass) -> None:
    """Decide, once the members are known, which queues to release and, without locks, also which to
    take.
    """
    client = running.client
    if not (client.leaving or world.is_alive(client)):
        return
    queues: dict[str, tuple[MessageQueue, ...] | None] = {}
    members: dict[str, tuple[str, ...] | None] = {}
    divides = client.member.asks_broker(world.timeline.settings)
    for topic, route in running.routes.items():
        broker = _asked(world, running, topic, route)
        if divides and broker is not None:
            route = known_routes.brokers_route(world, broker, topic)
        queues[topic] = (
            None if route is None else tuple(map(world.timeline.queues.__getitem__, route.queues))
        )
        members[topic] = None if broker is None else membership.member_list(world, broker)
        if broker is not None and broker.up and not broker.entries and client.process.lets_go:
            members[topic] = ()
    running.view = PassView(queues, members)
    locks = client.process.locks_on_addition
    running.end_us += running.timed_out_us
    note_backlog(world, client)
    before = set(client.process.table)
    record = run_pass(client.process, running.view, broker_answers(world, no_locks=locks))
    after = set(client.process.table)
    if before != after or record.locks:
        act(world, running, record, gone=before - after, new=after - before)
    else:
        end(world, running, record, heartbeat_due=record.heartbeats > 0)


def _asked(
    world: World, running: RunningPass, topic: str, route: RouteVersion | None
) -> ReferenceBroker | None:
    """Return the one broker in the route that the pass queries."""
    client = running.client
    if route is None or client.process.is_broadcasting:
        return None
    if not route.queues and client.version >= EMPTY_IS_UNKNOWN:
        return None
    if client.member.asks_broker(world.timeline.settings) and not brokers_know(client.process):
        return None
    draw = draw_of(world, running, Timer.SAMPLE + world.topic_numbers[topic])
    broker = world.brokers[route.brokers[draws.below(draw, len(route.brokers))]]
    if broker.silent:
        running.timed_out_us += heartbeats.REQUEST_TIMEOUT_US
    if client.version >= CHANNEL_ACTIVE and not broker.lists(client.index):
        world.agenda.put(
            running.begin_us + CHANNEL_AFTER_US,
            Kind.MEMBERSHIP,
            partial(_channel_active, world, client, broker),
            process=client.index,
            broker=broker.number,
        )
    return broker


def brokers_know(process: ClientProcess) -> bool:
    """Return whether ``QueryAssignmentProcessor`` knows the strategy (rocketmq.md §14)."""
    return process.strategy.name in BROKER_STRATEGIES


def _channel_active(world: World, client: Client, broker: ReferenceBroker) -> None:
    """Apply ``onChannelActive``, which sends a heartbeat at once to a broker that received a
    request.
    """
    if (
        world.is_alive(client)
        and heartbeats.is_reached(broker, client)
        and not broker.lists(client.index)
    ):
        membership.register(world, client, broker)
