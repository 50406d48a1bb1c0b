"""The cells of a picture of changes and the figures below them, drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection

from rebalance_core.report.plots.shades import shade, text_on
from rebalance_core.report.plots.style import IDLE_HATCH, INK, MONO, PAPER, QUIET, SMALL
from rebalance_core.report.plots.what_if.consumer_rows import Row
from rebalance_core.report.plots.what_if.states import Column

IDLE = "idle"


def draw_cells(axes: Axes, rows: Sequence[Row], columns: Sequence[Column], first: float) -> None:
    """A line of cells for each row, the first one at ``first``; labels to the left of them."""
    most = max([load for column in columns for load in column.loads.values()], default=0)
    held, shades, idle = [], [], []
    labels = []
    for number, row in enumerate(rows):
        top = first + number
        labels.append((top + 0.5, row.label))
        for at, loads in enumerate(row.loads):
            there = [load for load in loads if load is not None]
            corners = [
                (at + x, top + y)
                for x, y in ((0.04, 0.05), (0.96, 0.05), (0.96, 0.95), (0.04, 0.95))
            ]
            if not there:
                axes.text(at + 0.5, top + 0.5, "·", ha="center", va="center", color=QUIET)
                continue
            if there == [0]:
                idle.append(corners)
            else:
                held.append(corners)
                shades.append(shade(there[-1], most))
            _number(axes, (at + 0.5, top + 0.52), there, row, row.idle[at], most)
    axes.add_collection(PolyCollection(held, facecolors=shades, edgecolors="none"))
    axes.add_collection(
        PolyCollection(idle, facecolors=PAPER, edgecolors=INK, linewidths=0.6, hatch=IDLE_HATCH)
    )
    axes.set_yticks(
        [at for at, _ in labels], [label for _, label in labels], family=MONO, color=INK
    )
    axes.tick_params(axis="y", length=0)


def _number(
    axes: Axes, place: tuple[float, float], loads: Sequence[int], row: Row, idle: int, most: int
) -> None:
    if loads == [0]:
        text = f"{IDLE} ×{idle:,}" if row.many else IDLE
    elif len(loads) == 1:
        text = f"{loads[0]:,} each" if row.many else f"{loads[0]:,}"
    else:
        text = f"{loads[0]:,}–{loads[-1]:,}" + (f", {idle:,} {IDLE}" if idle else "")
    box = {"facecolor": PAPER, "edgecolor": "none", "pad": 1.2} if loads == [0] else None
    axes.text(
        *place, text, ha="center", va="center", size=SMALL, color=text_on(loads[-1], most),
        weight="bold" if idle else "normal", bbox=box,
    )  # fmt: skip


def draw_figures(axes: Axes, figures: Mapping[str, Sequence[str]], top: float) -> None:
    """Below a rule at ``top`` a line for each figure: label -> a text for each column."""
    line = top + 0.25
    axes.plot(axes.get_xlim(), (line, line), color=QUIET, linewidth=0.8)
    for number, (label, texts) in enumerate(figures.items()):
        at = line + number + 0.55
        axes.text(
            -0.035, at, label, ha="right", va="center", size=SMALL, color=QUIET,
            family=MONO, clip_on=False,
        )  # fmt: skip
        for column, text in enumerate(texts):
            strong = label == "idle consumers" and text not in ("", "0")
            axes.text(
                column + 0.5, at, text, ha="center", va="center", size=SMALL, color=INK,
                weight="bold" if strong else "normal",
            )  # fmt: skip
