"""Compares deployment plans: how long each takes, and what it costs meanwhile."""

from collections.abc import Iterator
from itertools import product
from typing import Any

from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.text import Annotation, Text
from matplotlib.ticker import NullLocator
from matplotlib.transforms import Bbox

from rebalance_core.report.plots import letters, plot_rows, style
from rebalance_core.report.plots.plot_rows import PlotRows
from rebalance_core.report.plots.strategy_points import DOTS

TITLE = "How long a rollout takes, and what it costs"
COLUMNS = ("plan_id", "finish_s_p50", "no_owner_queue_seconds", "on_front", "within_budget")
BAR = ("finish_s_p5", "finish_s_p95", "cost_p5", "cost_p95")
DEFAULTS: dict[str, Any] = dict.fromkeys(("read_again", "cost", "consumer_group", "futures", *BAR))
WHAT = {
    "cost": "cost",
    "read_again": "messages read again",
    "no_owner_queue_seconds": "queue-seconds without an owner",
}
"""The vertical axis shows the first of these that is known for every plan."""
LEFT, ACROSS, HIGH, RIGHT = 0.85, 8.2, 3.9, 0.5
MOST_NAMED = 10
LEAST_S = 0.1
"""The logarithmic axis has no 0."""
RINGS = (9, 20, 34, 52, 74, 100)
"""Distances of a label from its point, in points (1/72 inch), nearest first."""
CHOSEN, DEFAULT_PLAN, FRONT, OTHER = "*", "s", "o", "."


@style.styled
def draw_rollouts(plans: PlotRows, chosen: str | None = None, default: str | None = None) -> Figure:
    """Draw the seconds until the last queue has moved, against the cost.

    Plans on the front are circles along a line, and others are dots; a plan beyond the budgets is
    hollow. The chosen plan is a star, and the Kubernetes default a square. These are labelled with
    their names, and have bars over 5 to 95 % of their futures if the rows have `BAR`.

    Args:
        plans: Rows of `rollout_plans`, of which only those for all groups together are drawn.
        chosen: The recommended ``plan_id``, if any.
        default: The ``plan_id`` of the Kubernetes default; None leaves it unmarked.

    Raises:
        UsageError: Columns are missing.
    """
    frame = plot_rows.table(plans, COLUMNS, DEFAULTS)
    frame = frame[frame["consumer_group"].isna()]
    if frame.empty:
        return style.nothing_to_draw(TITLE, "No plan.")
    frame = frame.assign(finish_s_p50=frame["finish_s_p50"].clip(lower=LEAST_S))
    column = next(name for name in WHAT if frame[name].notna().all())
    marks = {default: DEFAULT_PLAN, chosen: CHOSEN}
    subtitle = f"{len(frame):,} plans; best is bottom left"
    feet = ["The front: no other plan is at least as good in all criteria and better in one."]
    if frame[list(BAR[:2])].notna().all(axis=None):
        feet.append("Bars: 5 to 95 % of the futures.")
    figure = style.page(TITLE, subtitle, HIGH + 0.75, feet, LEFT + ACROSS + RIGHT)
    axes = style.panel(figure, LEFT, style.TOP + 0.2, ACROSS, HIGH)
    marked = frame["plan_id"].isin([name for name in marks if name is not None])
    named = frame[marked | frame["on_front"].astype(bool)]
    order = marked[named.index].sort_values(ascending=False, kind="stable").index
    named = named.loc[order[:MOST_NAMED]]
    _frame(axes, frame, named, column)
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
    _labels(axes, frame, named, column, _bars(axes, named, column))
    style.key(figure, _samples(frame, marks), LEFT, style.TOP - 0.12, 5)
    return figure


def _frame(axes: Axes, frame: Any, named: Any, column: str) -> None:
    """Scale the axes: all medians and all bars of the named plans lie inside."""
    axes.set_xscale("log")
    seconds = [*frame["finish_s_p50"], *named[list(BAR[:2])].dropna().to_numpy().ravel()]
    axes.set_xlim(max(min(seconds), LEAST_S) / 1.15, max(*seconds, 2 * LEAST_S) * 1.15)
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


def _bars(axes: Axes, named: Any, column: str) -> list[Bbox]:
    """Draw bars over 5 to 95 % of the futures of each named plan; return their positions."""
    top, bars = axes.get_ylim()[1], list[tuple[tuple[float, float], tuple[float, float]]]()
    for row in named.dropna(subset=list(BAR[:2])).itertuples():
        value = min(float(getattr(row, column)), top)
        since, until = (max(float(each), LEAST_S) for each in (row.finish_s_p5, row.finish_s_p95))
        bars.append(((since, value), (until, value)))
        if column == "cost" and row.cost_p95 == row.cost_p95:
            least, most = (min(each, top) for each in (row.cost_p5, row.cost_p95))
            bars.append(((row.finish_s_p50, least), (row.finish_s_p50, most)))
    axes.add_collection(
        LineCollection(bars, colors=style.QUIET, linewidths=1.1, zorder=2.5), autolim=False
    )
    return [Bbox(axes.transData.transform(bar)).padded(2) for bar in bars]


def _labels(axes: Axes, frame: Any, named: Any, column: str, bars: list[Bbox]) -> None:
    """Write each name and its figures next to its point, where they hide no other point, bar or
    name.
    """
    figure, top = axes.figure, axes.get_ylim()[1]
    renderer = figure.canvas.get_renderer()  # type: ignore[attr-defined]  # that of `style.page`
    values = frame[column].astype(float).clip(upper=top)
    points = axes.transData.transform(list(zip(frame["finish_s_p50"], values, strict=True)))
    taken = [*bars, *(Bbox.from_bounds(x - 5, y - 5, 10, 10) for x, y in points)]
    inside = axes.get_window_extent(renderer)
    for row in named.itertuples():
        at = float(row.finish_s_p50), min(float(getattr(row, column)), top)
        figures = (
            f"{row.finish_s_p50:,.0f} s, {style.whole(float(getattr(row, column)))} {WHAT[column]}"
        )
        text = f"{letters.short(str(row.plan_id), 60)}\n{figures}"
        best: tuple[int, Annotation, Bbox] | None = None
        for label in _places(axes, text, at):
            label.update_positions(renderer)
            box = Text.get_window_extent(label, renderer)  # without the line to the point
            hidden = sum(box.overlaps(other) for other in taken)
            hidden += 3 * (box.x0 < inside.x0 or box.x1 > figure.bbox.x1 or box.y0 < inside.y0)
            hidden += 3 * (box.y1 > inside.y1 + 8)
            if best is not None and hidden >= best[0]:
                label.remove()
                continue
            if best is not None:
                best[1].remove()
            best = hidden, label, box
            if not hidden:
                break
        assert best is not None
        taken.append(best[2])


def _places(axes: Axes, text: str, at: tuple[float, float]) -> Iterator[Annotation]:
    """Yield the text at successive places, each further from its point."""
    aside = ((1, 0), (1, 1), (-1, 0), (-1, 1), (1, -1), (-1, -1), (0, 1), (0, -1))
    for far, (across, up) in product(RINGS, aside):
        yield axes.annotate(
            text,
            at,
            (across * far, up * far),
            textcoords="offset points",
            ha={1: "left", -1: "right", 0: "center"}[across],
            va={1: "bottom", -1: "top", 0: "center"}[up],
            size=style.SMALL - 0.5,
            color=style.INK,
            zorder=6,
            annotation_clip=False,
            arrowprops={"arrowstyle": "-", "color": style.LINE, "linewidth": 0.8}
            if far > RINGS[0]
            else None,
        )


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
