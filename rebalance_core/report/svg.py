"""Builds SVG elements from escaped parts."""

from collections.abc import Iterable

from markupsafe import Markup, escape

from rebalance_core.report.visible import LONGEST, visible

XMLNS = "http://www.w3.org/2000/svg"


def number(value: float) -> str:
    """Return a coordinate, rounded to a tenth of a pixel.

    >>> number(12.04), number(12.25), number(-0.01)
    ('12', '12.2', '0')
    """
    text = f"{value:.1f}".removesuffix(".0")
    return "0" if text == "-0" else text


def text_of(value: object, longest: int | None = LONGEST) -> Markup:
    """Return a value as escaped, visible text; return Markup unchanged."""
    if isinstance(value, Markup):
        return value
    return escape(number(value) if isinstance(value, float) else visible(str(value), longest))


def tag(name: str, *children: object, **attributes: object) -> Markup:
    """Return an element; ``stroke_width`` becomes ``stroke-width``, and None omits an attribute.

    Long children are truncated like all text of the page; attributes, such as paths, never are.

    >>> tag("text", "<b>", x=1.5, text_anchor="end")
    Markup('<text x="1.5" text-anchor="end">&lt;b&gt;</text>')
    """
    pairs = "".join(
        f' {escape(key.rstrip("_").replace("_", "-"))}="{text_of(value, None)}"'
        for key, value in attributes.items()
        if value is not None
    )
    inner = "".join(map(text_of, children))
    # every part is escaped above: Markup.format would parse its template for each element again
    return Markup(f"<{name}{pairs}>{inner}</{name}>" if inner else f"<{name}{pairs}/>")


def joined(parts: Iterable[Markup]) -> Markup:
    """Return the concatenated parts."""
    return Markup("").join(parts)


def box(left: float, top: float, width: float, height: float) -> str:
    """Return a rectangle as part of a path, so that many rectangles form one element.

    >>> box(1, 2, 3, 4)
    'M1 2h3v4h-3z'
    """
    across, down = number(width), number(height)
    return f"M{number(left)} {number(top)}h{across}v{down}h-{across}z"
