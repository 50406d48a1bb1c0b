"""Which strategy is best, and the words for it."""

import doctest
from importlib import import_module
from typing import Any

from rebalance_core.planning.movement import best_of, possible


def row(strategy: str, **figures: Any) -> Any:
    of_rocketmq = not strategy.startswith("STICKY")
    none = {"moved": 5, "orphaned": 0, "idle": 0, "frozen": 0, "mean_peak_ratio": 1.0}
    return {"strategy": strategy, "of_rocketmq": of_rocketmq} | none | figures


def test_unread_queues_weigh_more_than_moves() -> None:
    best = best_of([row("MACHINE_ROOM", moved=0, orphaned=3), row("AVG", moved=9)])
    assert best is not None
    assert best.strategy == "AVG"
    assert best.reason == "0 queues without an owner (MACHINE_ROOM: 3)"


def test_of_even_ones_the_one_that_moves_least_wins() -> None:
    rows = [
        row("AVG", moved=9),
        row("CIRCLE", moved=20),
        row("HASH", moved=1, mean_peak_ratio=2.0),
        row("HASH2", moved=7, mean_peak_ratio=1.04),
    ]
    best = best_of(rows)
    assert best is not None
    assert best.strategy == "HASH2"
    assert "HASH: 2.00" in best.reason
    assert "moves the fewest of these, 7 queues (AVG: 9)" in best.reason


def test_equal_ones_are_called_equal_and_no_group_at_all_is_no_failure() -> None:
    best = best_of([row("AVG"), row("recorded")])
    assert best is not None
    assert (best.strategy, best.reason) == ("AVG", "no other strategy does better or worse")
    empty = best_of([row("AVG", mean_peak_ratio=None), row("HASH", mean_peak_ratio=None)])
    assert empty is not None
    assert best_of([row("STICKY_BALANCED")]) is None


def test_what_rocketmq_lacks_is_never_best_but_named() -> None:
    rows = [row("AVG", moved=9), row("STICKY_BALANCED", moved=4)]
    best = best_of(rows)
    assert best is not None
    assert best.strategy == "AVG"
    sentence = possible(rows, best)
    assert sentence is not None
    assert "which RocketMQ lacks, would move 4: 5 fewer" in sentence
    assert possible([rows[0], row("STICKY_BALANCED", moved=4, orphaned=1)], best) is None


def test_the_examples_are_true() -> None:
    assert doctest.testmod(import_module("rebalance_core.planning.movement")) == (0, 6)
