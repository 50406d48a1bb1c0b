from rebalance_core.ingest.fact import Unread
from rebalance_core.ingest.parse.config_stores import TOPIC_KINDS, parse_topics_json
from tests.unit.ingest.documents import codes, facts, messages, parse_all

V4 = """{
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
V5 = """{"dataVersion":{"counter":9,"stateVersion":0,"timestamp":1795232871085},
"topicConfigTable":{"clicks":{"attributes":{"+message.type":"FIFO"},"order":true,"perm":6,
"readQueueNums":2,"topicFilterType":"SINGLE_TAG","topicName":"clicks","topicSysFlag":0,
"writeQueueNums":4}}}"""


def test_a_store_of_4_9() -> None:
    results = parse_topics_json(V4, "topics.json")
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


def test_a_store_of_5_x() -> None:
    [topic] = facts(parse_topics_json(V5, "f"), "topic_config")
    assert (topic["read_queue_nums"], topic["write_queue_nums"], topic["order"]) == (2, 4, True)
    assert topic["attributes"] == {"+message.type": "FIFO"}


def test_one_bad_topic_does_not_hide_the_others() -> None:
    text = V5.replace('{"clicks"', '{"bad":{"perm":6,"readQueueNums":"x"},"clicks"')
    results = parse_topics_json(text, "f")
    assert codes(results) == ["BAD_NUMBER"]
    assert len(facts(results, "topic_config")) == 1
    [bad] = [result for result in results if isinstance(result, Unread)]
    assert '"bad"' in bad.raw
    assert bad.message == "readQueueNums of topic bad is 'x', not a whole number of 64 bits"


def test_numbers_have_their_bounds() -> None:
    for number in ("-1", "2147483648", "1.5", "true", "null"):
        text = V5.replace('"readQueueNums":2', f'"readQueueNums":{number}')
        assert codes(parse_topics_json(text, "f")) == ["BAD_NUMBER"], number


def test_a_name_that_a_broken_copy_left_is_refused() -> None:
    assert codes(parse_topics_json(V5.replace('"clicks":{', '"cli\ufffdks":{'), "f")) == [
        "BAD_ENTRY"
    ]
    assert codes(parse_topics_json(V5.replace('"clicks":{', '"":{'), "f")) == ["BAD_ENTRY"]


def test_a_cut_file_is_refused_whole() -> None:
    assert codes(parse_topics_json(V5[:200], "f")) == ["UNPARSABLE_DOCUMENT"]
    assert codes(parse_topics_json("", "f")) == ["UNPARSABLE_DOCUMENT"]
    assert codes(parse_topics_json("\x00" * 4096, "f")) == ["UNPARSABLE_DOCUMENT"]


def test_another_store_is_told_apart() -> None:
    results = parse_topics_json('{"offsetTable":{}}', "f")
    assert codes(results) == ["WRONG_FILE"]
    assert "the document holds offsetTable" in messages(results)[0]


def test_every_recording() -> None:
    counts = parse_all(r"brokers/.*/topics\.json$", parse_topics_json, TOPIC_KINDS)
    assert counts["files"] >= 1
    assert counts["topic_config"] > 10 * counts["files"]
