"""Texts as Java writes them: times, zones, printf rows, relaxed JSON."""

import json
import random
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from rebalance_core.ingest.fact import UNPARSABLE_DOCUMENT, Unreadable
from rebalance_core.ingest.parse.command_output import dashed_ms, packed_ms
from rebalance_core.ingest.parse.java_text import PrintfRow
from rebalance_core.ingest.parse.json_tables import MAX_DEPTH, read_relaxed_json
from rebalance_core.ingest.parse.log_lines import Clock, ReadAt
from tests.unit.ingest.processor_time import linear


def ms(year: int, month: int, day: int, hour: int, minute: int) -> int:
    return int(datetime(year, month, day, hour, minute, tzinfo=UTC).timestamp()) * 1000


def test_servers_write_gmt_plus_8() -> None:
    assert Clock().second_ms("2026-11-21 08:00:00") == ms(2026, 11, 21, 0, 0)


def test_the_hour_that_happens_twice_is_told_by_the_order_of_lines() -> None:
    clock = Clock(ZoneInfo("America/New_York"))
    assert clock.second_ms("2026-11-01 01:30:00") == ms(2026, 11, 1, 5, 30)
    assert clock.second_ms("2026-11-01 01:59:00") == ms(2026, 11, 1, 5, 59)
    assert clock.second_ms("2026-11-01 01:05:00") == ms(2026, 11, 1, 6, 5)


def test_a_clock_that_is_set_back_is_taken_at_its_word() -> None:
    clock = Clock()
    assert clock.second_ms("2026-11-21 08:10:00") == ms(2026, 11, 21, 0, 10)
    assert clock.second_ms("2026-11-21 08:00:00") == ms(2026, 11, 21, 0, 0)


@pytest.mark.parametrize(
    "text",
    ["", "2026-11-21T08:00:00", "2026-02-30 08:00:00", "1970-01-01 00:00:00", "9999-01-01 00:00:00",
     "2026-11-21 08:00:0x", "２０２６-11-21 08:00:00"],
)  # fmt: skip
def test_what_is_no_time_is_none(text: str) -> None:
    assert Clock().second_ms(text) is None


ROW = PrintfRow("%-8s  %-4s %6s %s")


def test_columns_as_wide_as_the_format_says() -> None:
    assert ROW.read("orders    0        12 last words") == ["orders", "0", "12", "last words"]


def test_a_value_may_hold_spaces_and_may_be_missing() -> None:
    assert ROW.read("a b  c    0        12 x") == ["a b  c", "0", "12", "x"]
    assert ROW.read("orders             12") == ["orders", "", "12", ""]
    assert ROW.read("") == ["", "", "", ""]


def test_a_value_that_is_too_wide_moves_the_rest() -> None:
    assert ROW.read("a-long-name  0        12 x") == ["a-long-name", "0", "12", "x"]
    assert ROW.read("a-long-name  12345     12 x") == ["a-long-name", "12345", "12", "x"]
    assert ROW.read("orders    0    12345678 x") == ["orders", "0", "12345678", "x"]


def test_a_value_that_fills_its_column_exactly() -> None:
    assert ROW.read("12345678  0        12 x")[0] == "12345678"
    assert ROW.read("123456789  0        12 x")[0] == "123456789"


def test_padding_at_the_end_may_be_gone() -> None:
    assert ROW.read("orders    0") == ["orders", "0", "", ""]


# The hour that a zone lives twice, in what is known to have been read at a moment.

BERLIN = ZoneInfo("Europe/Berlin")  # its clocks went from 03:00 to 02:00 at 01:00 UTC that day
ENDED = "2026-10-25"


def utc_ms(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000)


@pytest.mark.parametrize(
    ("read_at", "text", "meant"),
    [
        (f"{ENDED} 00:30:00", f"{ENDED} 02:29:59", f"{ENDED} 00:29:59"),
        (f"{ENDED} 01:30:00", f"{ENDED} 02:29:59", f"{ENDED} 01:29:59"),
        (f"{ENDED} 01:30:00", f"{ENDED} 02:31:00", f"{ENDED} 00:31:00"),
        (f"{ENDED} 01:30:00", f"{ENDED} 01:59:59", "2026-10-24 23:59:59"),
        (f"{ENDED} 03:00:00", f"{ENDED} 03:00:00", f"{ENDED} 02:00:00"),
        ("2026-07-01 12:00:00", "2026-07-01 14:00:00", "2026-07-01 12:00:00"),
    ],
)
def test_the_pass_of_a_repeated_hour(read_at: str, text: str, meant: str) -> None:
    zone = ReadAt(BERLIN, utc_ms(read_at))
    assert dashed_ms(text, zone) == utc_ms(meant)
    packed = "".join(mark for mark in text if mark.isdecimal()) + "000"
    assert packed_ms(packed, zone) == utc_ms(meant)


def test_an_hour_that_is_left_out_is_read_as_the_plain_zone_reads_it() -> None:
    for text in ("2027-03-28 01:59:59", "2027-03-28 02:30:00", "2027-03-28 03:00:00"):
        assert dashed_ms(text, ReadAt(BERLIN, 2**50)) == dashed_ms(text, BERLIN)


def refused(text: str) -> str:
    with pytest.raises(Unreadable) as raised:
        read_relaxed_json(text)
    assert raised.value.code == UNPARSABLE_DOCUMENT
    return raised.value.message


def test_unquoted_integer_keys() -> None:
    assert read_relaxed_json('{"T@G":{0:6,1:3\n\t}}') == {"T@G": {"0": 6, "1": 3}}


def test_quoted_keys_read_the_same() -> None:
    assert read_relaxed_json('{"0":6}') == read_relaxed_json("{0:6}")


def test_object_keys() -> None:
    text = '{"offsetTable":{{"brokerName":"b","queueId":0,"topic":"t"}:12}}'
    key = (("brokerName", "b"), ("queueId", 0), ("topic", "t"))
    assert read_relaxed_json(text) == {"offsetTable": {key: 12}}


def test_empty_objects_and_lists_and_scalars() -> None:
    assert read_relaxed_json('[{},[],null,true,false,-1,1.5,""]') == [
        {},
        [],
        None,
        True,
        False,
        -1,
        1.5,
        "",
    ]
    assert read_relaxed_json("\ufeff 7 ") == 7


def test_escapes() -> None:
    assert read_relaxed_json(r'"\"\\\/\b\f\n\r\t\v\u00e9\x41"') == '"\\/\b\f\n\r\t\v\u00e9A'
    assert read_relaxed_json(r'"\ud83d\ude00"') == "\U0001f600"
    assert read_relaxed_json(r'"\ud83d"') == "\ufffd"


@pytest.mark.parametrize(
    "text",
    [
        *["", "{", '{"a"', '{"a":', '{"a":1', '{"a":1,', "[1,", '"abc', '{"a" 1}', "{,}", "{1:2}3"],
        *['{"a":1,}', "[1 2]", "{true:1}", "{[1]:2}", "{{}:1}", '"\\q"', "nul", "1" * 41, "\x00"],
        *['"a\nb"', "1e999", '{{"a":{}}:1}'],
    ],
)
def test_what_is_no_document_is_refused(text: str) -> None:
    assert refused(text)


def test_a_mistake_says_where() -> None:
    assert refused('{\n  "a": 1,\n  "b" 2}') == "line 3, column 8: ':' was expected after a key"


def test_deep_nesting_is_refused_and_the_stack_is_safe() -> None:
    assert read_relaxed_json("[" * MAX_DEPTH + "]" * MAX_DEPTH)
    assert "deeper" in refused("[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1))
    assert "deeper" in refused('{"a":' * 1_000_000)
    assert "deeper" in refused("{" * 1_000_000)


@pytest.mark.parametrize(
    "text",
    [
        *['"' + "a" * 10_000_000, '"' + '\\"' * 5_000_000, '{"' + "\\\\" * 5_000_000],
        *["1" * 10_000_000, " " * 10_000_000 + "x", '{"a":"' * 1_000_000],
        "{0:" + "-" * 10_000_000,
    ],
    ids=lambda text: text[:8],
)
def test_ten_megabytes_take_linear_time(text: str) -> None:
    with linear():
        refused(text)


def test_agrees_with_json_on_json(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(300):
        value = random_value(chance, 4)
        for indent in (None, 2):
            text = json.dumps(value, indent=indent, ensure_ascii=chance.random() < 0.5)
            assert read_relaxed_json(text) == value, f"seed {seed}: {text}"


def random_value(chance: random.Random, depth: int) -> object:
    shape = chance.randrange(6 if depth else 4)
    if shape == 0:
        return chance.choice([None, True, False, 0, -(2**63), 2**63 - 1, 0.25, -1.5e-7])
    if shape < 4:
        return "".join(chance.choices('aé"\\/\n\t\u2028\U0001f600%', k=chance.randrange(6)))
    if shape == 4:
        return [random_value(chance, depth - 1) for _ in range(chance.randrange(4))]
    return {f"k{i}": random_value(chance, depth - 1) for i in range(chance.randrange(4))}


@pytest.mark.parametrize(
    "text", ['{"a":1e}', '{"a":1.}', '{"a":1e+,"b":2}', '{"a":"b\\', '{"a":-}']
)
def test_what_begins_as_a_number_or_text_and_ends_there_is_refused(text: str) -> None:
    """A group that is possessive would keep the e of Python's up to 3.11.4."""
    with pytest.raises(Unreadable, match="not JSON"):
        read_relaxed_json(text)
