import pytest

from rebalance_core.ingest.facts import Fact
from rebalance_core.ingest.lock_log import parse_lock_line
from rebalance_core.ingest.log_line import ServerClock

AT = "2026-11-21 11:47:31 WARN AdminBrokerThread_16 - "
QUEUE = "MessageQueue [topic=stock, brokerName=broker-c, queueId=0]"


@pytest.mark.parametrize(
    "message",
    [
        "RebalanceLockManager#tryLockBatch: message queue has been locked by other client, "
        f"group=g, mq={QUEUE}, locked client id=c1, current client id=c2",
        "RebalanceLockManager#tryLockBatch: lock a message which has not been locked yet, group=g, "
        f"clientId=c1, mq={QUEUE}",
        f"tryLockBatch, message queue not locked, I got it. Group: g NewClientId: c1 {QUEUE}",
        "tryLockBatch, message queue locked by other client. Group: g OtherClientId: c1 "
        f"NewClientId: c2 {QUEUE}",
    ],
)
def test_a_lock_tells_that_the_group_is_orderly(message: str) -> None:
    found = parse_lock_line(AT + message, "lock.log:1", ServerClock())
    assert found == (Fact("queue_locked", 1795232851000, {"group": "g"}, "lock.log:1"),)
