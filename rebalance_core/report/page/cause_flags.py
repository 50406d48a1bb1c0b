"""Numbers on the time axis for what set off the rebalances; close ones share a flag."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from rebalance_core.report.audit_report import Cause
from rebalance_core.report.timeline.axis import Axis

NEAR_PX = 30


@dataclass(frozen=True, slots=True)
class Flag:
    """Causes from number `first` to `last` at pixel `x`."""

    x: float
    first: int
    last: int

    @property
    def label(self) -> str:
        """``4``, or ``4-6``."""
        return str(self.first) if self.first == self.last else f"{self.first}-{self.last}"


def in_window(causes: Iterable[Cause], axis: Axis) -> list[Cause]:
    """Those inside the axis, in order of time."""
    inside = [cause for cause in causes if axis.from_ms <= cause.time_ms <= axis.to_ms]
    return sorted(inside, key=lambda cause: (cause.time_ms, cause.text))


def flags_of(causes: Iterable[Cause], axis: Axis) -> list[Flag]:
    """One flag for each run of causes nearer to its first than the flags are wide."""
    flags: list[Flag] = []
    for at, cause in enumerate(causes, start=1):
        x = axis.at(cause.time_ms)
        if flags and x - flags[-1].x < NEAR_PX:
            flags[-1] = Flag(flags[-1].x, flags[-1].first, at)
        else:
            flags.append(Flag(x, at, at))
    return flags
