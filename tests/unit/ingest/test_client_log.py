from zoneinfo import ZoneInfo

import pytest

from rebalance_core.ingest.client_log import parse_client_line
from rebalance_core.ingest.clock import Clock
from rebalance_core.ingest.facts import Fact, Unread
from rebalance_core.ingest.log_line import ClientClock
from rebalance_core.ingest.templates import Fields

NEW_HEAD = "2026-11-21 11:47:37.769 INFO  [32265] [RebalanceService] [o.a.r.c.Store#?:?] - "
NEW_MS = 1795232857769  # GMT+8 whatever the host's zone
OLD_HEAD = "2026-11-20 22:23:48,234 INFO RocketmqClient - "
OLD_MS = 1795231428234  # America/New_York
QUEUE = "MessageQueue [topic=T, brokerName=b@r, queueId=3]"


def read(line: str) -> tuple[Fact | Unread, ...]:
    return parse_client_line(line, "c.log:1", ClientClock(Clock(ZoneInfo("America/New_York"))))


@pytest.mark.parametrize(
    ("message", "kind", "fields"),
    [
        (
            f"[persistAll] Group: g ClientId: 1.1.1.1@1 updateConsumeOffsetToBroker {QUEUE} 4",
            "committed",
            {"group": "g", "client_id": "1.1.1.1@1", "topic": "T", "broker": "b@r", "queue_id": 3,
             "offset": 4},
        ),
        (
            "rebalanced result changed. allocateMessageQueueStrategyName=AVG, group=g, topic=T, "
            "clientId=c, mqAllSize=8, cidAllSize=5, rebalanceResultSize=1, "
            f"rebalanceResultSet=[{QUEUE}]",
            "allocated",
            {"strategy": "AVG", "group": "g", "topic": "T", "client_id": "c"},
        ),
        (
            "client rebalanced result changed. allocateMessageQueueStrategyName=CONFIG, group=g, "
            "topic=T, clientId=c, mqAllSize=8, cidAllSize=5, rebalanceResultSize=1, "
            f"rebalanceResultSet=[{QUEUE}]",
            "allocated",
            {"strategy": "CONFIG", "group": "g", "topic": "T", "client_id": "c",
             "queues": [["T", "b@r", 3]]},
        ),
        (
            "broker rebalanced result changed. allocateMessageQueueStrategyName=AVG, group=g, "
            "topic=T, clientId=c, assignmentSet=[]",
            "broker_allocated",
            {"strategy": "AVG", "group": "g", "topic": "T", "client_id": "c"},
        ),
        ("suspend this consumer, g", "suspended", {"group": "g"}),
        ("resume this consumer, g", "resumed", {"group": "g"}),
        (
            "consumer was paused, execute pull request later. instanceName=1#2, group=g",
            "paused",
            {"instance": "1#2", "group": "g"},
        ),
        (
            "receive broker's notification[1.1.1.1:1], the consumer group: g changed, rebalance "
            "immediately",
            "notified",
            {"address": "1.1.1.1:1", "group": "g"},
        ),
        (
            f"doRebalance, g, truncateMessageQueueNotMyTopic remove unnecessary mq, {QUEUE}",
            "unsubscribed",
            {"group": "g", "topic": "T"},
        ),
        (
            "unregister client[Producer: null Consumer: g] from broker[b 0 1.1.1.1:1] success",
            "left_broker",
            {"group": "g"},
        ),
        (f"message queue lock OK, g {QUEUE}", "order_lock", {"group": "g"}),
        (f"the message queue lock Failed, g {QUEUE}", "order_lock", {"group": "g"}),
    ],
)  # fmt: skip
def test_each_line_of_ours_is_one_fact(message: str, kind: str, fields: dict[str, object]) -> None:
    assert read(OLD_HEAD + message + "\r") == (Fact(kind, OLD_MS, fields, "c.log:1"),)
    of_process = kind in ("allocated", "suspended", "resumed", "paused", "left_broker")
    named = fields | ({"pid": "32265"} if of_process else {})
    assert read(NEW_HEAD + message) == (Fact(kind, NEW_MS, named, "c.log:1"),)


def test_a_heartbeat_is_one_fact_a_group() -> None:
    def data(group: str) -> str:
        return (
            f"ConsumerData [groupName={group}, consumeType=CONSUME_ACTIVELY, "
            "messageModel=CLUSTERING, consumeFromWhere=CONSUME_FROM_LAST_OFFSET, unitMode=false, "
            "subscriptionDataSet=[SubscriptionData [classFilterMode=false, topic=T, subString=*, "
            "tagsSet=[], codeSet=[], subVersion=9, expressionType=TAG]]]"
        )

    line = (
        f"{NEW_HEAD}HeartbeatData [clientID=c@1, producerDataSet=[ProducerData [groupName=p]], "
        f"consumerDataSet=[{data('g')}, {data('h')}]]"
    )
    found: list[Fields] = [dict(f.values) for f in read(line) if isinstance(f, Fact)]
    assert [(f["group"], f["client_id"], f["topics"]) for f in found if f] == [
        ("g", "c@1", ["T"]),
        ("h", "c@1", ["T"]),
    ]


@pytest.mark.parametrize(
    "message",
    [
        f"[persistAll] Group: g ClientId: c updateConsumeOffsetToBroker {QUEUE} four",
        "[persistAll] Group: g ClientId: c updateConsumeOffsetToBroker MessageQueue [topic=T",
        "client rebalanced result changed. allocateMessageQueueStrategyName=AVG, group=g",
        "HeartbeatData [clientID=c",
        "receive broker's notification[",
    ],
)
def test_a_line_like_ours_that_does_not_parse_is_named(message: str) -> None:
    (refused,) = read(NEW_HEAD + message)
    assert isinstance(refused, Unread)
    (headless,) = read(message) if "notification" not in message else read(NEW_HEAD + message)
    assert isinstance(headless, Unread)


def test_stack_traces_state_nothing() -> None:
    assert read("\tat org.apache.rocketmq.client.impl.consumer.RebalanceImpl.doRebalance(X)") == ()
    assert read("org.apache.rocketmq.client.exception.MQBrokerException: CODE: 1") == ()
