"""Options for simulations over time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rebalance_core.model.times import DAY_MS

if TYPE_CHECKING:
    from rebalance_core.timing.delay import Delay
    from rebalance_core.timing.fit import Fit

PHASES_OF_LOG: Final = "log"
"""A member's timers run from its logged join; their phase is unknown for members from before the
log.
"""
RANDOM_PHASES: Final = "random"
"""The phases of all timers are unknown, which suits what-if questions."""
PHASES: Final = (PHASES_OF_LOG, RANDOM_PHASES)

SECOND_US: Final = 1_000_000
MS_US: Final = 1_000
LONGEST_RTT_US: Final = SECOND_US
"""The longest round trip accepted; clients give up on a request after 3 s."""
HALF_SECOND_MS: Final = 500
"""`ingest` places events that are logged to the second at its start or in its middle."""


@dataclass(frozen=True, slots=True)
class ClockOptions:
    """Options of a simulation over time.

    Attributes:
        phases: one of `PHASES`.
        exact_times: whether event times are exact even at whole and half seconds; by default such
            times count as logged to the second.
        lost_notices: the share of notices that do not arrive, 0 to 1.
        late_share: the share of clients whose name server learns of routes late, 0 to 1.
        late_ms: how late, in milliseconds.
        handler_ms: the application's time per message.
        start_up_ms: the time that ``start()`` takes; None uses the recorded times.
        rtt_us: the round trip from clients to brokers and name servers beyond that of loopback, in
            microseconds.
        fit: delays measured on the user's cluster, which include its round trips; None uses the
            recorded delays.
        concurrent_heartbeat: enableConcurrentHeartbeat (5.5), with which a dead host delays no
            other timer.
    """

    phases: str = PHASES_OF_LOG
    exact_times: bool = False
    lost_notices: float = 0.0
    late_share: float = 0.0
    late_ms: int = 0
    concurrent_heartbeat: bool = False
    handler_ms: int = 0
    start_up_ms: int | None = None
    rtt_us: int = 0
    fit: Fit | None = None

    def __post_init__(self) -> None:
        for name, value in (("handler_ms", self.handler_ms), ("start_up_ms", self.start_up_ms)):
            whole = isinstance(value, int) and not isinstance(value, bool)
            if value is not None and not (whole and 0 <= value <= DAY_MS):
                raise ValueError(
                    f"{name} is {value!r}; expected whole milliseconds from 0 to a day"
                )
        if not 0 <= self.rtt_us <= LONGEST_RTT_US:
            raise ValueError(f"rtt_us is {self.rtt_us!r}; expected 0 to {LONGEST_RTT_US:,}")

    def fitted(self, kind: str) -> Delay | None:
        """Return the fitted delays of a kind of ``latencies``, if any."""
        return None if self.fit is None else self.fit.delay(kind)

    @property
    def one_way_us(self) -> int:
        """The transit time of a one-way message beyond that of loopback."""
        return self.rtt_us // 2
