"""Compares deployment plans: how long each takes, and what it costs meanwhile."""

from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import NullLocator

from rebalance_core.report.plots import letters, plot_rows, style
from rebalance_core.report.plots.plot_rows import PlotRows
from rebalance_core.report.plots.strategy_points import DOTS, name_beside, spread

TITLE = "How long a rollout takes, and what it costs"
COLUMNS = ("plan_id", "finish_s_p50", "no_owner_queue_seconds", "on_front", "within_budget")
DEFAULTS = {"read_again": None, "cost": None, "consumer_group": None, "futures": None}
WHAT = {
    "cost": "cost",
    "read_again": "messages read again",
    "no_owner_queue_seconds": "queue-seconds without an owner",
}
"""The vertical axis shows the first of these that is known for every plan."""
LEFT, ACROSS, HIGH, RIGHT = 0.85, 4.9, 3.6, 4.3
LABEL = 0.36
MOST_NAMED = 10
CHOSEN, DEFAULT_PLAN, FRONT, OTHER = "*", "s", "o", "."


@style.styled
def draw_rollouts(plans: PlotRows, chosen: str | None = None, default: str | None = None) -> Figure:
    """Draw the seconds until the last queue has moved against the cost.

    Plans of the front are circles along a line, others dots; a plan beyond the budgets is hollow.
    The chosen plan is a star, the default of Kubernetes a square.

    Args:
        plans: Rows of `rollout_plans`, of which those for all groups together are drawn.
        chosen: The recommended ``plan_id``, if any.
        default: The ``plan_id`` of Kubernetes' default; None leaves it unmarked.

    Raises:
        UsageError: Columns are missing.
    """
    frame = plot_rows.table(plans, COLUMNS, DEFAULTS)
    frame = frame[frame["consumer_group"].isna()]
    if frame.empty:
        return style.nothing_to_draw(TITLE, "No plan.")
    column = next(name for name in WHAT if frame[name].notna().all())
    marks = {default: DEFAULT_PLAN, chosen: CHOSEN}
    high = max(HIGH, LABEL * MOST_NAMED)
    subtitle = f"{len(frame):,} plans; best is bottom left"
    feet = ["The front: no other plan is at least as good in all criteria and better in one."]
    figure = style.page(TITLE, subtitle, high + 0.75, feet, LEFT + ACROSS + RIGHT)
    axes = style.panel(figure, LEFT, style.TOP + 0.2, ACROSS, high)
    _frame(axes, frame, column)
    _points(axes, frame, column, marks)
    front = frame[frame["on_front"].astype(bool)].sort_values("finish_s_p50")
    axes.plot(
        front["finish_s_p50"],
        front[column],
        color=style.INK,
        linewidth=0.9,
        linestyle=DOTS,
        zorder=2,
    )
    marked = frame["plan_id"].isin([name for name in marks if name is not None])
    named = frame[marked | frame["on_front"].astype(bool)]
    order = marked[named.index].sort_values(ascending=False, kind="stable").index
    _labels(axes, named.loc[order[:MOST_NAMED]], column, high)
    style.key(figure, _samples(frame, marks), LEFT, style.TOP - 0.12, 5)
    return figure


def _frame(axes: Axes, frame: Any, column: str) -> None:
    axes.set_xscale("log")
    low, high = float(frame["finish_s_p50"].min()), float(frame["finish_s_p50"].max())
    axes.set_xlim(max(low, 0.1) / 1.15, max(high, 0.2) * 1.15)
    values = sorted(float(value) for value in frame[column])
    # a single much worse plan must not squeeze all others into a line
    enough = 2.5 * values[(3 * len(values)) // 4] if len(values) > 3 else values[-1]
    top = min(values[-1], enough) or 1.0
    axes.set_ylim(-0.03 * top, 1.08 * top)
    axes.set_xlabel("seconds until the last queue has moved, median", size=style.SMALL + 0.5)
    axes.set_ylabel(WHAT[column], size=style.SMALL + 0.5)
    axes.grid(color=style.LINE, linewidth=0.4, alpha=0.6)
    axes.tick_params(length=0)
    left, right = axes.get_xlim()
    ticks = [step * 10.0**power for power in range(-1, 8) for step in (1, 2, 5)]
    shown = [tick for tick in ticks if left <= tick <= right]
    axes.set_xticks(shown, [f"{tick:g}" for tick in shown])
    axes.xaxis.set_minor_locator(NullLocator())


def _points(axes: Axes, frame: Any, column: str, marks: dict[str | None, str]) -> None:
    top = axes.get_ylim()[1]
    shapes = [
        marks.get(row.plan_id) or (FRONT if row.on_front else OTHER) for row in frame.itertuples()
    ]
    for (shape, within), rows in frame.groupby([shapes, frame["within_budget"].astype(bool)]):
        axes.plot(
            rows["finish_s_p50"],
            rows[column].astype(float).clip(upper=top),
            linestyle="none",
            marker=shape,
            markersize={CHOSEN: 15, DEFAULT_PLAN: 8}.get(shape, 7),
            markerfacecolor=style.ACCENT if within else style.PAPER,
            markeredgecolor=style.INK,
            zorder=5 if shape in (CHOSEN, DEFAULT_PLAN) else 3,
            clip_on=False,
        )


def _labels(axes: Axes, named: Any, column: str, high: float) -> None:
    """Write names next to the axes in the points' order, each with a line to its point."""
    low, top = axes.get_ylim()
    left, right = axes.get_xlim()
    further = (right / left) ** (0.22 / ACROSS)
    ordered = named.sort_values([column, "finish_s_p50"], ascending=False)
    shown = [min(float(value), top) for value in ordered[column]]
    wanted = [(top - value) / (top - low) * high for value in shown]
    for row, value, down in zip(
        ordered.itertuples(), shown, spread(wanted, LABEL, high), strict=True
    ):
        y = top - down / high * (top - low)
        detail = (
            f"{row.finish_s_p50:,.0f} s, {style.whole(float(getattr(row, column)))} {WHAT[column]}"
        )
        across = (row.finish_s_p50, right, right * further, right * further**1.3)
        name_beside(axes, across, (value, y), letters.short(str(row.plan_id), 60), detail)


def _samples(frame: Any, marks: dict[str | None, str]) -> list[Any]:
    dot: dict[str, Any] = {"linestyle": "none", "markeredgecolor": style.INK}
    full, hollow = dot | {"markerfacecolor": style.ACCENT}, dot | {"markerfacecolor": style.PAPER}
    words = {CHOSEN: "chosen", DEFAULT_PLAN: "default of Kubernetes", FRONT: "on the front"}
    drawn = {mark for plan, mark in marks.items() if plan in set(frame["plan_id"])} | {FRONT}
    samples = [
        Line2D([], [], marker=mark, label=label, markersize=11 if mark == CHOSEN else 7, **full)
        for mark, label in words.items()
        if mark in drawn
    ]
    samples.append(Line2D([], [], marker=OTHER, label="others", markersize=7, **full))
    if not frame["within_budget"].astype(bool).all():
        samples.append(
            Line2D([], [], marker=FRONT, label="beyond the budgets", markersize=7, **hollow)
        )
    return samples
