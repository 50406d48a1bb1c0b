"""A time axis with the positions and labels of its ticks."""

from dataclasses import dataclass

from rebalance_core.model.times import DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS, utc

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
    most: int = TICKS

    def at(self, time_ms: int) -> float:
        """Return the pixel of a time inside the window."""
        return self.left + self.width * (time_ms - self.from_ms) / (self.to_ms - self.from_ms)

    def ticks(self) -> list[tuple[int, str]]:
        """Round times with their labels, which include the day where it changes."""
        span = self.to_ms - self.from_ms
        step = next((s for s in STEPS_MS if span <= s * self.most), -(-span // self.most))
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
