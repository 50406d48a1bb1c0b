"""Draws scalers over time: waiting messages, replicas, and queues without a reader."""

from typing import Any

from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from rebalance_core.report.plots import letters, plot_rows, style
from rebalance_core.report.plots.clock_axis import clock, draw_clock, from_to
from rebalance_core.report.plots.plot_rows import PlotRows
from rebalance_core.report.plots.style import Picture
from rebalance_core.report.time_axis import Axis

TITLE = "Lag and replicas under each policy"
COLUMNS = ("policy", "at_ms", "lag", "replicas", "unowned_queues")
PANELS = (
    ("lag", "messages that wait", 2.2),
    ("replicas", "replicas", 1.5),
    ("unowned_queues", "queues without\na reader", 0.9),
)
"""Column, label, height in inches."""
LEFT, ACROSS, BETWEEN = 0.85, 8.4, 0.35
LINES: tuple[Any, ...] = ("-", (0, (4, 1.5)), (0, (1, 1)), (0, (6, 1.5, 1, 1.5)))
COLOURS = (style.ACCENT, style.INK, style.QUIET, style.FILL, style.ALARM)
MOST = 8
"""Maximum number of policies drawn, chosen ones first."""


@style.styled
def draw_scaling(points: PlotRows, chosen: str | None = None) -> Picture:
    """Draw a future of a group under each policy.

    Args:
        points: Rows of ``lag_over_time`` for one group, world and seed.
        chosen: The recommended policy, if any, drawn with a thick line.

    Raises:
        UsageError: Columns are missing.
    """
    frame = plot_rows.table(points, COLUMNS, {"consumer_group": "", "seed": 0})
    if frame.empty:
        return style.nothing_to_draw(TITLE, "No future has a series.")
    policies = list(dict.fromkeys(frame["policy"]))
    policies.sort(key=lambda name: name != chosen)
    shown = policies[:MOST]
    axis = clock(frame["at_ms"].tolist(), [], ACROSS)
    rows = -(-len(shown) // 2)
    top = style.TOP + 0.2 * rows
    body = sum(height + BETWEEN for _, _, height in PANELS) + 0.2 * rows + 0.2
    group, seed = plot_rows.only(frame, ("consumer_group", "seed"), "this picture")
    subtitle = f"{letters.short(group, 60)}, future {seed}, {from_to(axis)}"
    feet = [] if len(policies) <= MOST else [f"{len(policies) - MOST} policies are left out."]
    figure = style.page(TITLE, subtitle, body, feet)
    for column, label, height in PANELS:
        axes = style.panel(figure, LEFT, top, ACROSS, height)
        _panel(axes, axis, frame, shown, column)
        axes.set_ylabel(label, size=style.SMALL)
        top += height + BETWEEN
    samples = [
        Line2D([], [], label=letters.short(name, 60), **_look(place, place == 0 and name == chosen))
        for place, name in enumerate(shown)
    ]
    style.key(figure, samples, LEFT, style.TOP - 0.12, 2)
    return figure


def _panel(axes: Axes, axis: Axis, frame: Any, shown: list[str], column: str) -> None:
    for place, name in enumerate(shown):
        of = frame[frame["policy"] == name].sort_values("at_ms")
        across = [axis.at(int(ms)) for ms in of["at_ms"]]
        # the number of replicas stays constant until the next point
        axes.step(across, of[column], where="post", **_look(place, place == 0))
    axes.set_ylim(0, max(axes.get_ylim()[1], 1.05))  # an axis below 1 would have fractional ticks
    style.grid(axes)
    style.few_ticks(axes, 4)
    draw_clock(axes, axis)


def _look(place: int, thick: bool) -> dict[str, Any]:
    return {
        "color": COLOURS[place % len(COLOURS)],
        "linestyle": LINES[place % len(LINES)],
        "linewidth": 1.6 if thick else 0.9,
    }
