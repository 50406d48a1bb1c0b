"""The time that a group needs to settle after an event (rocketmq.md §6.4, §13).

Upper bounds, in milliseconds, from the event to the last member's pass. These bounds do not account
for lost notifications.
"""

from rebalance_core.model import events, times
from rebalance_core.model.events import EXPIRED, Event
from rebalance_core.model.intervals import DEFAULT_INTERVALS, Intervals

PASS_MS = 2_000  # the pass itself: a margin for its requests to all brokers
NOTIFIED_MS = times.REBALANCE_MIN_INTERVAL_MS + PASS_MS  # CHANGE is delivered at once
OWN_PASS_MS = times.REBALANCE_WAIT_MS + NOTIFIED_MS  # without a notice: the client's own next pass
SCAN_AND_PASS_MS = (
    times.CHANNEL_SCAN_MS + OWN_PASS_MS
)  # each broker scans independently, and the survivors follow
ROUTE_MS = times.ROUTE_POLL_MS + OWN_PASS_MS  # clients poll the route, then pass
MASTER_BACK_MS = ROUTE_MS + times.HEARTBEAT_MS  # and each client's first heartbeat to it

_TOLD = (events.CONSUMER_JOIN, events.CONSUMER_LEAVE, events.CONSUMER_LOST)
_OWN_PASS = (events.CONSUMER_RESUME, events.UNSUBSCRIBE, events.REQUEST_MODE)
"""Events of which no member is notified (for modes: rocketmq.md §14)."""
_NO_WINDOW = (events.CONSUMER_SUSPEND, events.NOTICES)


def window_ms(
    event: Event, intervals: Intervals = DEFAULT_INTERVALS, notices: str = events.ON
) -> int:
    """Return the longest time from an event to a client's last pass in response to it, in ms.

    Args:
        event: the event, of which the type and detail matter.
        intervals: the client's intervals.
        notices: how brokers notify members at that time, one of `NOTICE_MODES`; see `notices_of`.
    """
    soon = intervals.min_interval_ms + PASS_MS
    by_itself = intervals.wait_interval_ms + soon
    expired = event.event_type == events.CONSUMER_LOST and event.detail == EXPIRED
    if expired:
        return times.CHANNEL_SCAN_MS + by_itself
    if event.event_type in _TOLD:
        late = {events.ON: 0, events.BATCHED: times.NOTICE_BATCH_MS}.get(notices)
        return by_itself if late is None else min(by_itself, late + soon) if late else soon
    if event.event_type in _NO_WINDOW:
        return 0
    if event.event_type in _OWN_PASS:
        return by_itself
    # until the route names only the slaves
    routed = intervals.poll_name_server_interval_ms + by_itself
    back = event.event_type == events.MASTER_UP
    return routed + (intervals.heartbeat_broker_interval_ms if back else 0)


def notices_of(event: Event, brokers: str, *, notified: bool) -> str:
    """Return how members hear of an event: one of `NOTICE_MODES`.

    The group's setting applies only to joins and leaves; brokers notify of a closed channel
    whatever its value (rocketmq.md §6.2).

    Args:
        event: a consumer event.
        brokers: the slowest mode among the brokers that have queues of the group.
        notified: the group's setting.
    """
    closed = event.event_type == events.CONSUMER_LOST
    return brokers if notified or closed else events.OFF
