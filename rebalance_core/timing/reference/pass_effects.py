"""Effects of a pass: queues released and taken, locks requested, the next pass.

A consumer that takes order locks runs its pass in two steps, since others run in between: it first
releases queues and later requests the locks of new ones (rocketmq.md §4, §7).
"""

import math
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial
from itertools import chain

import numpy as np

from rebalance_core.client.pass_record import PassRecord, PassView
from rebalance_core.client.rebalance_pass import run_pass
from rebalance_core.model.queue import MessageQueue
from rebalance_core.timing import delays
from rebalance_core.timing.draws import Timer
from rebalance_core.timing.group_timeline import RouteVersion
from rebalance_core.timing.operations import Operation
from rebalance_core.timing.ownership_log import GIVEN_UP, TAKEN
from rebalance_core.timing.pass_costs import taking_us
from rebalance_core.timing.reference import heartbeats, known_routes
from rebalance_core.timing.reference.agenda import schedule_pass, wake_instance, wake_others
from rebalance_core.timing.reference.event_queue import Kind
from rebalance_core.timing.reference.order_locks import (
    broker_answers,
    granted,
    release_after_pass,
)
from rebalance_core.timing.reference.world import Client, World

COLD_PASSES = 2
"""The number of passes in which a new process is slow to take queues."""
SLOW_PASSES = 4
"""The number of passes in which a new process may be slow to release queues, including passes
without a route or member list.
"""


@dataclass(slots=True)
class RunningPass:
    """A running pass.

    Attributes:
        client: the client that runs it.
        number: counted over all passes of the client.
        begin_us: when it began.
        end_us: when it ends, if known.
        timed_out_us: how long it waited for lost hosts.
        resumed: whether ``resume()`` runs it, which leaves the pass clock alone.
        routes: the routes that the client knows when it begins, in Java's topic order.
        fetched: the route versions that it fetches, by topic number; used after it ends.
        view: the basis of its decision, once it has received the answers.
    """

    client: Client
    number: int
    begin_us: int
    end_us: int
    resumed: bool
    routes: dict[str, RouteVersion | None]
    fetched: dict[int, int]
    view: PassView
    timed_out_us: int = 0


def act(
    world: World,
    running: RunningPass,
    record: PassRecord,
    *,
    gone: set[MessageQueue],
    new: set[MessageQueue],
) -> None:
    """Carry out a pass's decision when its time comes.

    A queue that CONFIG adds for one topic and drops for another in the same pass counts as neither.
    """
    client, index = running.client, running.client.index
    ticks = world.future.ticks
    asked_us = running.begin_us + running.timed_out_us + int(ticks.lists_us[index])
    number = math.inf if client.lifetime.observed else running.number
    slow = number < SLOW_PASSES or ticks.shared[index]
    delay = delays.COLD_DROP_AFTER if slow else delays.DROP_AFTER
    until_us = last_us = drop_us = asked_us + delay.delay_of(
        draw_of(world, running, Timer.DROP_AFTER)
    )
    if new or record.locks:
        delay = delays.COLD_ADD_AFTER if number < COLD_PASSES else delays.ADD_AFTER
        last_us = drop_us + delay.delay_of(draw_of(world, running, Timer.ADD_AFTER))
        took, whole = taking_us(
            world.future.options,
            np.array([len(record.locks) or len(new)], np.int64),
            np.array([bool(record.locks)]),
            np.array([draw_of(world, running, Timer.QUEUE_NEXT)], np.uint64),
        )
        last_us, until_us = last_us + int(took[0]), last_us + int(whole[0])
    tail = delays.PASS_TAIL.delay_of(draw_of(world, running, Timer.PASS_TAIL))
    running.end_us = max(running.end_us, until_us + tail)
    give_up = partial(_give_up, world, client, gone)
    world.agenda.put(drop_us, Kind.RELEASE, give_up, process=index)
    release_after_pass(world, client, record, gone, drop_us)
    if record.locks:
        ask = partial(_ask_for_locks, world, running, record)
        world.agenda.put(last_us, Kind.REQUEST, ask, process=index)
    else:
        take = partial(_take, world, client, new)
        world.agenda.put(last_us, Kind.REQUEST, take, process=index)
        end(world, running, record, heartbeat_due=record.heartbeats > 0, moves=True)


def _ask_for_locks(world: World, running: RunningPass, dropped: PassRecord) -> None:
    """Run the second step of a pass that takes order locks, for which ``shutdown()`` waits.

    Nothing releases locks granted after `unlock_all`, so brokers keep them for 60 s.
    """
    client = running.client
    if not (client.leaving or world.is_alive(client)):
        return
    before = set(client.process.table)
    masterless = [route.masterless for route in running.routes.values() if route is not None]
    answers = broker_answers(world, masterless=set(chain(*masterless)))
    record = run_pass(client.process, running.view, answers)
    new = client.process.table.keys() - before
    granted(world, client, record, new)
    if not new:  # ignores offsets, first pulls and any later effects of a lock
        running.end_us = max(running.begin_us + client.clock.length_us, world.now_us)
    _take(world, client, new)
    due = dropped.heartbeats + record.heartbeats > 0
    end(world, running, record, heartbeat_due=due, moves=bool(new))


def end(
    world: World,
    running: RunningPass,
    record: PassRecord,
    *,
    heartbeat_due: bool,
    moves: bool = False,
) -> None:
    """Apply the end of a pass: the next wait, a heartbeat, new routes, possibly another pass soon.

    Args:
        world: the moment.
        running: the pass.
        record: its steps.
        heartbeat_due: whether it ends with a heartbeat round.
        moves: whether it took queues, or released some without requesting locks; only then does the
            round take time. Passes that send a round for topics without a route are ignored.
    """
    client, clock = running.client, running.client.clock
    end_us = running.end_us
    if heartbeat_due:
        end_us += heartbeats.blocked_us(world, client)
        end_us += world.future.round_us[client.index] if moves else 0
    client.in_pass = False
    if running.resumed:
        clock.busy_until_us = end_us
    else:
        clock.last_end_us = end_us
        if record.balanced is False:
            clock.unbalanced()
            if clock.min_interval_us:
                wake_others(world, client.index, end_us)
    after: list[tuple[Kind, int, Callable[[], None]]] = [
        (Kind.NOTICE, later_ms * 1_000, partial(_wake, world, client))
        for later_ms in record.rebalance_later_ms
    ]
    if running.fetched:
        after.append((Kind.POLL, 0, partial(known_routes.adopt, client, running.fetched)))
    if heartbeat_due:
        after.append((Kind.HEARTBEAT, 0, partial(_heartbeat, world, running)))
    for kind, delay_us, action in after:
        world.agenda.put(end_us + delay_us, kind, action, process=client.index)
    schedule_pass(world, client)


def _give_up(world: World, client: Client, queues: Collection[MessageQueue]) -> None:
    for number in _numbers(world, client, queues):
        if number in client.held:
            client.held.discard(number)
            if not client.leaving:
                world.rows.append((client.index, number, world.now_us, GIVEN_UP))


def _take(world: World, client: Client, queues: Collection[MessageQueue]) -> None:
    for number in _numbers(world, client, queues):
        client.held.add(number)
        if not client.leaving:
            world.rows.append((client.index, number, world.now_us, TAKEN))


def _numbers(world: World, client: Client, queues: Collection[MessageQueue]) -> list[int]:
    """Return the numbers of the queues that are in routes; pull consumers also take CONFIG's
    missing queues.
    """
    if not (client.leaving or world.is_alive(client)):
        return []
    numbers = map(world.queue_numbers.get, queues)
    return sorted(number for number in numbers if number is not None)


def _heartbeat(world: World, running: RunningPass) -> None:
    if world.is_alive(running.client):
        heartbeats.heartbeat(world, running.client, Operation.CHANGES, running.number)


def _wake(world: World, client: Client) -> None:
    if world.runs(client):
        wake_instance(world, client.index)


def draw_of(world: World, running: RunningPass, timer: int) -> int:
    """Return a draw for a pass."""
    return world.draw(running.client.lifetime.entity, timer, running.number)
