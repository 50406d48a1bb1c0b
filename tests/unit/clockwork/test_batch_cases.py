"""Groups in which the batch and the plain loop once differed."""

import numpy as np
import pytest

from rebalance_core.clockwork.batch import play_seeds, reason_of
from rebalance_core.clockwork.batch.reasons import REGULAR
from rebalance_core.clockwork.loop.play import play_seeds_one_by_one
from rebalance_core.clockwork.options import RANDOM_PHASES, ClockOptions
from rebalance_core.clockwork.script import Script
from rebalance_core.clockwork.stretches import stretches_of
from rebalance_core.clockwork.ticks import Ticks
from rebalance_core.model.events import OBSERVED
from tests.unit.clockwork.futures import EXACT, SECOND, joins, ms, rows_of, story
from tests.unit.replay.histories import event, topic

pytestmark = pytest.mark.unit

OBSERVED_X = (topic(0, 4, detail=OBSERVED), joins(0, "x", detail=OBSERVED))


def alike(
    script: Script, options: ClockOptions = EXACT, first: int = 0, seeds: int = 30
) -> list[tuple[int, ...]]:
    """The rows of futures that both engines agree on."""
    assert reason_of(script) == REGULAR
    wanted = np.arange(first, first + seeds)
    played = rows_of(play_seeds(script, wanted, options))
    assert played == rows_of(play_seeds_one_by_one(script, wanted.tolist(), options))
    assert len({row[0] for row in played}) == seeds
    return played


def test_an_orderly_pass_that_knows_no_route_sends_a_heartbeat_whatever_else_it_does() -> None:
    script = story(
        topic(0, 3), topic(0, 4, broker="b"), topic(0, 4, "U"),
        joins(1_001, "z"),
        event(3_000, "BROKER_DOWN", broker_name="a"),
        joins(8_000, "y"),  # for whom topic U does not exist
        event(8_001, "BROKER_UP", broker_name="a"),
        subscriptions=("T", "U"), ordered=True, client_version="5.1",
    )  # fmt: skip
    alike(script)


def test_a_pass_due_just_before_a_stretch_begins_with_it() -> None:
    options = ClockOptions(exact_times=True, phases=RANDOM_PHASES)
    script = story(topic(0, 3, detail=OBSERVED), joins(600_000, "x"), options=options)
    number, begin_us = 5431, script.begin_us
    ticks = Ticks(script, np.array([number]), options)
    for_us = begin_us - int(ticks.created[0, 0])
    assert 20 * SECOND <= for_us < 20 * SECOND + int(ticks.pass_length[0, 0])
    alike(script, options, number, 1)


def test_who_joins_right_after_the_first_change_is_told_to_those_who_were_there() -> None:
    script = story(*OBSERVED_X, topic(100_000, 6), joins(100_005, "z"))
    (stretch,) = stretches_of(script)
    assert ms(stretch.begin_us) == 100_005 - 1_000
    drops: dict[int, float] = {}
    for future, life, _, at_us, delta in alike(script):
        if delta < 0 and script.lives[life].client_id == "x":
            drops.setdefault(future, ms(at_us))
    assert len(drops) == 30
    assert max(drops.values()) < 101_600
