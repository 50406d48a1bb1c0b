"""Jumping over sends gives what walking through each of them gives, to the last count."""

from random import Random

import pytest

from rebalance_core.model.queue import MessageQueue
from rebalance_core.producers.latencies import FixedLatency
from rebalance_core.producers.model import BrownOut, Outage
from rebalance_core.producers.producer_run import run_producer
from rebalance_core.producers.send_record import SendRecord
from rebalance_core.producers.tally import Tally
from rebalance_core.producers.thread import SendingThread
from tests.unit.producers.models import model, random_model, variant, walk

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


class Walks:
    """Counts the sends that are walked through."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.number = 0
        send_at = SendingThread.send_at

        def counted(thread: SendingThread, tick: int) -> tuple[SendRecord, int]:
            self.number += 1
            return send_at(thread, tick)

        monkeypatch.setattr(SendingThread, "send_at", counted)


REFUSED = Outage("broker-b", 10_000, 50_000, stays_in_route=True)
SILENT = Outage("broker-b", 10_000, 50_000, "timeout", stays_in_route=True)
SLOW = BrownOut("broker-b", 10_000, 50_000, FixedLatency(700))


@pytest.mark.parametrize("disturbance", [REFUSED, SILENT, SLOW], ids=["refused", "silent", "slow"])
@pytest.mark.parametrize("version", ["4.9.8", "5.3.3"])
@pytest.mark.parametrize("fault_tolerance", [True, False])
def test_walks_do_not_grow_with_the_pace(
    disturbance: Outage | BrownOut,
    version: str,
    fault_tolerance: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    walks, its = Walks(monkeypatch), variant(version, fault_tolerance)
    counted = []
    for rate in (100, 1000):
        world = model(disturbance, rate=rate)
        before = walks.number
        tally = run_producer(world, world.groups[0], 0, its, choices=True)
        counted.append(walks.number - before)
        assert sum(phase.sends + phase.held_back for phase in tally.phases) >= 59 * rate
    assert counted[1] <= 1.5 * counted[0] + 10


def test_rounds_of_refused_sends_are_what_the_walk_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    walks = Walks(monkeypatch)
    for version in VERSIONS:
        for seed in range(4):
            errors = BrownOut("broker-c", 20_000, 40_000, FixedLatency(3), errors=0.001)
            world, its = model(REFUSED, errors, rate=200, seed=seed), variant(version, False)
            before = walks.number
            jumped = run_producer(world, world.groups[0], 0, its, choices=True)
            assert walks.number - before < 2000  # of 8,000 while the broker refuses
            walked = walk(world, its)
            assert jumped.phases == walked.phases
            assert choices_of(jumped) == attempts_of(walked)
