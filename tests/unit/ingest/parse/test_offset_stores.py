"""Stores of offsets."""

from collections.abc import Callable

import pytest

from rebalance_core.ingest.fact import Fact, Unread
from rebalance_core.ingest.parse.consumer_progress import parse_consumer_progress
from rebalance_core.ingest.parse.mqadmin_export import parse_rocksdb_config
from rebalance_core.ingest.parse.offset_stores import (
    parse_consumer_offset_json,
    parse_consumer_order_info_json,
    parse_local_offset_json,
)
from rebalance_core.ingest.parse.topic_status import parse_topic_status
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


def test_a_negative_offset_is_refused_by_key_and_queue() -> None:
    results = parse_consumer_offset_json(table('"T@G":{1:-5,0:7}'), "f")
    assert [row["committed_offset"] for row in facts(results, "committed_offset")] == [7]
    (refused,) = (result for result in results if isinstance(result, Unread))
    assert '{"1": -5}' in refused.raw, "the other queue is read"
    assert refused.code == "BAD_NUMBER"
    assert refused.message == "the offset of T@G, queue 1 is -5; an offset is -1 or more"
    # a client that has consumed nothing commits -1
    results = parse_consumer_offset_json(table('"T@G":{0:7,1:-1}'), "f")
    assert [row["committed_offset"] for row in facts(results, "committed_offset")] == [7, -1]


def test_every_recording() -> None:
    counts = parse_all(r"consumerOffset\.json$", parse_consumer_offset_json)
    assert counts["files"] >= 1
    assert counts["committed_offset"] > 5 * counts["files"]


STORES: tuple[tuple[Callable[[str, str], list[Fact | Unread]], str, str], ...] = (
    (parse_consumer_offset_json, '{"offsetTable":{"T@G":{0:7,1:%s}}}', "T@G, queue 1"),
    (parse_consumer_offset_json, '{"offsetTable":{},"lmqOffsetTable":{"T@G":%s}}', "T@G"),
    (
        parse_local_offset_json,
        '{"offsetTable":{{"brokerName":"b","queueId":1,"topic":"T"}:%s}}',
        "T, b, 1",
    ),
    (parse_consumer_order_info_json, '{"table":{"T@G":{1:{"o":[%s]}}}}', "T@G, queue 1"),
    (
        parse_consumer_order_info_json,
        '{"table":{"T@G":{1:{"o":[5],"ot":{%s:60000}}}}}',
        "ot of T@G, queue 1",
    ),
    (parse_rocksdb_config, "type: offsetTable1, Key: T@G, Value: {0=7, 1=%s}\n", "T@G, queue 1"),
)
"""A store's parser, the store with an offset left out, and the key of that offset."""


@pytest.mark.parametrize(("parse", "store", "key"), STORES)
def test_an_offset_below_minus_one_is_refused_with_its_key(
    parse: Callable[[str, str], list[Fact | Unread]], store: str, key: str
) -> None:
    assert codes(parse(store % "12", "f")) == codes(parse(store % "-1", "f")) == []
    results = parse(store % "-2", "f")
    (refused,) = (piece for piece in results if isinstance(piece, Unread))
    assert refused.code == "BAD_NUMBER"
    assert refused.source.startswith("f")
    assert f"of {key} is -2; an offset is -1 or more" in refused.message


@pytest.mark.parametrize(("parse", "store", "key"), STORES)
def test_an_offset_beyond_64_bits_is_refused_with_its_key(
    parse: Callable[[str, str], list[Fact | Unread]], store: str, key: str
) -> None:
    results = parse(store % "9223372036854775808", "f")
    (refused,) = (piece for piece in results if isinstance(piece, Unread))
    assert refused.code == "BAD_NUMBER"
    assert f"of {key} is '9223372036854775808', not a whole number" in refused.message


def test_offsets_below_minus_one_in_answers_of_mqadmin_are_refused() -> None:
    progress = (
        "#Topic  #Broker Name  #QID  #Broker Offset  #Consumer Offset  #Diff  #LastTime\n"
        "T       b             0     %s               %s               %s     N/A\n"
    )
    for row in (("-2", "-2", "0"), ("5", "-3", "8")):
        assert codes(parse_consumer_progress(progress % row, "f"))[0] == "BAD_NUMBER", row
    status = (
        "#Broker Name  #QID  #Min Offset  #Max Offset  #Last Updated\n"
        "b             0     %s            %s           \n"
    )
    for pair in (("-2", "3"), ("0", "-2")):
        assert codes(parse_topic_status(status % pair, "f"))[0] == "BAD_NUMBER", pair
