"""The page a picture is drawn on: size in inches, one font, greys with one accent; names and
rows to draw.
"""

import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, wraps
from os import PathLike
from pathlib import Path
from typing import Any, ParamSpec, TypeAlias, TypeVar

import matplotlib as mpl
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from matplotlib.ft2font import FT2Font
from matplotlib.legend import Legend
from matplotlib.ticker import MaxNLocator

from rebalance_core.model.errors import UsageError, did_you_mean
from rebalance_core.model.times import utc
from rebalance_core.report.timeline import Axis
from rebalance_core.report.visible import shortened

# The page a picture is drawn on: size in inches, one font, greys with one accent.

INK, QUIET, LINE, PAPER = "#1e293b", "#475569", "#cbd5e1", "#ffffff"
FILL, ACCENT, ALARM = "#9fb3cc", "#1d4ed8", "#b91c1c"
IDLE_HATCH, NOBODY_HATCH, UNCERTAIN_HATCH = "xxxx", "\\\\\\\\", "////"

WIDTH = 9.6
"""Inches; what a page and a notebook show without scaling."""
TOP = 0.86
"""Inches above the first panel: title, and a line or two below it."""
MONO = "DejaVu Sans Mono"
SMALL = 8.0
LETTER = 0.602 * SMALL / 72
"""Width in inches of a letter of MONO at SMALL: what labels are measured by."""

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
    "text.parse_math": False,  # a client id may hold two dollars
    "svg.hashsalt": "rebalance-core",
    "svg.fonttype": "path",
    "path.simplify": True,
}

P = ParamSpec("P")
R = TypeVar("R")


def styled(draw: Callable[P, R]) -> Callable[P, R]:
    """Draw in this style, whatever the caller's rcParams; those stay as they are."""

    @wraps(draw)
    def drawn(*args: P.args, **kwargs: P.kwargs) -> R:
        with mpl.rc_context(STYLE):
            return draw(*args, **kwargs)

    return drawn


class Picture(Figure):
    """A Figure that a notebook shows without pyplot and without a magic line."""

    @styled
    def _repr_png_(self) -> bytes:
        return png_bytes(self)


@styled
def png_bytes(figure: Figure) -> bytes:
    """Return the picture as PNG, with the same bytes for the same picture and matplotlib."""
    drawn = io.BytesIO()
    figure.savefig(drawn, format="png", metadata={"Software": None})
    return drawn.getvalue()


@styled
def svg_text(figure: Figure) -> str:
    """Return the picture as SVG, with the same text for the same picture and matplotlib."""
    drawn = io.StringIO()
    figure.savefig(drawn, format="svg", metadata={"Date": None, "Creator": None})
    return drawn.getvalue()


@styled
def save_picture(figure: Figure, path: str | PathLike[str]) -> None:
    """Write a picture; ``.png`` or ``.svg``, by the name. The same picture gives the same bytes."""
    if Path(path).suffix == ".svg":
        Path(path).write_text(svg_text(figure), "utf-8")
    else:
        Path(path).write_bytes(png_bytes(figure))


def page(
    title: str, subtitle: str, body: float, feet: Sequence[str] = (), width: float = WIDTH
) -> Picture:
    """Return an empty page, sizes in inches: title above, ``body`` for panels, ``feet`` below."""
    height = TOP + body + 0.15 + 0.16 * len(feet)
    figure = Picture(figsize=(width, height))
    FigureCanvasAgg(figure)
    figure.text(0.2 / width, 1 - 0.34 / height, title, size=12.5, weight="bold", color=INK)
    figure.text(
        0.2 / width, 1 - 0.45 / height, subtitle, size=SMALL + 0.5, color=QUIET, va="top",
        linespacing=1.4,
    )  # fmt: skip
    if feet:
        figure.text(
            0.2 / width, 0.1 / height, "\n".join(feet), size=SMALL - 0.5, color=QUIET, va="bottom",
            linespacing=1.35,
        )  # fmt: skip
    return figure


def panel(figure: Figure, left: float, top: float, width: float, height: float) -> Axes:
    """Return axes at a place in inches from the upper left corner."""
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
    """Draw the head of a column: its last line at y, the others ``line`` above each other."""
    for number, words in enumerate(reversed(text.split("\n"))):
        axes.text(
            x, y - number * line, words, ha="center", va="baseline", size=SMALL - 0.5,
            weight="bold", color=INK, clip_on=False,
        )  # fmt: skip


def hatched(
    axes: Axes, cells: Sequence[Any], hatch: str, edge: str = INK, line: float = 0.6, z: float = 1
) -> None:
    """Draw cells, each by its corners, that stand out by their hatch."""
    axes.add_collection(
        PolyCollection(
            cells, facecolors=PAPER, edgecolors=edge, linewidths=line, hatch=hatch, zorder=z
        )
    )


def few_ticks(axes: Axes, most: int) -> None:
    """Show at most this many whole numbers at the left."""
    axes.yaxis.set_major_locator(MaxNLocator(nbins=most, integer=True, min_n_ticks=2))


def key(figure: Figure, samples: Sequence[Any], left: float, top: float, columns: int) -> Legend:
    """Draw a legend with its upper left corner at a place in inches."""
    across, down = figure.get_size_inches()
    return figure.legend(
        handles=list(samples), ncols=max(columns, 1), loc="upper left", borderaxespad=0,
        bbox_to_anchor=(left / across, 1 - top / down), labelcolor=INK, columnspacing=1.6,
        handlelength=1.6, handleheight=1.0,
    )  # fmt: skip


def nothing_to_draw(title: str, why: str) -> Picture:
    """Return the picture for no rows, with a note instead of an error."""
    figure = page(title, "", 1.5 - TOP - 0.15)
    figure.text(0.2 / WIDTH, 0.4, why, size=10, color=QUIET)
    return figure


def whole(value: float) -> str:
    """Return a number for a label: digits grouped, one decimal if it has one.

    >>> whole(1234), whole(2.5), whole(12.04)
    ('1,234', '2.5', '12')
    """
    return f"{value:,.1f}".removesuffix(".0")


# Names from outside as a picture can show them: visible, of this width, in letters we have.

FONTS = ("DejaVuSans.ttf", "DejaVuSansMono.ttf")


def short(name: str, most: int = 28) -> str:
    """Return the name in at most this many columns, with letters the font lacks escaped."""
    if not name.isascii():
        drawable = _letters()
        name = "".join(c if c.isascii() or ord(c) in drawable else _escape(c) for c in name)
    return shortened(name, most)


@cache
def _letters() -> frozenset[int]:
    folder = Path(mpl.get_data_path()) / "fonts" / "ttf"
    return frozenset.intersection(
        *(frozenset(FT2Font(str(folder / font)).get_charmap()) for font in FONTS)
    )


def _escape(character: str) -> str:
    code = ord(character)
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


# A number of queues as a shade: the more the darker; one hue, so grey print keeps the order.

LIGHT, DARK = (0xDB, 0xE6, 0xF4), (0x1F, 0x3A, 0x68)
DARK_FROM = 0.55
"""Share of the way to DARK from which on text is white."""


def shade(queues: int, most: int) -> str:
    """Return the colour of a cell.

    >>> shade(0, 8), shade(8, 8)
    ('#ffffff', '#1f3a68')
    """
    if queues == 0:
        return PAPER
    way = _way(queues, most)
    return "#" + "".join(
        f"{round(a + (b - a) * way):02x}" for a, b in zip(LIGHT, DARK, strict=True)
    )


def text_on(queues: int, most: int) -> str:
    """Return the colour of text on that cell."""
    return PAPER if queues and _way(queues, most) > DARK_FROM else INK


def _way(queues: int, most: int) -> float:
    return (queues - 1) / (most - 1) if most > 1 else 0.2


# What a picture is drawn of: a pandas DataFrame, or rows (mappings, Spark's rows).

PlotRows: TypeAlias = "pd.DataFrame | Iterable[Mapping[str, Any]]"


def table(rows: PlotRows, needed: Sequence[str], defaults: Mapping[str, Any] | None = None) -> Any:
    """Return a new DataFrame with the needed columns and those of ``defaults``, indexed from 0.

    Raises:
        UsageError: A needed column is missing; all that are get named. Rows may be none at all.
    """
    if isinstance(rows, pd.DataFrame):
        frame = rows.reset_index(drop=True)
    elif hasattr(rows, "toPandas"):
        raise UsageError("a Spark DataFrame: pass its toPandas(), of the rows to draw")
    else:
        frame = pd.DataFrame([_mapping(row) for row in rows])
    if not len(frame.columns):
        frame = pd.DataFrame(columns=list(needed))
    missing = [name for name in needed if name not in frame.columns]
    if missing:
        present = [str(name) for name in frame.columns]
        named = ", ".join(name + did_you_mean(name, present) for name in missing)
        raise UsageError(f"columns missing: {named}; present: {', '.join(present)}")
    for name, value in (defaults or {}).items():
        if name not in frame.columns:
            frame[name] = [value] * len(frame)
    return frame


def only(frame: Any, names: Sequence[str], what: str) -> tuple[str, ...]:
    """Return the single value of each of these columns; a picture of several would be meaningless.

    Raises:
        UsageError: There are several; some of them are named.
    """
    for name in names:
        values = sorted({str(value) for value in frame[name]})
        if len(values) > 1:
            some = ", ".join(values[:3]) + (f" and {len(values) - 3} more" if values[3:] else "")
            raise UsageError(f"{what} shows a single {name}; these rows have {len(values)}: {some}")
    return tuple(str(frame[name].iloc[0]) if len(frame) else "" for name in names)


def _mapping(row: Any) -> Mapping[str, Any]:
    return row.asDict() if hasattr(row, "asDict") else row


# A time axis of a picture: UTC, round ticks; times become hundredths of an inch.

UNITS_PER_INCH = 100.0
OPEN_SHARE = 0.08
"""Of the picture for what is open at the end: an epoch without an end lasts."""


def clock(starts: Iterable[int], ends: Iterable[int | None], inches: float) -> Axis:
    """Return an axis over all of these times, with room after the last for open ends."""
    ends = list(ends)
    times = [*starts, *(end for end in ends if end is not None)]
    first, last = min(times), max(times)
    if len(ends) > sum(end is not None for end in ends) or last == first:
        last += max(int((last - first) * OPEN_SHARE), 1000)
    return Axis(first, last, 0.0, inches * UNITS_PER_INCH)


def draw_clock(axes: Axes, axis: Axis) -> None:
    """Draw ticks below the axes."""
    axes.set_xlim(0, axis.width)
    ticks = axis.ticks()
    axes.set_xticks([axis.at(ms) for ms, _ in ticks], [text for _, text in ticks])
    axes.tick_params(axis="x", length=3)


def from_to(axis: Axis) -> str:
    """Return the times of a title."""
    return f"{utc(axis.from_ms)} to {utc(axis.to_ms)}"
