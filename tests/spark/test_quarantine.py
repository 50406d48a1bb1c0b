import json
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, Row, SparkSession

from rebalance_core.checks.expected_values import ISSUE_CODES
from rebalance_core.checks.row_counts import RowCounts
from rebalance_core.contracts import ALL_TABLES, LEDGER_TABLES
from rebalance_core.model.errors import InputRefused
from rebalance_core.spark.checks import CheckedFrames, check_and_count
from rebalance_core.spark.read_tables import InputTables
from rebalance_core.spark.sources import GivenTables, source_of
from tests.row_cases import (
    COMMITS,
    CONFIG,
    DEFAULTS,
    EVENTS,
    NOW_MS,
    Place,
    rows_by_table,
)


def test_every_bad_row_is_rejected_with_its_reason_and_every_good_one_used(
    spark: SparkSession, tmp_path: Path
) -> None:
    lines, places = rows_by_table()
    for name, texts in lines.items():
        (tmp_path / f"{name}.jsonl").write_text("\n".join(texts))
    result = check_and_count(InputTables.read(spark, str(tmp_path)))
    assert tuple(result.rejected.columns) == LEDGER_TABLES["rejected"].column_names
    rejected = {(row.table_name, row.source): row for row in result.rejected.collect()}
    expected = {place: case for place, case in places.items() if case is not None}
    assert set(rejected) == set(expected)
    for place, (code, fragment) in expected.items():
        issues = rejected[place].issues
        assert code in {issue.code for issue in issues}, (place, issues)
        assert any(fragment in issue.message for issue in issues), (place, fragment, issues)
        assert {issue.code for issue in issues} <= set(ISSUE_CODES)
        table, source = place
        assert rejected[place].raw == lines[table][int(source.split(":")[1]) - 1]
    used = {
        (name, row["_source"]): row
        for name, good in result.tables.items()
        for row in good.collect()
    }
    assert set(used) == set(places) - set(expected)
    assert 9007199254740993 in {getattr(row, "committed_offset", None) for row in _rows(used)}
    assert {
        name: tuple(frame.columns[-2:]) for name, frame in result.tables.items()
    } == dict.fromkeys(DEFAULTS, ("_source", "_raw"))


def checked(name: str, frame: DataFrame) -> CheckedFrames:
    return check_and_count(GivenTables({name: source_of(ALL_TABLES[name], frame)}))


def _rows(used: dict[Place, Row]) -> list[Row]:
    return [row for (table, _), row in used.items() if table == COMMITS]


def test_one_bad_row_has_one_issue_per_fault(spark: SparkSession) -> None:
    row = DEFAULTS[EVENTS] | CONFIG | {"sequence": "x", "perm": 99, "read_queue_nums": -1}
    frame = spark.createDataFrame([row], ", ".join(f"{n} {_sql(v)}" for n, v in row.items()))
    (rejected,) = checked(EVENTS, frame).rejected.collect()
    assert sorted(issue.code for issue in rejected.issues) == [
        "BAD_PERM",
        "BAD_QUEUE_NUMS",
        "BAD_TYPE",
    ]


def _sql(value: object) -> str:
    return "STRING" if isinstance(value, str) else "BIGINT"


def commits(spark: SparkSession, *rows: tuple[int, str | None, int]) -> DataFrame:
    names = "cluster, consumer_group, topic, broker_name, queue_id, client_id, observed_ms"
    types = ("STRING", "STRING", "STRING", "STRING", "INT", "STRING", "BIGINT")
    ddl = ", ".join(f"{n} {t}" for n, t in zip(names.split(", "), types, strict=True))
    return spark.createDataFrame(
        [("c", "g", "t", "b", queue, client, NOW_MS, offset) for queue, client, offset in rows],
        f"{ddl}, committed_offset BIGINT",
    )


def test_equal_repeats_are_used_once_and_differing_ones_all_rejected(spark: SparkSession) -> None:
    frame = commits(
        spark, (0, None, 5), (0, None, 5), (0, None, 5), (1, None, 5), (1, None, 6), (1, None, 5),
        (2, None, 5), (2, "x", 6), (3, "x", -1), (3, "x", 4),
    )  # fmt: skip
    given = GivenTables({COMMITS: source_of(ALL_TABLES[COMMITS], frame)})
    result = check_and_count(given)
    good, rejected = result.tables[COMMITS], result.rejected
    assert sorted((r.queue_id, r.client_id or "") for r in good.collect()) == [
        (0, ""),
        (2, ""),
        (2, "x"),
    ]
    rows = rejected.collect()
    codes = sorted(tuple(issue.code for issue in row.issues) for row in rows)
    assert codes == [("BAD_OFFSET", "DUPLICATE_KEY")] + [("DUPLICATE_KEY",)] * 4
    messages = [row.issues[-1].message for row in rows]
    assert (
        "3 rows with different content have the key cluster c, consumer_group g, topic t, "
        "broker_name b, queue_id 1, client_id null, observed_ms 1700000000000; keep one"
    ) in messages
    repeats = 2
    assert good.count() + repeats + len(rows) == frame.count()
    assert result.counts == {COMMITS: RowCounts(frame.count(), len(rows))}


def test_the_source_of_an_event_is_not_its_content_and_rows_without_a_key_are_no_duplicates(
    spark: SparkSession,
) -> None:
    names = "cluster STRING, event_ms STRING, sequence BIGINT, event_type STRING, source STRING"
    event = ("c", str(NOW_MS), 1, "BROKER_UP")
    frame = spark.createDataFrame(
        [
            (*event, "b", "b:2"),
            (*event, "b", "a:1"),
            ("c", "x", 1, "BROKER_UP", "b", "c:1"),
            ("c", "y", 1, "BROKER_UP", "b", "c:2"),
            ("c", None, 1, "BROKER_UP", "b", "c:3"),
            ("c", None, 1, "BROKER_UP", "b2", "c:4"),
        ],
        names.replace("source", "broker_name STRING, source"),
    )
    result = checked(EVENTS, frame)
    good, rejected = result.tables[EVENTS], result.rejected
    assert [row.source for row in good.collect()] == ["a:1"]
    assert sorted((r.source, [i.code for i in r.issues]) for r in rejected.collect()) == [
        ("c:1", ["BAD_TYPE"]),
        ("c:2", ["BAD_TYPE"]),
        ("c:3", ["MISSING_VALUE"]),
        ("c:4", ["MISSING_VALUE"]),
    ]


def test_hand_made_tables_missing_columns_and_limits(spark: SparkSession) -> None:
    events = spark.createDataFrame(
        [("c", NOW_MS, 1, "TOPIC_CONFIG", "t", "b", 100)],
        "cluster STRING, event_ms BIGINT, sequence BIGINT, event_type STRING, topic STRING, "
        "broker_name STRING, read_queue_nums INT",
    )
    result = check_and_count(InputTables(events), max_queue_nums=64)
    assert set(result.tables) == {EVENTS}
    (row,) = result.rejected.collect()
    assert (row.table_name, row.source) == (EVENTS, None)
    assert [tuple(issue) for issue in row.issues] == [
        ("BAD_QUEUE_NUMS", "read_queue_nums is 100; valid: 0 to 64")
    ]
    assert json.loads(row.raw)["read_queue_nums"] == 100
    with pytest.raises(InputRefused, match="sequence, event_type"):
        check_and_count(InputTables(events.drop("sequence", "event_type")))
