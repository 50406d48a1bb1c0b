"""Turns the segments of a row into pixels, keeping short segments visible and merging crowds."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rebalance_core.report.segments import NOBODY, Segment, State, is_shared
from rebalance_core.report.time_axis import Axis
from rebalance_core.report.timeline_rows import TimelineRow

THINNEST_PX = 2.0


CROWD_PX = (3, 6, 12, 24, 48)
"""Consecutive segments narrower than this become one cell; the first sufficient width is used."""


MOST_CELLS = 1500
"""Maximum number of cells in a wide drawing, which keeps twenty drawings in both layouts near 2
MB.
"""


@dataclass(frozen=True, slots=True)
class Cell:
    """A painted piece of a row; if `changes` > 0, it stands for that many changes too close to
    draw.
    """

    left: float
    width: float
    state: State
    changes: int = 0


def clients_in(cells: Iterable[Sequence[Cell]]) -> set[str]:
    """Return the clients that appear in the cells."""
    drawn = (cell for row in cells for cell in row if not cell.changes)
    return {client for cell in drawn for client, _ in cell.state or ()}


def text_of_cell(cell: Cell, held: Sequence[tuple[str, int]]) -> str:
    """Return the holders of a queue in words; ``held`` has its clients' marks and numbers of
    holders.
    """
    if cell.changes:
        return f"{cell.changes:,} changes"
    if not held:
        return "no owner"
    labels = [mark + (f"×{holders}" if holders > 1 else "") for mark, holders in held]
    return "+".join(labels[:2]) + (f" and {len(labels) - 2} more" if labels[2:] else "")


def places(
    rows: Sequence[TimelineRow], begin: float, high: float, head: float
) -> tuple[list[float], list[tuple[float, str]], float]:
    """Lay out rows one below the other, with a head per topic.

    Args:
        rows: the rows, in their order.
        begin: the top of the first head.
        high: the height of a row.
        head: the height of a head.

    Returns:
        The top of each row, the top and topic of each head, and the bottom of the drawing.
    """
    tops: list[float] = []
    heads: list[tuple[float, str]] = []
    top, topic = begin, None
    for row in rows:
        if row.topic != topic:
            heads.append((top, row.topic))
            top, topic = top + head, row.topic
        tops.append(top)
        top += high
    return tops, heads, top


def cells_of(rows: Sequence[TimelineRow], axis: Axis, most: int = MOST_CELLS) -> list[list[Cell]]:
    """Return the cells of each row, at most this many in total if possible."""
    for crowd in CROWD_PX:
        drawn = [row_cells(row.history, axis, crowd) for row in rows]
        if sum(map(len, drawn)) <= most:
            break
    return drawn


def row_cells(history: Iterable[Segment], axis: Axis, crowd_px: float) -> list[Cell]:
    """Return the cells of a row, leaving out times at which the queue did not exist."""
    cells: list[Cell] = []
    crowd: list[Segment] = []
    for segment in history:
        if axis.at(segment.to_ms) - axis.at(segment.from_ms) < crowd_px:
            crowd.append(segment)
            continue
        cells += _crowded(crowd, axis)
        crowd = []
        cells += _cell(segment, axis)
    return cells + _crowded(crowd, axis)


def _crowded(crowd: Sequence[Segment], axis: Axis) -> list[Cell]:
    if len(crowd) <= 1:
        return [cell for segment in crowd for cell in _cell(segment, axis)]
    worst = max(crowd, key=lambda segment: (is_shared(segment.state), segment.state == NOBODY))
    whole = Segment(crowd[0].from_ms, crowd[-1].to_ms, worst.state)
    return [Cell(c.left, c.width, c.state, len(crowd) - 1) for c in _cell(whole, axis, True)]


def _cell(segment: Segment, axis: Axis, crowd: bool = False) -> list[Cell]:
    if segment.state is None and not crowd:
        return []
    left, right = axis.at(segment.from_ms), axis.at(segment.to_ms)
    width = max(right - left, THINNEST_PX)
    return [Cell(min(left, axis.left + axis.width - width), width, segment.state)]
