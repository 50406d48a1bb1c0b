"""Scheduling of a client's next pass (rocketmq.md §3.1)."""

from __future__ import annotations

from functools import partial

from rebalance_core.timing.reference.event_queue import Kind
from rebalance_core.timing.reference.world import OWN, WOKEN, Client, World
from rebalance_core.timing.timer_periods import (
    MIN_INTERVAL,
)


def wake(world: World, client: Client) -> None:
    """Apply ``rebalanceImmediately``, after which the next pass begins as soon as the pass clock
    allows.
    """
    client.clock.wake(world.now_us)
    schedule_pass(world, client)


def wake_instance(world: World, lifetime: int) -> None:
    """Wake all groups of a lifetime's instance, whose RebalanceService runs the passes of all of
    them.
    """
    _wake_process(world, lifetime)
    wake_others(world, lifetime, world.now_us)


def wake_others(world: World, lifetime: int, at_us: int) -> None:
    """Schedule a wake-up of the other groups in a lifetime's client instance."""
    for other, index, comes_to in world.together.get(lifetime, ()):
        woken = partial(_wake_process, other, index)
        world.agenda.put(comes_to(at_us), Kind.NOTICE, woken, process=index)


def _wake_process(world: World, lifetime: int) -> None:
    client = world.clients.get(lifetime)
    if client is not None:
        wake(world, client)


def schedule_pass(world: World, client: Client) -> None:
    """Schedule the next pass, replacing an earlier schedule."""
    if not client.in_pass and (not client.member.suspended or passes_while_suspended(client)):
        due, at_us = partial(_begin_if_due, world, client), client.clock.next_us
        if world.timeline.watched is not None:
            at_us = world.timeline.watched.due_us(client.index, at_us)
        world.agenda.put(at_us, Kind.PASS, due, process=client.index)


def passes_while_suspended(client: Client) -> bool:
    """Return whether idle passes follow a suspended client's clock (rocketmq.md §3.2)."""
    return client.version < MIN_INTERVAL


def _begin_if_due(world: World, client: Client) -> None:
    clock = client.clock
    if clock.next_us > world.now_us or client.in_pass or world.idle or not world.runs(client):
        return
    if not client.member.suspended:
        own_us = clock.last_end_us + clock.wait_us
        world.begin_pass(world, client, OWN if own_us <= world.now_us else WOKEN)
    elif passes_while_suspended(client):
        clock.begin(world.now_us)
        schedule_pass(world, client)
