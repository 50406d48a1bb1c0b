"""Marks that distinguish clients: a letter, pattern and colour for the first twelve, then numbers
in grey.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from rebalance_core.report.svg import tag

TILE = 8


INK, QUIET, LINE, ALARM = "#1e293b", "#475569", "#cbd5e1", "#b91c1c"


STYLES = (  # line colour, tint, what is drawn in a tile of 8 x 8
    ("#1d4ed8", "#bfdbfe", ""),
    ("#c2410c", "#ffedd5", "M-2 2l4-4M0 8l8-8M6 10l4-4"),
    ("#15803d", "#dcfce7", "M2 2h0M6 6h0"),
    ("#6d28d9", "#ede9fe", "M0 2h8M0 6h8"),
    ("#0f766e", "#ccfbf1", "M2 0v8M6 0v8"),
    ("#854d0e", "#fef9c3", "M-2 6l4 4M0 0l8 8M6-2l4 4"),
    ("#be185d", "#fce7f3", "M0 4h8M4 0v8"),
    ("#334155", "#f1f5f9", "M2 0v4M6 4v4"),
    ("#0e7490", "#cffafe", "M0 2h4M4 6h4"),
    ("#4d7c0f", "#ecfccb", "M0 0l8 8M8 0l-8 8"),
    ("#a21caf", "#fae8ff", "M0 6l4-4l4 4"),
    ("#57534e", "#f5f5f4", "M2 4h4M4 2v4"),
)


LETTERS = "ABCDEFGHIJKL"


GREYS = ("#e9eef4", "#d3dbe5")
"""Used in turn, so that neighbouring clients differ."""


@dataclass(frozen=True, slots=True)
class Mark:
    """The mark of a client in a drawing."""

    label: str
    style: int | None  # index into STYLES, or None for grey


def marks_of(clients: Sequence[str]) -> dict[str, Mark]:
    """Return a mark for each client, largest share first.

    >>> [mark.label for mark in marks_of([f"c{i}" for i in range(14)]).values()][10:]
    ['K', 'L', '13', '14']
    """
    return {
        client: Mark(LETTERS[number], number)
        if number < len(STYLES)
        else Mark(str(number + 1), None)
        for number, client in enumerate(clients)
    }


def paint(mark: Mark, prefix: str) -> str:
    """Return the value of ``fill`` for a mark."""
    if mark.style is None:
        return GREYS[int(mark.label) % 2]
    _, tint, lines = STYLES[mark.style]
    return f"url(#{prefix}{mark.label})" if lines else tint


def definition(mark: Mark, prefix: str) -> Markup:
    """Return the ``<pattern>`` that `paint` refers to; empty for a plain tint."""
    if mark.style is None or not STYLES[mark.style][2]:
        return Markup("")
    colour, tint, lines = STYLES[mark.style]
    return _pattern(f"{prefix}{mark.label}", tint, colour, lines)


def nobody_definition(prefix: str) -> Markup:
    """Return the hatched white pattern for a queue without an owner."""
    return _pattern(f"{prefix}none", "#ffffff", ALARM, "M-2 6l4 4M0 0l8 8M6-2l4 4")


def many_definition(prefix: str) -> Markup:
    """Return the dense bars for changes too close together to draw."""
    return _pattern(f"{prefix}many", "#ffffff", INK, "M1 0v8M3 0v8M5 0v8M7 0v8")


def swatch(fill: str, definitions: Markup, outline: str = "#94a3b8", label: str = "") -> Markup:
    """Return a self-contained sample for the legend."""
    return tag(
        "svg",
        tag("defs", definitions) if definitions else Markup(""),
        tag("rect", x=0.5, y=0.5, width=33, height=15, fill=fill, stroke=outline),
        tag("text", label, x=17, y=12, class_="m") if label else Markup(""),
        width=34,
        height=16,
        aria_hidden="true",
    )


def _pattern(name: str, tint: str, colour: str, lines: str) -> Markup:
    drawn = tag(
        "path",
        d=lines,
        stroke=colour,
        stroke_width="2.4" if "h0" in lines else "1.1",
        stroke_linecap="round",
        opacity="0.6",
        fill="none",
    )
    return tag(
        "pattern",
        tag("rect", width=TILE, height=TILE, fill=tint),
        drawn,
        id=name,
        width=TILE,
        height=TILE,
        patternUnits="userSpaceOnUse",
    )
