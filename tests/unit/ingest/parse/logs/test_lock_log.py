import pytest

from rebalance_core.ingest.fact import Fact, Unread
from rebalance_core.ingest.parse.lock_and_pop_logs import parse_lock_line
from rebalance_core.ingest.parse.log_lines import ServerClock

AT = "2026-11-21 11:47:31 WARN AdminBrokerThread_16 - "
QUEUE = "MessageQueue [topic=stock, brokerName=broker-c, queueId=0]"


@pytest.mark.parametrize(
    "message",
    [
        "RebalanceLockManager#tryLockBatch: lock a message which has not been locked yet, group=g, "
        f"clientId=c1, mq={QUEUE}",
        "RebalanceLockManager#tryLockBatch: try to lock a expired message queue, group=g, "
        f"mq={QUEUE}, old client id=c1, new client id=c2",
        f"tryLockBatch, message queue not locked, I got it. Group: g NewClientId: c1 {QUEUE}",
    ],
)
def test_a_lock_tells_that_the_group_is_orderly(message: str) -> None:
    found = parse_lock_line(AT + message, "lock.log:1", ServerClock())
    assert found == (Fact("queue_locked", 1795232851000, {"group": "g"}, "lock.log:1"),)


@pytest.mark.parametrize(
    "message",
    [
        "RebalanceLockManager#tryLockBatch: message queue has been locked by other client, "
        f"group=g, mq={QUEUE}, locked client id=c1, current client id=c2",
        "tryLockBatch, message queue locked by other client. Group: g OtherClientId: c1 "
        f"NewClientId: c2 {QUEUE}",
    ],
)
def test_a_refusal_tells_who_asked_and_who_has_it(message: str) -> None:
    (fact,) = parse_lock_line(AT + message, "lock.log:1", ServerClock())
    assert isinstance(fact, Fact)
    assert fact.kind == "lock_refused"
    assert fact.values == {
        "group": "g",
        "topic": "stock",
        "broker_name": "broker-c",
        "queue_id": 0,
        "client_id": "c2",
        "owner": "c1",
    }
    (refused,) = parse_lock_line((AT + message).replace(QUEUE, "null"), "f:1", ServerClock())
    assert isinstance(refused, Unread)
