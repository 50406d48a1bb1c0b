"""The start of a client's next pass (rocketmq.md §3.1).

Upstream: ``RebalanceService.run`` and the latch of ``ServiceThread``.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from rebalance_core.model.times import REBALANCE_WAIT_MS

WAIT_US = REBALANCE_WAIT_MS * 1_000


@dataclass(slots=True)
class PassClock:
    """The clock of a client's passes.

    Attributes:
        last_end_us: the end of the last pass, or a new client's creation.
        min_interval_us: the minimum interval between passes, which depends on version and settings.
        length_us: how long each of its passes takes.
        own_wait_us: the wait after a balanced pass if no notice wakes it.
        number: the number of the next pass; idle passes count.
        wait_us: the wait until the next pass if no notice wakes the client.
        woken_us: the first wake-up that no pass has used up.
        busy_until_us: the time before which no pass begins, because a pass outside the clock is
            running.
    """

    last_end_us: int
    min_interval_us: int
    length_us: int
    own_wait_us: int
    number: int = 0
    wait_us: int = field(init=False)
    woken_us: int | None = None
    busy_until_us: int = 0

    def __post_init__(self) -> None:
        self.wait_us = self.own_wait_us

    @property
    def next_us(self) -> int:
        """Return when the next pass begins in the current state."""
        due = self.last_end_us + self.wait_us
        if self.woken_us is not None:
            due = min(due, max(self.woken_us, self.last_end_us + self.min_interval_us))
        return max(due, self.busy_until_us)

    def wake(self, at_us: int) -> None:
        """Apply ``wakeup()``, a latch of which only the first call counts until a pass begins."""
        if self.woken_us is None or at_us < self.woken_us:
            self.woken_us = at_us

    def begin(self, at_us: int) -> int:
        """Begin a pass, which uses up all wake-ups so far, and return its number."""
        number = self.number
        self.number += 1
        self.woken_us = None
        self.last_end_us = at_us + self.length_us
        self.wait_us = self.own_wait_us
        return number

    def begin_resumed(self) -> int:
        """Return the number of ``resume()``'s pass, which runs in the caller's thread while the
        clock continues.
        """
        self.number += 1
        return self.number - 1

    def spin(self, last_end_us: int) -> None:
        """Run the unbalanced passes of a suspended client, one per second since 5.2."""
        self.last_end_us, self.wait_us, self.woken_us = last_end_us, self.min_interval_us, None

    def unbalanced(self) -> None:
        """Mark the last pass as unbalanced, so that the next follows soon (since 5.2)."""
        if self.min_interval_us:
            self.wait_us = self.min_interval_us

    def skip_idle(self, until_us: int) -> None:
        """Skip passes that change nothing up to a moment, and discard wake-ups."""
        self.woken_us = None
        period = self.wait_us + self.length_us
        passes = max(0, until_us - self.last_end_us) // period
        self.last_end_us += passes * period
        self.number += passes
