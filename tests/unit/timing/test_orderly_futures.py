"""Locks that cannot meet are asked for at once: the futures of the reference, in few rounds."""

import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from rebalance_core.model.events import Event
from rebalance_core.timing.group_timeline import GroupTimeline
from rebalance_core.timing.options import PHASES, ClockOptions
from rebalance_core.timing.reference.play import play_seeds_one_by_one
from rebalance_core.timing.vectorized import play_seeds, reason_of
from rebalance_core.timing.vectorized.orderly_passes import OrderlyPasses
from rebalance_core.timing.vectorized.reference_only import REGULAR
from tests.unit.replay.histories import event, topic
from tests.unit.timing.futures import happens, joins, rows_of, story

VERSIONS = (
    ("4.9.7",), ("5.0.0",), ("5.1.4",), ("5.3.3",), ("5.5.0",), ("4.9.7", "5.1.4"),
    ("5.1.4", "5.3.3"), ("4.9.7", "5.0.0", "5.3.3"),
)  # fmt: skip
"""Refused locks are asked for again after 0.5 s (5.0, 5.1), 1 s (from 5.2 on) or 20 s."""
PAUSES_MS = (0, 1, 40, 300, 900, 2_000, 5_500, 12_000, 21_000, 35_000, 62_000, 250_000)
BACK_AFTER_MS = (100, 700, 3_000, 15_000)


class Rounds:
    """What of a run was batched."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.rounds = self.together = self.in_vain = 0
        ask, retry = OrderlyPasses.ask_for_locks, OrderlyPasses.retry_in_vain

        def counted_ask(passes: OrderlyPasses, who: np.ndarray) -> Any:
            seeds = passes._elements.seed[who]
            self.rounds += 1
            self.together += len(seeds) - len(np.unique(seeds))
            return ask(passes, who)

        def counted_retry(passes: OrderlyPasses, who: np.ndarray, until_us: np.ndarray) -> None:
            before = passes._elements.number[who]
            retry(passes, who, until_us)
            self.in_vain += int((passes._elements.number[who] - before).sum())

        monkeypatch.setattr(OrderlyPasses, "ask_for_locks", counted_ask)
        monkeypatch.setattr(OrderlyPasses, "retry_in_vain", counted_retry)


def random_events(dice: random.Random, versions: tuple[str, ...]) -> Iterator[Event]:
    """A few members that come, go, die and come back under their old id, and brokers too."""
    brokers = "abc"[: dice.randint(1, 3)]
    for broker in brokers:
        yield topic(0, dice.randint(1, 5), broker=broker, detail="OBSERVED")
    there: dict[str, str] = {}
    away: set[tuple[str, str]] = set()
    for name in "uvwxyz"[: dice.randint(2, 6)]:
        there[name] = f"{name}/0"
        yield joins(0, name, there[name], detail="OBSERVED", version=dice.choice(versions))
    at_ms = dice.choice((60_123, 310_000))
    for number in range(dice.randint(3, 9)):
        at_ms += dice.choice(PAUSES_MS)
        kind, new = dice.random(), f"n{number}"
        if kind < 0.55 and there:
            name = dice.choice(sorted(there))
            what = "CONSUMER_LEAVE" if kind < 0.3 else "CONSUMER_LOST"
            yield happens(at_ms, what, name, there.pop(name))
            if dice.random() < 0.5:
                back = dice.choice((name, new))
                there[back] = f"{back}/{number + 1}"
                after_ms = dice.choice(BACK_AFTER_MS)
                yield joins(at_ms + after_ms, back, there[back], version=dice.choice(versions))
        elif kind < 0.75:
            there[new] = f"{new}/0"
            yield joins(at_ms, new, there[new], version=dice.choice(versions))
        elif kind < 0.9:
            broker = dice.choice(brokers)
            part = "BROKER" if len(brokers) > 1 and kind < 0.85 else "MASTER"
            yield event(
                at_ms, f"{part}_{'UP' if (part, broker) in away else 'DOWN'}", broker_name=broker
            )
            away ^= {(part, broker)}
        else:
            yield topic(at_ms, dice.randint(1, 7), broker=dice.choice(brokers))


def random_timeline(dice: random.Random) -> tuple[GroupTimeline, ClockOptions]:
    options = ClockOptions(
        phases=dice.choice(PHASES),
        exact_times=dice.random() < 0.5,
        lost_notices=dice.choice((0, 0, 0.3)),
        late_share=dice.choice((0, 0, 0.5)),
        late_ms=20_000,
    )
    versions = dice.choice(VERSIONS)
    broker = dice.choice(("4.9.7", "5.1.4", "5.3.3"))
    its = {"ordered": True, "client_version": versions[0], "broker_version": broker}
    return story(*random_events(dice, versions), options=options, **its), options


def test_random_orderly_groups_have_the_log_of_the_loop(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted = Rounds(monkeypatch)
    for number in range(12):
        timeline, options = random_timeline(random.Random(f"{seed} {number}"))
        assert reason_of(timeline) == REGULAR
        seeds = range(3)
        found = rows_of(play_seeds(timeline, seeds, options))
        assert found == rows_of(play_seeds_one_by_one(timeline, seeds, options)), (seed, number)
    assert counted.in_vain > counted.rounds
    assert counted.together


@pytest.mark.parametrize("version", ["4.9.7", "5.0.0", "5.1.4", "5.3.3"])
def test_a_dead_members_locks_are_waited_for_in_few_rounds(
    version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For 60 s all that it had are asked for in vain."""
    counted = Rounds(monkeypatch)
    members = [joins(0, f"c{n}", detail="OBSERVED") for n in range(8)]
    lost = happens(100_300, "CONSUMER_LOST", "c0")
    its: dict[str, Any] = {"ordered": True, "client_version": version, "broker_version": "5.3.3"}
    timeline = story(topic(0, 24, detail="OBSERVED"), *members, lost, **its)
    options = ClockOptions(exact_times=True)
    found = rows_of(play_seeds(timeline, range(6), options))
    assert found == rows_of(play_seeds_one_by_one(timeline, range(6), options))
    assert max(at_us for *_, at_us, delta in found if delta > 0) > (timeline.begin_us + 55_000_000)
    assert counted.rounds < 10
    assert counted.in_vain > (counted.rounds if version == "4.9.7" else 10 * counted.rounds)
