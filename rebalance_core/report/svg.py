"""SVG elements out of escaped parts; marks that distinguish clients, verdicts and severities."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from markupsafe import Markup, escape

from rebalance_core.model.verdicts import ERROR, FAILED, FINDINGS, INCOMPLETE, INFO, OK, WARNING
from rebalance_core.report.visible import LONGEST, visible

# SVG elements out of escaped parts.

XMLNS = "http://www.w3.org/2000/svg"


def number(value: float) -> str:
    """Return a coordinate, rounded to a tenth of a pixel.

    >>> number(12.04), number(12.25), number(-0.01)
    ('12', '12.2', '0')
    """
    text = f"{value:.1f}".removesuffix(".0")
    return "0" if text == "-0" else text


def text_of(value: object, longest: int | None = LONGEST) -> Markup:
    """Return any value as escaped, visible text; Markup unchanged."""
    if isinstance(value, Markup):
        return value
    return escape(number(value) if isinstance(value, float) else visible(str(value), longest))


def tag(name: str, *children: object, **attributes: object) -> Markup:
    """Return an element; ``stroke_width`` becomes ``stroke-width``, None omits an attribute.

    Long children are truncated like all text of the page; attributes, such as paths, never are.

    >>> tag("text", "<b>", x=1.5, text_anchor="end")
    Markup('<text x="1.5" text-anchor="end">&lt;b&gt;</text>')
    """
    pairs = joined(
        Markup(' {}="{}"').format(key.rstrip("_").replace("_", "-"), text_of(value, None))
        for key, value in attributes.items()
        if value is not None
    )
    inner = joined(text_of(child) for child in children)
    opened = Markup("<{}{}").format(Markup(name), pairs)
    if not inner:
        return opened + Markup("/>")
    return Markup("{}>{}</{}>").format(opened, inner, Markup(name))


def joined(parts: Iterable[Markup]) -> Markup:
    """Return the parts side by side."""
    return Markup("").join(parts)


def box(left: float, top: float, width: float, height: float) -> str:
    """Return a rectangle as part of a path, so that many of them form one element.

    >>> box(1, 2, 3, 4)
    'M1 2h3v4h-3z'
    """
    across, down = number(width), number(height)
    return f"M{number(left)} {number(top)}h{across}v{down}h-{across}z"


# Marks that distinguish clients: letter, pattern, colour; after the twelfth a grey number.

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
"""By turns, so that clients next to each other differ."""


@dataclass(frozen=True, slots=True)
class Mark:
    """The mark of a client in one picture."""

    label: str
    style: int | None  # index into STYLES; None: grey


def marks_of(clients: Sequence[str]) -> dict[str, Mark]:
    """Return a mark for each client, the largest share first.

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


# A shape for each verdict and severity: it is readable without colour.

GREEN, AMBER, RED, BLUE, GREY = "#15803d", "#b45309", "#b91c1c", "#1d4ed8", "#475569"

OCTAGON = "M7.5 1h9L23 7.5v9L16.5 23h-9L1 16.5v-9z"
TRIANGLE = "M12 1.5L23.5 22.5H.5z"
CIRCLE = "M12 1a11 11 0 1 0 .01 0z"
DIAMOND = "M12 .5L23.5 12L12 23.5L.5 12z"

TICK = "M6.5 12.5l4 4l7-8.5"
CROSS = "M8 8l8 8M16 8l-8 8"
BANG = "M12 9v6M12 18.5v.2"
QUESTION = "M9 9.5a3 3 0 1 1 3.6 2.9v2M12.6 17.5v.2"
LETTER_I = "M12 10.5v7M12 6.3v.2"

SHAPES = MappingProxyType(
    {
        OK: (CIRCLE, TICK, GREEN),
        FINDINGS: (TRIANGLE, BANG, AMBER),
        FAILED: (OCTAGON, CROSS, RED),
        INCOMPLETE: (DIAMOND, QUESTION, GREY),
        ERROR: (OCTAGON, CROSS, RED),
        WARNING: (TRIANGLE, BANG, AMBER),
        INFO: (CIRCLE, LETTER_I, BLUE),
    }
)


def shape(word: str, size: int) -> Markup:
    """Return the shape of a verdict or severity, a diamond for an unknown word."""
    outline, sign, colour = SHAPES.get(word, SHAPES[INCOMPLETE])
    return tag(
        "svg",
        tag("path", d=outline, fill=colour),
        tag("path", d=sign, fill="none", stroke="#fff", stroke_width="2.6", stroke_linecap="round"),
        viewBox="0 0 24 24",
        width=size,
        height=size,
        class_="shape",
        aria_hidden="true",
    )
