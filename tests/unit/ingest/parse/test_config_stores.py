"""Stores of topics, groups, request modes and proxies."""

import pytest

from rebalance_core.ingest.fact import Unread
from rebalance_core.ingest.parse.config_stores import (
    parse_message_request_mode_json,
    parse_proxy_config_json,
    parse_rocksdb_sign,
    parse_store_listing,
    parse_subscription_group_json,
    parse_topics_json,
)
from tests.unit.ingest.documents import codes, facts, messages, parse_all

STORE = """{
	"messageRequestModeMap":{
		"PopA":{
			"g1":{"consumerGroup":"g1","mode":"POP","popShareQueueNum":2,"topic":"PopA"},
			"g2":{"consumerGroup":"g2","mode":"PULL","popShareQueueNum":0,"topic":"PopA"}
		},
		"PopS":{"g1":{"consumerGroup":"g1","mode":"POP","popShareQueueNum":-1,"topic":"PopS"}}
	}
}"""


def modes(text: str) -> list[tuple[str, str, str]]:
    found = facts(parse_message_request_mode_json(text, "f"), "request_mode")
    return [(fact["consumer_group"], fact["topic"], fact["mode"]) for fact in found]


def test_a_store() -> None:
    assert modes(STORE) == [
        ("g1", "PopA", "POP(share_queue_num=2)"),
        ("g2", "PopA", "PULL"),
        ("g1", "PopS", "POP(share_queue_num=-1)"),
    ]


def test_nothing_was_ever_set() -> None:
    assert parse_message_request_mode_json('{"messageRequestModeMap":{}}', "f") == []


def test_a_share_that_is_not_written_is_the_default() -> None:
    assert modes(STORE.replace('"popShareQueueNum":2,', ""))[0][2] == "POP(share_queue_num=-1)"


def test_what_is_none_is_refused() -> None:
    unknown = parse_message_request_mode_json(STORE.replace("PULL", "PUSH"), "f")
    assert codes(unknown) == ["BAD_ENTRY"]
    assert "mode of g2 of PopA is 'PUSH', not PULL or POP" in messages(unknown)[0]
    others = [fact["consumer_group"] for fact in facts(unknown, "request_mode")]
    assert others == ["g1", "g1"], "the other group of the topic is read"
    large = STORE.replace(":2,", f":{2**31},")
    assert codes(parse_message_request_mode_json(large, "f")) == ["BAD_NUMBER"]
    assert codes(parse_message_request_mode_json("{}", "f")) == ["WRONG_FILE"]
    assert codes(parse_message_request_mode_json(STORE[:200], "f")) == ["UNPARSABLE_DOCUMENT"]


def test_every_recording() -> None:
    pattern = r"brokers/.*/messageRequestMode\.json$"
    counts = parse_all(pattern, parse_message_request_mode_json)
    assert counts["files"] >= 12
    assert counts["request_mode"] >= 100


def proxy_config_json_modes(text: str) -> list[str]:
    return [fact["mode"] for fact in facts(parse_proxy_config_json(text, "f"), "proxy_mode")]


def test_the_mode_it_was_given() -> None:
    assert proxy_config_json_modes('{"proxyMode":"CLUSTER","grpcServerPort":8081}') == ["CLUSTER"]
    assert proxy_config_json_modes('{"proxyMode":"local"}') == ["LOCAL"]
    assert parse_proxy_config_json("{}", "f") == []


def test_proxy_config_json_what_is_none_is_refused() -> None:
    assert codes(parse_proxy_config_json('{"proxyMode":"BOTH"}', "f")) == ["BAD_ENTRY"]
    assert codes(parse_proxy_config_json('{"proxyMode":1}', "f")) == ["BAD_ENTRY"]
    assert codes(parse_proxy_config_json("[]", "f")) == ["UNPARSABLE_DOCUMENT"]


GROUPS_V4 = """{"dataVersion":{"counter":2,"timestamp":1795232156755},"subscriptionGroupTable":{
"GID_trade":{"brokerId":0,"consumeBroadcastEnable":false,"consumeEnable":true,
"consumeFromMinEnable":false,"groupName":"GID_trade","notifyConsumerIdsChangedEnable":true,
"retryMaxTimes":16,"retryQueueNums":1,"whichBrokerWhenConsumeSlowly":1}}}"""
GROUPS_V5 = """{"dataVersion":{"counter":12,"stateVersion":0,"timestamp":1795232871085},
"forbiddenTable":{"crm":{"orders":4,"clicks":0}},"subscriptionGroupTable":{
"crm":{"attributes":{},"brokerId":0,"consumeBroadcastEnable":false,"consumeEnable":true,
"consumeFromMinEnable":false,"consumeMessageOrderly":true,"consumeTimeoutMinute":15,
"groupName":"crm","groupRetryPolicy":{"type":"CUSTOMIZED"},"groupSysFlag":0,
"notifyConsumerIdsChangedEnable":true,"retryMaxTimes":16,"retryQueueNums":1,
"subscriptionDataSet":[{"expression":"*","expressionType":"TAG","topic":"orders","version":1}],
"whichBrokerWhenConsumeSlowly":1}}}"""


def test_a_store_of_4_9_has_no_fields_of_5_x() -> None:
    [group] = facts(parse_subscription_group_json(GROUPS_V4, "f"), "subscription_group")
    assert group["consumer_group"] == "GID_trade"
    assert group["consume_broadcast_enable"] is False
    assert group["retry_queue_nums"] == 1
    assert group["consume_message_orderly"] is None
    assert group["subscriptions"] == ()


def test_subscription_group_json_a_store_of_5_x() -> None:
    results = parse_subscription_group_json(GROUPS_V5, "f")
    [group] = facts(results, "subscription_group")
    assert group["consume_message_orderly"] is True
    assert group["subscriptions"] == (("orders", "*"),)
    assert facts(results, "forbidden") == [{"consumer_group": "crm", "topic": "orders", "flags": 4}]


def test_a_wrong_type_is_refused_by_name() -> None:
    text = GROUPS_V4.replace('"consumeEnable":true', '"consumeEnable":1')
    results = parse_subscription_group_json(text, "f")
    assert codes(results) == ["BAD_ENTRY"]
    assert messages(results)[0] == "consumeEnable of group GID_trade is '1', not a boolean"
    text = GROUPS_V5.replace('{"orders":4,"clicks":0}', "[]")
    assert codes(parse_subscription_group_json(text, "f")) == ["BAD_ENTRY"]


def test_subscription_group_json_another_store_is_distinguished() -> None:
    assert codes(parse_subscription_group_json('{"topicConfigTable":{}}', "f")) == ["WRONG_FILE"]


def test_subscription_group_json_every_recording() -> None:
    pattern = r"brokers/.*/subscriptionGroup\.json$"
    counts = parse_all(pattern, parse_subscription_group_json)
    assert counts["files"] >= 1
    assert counts["subscription_group"] > 5 * counts["files"]


TOPICS_JSON_V4 = """{
	"dataVersion":{
		"counter":4,
		"timestamp":1795232214596
	},
	"topicConfigTable":{
		"%RETRY%GID_lite":{
			"order":false,
			"perm":6,
			"readQueueNums":1,
			"topicFilterType":"SINGLE_TAG",
			"topicName":"%RETRY%GID_lite",
			"topicSysFlag":0,
			"writeQueueNums":1
		}
	}
}"""
TOPICS_JSON_V5 = """{"dataVersion":{"counter":9,"stateVersion":0,"timestamp":1795232871085},
"topicConfigTable":{"clicks":{"attributes":{"+message.type":"FIFO"},"order":true,"perm":6,
"readQueueNums":2,"topicFilterType":"SINGLE_TAG","topicName":"clicks","topicSysFlag":0,
"writeQueueNums":4}}}"""


def test_a_store_of_4_9() -> None:
    results = parse_topics_json(TOPICS_JSON_V4, "topics.json")
    assert facts(results, "topic_config") == [
        {
            "topic": "%RETRY%GID_lite",
            "read_queue_nums": 1,
            "write_queue_nums": 1,
            "perm": 6,
            "order": False,
            "topic_sys_flag": 0,
            "attributes": {},
        }
    ]
    assert facts(results, "data_version") == [
        {"counter": 4, "state_version": None, "timestamp_ms": 1795232214596}
    ]
    assert results[0].source == "topics.json"


def test_topics_json_a_store_of_5_x() -> None:
    [topic] = facts(parse_topics_json(TOPICS_JSON_V5, "f"), "topic_config")
    assert (topic["read_queue_nums"], topic["write_queue_nums"], topic["order"]) == (2, 4, True)
    assert topic["attributes"] == {"+message.type": "FIFO"}


def test_one_bad_topic_does_not_hide_the_others() -> None:
    text = TOPICS_JSON_V5.replace('{"clicks"', '{"bad":{"perm":6,"readQueueNums":"x"},"clicks"')
    results = parse_topics_json(text, "f")
    assert codes(results) == ["BAD_NUMBER"]
    assert len(facts(results, "topic_config")) == 1
    [bad] = [result for result in results if isinstance(result, Unread)]
    assert '"bad"' in bad.raw
    assert bad.message == "readQueueNums of topic bad is 'x', not a whole number of 64 bits"


def test_numbers_have_their_bounds() -> None:
    for number in ("-1", "2147483648", "1.5", "true", "null"):
        text = TOPICS_JSON_V5.replace('"readQueueNums":2', f'"readQueueNums":{number}')
        assert codes(parse_topics_json(text, "f")) == ["BAD_NUMBER"], number


def test_a_name_that_a_broken_copy_left_is_refused() -> None:
    assert codes(
        parse_topics_json(TOPICS_JSON_V5.replace('"clicks":{', '"cli\ufffdks":{'), "f")
    ) == ["BAD_ENTRY"]
    assert codes(parse_topics_json(TOPICS_JSON_V5.replace('"clicks":{', '"":{'), "f")) == [
        "BAD_ENTRY"
    ]


def test_a_cut_file_is_refused_whole() -> None:
    assert codes(parse_topics_json(TOPICS_JSON_V5[:200], "f")) == ["UNPARSABLE_DOCUMENT"]
    assert codes(parse_topics_json("", "f")) == ["UNPARSABLE_DOCUMENT"]
    assert codes(parse_topics_json("\x00" * 4096, "f")) == ["UNPARSABLE_DOCUMENT"]


def test_topics_json_another_store_is_distinguished() -> None:
    results = parse_topics_json('{"offsetTable":{}}', "f")
    assert codes(results) == ["WRONG_FILE"]
    assert "the document holds offsetTable" in messages(results)[0]


def test_topics_json_every_recording() -> None:
    counts = parse_all(r"brokers/.*/topics\.json$", parse_topics_json)
    assert counts["files"] >= 1
    assert counts["topic_config"] > 10 * counts["files"]


STOCK = "lock 4\nconfig/topics.json 3937\nconfig/consumerOffset.json 700\nrocksdbstore/CURRENT 16\n"


def forms(text: str) -> list[str]:
    (found,) = facts(parse_store_listing(text, "f"), "store_form")
    return list(found["forms"])


@pytest.mark.parametrize(
    ("sign", "form"),
    [
        ("config/topics/CURRENT 16", "ROCKSDB"),
        ("config/metadata/CURRENT", "SINGLE_ROCKSDB"),
        ("./config/rdb/CURRENT 16 1795332887", "ROCKSDB_V2"),
        ("/home/rocket mq/store/config/rdb/CURRENT 16", "ROCKSDB_V2"),
        ("config/subscriptionGroups/CURRENT 16", "JSON"),
        ("config/topics/CURRENT.bak 16", "JSON"),
        ("store/topics/CURRENT 16", "JSON"),
    ],
)
def test_the_sign_of_each_form(sign: str, form: str) -> None:
    assert forms(STOCK + sign + "\n") == [form]


def test_the_folder_that_every_store_has_is_no_sign() -> None:
    assert forms(STOCK) == ["JSON"]


def test_a_broker_that_was_changed_over_may_keep_its_old_form() -> None:
    assert forms("config/metadata/CURRENT 1\nconfig/topics/CURRENT 1\n") == [
        "ROCKSDB",
        "SINGLE_ROCKSDB",
    ]


def test_when_stores_were_written_if_the_listing_states_it() -> None:
    text = "config/topics.json 3937 1795332883\nconfig/consumerOffset.json 740\nconfig/x.json 1 9\n"
    (found,) = facts(parse_store_listing(text, "f"), "store_form")
    assert found["modified"] == [("topics.json", 1795332883000)]


@pytest.mark.parametrize("text", ["", "\n", "lock 4\nabort 0\n", '{"a": 1}'])
def test_no_listing_of_a_store(text: str) -> None:
    assert codes(parse_store_listing(text, "f")) == ["WRONG_FILE"]


@pytest.mark.parametrize(
    ("path", "form"),
    [
        ("brokers/b/config-1795332883191/topics/CURRENT", "ROCKSDB"),
        ("brokers/b/config/metadata/CURRENT", "SINGLE_ROCKSDB"),
        ("brokers/b/config/rdb/CURRENT", "ROCKSDB_V2"),
    ],
)
def test_a_copied_sign(path: str, form: str) -> None:
    (found,) = facts(parse_rocksdb_sign("MANIFEST-000019\n", path), "store_form")
    assert found == {"forms": [form], "modified": []}


def test_every_listing_collected_is_read() -> None:
    counts = parse_all(r"brokers/[^/]+/store-files", parse_store_listing)
    assert counts == {"store_form": 20, "files": 20}
