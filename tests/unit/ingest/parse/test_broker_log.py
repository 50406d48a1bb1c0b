import pytest

from rebalance_core.ingest.fact import Fact, Stated, Unread
from rebalance_core.ingest.parse.broker_log import parse_broker_line
from rebalance_core.ingest.parse.log_lines import ServerClock

AT = "2026-11-21 11:28:35 INFO HeartbeatThread_1 - "
AT_MS = 1795231715000  # GMT+8
CHANNEL = (
    "ClientChannelInfo [channel=[id: 0x2b88b36c, L:/127.0.0.1:23030 - R:/127.0.0.1:44102], "
    "clientId=10.0.1.12@8508#35984, language=JAVA, version=479, lastUpdateTimestamp=1795233270964]"
)
CHANNEL_FIELDS = {
    "channel": "127.0.0.1:44102",
    "local": "127.0.0.1:23030",
    "client_id": "10.0.1.12@8508#35984",
    "language": "JAVA",
    "version": 479,
    "beat_ms": 1795233270964,
}
DATA = (
    "ConsumerData [groupName=g, consumeType=CONSUME_PASSIVELY, messageModel=CLUSTERING, "
    "consumeFromWhere=CONSUME_FROM_LAST_OFFSET, unitMode=false, subscriptionDataSet=["
    "SubscriptionData [classFilterMode=false, topic=%RETRY%g, subString=*, tagsSet=[], codeSet=[], "
    "subVersion=7, expressionType=TAG], SubscriptionData [classFilterMode=false, topic=T, "
    "subString=a || b, tagsSet=[a, b], codeSet=[97, 98], subVersion=5, expressionType=TAG]]]"
)
DATA_FIELDS = {
    "group": "g",
    "consume_type": "CONSUME_PASSIVELY",
    "message_model": "CLUSTERING",
    "consume_from_where": "CONSUME_FROM_LAST_OFFSET",
    "topics": ["%RETRY%g", "T"],
    "expressions": {"%RETRY%g": "*", "T": "a || b"},
    "versions": {"%RETRY%g": 7, "T": 5},
    "known_ms": 5,
    "channel": "10.0.0.7:1234",
}
CONFIG = (
    "TopicConfig [topicName=T, readQueueNums={}, writeQueueNums=8, perm=R--, "
    "topicFilterType=SINGLE_TAG, topicSysFlag=0, order=false, attributes={{}}]"
)
SUBSCRIPTION = (
    "SubscriptionData [classFilterMode=false, topic=orders, subString={}, tagsSet=[], codeSet=[], "
    "subVersion={}, expressionType=TAG]"
)
GROUP_4_9 = (
    "SubscriptionGroupConfig [groupName=GID_trade, consumeEnable=true, consumeFromMinEnable=false, "
    "consumeBroadcastEnable=false, retryQueueNums=1, retryMaxTimes=16, brokerId=0]"
)
GROUP_5_0 = "SubscriptionGroupConfig{groupName='GID_trade', consumeEnable=true, brokerId=0}"
GROUP_5 = "SubscriptionGroupConfig{groupName=GID_trade, consumeEnable=true, brokerId=0}"
TOPIC = {"topic": "T", "read": 4, "write": 8, "perm": 4}


def read(message: str) -> tuple[Fact | Unread, ...]:
    return parse_broker_line(AT + message, "broker.log:1", ServerClock())


@pytest.mark.parametrize("group", ["g", "g, v2"])
def test_a_slave_that_lacks_an_offset_names_the_replica_to_ask(group: str) -> None:
    # DefaultPullMessageResultHandler 5.x, PullMessageProcessor 4.9: the same words
    words = "PULL_OFFSET_MOVED:none correction. topic=T, "
    (found,) = read(f"{words}groupId={group}, requestOffset=4711, suggestBrokerId=0")
    assert isinstance(found, Stated)
    values = {"topic": "T", "group": group, "asked": 4711, "sent_to": 0}
    assert (found.kind, found.values) == ("offset_not_corrected", values)
    (torn,) = read(f"{words}groupId={group}, requestOffset=47")
    assert isinstance(torn, Unread)


def test_a_pull_consumer_sends_no_time_of_its_subscription() -> None:
    data = DATA.replace("subVersion=7", "subVersion=0").replace("subVersion=5", "subVersion=0")
    (fact,) = read(f"registerConsumer info changed {data} 10.0.0.7:1234")
    assert isinstance(fact, Stated)
    assert (fact.values["versions"], fact.values["known_ms"]) == ({}, None)


@pytest.mark.parametrize(
    ("message", "kind", "fields"),
    [
        (
            f"new consumer connected, group: g CONSUME_PASSIVELY CLUSTERING channel: {CHANNEL}",
            "consumer_connected",
            {"group": "g", "consume_type": "CONSUME_PASSIVELY", "message_model": "CLUSTERING"}
            | CHANNEL_FIELDS,
        ),
        (
            "ClientManageProcessor: registerConsumer info changed, SDK address=10.0.0.7:1234, "
            f"consumerData={DATA}",
            "consumer_data",
            DATA_FIELDS,
        ),
        (f"registerConsumer info changed {DATA} 10.0.0.7:1234", "consumer_data", DATA_FIELDS),
        (
            f"unregister a consumer[g] from consumerGroupInfo {CHANNEL}",
            "consumer_left",
            {"group": "g"} | CHANNEL_FIELDS,
        ),
        (
            f"NETTY EVENT: remove not active channel[{CHANNEL.replace(' - R:', ' ! R:')}] from "
            "ConsumerGroupInfo groupChannelTable, consumer group: g",
            "consumer_closed",
            {"group": "g"} | CHANNEL_FIELDS,
        ),
        (
            "SCAN: remove expired channel from ConsumerManager consumerTable. "
            "channel=127.0.0.1:53318, consumerGroup=order-service",
            "consumer_expired",
            {"channel": "127.0.0.1:53318", "group": "order-service"},
        ),
        (f"create new topic [{CONFIG.format(4)}]", "topic_created", TOPIC),
        (f"create new topic {CONFIG.format(4)}", "topic_created", TOPIC),
        (f"load exist local topic, {CONFIG.format(4)}", "topic_loaded", TOPIC),
        (
            f"update topic config, old:[{CONFIG.format(3)}] new:[{CONFIG.format(4)}]",
            "topic_updated",
            TOPIC | {"old": TOPIC | {"read": 3}},
        ),
        (f"delete topic config OK, topic: {CONFIG.format(4)}", "topic_deleted", {"topic": "T"}),
        ("delete topic config OK, topic: T", "topic_deleted", {"topic": "T"}),
        ("brokerPermission=4", "broker_starting", {"perm": 4}),
        (
            "The broker[broker-c, 127.0.0.1:25040] boot success. serializeType=JSON",
            "broker_booted",
            {"broker": "broker-c", "address": "127.0.0.1:25040"},
        ),
        ("Shutdown hook was invoked, 1", "broker_stopping", {}),
        (
            f"create new subscription group, {GROUP_4_9}",
            "group_created",
            {"group": "GID_trade", "by": "admin"},
        ),
        (
            f"create new subscription group, {GROUP_5}",
            "group_created",
            {"group": "GID_trade", "by": "admin"},
        ),
        (
            f"auto create a subscription group, {GROUP_4_9}",
            "group_created",
            {"group": "GID_trade", "by": "auto"},
        ),
        (
            f"auto create a subscription group, {GROUP_5_0}",
            "group_created",
            {"group": "GID_trade", "by": "auto"},
        ),
        (
            f"delete subscription group OK, subscription group:{GROUP_5}",
            "group_deleted",
            {"group": "GID_trade"},
        ),
        (
            f"subscription changed, group: crm OLD: {SUBSCRIPTION.format('a || b', 5)} "
            f"NEW: {SUBSCRIPTION.format('c', 6)}",
            "subscription_changed",
            {"group": "crm", "topic": "orders", "old": "a || b", "new": "c", "version": 6},
        ),
        (
            # also whenever the client's queues change
            f"subscription changed, group: g OLD: {SUBSCRIPTION.format('a', 5)} "
            f"NEW: {SUBSCRIPTION.format('a', 6)}",
            "subscription_changed",
            {"group": "g", "topic": "orders", "version": 6},
        ),
        (
            # Go's clients send nanoseconds
            f"subscription changed, group: g OLD: {SUBSCRIPTION.format('a', 5)} "
            f"NEW: {SUBSCRIPTION.format('a', 1795644419126412828)}",
            "subscription_changed",
            {"group": "g", "topic": "orders", "version": 1795644419126},
        ),
        (
            f"subscription changed, group: crm remove topic orders {SUBSCRIPTION.format('*', 5)}",
            "subscription_changed",
            {"group": "crm", "topic": "orders"},
        ),
        (
            f"subscription changed, add new topic, group: g {SUBSCRIPTION.format('*', 5)}",
            "group_topic",
            {"group": "g", "topic": "orders", "expression": "*"},
        ),
        (
            "unregister consumer ok, no any connection, and remove consumer group, g-remote",
            "group_emptied",
            {"group": "g-remote"},
        ),
        (
            "SCAN: remove expired channel from ConsumerManager consumerTable, all clear, "
            "consumerGroup=g-remote",
            "group_emptied",
            {"group": "g-remote"},
        ),
        (
            # a broker with a proxy inside: no channel id, and the version is the proxy's
            "new consumer connected, group: g CONSUME_PASSIVELY CLUSTERING channel: "
            "ClientChannelInfo [channel=GrpcClientChannel{clientId=vm@1@0@x, "
            "remoteAddress=10.0.0.1:40976, localAddress=10.0.0.9:8081}, clientId=vm@1@0@x, "
            "language=JAVA, version=513, lastUpdateTimestamp=1795331438812]",
            "consumer_connected",
            {
                "group": "g",
                "consume_type": "CONSUME_PASSIVELY",
                "message_model": "CLUSTERING",
                "channel": "10.0.0.1:40976",
                "proxy_addr": "10.0.0.9:8081",
                "protocol": "GRPC",
                "remote": False,
                "topics": None,
                "client_id": "vm@1@0@x",
                "language": "JAVA",
                "version": None,
                "beat_ms": 1795331438812,
            },
        ),
        ("brokerName=b", "broker_property", {"name": "brokerName", "value": "b"}),
        ("brokerId=1", "broker_property", {"name": "brokerId", "value": "1"}),
        ("brokerRole=SLAVE", "broker_property", {"name": "brokerRole", "value": "SLAVE"}),
        (
            "fileReservedTime=48",
            "message_retention",
            {"hours": 48},
        ),
        (
            "Replace, key: fileReservedTime, value: 48 -> 72",
            "message_retention",
            {"hours": 72},
        ),
        (
            "slaveReadEnable=true",
            "broker_property",
            {"name": "slaveReadEnable", "value": "true"},
        ),
        (
            "Update slave topic config from master, 127.0.0.1:26020",
            "broker_follows",
            {"address": "127.0.0.1:26020"},
        ),
        (
            "Min broker changed, old: 0-null, new 1-10.0.0.5:10911",
            "min_broker",
            {"broker_id": 1, "address": "10.0.0.5:10911"},
        ),
        (
            "Min broker changed, old: 1-10.0.0.5:10911, new 0-10.0.0.4:10911",
            "min_broker",
            {"broker_id": 0, "address": "10.0.0.4:10911"},
        ),
        (
            "SyncConsumerOffset Exception, 127.0.0.1:26020",
            "broker_copy_failed",
            {"address": "127.0.0.1:26020"},
        ),
        (
            "the consumer's subscription not exist, group: crm, topic:clicks",
            "no_subscription",
            {"group": "crm", "topic": "clicks"},
        ),
        (
            "The broker's subscription is not latest, group: crm a || b",
            "subscription_not_latest",
            {"group": "crm"},
        ),
        (
            "the consumer's group info not exist, group: crm",
            "group_not_known",
            {"group": "crm"},
        ),
        (
            "PULL_OFFSET_MOVED:correction offset. topic=orders, groupId=crm, requestOffset=14568, "
            "newOffset=0, suggestBrokerId=0",
            "offset_corrected",
            {"group": "crm", "topic": "orders", "asked": 14568, "given": 0},
        ),
        (
            "event queue size[10001] enough, so drop this event NettyEvent [type=CLOSE, "
            "remoteAddr=10.0.0.5:50004, channel=[id: 0x1, L:/10.0.0.1:10911 ! R:/10.0.0.5:50004]]",
            "channel_event_dropped",
            {"size": "10001", "type": "CLOSE"},
        ),
        (
            "[NOTIFYME]update consumer offset less than store. clientHost=127.0.0.1:50578, "
            "key=orders@notify, queueId=2, requestOffset=9, storeOffset=10",
            "offset_went_back",
            {
                "group": "notify",
                "topic": "orders",
                "queue_id": 2,
                "host": "127.0.0.1:50578",
                "asked": 9,
                "stored": 10,
            },
        ),
        (
            "[reset-offset] reset offset started by 10.0.0.9:50578. topic=orders, group=notify, "
            "timestamp=1795231735000, isForce=true",
            "reset_asked",
            {"group": "notify", "topic": "orders", "by": "10.0.0.9:50578"},
        ),
        (
            "QueryLoad: no assignment for group[g] topic[T], allocate message queue exception. "
            "strategy name: AVG, ex: java.lang.IllegalArgumentException",
            "broker_allocation_failed",
            {
                "group": "g",
                "topic": "T",
                "strategy": "AVG",
                "message": "java.lang.IllegalArgumentException",
            },
        ),
    ],
)
def test_each_line_of_ours_is_one_fact(message: str, kind: str, fields: dict[str, object]) -> None:
    assert read(message) == (Fact(kind, AT_MS, fields, "broker.log:1"),)


def test_a_closed_channel_without_a_remote_part_goes_by_its_id() -> None:
    closed = CHANNEL.replace(" - R:/127.0.0.1:44102", "")
    (fact,) = read(f"unregister a consumer[g] from consumerGroupInfo {closed}")
    assert isinstance(fact, Stated)
    assert fact.values["channel"] == "0x2b88b36c"


@pytest.mark.parametrize(
    "message",
    [
        "new producer connected, group: g channel: " + CHANNEL,
        f"load exist subscription group, {GROUP_5}",
        "QueryLoad: no assignment for group[g] topic[T], another reason",
        "Update slave Message Request Mode from master, null",
        "brokerRole=",
        "",
        "anything else",
    ],
)
def test_other_lines_state_nothing(message: str) -> None:
    assert read(message) == ()


def test_properties_stand_in_other_lines_too_where_they_state_nothing() -> None:
    line = "    at MessageQueue [topic=T, brokerName=b, queueId=1], brokerId=0, brokerRole=SLAVE"
    assert parse_broker_line(line, "broker.log:1", ServerClock()) == ()


@pytest.mark.parametrize(
    "line",
    [
        AT + "new consumer connected, group: g CONSUME_PASSIVELY CLUSTERING channel: Client",
        AT + f"unregister a consumer[] from consumerGroupInfo {CHANNEL}",
        AT + "update topic config, old:[TopicConfig [topicName=T",
        AT + f"registerConsumer info changed, SDK address=1.1.1.1:1, consumerData={DATA[:-60]}",
        AT + "brokerPermission=RW",
        AT + "Min broker changed, old: 0-null, new x-1.1.1.1:1",
        AT + "Min broker changed, old: 0-null",
        AT + "subscription changed, group: g OLD: SubscriptionData [classFilterMode=false",
        AT + "the consumer's subscription not exist, group: g",
        AT + "the consumer's group info not exist, group: ",
        AT + "PULL_OFFSET_MOVED:correction offset. topic=T, groupId=g, requestOffset=x, "
        "newOffset=0, suggestBrokerId=0",
        AT + "event queue size[10001] enough, so drop this event",
        AT + "[NOTIFYME]update consumer offset less than store. clientHost=1.1.1.1:1, key=orders, "
        "queueId=0, requestOffset=1, storeOffset=2",
        AT + "delete subscription group OK, subscription group:null",
        f"28:35 INFO t - unregister a consumer[g] from consumerGroupInfo {CHANNEL}",
        f"2026-13-41 11:28:35 INFO t - unregister a consumer[g] from consumerGroupInfo {CHANNEL}",
    ],
)
def test_a_line_like_ours_that_does_not_parse_is_named(line: str) -> None:
    (refused,) = parse_broker_line(line, "broker.log:7", ServerClock())
    assert isinstance(refused, Unread)
    assert refused.source == "broker.log:7"
    assert refused.code == "UNPARSABLE_LINE"
    assert refused.raw == line


@pytest.mark.parametrize(
    ("message", "slave"),
    [
        ("[id:1][address:127.0.0.1:47020] to SYNC_MASTER, newMasterBrokerId:1, x:1", False),
        ("[id:2][address:127.0.0.1:47020] to SLAVE, newMasterBrokerId:1, x:1", True),
        ("127.0.0.1:47020 to master success, masterEpoch 2, syncStateSetEpoch:1", False),  # 5.0
        ("127.0.0.1:47020 to slave, newMasterAddress:127.0.0.1:1, newMasterEpoch:1", True),
    ],
)
def test_what_a_controller_makes_of_a_broker(message: str, slave: bool) -> None:
    (fact,) = read("Change broker " + message)
    assert isinstance(fact, Stated)
    assert (fact.kind, dict(fact.values)) == (
        "broker_role",
        {"address": "127.0.0.1:47020", "slave": slave},
    )
    assert isinstance(read("Change broker [id:1][address:127.0.0.1:47020] to KING, x")[0], Unread)


@pytest.mark.parametrize(
    ("role", "slave"), [("master brokerName=b-0", False), ("slave brokerName=b-0 brokerId=2", True)]
)
def test_what_an_election_of_dledger_makes_of_the_broker(role: str, slave: bool) -> None:
    (fact,) = read(f"Begin to change to {role}")
    assert isinstance(fact, Stated)
    assert (fact.kind, dict(fact.values)) == ("broker_role", {"broker": "b-0", "slave": slave})
    assert isinstance(read(f"Begin to change to {role.partition('=')[0]}=")[0], Unread)
    assert read(f"Finish to change to {role}") == ()


def test_an_update_of_a_group_states_what_changed() -> None:
    """5.x nests a retry policy in it, 4.9 prints brackets."""
    policy = "groupRetryPolicy=GroupRetryPolicy{type=CUSTOMIZED, exponentialRetryPolicy=null}"
    new_form = "SubscriptionGroupConfig{groupName=g, consumeEnable=%s, " + policy + ", brokerId=%s}"
    old_form = "SubscriptionGroupConfig [groupName=g, consumeEnable=%s, brokerId=%s]"
    for form in (new_form, old_form):
        old, new = form % ("true", 0), form % ("false", 1)
        message = f"update subscription group config, old: {old} new: {new}"
        (fact,) = parse_broker_line(AT + message, "b:1", ServerClock())
        assert not isinstance(fact, Unread)
        assert fact.values["changes"] == "consumeEnable: true → false, brokerId: 0 → 1"
