"""Relaxed JSON as fastjson writes it: keys without quotes, objects as keys."""

import json
import random

import pytest

from rebalance_core.ingest.fact import UNPARSABLE_DOCUMENT, Unreadable
from rebalance_core.ingest.parse.json_tables import MAX_DEPTH, read_relaxed_json
from tests.unit.ingest.processor_time import linear


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


def test_a_mistake_states_where() -> None:
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
    with pytest.raises(Unreadable, match=r"not JSON|is cut off"):
        read_relaxed_json(text)
