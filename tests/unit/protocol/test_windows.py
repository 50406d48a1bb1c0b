"""How long each event may take to reach every member."""

import pytest

from rebalance_core.model.events import EVENT_TYPES, Event
from rebalance_core.protocol.members import ORDER_LOCK_MS, ROUTE_MS, window_ms

pytestmark = pytest.mark.unit

SECONDS = {
    "CONSUMER_JOIN": 3, "CONSUMER_LEAVE": 3, "CONSUMER_LOST": 3, "CONSUMER_SUSPEND": 0,
    "CONSUMER_RESUME": 23, "UNSUBSCRIBE": 23, "SUBSCRIBE": 53, "BROKER_UP": 53, "BROKER_DOWN": 53,
    "TOPIC_CONFIG": 53, "TOPIC_DELETED": 53, "REQUEST_MODE": 23, "MASTER_DOWN": 53,
    "MASTER_UP": 83,
    "NOTICES": 0,
}  # fmt: skip


@pytest.mark.parametrize("event_type", EVENT_TYPES)
def test_window_of_each_event_type(event_type: str) -> None:
    assert window_ms(Event(7, 0, event_type)) == SECONDS[event_type] * 1_000


@pytest.mark.parametrize(("detail", "seconds"), [(None, 3), ("CLOSED", 3), ("EXPIRED", 33)])
def test_of_an_expired_member_nobody_is_told(detail: str | None, seconds: int) -> None:
    assert window_ms(Event(7, 0, "CONSUMER_LOST", detail=detail)) == seconds * 1_000


def test_an_expired_broker_is_a_route_change_like_any_other() -> None:
    assert window_ms(Event(7, 0, "BROKER_DOWN", detail="EXPIRED")) == ROUTE_MS
    assert ORDER_LOCK_MS == 61_000
