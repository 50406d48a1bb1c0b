from rebalance_core.ingest.parse.config_stores import GROUP_KINDS, parse_subscription_group_json
from tests.unit.ingest.documents import codes, facts, messages, parse_all

V4 = """{"dataVersion":{"counter":2,"timestamp":1795232156755},"subscriptionGroupTable":{
"GID_trade":{"brokerId":0,"consumeBroadcastEnable":false,"consumeEnable":true,
"consumeFromMinEnable":false,"groupName":"GID_trade","notifyConsumerIdsChangedEnable":true,
"retryMaxTimes":16,"retryQueueNums":1,"whichBrokerWhenConsumeSlowly":1}}}"""
V5 = """{"dataVersion":{"counter":12,"stateVersion":0,"timestamp":1795232871085},
"forbiddenTable":{"crm":{"orders":4,"clicks":0}},"subscriptionGroupTable":{
"crm":{"attributes":{},"brokerId":0,"consumeBroadcastEnable":false,"consumeEnable":true,
"consumeFromMinEnable":false,"consumeMessageOrderly":true,"consumeTimeoutMinute":15,
"groupName":"crm","groupRetryPolicy":{"type":"CUSTOMIZED"},"groupSysFlag":0,
"notifyConsumerIdsChangedEnable":true,"retryMaxTimes":16,"retryQueueNums":1,
"subscriptionDataSet":[{"expression":"*","expressionType":"TAG","topic":"orders","version":1}],
"whichBrokerWhenConsumeSlowly":1}}}"""


def test_a_store_of_4_9_has_no_fields_of_5_x() -> None:
    [group] = facts(parse_subscription_group_json(V4, "f"), "subscription_group")
    assert group["consumer_group"] == "GID_trade"
    assert group["consume_broadcast_enable"] is False
    assert group["retry_queue_nums"] == 1
    assert group["consume_message_orderly"] is None
    assert group["subscriptions"] == ()


def test_a_store_of_5_x() -> None:
    results = parse_subscription_group_json(V5, "f")
    [group] = facts(results, "subscription_group")
    assert group["consume_message_orderly"] is True
    assert group["subscriptions"] == (("orders", "*"),)
    assert facts(results, "forbidden") == [{"consumer_group": "crm", "topic": "orders", "flags": 4}]


def test_a_wrong_type_is_refused_by_name() -> None:
    text = V4.replace('"consumeEnable":true', '"consumeEnable":1')
    results = parse_subscription_group_json(text, "f")
    assert codes(results) == ["BAD_ENTRY"]
    assert messages(results)[0] == "consumeEnable of group GID_trade is '1', not a boolean"
    text = V5.replace('{"orders":4,"clicks":0}', "[]")
    assert codes(parse_subscription_group_json(text, "f")) == ["BAD_ENTRY"]


def test_another_store_is_told_apart() -> None:
    assert codes(parse_subscription_group_json('{"topicConfigTable":{}}', "f")) == ["WRONG_FILE"]


def test_every_recording() -> None:
    pattern = r"brokers/.*/subscriptionGroup\.json$"
    counts = parse_all(pattern, parse_subscription_group_json, GROUP_KINDS)
    assert counts["files"] >= 1
    assert counts["subscription_group"] > 5 * counts["files"]
