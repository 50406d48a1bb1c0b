"""A time axis of a picture: UTC, round ticks; times become hundredths of an inch."""

from collections.abc import Iterable

from matplotlib.axes import Axes

from rebalance_core.model.times import utc
from rebalance_core.report.time_axis import Axis

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
