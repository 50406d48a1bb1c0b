"""When a client's next pass is put on the agenda (rocketmq.md §3.1)."""

from __future__ import annotations

from functools import partial

from rebalance_core.clockwork.loop.agenda import Kind
from rebalance_core.clockwork.loop.world import OWN, WOKEN, Client, World


def wake(world: World, client: Client) -> None:
    """``rebalanceImmediately``: the next pass begins as soon as the clock of passes allows."""
    client.clock.wake(world.now_us)
    schedule_pass(world, client)


def schedule_pass(world: World, client: Client) -> None:
    """Put the next pass on the agenda; what stood there before begins nothing any more."""
    if client.in_pass or client.member.suspended:
        return
    world.agenda.put(
        client.clock.next_us, Kind.PASS, partial(_begin_if_due, world, client), process=client.index
    )


def _begin_if_due(world: World, client: Client) -> None:
    due = client.clock.next_us <= world.now_us and not client.in_pass
    if due and not world.idle and world.lives(client) and not client.member.suspended:
        own_us = client.clock.last_end_us + client.clock.wait_us
        world.begin_pass(world, client, OWN if own_us <= world.now_us else WOKEN)
