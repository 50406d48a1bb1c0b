"""When messages come again that a client had taken and not acknowledged when it died.

A queue that one client owns is read again from the last commit once another has it. What is popped
is nobody's: it comes again when its invisible time is over (rocketmq.md §14).
"""

from __future__ import annotations

from dataclasses import dataclass

from rebalance_core.model.group_settings import PROXY_REBALANCE
from rebalance_core.model.times import (
    CHANNEL_SCAN_MS,
    GRPC_HEARTBEAT_MS,
    POP_INVISIBLE_MS,
    POP_REVIVE_WAIT_MS,
    PROXY_CHANNEL_EXPIRY_MS,
    SECOND_MS,
)

REVIVE_ROUND_MS = 2_000
"""Beyond POP_REVIVE_WAIT_MS: recorded were 2 to 4 s from the end of the invisible time to the
second delivery (rocketmq.md §14, an overloaded host)."""
POP_INVISIBLE_S = POP_INVISIBLE_MS / SECOND_MS


@dataclass(frozen=True, slots=True)
class Redelivery:
    """What a death costs: seconds from it until messages that the client held come again.

    No promise of RocketMQ's: a broker that is busy, or not up, revives later.

    Attributes:
        from_s: The first of them; the client may just have taken its oldest one almost the whole
            invisible time before.
        to_s: The last of them.
        why: In words.
    """

    from_s: float
    to_s: float
    why: str

    def __str__(self) -> str:
        """In words, e.g. ``0 to 64 s``."""
        return f"{self.from_s:g} to {self.to_s:g} s"


def redelivery_after_death(
    rebalance_mode: str, invisible_time_s: float = POP_INVISIBLE_S
) -> Redelivery:
    """When what a killed client had popped comes again.

    Behind a proxy the client stays a member until its channel has expired and a scan finds out;
    until then the proxy renews what it held. Recorded: 119 to 129 s, and messages again after 130
    to 165 s (rocketmq.md §14). What could not be handed to the client any more comes at once.

    Args:
        rebalance_mode: Of the client: PROXY, or one that pops from brokers.
        invisible_time_s: The invisible time of its pops.

    >>> str(redelivery_after_death("BROKER")), str(redelivery_after_death("PROXY"))
    ('0 to 64 s', '110 to 194 s')
    """
    revive_s = (POP_REVIVE_WAIT_MS + REVIVE_ROUND_MS) / SECOND_MS
    if rebalance_mode != PROXY_REBALANCE:
        why = f"popped before the death, again after {invisible_time_s:g} s and 2 to 4 s more"
        return Redelivery(0.0, invisible_time_s + revive_s, why)
    expiry_s = PROXY_CHANNEL_EXPIRY_MS / SECOND_MS
    why = (
        f"the proxy renews until the channel has expired ({expiry_s:g} s) and a scan finds out "
        f"({CHANNEL_SCAN_MS // SECOND_MS} s); then up to {invisible_time_s:g} s and 2 to 4 s more"
    )
    latest_s = expiry_s + CHANNEL_SCAN_MS / SECOND_MS + invisible_time_s + revive_s
    return Redelivery(expiry_s - GRPC_HEARTBEAT_MS / SECOND_MS, latest_s, why)
