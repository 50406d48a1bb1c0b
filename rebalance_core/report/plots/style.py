"""The page of a figure: sizes in inches, one font, greys with one accent."""

import io
from collections.abc import Callable, Sequence
from functools import wraps
from os import PathLike
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.ticker import MaxNLocator

INK, QUIET, LINE, PAPER = "#1e293b", "#475569", "#cbd5e1", "#ffffff"
FILL, ACCENT, ALARM = "#9fb3cc", "#1d4ed8", "#b91c1c"
IDLE_HATCH, NOBODY_HATCH, UNCERTAIN_HATCH = "xxxx", "\\\\\\\\", "////"

WIDTH = 9.6
"""Width in inches, which pages and notebooks show without scaling."""
TOP = 0.86
"""Inches above the first panel, for the title and a line or two below it."""
MONO = "DejaVu Sans Mono"
SMALL = 8.0
LETTER = 0.602 * SMALL / 72
"""Width in inches of a MONO letter at SMALL, used to measure labels."""

STYLE: dict[Any, Any] = {
    "font.family": ["DejaVu Sans"],
    "font.size": 9.0,
    "axes.edgecolor": LINE,
    "axes.labelcolor": QUIET,
    "text.color": INK,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.grid": False,
    "xtick.color": QUIET,
    "ytick.color": QUIET,
    "xtick.labelsize": SMALL,
    "ytick.labelsize": SMALL,
    "hatch.linewidth": 0.6,
    "legend.frameon": False,
    "legend.fontsize": SMALL,
    "figure.facecolor": PAPER,
    "figure.dpi": 110.0,
    "savefig.dpi": "figure",
    "text.usetex": False,
    "text.parse_math": False,  # a client id may contain two dollar signs
    "svg.hashsalt": "rebalance-core",
    "svg.fonttype": "path",
    "path.simplify": True,
}

P = ParamSpec("P")
R = TypeVar("R")


def styled(draw: Callable[P, R]) -> Callable[P, R]:
    """Draw in this style without reading or changing the caller's rcParams."""

    @wraps(draw)
    def drawn(*args: P.args, **kwargs: P.kwargs) -> R:
        with mpl.rc_context(STYLE):
            return draw(*args, **kwargs)

    return drawn


class Picture(Figure):
    """A Figure that a notebook shows without pyplot or a magic command."""

    @styled
    def _repr_png_(self) -> bytes:
        return png_bytes(self)


@styled
def png_bytes(figure: Figure) -> bytes:
    """Return the figure as PNG; the same figure and matplotlib give the same bytes."""
    drawn = io.BytesIO()
    figure.savefig(drawn, format="png", metadata={"Software": None})
    return drawn.getvalue()


@styled
def svg_text(figure: Figure) -> str:
    """Return the figure as SVG; the same figure and matplotlib give the same text."""
    drawn = io.StringIO()
    figure.savefig(drawn, format="svg", metadata={"Date": None, "Creator": None})
    return drawn.getvalue()


@styled
def save_picture(figure: Figure, path: str | PathLike[str]) -> None:
    """Write an image as ``.png`` or ``.svg``, depending on the name. The same figure gives the same
    bytes.
    """
    if Path(path).suffix == ".svg":
        Path(path).write_text(svg_text(figure), "utf-8")
    else:
        Path(path).write_bytes(png_bytes(figure))


def page(
    title: str, subtitle: str, body: float, feet: Sequence[str] = (), width: float = WIDTH
) -> Picture:
    """Return an empty page with a title, ``body`` inches for panels, and ``feet`` as lines at the
    bottom.
    """
    height = TOP + body + 0.15 + 0.16 * len(feet)
    figure = Picture(figsize=(width, height))
    FigureCanvasAgg(figure)
    figure.text(0.2 / width, 1 - 0.34 / height, title, size=12.5, weight="bold", color=INK)
    figure.text(
        0.2 / width,
        1 - 0.45 / height,
        subtitle,
        size=SMALL + 0.5,
        color=QUIET,
        va="top",
        linespacing=1.4,
    )
    if feet:
        figure.text(
            0.2 / width,
            0.1 / height,
            "\n".join(feet),
            size=SMALL - 0.5,
            color=QUIET,
            va="bottom",
            linespacing=1.35,
        )
    return figure


def panel(figure: Figure, left: float, top: float, width: float, height: float) -> Axes:
    """Return axes at a position in inches from the upper left corner."""
    across, down = figure.get_size_inches()
    place = (left / across, 1 - (top + height) / down, width / across, height / down)
    return figure.add_axes(place)


def bare(axes: Axes) -> None:
    """Remove ticks and frame from the axes."""
    axes.set_xticks([])
    axes.set_yticks([])
    for spine in axes.spines.values():
        spine.set_visible(False)


def grid(axes: Axes) -> None:
    """Draw faint horizontal lines."""
    axes.grid(axis="y", color=LINE, linewidth=0.5, alpha=0.7)
    axes.tick_params(length=0)


def head(axes: Axes, x: float, y: float, text: str, line: float) -> None:
    """Draw the head of a column, with its last line at y and the others ``line`` apart above it."""
    for number, words in enumerate(reversed(text.split("\n"))):
        axes.text(
            x,
            y - number * line,
            words,
            ha="center",
            va="baseline",
            size=SMALL - 0.5,
            weight="bold",
            color=INK,
            clip_on=False,
        )


def hatched(
    axes: Axes, cells: Sequence[Any], hatch: str, edge: str = INK, line: float = 0.6, z: float = 1
) -> None:
    """Draw hatched cells, each given by its corners."""
    axes.add_collection(
        PolyCollection(
            cells, facecolors=PAPER, edgecolors=edge, linewidths=line, hatch=hatch, zorder=z
        )
    )


def few_ticks(axes: Axes, most: int) -> None:
    """Show at most this many integer ticks on the left."""
    axes.yaxis.set_major_locator(MaxNLocator(nbins=most, integer=True, min_n_ticks=2))


def key(figure: Figure, samples: Sequence[Any], left: float, top: float, columns: int) -> Legend:
    """Draw a legend with its upper left corner at a position in inches."""
    across, down = figure.get_size_inches()
    return figure.legend(
        handles=list(samples),
        ncols=max(columns, 1),
        loc="upper left",
        borderaxespad=0,
        bbox_to_anchor=(left / across, 1 - top / down),
        labelcolor=INK,
        columnspacing=1.6,
        handlelength=1.6,
        handleheight=1.0,
    )


def nothing_to_draw(title: str, why: str) -> Picture:
    """Return a figure with a note, for a table without rows."""
    figure = page(title, "", 1.5 - TOP - 0.15)
    figure.text(0.2 / WIDTH, 0.4, why, size=10, color=QUIET)
    return figure


def whole(value: float) -> str:
    """Return a number for a label, with grouped digits and at most one decimal.

    >>> whole(1234), whole(2.5), whole(12.04)
    ('1,234', '2.5', '12')
    """
    return f"{value:,.1f}".removesuffix(".0")
