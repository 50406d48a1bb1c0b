"""Bounds of the timestamp search, also against a broker written down message by message."""

import bisect
import random

import pytest

from rebalance_core.protocol.timestamp_search import timestamp_search_bounds

# (observed_ms, min_offset, max_offset)
SEEN = [(300, 5, 30), (100, 0, 10), (200, 5, 20)]


@pytest.mark.parametrize(
    ("timestamp", "old", "new"),
    [
        (50, (5, 10), (5, 10)),  # before everything: from min on
        (150, (9, 20), (10, 20)),
        (200, (9, 20), (10, 20)),  # an observation at the timestamp bounds from above
        (250, (19, 30), (20, 30)),
        (301, (29, None), (30, None)),  # the future: max - 1 before 5.1.1, max since
    ],
)
def test_observations_before_and_after_enclose_the_answer(
    timestamp: int, old: tuple[int, int | None], new: tuple[int, int | None]
) -> None:
    assert timestamp_search_bounds(SEEN, timestamp, searched_ms=999, version="5.1.0") == old
    assert timestamp_search_bounds(SEEN, timestamp, searched_ms=999, version="5.1.1") == new


def test_both_bounds_are_at_least_the_newest_min_known_at_the_search() -> None:
    seen = [(100, 0, 10), (200, 0, 20), (900, 40, 50)]
    assert timestamp_search_bounds(seen, 150, searched_ms=950, version="5.3") == (40, 40)
    assert timestamp_search_bounds(seen, 150, searched_ms=899, version="5.3") == (10, 20)
    assert timestamp_search_bounds([(900, 3, 9)], 150, searched_ms=200, version="5.3") == (3, 9)


def test_nothing_seen_bounds_nothing() -> None:
    assert timestamp_search_bounds([], 150, searched_ms=200, version="5.3") == (0, None)


def lower_bound(stored: list[int], timestamp: int) -> int:
    return bisect.bisect_left(stored, timestamp)


def nearest(stored: list[int], timestamp: int) -> int:
    if not stored:
        return 0
    return min(range(len(stored)), key=lambda i: (abs(stored[i] - timestamp), i))


@pytest.mark.parametrize("seed", range(200))
def test_the_answer_of_a_broker_lies_between_the_bounds(seed: int) -> None:
    draw = random.Random(seed)
    stored = sorted(draw.randrange(1000) for _ in range(draw.randrange(60)))
    moments = sorted(draw.sample(range(1001), draw.randrange(1, 8)))
    seen = [(moment, 0, bisect.bisect_right(stored, moment)) for moment in moments]
    timestamp = draw.randrange(1001)
    for version, search in (("4.9.7", nearest), ("5.3.3", lower_bound)):
        low, high = timestamp_search_bounds(seen, timestamp, searched_ms=2000, version=version)
        answer = search(stored, timestamp)
        assert low <= answer, (seed, version)
        assert high is None or answer <= high, (seed, version)
