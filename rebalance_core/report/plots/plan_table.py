"""Draws plans side by side in a table: the effect of each scenario on a group under each
strategy.
"""

from collections.abc import Iterator
from typing import Any

from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

from rebalance_core.report.plots import letters, plot_rows, style

TITLE = "What if: before and after"
KEYS = ("consumer_group", "scenario", "strategy")
COLUMNS = (
    *KEYS, "of_rocketmq", "members_before", "members_after", "queues_before", "queues_after",
    "moved", "minimum_moves", "amplification", "peak_queues_before", "peak_queues_after",
    "idle_before", "idle_after", "orphaned_before", "orphaned_after",
)  # fmt: skip
DEFAULTS = {"caveat": None, "peak_ratio_before": None, "peak_ratio_after": None}
MOST_ROWS = 40
COLUMN, ROW, HEAD = 1.02, 0.26, 0.45
SHOWN = ("consumers", "queues", "most of\none", "peak /\naverage", "idle", "no owner", "moved",
         "proven\nfewest", "moved /\nfewest")  # fmt: skip
IDLE, UNOWNED = SHOWN.index("idle"), SHOWN.index("no owner")


@style.styled
def draw_summary(summary: plot_rows.PlotRows) -> Figure:
    """Draw each row of `plan_summary` in order, hatching idle and ownerless cells.

    Differences are written as "before → after". Name columns with a single value are not drawn.

    Raises:
        UsageError: Columns are missing.
    """
    frame = plot_rows.table(summary, COLUMNS, DEFAULTS)
    if frame.empty:
        return style.nothing_to_draw(TITLE, "No plan.")
    named = [name for name in KEYS if frame[name].nunique() > 1] or ["strategy"]
    rows = frame.head(MOST_ROWS)
    names = {name: [_name(row, name) for row in rows.to_dict("records")] for name in named}
    widths = [
        0.25 + style.LETTER * max(len(n) for n in [*values, key]) for key, values in names.items()
    ]
    left = 0.2 + sum(widths)
    high = HEAD + ROW * len(rows)
    width = left + COLUMN * len(SHOWN) + 0.25
    figure = style.page(TITLE, _one_value(frame, named), high, _feet(frame), width)
    axes = style.panel(figure, left, style.TOP - 0.15, COLUMN * len(SHOWN), high)
    style.bare(axes)
    axes.set_xlim(0, len(SHOWN))
    axes.set_ylim(high / ROW, 0)
    _draw_names(axes, names, widths)
    _draw_cells(axes, rows)
    _draw_lines(axes, names[named[0]], -sum(widths) / COLUMN)
    return figure


def _name(row: dict[str, Any], name: str) -> str:
    mark = "" if name != "strategy" or row["of_rocketmq"] else " *"
    return letters.short(str(row[name]), 40) + mark


def _one_value(frame: Any, named: list[str]) -> str:
    same = [letters.short(str(frame[name].iloc[0]), 50) for name in KEYS if name not in named]
    return ", ".join(same) or f"{len(frame):,} plans"


def _draw_names(axes: Axes, names: dict[str, list[str]], widths: list[float]) -> None:
    left = -sum(widths) / COLUMN
    shown: dict[str, Any] = {"size": style.SMALL, "color": style.INK, "clip_on": False}
    for (key, values), width in zip(names.items(), widths, strict=True):
        words = key.replace("consumer_", "")
        axes.text(left, (HEAD - 0.12) / ROW, words, va="baseline", weight="bold", **shown)
        for number, name in enumerate(values):
            if number == 0 or key == "strategy" or name != values[number - 1]:
                top = HEAD / ROW + number + 0.5
                axes.text(left, top, name, va="center", family=style.MONO, **shown)
        left += width / COLUMN
    for column, words in enumerate(SHOWN):
        style.head(axes, column + 0.5, (HEAD - 0.12) / ROW, words, 0.13 / ROW)


def _draw_cells(axes: Axes, rows: Any) -> None:
    box = {"facecolor": style.PAPER, "edgecolor": "none", "pad": 1.2}
    troubled: dict[int, list[Any]] = {IDLE: [], UNOWNED: []}
    for number, row in enumerate(rows.to_dict("records")):
        top = HEAD / ROW + number
        for column, (text, trouble) in enumerate(_texts(row)):
            x, y = (column + 0.06, column + 0.94), (top + 0.08, top + 0.92)
            if trouble:
                troubled[column].append([(x[0], y[0]), (x[1], y[0]), (x[1], y[1]), (x[0], y[1])])
            axes.text(
                column + 0.5,
                top + 0.52,
                text,
                ha="center",
                va="center",
                size=style.SMALL,
                color=style.INK if text != "n/a" else style.QUIET,
                weight="bold" if trouble else "normal",
                bbox=box if trouble else None,
            )
    for column, hatch, edge in (
        (IDLE, style.IDLE_HATCH, style.INK),
        (UNOWNED, style.NOBODY_HATCH, style.ALARM),
    ):
        style.hatched(axes, troubled[column], hatch, edge)


def _draw_lines(axes: Axes, names: list[str], left: float) -> None:
    """Draw a line above each row, a dark full-width line above the first of each name."""
    rows = [(number, number == 0 or name != names[number - 1]) for number, name in enumerate(names)]
    spans = [
        [(left if first else 0, HEAD / ROW + number), (len(SHOWN), HEAD / ROW + number)]
        for number, first in rows
    ]
    colours = [style.QUIET if first else style.LINE for _, first in rows]
    axes.add_collection(LineCollection(spans, colors=colours, linewidths=0.7, clip_on=False))


def _texts(row: dict[str, Any]) -> Iterator[tuple[str, bool]]:
    """Yield the text of each column, and whether it shows a problem."""
    for name in ("members", "queues", "peak_queues", "peak_ratio", "idle", "orphaned"):
        was, now = _number(row[f"{name}_before"], name), _number(row[f"{name}_after"], name)
        trouble = name in ("idle", "orphaned") and now != "0"
        yield (now if was == now else f"{was} → {now}"), trouble
    yield _number(row["moved"], "moved"), False
    for name in ("minimum_moves", "amplification"):
        yield "n/a" if isinstance(row["caveat"], str) else _number(row[name], name), False


def _number(value: Any, name: str) -> str:
    if value is None or value != value:
        return "-"
    return f"{value:.2f}" if name in ("peak_ratio", "amplification") else style.whole(float(value))


def _feet(frame: Any) -> list[str]:
    feet = []
    if len(frame) > MOST_ROWS:
        feet.append(f"… and {len(frame) - MOST_ROWS:,} more plans, not drawn.")
    if not frame["of_rocketmq"].all():
        feet.append("* not RocketMQ's: RocketMQ has no such strategy.")
    reasons = sorted({text for text in frame["caveat"] if isinstance(text, str)})
    feet += [
        letters.short(f"n/a: moved / fewest is not meaningful: {text}", 120) for text in reasons[:3]
    ]
    return feet
