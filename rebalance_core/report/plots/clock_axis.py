"""A figure's time axis in UTC with round ticks; it maps times to hundredths of an inch."""

from collections.abc import Iterable

from matplotlib.axes import Axes

from rebalance_core.model.times import utc
from rebalance_core.report.time_axis import Axis

UNITS_PER_INCH = 100.0


OPEN_SHARE = 0.08
"""Share of the figure for what is still open at the end, such as the last epoch."""


def clock(starts: Iterable[int], ends: Iterable[int | None], inches: float) -> Axis:
    """Return an axis over all these times, with room for open ends after the last."""
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
    """Return the start and end of the axis, for a title."""
    return f"{utc(axis.from_ms)} to {utc(axis.to_ms)}"
