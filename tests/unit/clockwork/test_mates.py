"""Groups that share client instances: a notice to one runs passes of all."""

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from rebalance_core.clockwork.batch.play import REGULAR
from rebalance_core.clockwork.loop.play import play_with_passes
from rebalance_core.clockwork.mates import MateWakes
from rebalance_core.clockwork.options import ClockOptions
from rebalance_core.clockwork.script import Script
from rebalance_core.clockwork.script_of import script_of
from rebalance_core.clockwork.ticks import BEFORE_ALL, NEVER, POLL_US, Ticks
from rebalance_core.replay.history import GroupHistory
from tests.unit.clockwork.futures import EXACT, Future, joins, shifted
from tests.unit.clockwork.test_batch_equals_loop import (
    AFTER_MS,
    CALM_VERSIONS,
    OPTIONS,
    Tally,
    awake,
    compare,
    quietly,
    with_own_timers,
)
from tests.unit.kernels.random_groups import groups
from tests.unit.replay.histories import history, topic

pytestmark = pytest.mark.unit

V5: dict[str, Any] = {"subscriptions": ("T",), "client_version": "5.3.3", "broker_version": "5.3.3"}


def sharing(one: GroupHistory, *others: GroupHistory) -> GroupHistory:
    """The first group, with the other ones in its instances."""
    mates = (replace(each, consumer_group=f"mate-{n}") for n, each in enumerate(others))
    return replace(one, mates=tuple(mates))


@pytest.mark.parametrize("own_timers", [False, True])
def test_loop_and_batch_play_groups_that_share_clients_alike(seed: int, own_timers: bool) -> None:
    """Also where clients have other intervals, and brokers or groups tell nobody."""
    tally, woken = Tally(), Counter[str]()

    def check(
        one: GroupHistory, other: GroupHistory, options: ClockOptions, version: str, after_ms: int
    ) -> None:
        its = awake(one, 0, version, version, mixed=False)
        others = [
            awake(other, after_ms, version, version, mixed=False),
            awake(one, after_ms + 1_234, version, version, mixed=False),  # all of its clients
        ]
        if own_timers:
            its, *others = (with_own_timers(each, after_ms) for each in (its, *others))
        shared = sharing(its, *others)
        compare(shared, options, tally)
        ticks = Ticks(script_of(shared, options), np.arange(1), options)
        woken["wakes"] += len(list(MateWakes(ticks).between(BEFORE_ALL, NEVER)))

    any_groups = groups(traits=("timers",)) if own_timers else groups()
    quietly(check, 40, seed, any_groups, any_groups, OPTIONS, CALM_VERSIONS, AFTER_MS)
    assert tally.reasons[REGULAR] > 10
    assert tally.rows > 40
    assert woken["wakes"] > 60


def scale_out(*mates: GroupHistory) -> Script:
    """Two members and a topic that gets more queues at 10 s, with other groups in c1's instance."""
    events = (
        *(topic(0, 2, "T", name) for name in "ab"),
        joins(0, "c1"), joins(0, "c2"),
        *(topic(600_000, 4, "T", name) for name in "ab"),
    )  # fmt: skip
    its = history(*shifted(events), **V5)
    return script_of(replace(its, mates=mates), EXACT)


def flapping(client: str, channel: str | None = None) -> GroupHistory:
    """A group in the instance of a client, in which another process comes every 5 s."""
    events = [topic(0, 2, "U", "a"), joins(1_000, client, channel, subscriptions=("U",))]
    for n in range(24):
        events.append(joins(560_000 + 5_000 * n, f"other{n}", subscriptions=("U",)))
    return replace(history(*shifted(events), **V5 | {"subscriptions": ("U",)}), consumer_group="u")


def first_takes(script: Script, client: str, seeds: int = 60) -> list[float]:
    """By future: how long after the scale-out a client takes its first new queue, seconds."""
    found = []
    for seed in range(seeds):
        future = Future(script, play_with_passes(script, seed, EXACT))
        found.append((min(future.takes(client, 600_000))[0] - 600_000) / 1_000)
    return found


def test_a_flapping_group_of_the_instance_makes_its_other_groups_act_earlier() -> None:
    """A pass follows the route poll by up to 5 s where another group is told every 5 s, not 20."""
    alone, beside = scale_out(), scale_out(flapping("c1"))
    assert max(first_takes(alone, "c1")) > 38
    assert max(first_takes(beside, "c1")) < 36.5
    assert max(first_takes(beside, "c2")) > 38  # is in no other group


def test_another_process_of_the_same_client_id_is_no_other_group_of_the_instance() -> None:
    """Before 4.9 containers share client ids; their connections differ."""
    one, other = scale_out(), scale_out(flapping("c1", "elsewhere"))
    assert first_takes(one, "c1", 8) == first_takes(other, "c1", 8)


def test_groups_of_an_instance_have_one_scheduler() -> None:
    """Its polls and heartbeats go on as they did before the second group was started."""
    late = history(*shifted((topic(0, 2, "U", "a"), joins(77_777, "c1"))), **V5)
    first = history(*shifted((topic(0, 2, "T", "a"), joins(0, "c1"))), **V5)
    script = script_of(replace(late, mates=(replace(first, consumer_group="f"),)), EXACT)
    ticks = Ticks(script, np.arange(50), EXACT)
    apart = ticks.timers_start[0] - ticks.mates[0].timers_start[0]
    assert (apart % POLL_US == 0).all()
    assert (ticks.timers_start[0] >= ticks.created[0]).all()
    alone = Ticks(script_of(late, EXACT), np.arange(50), EXACT)
    assert (ticks.pass_length > alone.pass_length).all()
