"""The changes of a timeline: epochs of the replay, each with the period in which it is
simulated.
"""

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence

from rebalance_core.model import events
from rebalance_core.model.intervals import DEFAULT_INTERVALS, INTERVALS
from rebalance_core.replay.history import Epoch
from rebalance_core.timing import delays
from rebalance_core.timing.group_timeline import (
    BrokerLifetime,
    ProcessLifetime,
    TimelineChange,
)
from rebalance_core.timing.options import MS_US, ClockOptions

SETTLE_MS = 240_000
"""How long a change is simulated: long enough for a route poll, a pass, a first heartbeat and two
lock expiries.
"""

_LEAD_MS = 1
"""Members from before the log are placed before the change, which may be their departure."""


def changes_of(
    epochs: Sequence[Epoch],
    partial: Mapping[int, str],
    broker_lifetimes: Sequence[BrokerLifetime],
    since_us: Callable[[int], int],
    settle_ms: int = SETTLE_MS,
    lead_us: int = delays.LONGEST_LEAD_MS * MS_US,
) -> tuple[TimelineChange, ...]:
    """Return the changes in chronological order.

    Args:
        epochs: the epochs of the replay.
        partial: event types, by epoch ms, of joins and leaves that only one broker saw.
        broker_lifetimes: the broker lifetimes of the timeline.
        since_us: returns the earliest time of an event with an epoch ms.
        settle_ms: how long each change is simulated.
        lead_us: how long before its logged join a process may register with a broker.
    """
    causes = {epoch.from_ms: epoch.causes for epoch in epochs if not epoch.initial}
    for at_ms, event_type in partial.items():
        causes.setdefault(at_ms, (event_type,))
    begins: dict[int, int] = {}
    for at_ms, why in sorted(causes.items()):
        # When several changes are close together, each has its event in its own window.
        after = max(begins, default=None)
        begin = since_us(at_ms) - _lead_us(why, lead_us)
        begins[at_ms] = begin if after is None else max(begin, since_us(after) + 1)
    following = [*list(begins.values())[1:], None] if begins else []
    return tuple(
        TimelineChange(
            epoch=bisect_right(epochs, at_ms, key=lambda epoch: epoch.from_ms) - 1,
            change_ms=at_ms,
            earliest_us=since_us(at_ms)
            - _lead_us(causes[at_ms], lead_us)
            - _silence_us(at_ms, broker_lifetimes, since_us(at_ms)),
            begin_us=begin,
            end_us=_end_us(at_ms, end, settle_ms),
            causes=causes[at_ms],
        )
        for (at_ms, begin), end in zip(begins.items(), following, strict=True)
    )


def _silence_us(at_ms: int, broker_lifetimes: Sequence[BrokerLifetime], since_us: int) -> int:
    """Return how long passes may wait for a lost host before the change, since no broker notices
    the loss earlier.
    """
    lost = any(
        lifetime.host_lost
        and lifetime.down is not None
        and since_us <= lifetime.down.event_us <= at_ms * MS_US
        for lifetime in broker_lifetimes
    )
    return delays.SHORTEST_SILENCE_US + delays.SILENCE_SPREAD_US if lost else 0


def _lead_us(causes: tuple[str, ...], lead_us: int) -> int:
    return lead_us if events.CONSUMER_JOIN in causes else _LEAD_MS * MS_US


def lead_us(lifetimes: Sequence[ProcessLifetime], options: ClockOptions) -> int:
    """Return how long before its logged join a process may register with a broker."""
    return max(
        (
            delays.longest_lead_us(
                0 if lifetime.joins_at_first_broker else len(lifetime.first_brokers), options
            )
            for lifetime in lifetimes
            if not lifetime.observed
        ),
        default=delays.LONGEST_LEAD_MS * MS_US,
    )


def _end_us(at_ms: int, next_begin_us: int | None, settle_ms: int) -> int:
    settled = (at_ms + settle_ms) * MS_US
    return settled if next_begin_us is None else min(settled, next_begin_us)


def settle_ms(lifetimes: Sequence[ProcessLifetime]) -> int:
    """Return `SETTLE_MS` plus the amount by which the slowest intervals exceed RocketMQ's
    defaults.
    """
    over = 0
    for name in INTERVALS:
        usual = int(getattr(DEFAULT_INTERVALS, name))
        over += max(
            (int(getattr(lifetime.intervals, name)) - usual for lifetime in lifetimes), default=0
        )
    return SETTLE_MS + max(0, over)
