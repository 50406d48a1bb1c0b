"""Where new owners start, for every mode, consumer type, broker version and page cache."""

from bisect import bisect_left, bisect_right
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rebalance_core.kernels.segments import bisect, pointers
from rebalance_core.kernels.starts.lookups import pick
from rebalance_core.kernels.starts.starts import RULES
from rebalance_core.model.queue import retry_topic
from rebalance_core.replay.history import GroupHistory, QueueOffset
from tests.unit.kernels.fleets import assert_equal, build, kernel_rows, reasons_of, replay_rows
from tests.unit.kernels.hypothesis_settings import RANDOM
from tests.unit.kernels.random_steps import MODES
from tests.unit.replay.histories import commit, history, join, leave, queue, topic

# (observed_ms, min, max); a0-a2 are new at 10 s, a3-a7 at 100 s with a window until 153 s
SEEN = {
    "a0": ((5_000, 3, 4), (9_000, 3, 7), (12_000, 4, 9), (50_000, 5, 9), (90_000, 5, 12)),
    "a1": ((5_000, 0, 0), (10_000, 0, 4), (300_000, 2, 20)),
    "a3": ((20_000, 2, 3), (90_000, 2, 8), (100_000, 3, 8), (120_000, 6, 15), (160_000, 9, 18)),
    "a4": ((90_000, 0, 5), (110_000, 0, 6), (153_000, 1, 7), (153_001, 2, 8)),
    "a5": ((90_000, 4, 5), (110_000, 0, 6), (170_000, 0, 0)),
    "a6": ((100_001, 0, 5),),
    "%RETRY%g/a0": ((5_000, 1, 3), (50_000, 1, 6)),
}
COMMITTED = [
    commit("a1", 55_000, 2, "y"),
    commit("a1", 61_000, 8, "y"),
    commit("a1", 261_000, 5, "y"),
    commit("a2", 11_000, 3, "x"),
    commit("a2", 61_500, 1, "y"),
    commit("a2", 120_000, 6, "x"),
    commit("a3", 105_000, 4, "y"),
    commit("a3", 262_000, 9, "y"),
    commit("a7", 100_500, 6, "y"),
]
MODELS = ("CLUSTERING", "BROADCASTING")
TIMESTAMPS = (None, 0, 5_000, 9_001, 20_001, 90_000, 100_000, 115_000, 153_000, 10**7)


CACHED = ((None,), (False,), (True, False))
"""In turn, from observation to observation."""
VERSIONS = ("4.9.3", "4.9.4", "5.1.0", "5.1.1")


def group(number: int, cached: tuple[bool | None, ...], **settings: Any) -> GroupHistory:
    """A group of this number; its retry queue is observed when the number is odd."""
    name = f"g{number}"
    offsets = []
    for text, rows in SEEN.items():
        where = queue(text)
        if where.topic != "T":
            where = where._replace(topic=retry_topic(name) if number % 2 else "other")
        for turn, row in enumerate(rows):
            offsets.append(QueueOffset(where, *row, cached[turn % len(cached)]))
    made = history(
        topic(0, 3),
        join(10_000, "x"),
        join(60_000, "y"),
        topic(100_000, 8),
        leave(200_000, "x"),
        leave(250_000, "y"),
        join(260_000, "y"),
        offsets=offsets,
        commits=COMMITTED,
        **settings,
    )
    return replace(made, consumer_group=name)


def fleet() -> list[GroupHistory]:
    """One group for everything that may be said together."""
    modes = product(MODES, ("PUSH", "LITE_PULL", "PULL"), MODELS, VERSIONS, CACHED, (None,))
    timestamps = product(
        ("CONSUME_FROM_TIMESTAMP",), ("PUSH",), MODELS, VERSIONS, CACHED, TIMESTAMPS
    )
    return [
        group(
            number,
            cached,
            consume_from_where=mode,
            consumer_type=kind,
            message_model=model,
            broker_version=version,
            consume_timestamp_ms=timestamp_ms,
        )
        for number, (mode, kind, model, version, cached, timestamp_ms) in enumerate(
            (*modes, *timestamps)
        )
    ]


def test_every_start_is_that_of_the_replay() -> None:
    groups = fleet()
    prepared = build(groups)
    assert set(reasons_of(prepared).values()) == {"REGULAR"}
    kernels = kernel_rows(prepared, ("pull_starts",))
    assert_equal(kernels, replay_rows(groups))
    assert {row["rule"] for row in kernels["pull_starts"]} == {*RULES, None}


SEGMENTS = st.lists(st.lists(st.integers(0, 9), max_size=6).map(sorted), min_size=1, max_size=4)


@RANDOM
@given(SEGMENTS, st.data())
def test_bisect_of_many_is_that_of_each(segments: list[list[int]], data: st.DataObject) -> None:
    asked = data.draw(st.lists(st.tuples(st.integers(0, len(segments) - 1), st.integers(-1, 10))))
    values = np.array([value for s in segments for value in s], np.int64)
    bounds = pointers(np.array([len(s) for s in segments], np.int64))
    of = np.array([segment for segment, _ in asked], np.int64)
    wanted = np.array([value for _, value in asked], np.int64)
    for right, plain in ((False, bisect_left), (True, bisect_right)):
        found = bisect(values, bounds[:-1][of], bounds[1:][of], wanted, right=right)
        expected = [plain(segments[segment], value) for segment, value in asked]
        assert (found - bounds[:-1][of]).tolist() == expected


def test_bisect_changes_none_of_its_arguments() -> None:
    low, high = np.array([0]), np.array([3])
    assert bisect(np.array([1, 2, 3]), low, high, np.array([2]), right=True).tolist() == [2]
    assert (low.tolist(), high.tolist()) == ([0], [3])


def test_pick_has_nothing_where_there_is_no_row() -> None:
    assert pick(np.array([7, 8]), np.array([1, -1, 0])).tolist() == [8, -1, 7]
    assert pick(np.zeros(0, np.int64), np.array([-1])).tolist() == [-1]
