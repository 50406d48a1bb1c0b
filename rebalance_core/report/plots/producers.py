"""The fate of producers' messages while a broker is disturbed, by version and setting."""

from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from rebalance_core.report.plots import letters, plot_rows, style
from rebalance_core.report.plots.plot_rows import PlotRows

TITLE = "What happens to producers' messages"
HEALTHY = "healthy"
MOST_PHASES = 5
MOST_BARS = 8
"""Maximum number of bars per phase."""
NEEDED = (
    "producer_group",
    "client_version",
    "fault_tolerance",
    "phase",
    "from_ms",
    "to_ms",
    "sends",
    "failed",
    "held_back",
    "peak_queue_ratio",
)
FEET = [
    "Held back: messages that were due while a slow or failed send blocked the thread and were "
    "not sent.",
    "Busiest queue: its messages over the mean of all queues; 1 is even.",
]
LEFT, RIGHT, ROW, HEAD = 2.15, 2.2, 0.34, 0.42


@style.styled
def draw_producers(outcomes: PlotRows) -> Figure:
    """Draw a panel for each disturbed phase, with a bar for each version and setting.

    A bar divides all due messages into those sent, failed after all retries, and held back. The
    text next to it shows how uneven the queues became.

    Args:
        outcomes: Rows of `producer_outcomes` for one group.

    Raises:
        UsageError: Columns are missing, or the rows belong to several groups.
    """
    frame = plot_rows.table(outcomes, NEEDED)
    (group,) = plot_rows.only(frame, ("producer_group",), "this picture")
    frame = frame[frame["phase"] != HEALTHY].sort_values(
        ["from_ms", "client_version", "fault_tolerance"], kind="stable"
    )
    if frame.empty:
        return style.nothing_to_draw(TITLE, "No phase disturbs a broker.")
    phases = list(frame.groupby("from_ms", sort=True))
    drawn = phases[:MOST_PHASES]
    feet = list(FEET)
    if len(phases) > MOST_PHASES:
        feet.append(f"… and {len(phases) - MOST_PHASES} more phases, not drawn.")
    most = max(len(rows) for _, rows in drawn)
    if most > MOST_BARS:
        feet.append(f"… and {most - MOST_BARS} more versions and settings, not drawn.")
    drawn = [(start, rows.head(MOST_BARS)) for start, rows in drawn]
    body = 0.3 + sum(HEAD + ROW * len(rows) for _, rows in drawn)
    subtitle = f"{letters.short(group, 60)}, with and without sendLatencyFaultEnable"
    figure = style.page(TITLE, subtitle, body, feet)
    top = style.TOP + 0.25
    for _, rows in drawn:
        axes = style.panel(figure, LEFT, top + HEAD, style.WIDTH - LEFT - RIGHT, ROW * len(rows))
        _phase(axes, rows)
        top += HEAD + ROW * len(rows)
    style.key(figure, _samples(), LEFT, style.TOP - 0.02, 3)
    return figure


def _phase(axes: Axes, rows: Any) -> None:
    style.bare(axes)
    axes.set_xlim(0, 1)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    first = rows.iloc[0]
    seconds = (first["to_ms"] - first["from_ms"]) / 1000
    title = f"{letters.short(first['phase'], 60)}, {seconds:,.0f} s"
    axes.set_title(title, loc="left", size=style.SMALL + 1, weight="bold")
    for y, (_, row) in enumerate(rows.iterrows()):
        _bar(axes, y, row)


def _bar(axes: Axes, y: int, row: Any) -> None:
    due = max(row["sends"] + row["held_back"], 1)
    sent, failed = (row["sends"] - row["failed"]) / due, row["failed"] / due
    back = row["held_back"] / due
    axes.barh(y, sent, 0.66, color=style.FILL, edgecolor=style.QUIET, linewidth=0.5)
    axes.barh(y, failed, 0.66, left=sent, color=style.ALARM, edgecolor=style.QUIET, linewidth=0.5)
    axes.barh(
        y,
        back,
        0.66,
        left=sent + failed,
        color=style.PAPER,
        edgecolor=style.QUIET,
        linewidth=0.5,
        hatch=style.IDLE_HATCH,
    )
    setting = "on" if row["fault_tolerance"] else "off"
    axes.text(
        -0.02,
        y,
        f"{row['client_version']} {setting}",
        ha="right",
        va="center",
        family=style.MONO,
        size=style.SMALL,
    )
    peak = row["peak_queue_ratio"]
    uneven = "-" if peak is None or peak != peak else f"busiest queue {peak:.1f} x"
    axes.text(1.02, y, f"{sent:.1%} sent, {uneven}", va="center", size=style.SMALL)


def _samples() -> list[Any]:
    edge: dict[str, Any] = {"edgecolor": style.QUIET, "linewidth": 0.5}
    return [
        Patch(facecolor=style.FILL, label="sent", **edge),
        Patch(facecolor=style.ALARM, label="failed after all retries", **edge),
        Patch(facecolor=style.PAPER, hatch=style.IDLE_HATCH, label="held back", **edge),
    ]
