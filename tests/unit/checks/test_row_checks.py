"""Check rows without a JVM: all that `tests/spark/test_quarantine.py` demands of Spark's checks."""

import json
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from rebalance_core.checks.conform import with_text
from rebalance_core.checks.digest import TableDigest
from rebalance_core.checks.expected_values import ISSUE_CODES, unparsed
from rebalance_core.checks.input_tables import input_tables_of, read_input_tables
from rebalance_core.checks.rejections import Rejections
from rebalance_core.checks.row_checks import check_table, check_tables
from rebalance_core.checks.row_counts import RowCounts
from rebalance_core.contracts import ALL_TABLES, INPUT_TABLES, OBSERVED_TABLES, REJECTED
from rebalance_core.contracts.planning import QUEUE_RATES
from rebalance_core.contracts.time_ranges import TIME_RANGES
from rebalance_core.model.errors import InputRefused, UsageError
from rebalance_core.model.intervals import INTERVALS
from tests.row_cases import COMMITS, CONFIG, DEFAULTS, EVENTS, NOW_MS, rows_by_table
from tests.tree import TREE


def test_every_bad_row_is_rejected_with_its_reason_and_every_good_one_used(tmp_path: Path) -> None:
    lines, places = rows_by_table()
    for name, texts in lines.items():
        (tmp_path / f"{name}.jsonl").write_text("\n".join(texts))
    checked = check_tables(read_input_tables(str(tmp_path)))
    assert checked.rejected.schema == REJECTED.arrow_schema()
    rejected = {(r["table_name"], r["source"]): r for r in checked.rejected.to_pylist()}
    expected = {place: case for place, case in places.items() if case is not None}
    assert set(rejected) == set(expected)
    for place, (code, fragment) in expected.items():
        issues = rejected[place]["issues"]
        assert code in {issue["code"] for issue in issues}, (place, issues)
        assert any(fragment in issue["message"] for issue in issues), (place, fragment, issues)
        assert {issue["code"] for issue in issues} <= set(ISSUE_CODES)
        table, source = place
        assert rejected[place]["raw"] == lines[table][int(source.split(":")[1]) - 1]
    used = {
        (name, source)
        for name, rows in checked.tables.items()
        for source in rows["_source"].to_pylist()
    }
    assert used == set(places) - set(expected)
    assert 9007199254740993 in checked.tables[COMMITS]["committed_offset"].to_pylist()
    for name, rows in checked.tables.items():
        assert rows.column_names == [*INPUT_TABLES[name].column_names, "_source", "_raw"]
        bad = sum(table == name for table, _ in expected)
        assert checked.counts[name] == RowCounts(len(lines[name]), bad)


def test_one_bad_row_has_one_issue_per_fault() -> None:
    row = DEFAULTS[EVENTS] | CONFIG | {"sequence": "x", "perm": 99, "read_queue_nums": -1}
    (rejected,) = check_table(EVENTS, pa.Table.from_pylist([row])).rejected.to_pylist()
    codes = [issue["code"] for issue in rejected["issues"]]
    assert codes == ["BAD_TYPE", "BAD_QUEUE_NUMS", "BAD_PERM"]


def commits(*rows: tuple[int, str | None, int]) -> pa.Table:
    fixed = {"cluster": "c", "consumer_group": "g", "topic": "t", "broker_name": "b"}
    names = ("queue_id", "client_id", "committed_offset")
    dicts = [fixed | dict(zip(names, row, strict=True)) | {"observed_ms": NOW_MS} for row in rows]
    return pa.Table.from_pylist(dicts)


def test_a_fact_may_be_on_any_queue_of_a_broker_and_nothing_else_may() -> None:
    fact = {"cluster": "c", "kind": "POP_QUEUE", "first_ms": NOW_MS, "last_ms": NOW_MS, "times": 1,
            "details": [], "source": "f"}  # fmt: skip
    rows = [fact | {"queue_id": queue_id} for queue_id in (-1, 0, -2)]
    schema = OBSERVED_TABLES["observed_facts"].arrow_schema()
    checked = check_table("observed_facts", pa.Table.from_pylist(rows, schema))
    assert checked.tables["observed_facts"]["queue_id"].to_pylist() == [-1, 0]
    refused = check_table(COMMITS, commits((-1, None, 5))).rejected.to_pylist()
    assert [issue["code"] for row in refused for issue in row["issues"]] == ["BAD_QUEUE_ID"]


def test_equal_repeats_are_used_once_and_differing_ones_all_rejected() -> None:
    checked = check_table(
        COMMITS,
        commits(
            (0, None, 5), (0, None, 5), (0, None, 5), (1, None, 5), (1, None, 6), (1, None, 5),
            (2, None, 5), (2, "x", 6), (3, "x", -1), (3, "x", 4),
        ),
    )  # fmt: skip
    good = checked.tables[COMMITS].to_pylist()
    assert sorted((r["queue_id"], r["client_id"] or "") for r in good) == [
        (0, ""),
        (2, ""),
        (2, "x"),
    ]
    rows = checked.rejected.to_pylist()
    codes = sorted(tuple(issue["code"] for issue in row["issues"]) for row in rows)
    assert codes == [("BAD_OFFSET", "DUPLICATE_KEY")] + [("DUPLICATE_KEY",)] * 4
    assert (
        "3 rows with different content have the key cluster c, consumer_group g, topic t, "
        "broker_name b, queue_id 1, client_id null, observed_ms 1700000000000; keep one"
    ) in [row["issues"][-1]["message"] for row in rows]
    assert checked.counts[COMMITS] == RowCounts(10, 5)


def test_the_source_of_an_event_is_not_its_content_and_rows_without_a_key_are_no_duplicates() -> (
    None
):
    names = ("cluster", "event_ms", "sequence", "event_type", "broker_name", "source")
    event = ("c", str(NOW_MS), 1, "BROKER_UP", "b")
    rows = [
        (*event, "b:2"),
        (*event, "a:1"),
        ("c", "x", 1, "BROKER_UP", "b", "c:1"),
        ("c", "y", 1, "BROKER_UP", "b", "c:2"),
        ("c", None, 1, "BROKER_UP", "b", "c:3"),
        ("c", None, 1, "BROKER_UP", "b2", "c:4"),
    ]
    table = pa.Table.from_pylist([dict(zip(names, row, strict=True)) for row in rows])
    checked = check_table(EVENTS, table)
    assert checked.tables[EVENTS]["source"].to_pylist() == ["a:1"]
    rejected = [
        (row["source"], [issue["code"] for issue in row["issues"]])
        for row in checked.rejected.to_pylist()
    ]
    assert rejected == [
        ("c:1", ["BAD_TYPE"]),
        ("c:2", ["BAD_TYPE"]),
        ("c:3", ["MISSING_VALUE"]),
        ("c:4", ["MISSING_VALUE"]),
    ]


def test_hand_made_tables_missing_columns_and_limits() -> None:
    row = {"cluster": "c", "event_ms": NOW_MS, "sequence": 1, "event_type": "TOPIC_CONFIG",
           "topic": "t", "broker_name": "b", "read_queue_nums": 100}  # fmt: skip
    events = pa.Table.from_pylist([row])
    checked = check_tables(input_tables_of({EVENTS: events}), max_queue_nums=64)
    assert set(checked.tables) == {EVENTS}
    (rejected,) = checked.rejected.to_pylist()
    assert (rejected["table_name"], rejected["source"]) == (EVENTS, None)
    assert rejected["issues"] == [
        {"code": "BAD_QUEUE_NUMS", "message": "read_queue_nums is 100; valid: 0 to 64"}
    ]
    assert json.loads(rejected["raw"])["read_queue_nums"] == 100
    with pytest.raises(InputRefused, match="sequence, event_type"):
        check_tables(input_tables_of({EVENTS: events.drop_columns(["sequence", "event_type"])}))


def test_complaints_name_the_first_row_by_line() -> None:
    issues = [{"code": "BAD_TYPE", "message": "m"}, {"code": "BAD_PERM", "message": "p"}]
    sources = ["b:2", "a:10", "a:9", None]
    rows = [
        {"table_name": "t", "source": source, "raw": "", "issues": issues[: 1 + (source == "b:2")]}
        for source in sources
    ]
    found = Rejections.of(pa.Table.from_pylist(rows[:3], REJECTED.arrow_schema())).complaints()
    assert [(c.code, c.times, c.source, c.message) for c in found] == [
        ("BAD_TYPE", 3, "a:9", "m"),
        ("BAD_PERM", 1, "b:2", "p"),
    ]
    parts = (pa.Table.from_pylist([row], REJECTED.arrow_schema()) for row in rows)
    merged = Rejections()
    for part in parts:
        merged.merge(Rejections.of(part))
    assert merged.complaints()[0].source == ""
    assert merged.codes == {"BAD_PERM": 1, "BAD_TYPE": 4}
    assert merged.of_tables(["u"]).codes == {}


def test_every_time_of_an_input_table_has_its_range() -> None:
    tables = [*INPUT_TABLES.values(), *(ALL_TABLES[name] for name in OBSERVED_TABLES), QUEUE_RATES]
    times = {name for table in tables for name in table.column_names if name.endswith("_ms")}
    assert times - set(INTERVALS) == set(TIME_RANGES)


def test_each_distinct_text_is_parsed_once() -> None:
    seen: list[str] = []

    def parse(text: str) -> None:
        seen.append(text)
        if text == "bad":
            raise UsageError("no good")

    reasons = unparsed(pa.array(["bad", None, "ok", "bad", "ok"]), parse)
    assert reasons.to_pylist() == ["no good", None, None, "no good", None]
    assert sorted(seen) == ["bad", "ok"]


def test_rows_without_a_column_for_their_text_are_left_as_they_are() -> None:
    rows = pa.table({"cluster": ["c"]})
    assert with_text(ALL_TABLES[EVENTS], rows) is rows


def test_a_name_above_the_limit_is_refused_whatever_its_length() -> None:
    row: dict[str, Any] = {
        "cluster": "c", "event_ms": NOW_MS, "event_type": "CONSUMER_JOIN",
        "consumer_group": "g", "client_id": "a@1", "subscriptions": ["T"],
    }  # fmt: skip
    long = "é" * 2049
    cases: list[dict[str, Any]] = [
        {"client_id": long[:-1]},
        {"client_id": long},
        {"subscriptions": ["T", long]},
        {"consumer_group": "g" * 2_000_000},
    ]
    rows = pa.Table.from_pylist([row | case | {"sequence": n} for n, case in enumerate(cases)])
    began = time.process_time()
    checked = check_tables(input_tables_of({"cluster_events": rows}))
    rejected = checked.rejected.to_pylist()
    digest = TableDigest(REJECTED)
    digest.add(checked.rejected)
    assert time.process_time() - began < 5  # the hash alone took 20 s
    assert [[issue["code"] for issue in row["issues"]] for row in rejected] == [["TOO_LONG"]] * 3
    assert max(len(row["issues"][0]["message"]) for row in rejected) < 300
    assert checked.counts["cluster_events"] == RowCounts(4, 3)


SEMANTICS = TREE / "docs/semantics.md"


@pytest.mark.parametrize("code", ISSUE_CODES)
def test_semantics_explains_every_issue_code(code: str) -> None:
    assert f"| `{code}` | " in SEMANTICS.read_text()
