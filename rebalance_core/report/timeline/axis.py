"""The time axis: where the ticks are and what they say; what is painted of a row, in pixels."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from rebalance_core.model.times import DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS, utc, utc_time
from rebalance_core.report.timeline.timeline import NOBODY, Row, Segment, State, is_shared

# A time axis: where the ticks are and what they say.

TICKS = 8
STEPS_MS = (
    *(SECOND_MS * n for n in (1, 2, 5, 10, 15, 30)),
    *(MINUTE_MS * n for n in (1, 2, 5, 10, 15, 30)),
    *(HOUR_MS * n for n in (1, 2, 3, 6, 12)),
    *(DAY_MS * n for n in (1, 2, 7, 14, 28, 91, 182, 365)),
)


@dataclass(frozen=True, slots=True)
class Axis:
    """Maps times of a window onto pixels."""

    from_ms: int
    to_ms: int
    left: float
    width: float

    def at(self, time_ms: int) -> float:
        """The pixel of a time inside the window."""
        return self.left + self.width * (time_ms - self.from_ms) / (self.to_ms - self.from_ms)

    def ticks(self) -> list[tuple[int, str]]:
        """Round times with their text; the day is named where it changes."""
        span = self.to_ms - self.from_ms
        step = next((s for s in STEPS_MS if span <= s * TICKS), -(-span // TICKS))
        first = -(-self.from_ms // step) * step
        ticks, day = [], ""
        for time_ms in range(first, self.to_ms + 1, step):
            today = utc(time_ms, "%m-%d")
            ticks.append((time_ms, _text(time_ms, step, today if today != day else "")))
            day = today
        return ticks


def _text(time_ms: int, step: int, day: str) -> str:
    if step >= DAY_MS:
        return utc(time_ms, "%Y-%m-%d")
    clock = utc(time_ms, "%H:%M" if step >= MINUTE_MS else "%H:%M:%S")
    return f"{day} {clock}" if day else clock


# What is painted of a row: segments in pixels, short ones kept visible, crowds of them as one.

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


# Times and durations as the page shows them.


def time_tag(time_ms: int | None) -> Markup:
    """A ``<time>`` element: seconds to read, milliseconds for a program; "–" for None."""
    if time_ms is None:
        return Markup("–")
    if utc_time(time_ms) is None:
        return Markup("<span>{} ms</span>").format(time_ms)
    exact = utc(time_ms, "%Y-%m-%dT%H:%M:%S") + f".{time_ms % SECOND_MS:03d}Z"
    return Markup('<time datetime="{}">{}</time>').format(exact, utc(time_ms))


def duration(span_ms: int) -> str:
    """A duration in its two largest units.

    >>> duration(29_400_000), duration(90_000), duration(450)
    ('8 h 10 min', '1 min 30 s', '450 ms')
    """
    units = (("d", DAY_MS), ("h", HOUR_MS), ("min", MINUTE_MS), ("s", SECOND_MS))
    parts = []
    for name, size in units:
        if span_ms >= size:
            parts.append(f"{span_ms // size:,} {name}")
        elif parts:
            parts.append("")
        span_ms %= size
    return " ".join(part for part in parts[:2] if part) or f"{span_ms} ms"
