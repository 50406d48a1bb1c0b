"""The steps from frame to frame: the rows of a simulation, and what each step refuses."""

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PythonException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from rebalance_core.checks.input_tables import read_input_tables
from rebalance_core.contracts import INPUT_TABLES, LEDGER_TABLES
from rebalance_core.model.errors import InputRefused
from rebalance_core.process.generate import generate_and_write
from rebalance_core.process.simulate import simulate
from rebalance_core.spark import (
    InputTables,
    diffs,
    epochs,
    ownership,
    pull_starts,
    read_events,
    read_logs,
    rejected,
    step_ddl,
    steps,
)
from rebalance_core.synthetic.fleet import FleetPlan
from tests.recordings.tables import DATA, ingested_recording
from tests.spark.frames import assert_same_rows, frame_of
from tests.spark.test_simulate import replayed_fleet, write_fleet
from tests.tree import TREE

STEPS = ("epochs", "ownership", "diffs", "pull_starts")
TABLES = str(TREE / "rebalance_core/bundled/demo/join-leave/tables")
MIXED = str(DATA / "pathologies" / "tables")
"""A client id twice, two strategies, different subscriptions: owners that the queue shares."""


def all_steps(
    events: DataFrame, offsets: DataFrame | None, commits: DataFrame | None
) -> dict[str, DataFrame]:
    begun = epochs(events).cache()
    owned = ownership(begun).cache()
    changed = diffs(owned)
    started = pull_starts(changed, offsets, commits)
    return dict(zip(STEPS, (begun, owned, changed, started), strict=True))


def of_ledger(name: str, frame: DataFrame) -> DataFrame:
    return frame.select(*LEDGER_TABLES[name].column_names)


def assert_equal(spark: SparkSession, made: Mapping[str, DataFrame], expected: Any) -> None:
    """Each step has the rows of the ledger's table, given by name as Arrow tables or rows."""
    for name, frame in made.items():
        assert frame.dtypes == spark.createDataFrame([], step_ddl(name)).dtypes, name
        rows = expected[name]
        rows = rows.to_pylist() if isinstance(rows, pa.Table) else rows
        assert rows, name
        theirs = frame_of(spark, rows, LEDGER_TABLES[name].plain_ddl)
        assert_same_rows(of_ledger(name, frame), theirs)


@pytest.mark.parametrize(
    "first", [pa.timestamp("ns", "UTC"), pa.timestamp("ms", "UTC"), pa.timestamp("ms")], ids=str
)
def test_events_are_read_whatever_spark_thinks_of_the_files(
    spark: SparkSession, tmp_path: Path, first: pa.DataType
) -> None:
    """Times in nanoseconds, as pandas writes them, or without a zone; a table that is not used."""
    events = read_input_tables(TABLES).tables["cluster_events"]
    at = events.column_names.index("event_ms")
    (tmp_path / "cluster_events").mkdir()
    for number, kind in enumerate((first, pa.timestamp("ns", "UTC"))):
        times = events["event_ms"].cast(pa.timestamp("ms", "UTC")).cast(kind)
        part = events.set_column(at, pa.field("event_ms", kind), times)
        half = part.slice(number * 5, 5 if number == 0 else None)
        pq.write_table(half, tmp_path / "cluster_events" / f"part-{number}.parquet")
    shutil.copy(Path(TABLES) / "consumer_groups.jsonl", tmp_path)
    (tmp_path / "queue_offsets.parquet").write_text("no Parquet")
    (tmp_path / "committed_offsets.csv").write_text("cluster\n")
    names = LEDGER_TABLES["epochs"].column_names
    expected = epochs(read_events(spark, TABLES)).select(*names)
    found = read_events(spark, str(tmp_path))
    assert found.where("_source LIKE 'part-_.parquet:1'").count() == 2
    assert_same_rows(epochs(found).select(*names), expected)


def test_every_recording_gives_the_rows_of_the_replay(spark: SparkSession, tmp_path: Path) -> None:
    write_fleet(tmp_path)
    tables = InputTables.read(spark, str(tmp_path))
    events = read_events(spark, str(tmp_path)).repartition(5).cache()
    made = all_steps(events, tables.queue_offsets, tables.committed_offsets)
    assert_equal(spark, made, replayed_fleet())
    assert rejected(events).count() == 0
    for frame in (events, made["epochs"], made["ownership"]):
        frame.unpersist()


@pytest.mark.parametrize("arrow", [True, False])
def test_a_generated_day_gives_the_rows_of_a_simulation(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, arrow: bool
) -> None:
    """Also as pandas UDFs, which Spark 3.5 has alone; the frames are tables between the steps."""
    monkeypatch.setattr(steps, "HAS_ARROW_GROUPS", arrow)
    generate_and_write(FleetPlan(groups=3, days=1, seed=65), tmp_path)
    tables = InputTables.read(spark, str(tmp_path))
    made = {}
    frame = read_events(spark, str(tmp_path))
    made_of: tuple[Callable[[DataFrame], DataFrame], ...] = (
        epochs,
        ownership,
        diffs,
        lambda changed: pull_starts(changed, tables.queue_offsets, tables.committed_offsets),
    )
    for name, step in zip(STEPS, made_of, strict=True):
        step(frame).write.parquet(str(tmp_path / "out" / name))
        frame = made[name] = spark.read.parquet(str(tmp_path / "out" / name))
    assert_equal(spark, made, simulate(read_input_tables(str(tmp_path))).tables())


def test_unknown_offsets_and_commits_are_not_none(spark: SparkSession) -> None:
    inputs = read_input_tables(MIXED).tables
    known = {name: inputs[name] for name in ("cluster_events", "consumer_groups")}
    commits = {"committed_offsets": inputs["committed_offsets"].slice(0, 0)}
    none = InputTables.read(spark, MIXED).committed_offsets
    assert none is not None
    changed = diffs(ownership(epochs(read_events(spark, MIXED)))).cache()
    for given, expected in ((None, known), (none.limit(0), known | commits)):
        made = {"pull_starts": pull_starts(changed, commits=given)}
        assert_equal(spark, made, simulate(expected).tables())
    changed.unpersist()


def test_files_give_the_events_of_an_ingest(spark: SparkSession) -> None:
    events = read_logs(spark, DATA / "pop" / "collection")
    found = of_columns(INPUT_TABLES["cluster_events"].column_names, events)
    rows = ingested_recording("pop").tables
    ddl = INPUT_TABLES["cluster_events"].plain_ddl
    assert_same_rows(found, frame_of(spark, rows["cluster_events"], ddl))
    settings = events.select(sf.explode("settings").alias("row")).select("row.*").distinct()
    names = INPUT_TABLES["consumer_groups"].column_names
    expected = frame_of(spark, rows["consumer_groups"], INPUT_TABLES["consumer_groups"].plain_ddl)
    assert_same_rows(of_columns(names, settings), expected)


def of_columns(names: tuple[str, ...], frame: DataFrame) -> DataFrame:
    return frame.select(*names)


def test_some_rows_of_a_step_give_some_of_the_next(spark: SparkSession) -> None:
    begun = epochs(read_events(spark, TABLES)).cache()
    tables = InputTables.read(spark, TABLES)
    owned = ownership(begun).cache()
    changed = diffs(owned)
    begun.createOrReplaceTempView("begun")
    first = ownership(spark.sql("SELECT * FROM begun WHERE epoch < 3"))
    assert_same_rows(
        first.select("from_epoch", "client_id"),
        owned.where("from_epoch < 3").select("from_epoch", "client_id"),
    )
    one = owned.where("queue_id = 0")
    assert_same_rows(
        of_ledger("diffs", diffs(one)), of_ledger("diffs", changed).where("queue_id = 0")
    )
    some = changed.where("queue_id = 0 OR events IS NOT NULL")
    starts = pull_starts(changed, tables.queue_offsets, tables.committed_offsets)
    assert_same_rows(
        pull_starts(some, tables.queue_offsets, tables.committed_offsets).where("queue_id = 0"),
        starts.where("queue_id = 0"),
    )
    for wrong, message in (
        (ownership(begun.where("epoch <> 2")), "'order-service' of cluster .* lacks epoch 2"),
        (ownership(begun.unionAll(begun)), "has an epoch twice"),
        (pull_starts(changed.where("events IS NULL")), "has no row with its events"),
    ):
        with pytest.raises(PythonException, match=message):
            wrong.collect()
    for frame in (begun, owned):
        frame.unpersist()


def test_bad_rows_are_rejected_as_by_a_simulation(spark: SparkSession, tmp_path: Path) -> None:
    """An unknown type, a null in a key, a differing repeat, a leave of a stranger, bad settings."""
    inputs = InputTables.read(spark, TABLES)
    events, groups = (
        frame.select(*INPUT_TABLES[name].column_names)
        for name, frame in inputs.tables().items()
        if name in ("cluster_events", "consumer_groups")
    )
    one = events.where("event_type = 'CONSUMER_JOIN'").limit(1)
    bad = [
        one.withColumn("event_type", sf.lit("JOIN")).withColumn("sequence", sf.lit(10**6)),
        one.withColumn("event_ms", sf.lit(None).cast("BIGINT")),
        one.withColumn("client_id", sf.lit("other")),
        one.withColumn("event_type", sf.lit("CONSUMER_LEAVE"))
        .withColumn("client_id", sf.lit("stranger"))
        .withColumn("sequence", sf.lit(10**6 + 1)),
    ]
    for row in bad:
        events = events.unionAll(row.select(*events.columns))
    groups = groups.withColumn("strategy", sf.lit("AVERAGE"))
    for name, frame in (("cluster_events", events), ("consumer_groups", groups)):
        frame.coalesce(1).write.parquet(str(tmp_path / f"{name}.parquet"))
    expected = simulate(read_input_tables(str(tmp_path)))
    read = read_events(spark, str(tmp_path))
    ddl = LEDGER_TABLES["rejected"].plain_ddl
    assert_same_rows(rejected(read), frame_of(spark, expected.rejected.to_pylist(), ddl))
    codes = {issue["code"] for row in expected.rejected.to_pylist() for issue in row["issues"]}
    assert len(codes) >= 4, codes
    assert_equal(spark, {"epochs": epochs(read)}, expected.tables())


def test_what_a_frame_lacks_is_refused_before_anything_runs(spark: SparkSession) -> None:
    events = spark.createDataFrame([], INPUT_TABLES["cluster_events"].plain_ddl)
    offsets = spark.createDataFrame([], INPUT_TABLES["queue_offsets"].plain_ddl)
    begun = spark.createDataFrame([], step_ddl("epochs"))
    owned = spark.createDataFrame([], step_ddl("ownership"))
    changed = spark.createDataFrame([], step_ddl("diffs"))
    plain = spark.createDataFrame([], LEDGER_TABLES["ownership"].plain_ddl)
    no_zone = sf.lit("2026-11-21 11:28:55").cast("TIMESTAMP_NTZ")
    for refused, message in (
        (lambda: epochs(events.drop("sequence")), "cluster_events lacks the column.*sequence"),
        (lambda: epochs(events.select("*", "cluster")), "names cluster more than once"),
        (
            lambda: epochs(events.withColumn("event_ms", sf.lit(True))),
            "event_ms is boolean, not BI",
        ),
        (lambda: epochs(events.withColumn("event_ms", no_zone)), "event_ms is a TIMESTAMP_NTZ"),
        (
            lambda: InputTables(events.withColumn("event_ms", no_zone)).sources(),
            "event_ms is a TIMESTAMP_NTZ.*in a catalog, name a view that casts it",
        ),
        (
            lambda: epochs(events.withColumn("cluster", sf.lit(None))),
            "cluster is null in every row",
        ),
        (lambda: epochs(events.withColumn("settings", sf.lit(1))), "settings is int, not an array"),
        (lambda: epochs(events, offsets), "consumer_groups lacks the column.*consumer_group"),
        (
            lambda: rejected(events, offsets=offsets.withColumn("queue_id", sf.array())),
            "queue_offsets.queue_id is array",
        ),
        (lambda: ownership(begun.drop("events")), "epochs lacks the column.*events"),
        (lambda: ownership(begun.withColumn("epoch", sf.lit("1"))), "epoch is string, not int"),
        (lambda: ownership(begun.select("*", "epoch")), "names epoch more than once"),
        (lambda: diffs(plain), "ownership lacks the column.*begins, ends, events, settings"),
        (lambda: diffs(owned.withColumn("ends", sf.lit(1))), "ends is int, not struct<earliest_ms"),
        (lambda: pull_starts(changed.drop("kind")), "diffs lacks the column.*kind"),
        (
            lambda: pull_starts(changed, offsets.withColumn("observed_ms", no_zone)),
            "observed_ms is a TIMESTAMP_NTZ",
        ),
    ):
        with pytest.raises(InputRefused, match=message):
            refused()


def test_times_may_be_timestamps_and_frames_empty(spark: SparkSession) -> None:
    read = read_events(spark, TABLES)
    times = read.withColumn("event_ms", sf.expr("timestamp_millis(event_ms)")).drop("_raw")
    names = LEDGER_TABLES["epochs"].column_names
    assert_same_rows(epochs(times).select(*names), epochs(read).select(*names))
    events = spark.createDataFrame([], INPUT_TABLES["cluster_events"].plain_ddl)
    for name, frame in all_steps(events, None, None).items():
        assert frame.collect() == [], name
