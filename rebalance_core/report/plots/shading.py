"""Maps numbers of queues to shades of one hue, darker for more, so that greyscale print keeps the
order.
"""

from rebalance_core.report.plots.style import INK, PAPER

LIGHT, DARK = (0xDB, 0xE6, 0xF4), (0x1F, 0x3A, 0x68)


DARK_FROM = 0.55
"""Text is white on shades beyond this share of the way to DARK."""


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
    """Return the colour of text on such a cell."""
    return PAPER if queues and _way(queues, most) > DARK_FROM else INK


def _way(queues: int, most: int) -> float:
    return (queues - 1) / (most - 1) if most > 1 else 0.2
