"""Lines on locks and POP."""

from zoneinfo import ZoneInfo

import pytest

from rebalance_core.ingest.fact import Fact, Stated, Unread
from rebalance_core.ingest.parse.broker_log import parse_broker_line
from rebalance_core.ingest.parse.client_log import parse_client_line
from rebalance_core.ingest.parse.lock_and_pop_logs import parse_lock_line
from rebalance_core.ingest.parse.log_lines import ClientClock, Clock, LineFields, ServerClock

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
def test_a_lock_shows_that_the_group_is_orderly(message: str) -> None:
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
def test_a_refusal_names_who_asked_and_who_has_it(message: str) -> None:
    (fact,) = parse_lock_line(AT + message, "lock.log:1", ServerClock())
    assert isinstance(fact, Stated)
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


# As 5.5.0 printed them (recording `pop`); the refusal as its source has it.
BROKER_HEAD = "2026-11-22 15:09:16 WARN LoadBalanceProcessorThread_25 - "
CLIENT_HEAD = "2026-11-22 15:09:16.615 WARN  [22702] [RebalanceService] [o.a.r.c.C#?:?] - "
POPPED_MS = 1795331356000
RETRY = "%RETRY%g-srvpull_PopA"
FORBIDDEN = (
    "org.apache.rocketmq.client.exception.MQBrokerException: CODE: 1  DESC: the broker[127.0.0.1] "
    "pop message is forbidden because timerWheelEnable is false"
)


def client_clock() -> ClientClock:
    return ClientClock(Clock(ZoneInfo("UTC")))


def read_client(message: str) -> tuple[Fact | Unread, ...]:
    return parse_client_line(CLIENT_HEAD + message, "c:1", client_clock())


@pytest.mark.parametrize(
    ("message", "kind", "fields"),
    [
        (
            "QueryLoad: no assignment for group[pop-2] topic[PopA], get consumer id list failed",
            "no_assignment",
            {"group": "pop-2", "topic": "PopA", "reason": "NO_MEMBERS"},
        ),
        (
            "QueryLoad: no assignment for group[pop-1], the topic[NoSuchTopic] does not exist.",
            "no_assignment",
            {"group": "pop-1", "topic": "NoSuchTopic", "reason": "NO_TOPIC"},
        ),
        (
            "QueryLoad: unsupported strategy [CONSISTENT_HASH],  127.0.0.1:47414",
            "strategy_unsupported",
            {"strategy": "CONSISTENT_HASH", "client_addr": "127.0.0.1:47414"},
        ),
    ],
)
def test_brokers_lines(message: str, kind: str, fields: LineFields) -> None:
    expected = (Fact(kind, POPPED_MS, fields or {}, "b:1"),)
    assert parse_broker_line(BROKER_HEAD + message, "b:1", ServerClock()) == expected


@pytest.mark.parametrize("queue_id", [-1, 3])
def test_a_message_timed_out(queue_id: int) -> None:
    message = (
        "the pop message time out so abort consume. popTime=1795331335646 invisibleTime=20000, "
        f"group=pop-1 MessageQueue [topic=PopA, brokerName=broker-b, queueId={queue_id}]"
    )
    fields = {"group": "pop-1", "topic": "PopA", "invisible_ms": 20_000, "pid": "22702"}
    assert read_client(message) == (Fact("pop_timed_out", POPPED_MS + 615, fields, "c:1"),)
    (refused,) = read_client(message.replace("=20000", "=soon"))
    assert isinstance(refused, Unread)


def test_a_topic_without_route() -> None:
    fields = {"topic": RETRY, "pid": "22702"}
    message = f"get Topic [{RETRY}] RouteInfoFromNameServer is not exist value"
    assert read_client(message) == (Fact("missing_route", POPPED_MS + 615, fields, "c:1"),)
    assert read_client("get Topic [T] from name server") == ()


def test_pop_is_forbidden() -> None:
    """The exception's line has no time of its own, but that of the failed pop before it."""
    clock = client_clock()
    line = f"{FORBIDDEN} BROKER: 10.0.0.1:10911"
    assert parse_client_line(line, "c:1", clock) == ()
    parse_client_line(f"{CLIENT_HEAD}execute the pull request exception: {{}}", "c:2", clock)
    fields = {"address": "10.0.0.1:10911", "pid": "22702"}
    expected = (Fact("pop_forbidden", POPPED_MS + 615, fields, "c:3"),)
    assert parse_client_line(line, "c:3", clock) == expected
    assert parse_client_line(line, "c:4", clock) == ()
