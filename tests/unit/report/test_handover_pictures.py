"""Pictures of hand-overs: what is read off them, odd rows, the rows of ownership behind them."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from rebalance_core.model.errors import UsageError
from rebalance_core.report import draw_convergence, draw_worst_future
from rebalance_core.report.plots.futures import ownership_of
from rebalance_core.report.plots.style import png_bytes

Row = dict[str, Any]
CHANGE = 1_795_000_000_000


def handover(seed: int = 0, queue_id: int = 0, **given: Any) -> Row:
    """From x to y, given up after 1 s and taken after 3 s, unless said otherwise."""
    row = {
        "consumer_group": "g",
        "seed": seed,
        "change_ms": CHANGE,
        "cause": "CONSUMER_LEAVE",
        "topic": "T",
        "broker_name": "a",
        "queue_id": queue_id,
        "from_client_id": "x",
        "to_client_id": "y",
        "drop_ms": CHANGE + 1_000,
        "start_ms": CHANGE + 3_000,
        "gap_ms": 2_000,
    }
    return row | given


def legend(figure: Any) -> list[str]:
    return [text.get_text() for of in figure.legends for text in of.get_texts()]


def test_half_and_nearly_all_are_reported_of_each_kind() -> None:
    fast = [
        handover(seed, start_ms=CHANGE + 10 * (seed + 1), drop_ms=CHANGE) for seed in range(100)
    ]
    slow = [handover(seed, cause="BROKER_DOWN") for seed in range(100)]
    entries = legend(draw_convergence(slow + fast))
    assert entries == [
        "CONSUMER_LEAVE: half by 0.5 s, 99 % by 1.0 s",
        "BROKER_DOWN: half by 3.0 s, 99 % by 3.0 s",
    ]


def test_the_last_queue_of_a_change_counts_and_nothing_of_the_next_one() -> None:
    rows = [
        handover(queue_id=0),
        handover(queue_id=1, start_ms=CHANGE + 4_000),
        handover(queue_id=2, drop_ms=CHANGE + 60_100),
        handover(change_ms=CHANGE + 60_000, drop_ms=CHANGE + 60_100, start_ms=CHANGE + 60_200),
    ]
    assert legend(draw_convergence(rows)) == ["CONSUMER_LEAVE: half by 0.2 s, 99 % by 4.0 s"]


def test_another_column_may_tell_curves_apart_and_too_many_are_counted() -> None:
    rows = [handover(pace=f"p{n}", start_ms=CHANGE + 1_000 * (n + 1)) for n in range(9)]
    figure = draw_convergence(rows, by="pace")
    assert [text.partition(":")[0] for text in legend(figure)] == [f"p{n}" for n in range(6)]
    assert any("and 3 more" in text.get_text() for text in figure.texts)
    with pytest.raises(UsageError, match="columns missing: pace"):
        draw_convergence([handover()], by="pace")


def test_what_one_queue_went_through() -> None:
    frame = pd.DataFrame(
        [
            handover(),
            handover(
                from_client_id="y",
                to_client_id="z",
                drop_ms=CHANGE + 5_000,
                start_ms=CHANGE + 4_000,
                gap_ms=0,
            ),
        ]
    )
    rows = ownership_of(frame, CHANGE, 0)
    margin = 750  # 15 % of 5 s
    assert [(r["client_id"], r["from_ms"] - CHANGE, r["to_ms"] - CHANGE) for r in rows] == [
        ("x", -margin, 1_000),
        (None, 1_000, 3_000),
        ("y", 3_000, 5_000),
        ("z", 4_000, 5_000 + margin),
    ]


def test_no_owner_before_or_after() -> None:
    frame = pd.DataFrame(
        [
            handover(queue_id=0, from_client_id=None, drop_ms=None),
            handover(queue_id=1, to_client_id=None, start_ms=None),
        ]
    )
    rows = ownership_of(frame, CHANGE, 0)
    assert [(row["queue_id"], row["client_id"]) for row in rows] == [
        (0, None),
        (0, "y"),
        (1, "x"),
        (1, None),
    ]


def test_the_future_with_most_time_without_an_owner_is_drawn() -> None:
    rows = [handover(0), handover(1, from_client_id="worst", gap_ms=9_000), handover(2)]
    figure = draw_worst_future(rows)
    assert any("worst" in text for text in legend(figure))
    with pytest.raises(UsageError, match="shows a single consumer_group"):
        draw_worst_future([handover(), handover(consumer_group="h")])


def test_no_rows_and_the_same_bytes() -> None:
    for draw in (draw_convergence, draw_worst_future):
        assert png_bytes(draw([])) == png_bytes(draw([]))
        assert png_bytes(draw([handover()])) == png_bytes(draw([handover()]))
