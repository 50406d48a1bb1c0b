"""How long after an event the group needs to settle (rocketmq.md §6.4, §13).

Upper bounds in milliseconds from the event to the last member's pass. Notifications that get lost
are not in these bounds.
"""

from rebalance_core.model import events
from rebalance_core.model.events import EXPIRED, Event

NOTIFIED_MS = 3_000  # CHANGE is delivered at once; 1 s minimum interval and the pass itself
SCAN_AND_PASS_MS = 33_000  # each broker scans by itself (10 s), then the survivors' own 20 s pass
OWN_PASS_MS = 23_000  # rebalance wait interval 20 s and the pass
ROUTE_MS = 53_000  # route poll 30 s, pass 20 s, 3 s
ORDER_LOCK_MS = 61_000  # an order lock lives 60 s on the broker

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
}


def window_ms(event: Event) -> int:
    """Longest time from this event to the group's last pass that answers it, in milliseconds."""
    if event.event_type == events.CONSUMER_LOST and event.detail == EXPIRED:
        return SCAN_AND_PASS_MS
    return _WINDOW_MS[event.event_type]
