"""Lines that go through pyarrow's parsers have the rows of the readers that read line by line."""

import csv
import io
import json
from collections.abc import Iterable

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rebalance_core.checks import text_lines, text_rows
from rebalance_core.checks.text_lines import lines_of_file, number_lines
from rebalance_core.checks.text_rows import (
    FEW_LINES,
    Lines,
    csv_rows,
    json_block,
    json_rows,
    names_of_line,
)
from rebalance_core.contracts import ALL_TABLES, INPUT_TABLES, Table
from rebalance_core.contracts.planning import QUEUE_RATES
from rebalance_core.contracts.table import columns
from rebalance_core.model.errors import InputRefused
from tests.line_cases import CSV_LINES

EVENTS = INPUT_TABLES["cluster_events"]
NAMES = ("cluster", "event_ms", "sequence", "event_type", "perm", "subscriptions", "topic", "x")

WORDS = st.sampled_from(
    ("1", "-0", "1e400", '"1e3"', "9007199254740993", "1.5", '"x"', '["a","\\ud83d\\ude00"]',
     "-0.5", "1" * 400, "1.0",
     "-0.0", "1e3", "2147483648", "9223372036854775808", "NaN", "+INF", "01",
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


LINES = st.one_of(
    st.just(USUAL),
    st.builds(as_line, MEMBERS, st.just("{%s}")),
    st.builds(as_line, MEMBERS, AROUND),
    st.text(max_size=5),
)


def as_lines(lines: list[str], valid: bool = True) -> Lines:
    source = pa.array([f"f:{n}" for n in range(len(lines))], pa.string())
    return Lines(pa.array(lines, pa.string()), source, pa.array([valid] * len(lines), pa.bool_()))


def json_one_by_one(lines: Lines, monkeypatch: pytest.MonkeyPatch) -> text_rows.ReadRows:
    with monkeypatch.context() as patch:
        patch.setattr(text_rows, "json_block", lambda *_: None)
        patch.setattr(text_rows, "FEW_LINES", 10**9)
        return json_rows(EVENTS, lines)


@pytest.mark.parametrize("few", [1, 3, FEW_LINES])
def test_json_rows_are_those_read_one_by_one(few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    @settings(max_examples=150, deadline=None)
    @given(st.lists(LINES, max_size=6), st.integers(0, 40))
    @example([as_line([("sequence", '"1"')], "{%s}")], 3)
    def check(lines: list[str], usual: int) -> None:
        block = as_lines([*lines, *[USUAL] * usual])
        careful = json_one_by_one(block, monkeypatch)
        with monkeypatch.context() as patch:
            patch.setattr(text_rows, "FEW_LINES", few)
            read = json_rows(EVENTS, block)
        assert read.rows.to_pylist() == careful.rows.to_pylist()
        assert read.rows.schema == careful.rows.schema
        assert read.unknown == careful.unknown

    check()


def test_a_shape_of_all_lines_is_read_as_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    @settings(max_examples=300, deadline=None)
    @given(MEMBERS, st.integers(1, 3))
    @example([("x", "NaN")], 1)
    def check(members: list[tuple[str, str]], times: int) -> None:
        block = as_lines([as_line(members, "{%s}")] * times)
        if json_block(EVENTS, block) is not None:
            read, careful = json_rows(EVENTS, block), json_one_by_one(block, monkeypatch)
            assert read.rows.to_pylist() == careful.rows.to_pylist()
            assert read.unknown == careful.unknown

    check()


def test_objects_that_do_not_keep_to_their_lines_are_not_regular() -> None:
    lines = ['{"cluster":"a"}{"cluster":"b"}', '{"cluster":"c",', '"event_ms":1}']
    assert json_block(EVENTS, as_lines(lines)) is None
    codes = [
        row["_read_issues"][0]["code"]
        for row in json_rows(EVENTS, as_lines(lines)).rows.to_pylist()
    ]
    assert codes == ["UNPARSABLE"] * 3


@pytest.mark.parametrize("fields", [{}, {"x": [1]}, {"topic": "\n\u2028"}, {"sequence": None}])
def test_usual_lines_are_regular(fields: dict[str, object]) -> None:
    line = json.dumps(json.loads(USUAL) | fields)
    assert json_block(EVENTS, as_lines([line] * 3)) is not None


def test_a_bad_line_leaves_the_others_of_its_block_regular(monkeypatch: pytest.MonkeyPatch) -> None:
    one_by_one = text_rows.json_each
    counts = []

    def counted(table: Table, lines: Lines) -> text_rows.Parsed:
        counts.append(len(lines.text))
        return one_by_one(table, lines)

    monkeypatch.setattr(text_rows, "json_each", counted)
    lines = [USUAL] * 20_000
    lines[7_777] = '{"sequence": "x"}'
    rows = json_rows(EVENTS, as_lines(lines)).rows
    assert len(rows) == len(lines)
    assert rows["_source"].to_pylist() == [f"f:{n}" for n in range(len(lines))]
    assert [n for n, found in enumerate(rows["_read_issues"].to_pylist()) if found] == [7_777]
    assert sum(counts) <= FEW_LINES


def test_a_bad_field_is_reported_beside_those_that_read() -> None:
    text = (
        '{"cluster":"c","event_ms":NaN,"sequence":1e3,"perm":1e400,"topic":["a"],"topic":{"a":1}}'
    )
    (row,) = json_rows(EVENTS, as_lines([text])).rows.to_pylist()
    assert [issue["message"] for issue in row["_read_issues"]] == [
        'topic is {"a":1}, not a text',
        "event_ms is 'NaN', not a valid BIGINT (epoch milliseconds)",
        "perm is 'Infinity', not a valid INT",
    ]
    assert (row["cluster"], row["sequence"], row["_raw"]) == ("c", 1000, text)


@pytest.mark.parametrize("text", ['{"cluster":"c"}]', '{"perm":+INF}', "\ufeff{}", "[" * 9_999])
def test_what_python_takes_for_no_json_is_unparsable(text: str) -> None:
    (row,) = json_rows(EVENTS, as_lines([text])).rows.to_pylist()
    assert [issue["code"] for issue in row["_read_issues"]] == ["UNPARSABLE"]
    assert row["_raw"] == text
    assert names_of_line(text) == set()


def test_numbers_of_many_digits_are_reported_by_field() -> None:
    text = '{"sequence":%s,"topic":"t"}' % ("1" * 5_000)
    (row,) = json_rows(EVENTS, as_lines([text])).rows.to_pylist()
    assert [issue["code"] for issue in row["_read_issues"]] == ["BAD_TYPE"]
    assert row["topic"] == "t"


def test_maps_and_numbers() -> None:
    fact = {"cluster": "c", "kind": "k", "details": {"a": 1, "b": None, "c": [1.50]}}
    (row,) = json_rows(ALL_TABLES["observed_facts"], as_lines([json.dumps(fact)])).rows.to_pylist()
    assert row["details"] == [("a", "1"), ("b", None), ("c", "[1.5]")]
    rates = ['{"messages_per_second":-0}', '{"messages_per_second":1e400}']
    zero, endless = json_rows(QUEUE_RATES, as_lines(rates)).rows.to_pylist()
    assert str(zero["messages_per_second"]) == "0.0"
    assert endless["messages_per_second"] is None


TEXTS = Table(
    "texts",
    "Some texts.",
    columns("cluster? STRING a\ntopic? STRING b\nclient_id? STRING c\ndetail? STRING d"),
)
CELLS = st.text('ab,," \t\x00é\\', max_size=12).filter(lambda text: text.strip(" \t") != "")


@pytest.mark.parametrize(("line", "cells"), CSV_LINES.items())
def test_cells_are_those_of_python_s_csv(line: str, cells: list[str]) -> None:
    names = ["cluster", "topic", "client_id", "detail"][: len(cells)]
    for lines in ([line], [line] * 3, [line, ",".join("x" for _ in names)]):
        row = csv_rows(TEXTS, names, as_lines(lines)).rows.to_pylist()[0]
        assert [row[name] or "" for name in names] == cells
        assert row["_read_issues"] == []


@settings(max_examples=300, deadline=None)
@given(st.lists(CELLS, max_size=6), st.integers(1, 4))
def test_csv_rows_are_those_read_one_by_one(lines: list[str], width: int) -> None:
    names = ["cluster", "topic", "client_id", "detail"][:width]
    lines = [*lines, ",".join('"x, ""y"""' for _ in names)]
    rows = csv_rows(TEXTS, names, as_lines(lines)).rows.to_pylist()
    for line, row in zip(lines, rows, strict=True):
        (cells,) = csv.reader([line])
        assert (len(cells) == width) == (row["_read_issues"] == [])
        if len(cells) == width:
            assert [row[name] or "" for name in names] == cells


def _batch(rows: Iterable[tuple[str, str]]) -> pa.RecordBatch:
    splits, texts = zip(*rows, strict=True)
    return pa.RecordBatch.from_pydict(
        {"split": list(splits), "_raw": list(texts), "_utf8": [True] * len(texts)}
    )


def test_numbering_goes_on_over_batches_and_restarts_per_split() -> None:
    batches = [
        _batch([("file:/a%20b@0", "1"), ("file:/a%20b@0", "2")]),
        _batch([("file:/a%20b@0", "3"), ("file:/a%20b@9", "4"), ("file:/c@0", "5")]),
        _batch([("file:/c@0", "6")]),
    ]
    sources = [s for batch in number_lines(batches) for s in batch["_source"].to_pylist()]
    assert sources == ["a b:1", "a b:2", "a b:3", "a b@9", "c:1", "c:2"]


def test_another_header_is_refused() -> None:
    with pytest.raises(InputRefused, match=r"a b\.csv: .*must have the same header"):
        list(number_lines([_batch([("file:/a%20b.csv@0", "x,y")])], "cluster"))


@pytest.mark.parametrize("block_bytes", [1, 2, 3, 7, 1000])
def test_lines_do_not_depend_on_blocks(monkeypatch: pytest.MonkeyPatch, block_bytes: int) -> None:
    monkeypatch.setattr(text_lines, "BLOCK_BYTES", block_bytes)
    data = b"\xef\xbb\xbfa\r\nb\rc\n\n\xff\xc3\xa9\r\r\nlast"
    read = list(lines_of_file("f", io.BytesIO(data)))
    assert [text for batch in read for text in batch["_raw"].to_pylist()] == [
        "a",
        "b",
        "c",
        "",
        "\ufffdé",
        "",
        "last",
    ]
    assert [u for batch in read for u in batch["_utf8"].to_pylist()].count(False) == 1
