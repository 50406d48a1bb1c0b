"""Queues of each consumer over time."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from rebalance_core.model.errors import UsageError
from rebalance_core.model.queue import sort_client_ids
from rebalance_core.report.plots import clock_axis, letters, plot_rows, shading, style
from rebalance_core.report.plots.moves import read_steps, strategies, strategy_lines
from rebalance_core.report.plots.plot_rows import PlotRows
from rebalance_core.report.time_axis import Axis


@dataclass(frozen=True, slots=True)
class Band:
    """The load of a group from a given time on; without members, all figures are 0.

    Attributes:
        from_ms: When it begins.
        fewest: The smallest number of queues per consumer.
        average: The mean over the consumers.
        most: The largest number of queues per consumer.
        members: The number of consumers.
        idle: The number of consumers without a queue.
    """

    from_ms: int
    fewest: float
    average: float
    most: float
    members: int
    idle: int


def bands_of_loads(rows: Iterable[tuple[int, int | None, int]]) -> list[Band]:
    """Return the bands, given (from_ms, to_ms or None, queues) of individual consumers."""
    changes: dict[int, list[tuple[int, int]]] = {}
    for from_ms, to_ms, queues in rows:
        changes.setdefault(from_ms, []).append((queues, 1))
        if to_ms is not None:
            changes.setdefault(to_ms, []).append((queues, -1))
    loads: Counter[int] = Counter()
    bands = []
    for change_ms in sorted(changes):
        for queues, member_change in changes[change_ms]:
            loads[queues] += member_change
        present = +loads
        members = present.total()
        held = sum(queues * count for queues, count in present.items())
        bands.append(
            Band(
                change_ms,
                min(present, default=0),
                held / members if members else 0.0,
                max(present, default=0),
                members,
                present[0],
            )
        )
    return bands


def bands_of_steps(rows: Any) -> list[Band]:
    """Return the bands, given `plan_steps` of a group under one strategy."""
    bands = []
    for row in rows.sort_values("epoch", kind="stable").itertuples():
        members = int(row.members)
        average = float(row.queues) / members if members else 0.0
        bands.append(
            Band(
                int(row.change_ms),
                float(row.min_queues),
                average,
                float(row.max_queues),
                members,
                int(row.idle_members),
            )
        )
    return bands


def draw_bands(axes: Axes, bands: list[Band], axis: Axis, highest: float) -> None:
    """Draw an area from fewest to most, with the average as a dashed line in it."""
    edges = [axis.at(max(band.from_ms, axis.from_ms)) for band in bands] + [axis.width]
    fewest, average, most = (
        [getattr(band, name) for band in bands] + [getattr(bands[-1], name)]
        for name in ("fewest", "average", "most")
    )
    axes.fill_between(
        edges, fewest, most, step="post", facecolor=style.FILL, alpha=0.75, linewidth=0
    )
    axes.step(edges, most, where="post", color=style.INK, linewidth=1.3)
    axes.step(edges, fewest, where="post", color=style.QUIET, linewidth=0.8)
    axes.step(
        edges, average, where="post", color=style.ACCENT, linewidth=1.2, linestyle=(0, (4, 2))
    )
    _frame(axes, axis, max(highest, 1) * 1.1, 4)


def draw_idle(axes: Axes, bands: list[Band], axis: Axis) -> None:
    """Draw a line for the members and a hatched area below it for idle members."""
    edges = [axis.at(max(band.from_ms, axis.from_ms)) for band in bands] + [axis.width]
    members = [band.members for band in bands] + [bands[-1].members]
    idle = [band.idle for band in bands] + [bands[-1].idle]
    axes.step(edges, members, where="post", color=style.INK, linewidth=1.0)
    axes.fill_between(
        edges,
        0,
        idle,
        step="post",
        facecolor=style.PAPER,
        edgecolor=style.INK,
        hatch=style.IDLE_HATCH,
        linewidth=0.4,
    )
    _frame(axes, axis, max(*members, 1) * 1.15, 2)


def _frame(axes: Axes, axis: Axis, top: float, ticks: int) -> None:
    axes.set_xlim(0, axis.width)
    axes.set_ylim(0, top)
    style.few_ticks(axes, ticks)
    axes.set_xticks([])
    style.grid(axes)


def band_samples() -> list[Any]:
    """Return the legend samples of `draw_bands` and `draw_idle`."""
    return [
        Line2D([], [], color=style.INK, linewidth=1.3, label="most queues of a consumer"),
        Line2D([], [], color=style.ACCENT, linewidth=1.2, linestyle=(0, (4, 2)), label="average"),
        Line2D([], [], color=style.QUIET, linewidth=0.8, label="fewest"),
        Patch(
            facecolor=style.PAPER,
            edgecolor=style.INK,
            hatch=style.IDLE_HATCH,
            linewidth=0.4,
            label="idle consumers",
        ),
    ]


TITLE = "Queues per consumer"
LOADS = ("consumer_group", "client_id", "from_ms", "to_ms", "queues")
STEPS = ("members", "queues", "max_queues", "min_queues")
MOST_ROWS = 40
"""Maximum number of consumers drawn individually; with more, the fewest, average and most are
drawn.
"""
MOST_STRATEGIES = 10
ROW = 0.24
ORDER = "Consumers from top to bottom as RocketMQ sorts them (Java's order of strings)."


@style.styled
def draw_load(load: PlotRows) -> Figure:
    """Draw the queues of each consumer over time, with idle consumers hatched.

    Up to 40 consumers each have a row with their number of queues. With more, there is a band from
    the fewest to the most, and the number of idle consumers below it.

    Args:
        load: Rows of `consumer_load` for one group, or rows of `plan_steps` for one group, scenario
            and seed, which are drawn as a band per strategy.

    Raises:
        UsageError: Columns are missing, or the rows belong to several groups, scenarios or seeds.
    """
    frame = plot_rows.table(load, ())
    if frame.empty:
        return style.nothing_to_draw(TITLE, "No consumer.")
    if "client_id" not in frame.columns:
        return _of_steps(read_steps(frame, STEPS))
    frame = plot_rows.table(frame, LOADS, {"cluster": "", "suspended": False})
    _, group = plot_rows.only(frame, ("cluster", "consumer_group"), TITLE)
    ends = [None if end != end or end is None else int(end) for end in frame["to_ms"]]
    axis = clock_axis.clock(frame["from_ms"].astype(int), ends, style.WIDTH - 0.5)
    title = f"{TITLE} of {letters.short(group, 40)}"
    rows = list(zip(frame["from_ms"].astype(int), ends, frame["queues"].astype(int), strict=True))
    consumers = sort_client_ids(set(frame["client_id"]))
    if len(consumers) > MOST_ROWS:
        many = f"{len(consumers):,} consumers, {clock_axis.from_to(axis)}"
        return _banded(title, many, {"": bands_of_loads(rows)}, 2.4)
    return _one_by_one(title, frame, rows, consumers)


def _one_by_one(title: str, frame: Any, rows: list[Any], consumers: list[str]) -> Figure:
    names = [letters.short(client_id) for client_id in consumers]
    left = 0.45 + style.LETTER * max(map(len, names))
    inches = style.WIDTH - left - 0.3
    axis = clock_axis.clock([row[0] for row in rows], [row[1] for row in rows], inches)
    figure = style.page(title, clock_axis.from_to(axis), ROW * len(consumers) + 0.7, [ORDER])
    axes = style.panel(figure, left, style.TOP + 0.25, inches, ROW * len(consumers))
    style.bare(axes)
    clock_axis.draw_clock(axes, axis)
    axes.set_ylim(len(consumers), 0)
    axes.set_yticks(
        [row_number + 0.5 for row_number in range(len(consumers))],
        names,
        family=style.MONO,
        color=style.INK,
    )
    axes.tick_params(axis="y", length=0)
    top_of = {client_id: row_number for row_number, client_id in enumerate(consumers)}
    _cells(
        axes,
        axis,
        [
            (top_of[client_id], *row, bool(suspended))
            for client_id, suspended, row in zip(
                frame["client_id"], frame["suspended"], rows, strict=True
            )
        ],
    )
    style.key(figure, _samples(frame), left, style.TOP - 0.05, 5)
    return figure


def _cells(axes: Axes, axis: Axis, cells: list[tuple[int, int, int | None, int, bool]]) -> None:
    most = max(cell[3] for cell in cells)
    held, shades, idle = [], [], []
    for top, from_ms, to_ms, queues, suspended in cells:
        left, right = axis.at(from_ms), axis.at(axis.to_ms if to_ms is None else to_ms)
        corners = [(left, top + 0.06), (right, top + 0.06), (right, top + 0.94), (left, top + 0.94)]
        if queues:
            held.append(corners)
            shades.append(shading.shade(queues, most))
        else:
            idle.append(corners)
        text = f"{queues or 'idle'}{' s' if suspended else ''}"
        if right - left > 100 * style.LETTER * (len(text) + 1):
            box = None if queues else {"facecolor": style.PAPER, "edgecolor": "none", "pad": 1.0}
            axes.text(
                (left + right) / 2,
                top + 0.53,
                text,
                ha="center",
                va="center",
                size=style.SMALL,
                color=shading.text_on(queues, most),
                bbox=box,
            )
    axes.add_collection(
        PolyCollection(held, facecolors=shades, edgecolors=style.PAPER, linewidths=0.6, zorder=1)
    )
    style.hatched(axes, idle, style.IDLE_HATCH, line=0.5, z=1.5)


def _samples(frame: Any) -> list[Any]:
    most = int(frame["queues"].max())
    samples = [
        Patch(
            facecolor=shading.shade(n, most),
            edgecolor=style.PAPER,
            label=f"{n:,} queue{'s' if n > 1 else ''}",
        )
        for n in sorted({1, most} - {0})
    ]
    idle: dict[str, Any] = {
        "facecolor": style.PAPER,
        "edgecolor": style.INK,
        "hatch": style.IDLE_HATCH,
        "linewidth": 0.5,
    }
    samples.append(Patch(**idle, label="idle: no queue"))
    if frame["suspended"].any():
        samples.append(Patch(facecolor="none", edgecolor="none", label="s: suspended"))
    return samples


def _of_steps(frame: Any) -> Figure:
    single_valued = ("cluster", "consumer_group", "scenario", "seed")
    _, group, scenario, _ = plot_rows.only(frame, single_valued, TITLE)
    names = strategies(frame)
    if frame.duplicated(["strategy", "epoch"]).any():
        raise UsageError("an epoch appears twice under one strategy")
    panels = {}
    for name in names[:MOST_STRATEGIES]:
        rows = frame[frame["strategy"] == name]
        of_rocketmq = bool(rows["of_rocketmq"].iloc[0])
        panels[strategy_lines(name, of_rocketmq)] = bands_of_steps(rows)
    first, last = int(frame["change_ms"].min()), int(frame["change_ms"].max())
    axis = clock_axis.clock([first, last], [None], 1.0)
    where = f"{letters.short(scenario, 40)}, " if scenario else ""
    more = len(names) - MOST_STRATEGIES
    feet = [f"… and {more} more strategies, not drawn."] if more > 0 else []
    title = f"{TITLE} of {letters.short(group, 40)}" if group else TITLE
    return _banded(title, f"{where}{clock_axis.from_to(axis)}", panels, 0.85, feet)


def _banded(
    title: str, subtitle: str, panels: dict[str, list[Band]], high: float, feet: Sequence[str] = ()
) -> Figure:
    """Draw a band for each strategy, and the idle consumers below each."""
    left = 2.3 if any(panels) else 0.75
    inches, low, gap = style.WIDTH - left - 0.35, 0.34, 0.22
    every = [band for bands in panels.values() for band in bands]
    axis = clock_axis.clock([band.from_ms for band in every], [None], inches)
    step = high + low + 0.08 + gap
    figure = style.page(title, subtitle, step * len(panels) + 0.5, feet)
    highest = max(band.most for band in every)
    for panel_number, (label, bands) in enumerate(panels.items()):
        top = style.TOP + 0.25 + panel_number * step
        axes = style.panel(figure, left, top, inches, high)
        draw_bands(axes, bands, axis, highest)
        axes.text(
            -0.45 / inches,
            0.5,
            label,
            transform=axes.transAxes,
            ha="right",
            va="center",
            family=style.MONO,
            size=style.SMALL,
        )
        below = style.panel(figure, left, top + high + 0.08, inches, low)
        draw_idle(below, bands, axis)
        below.text(
            -0.45 / inches,
            0.5,
            "consumers",
            transform=below.transAxes,
            ha="right",
            va="center",
            size=style.SMALL,
            color=style.QUIET,
            rotation=0 if label else 90,
        )
    clock_axis.draw_clock(below, axis)
    style.key(figure, band_samples(), left, style.TOP - 0.05, 4)
    return figure
