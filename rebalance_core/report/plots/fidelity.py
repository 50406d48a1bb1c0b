"""Draws observed times next to simulated times, kind by kind."""

from typing import Any

from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from rebalance_core.report.plots import letters, plot_rows, style
from rebalance_core.report.plots.plot_rows import PlotRows
from rebalance_core.report.plots.style import Picture

TITLE = "Observed times beside simulated ones"
QUANTILES = ("min", "p5", "p95", "max")
COLUMNS = (
    "kind",
    "measure",
    "observed_ms",
    "place",
    *(f"simulated_ms_{name}" for name in QUANTILES),
)
LEFT, ROW, ACROSS = 3.1, 0.3, 6.2
"""Inches."""
LINEAR_S = 0.01
"""The axis is linear within this many seconds of 0, and logarithmic beyond."""
TICKS_S = (-100, -10, -1, -0.1, 0, 0.01, 0.1, 1, 10, 100, 1_000)
MOST_NAME = 42
IN_FUTURES = ("INSIDE", "IN_RANGE")
NOT_DRAWN = "NEVER"


@style.styled
def draw_fidelity(samples: PlotRows) -> Picture:
    """Draw each observed time over the range of its kind's futures.

    Args:
        samples: Rows of ``fidelity_samples``.

    Raises:
        UsageError: Columns are missing.
    """
    frame = plot_rows.table(samples, COLUMNS)
    count = len(frame)
    frame = frame[frame["place"] != NOT_DRAWN]
    if frame.empty:
        return style.nothing_to_draw(TITLE, "No observed time has a simulated one.")
    kinds = list(frame.groupby(["kind", "measure"], sort=True))
    height = ROW * len(kinds)
    subtitle = "bars: futures, 5 to 95 % thick, fastest to slowest thin, medians of all samples;\n"
    subtitle += "marks: what clients logged"
    never = count - len(frame)
    feet = [f"{never:,} observed times that happen in no future are not drawn."] if never else []
    figure = style.page(TITLE, subtitle, height + 0.75, feet)
    axes = style.panel(figure, LEFT, style.TOP + 0.1, ACROSS, height)
    for place, (_, its) in enumerate(kinds):
        _row(axes, place, its)
    axes.set_ylim(len(kinds) - 0.5, -0.5)
    axes.set_yticks(range(len(kinds)), [_name(key, len(its)) for key, its in kinds])
    axes.set_xscale("symlog", linthresh=LINEAR_S)
    low, high = axes.get_xlim()
    ticks = [tick for tick in TICKS_S if low <= tick <= high]
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.set_xticks([], minor=True)
    axes.grid(axis="x", color=style.LINE, linewidth=0.5, alpha=0.7)
    axes.tick_params(length=0)
    axes.set_xlabel("seconds since the change, or of the request", size=style.SMALL)
    samples_of = [
        Line2D(
            [],
            [],
            marker="o",
            linestyle="",
            markersize=4,
            color=style.ACCENT,
            label="in the range of its futures",
        ),
        Line2D([], [], marker="D", linestyle="", markersize=4, color=style.ALARM, label="outside"),
        Patch(color=style.FILL, label="futures, 5 to 95 %"),
    ]
    style.key(figure, samples_of, LEFT, style.TOP + height + 0.6, 3)
    return figure


def _name(key: tuple[str, str], count: int) -> str:
    kind, measure = key
    text = kind if measure == "LATENCY" else f"{kind} {measure}"
    return f"{letters.short(text, MOST_NAME)} ({count:,})"


def _row(axes: Axes, place: int, its: Any) -> None:
    low, p5, p95, high = (its[f"simulated_ms_{name}"].median() / 1_000 for name in QUANTILES)
    axes.plot([low, high], [place, place], color=style.FILL, linewidth=1.2, zorder=1)
    axes.plot(
        [p5, p95], [place, place], color=style.FILL, linewidth=7, solid_capstyle="butt", zorder=1
    )
    inside = its["place"].isin(IN_FUTURES)
    for which, colour, mark in ((inside, style.ACCENT, "o"), (~inside, style.ALARM, "D")):
        seconds = its[which]["observed_ms"] / 1_000
        axes.plot(
            seconds,
            [place] * len(seconds),
            linestyle="",
            marker=mark,
            markersize=3,
            color=colour,
            alpha=0.6,
            zorder=2,
        )
