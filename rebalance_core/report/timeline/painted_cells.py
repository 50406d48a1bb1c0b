"""What is painted of a row: segments in pixels, short ones kept visible, crowds of them as one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rebalance_core.report.timeline.axis import Axis
from rebalance_core.report.timeline.folding import Row
from rebalance_core.report.timeline.owner_segments import NOBODY, Segment, State, is_shared

THINNEST_PX = 2.0
CROWD_PX = (3, 6, 12, 24, 48)
"""Segments narrower than this that follow each other are one cell; the first that fits is used."""

MOST_CELLS = 1500
"""In one picture: what keeps twenty pictures well below 2 MB."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A painted piece of a row; `changes` > 0: so many changes that are too close to draw."""

    left: float
    width: float
    state: State
    changes: int = 0


def cells_of(rows: Sequence[Row], axis: Axis) -> list[list[Cell]]:
    """The cells of each row."""
    for crowd in CROWD_PX:
        drawn = [row_cells(row.history, axis, crowd) for row in rows]
        if sum(map(len, drawn)) <= MOST_CELLS:
            break
    return drawn


def row_cells(history: Iterable[Segment], axis: Axis, crowd_px: float) -> list[Cell]:
    """The cells of one row, times at which the queue was not there left out."""
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
