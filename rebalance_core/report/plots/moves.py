"""Draws the moves of each rebalance by strategy, with the proven minimum marked."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from rebalance_core.model.times import utc
from rebalance_core.report.plots import letters, plot_rows, style
from rebalance_core.report.plots.plot_rows import PlotRows
from rebalance_core.report.plots.style import whole

PLACE = ("scenario", "seed", "change_ms", "cluster", "consumer_group", "epoch")
"""The columns that identify a rebalance, in drawing order."""

DEFAULTS = {
    "cluster": "", "consumer_group": "", "scenario": "", "seed": 0, "of_rocketmq": True,
    "causes": (), "orphaned": 0, "shared": 0, "idle_members": 0,
}  # fmt: skip

BELOW_ONE = (
    "Fewer moves than the fewest are possible (CONSISTENT_HASH): the minimum refers to a "
    "balanced result, and a less balanced result may need fewer moves."
)


@dataclass(frozen=True, slots=True)
class Total:
    """The moves of a strategy, over all rebalances and over those whose minimum can be compared.

    Attributes:
        rebalances: The number of rebalances.
        moved: The number of queues moved in them.
        compared: The number of rebalances with a minimum.
        moved_compared: The number of queues moved in these.
        fewest: The proven minimum for these.
    """

    rebalances: int
    moved: int
    compared: int
    moved_compared: int
    fewest: int

    @property
    def ratio(self) -> float | None:
        """Moved / fewest; None without a basis for comparison."""
        return self.moved_compared / self.fewest if self.fewest else None


def read_steps(steps: PlotRows, needed: Sequence[str]) -> Any:
    """Return the rows with the column ``compared``: whether the minimum is comparable with the
    result.

    Rows of `group_metrics` with a strategy and a time are also accepted, except rows of topics and
    rows that `plan_steps` does not count.
    """
    frame = plot_rows.table(steps, ("strategy", "epoch", "change_ms", *needed), DEFAULTS)
    if "topic" in frame.columns:
        frame = frame[frame["topic"].isna()].reset_index(drop=True)
    if "counted" in frame.columns:
        frame = frame[frame["counted"].astype(bool)].reset_index(drop=True)
    if "minimum_moves" in frame.columns:
        whole = (frame["orphaned"] == 0) & (frame["shared"] == 0)
        frame["compared"] = frame["minimum_moves"].notna() & whole
    return frame


def slots(frame: Any) -> Any:
    """Number the rebalances independently of the strategy; return a frame of PLACE and ``slot``."""
    places = frame[list(PLACE)].drop_duplicates().sort_values(list(PLACE), kind="stable")
    return places.assign(slot=range(len(places)))


def strategies(frame: Any) -> list[str]:
    """Return the strategies in order of appearance."""
    return list(dict.fromkeys(frame["strategy"]))


def total(rows: Any) -> Total:
    """Return the total of one strategy's rows."""
    compared = rows[rows["compared"]]
    return Total(
        len(rows),
        int(rows["moved"].sum()),
        len(compared),
        int(compared["moved"].sum()),
        int(pd.to_numeric(compared["minimum_moves"]).sum()),
    )


def strategy_lines(name: str, of_rocketmq: bool, most: int = 24) -> str:
    """Return a strategy's label: its name, its settings below, and its origin if not RocketMQ's."""
    head, bracket, rest = name.partition("(")
    lines = [letters.short(head, most)]
    settings = rest.split(", ") if bracket else []
    shown = [f"{setting}," for setting in settings[:-1]] + settings[-1:]
    lines += [letters.short(setting, most) for setting in shown[:2]]
    if more := len(settings) - 2:
        lines += [f"and {more} more"] if more > 0 else []
    if bracket:
        lines[1] = f"({lines[1]}"
    if not of_rocketmq:
        lines.append("not RocketMQ's")
    return "\n".join(lines)


def cause_lines(causes: Any) -> str:
    r"""Return causes in short form.

    >>> cause_lines(["CONSUMER_JOIN", "BROKER_DOWN"])
    'join\nbroker\ndown'
    """
    named = [str(cause).removeprefix("CONSUMER_").lower() for cause in causes]
    return "\n".join("\n".join(named).split("_"))


TITLE = "Queues moved by each rebalance"
MOST_STRATEGIES = 12
MOST_BARS = 48
"""Maximum number of bars in a figure; with more rebalances, each bar is the mean of consecutive
ones.
"""
MOST_NAMED = 14
"""Maximum number of bars with time and cause below them."""
NO_MINIMUM = (
    "Not in the sums: rebalances for which moved / fewest is not meaningful (BROADCASTING, "
    "frozen, queues without an owner or shared)."
)
LEFT, RIGHT, ROW, GAP = 2.15, 1.95, 0.78, 0.16


@style.styled
def draw_moves(steps: PlotRows) -> Figure:
    """Draw a row per strategy, a bar per rebalance, and a black line at the fewest possible moves.

    All strategies share both axes. With more than 48 rebalances (of any number of groups, scenarios
    and seeds), a bar is the mean of consecutive ones, in order of scenario, seed and time.

    Args:
        steps: Rows of `plan_steps`; needed: strategy, epoch, change_ms, moved, minimum_moves. If
            the minimum is meaningless (null, or queues have no owner or are shared), the bar is
            hatched and excluded from the sums on the right.

    Raises:
        UsageError: Columns are missing.
    """
    frame = read_steps(steps, ("moved", "minimum_moves"))
    if frame.empty:
        return style.nothing_to_draw(TITLE, "No rebalance.")
    places = slots(frame)
    each = -(-len(places) // MOST_BARS)
    frame = frame.merge(places, on=[name for name in places.columns if name != "slot"])
    frame["bar"] = frame["slot"] // each
    names = strategies(frame)
    drawn = names[:MOST_STRATEGIES]
    feet = _feet(frame, names, each)
    body = 0.8 + len(drawn) * (ROW + GAP)
    figure = style.page(TITLE, _subtitle(frame, len(places)), body, feet)
    highest = max(_bars(frame, name)[1].max() for name in drawn)
    bars = int(frame["bar"].max()) + 1
    for row_number, name in enumerate(drawn):
        axes = style.panel(
            figure,
            LEFT,
            style.TOP + 0.3 + row_number * (ROW + GAP),
            style.WIDTH - LEFT - RIGHT,
            ROW,
        )
        _row(axes, frame, name, bars, highest)
    _time_labels(axes, frame, bars, each)
    style.key(figure, _samples(frame), LEFT, style.TOP - 0.02, 3)
    return figure


def _bars(frame: Any, name: str) -> tuple[Any, Any, Any, Any]:
    """Return a strategy's bars: numbers, mean moved and mean fewest of those compared, if any."""
    rows = frame[frame["strategy"] == name]
    grouped = rows.groupby("bar", sort=True)
    compared = rows[rows["compared"]].groupby("bar", sort=True)
    fewest = compared["minimum_moves"].apply(lambda column: column.astype(float).mean())
    moved = compared["moved"].mean().reindex(grouped.groups).fillna(grouped["moved"].mean())
    return (
        moved.index.to_numpy(),
        moved.to_numpy(dtype=float),
        fewest.reindex(moved.index).to_numpy(dtype=float),
        grouped["compared"].any().to_numpy(dtype=bool),
    )


def _row(axes: Axes, frame: Any, name: str, bars: int, highest: float) -> None:
    places, moved, fewest, compared = _bars(frame, name)
    axes.bar(
        places[compared],
        moved[compared],
        0.72,
        color=style.FILL,
        edgecolor=style.QUIET,
        linewidth=0.5,
    )
    axes.bar(
        places[~compared],
        moved[~compared],
        0.72,
        color=style.PAPER,
        edgecolor=style.QUIET,
        linewidth=0.5,
        hatch=style.UNCERTAIN_HATCH,
    )
    if bars <= MOST_NAMED:
        for x, y, least in zip(places, moved, fewest, strict=True):
            above = y if least - y > 0.3 * highest else np.fmax(y, least)
            axes.annotate(
                whole(float(y)),
                (x, above),
                (0, 2.5),
                textcoords="offset points",
                ha="center",
                size=style.SMALL - 0.5,
                zorder=4,
            )
    marks = [[(x - 0.46, y), (x + 0.46, y)] for x, y in zip(places, fewest, strict=True) if y == y]
    axes.add_collection(LineCollection(marks, colors=style.INK, linewidths=2.0, zorder=3))
    axes.set_xlim(-0.6, bars - 0.4)
    axes.set_ylim(0, max(highest, 1.0) * 1.3)
    axes.set_xticks([])
    style.few_ticks(axes, 3)
    style.grid(axes)
    rows = frame[frame["strategy"] == name]
    label = strategy_lines(name, bool(rows["of_rocketmq"].iloc[0]))
    axes.text(
        -0.42 / (style.WIDTH - LEFT - RIGHT),
        0.5,
        label,
        transform=axes.transAxes,
        ha="right",
        va="center",
        family=style.MONO,
        size=style.SMALL,
    )
    head, detail = _sums(rows)
    edge = 1 + 0.15 / (style.WIDTH - LEFT - RIGHT)
    axes.text(edge, 0.52, head, transform=axes.transAxes, va="bottom", size=10, weight="bold")
    axes.text(
        edge, 0.47, detail, transform=axes.transAxes, va="top", size=style.SMALL, color=style.QUIET
    )


def _sums(rows: Any) -> tuple[str, str]:
    sums = total(rows)
    if sums.ratio is None:
        return f"{sums.moved:,} moved", "no minimum to compare" if not sums.compared else "fewest 0"
    head = f"{sums.ratio:.2f} x fewest"
    part = (
        "" if sums.compared == sums.rebalances else f"\nin {sums.compared:,} of {sums.rebalances:,}"
    )
    return head, f"{sums.moved_compared:,} moved, fewest {sums.fewest:,}{part}"


def _samples(frame: Any) -> list[Any]:
    samples: list[Any] = [
        Patch(facecolor=style.FILL, edgecolor=style.QUIET, linewidth=0.5, label="queues moved"),
        Line2D([], [], color=style.INK, linewidth=2.0, label="proven fewest for a balanced result"),
    ]
    if not frame.groupby(["strategy", "bar"])["compared"].any().all():
        samples.append(
            Patch(
                facecolor=style.PAPER,
                edgecolor=style.QUIET,
                linewidth=0.5,
                hatch=style.UNCERTAIN_HATCH,
                label="no minimum to compare with",
            )
        )
    return samples


def _subtitle(frame: Any, rebalances: int) -> str:
    groups = frame[["cluster", "consumer_group"]].drop_duplicates()
    scenarios = sorted(set(frame["scenario"].astype(str)) - {""})
    first, last = int(frame["change_ms"].min()), int(frame["change_ms"].max())
    who = (
        letters.short(str(groups["consumer_group"].iloc[0]), 40)
        if len(groups) == 1
        else f"{len(groups):,} groups"
    )
    what = ""
    if scenarios:
        what = (
            f", {letters.short(scenarios[0], 30)}"
            if len(scenarios) == 1
            else f", {len(scenarios)} scenarios"
        )
    times = f"{utc(first)} to {utc(last)}"
    return f"{who or 'one group'}{what}: {rebalances:,} rebalances, {times}".lstrip(": ")


def _feet(frame: Any, names: list[str], each: int) -> list[str]:
    feet = []
    if each > 1:
        feet.append(f"A bar is the mean of up to {each:,} rebalances, in order of time.")
    if len(names) > MOST_STRATEGIES:
        feet.append(f"… and {len(names) - MOST_STRATEGIES} more strategies, not drawn.")
    if not frame["compared"].all():
        feet.append(NO_MINIMUM)
    if any((total(frame[frame["strategy"] == name]).ratio or 1) < 1 for name in names):
        feet.append(BELOW_ONE)
    return feet


def _time_labels(axes: Axes, frame: Any, bars: int, each: int) -> None:
    if each == 1 and bars <= MOST_NAMED:
        rows = frame.drop_duplicates("bar").sort_values("bar")
        labels = [
            f"{utc(int(ms), '%H:%M:%S')}\n{cause_lines(causes)}"
            for ms, causes in zip(rows["change_ms"], rows["causes"], strict=True)
        ]
        axes.set_xticks(rows["bar"].to_numpy(), labels, size=style.SMALL - 1, linespacing=1.3)
        return
    step = max(1, bars // 8)
    ticks = np.arange(0, bars, step)
    axes.set_xticks(ticks, [f"{number * each + 1:,}" for number in ticks])
    axes.set_xlabel("rebalances, in order of time" if each == 1 else "rebalances", size=style.SMALL)
    axes.tick_params(axis="x", length=0)
    axes.xaxis.labelpad = 3
    axes.set_xlabel(axes.get_xlabel(), loc="left")
