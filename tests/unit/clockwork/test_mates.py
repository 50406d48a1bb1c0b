"""Groups that share client instances: a notice to one runs passes of all."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from rebalance_core.clockwork.batch.play import REGULAR
from rebalance_core.clockwork.mates import MateWakes
from rebalance_core.clockwork.options import ClockOptions
from rebalance_core.clockwork.script_of import script_of
from rebalance_core.clockwork.ticks import BEFORE_ALL, NEVER, Ticks
from rebalance_core.replay.history import GroupHistory
from tests.unit.clockwork.test_batch_equals_loop import (
    AFTER_MS,
    CALM_VERSIONS,
    OPTIONS,
    Tally,
    awake,
    compare,
    quietly,
)
from tests.unit.kernels.random_groups import groups

pytestmark = pytest.mark.unit


def sharing(one: GroupHistory, *others: GroupHistory) -> GroupHistory:
    """The first group, with the other ones in its instances."""
    mates = (replace(each, consumer_group=f"mate-{n}") for n, each in enumerate(others))
    return replace(one, mates=tuple(mates))


def test_loop_and_batch_play_groups_that_share_clients_alike(seed: int) -> None:
    tally, woken = Tally(), Counter[str]()

    def check(
        one: GroupHistory, other: GroupHistory, options: ClockOptions, version: str, after_ms: int
    ) -> None:
        its = awake(one, 0, version, version, mixed=False)
        others = [
            awake(other, after_ms, version, version, mixed=False),
            awake(one, after_ms + 1_234, version, version, mixed=False),  # all of its clients
        ]
        shared = sharing(its, *others)
        compare(shared, options, tally)
        ticks = Ticks(script_of(shared, options), np.arange(1), options)
        woken["wakes"] += len(list(MateWakes(ticks).between(BEFORE_ALL, NEVER)))

    quietly(check, 40, seed, groups(), groups(), OPTIONS, CALM_VERSIONS, AFTER_MS)
    assert tally.reasons[REGULAR] > 10
    assert tally.rows > 40
    assert woken["wakes"] > 200
