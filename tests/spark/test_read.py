import gzip
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from contextlib import closing
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PythonException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as sf

from rebalance_core.checks.parquet_rows import has_types_of_spark
from rebalance_core.contracts import INPUT_TABLES
from rebalance_core.contracts.table import TECHNICAL
from rebalance_core.model.errors import InputRefused, UsageError
from rebalance_core.spark.checks import check_and_count
from rebalance_core.spark.read_tables import InputTables, parquet_frame, read_table
from rebalance_core.spark.sources import source_of
from rebalance_core.spark.steps import epochs
from tests.line_cases import BAD_TYPES, NOT_ONE_OBJECT
from tests.tree import TREE

EVENT = {"cluster": "c", "event_ms": 1, "sequence": 1, "event_type": "BROKER_UP"}
BIG = 9007199254740993  # 2^53 + 1: lost by any way through a double


def line(**fields: object) -> str:
    return json.dumps(EVENT | fields)


def write(path: Path, *lines: str, end: str = "\n", start: str = "") -> Path:
    data = (start + "".join(text + end for text in lines)).encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def read_events(spark: SparkSession, path: Path) -> list[Row]:
    frame = InputTables.read(spark, cluster_events=str(path)).cluster_events
    return sorted(frame.collect(), key=lambda row: (row["_source"], row["_raw"]))


def unknown_columns(inputs: InputTables) -> Mapping[str, list[str]]:
    with closing(check_and_count(inputs)) as checked:
        return checked.unknown


def issues_of(row: Row) -> list[tuple[str, str]]:
    return [(issue.code, issue.message) for issue in row["_read_issues"]]


def test_json_values_are_exact_and_rows_say_where_they_stand(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = write(
        tmp_path / "cluster_events.jsonl",
        line(event_ms=BIG, subscriptions=['a"b', "é,|"], client_id='[::1]@"1\\', topic="t\u2028"),
        "",
        "   ",
        line(subscriptions=[], read_queue_nums=-3, topic=None),
    )
    first, second = read_events(spark, path)
    assert first.event_ms == BIG
    assert first.subscriptions == ['a"b', "é,|"]
    assert (first.client_id, first.topic) == ('[::1]@"1\\', "t\u2028")
    assert (second.subscriptions, second.read_queue_nums, second.topic) == ([], -3, None)
    assert [first["_source"], second["_source"]] == [
        "cluster_events.jsonl:1",
        "cluster_events.jsonl:4",
    ]
    assert issues_of(first) == issues_of(second) == []


def test_columns_are_the_contract_s_and_the_technical_ones(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = write(tmp_path / "e.jsonl", line())
    frame = InputTables.read(spark, cluster_events=str(path)).cluster_events
    table = INPUT_TABLES["cluster_events"]
    assert frame.columns == [*table.column_names, *TECHNICAL]
    found = [f.dataType.simpleString().upper() for f in frame.schema.fields[: len(table.columns)]]
    assert found == [c.type for c in table.columns]


@pytest.mark.parametrize(
    "text",
    NOT_ONE_OBJECT,
)
def test_a_line_that_is_not_one_object_is_unparsable(
    spark: SparkSession, tmp_path: Path, text: str
) -> None:
    (row,) = read_events(spark, write(tmp_path / "e.jsonl", text))
    assert [code for code, _ in issues_of(row)] == ["UNPARSABLE"]
    assert row["_raw"] == text
    assert row.cluster is None


def test_a_line_that_is_not_utf8_is_unparsable(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "e.jsonl"
    path.write_bytes(line(client_id="X").encode().replace(b"X", b"\xff\xfe") + b"\n")
    (row,) = read_events(spark, path)
    assert issues_of(row) == [("UNPARSABLE", "the line is not UTF-8")]
    assert "\ufffd" in row["_raw"]


def test_a_header_that_is_not_utf8_names_a_column_more(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "e.csv"
    path.write_bytes(b"cluster,event_ms,sequence,event_type,\xff\nc,1,1,CONSUMER_JOIN,x\n")
    (row,) = read_events(spark, path)
    assert (row.cluster, issues_of(row)) == ("c", [])


@pytest.mark.parametrize(
    ("column", "value"),
    BAD_TYPES,
)
def test_a_bad_type_is_named_and_the_rest_of_the_row_read(
    spark: SparkSession, tmp_path: Path, column: str, value: object
) -> None:
    (row,) = read_events(spark, write(tmp_path / "e.jsonl", line(**{column: value})))
    ((code, message),) = issues_of(row)
    assert code == "BAD_TYPE"
    assert message.startswith(f"{column} is ")
    shown = value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))
    assert shown in message
    assert row[column] is None
    assert (row.cluster, row.sequence) == ("c", 1)


def test_whole_numbers_written_as_decimals_or_text_are_numbers(
    spark: SparkSession, tmp_path: Path
) -> None:
    text = line(read_queue_nums=4.0, perm="6", event_ms=str(BIG))
    (row,) = read_events(spark, write(tmp_path / "e.jsonl", text))
    assert (row.read_queue_nums, row.perm, row.event_ms) == (4, 6, BIG)


def test_booleans(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path / "cluster_events.jsonl", line())
    group = {"cluster": "c", "consumer_group": "g"}
    write(
        tmp_path / "consumer_groups.jsonl",
        *(json.dumps(group | {"ordered": value}) for value in (True, False, None, "maybe")),
    )
    groups = InputTables.read(spark, str(tmp_path)).tables()["consumer_groups"]
    rows = groups.orderBy("_source").collect()
    assert [row.ordered for row in rows] == [True, False, None, None]
    assert [len(row["_read_issues"]) for row in rows] == [0, 0, 0, 1]


@pytest.mark.parametrize("suffix", [".jsonl", ".json", ".jsonl.gz"])
def test_bom_crlf_and_gz(spark: SparkSession, tmp_path: Path, suffix: str) -> None:
    path = write(
        tmp_path / f"cluster_events{suffix}",
        line(),
        "",
        line(sequence=2),
        end="\r\n",
        start="\ufeff",
    )
    rows = read_events(spark, path)
    assert [row.sequence for row in rows] == [1, 2]
    assert [row["_source"] for row in rows] == [f"{path.name}:1", f"{path.name}:3"]
    assert rows[0]["_raw"] == line()


def test_csv(spark: SparkSession, tmp_path: Path) -> None:
    path = write(
        tmp_path / "cluster_events.csv",
        "sequence,cluster,event_ms,event_type,subscriptions,client_id,more,read_queue_nums",
        f'1,c,{BIG},CONSUMER_JOIN,"[""a,b"",""c""]","x ""y"", z",,4.0',
        '2,c,1,CONSUMER_JOIN,,"",,',
        "3,c,1",
        "4,c,1,X,a,b,c,5,6",
        '5,c,1,X,"[""a"",""b",b,c,d',
        end="\r\n",
        start="\ufeff",
    )
    rows = read_events(spark, path)
    assert [row["_source"] for row in rows] == [f"cluster_events.csv:{n}" for n in range(2, 7)]
    assert rows[0].event_ms == BIG
    assert rows[0].subscriptions == ["a,b", "c"]
    assert (rows[0].client_id, rows[0].read_queue_nums) == ('x "y", z', 4)
    assert (rows[1].subscriptions, rows[1].client_id, rows[1].read_queue_nums) == (None,) * 3
    codes = [[code for code, _ in issues_of(row)] for row in rows]
    assert codes[:4] == [[], [], ["UNPARSABLE"], ["UNPARSABLE"]]
    assert codes[4][0] in ("UNPARSABLE", "BAD_TYPE")
    assert unknown_columns(InputTables.read(spark, cluster_events=str(path))) == {
        "cluster_events": ["more"]
    }


def test_csv_parts_need_one_header(spark: SparkSession, tmp_path: Path) -> None:
    head = "cluster,event_ms,sequence,event_type"
    write(tmp_path / "ok" / "cluster_events.csv" / "part-0.csv", head, "c,1,1,A")
    write(tmp_path / "ok" / "cluster_events.csv" / "part-1.csv.gz", head, "c,1,2,B")
    write(tmp_path / "ok" / "cluster_events.csv" / "part-2.csv")
    rows = InputTables.read(spark, str(tmp_path / "ok")).cluster_events.collect()
    assert sorted((r.sequence, r["_source"]) for r in rows) == [
        (1, "part-0.csv:2"),
        (2, "part-1.csv.gz:2"),
    ]


def test_csv_lacks_columns(spark: SparkSession, tmp_path: Path) -> None:
    path = write(tmp_path / "cluster_events.csv", "cluster,topic", "c,t")
    with pytest.raises(InputRefused, match=r"lacks the column\(s\) event_ms, sequence, event_type"):
        InputTables.read(spark, cluster_events=str(path))


@pytest.mark.parametrize("by_spark", [False, True])
def test_parquet(spark: SparkSession, tmp_path: Path, by_spark: bool) -> None:
    rows = [("c", BIG, 1, "BROKER_UP", ["a"], 4.0, "x"), ("c", 2, 2, "X", None, 1.5, "y")]
    names = "cluster STRING, event_ms BIGINT, sequence INT, event_type STRING"
    frame = spark.createDataFrame(
        rows, f"{names}, subscriptions ARRAY<STRING>, read_queue_nums DOUBLE, other STRING"
    )
    path = str(tmp_path / "cluster_events.parquet")
    frame.coalesce(1).write.parquet(path)
    inputs = InputTables.read(spark, cluster_events=path if by_spark else f"file://{path}")
    first, second = inputs.cluster_events.orderBy("_source").collect()
    assert (first.event_ms, first.subscriptions, first.read_queue_nums) == (BIG, ["a"], 4)
    assert first["_source"].endswith(".parquet:1")
    assert second["_source"].endswith(".parquet:2")
    assert json.loads(second["_raw"])["other"] == "y"
    assert issues_of(first) == []
    assert issues_of(second) == [("BAD_TYPE", "read_queue_nums is '1.5', not a valid INT")]
    assert unknown_columns(inputs) == {"cluster_events": ["other"]}


NS = pa.timestamp("ns", "UTC")
KINDS: dict[str, tuple[Any, pa.DataType, bool]] = {
    "moment": (BIG, pa.timestamp("ms", "UTC"), True),
    "nanoseconds": (BIG, NS, False),
    "nanoseconds in a list": ([BIG], pa.list_(NS), False),
    "time": (5, pa.time32("ms"), False),
    "fine time": (5, pa.time64("us"), False),
    "half": (np.float16(1), pa.float16(), False),
    "digits": (Decimal(1), pa.decimal256(50), False),
    "fewer digits": (Decimal(1), pa.decimal128(38), True),
    "bytes": (b"ab", pa.binary(2), True),
    "struct": ({"a": 1}, pa.struct({"a": pa.uint64()}), True),
}


@pytest.mark.parametrize("name", KINDS)
def test_parquet_with_types_that_spark_lacks_is_read_by_tasks(
    spark: SparkSession, tmp_path: Path, name: str
) -> None:
    """In a column that the table does not have; the first part has none."""
    value, kind, of_spark = KINDS[name]
    folder = tmp_path / "cluster_events.parquet"
    folder.mkdir()
    event = pa.Table.from_pylist([EVENT])
    with_other = event.append_column("other", pa.array([value], kind))
    pq.write_table(with_other, folder / "part-0.parquet")
    pq.write_table(event, folder / "part-1.parquet")
    files = [*folder.iterdir()]
    assert has_types_of_spark("events", files) == of_spark
    read = read_table(spark, INPUT_TABLES["cluster_events"], str(folder), by_spark=True)
    assert read.extras == ["other"]
    assert ("Scan parquet" in plan_of(read.frame)) == of_spark
    rows = read.conformed.collect()
    assert sorted(row["_source"] for row in rows) == ["part-0.parquet:1", "part-1.parquet:1"]


def plan_of(frame: DataFrame) -> str:
    return str(frame._jdf.queryExecution().executedPlan().toString())


def test_a_part_that_is_no_parquet_is_refused_by_the_task_that_reads_it(
    spark: SparkSession, tmp_path: Path
) -> None:
    folder = tmp_path / "cluster_events.parquet"
    folder.mkdir()
    pq.write_table(pa.Table.from_pylist([EVENT]), folder / "part-0.parquet")
    (folder / "part-1.parquet").write_text("no Parquet")
    events = InputTables.read(spark, str(tmp_path)).cluster_events
    with pytest.raises(PythonException, match=r"InputRefused: .*cannot be read as parquet: "):
        events.collect()


def test_tables_are_found_by_name_and_explicit_paths_go_first(
    spark: SparkSession, tmp_path: Path
) -> None:
    folder = tmp_path / "cluster_events in"
    write(folder / "cluster_events.jsonl.gz", line(sequence=1, extra=1))
    write(folder / "consumer_groups" / "part-0.json", '{"cluster":"c","consumer_group":"g"}')
    write(folder / "queue_offsets.csv")
    write(folder / "old" / "committed_offsets.jsonl", "{}")
    write(folder / "_run.json", "{}")
    other = write(tmp_path / "groups.txt", '{"cluster":"c","consumer_group":"h","x":1}')
    inputs = InputTables.read(spark, str(folder))
    assert set(inputs.tables()) == {"cluster_events", "consumer_groups", "queue_offsets"}
    assert inputs.tables()["consumer_groups"].collect()[0].consumer_group == "g"
    assert inputs.tables()["queue_offsets"].collect() == []
    assert unknown_columns(inputs) == {"cluster_events": ["extra"]}
    inputs = InputTables.read(
        spark, str(folder), consumer_groups=str(other), input_format="json", queue_offsets=None
    )
    assert inputs.tables()["consumer_groups"].collect()[0].consumer_group == "h"


def test_refusals(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(InputRefused, match="nowhere does not exist"):
        InputTables.read(spark, str(tmp_path / "nowhere"))
    with pytest.raises(InputRefused, match=r"none\.jsonl does not exist"):
        InputTables.read(spark, cluster_events=str(tmp_path / "none.jsonl"))
    with pytest.raises(InputRefused, match="the path for cluster_events is missing"):
        InputTables.read(spark)
    write(tmp_path / "a" / "events.jsonl", line())
    with pytest.raises(InputRefused, match=r"expected cluster_events\.jsonl.* found events.jsonl"):
        InputTables.read(spark, str(tmp_path / "a"))
    write(tmp_path / "b" / "cluster_events.jsonl", line())
    write(tmp_path / "b" / "cluster_events.csv", line())
    twice = spark.createDataFrame([("c", "t", "t")], ["cluster", "topic", "topic"])
    with pytest.raises(InputRefused, match="cluster_events names topic more than once"):
        source_of(INPUT_TABLES["cluster_events"], twice)
    with pytest.raises(InputRefused, match="more than once"):
        InputTables.read(spark, str(tmp_path / "b"))
    odd = write(tmp_path / "c.txt", line())
    with pytest.raises(InputRefused, match="does not show its format"):
        InputTables.read(spark, cluster_events=str(odd))
    with pytest.raises(UsageError, match="unknown input format 'xml'"):
        InputTables.read(spark, cluster_events=str(odd), input_format="xml")
    with pytest.raises(InputRefused, match="cannot be read as parquet"):
        InputTables.read(spark, cluster_events=str(odd), input_format="parquet")


def test_a_file_read_in_splits_has_line_numbers_or_its_split_s_first_byte(
    spark: SparkSession, tmp_path: Path
) -> None:
    lines = [line(sequence=n) for n in range(200)]
    path = write(tmp_path / "e.jsonl", *lines)
    spark.conf.set("spark.sql.files.maxPartitionBytes", "4096")
    try:
        rows = read_events(spark, path)
    finally:
        spark.conf.unset("spark.sql.files.maxPartitionBytes")
    assert sorted(row.sequence for row in rows) == list(range(200))
    numbered = [row for row in rows if "@" not in row["_source"]]
    assert numbered
    assert all(row["_source"] == f"e.jsonl:{row.sequence + 1}" for row in numbered)
    starts = {int(row["_source"].split("@")[1]) for row in rows if "@" in row["_source"]}
    assert starts
    assert all(0 < start < path.stat().st_size and start % 4096 == 0 for start in starts)


def test_hand_made_frames_are_conformed(spark: SparkSession) -> None:
    table = INPUT_TABLES["cluster_events"]
    frame = spark.createDataFrame(
        [("c", 1.0, 1, "X", float("nan"), None), ("c", 2.5, 1, "X", 4.0, None)],
        "cluster STRING, event_ms DOUBLE, sequence INT, event_type STRING, perm DOUBLE, topic VOID",
    )
    once = source_of(table, frame).conformed
    first, second = once.orderBy("event_ms", ascending=False).collect()
    assert (first.event_ms, first.perm, first.topic) == (1, None, None)
    assert issues_of(first) == []
    assert issues_of(second) == [
        ("BAD_TYPE", "event_ms is '2.5', not a valid BIGINT (epoch milliseconds)")
    ]
    assert json.loads(second["_raw"])["event_ms"] == 2.5
    assert source_of(table, once).conformed.schema == once.schema
    with pytest.raises(InputRefused, match="event_ms, sequence, event_type"):
        source_of(table, spark.createDataFrame([("c",)], "cluster STRING"))
    assert unknown_columns(InputTables(frame.withColumn("mine", frame.perm))) == {
        "cluster_events": ["mine"]
    }


def test_unknown_columns_have_any_name(spark: SparkSession, tmp_path: Path) -> None:
    """Spark takes a dot for a field, and does not distinguish `extra` from `EXTRA`; the eighth
    column is renamed.
    """
    row = spark.createDataFrame([("c", 1, 1, "X")], "a STRING, b LONG, c LONG, d STRING")
    unknown = ["Cluster", "EXTRA", "_column_7", "a.b", "a`b", "extra"]
    frame = row.select("*", *(sf.lit(name) for name in unknown)).toDF(
        "cluster", "event_ms", "sequence", "event_type", *unknown
    )
    inputs = InputTables(frame)
    (read,) = inputs.sources()["cluster_events"].conformed.collect()
    assert (read.cluster, issues_of(read)) == ("c", [])
    assert unknown_columns(inputs) == {"cluster_events": unknown}
    assert epochs(frame).columns[0] == "cluster"
    stored = row.toDF("cluster", "event_ms", "sequence", "event_type").withColumn("a.`b", sf.lit(1))
    stored.write.parquet(str(tmp_path / "stored"))
    table = INPUT_TABLES["cluster_events"]
    source = parquet_frame(spark, table, str(tmp_path / "stored"))
    assert (source.extras, source.conformed.count()) == (["a.`b"], 1)


_READS = """
import sys
from pyspark.sql import SparkSession
from rebalance_core.model.errors import InputRefused
from rebalance_core.spark.read_tables import InputTables, parquet_frame, read_table

spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
print("BEGUN", file=sys.stderr)
InputTables.read(spark, "tables")
try:
    InputTables.read(spark, "nowhere")
except InputRefused as refused:
    print(f"REFUSED {refused}", file=sys.stderr)
print("ENDED", file=sys.stderr)
"""


def test_a_plain_or_missing_path_prints_no_page_of_java(tmp_path: Path) -> None:
    write(tmp_path / "tables" / "cluster_events.jsonl", line())
    done = subprocess.run(
        [sys.executable, "-c", _READS],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(TREE)},
        capture_output=True,
        text=True,
        check=True,
    )
    said = done.stderr.partition("BEGUN\n")[2].partition("ENDED")[0]
    assert "REFUSED nowhere does not exist" in said
    assert "java" not in said
