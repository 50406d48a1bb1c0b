"""Convergence, orphan and double time: by hand, and against a walk through every millisecond."""

import random
from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from rebalance_core.contracts.propagation import PROPAGATION
from rebalance_core.model import events
from rebalance_core.model.group_settings import GroupSettings
from rebalance_core.timing.ownership_log import OwnershipLog
from rebalance_core.timing.propagation_parts import propagation
from tests.unit.timing.hand_made import T0, Group, two_members, written


def rows(*partials: pa.Table) -> list[dict[str, Any]]:
    made = propagation(partials)
    assert made.schema == PROPAGATION.arrow_schema()
    return list(made.to_pylist())


def test_one_queue_without_an_owner_and_one_with_two() -> None:
    made = two_members().measured(
        (0, "c1", 2, 7, -1), (0, "c2", 2, 707, 1), (0, "c2", 3, 707, 1), (0, "c1", 3, 1_007, -1)
    )
    (row,) = rows(made.partial)
    assert [row[f"convergence_ms_{name}"] for name in ("p50", "p95", "p99", "max")] == [1_007] * 4
    assert [row[f"gap_ms_{name}"] for name in ("p50", "p95", "p99", "max")] == [0, 700, 700, 700]
    assert (row["orphan_queue_seconds"], row["double_queue_seconds"]) == (0.7, 0.3)
    assert (row["change_ms"], row["cause"]) == (T0, "CONSUMER_JOIN")
    assert row["read_again"] is None


def test_nothing_moves() -> None:
    (row,) = rows(two_members().measured(seeds=5).partial)
    numbers = {name: row[name] for name in PROPAGATION.column_names[4:-2]}
    assert row["extrapolated"] is None
    assert set(numbers.values()) == {0}


def test_what_is_done_before_the_change_takes_no_time() -> None:
    (row,) = rows(two_members().measured((0, "c1", 2, -30, -1), (0, "c2", 2, -10, 1)).partial)
    assert (row["convergence_ms_max"], row["orphan_queue_seconds"]) == (0, 0)


def test_a_queue_taken_just_before_a_join_is_logged_has_its_owner_from_then_on() -> None:
    group = two_members()
    group.consumer(-2_100, events.CONSUMER_LEAVE, "c0")
    group.there("c0")
    leave, join = rows(group.measured((0, "c1", 2, -2_100, -1), (0, "c2", 2, -900, 1)).partial)
    assert (leave["cause"], join["cause"]) == ("CONSUMER_LEAVE", "CONSUMER_JOIN")
    assert (leave["orphan_queue_seconds"], join["orphan_queue_seconds"]) == (1.2, 0.0)


@pytest.mark.parametrize(
    ("topic_at", "early", "convergence"),
    [
        (90_000, 3_000, [0, 0]),  # logged after its effect
        (90_000, 3_700, [86_300, 0]),  # too early for that
        (63_000, 3_000, [0, 0]),
        (61_000, 2_000, [59_000, 0]),  # the join may still be at work
    ],
)
def test_what_members_do_before_a_topics_change_is_logged(
    topic_at: int, early: int, convergence: list[int]
) -> None:
    group = two_members()
    group.topic(topic_at, 5)
    made = group.measured((0, "c1", 4, topic_at - early, 1))
    assert [row["convergence_ms_max"] for row in rows(made.partial)] == convergence


def test_a_queue_that_stays_alone_counts_as_long_as_the_change_is_followed() -> None:
    made = two_members().measured((0, "c1", 2, 0, -1), (0, "c1", 3, 0, -1), (0, "c2", 3, 4_000, 1))
    (row,) = rows(made.partial)
    assert row["orphan_queue_seconds"] == 240 + 4


def test_queues_of_a_broker_that_is_down_have_no_owner() -> None:
    group = Group()
    group.there("c1")
    group.topic(-100_000, 2, "a", observed=True)
    group.topic(-100_000, 3, "b", observed=True)
    group.broker(0, events.BROKER_DOWN, "b")
    group.broker(60_000, events.BROKER_UP, "b")
    drops = [(0, "c1", queue, 25_000, -1) for queue in (2, 3, 4)]
    adds = [(0, "c1", queue, 80_000 + queue, 1) for queue in (2, 3, 4)]
    down, up = rows(group.measured(*drops, *adds).partial)
    assert (down["orphan_queue_seconds"], down["convergence_ms_max"]) == (0, 25_000)
    assert up["orphan_queue_seconds"] == pytest.approx(60.009)


def test_topics_that_no_member_reads_any_more_have_no_owner() -> None:
    group = Group()
    group.there("c1")
    group.topic(-100_000, 2, observed=True)
    group._add(0, events.UNSUBSCRIBE, client_id="c1", channel_id="c1", topic="T")
    made = group.measured((0, "c1", 0, 4_000, -1), (0, "c1", 1, 5_000, -1))
    assert rows(made.partial)[0]["orphan_queue_seconds"] == 0
    assert made.handovers["gap_ms"].to_pylist() == [0, 0]


def test_messages_are_summed_before_they_are_rounded() -> None:
    group = two_members()
    group.queue_offsets = (written(2, -50_000, 0), written(2, 50_000, 100))
    takes = [(seed, "c2", 2, 700, 1) for seed in range(2)]
    drops = [(seed, "c1", 2, 1_100, -1) for seed in range(2)]
    group.settings = GroupSettings(subscriptions=("T",), ordered=True)
    made = group.measured(*takes, *drops, seeds=4)
    assert made.handovers["read_again"].to_pylist() == [0, 0]
    assert rows(made.partial)[0]["read_again"] == 0.2


def test_quantiles_are_by_nearest_rank() -> None:
    log = [(seed, "c1", 2, seed + 1, -1) for seed in range(200)]
    (row,) = rows(two_members().measured(*log, seeds=200).partial)
    assert [row[f"convergence_ms_{name}"] for name in ("p50", "p95", "p99", "max")] == [
        100,
        190,
        198,
        200,
    ]


def rolling() -> Group:
    """Two members; brokers, queues and members come and go."""
    group = Group()
    group.there("c1", "c2")
    group.topic(-100_000, 2, "a", observed=True)
    group.topic(-100_000, 2, "b", observed=True)
    group.consumer(0, events.CONSUMER_JOIN, "c3")
    group.broker(700, events.BROKER_DOWN, "b")
    group.broker(1_500, events.BROKER_UP, "b")
    group.topic(2_500, 3, "a")
    group.consumer(3_000, events.CONSUMER_LOST, "c1")
    return group


def random_log(group: Group, chance: random.Random, seeds: int) -> OwnershipLog:
    """Owners who come and go at random, at times that no two of them share."""
    timeline = group.timeline()
    drawn = []
    for seed in range(seeds):
        held = {
            (lifetime, queue)
            for lifetime, queues in enumerate(timeline.initial)
            for queue in queues
        }
        for ms in sorted(chance.sample(range(4_000), 60)):
            cell = chance.randrange(3), chance.randrange(len(timeline.queues))
            held ^= {cell}
            client = timeline.lifetimes[cell[0]].client_id
            drawn.append((seed, client, cell[1], ms, 1 if cell in held else -1))
    return group.log(*drawn)


def naive(group: Group, log: OwnershipLog, seed: int) -> list[tuple[int, int, int]]:
    """(convergence, orphan, double) of each change, looking at every millisecond."""
    timeline = group.timeline()
    names = {(queue.broker_name, queue.queue_id): n for n, queue in enumerate(timeline.queues)}
    a, b = [names["a", n] for n in range(3)], [names["b", n] for n in range(2)]
    readable = {
        0: {*a[:2], *b},
        700: {*a[:2]},
        1_500: {*a[:2], *b},
        2_500: {*a, *b},
        3_000: {*a, *b},
    }
    rows = [
        (int(log.at_us[n]) // 1_000 - T0, int(log.queue[n]), int(log.delta[n]))
        for n in range(len(log))
        if log.seed[n] == seed
    ]
    starts = list(readable)
    begins = [change.begin_us // 1_000 - T0 for change in timeline.changes]
    found = []
    for number, start in enumerate(starts):
        end = begins[number + 1] if number + 1 < len(begins) else 10**9
        mine = [at for at, _, _ in rows if begins[number] <= at < end]
        over = max([at - start for at in mine], default=0)
        until = starts[number + 1] if number + 1 < len(starts) else start + 240_000
        calm = min(until, max((at for at, _, _ in rows), default=start) + 1)
        orphan = double = 0
        for ms in range(start, calm + 1):
            owners = Counter(q for held in timeline.initial for q in held)
            for at, queue, delta in rows:
                if at <= ms:
                    owners[queue] += delta
            alone = sum(owners[queue] == 0 for queue in readable[start])
            more = sum(max(0, owners[queue] - 1) for queue in readable[start])
            rest = 1 if ms < calm else until - calm
            orphan, double = orphan + alone * rest, double + more * rest
        found.append((max(0, over), orphan, double))
    return found


@pytest.mark.parametrize("number", range(3))
def test_times_are_those_of_a_walk(number: int) -> None:
    group = rolling()
    log = random_log(group, random.Random(number), 2)
    expected = [naive(group, log, seed) for seed in range(2)]
    for change, row in enumerate(group.measured_log(log, 2).partial.to_pylist()):
        walked = np.array([of_seed[change] for of_seed in expected])
        listed = np.repeat(row["convergence_ms"], row["convergence_seeds"])
        assert sorted(walked[:, 0]) == listed.tolist()
        assert row["orphan_queue_ms"] == walked[:, 1].sum()
        assert row["double_queue_ms"] == walked[:, 2].sum()


@pytest.mark.parametrize("cuts", [[], [1], [7, 8, 30], list(range(1, 40))])
def test_any_split_of_the_seeds_gives_the_same(cuts: list[int]) -> None:
    group, seeds = rolling(), 40
    group.queue_offsets = tuple(written(n, at, 37 * at) for n in range(3) for at in (0, 9_000))
    log = random_log(group, random.Random(5), seeds)
    whole = group.measured_log(log, seeds, kept=9)
    parts = []
    for begin, end in zip([0, *cuts], [*cuts, seeds], strict=True):
        mine = log.take(np.flatnonzero((log.seed >= begin) & (log.seed < end)))
        moved = OwnershipLog(mine.seed - begin, mine.lifetime, mine.queue, mine.at_us, mine.delta)
        parts.append(group.measured_log(moved, end - begin, begin, kept=9))
    assert rows(whole.partial) == rows(*(part.partial for part in reversed(parts)))
    assert pa.concat_tables([part.handovers for part in parts]).equals(whole.handovers)
    assert set(whole.handovers["seed"].to_pylist()) == set(range(9))
