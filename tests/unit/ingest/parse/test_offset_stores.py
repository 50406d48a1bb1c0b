"""Stores of offsets."""

import pytest

from rebalance_core.ingest.parse.offset_stores import (
    parse_consumer_offset_json,
    parse_consumer_order_info_json,
    parse_local_offset_json,
)
from tests.unit.ingest.documents import codes, facts, kinds, messages, parse_all

V4 = """{
	"offsetTable":{
		"TRADE@GID_trade":{0:3,1:5
		},
		"%RETRY%GID_trade@GID_trade":{0:0
		}
	}
}"""


def table(entries: str) -> str:
    return f'{{"offsetTable":{{{entries}}}}}'


def test_a_store_of_4_9() -> None:
    results = parse_consumer_offset_json(V4, "f")
    rows = [tuple(row.values()) for row in facts(results, "committed_offset")]
    assert rows == [
        ("GID_trade", "TRADE", 0, 3),
        ("GID_trade", "TRADE", 1, 5),
        ("GID_trade", "%RETRY%GID_trade", 0, 0),
    ]
    assert codes(results) == []


def test_quoted_queue_ids_of_later_codecs_read_the_same() -> None:
    quoted = V4.replace("0:", '"0":').replace("1:", '"1":')
    assert parse_consumer_offset_json(quoted, "f") == parse_consumer_offset_json(V4, "f")


def test_a_store_of_5_x_repeats_its_keys_by_group() -> None:
    text = """{"dataVersion":{"counter":5,"stateVersion":0,"timestamp":1795233060802},
    "groupTopicMap":{"crm":["orders"]},"offsetTable":{"orders@crm":{0:12}}}"""
    results = parse_consumer_offset_json(text, "f")
    assert kinds(results) == ["committed_offset", "data_version"]


def test_the_broker_notes_broadcasting_groups_under_a_third_part() -> None:
    results = parse_consumer_offset_json(table('"orders@s-bcast@broadcast":{0:2}'), "f")
    [row] = facts(results, "broadcast_offset")
    assert (row["consumer_group"], row["topic"], row["committed_offset"]) == (
        "s-bcast",
        "orders",
        2,
    )


def test_light_message_queues() -> None:
    text = '{"lmqOffsetTable":{"%LMQ%a@G":7},"offsetTable":{}}'
    [row] = facts(parse_consumer_offset_json(text, "f"), "lmq_offset")
    assert row == {"key": "%LMQ%a@G", "committed_offset": 7}


def test_keys_without_two_parts_are_refused_by_name() -> None:
    for key in ("orders", "orders@", "@G", "a@b@c", "a@b@c@d"):
        results = parse_consumer_offset_json(table(f'"{key}":{{0:1}}'), "f")
        assert codes(results) == ["BAD_ENTRY"], key
        assert messages(results)[0] == f"'{key}' is not <topic>@<group>"


def test_bad_numbers_are_refused_by_name() -> None:
    for pair in ("-1:3", '"x":3', "0:9999999999999999999", "0:1.5", "0:null", "0:true", "0:{}"):
        results = parse_consumer_offset_json(table(f'"T@G":{{{pair}}},"T@H":{{0:1}}'), "f")
        assert codes(results) == ["BAD_NUMBER"], pair
        assert len(facts(results, "committed_offset")) == 1, "the other group is read"


def test_every_recording() -> None:
    counts = parse_all(r"consumerOffset\.json$", parse_consumer_offset_json)
    assert counts["files"] >= 1
    assert counts["committed_offset"] > 5 * counts["files"]


# Stores of 5.5.0, from the recording `grpc`, and what OrderInfo.needBlock makes of them.

BODY = (
    '"a":"b0b21a8f","cm":{cm},"i":60000,"l":1795331726353,"o":[{o}],"oc":{{}},'
    '{ot}"popTime":1795331726353'
)
POP_MS, INVISIBLE_MS = 1_795_331_726_353, 60_000


def store(cm: int = 0, o: str = "150", ot: str = "") -> str:
    body = BODY.format(cm=cm, o=o, ot=f'"ot":{{{ot}}},' if ot else "")
    return '{"orderInfoCount":1,"table":{"GF@g-fifo":{0:{' + body + "}}}}"


def order(text: str) -> dict[str, object]:
    (fact,) = facts(parse_consumer_order_info_json(text, "f"), "order_info")
    return dict(fact)


def test_a_queue_that_waits_for_a_renewed_message() -> None:
    assert order(store(ot="150:1795331837481")) == {
        "consumer_group": "g-fifo", "topic": "GF", "queue_id": 0, "attempt_id": "b0b21a8f",
        "commit_bits": 0, "offsets": [150], "pop_ms": POP_MS, "invisible_ms": INVISIBLE_MS,
        "next_visible_ms": 1795331837481, "blocked_until_ms": 1795331837481,
    }  # fmt: skip


@pytest.mark.parametrize(("cm", "ot", "until"), [
    (0b11111111, "", None),
    (0, "", POP_MS + INVISIBLE_MS),
    (0b001, "150:9,152:1795331999999", 1795331999999),
    (0b101, "150:9,152:1795331999999", POP_MS + INVISIBLE_MS),
    (0b110, "150:9", 9),
])  # fmt: skip
def test_until_the_latest_message_that_is_not_acknowledged(
    cm: int, ot: str, until: int | None
) -> None:
    """The first offset is absolute, the others are counted from it."""
    found = order(store(cm, "150,1,2", ot))
    assert found["offsets"] == [150, 151, 152]
    assert found["blocked_until_ms"] == until


def test_an_older_version_without_invisible_time_or_attempt() -> None:
    found = order(store().replace('"i":60000,', "").replace('"a":"b0b21a8f",', ""))
    assert (found["attempt_id"], found["blocked_until_ms"]) == (None, None)


def test_what_is_none_is_refused() -> None:
    no_group = parse_consumer_order_info_json(store().replace("@", ""), "f")
    assert codes(no_group) == ["BAD_ENTRY"]
    assert "'GFg-fifo' is not <topic>@<group>" in messages(no_group)[0]
    odd = store(o='"x"')
    assert codes(parse_consumer_order_info_json(odd, "f")) == ["BAD_NUMBER"]
    assert codes(parse_consumer_order_info_json("{}", "f")) == ["WRONG_FILE"]
    assert codes(parse_consumer_order_info_json(store()[:60], "f")) == ["UNPARSABLE_DOCUMENT"]


def test_the_recording() -> None:
    pattern = r"brokers/.*/consumerOrderInfo\.json$"
    counts = parse_all(pattern, parse_consumer_order_info_json)
    assert counts["files"] >= 8
    assert counts["order_info"] >= 16


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
