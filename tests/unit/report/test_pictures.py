"""Every picture: of nothing, little and very much; its text, and that it is the same again."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.text import Annotation, Text

from rebalance_core.model.errors import UsageError
from rebalance_core.planning import what_if
from rebalance_core.report import (
    draw_league,
    draw_load,
    draw_moves,
    draw_ownership,
    draw_producers,
    draw_rollouts,
    draw_scaling,
    draw_what_if,
    save_picture,
)
from rebalance_core.report.plots.rollouts import RINGS
from rebalance_core.report.plots.style import png_bytes
from tests.unit.report import plotted_fleets
from tests.unit.report.plotted_fleets import client, standing, step

MOST_ARTISTS = 1500
MOST_INCHES = 20
MANY = 5000

Draw = Callable[[], Figure]


def plans(
    consumers: int, queues: int, *changes: dict[str, Any], strategy: str = "AVG"
) -> list[Any]:
    members = [client(number) for number in range(consumers)]
    numbers = {"T": {f"broker-{n}": queues // 4 for n in range(4)}}
    return [what_if(members, numbers, strategy, change) for change in changes]


def many_steps(strategies: int, epochs: int) -> list[dict[str, Any]]:
    return [
        step(f"CONSISTENT_HASH(virtual_nodes={s})", e, 3 + s, 2, of_rocketmq=s % 2 == 0)
        for s in range(strategies)
        for e in range(epochs)
    ]


def summary(plan: int, **more: Any) -> dict[str, Any]:
    both = dict.fromkeys(("members", "queues", "peak_queues", "peak_ratio", "idle"), 2)
    return {
        **plotted_fleets.GROUP,
        "scenario": f"plan-{plan}",
        "strategy": "AVG",
        "of_rocketmq": True,
        "moved": 3,
        "minimum_moves": 2,
        "amplification": 1.5,
        "caveat": None,
        "orphaned_before": 0,
        "orphaned_after": 0,
        **{f"{name}_{when}": n for name, n in both.items() for when in ("before", "after")},
        **more,
    }


def outcome(phase: int, version: int = 3, **more: Any) -> dict[str, Any]:
    return {
        "producer_group": "p",
        "client_version": f"5.3.{version}",
        "fault_tolerance": True,
        "phase": f"brown-out of {'broker' * 30}-{phase}",
        "from_ms": phase * 10**6,
        "to_ms": phase * 10**6 + 180_000,
        "sends": 10**9,
        "failed": 5,
        "held_back": 10**9,
        "peak_queue_ratio": 1000.0,
        **more,
    }


def rollout(number: int, **more: Any) -> dict[str, Any]:
    return {
        "plan_id": f"surge {number}%, unavailable {number}%, pause {number}s, random",
        "consumer_group": None,
        "finish_s_p50": 10.0 + 7 * number,
        "read_again": 10**6 / (1 + number),
        "no_owner_queue_seconds": 5.0,
        "on_front": number % 2 == 0,
        "within_budget": number > 3,
        **more,
    }


EMPTY: dict[str, Draw] = {
    "rollouts": lambda: draw_rollouts([]),
    "moves": lambda: draw_moves([]),
    "load": lambda: draw_load(pd.DataFrame()),
    "ownership": lambda: draw_ownership([]),
    "what_if": lambda: draw_what_if([]),
    "league": lambda: draw_league([]),
    "producers": lambda: draw_producers([]),
}
SMALL: dict[str, Draw] = {
    "moves": lambda: draw_moves([step("AVG", 1, 3, 2), step("STICKY_BALANCED", 1, 2, 2)]),
    "moves without a minimum": lambda: draw_moves([step("AVG", 1, 3, None)]),
    "load": lambda: draw_load(plotted_fleets.consumer_load(5, 3, 2)),
    "load of steps": lambda: draw_load([step("AVG", 1, 3, 2), step("AVG", 2, 1, 1)]),
    "load of one step": lambda: draw_load([step("AVG", 1, 3, 2)]),
    "ownership": lambda: draw_ownership(plotted_fleets.ownership(5, 3, 2)),
    "ownership of one": lambda: draw_ownership(plotted_fleets.ownership(1, 1, 1)),
    "what_if": lambda: draw_what_if(plans(3, 8, {"add_consumers": 2})),
    "what_if of one": lambda: draw_what_if(plans(1, 4, {"remove_consumers": 1})[0]),
    "summary": lambda: draw_what_if([summary(1)]),
    "league": lambda: draw_league([standing("AVG", 3, 1.2)]),
    "producers": lambda: draw_producers([outcome(0)]),
    "rollouts": lambda: draw_rollouts([rollout(1), rollout(2)], rollout(1)["plan_id"]),
    "rollouts with bars": lambda: draw_rollouts(
        [
            rollout(
                n, cost=100.0 - n, finish_s_p5=8.0, finish_s_p95=99.0, cost_p5=50.0, cost_p95=200.0
            )
            for n in range(4, 9)
        ]
    ),
    "rollouts of unknown rates": lambda: draw_rollouts([rollout(4, read_again=None)]),
    "rollouts with a cost": lambda: draw_rollouts([rollout(4, cost=3.5), rollout(5, cost=0.0)]),
    "league that moves nothing": lambda: draw_league([standing("AVG", 0, 1, amplification=None)]),
}
HUGE: dict[str, Draw] = {
    "moves": lambda: draw_moves(many_steps(20, 600)),
    "load": lambda: draw_load(plotted_fleets.consumer_load(MANY, 300, 6)),
    "load of rows": lambda: draw_load(plotted_fleets.consumer_load(60, 40, 20)),
    "load of steps": lambda: draw_load(many_steps(20, 600)),
    "ownership": lambda: draw_ownership(plotted_fleets.ownership(MANY, 300, 6)),
    "ownership at rest": lambda: draw_ownership(plotted_fleets.ownership(MANY, 300, 1)),
    "what_if": lambda: draw_what_if(
        plans(300, MANY, {"add_consumers": 20}, {"strategy": "CONSISTENT_HASH"})
    ),
    "what_if of many": lambda: draw_what_if(plans(12, 8, *[{"add_consumers": 1}] * 30)),
    "summary": lambda: draw_what_if([summary(plan) for plan in range(3000)]),
    "producers": lambda: draw_producers([outcome(n, v) for n in range(40) for v in range(12)]),
    "rollouts": lambda: draw_rollouts([rollout(n) for n in range(2_000)], rollout(0)["plan_id"]),
    "league": lambda: draw_league(
        [
            standing(
                f"CONSISTENT_HASH_BOUNDED(epsilon={n}, virtual_nodes=200)",
                n,
                1 + n,
                of_rocketmq=False,
                idle_members=10**6,
                orphaned=10**6,
            )
            for n in range(60)
        ]
    ),
}
SIZES = {"empty": EMPTY, "small": SMALL, "huge": HUGE}
ALL = [*EMPTY.values(), *SMALL.values(), *HUGE.values()]
NAMES = [f"{size} {name}" for size, draws in SIZES.items() for name in draws]


def texts(figure: Figure) -> str:
    return "\n".join(text.get_text() for text in text_artists(figure))


def text_artists(figure: Figure) -> list[Text]:
    return [artist for artist in figure.findobj(Text) if isinstance(artist, Text)]


@pytest.mark.parametrize("draw", ALL, ids=NAMES)
def test_it_draws_and_stays_small_and_no_text_leaves_the_page(draw: Draw) -> None:
    figure = draw()
    assert png_bytes(figure).startswith(b"\x89PNG")
    assert len(figure.findobj()) <= MOST_ARTISTS
    assert max(figure.get_size_inches()) <= MOST_INCHES
    page = figure.bbox.padded(1)
    for text in text_artists(figure):
        box = text.get_window_extent()
        if text.get_visible() and text.get_text().strip():
            assert page.contains(box.x0, box.y0), text.get_text()
            assert page.contains(box.x1, box.y1), text.get_text()


@pytest.mark.parametrize("draw", EMPTY.values(), ids=EMPTY)
def test_no_data_is_a_sentence(draw: Draw) -> None:
    assert "No " in texts(draw())


@pytest.mark.parametrize("draw", SMALL.values(), ids=SMALL)
def test_the_same_again(draw: Draw) -> None:
    assert png_bytes(draw()) == png_bytes(draw())


def test_moves_say_what_is_compared() -> None:
    said = texts(draw_moves([
        step("AVG", 1, 6, 4), step("AVG", 2, 5, None), step("AVG", 3, 8, 4, orphaned=2),
        step("STICKY_BALANCED", 1, 4, 4, of_rocketmq=False), step("CONSISTENT_HASH", 1, 2, 4),
    ]))  # fmt: skip
    assert "1.50 x fewest" in said
    assert "6 moved, fewest 4\nin 1 of 3" in said
    assert "STICKY_BALANCED\nnot RocketMQ's" in said
    assert "0.50 x fewest" in said
    assert "CONSISTENT_HASH): the minimum refers to a balanced result" in said
    assert "BROADCASTING" in said
    assert "no minimum to compare with" in said


def test_many_strategies_and_rebalances_are_counted() -> None:
    said = texts(draw_moves(many_steps(15, 100)))
    assert "and 3 more strategies" in said
    assert "the mean of up to 3 rebalances" in said


def test_load_marks_idle_and_suspended() -> None:
    said = texts(draw_load(plotted_fleets.consumer_load(2, 4, 2)))
    assert "idle" in said.splitlines()
    assert "1 s" in said.splitlines()
    assert "as RocketMQ sorts them" in said


def test_ownership_names_unowned_and_shared() -> None:
    rows = plotted_fleets.ownership(4, 3, 1).to_dict("records")
    rows[0]["client_id"] = None
    rows.append({**rows[1], "client_id": "other"})
    rows[2]["topic"] = "%RETRY%order-service"
    said = texts(draw_ownership(rows))
    assert "no owner" in said.splitlines()
    assert "A+B: several own it" in said
    assert "RETRY" not in said


def test_of_many_queues_only_those_that_moved() -> None:
    said = texts(draw_ownership(plotted_fleets.ownership(MANY, 300, 6)))
    assert "5,000 queues" in said
    assert "which never changed hands" in said


def test_what_if_marks_idle_consumers() -> None:
    lines = texts(draw_what_if(plans(3, 8, {"add_consumers": 7}))).splitlines()
    assert lines.count("idle") == 2
    assert {"today", "queues moved", "proven fewest"} <= set(lines)
    broadcast = what_if(
        ["a", "b"], {"T": {"b": 2}}, "AVG", {"add_consumers": 1}, message_model="BROADCASTING"
    )
    said = texts(draw_what_if(broadcast))
    assert "n/a" in said.splitlines()
    assert "BROADCASTING" in said


def test_what_if_counts_those_it_leaves_out() -> None:
    plan = plans(300, 5000, {"strategy": "CONSISTENT_HASH"})
    assert "… and 2" in texts(draw_what_if(plan))
    assert "22 more columns" in texts(draw_what_if(plans(3, 8, *[{"add_consumers": 1}] * 30)))


def test_a_summary_has_a_row_for_each_plan() -> None:
    said = texts(
        draw_what_if(
            pd.DataFrame(
                [
                    summary(1),
                    summary(2, of_rocketmq=False, strategy="STICKY_BALANCED", caveat="no member"),
                ]
            )
        )
    )
    assert "STICKY_BALANCED *" in said.splitlines()
    assert "n/a: moved / fewest is not meaningful: no member" in said


def test_the_league_shows_whose_a_strategy_is() -> None:
    figure = draw_league([
        standing("AVG", 3, 1.1), standing("STICKY_BALANCED", 2, 1.1, of_rocketmq=False),
        standing("BROADCAST", 2, 1.1, amplification=None, minimum_moves=None),
        standing("CONSISTENT_HASH", 1, 1.4, idle_members=2),
    ])  # fmt: skip
    said = texts(figure)
    markers = {line.get_marker() for line in figure.axes[0].get_lines()}
    assert {"o", "D"} <= markers
    assert "not RocketMQ's, 2 moved" in said
    assert "2 idle" in said
    assert "BROADCASTING" in said
    assert "the minimum refers to a balanced result" in said


@pytest.mark.parametrize(
    ("draw", "said"),
    [
        (lambda: draw_moves([{"strategy": "AVG", "epoch": 1, "change": 2}]), "change_ms"),
        (lambda: draw_ownership([{"topic": "T"}]), "columns missing: consumer_group"),
        (lambda: draw_league([{"strategy": "AVG"}]), "mean_peak_ratio"),
        (lambda: draw_what_if([{"strategy": "AVG"}]), "members_before"),
        (lambda: draw_producers([{"phase": "healthy"}]), "columns missing: producer_group"),
        (lambda: draw_rollouts([{"plan_id": "one"}]), "columns missing: finish_s_p50"),
        (
            lambda: draw_producers([outcome(0), outcome(0, producer_group="q")]),
            "shows a single producer_group; these rows have 2: p, q",
        ),
        (
            lambda: draw_load(
                pd.concat(
                    [
                        plotted_fleets.consumer_load(3, 2, 1),
                        plotted_fleets.consumer_load(3, 2, 1).assign(consumer_group="other"),
                    ]
                )
            ),
            "shows a single consumer_group; these rows have 2: order-service, other",
        ),
        (lambda: draw_load([step("AVG", 1, 3, 2)] * 2), "an epoch appears twice"),
    ],
)
def test_mistakes(draw: Draw, said: str) -> None:
    with pytest.raises(UsageError) as error:
        draw()
    assert said in str(error.value)


def test_names_from_outside() -> None:
    rows = plotted_fleets.ownership(3, 2, 1)
    rows["client_id"] = ["$x$ \\frac{1}{2} ^_", "消费者-1\u202e\n", "é" * 300]
    rows["topic"] = "$T$_{1}"
    figure = draw_ownership(rows)
    png_bytes(figure)  # a letter that the font lacks would be a warning, and so an error
    assert "\\u6d88" in texts(figure)


def test_rows_may_be_spark_rows() -> None:
    from pyspark.sql import Row

    rows = [Row(**step("AVG", 1, 3, 2))]
    assert png_bytes(draw_moves(rows)) == png_bytes(draw_moves([step("AVG", 1, 3, 2)]))


def test_files_are_the_same_again_whatever_the_callers_style(tmp_path: Path) -> None:
    import matplotlib as mpl

    for name in ("a.svg", "a.png"):
        save_picture(SMALL["ownership"](), tmp_path / name)
    with mpl.rc_context({"font.size": 20, "axes.grid": True, "savefig.dpi": 30}):
        for name in ("b.svg", "b.png"):
            save_picture(SMALL["ownership"](), tmp_path / name)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()


def test_a_notebook_shows_it_without_pyplot() -> None:
    figure: Any = SMALL["league"]()
    assert figure._repr_png_() == png_bytes(figure)


def assert_inside(drawn: LineCollection, axes: Axes) -> None:
    (left, right), (bottom, top) = axes.get_xlim(), axes.get_ylim()
    for segment in drawn.get_segments():
        for x, y in segment.tolist():
            assert left < x < right
            assert bottom <= y <= top


@pytest.mark.parametrize("least_s", [1.0, 0.0])
def test_bars_of_rollouts_lie_within_the_axes(least_s: float) -> None:
    bars = {"finish_s_p5": least_s, "finish_s_p95": 5_000.0, "cost_p5": 0.0, "cost_p95": 400.0}
    rows = [rollout(n, cost=100.0 - 9 * n, **bars) for n in range(3)]
    rows[0] |= {"finish_s_p50": least_s}
    axes = draw_rollouts(rows).axes[0]
    (drawn,) = (each for each in axes.collections if isinstance(each, LineCollection))
    across = drawn.get_segments()[0].tolist()
    assert across[0][0] == max(least_s, 0.1)  # a logarithmic axis has no 0
    assert across[1][0] == 5_000
    assert_inside(drawn, axes)


@pytest.mark.parametrize("first_s", [10.0, 0.0])
def test_names_of_rollouts_stand_beside_their_points_and_hide_none(first_s: float) -> None:
    bars = {"finish_s_p5": 8.0, "finish_s_p95": 99.0, "cost_p5": 50.0, "cost_p95": 200.0}
    rows = [rollout(n, cost=100.0 - 9 * n, **bars) for n in range(10)]
    rows[0] |= {"finish_s_p50": first_s}
    figure = draw_rollouts(rows, rows[0]["plan_id"])
    (axes,) = figure.axes
    names = [text for text in axes.texts if isinstance(text, Annotation)]
    assert len(names) == 5  # the chosen plan and the others of the front
    renderer = figure.canvas.get_renderer()  # type: ignore[attr-defined]  # Agg's
    boxes = []
    for name in names:
        name.update_positions(renderer)
        boxes.append(Text.get_window_extent(name, renderer))
        x, y = axes.transData.transform(name.xy)
        box = boxes[-1]
        away = max(box.x0 - x, x - box.x1, 0.0), max(box.y0 - y, y - box.y1, 0.0)
        assert max(away) <= max(RINGS) * figure.dpi / 72
        assert figure.bbox.x0 <= box.x0 < box.x1 <= figure.bbox.x1
    assert not any(one.overlaps(other) for one, other in combinations(boxes, 2))
    (drawn,) = (each for each in axes.collections if isinstance(each, LineCollection))
    assert len(drawn.get_segments()) == 2 * len(names)
    assert_inside(drawn, axes)
    assert any("5 to 95 %" in text.get_text() for text in figure.texts)
    plain = draw_rollouts([rollout(n, cost=9.0 - n) for n in range(4)])
    assert not any("5 to 95 %" in text.get_text() for text in plain.texts)


def test_policies_under_which_nothing_waits_have_whole_numbers_at_the_left() -> None:
    rows = [
        {"policy": "hpa", "at_ms": at_ms, "lag": 0.0, "replicas": 2, "unowned_queues": 0}
        for at_ms in (1_795_231_712_000, 1_795_231_772_000)
    ]
    for axes in draw_scaling(rows).axes:
        low, high = axes.get_ylim()
        ticks = [tick for tick in axes.get_yticks() if low <= tick <= high]
        assert ticks == sorted({round(tick) for tick in ticks})
        assert len(ticks) > 1
