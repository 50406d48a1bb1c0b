"""Lines that go through pyarrow's parsers have the rows of the readers that read one by one."""

import json

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rebalance_core.checks.reading.csv_rows import csv_rows
from rebalance_core.checks.reading.csv_text import cells_of_line
from rebalance_core.checks.reading.json_rows import careful_rows, json_rows, regular_rows
from rebalance_core.contracts import ALL_TABLES, INPUT_TABLES
from rebalance_core.contracts.planning import QUEUE_RATES
from tests.line_cases import CSV_LINES

EVENTS = INPUT_TABLES["cluster_events"]
NAMES = ("cluster", "event_ms", "sequence", "event_type", "perm", "subscriptions", "topic", "x")

WORDS = st.sampled_from(
    ("1", "-0", "1.0", "-0.0", "1e3", "2147483648", "9223372036854775808", "NaN", "+INF", "01",
     "null", "true", '"1"', '"2020-01-01T00:00:00Z"', '"[1]"', '"\\ud800"', '"\\u0000"', '"é"',
     '"a\tb"', "'a'", "[]", '["a"]', '["a",null]', "[1]", "{}", '{"a":1,"a":2}', '"', "1" * 1001)
)  # fmt: skip
MEMBERS = st.lists(st.tuples(st.sampled_from(NAMES), WORDS), max_size=5)
USUAL = json.dumps({"cluster": "c", "event_ms": 5, "sequence": 1, "subscriptions": ["a", "b"]})
AROUND = st.sampled_from(
    ("{%s}", " {%s}", "{%s} ", "{%s}]", "{%s}{}", "{%s", "[{%s}]", "\ufeff{%s}")
)


def as_line(members: list[tuple[str, str]], around: str) -> str:
    return around % ",".join(f'"{name}":{value}' for name, value in members)


LINES = st.one_of(st.just(USUAL), st.builds(as_line, MEMBERS, st.just("{%s}")),
                  st.builds(as_line, MEMBERS, AROUND), st.text(max_size=5))  # fmt: skip


def arrays(lines: list[str], valid: bool = True) -> tuple[pa.Array, pa.Array, pa.Array]:
    source = pa.array([f"f:{n}" for n in range(len(lines))], pa.string())
    return pa.array(lines, pa.string()), source, pa.array([valid] * len(lines), pa.bool_())


@settings(max_examples=300, deadline=None)
@given(st.lists(LINES, max_size=6), st.integers(0, 40))
def test_json_rows_are_those_read_one_by_one(lines: list[str], usual: int) -> None:
    block = arrays([*lines, *[USUAL] * usual])
    read, careful = json_rows(EVENTS, *block), careful_rows(EVENTS, *block)
    assert read.rows.to_pylist() == careful.rows.to_pylist()
    assert read.rows.schema == careful.rows.schema
    assert read.unknown == careful.unknown


@settings(max_examples=300, deadline=None)
@given(MEMBERS, st.integers(1, 3))
@example([("x", "NaN")], 1)
def test_a_shape_of_all_lines_is_read_as_one_by_one(
    members: list[tuple[str, str]], times: int
) -> None:
    block = arrays([as_line(members, "{%s}")] * times)
    regular = regular_rows(EVENTS, *block)
    if regular is not None:
        careful = careful_rows(EVENTS, *block)
        assert regular.rows.to_pylist() == careful.rows.to_pylist()
        assert regular.unknown == careful.unknown


def test_objects_that_do_not_keep_to_their_lines_are_not_regular() -> None:
    lines = ['{"cluster":"a"}{"cluster":"b"}', '{"cluster":"c",', '"event_ms":1}']
    assert regular_rows(EVENTS, *arrays(lines)) is None
    codes = [
        row["_read_issues"][0]["code"] for row in json_rows(EVENTS, *arrays(lines)).rows.to_pylist()
    ]
    assert codes == ["UNPARSABLE"] * 3


@pytest.mark.parametrize(
    "fields", [{}, {"sequence": "1"}, {"sequence": 1.0}, {"topic": 5}, {"x": [1]}]
)
def test_usual_lines_are_regular(fields: dict[str, object]) -> None:
    line = json.dumps(json.loads(USUAL) | fields)
    assert regular_rows(EVENTS, *arrays([line] * 3)) is not None


def test_maps_and_numbers() -> None:
    fact = {"cluster": "c", "kind": "k", "details": {"a": 1, "b": None, "c": [1.50]}}
    (row,) = json_rows(ALL_TABLES["observed_facts"], *arrays([json.dumps(fact)])).rows.to_pylist()
    assert row["details"] == [("a", "1"), ("b", None), ("c", "[1.5]")]
    rates = ['{"messages_per_second":-0}', '{"messages_per_second":1e400}']
    zero, endless = json_rows(QUEUE_RATES, *arrays(rates)).rows.to_pylist()
    assert str(zero["messages_per_second"]) == "0.0"
    assert endless["messages_per_second"] is None


@pytest.mark.parametrize(("line", "cells"), CSV_LINES.items())
def test_cells_are_spark_s(line: str, cells: list[str]) -> None:
    assert cells_of_line(line) == cells


CELLS = st.text('ab,," \t\x00é\\', max_size=12).filter(lambda text: text.strip(" \t") != "")


@settings(max_examples=300, deadline=None)
@given(st.lists(CELLS, max_size=6), st.integers(1, 4))
def test_csv_rows_are_those_read_one_by_one(lines: list[str], width: int) -> None:
    names = ["cluster", "topic", "client_id", "detail"][:width]
    lines = [*lines, ",".join('"x, ""y"""' for _ in names)]
    rows = csv_rows(EVENTS, names, *arrays(lines)).to_pylist()
    for line, row in zip(lines, rows, strict=True):
        cells = cells_of_line(line)
        assert (len(cells) == width) == (row["_read_issues"] == [])
        if len(cells) == width:
            assert [row[name] or "" for name in names] == cells
