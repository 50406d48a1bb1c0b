"""How long each event may take to reach every member."""

import pytest

from rebalance_core.model.events import BATCHED, EVENT_TYPES, OFF, ON, Event
from rebalance_core.model.intervals import Intervals
from rebalance_core.protocol.order_locks import ORDER_LOCK_MS
from rebalance_core.protocol.settling_windows import ROUTE_MS, notices_of, window_ms

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
def test_of_an_expired_member_no_member_gets_a_notice(detail: str | None, seconds: int) -> None:
    assert window_ms(Event(7, 0, "CONSUMER_LOST", detail=detail)) == seconds * 1_000


def test_an_expired_broker_is_a_route_change_like_any_other() -> None:
    assert window_ms(Event(7, 0, "BROKER_DOWN", detail="EXPIRED")) == ROUTE_MS
    assert ORDER_LOCK_MS == 61_000


SLOW = Intervals(60_000, 4_000, 90_000, 200_000)


@pytest.mark.parametrize(
    ("event_type", "notices", "seconds", "slow_s"),
    [
        ("CONSUMER_JOIN", ON, 3, 6),
        ("CONSUMER_LEAVE", OFF, 23, 66),
        ("CONSUMER_LOST", OFF, 23, 66),
        ("CONSUMER_LEAVE", BATCHED, 18, 21),
        ("CONSUMER_SUSPEND", OFF, 0, 0),
        ("UNSUBSCRIBE", ON, 23, 66),
        ("TOPIC_CONFIG", OFF, 53, 156),
        ("MASTER_UP", ON, 83, 356),
    ],
)
def test_windows_are_those_of_the_client_and_of_how_it_gets_its_notices(
    event_type: str, notices: str, seconds: int, slow_s: int
) -> None:
    event = Event(7, 0, event_type)
    assert window_ms(event, notices=notices) == seconds * 1_000
    assert window_ms(event, SLOW, notices) == slow_s * 1_000


def test_a_batch_comes_no_later_than_a_pass_of_ones_own() -> None:
    eager = Intervals(wait_interval_ms=5_000)
    assert window_ms(Event(7, 0, "CONSUMER_JOIN"), eager, BATCHED) == 8_000


@pytest.mark.parametrize(
    ("event_type", "brokers", "notified", "told"),
    [
        ("CONSUMER_JOIN", ON, True, ON),
        ("CONSUMER_JOIN", ON, False, OFF),
        ("CONSUMER_LEAVE", BATCHED, False, OFF),
        ("CONSUMER_LOST", ON, False, ON),  # a closed channel ignores the group's switch
        ("CONSUMER_LOST", OFF, True, OFF),
        ("CONSUMER_LEAVE", BATCHED, True, BATCHED),
    ],
)
def test_the_groups_switch_is_for_joins_and_leaves(
    event_type: str, brokers: str, notified: bool, told: str
) -> None:
    assert notices_of(Event(7, 0, event_type), brokers, notified=notified) == told
