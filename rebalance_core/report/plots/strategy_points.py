"""Draws movement against balance, with a point per strategy."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from rebalance_core.report.plots import letters, plot_rows, style
from rebalance_core.report.plots.moves import BELOW_ONE
from rebalance_core.report.plots.plot_rows import PlotRows

TITLE = "Movement beside balance"
COLUMNS = ("strategy", "of_rocketmq", "rebalances", "moved_per_rebalance", "mean_peak_ratio",
           "worst_peak_ratio")  # fmt: skip
DEFAULTS = {
    "groups": None, "minimum_moves": None, "amplification": None, "idle_members": 0, "orphaned": 0,
    "caveat": None,
}  # fmt: skip
MOST_STRATEGIES = 18
LABEL = 0.36
"""Inches from one label to the next."""
LEFT, ACROSS, HIGH, RIGHT = 0.85, 4.65, 3.5, 5.0

OURS, OTHERS = "o", "D"
DOTS = (0, (1, 1.6))
NO_MEANING = (
    "* or no figure: rebalances for which moved / fewest is not meaningful are left out "
    "(BROADCASTING, queues without an owner)."
)


@dataclass(frozen=True, slots=True)
class _Point:
    name: str
    of_rocketmq: bool
    moved: float
    mean_peak: float
    worst_peak: float
    detail: str
    fewest: float | None  # per rebalance; None without a basis for comparison

    @property
    def below_one(self) -> bool:
        """True if it moves less than any balanced result would."""
        return self.fewest is not None and self.moved < self.fewest


@style.styled
def draw_league(league: PlotRows) -> Figure:
    """Draw moved queues per rebalance against peak over average; the best point is at the bottom
    left.

    RocketMQ's own strategies are filled circles; others are open diamonds. A thin line rises to the
    worst peak, and a dotted line leads to the fewest moves of a balanced result. Labels are on the
    right, in the order of the points.

    Args:
        league: Rows of `plan_league`; needed: strategy, of_rocketmq, rebalances,
            moved_per_rebalance, mean_peak_ratio, worst_peak_ratio.

    Raises:
        UsageError: Columns are missing.
    """
    frame = plot_rows.table(league, COLUMNS, DEFAULTS)
    measured = frame["moved_per_rebalance"].notna() & frame["mean_peak_ratio"].notna()
    rows = frame[measured]
    if rows.empty:
        return style.nothing_to_draw(TITLE, "No strategy with a rebalance.")
    points = [_point(row) for row in rows.itertuples()]
    drawn = points[:MOST_STRATEGIES]
    feet = _feet(drawn, len(points) - len(drawn), len(frame) - len(rows))
    high = max(HIGH, LABEL * len(drawn))
    figure = style.page(TITLE, _subtitle(rows), high + 0.75, feet, LEFT + ACROSS + RIGHT)
    axes = style.panel(figure, LEFT, style.TOP + 0.2, ACROSS, high)
    _limits(axes, drawn)
    axes.axhline(1.0, color=style.LINE, linewidth=1.0)
    _points(axes, drawn)
    _labels(axes, drawn, high)
    style.key(figure, _samples(drawn), LEFT, style.TOP - 0.12, 4)
    return figure


def _point(row: Any) -> _Point:
    worst = row.worst_peak_ratio
    mean = float(row.mean_peak_ratio)
    ratio = row.amplification
    compared = ratio is not None and ratio == ratio
    troubles = [
        f"{int(count):,} {word}"
        for count, word in ((row.idle_members, "idle"), (row.orphaned, "without an owner"))
        if count
    ]
    high = "" if worst is None or worst != worst else f" (worst {float(worst):.2f})"
    origin = [] if row.of_rocketmq else ["not RocketMQ's"]
    figures = [
        *origin,
        f"{style.whole(float(row.moved_per_rebalance))} moved",
        f"peak {mean:.2f}{high}",
    ]
    if compared:
        figures.append(f"{float(ratio):.2f} x fewest{'*' if isinstance(row.caveat, str) else ''}")
    moved = float(row.moved_per_rebalance)
    return _Point(
        name=str(row.strategy),
        of_rocketmq=bool(row.of_rocketmq),
        moved=moved,
        mean_peak=mean,
        worst_peak=mean if worst is None or worst != worst else float(worst),
        detail=", ".join(figures + troubles),
        fewest=moved / float(ratio) if compared and ratio else None,
    )


def _limits(axes: Axes, points: Sequence[_Point]) -> None:
    right = max(max(point.moved, point.fewest or 0.0) for point in points) or 1.0
    top = max(max(point.worst_peak for point in points), 1.2)
    low = min(1.0, *(point.mean_peak for point in points))
    axes.set_xlim(-0.03 * right, right * 1.1)
    # A single bad state in one group must not squeeze all others into a line.
    enough = low + 2 * max(max(point.mean_peak for point in points) - low, 0.25)
    top = top if top <= 1.5 * enough else enough
    axes.set_ylim(low - 0.06 * (top - low), top + 0.08 * (top - low))
    axes.set_xlabel("queues moved per rebalance", size=style.SMALL + 0.5)
    axes.set_ylabel("most queues of a consumer / average", size=style.SMALL + 0.5)
    axes.grid(color=style.LINE, linewidth=0.4, alpha=0.6)
    axes.tick_params(length=0)


def _points(axes: Axes, points: Sequence[_Point]) -> None:
    up = [[(p.moved, p.mean_peak), (p.moved, p.worst_peak)] for p in points]
    axes.add_collection(LineCollection(up, colors=style.QUIET, linewidths=0.9, zorder=2))
    over = [
        [(p.fewest, p.mean_peak), (p.moved, p.mean_peak)] for p in points if p.fewest is not None
    ]
    axes.add_collection(
        LineCollection(over, colors=style.INK, linewidths=1.1, linestyles=[DOTS], zorder=3)
    )
    top = axes.get_ylim()[1]
    for above, marker in ((False, "_"), (True, "^")):
        ends = [p for p in points if bool(p.worst_peak > top) is above]
        axes.plot(
            [p.moved for p in ends],
            [min(p.worst_peak, top) for p in ends],
            linestyle="none",
            marker=marker,
            color=style.QUIET,
            markersize=7,
            zorder=2,
            clip_on=False,
        )
    for of_rocketmq, marker, face in ((True, OURS, style.ACCENT), (False, OTHERS, style.PAPER)):
        drawn = [p for p in points if p.of_rocketmq is of_rocketmq]
        axes.plot(
            [p.moved for p in drawn],
            [p.mean_peak for p in drawn],
            linestyle="none",
            marker=marker,
            markersize=8,
            markerfacecolor=face,
            markeredgecolor=style.INK,
            zorder=4,
            clip_on=False,
        )


def _labels(axes: Axes, points: Sequence[_Point], high: float) -> None:
    """Write names next to the axes in the points' order, each with a line to its point."""
    low, top = axes.get_ylim()
    ordered = sorted(points, key=lambda p: (-p.mean_peak, -p.moved, p.name))
    wanted = [(top - point.mean_peak) / (top - low) * high for point in ordered]
    right = axes.get_xlim()[1]
    inch = (right - axes.get_xlim()[0]) / (ACROSS)
    for point, down in zip(ordered, spread(wanted, LABEL, high), strict=True):
        y = top - down / high * (top - low)
        across = (point.moved, right, right + 0.22 * inch, right + 0.28 * inch)
        name, detail = letters.short(point.name, 56), letters.short(point.detail, 82)
        name_beside(axes, across, (point.mean_peak, y), name, detail, style.MONO)


def name_beside(
    axes: Axes,
    across: tuple[float, float, float, float],
    up: tuple[float, float],
    name: str,
    detail: str,
    family: str | None = None,
) -> None:
    """Write a point's name and figures next to the axes, with a line to the point.

    Args:
        axes: axes whose limits are set.
        across: horizontal positions of the point, the edge of the axes, the end of the line, and
            the name.
        up: vertical positions of the point and the name.
        name: written in bold.
        detail: written below the name.
        family: the font of the name; None for the figure's font.
    """
    (x, edge, end, begin), (value, y) = across, up
    axes.plot(
        [x, edge, end], [value, y, y], color=style.LINE, linewidth=0.8, clip_on=False, zorder=1
    )
    place: dict[str, Any] = {
        "xy": (begin, y), "annotation_clip": False, "textcoords": "offset points",
        "size": style.SMALL - 0.5,
    }  # fmt: skip
    axes.annotate(
        name, xytext=(0, 1), va="bottom", family=family, weight="bold", color=style.INK, **place
    )
    axes.annotate(detail, xytext=(0, -1), va="top", color=style.QUIET, **place)


def spread(wanted: Sequence[float], apart: float, room: float) -> list[float]:
    """Return ascending positions near the wanted ones, at least ``apart`` from each other and
    within the room.

    >>> spread([1.0, 1.0, 1.0], 0.5, 3.0)
    [0.5, 1.0, 1.5]
    """
    last = room - apart / 2
    runs: list[list[float]] = []  # [start of the run, number of labels in it]
    for place in wanted:
        runs.append([place, 1])
        while len(runs) > 1 and runs[-2][0] + runs[-2][1] * apart > runs[-1][0]:
            start, count = runs.pop()
            before, size = runs[-1]
            both = size + count
            middle = (
                (before + (size - 1) * apart / 2) * size + (start + (count - 1) * apart / 2) * count
            ) / both
            runs[-1] = [middle - (both - 1) * apart / 2, both]
    places = [start + number * apart for start, count in runs for number in range(int(count))]
    for number in range(len(places) - 1, -1, -1):
        places[number] = min(places[number], last - (len(places) - 1 - number) * apart)
    for number in range(len(places)):
        places[number] = max(places[number], apart / 2 + number * apart)
    return [round(place, 6) for place in places]


def _samples(points: Sequence[_Point]) -> list[Any]:
    dot: dict[str, Any] = {"linestyle": "none", "markersize": 7, "markeredgecolor": style.INK}
    samples = [
        Line2D([], [], marker=OURS, markerfacecolor=style.ACCENT, label="RocketMQ's own", **dot)
    ]
    if not all(point.of_rocketmq for point in points):
        words = "not RocketMQ's"
        samples.append(
            Line2D([], [], marker=OTHERS, markerfacecolor=style.PAPER, label=words, **dot)
        )
    samples.append(Line2D([], [], color=style.QUIET, linewidth=0.9, label="up to the worst"))
    if any(point.fewest is not None for point in points):
        words = "from its proven fewest"
        samples.append(Line2D([], [], color=style.INK, linewidth=1.1, linestyle=DOTS, label=words))
    return samples


def _subtitle(rows: Any) -> str:
    rebalances = int(rows["rebalances"].max())
    groups = [count for count in rows["groups"] if count is not None and count == count]
    most = int(max(groups, default=0))
    of = "" if not most else f"{most:,} groups, " if most > 1 else "1 group, "
    return f"{of}{rebalances:,} rebalances; best is bottom left: few moves, even loads"


def _feet(points: Sequence[_Point], more: int, unmeasured: int) -> list[str]:
    feet = []
    if more > 0:
        feet.append(f"… and {more} more strategies, not drawn.")
    if unmeasured:
        feet.append(f"{unmeasured} without a rebalance or a queue, not drawn.")
    if any(point.fewest is None or "*" in point.detail for point in points):
        feet.append(NO_MEANING)
    if any(point.below_one for point in points):
        feet.append(BELOW_ONE)
    return feet
