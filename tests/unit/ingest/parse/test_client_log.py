from zoneinfo import ZoneInfo

import pytest

from rebalance_core.ingest.fact import Fact, Stated, Unread
from rebalance_core.ingest.parse.client_log import parse_client_line
from rebalance_core.ingest.parse.log_lines import ClientClock, Clock, LineFields

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
            {
                "group": "g",
                "client_id": "1.1.1.1@1",
                "topic": "T",
                "broker": "b@r",
                "queue_id": 3,
                "offset": 4,
            },
        ),
        (
            f"Group: g ClientId: 1.1.1.1@1 updateConsumeOffsetToBroker {QUEUE} 4",  # 3.x
            "committed",
            {
                "group": "g",
                "client_id": "1.1.1.1@1",
                "topic": "T",
                "broker": "b@r",
                "queue_id": 3,
                "offset": 4,
            },
        ),
        (
            "Created a new client Instance, InstanceIndex:0, ClientID:1.1.1.1@1, ClientConfig:"
            "ClientConfig{namesrvAddr='n', pollNameServerInterval=30000, heartbeatBrokerInterval=3",
            "client_created",  # torn in a number
            {"client_id": "1.1.1.1@1"},
        ),
        (
            f"no broker found for mq {QUEUE}",  # Go
            "no_broker",
            {"topic": "T", "broker_name": "b@r", "queue_id": 3},
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
            {
                "strategy": "CONFIG",
                "group": "g",
                "topic": "T",
                "client_id": "c",
                "queues": [["T", "b@r", 3]],
            },
        ),
        (
            "broker rebalanced result changed. allocateMessageQueueStrategyName=AVG, group=g, "
            "topic=T, clientId=c, assignmentSet=[]",
            "broker_allocated",
            {
                "strategy": "AVG",
                "group": "g",
                "topic": "T",
                "client_id": "c",
                "mode": None,
                "whole_brokers": False,
            },
        ),
        *(
            (
                "broker rebalanced result changed. allocateMessageQueueStrategyName=AVG, group=g, "
                "topic=T, clientId=c, assignmentSet=[MessageQueueAssignment [MessageQueue="
                f"MessageQueue [topic=T, brokerName=b, queueId={number}], Mode={mode}]]",
                "broker_allocated",
                {
                    "strategy": "AVG",
                    "group": "g",
                    "topic": "T",
                    "client_id": "c",
                    "mode": mode,
                    "whole_brokers": number == -1,
                },
            )
            for number, mode in ((-1, "POP"), (3, "PULL"))
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
        (
            "doRebalance, GID_s_last %RETRY%GID_s_last, get consumer id list failed",
            "no_member_list",
            {"group": "GID_s_last", "topic": "%RETRY%GID_s_last"},
        ),
        (
            "[BUG] ConsumerGroup: g The consumerId: 10.0.7.12@4017#33 not in cidAll: "
            "[10.0.7.11@3922#33, 10.0.7.13@4284#33]",
            "not_in_member_list",
            {"group": "g", "client_id": "10.0.7.12@4017#33", "listed": 2},
        ),
        *(
            (
                f"[BUG]doRebalance, g, {words}remove unnecessary mq, {QUEUE}, because pull is "
                "pause, so try to fixed it",
                "pull_expired",
                {"group": "g", "topic": "T", "broker_name": "b@r", "queue_id": 3},
            )
            for words in ("", "try ")
        ),
        (
            "allocate message queue exception. strategy name: MACHINE_ROOM_NEARBY, ex: {}",
            "allocation_failed",
            {"strategy": "MACHINE_ROOM_NEARBY", "message": ""},
        ),
        (
            "AllocateMessageQueueStrategy.allocate Exception. allocateMessageQueueStrategyName=AVG",
            "allocation_failed",
            {"strategy": "AVG", "message": ""},
        ),
        (
            "send heart beat to broker[broker-c 0 127.0.0.1:37040] failed",
            "heartbeat_failed",
            {"broker_name": "broker-c", "address": "127.0.0.1:37040"},
        ),
        (
            "sendHeartbeatToAllBrokerV2 send heart beat to broker[b c 0 127.0.0.1:1] exception, "
            "because the broker not up, forget it",
            "heartbeat_failed",
            {"broker_name": "b c", "address": "127.0.0.1:1"},
        ),
        (
            "send heart beat to broker[b 0 [::1]:1] failed",
            "heartbeat_failed",
            {"broker_name": "b", "address": "[::1]:1"},
        ),
    ],
)
def test_each_line_of_ours_is_one_fact(message: str, kind: str, fields: dict[str, object]) -> None:
    assert read(OLD_HEAD + message + "\r") == (Fact(kind, OLD_MS, fields, "c.log:1"),)
    of_process = kind in (
        "allocated",
        "broker_allocated",
        "suspended",
        "resumed",
        "paused",
        "left_broker",
        "no_member_list",
        "pull_expired",
        "allocation_failed",
        "heartbeat_failed",
    )
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
    found: list[LineFields] = [dict(f.values) for f in read(line) if isinstance(f, Stated)]
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
        "doRebalance, g a T, get consumer id list failed",
        "[BUG] ConsumerGroup: g The consumerId: c",
        "send heart beat to broker[b] failed",
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


REFUSED = (
    "org.apache.rocketmq.client.exception.MQBrokerException: CODE: 16  DESC: the consumer group[g] "
    "can not consume by broadcast way"
)


@pytest.mark.parametrize(
    ("before", "fields"),
    [
        (
            f"{NEW_HEAD}execute the pull request exception, group=g, messageQueue={QUEUE}",
            {"group": "g", "topic": "T", "broker_name": "b@r", "pid": "32265"},
        ),
        (f"{OLD_HEAD}execute the pull request exception\r", {"group": "g"}),
    ],
)
def test_a_refused_pull_has_the_time_of_the_line_before(
    before: str, fields: dict[str, object]
) -> None:
    clock = ClientClock(Clock(ZoneInfo("America/New_York")))
    assert parse_client_line(before, "c.log:1", clock) == ()
    at_ms = OLD_MS if before.startswith(OLD_HEAD) else NEW_MS
    expected = Fact("broadcast_refused", at_ms, fields, "c.log:2")
    assert parse_client_line(REFUSED, "c.log:2", clock) == (expected,)
    assert parse_client_line(REFUSED, "c.log:3", clock) == (), "its own line before is not known"


REJECTED = (
    "org.apache.rocketmq.client.exception.MQBrokerException: CODE: 2  DESC: [REJECTREQUEST]system "
    "busy, start flow control for a while"
)


@pytest.mark.parametrize(
    ("line", "facts"),
    [
        (
            f"{REJECTED} BROKER: 1.1.1.1:1\r",
            (Fact("pull_refused", NEW_MS, {"address": "1.1.1.1:1"}, "c.log:2"),),
        ),
        (REJECTED, ()),
    ],
)
def test_a_pull_that_a_slave_refuses_shows_its_address(line: str, facts: tuple[Fact, ...]) -> None:
    clock = ClientClock(Clock(ZoneInfo("America/New_York")))
    before = f"{NEW_HEAD}execute the pull request exception, group=g, messageQueue={QUEUE}"
    assert parse_client_line(before, "c.log:1", clock) == ()
    assert parse_client_line(line, "c.log:2", clock) == facts
    assert parse_client_line(line, "c.log:3", clock) == ()


def test_a_heartbeat_that_was_sent_and_a_torn_pass_state_nothing() -> None:
    assert read(f"{NEW_HEAD}send heart beat to broker[b 0 1.1.1.1:1] success") == ()
    assert read(f"{NEW_HEAD}doRebalance, g, add a new mq, MessageQue") == ()


def test_a_pass_that_takes_a_queue_states_it_with_its_process() -> None:
    (fact,) = read(f"{NEW_HEAD}doRebalance, g, add a new mq, {QUEUE}")
    assert not isinstance(fact, Unread)
    assert (fact.kind, fact.values["group"]) == ("queue_taken", "g")
    assert str(fact.values["topic"]) in QUEUE
