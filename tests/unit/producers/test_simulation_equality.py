"""Jumping over sends gives what walking through each of them gives, to the last count."""

from random import Random

import pytest

from rebalance_core.model.queue import MessageQueue
from rebalance_core.producers.simulation.producer_run import run_producer
from rebalance_core.producers.simulation.tally import Tally
from tests.unit.producers.models import random_model, variant, walk

pytestmark = pytest.mark.unit

VERSIONS = ("4.9.3", "4.9.7", "4.9.8", "5.0.0", "5.1.3", "5.1.4", "5.3.3")


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("fault_tolerance", [True, False])
def test_the_jumps_equal_the_walk(seed: int, version: str, fault_tolerance: bool) -> None:
    random, its = Random(f"{seed} {version} {fault_tolerance}"), variant(version, fault_tolerance)
    for _ in range(30):
        world = random_model(random)
        jumped = run_producer(world, world.groups[0], 0, its, choices=True)
        walked = walk(world, its)
        assert jumped.phases == walked.phases, world
        assert jumped.isolations == walked.isolations, world
        assert choices_of(jumped) == attempts_of(walked), world


def choices_of(tally: Tally) -> dict[tuple[str, int], int]:
    total: dict[tuple[str, int], int] = {}
    for choice in tally.choices:
        assert choice.from_ms < choice.to_ms
        key = choice.broker_name, choice.queue_id
        total[key] = total.get(key, 0) + choice.sends
    return total


def attempts_of(tally: Tally) -> dict[tuple[str, int], int]:
    total: dict[tuple[str, int], int] = {}
    for phase in tally.phases:
        for queue, attempts in phase.attempts.items():
            assert isinstance(queue, MessageQueue)
            key = queue.broker_name, queue.queue_id
            total[key] = total.get(key, 0) + attempts
    return total
