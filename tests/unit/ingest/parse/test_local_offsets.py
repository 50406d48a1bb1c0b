"""Offsets that BROADCASTING clients keep in files of their own."""

from rebalance_core.ingest.parse.offset_stores import parse_local_offset_json
from tests.unit.ingest.documents import codes, facts, parse_all

TEXT = """{
	"offsetTable":{{
			"brokerName":"room2@broker-b",
			"queueId":4,
			"topic":"orders"
		}:8,{
			"brokerName":"room1@broker-a",
			"queueId":0,
			"topic":"orders"
		}:4
	}
}"""
ROWS = [
    {"topic": "orders", "broker_name": "room2@broker-b", "queue_id": 4, "committed_offset": 8},
    {"topic": "orders", "broker_name": "room1@broker-a", "queue_id": 0, "committed_offset": 4},
]


def test_keys_are_objects() -> None:
    assert facts(parse_local_offset_json(TEXT, "f"), "local_offset") == ROWS


def test_keys_are_texts_that_hold_the_object() -> None:
    text = r"""{"offsetTable":{
    "{\"brokerName\":\"room2@broker-b\",\"queueId\":4,\"topic\":\"orders\"}":8,
    "{\"brokerName\":\"room1@broker-a\",\"queueId\":0,\"topic\":\"orders\"}":4}}"""
    assert facts(parse_local_offset_json(text, "f"), "local_offset") == ROWS


def test_a_key_that_is_no_queue_is_refused() -> None:
    assert codes(parse_local_offset_json('{"offsetTable":{"x":1,"[]":2}}', "f")) == [
        "BAD_ENTRY",
        "BAD_ENTRY",
    ]
    text = '{"offsetTable":{{"brokerName":"b","queueId":-1,"topic":"t"}:1}}'
    assert codes(parse_local_offset_json(text, "f")) == ["BAD_NUMBER"]


def test_local_offset_json_every_recording() -> None:
    pattern = r"clients/.*/offsets\.json$"
    counts = parse_all(pattern, parse_local_offset_json)
    assert counts["files"] >= 1
    assert counts["local_offset"] > counts["files"]
