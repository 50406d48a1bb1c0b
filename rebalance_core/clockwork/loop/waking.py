"""When a client's next pass is put on the agenda (rocketmq.md §3.1)."""

from __future__ import annotations

from functools import partial

from rebalance_core.clockwork.loop.agenda import Kind
from rebalance_core.clockwork.loop.pass_clock import MIN_INTERVAL
from rebalance_core.clockwork.loop.world import OWN, WOKEN, Client, World


def wake(world: World, client: Client) -> None:
    """``rebalanceImmediately``: the next pass begins as soon as the clock of passes allows."""
    client.clock.wake(world.now_us)
    schedule_pass(world, client)


def schedule_pass(world: World, client: Client) -> None:
    """Put the next pass on the agenda; what stood there before begins nothing any more."""
    if not client.in_pass and (not client.member.suspended or passes_while_suspended(client)):
        due, at_us = partial(_begin_if_due, world, client), client.clock.next_us
        if world.script.known is not None:
            at_us = world.script.known.due_us(client.index, at_us)
        world.agenda.put(at_us, Kind.PASS, due, process=client.index)


def passes_while_suspended(client: Client) -> bool:
    """Before 5.2 passes that do nothing keep a suspended client's clock (rocketmq.md §3.2)."""
    return client.version < MIN_INTERVAL


def _begin_if_due(world: World, client: Client) -> None:
    clock = client.clock
    if clock.next_us > world.now_us or client.in_pass or world.idle or not world.lives(client):
        return
    if not client.member.suspended:
        own_us = clock.last_end_us + clock.wait_us
        world.begin_pass(world, client, OWN if own_us <= world.now_us else WOKEN)
    elif passes_while_suspended(client):
        clock.begin(world.now_us)
        schedule_pass(world, client)
