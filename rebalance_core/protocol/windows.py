"""How long after an event the group needs to settle (rocketmq.md §6.4, §13).

Upper bounds in milliseconds from the event to the last member's pass. Notifications that get lost
are not in these bounds.
"""

from rebalance_core.model import events
from rebalance_core.model.events import EXPIRED, Event
from rebalance_core.model.times import (
    BROKER_LOCK_LIFE_MS,
    CHANNEL_SCAN_MS,
    HEARTBEAT_MS,
    REBALANCE_MIN_INTERVAL_MS,
    REBALANCE_WAIT_MS,
    ROUTE_POLL_MS,
)

PASS_MS = 2_000  # a pass itself: margin for its requests to all brokers
NOTIFIED_MS = REBALANCE_MIN_INTERVAL_MS + PASS_MS  # CHANGE is delivered at once
OWN_PASS_MS = REBALANCE_WAIT_MS + NOTIFIED_MS  # nobody is told: the next pass of one's own
SCAN_AND_PASS_MS = CHANNEL_SCAN_MS + OWN_PASS_MS  # each broker scans by itself, survivors follow
ROUTE_MS = ROUTE_POLL_MS + OWN_PASS_MS  # clients poll the route, then pass
MASTER_BACK_MS = ROUTE_MS + HEARTBEAT_MS  # and each client's first heartbeat to it
LOCK_EXPIRY_MARGIN_MS = 1_000
ORDER_LOCK_MS = BROKER_LOCK_LIFE_MS + LOCK_EXPIRY_MARGIN_MS  # the lock of a client that died

_WINDOW_MS = {
    events.CONSUMER_JOIN: NOTIFIED_MS,
    events.CONSUMER_LEAVE: NOTIFIED_MS,
    events.CONSUMER_LOST: NOTIFIED_MS,
    events.CONSUMER_SUSPEND: 0,
    events.CONSUMER_RESUME: OWN_PASS_MS,
    events.UNSUBSCRIBE: OWN_PASS_MS,
    events.REQUEST_MODE: OWN_PASS_MS,  # no member is notified (rocketmq.md §14)
    events.SUBSCRIBE: ROUTE_MS,
    events.BROKER_UP: ROUTE_MS,
    events.BROKER_DOWN: ROUTE_MS,
    events.TOPIC_CONFIG: ROUTE_MS,
    events.TOPIC_DELETED: ROUTE_MS,
    events.MASTER_DOWN: ROUTE_MS,  # until the route names the slaves alone, passes may fail
    events.MASTER_UP: MASTER_BACK_MS,
}


def window_ms(event: Event) -> int:
    """Longest time from this event to the group's last pass that answers it, in milliseconds."""
    if event.event_type == events.CONSUMER_LOST and event.detail == EXPIRED:
        return SCAN_AND_PASS_MS
    return _WINDOW_MS[event.event_type]
