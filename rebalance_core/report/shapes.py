"""A shape for each verdict and severity, readable without colour."""

from types import MappingProxyType

from markupsafe import Markup

from rebalance_core.model.verdicts import ERROR, FAILED, FINDINGS, INCOMPLETE, INFO, OK, WARNING
from rebalance_core.report.svg import tag

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
