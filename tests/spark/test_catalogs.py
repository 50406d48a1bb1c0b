"""Runs published as tables of a catalog, and input tables read from one: plain Parquet tables."""

import json
import os
import re
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from chispa import assert_df_equality
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from rebalance_core.cli.main import main
from rebalance_core.contracts import INPUT_TABLES, LEDGER_TABLES
from rebalance_core.contracts.published import RUN_COLUMNS, night_of
from rebalance_core.model.errors import InputRefused, RebalanceError, StoreFailed, UsageError
from rebalance_core.spark import InputTables, Ledger, catalogs, publish, simulate
from tests.recordings.tables import DATA, replayed
from tests.spark.frames import Collected, frame_of
from tests.tree import TREE

TABLES = DATA / "join-leave" / "tables"
OF_THE_RUN = [column.name for column in RUN_COLUMNS]
DATABASE = os.environ.get("TEST_DATABASE", "published")
USING = os.environ.get("TEST_USING", "USING parquet")
"""Where, and as what, `scripts/test_catalogs.py` has these tests make their tables."""


SMALL = ("epochs", "diffs", "group_metrics", "rejected")
PAGE = TREE / "docs/reading-results.md"
OPERATIONS = TREE / "docs/operations.md"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished simulation."""
    folder = tmp_path_factory.mktemp("published") / "run"
    assert main(None, ["simulate", "--input", str(TABLES), "--output", str(folder)]) == 0
    return folder


@pytest.fixture(scope="module")
def small_run(run: Path) -> Path:
    """The same, of four tables; one has no row."""
    return small(shutil.copytree(run, run.parent / "small"))


def small(folder: Path) -> Path:
    """A run that says it wrote four of its tables."""
    record = json.loads((folder / "_run.json").read_text())
    record["outputs"] = {name: record["outputs"][name] for name in SMALL}
    (folder / "_run.json").write_text(json.dumps(record))
    return folder


@pytest.fixture
def database(spark: SparkSession) -> Iterator[str]:
    """The name of a database that is not there; gone in the end."""
    yield DATABASE
    if spark.catalog.databaseExists(DATABASE):
        views = set()
        with suppress(AnalysisException):  # a catalog without views
            views = {row.viewName for row in spark.sql(f"SHOW VIEWS IN {DATABASE}").collect()}
        for table in spark.sql(f"SHOW TABLES IN {DATABASE}").collect():
            if not table.isTemporary:
                kind = "VIEW" if table.tableName in views else "TABLE"
                spark.sql(f"DROP {kind} {DATABASE}.{table.tableName}")
        spark.sql(f"DROP DATABASE {DATABASE}")


def same_rows(found: DataFrame, expected: DataFrame) -> None:
    """In any order."""
    assert_df_equality(
        found, expected, transforms=[Collected], ignore_nullable=True, ignore_metadata=True
    )


def of_run(spark: SparkSession, table: str, run_id: str) -> DataFrame:
    return spark.table(table).where(sf.col("run_id") == run_id)


def test_published_twice_is_published_once(spark: SparkSession, run: Path, database: str) -> None:
    """Rows after a first one are held by the tests below."""
    record = json.loads((run / "_run.json").read_text())
    published, again = (publish(spark, str(run), database) for _ in range(2))
    assert published == again
    assert published.run_id == record["run_id"]
    of_run = (
        record["run_id"],
        night_of(record),
        record["period_from_ms"],
        record["period_to_ms"],
    )
    assert of_run[1] == date(2026, 11, 21)
    for name, frame in Ledger.read(spark, str(run)).frames().items():
        table = spark.table(f"{database}.{name}")
        assert table.columns[-4:] == OF_THE_RUN
        assert table.drop(*OF_THE_RUN).dtypes == frame.dtypes
        rows, expected = table.collect(), frame.collect()
        assert sorted((row[:-4] for row in rows), key=repr) == sorted(
            map(tuple, expected), key=repr
        )
        assert {row[-4:] for row in rows} == ({of_run} if expected else set())
        assert published.tables[f"{database}.{name}"] == record["outputs"][name]["rows"]
    (mark,) = spark.table(f"{database}.runs").collect()
    assert (mark.run_id, mark.job, mark.clusters) == (
        record["run_id"],
        "simulate",
        ["DefaultCluster"],
    )
    assert (mark.period_from_ms, mark.period_to_ms) == (1795231709901, 1795231799192)
    assert set(mark.tables) == set(record["outputs"])


def test_several_runs_lie_beside_each_other(
    spark: SparkSession, small_run: Path, database: str, tmp_path: Path
) -> None:
    words = ["simulate", "--input", str(TABLES), "--strategy", "AVG_BY_CIRCLE"]
    assert main(None, [*words, "--output", str(tmp_path / "other")]) == 0
    other = small(tmp_path / "other")
    ids = [
        publish(spark, str(each), database, prefix="ledger_", replace="run").run_id
        for each in (small_run, other)
    ]
    publish(spark, str(small_run), database, prefix="ledger_", replace="run")
    assert len(set(ids)) == 2
    marks = spark.table(f"{database}.ledger_runs").collect()
    assert sorted(row.run_id for row in marks) == sorted(ids)
    for run_id, folder in zip(ids, (small_run, other), strict=True):
        found = of_run(spark, f"{database}.ledger_diffs", run_id).drop(*OF_THE_RUN)
        same_rows(found, Ledger.read(spark, str(folder)).diffs)


def as_run(folder: Path, run_id: str, day: int, **changed: Any) -> str:
    """A copy of a run as another one, of a night of November 2026 and with a row less in diffs."""
    copied = Path(shutil.copytree(folder, folder.parent / f"{run_id}-{day}"))
    record = json.loads((copied / "_run.json").read_text())
    to_ms = int(datetime(2026, 11, day, 23, tzinfo=UTC).timestamp() * 1000)
    record["outputs"] = {name: record["outputs"][name] for name in ("diffs", "epochs")}
    rows = record["outputs"]["diffs"]["rows"] - day % 7 - 1
    (file,) = (copied / "diffs").glob("*.parquet")
    pq.write_table(pq.read_table(file).slice(0, rows), file)
    record["outputs"]["diffs"]["rows"] = rows
    record |= {"run_id": run_id, "period_to_ms": to_ms, **changed}
    (copied / "_run.json").write_text(json.dumps(record))
    return str(copied)


def has_views(spark: SparkSession, database: str) -> bool:
    return bool(spark.catalog.tableExists(f"{database}.current_runs"))


def current(spark: SparkSession, database: str) -> dict[str, int]:
    """By run that readers see: how many rows of diffs they see of it."""
    runs = spark.table(f"{database}.runs")
    if has_views(spark, database):
        shown = spark.table(f"{database}.current_diffs").groupBy("run_id").count()
        seen = {row.run_id: row["count"] for row in shown.collect()}
        assert {row.run_id for row in spark.table(f"{database}.current_runs").collect()} == {*seen}
        return seen
    marks = runs.select("run_id", "replaces", "published_ms").collect()
    gone = {
        r.run_id
        for r in marks
        for s in marks
        if r.run_id in s.replaces and s.published_ms > r.published_ms
    }
    counts = spark.table(f"{database}.diffs").groupBy("run_id").count().collect()
    return {
        row.run_id: row["count"]
        for row in counts
        if row.run_id in {mark.run_id for mark in marks} - gone
    }


def test_a_night_replaces_itself(spark: SparkSession, small_run: Path, database: str) -> None:
    """Of the same job and clusters alone; with `run` both stay."""
    first = as_run(small_run, "a1" * 8, 21)
    again = as_run(small_run, "a2" * 8, 21)
    others = [
        as_run(small_run, "b1" * 8, 22),
        as_run(small_run, "c1" * 8, 21, job="audit"),
        as_run(small_run, "d1" * 8, 21, clusters=["other"]),
    ]
    for folder in (first, *others):
        assert publish(spark, folder, database).removed == ()
    assert publish(spark, again, database).removed == ("a1" * 8,)
    assert {*current(spark, database)} == {each * 8 for each in ("a2", "b1", "c1", "d1")}
    assert of_run(spark, f"{database}.epochs", "a1" * 8).count() == 0
    assert publish(spark, first, database, replace="run").removed == ()
    assert {*current(spark, database)} >= {"a1" * 8, "a2" * 8}
    assert publish(spark, first, database).removed == ("a2" * 8,)  # back again
    assert {*current(spark, database)} == {each * 8 for each in ("a1", "b1", "c1", "d1")}


def test_times_and_nights_of_views(spark: SparkSession, small_run: Path, database: str) -> None:
    publish(spark, str(small_run), database)
    nights = {row.night for row in spark.table(f"{database}.diffs").select("night").collect()}
    assert nights == {date(2026, 11, 21)}
    if not has_views(spark, database):
        return
    shown = spark.table(f"{database}.current_diffs")
    kinds = dict(shown.dtypes)
    assert (kinds["change_ms"], kinds["change_time"], kinds["night"]) == (
        "bigint",
        "timestamp",
        "date",
    )
    wrong = sf.expr("unix_millis(change_time)") != sf.col("change_ms")
    assert shown.where(wrong).count() == 0
    assert shown.count() == spark.table(f"{database}.diffs").count() > 0
    assert not {
        name
        for name in spark.table(f"{database}.current_epochs").columns
        if name.endswith("_time")
        and name not in ("from_time", "to_time", "period_from_time", "period_to_time")
    }


def test_old_nights_and_chosen_runs_are_removed(
    spark: SparkSession, small_run: Path, database: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for day in (1, 2, 10):
        publish(spark, as_run(small_run, f"{day:02}" * 8, day), database)
    publish(spark, as_run(small_run, "e1" * 8, 1, clusters=["other"]), database)
    last = as_run(small_run, "17" * 8, 17)
    words = ["publish", "--run", last, "--to", database, "--keep", "15d", "--json"]
    assert main(None, words) == 0
    assert json.loads(capsys.readouterr().out)["removed"] == ["01" * 8]
    assert {*current(spark, database)} == {"02" * 8, "10" * 8, "17" * 8, "e1" * 8}
    removing = ["publish", "--to", database, "--remove", "02" * 8]
    assert main(None, [*removing, "--dry-run"]) == 0
    assert "02" * 8 in current(spark, database)
    assert main(None, removing) == 0
    assert {*current(spark, database)} == {"10" * 8, "17" * 8, "e1" * 8}
    for table in ("diffs", "epochs"):
        assert of_run(spark, f"{database}.{table}", "02" * 8).count() == 0
    capsys.readouterr()
    assert main(None, removing) == 2
    assert "no table of" in capsys.readouterr().err


class KilledError(BaseException):
    """The process is gone."""


def test_a_publish_killed_anywhere_shows_the_old_night_or_the_new_one(
    spark: SparkSession, small_run: Path, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before each statement in turn; what is dead runs nothing afterwards, also no clean-up."""
    runs = {run_id: as_run(small_run, run_id, 21) for run_id in ("f1" * 8, "f2" * 8)}
    for number, run_id in enumerate(runs):  # the new one has another row less
        (file,) = (Path(runs[run_id]) / "diffs").glob("*.parquet")
        rows = pq.read_table(file)
        pq.write_table(rows.slice(0, len(rows) - number), file)
        record = json.loads((Path(runs[run_id]) / "_run.json").read_text())
        record["outputs"]["diffs"]["rows"] = len(rows) - number
        record["outputs"] = {"diffs": record["outputs"]["diffs"]}  # less to kill
        (Path(runs[run_id]) / "_run.json").write_text(json.dumps(record))
    rows_of = {
        run_id: json.loads((Path(folder) / "_run.json").read_text())["outputs"]["diffs"]["rows"]
        for run_id, folder in runs.items()
    }
    old, new = runs
    publish(spark, runs[old], database)
    sql = SparkSession.sql
    kills, seen, ended = 0, list[str](), False
    while not ended:
        left = kills

        def dying(self: SparkSession, text: str, *more: Any, **named: Any) -> DataFrame:
            nonlocal left
            if left <= 0:
                raise KilledError
            left -= 1
            return sql(self, text, *more, **named)

        with monkeypatch.context() as patched:
            patched.setattr(type(spark), "sql", dying)
            try:
                publish(spark, runs[new], database)
                ended = True
            except KilledError:
                kills += 1
        (shown,) = current(spark, database).items()
        assert shown in rows_of.items()
        seen.append(shown[0])
        if shown[0] == new and not ended:  # back to the old one, for the next kill
            publish(spark, runs[old], database)
            assert current(spark, database) == {old: rows_of[old]}
    assert kills >= 8
    assert seen[0] == old
    assert seen[-1] == new
    assert of_run(spark, f"{database}.diffs", old).count() == 0


def test_the_sql_of_the_page(spark: SparkSession, small_run: Path, database: str) -> None:
    (sql,) = re.findall(r"```sql\n(.*?)```", PAGE.read_text(), re.DOTALL)
    told: list[str] = []
    publish(spark, str(small_run), database, warn=told.append)
    if not has_views(spark, database):  # as the message advises
        shown = told[0].partition("the rows ")[2]
        table = "lake.rebalance.group_metrics"
        sql = sql.replace(
            "lake.rebalance.current_group_metrics", f"(SELECT * FROM {table} {shown})"
        )
    (row,) = spark.sql(sql.replace("lake.rebalance", database)).collect()
    assert (row.consumer_group, row.moved) == ("order-service", 26)


def test_tables_are_compacted_and_old_files_removed(
    spark: SparkSession, small_run: Path, database: str
) -> None:
    """By the statements of the page; plain files have none."""
    blocks = re.findall(r"```sql\n(.*?)```", OPERATIONS.read_text(), re.DOTALL)
    word = "VACUUM" if "delta" in USING else "expire_snapshots" if not USING else None
    if word is None:
        return
    (sql,) = (block for block in blocks if word in block)
    for run_id in ("a1", "a2"):  # the second removes the rows of the first
        publish(spark, as_run(small_run, run_id * 8, 21), database)
    before = spark.table(f"{database}.diffs").count()
    in_catalog = f"'{database.rpartition('.')[2]}."
    for statement in sql.rstrip().removesuffix(";").split(";"):
        named = statement.replace("lake.rebalance", database).replace("'rebalance.", in_catalog)
        spark.sql(named).collect()
    assert spark.table(f"{database}.diffs").count() == before > 0


def test_columns_evolve(spark: SparkSession, small_run: Path, database: str) -> None:
    """A table of an older version gets the columns it lacks; one of a newer keeps its own."""
    spark.sql(f"CREATE DATABASE {database}")
    spark.sql(
        f"CREATE TABLE {database}.epochs (cluster STRING, later INT, "
        f"{', '.join(f'{column.name} {column.type}' for column in RUN_COLUMNS)}) {USING} "
        f"PARTITIONED BY ({', '.join(OF_THE_RUN)})"
    )
    old_row = "'before', 7, 'old', DATE'2026-11-20', 1, 2"
    spark.sql(f"INSERT INTO {database}.epochs VALUES ({old_row})")
    run_id = publish(spark, str(small_run), database).run_id
    table = spark.table(f"{database}.epochs")
    assert table.columns[-4:] == OF_THE_RUN
    expected = Ledger.read(spark, str(small_run)).epochs
    same_rows(of_run(spark, f"{database}.epochs", run_id).select(*expected.columns), expected)
    assert of_run(spark, f"{database}.epochs", run_id).where("later IS NOT NULL").count() == 0
    (old,) = of_run(spark, f"{database}.epochs", "old").collect()
    assert (old.cluster, old.later, old.epoch, old.period_to_ms) == ("before", 7, None, 2)


def test_the_mark_is_removed_first_and_written_last(
    spark: SparkSession, small_run: Path, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(spark, str(small_run), database)
    drop(spark, "diffs")
    spark.sql(f"CREATE TABLE {database}.diffs (cluster INT) {USING}")
    with pytest.raises(
        UsageError, match=r"publish did not create the table .*\.diffs: cluster is int"
    ):
        publish(spark, str(small_run), database)
    assert spark.table(f"{database}.runs").count() == 0
    drop(spark, "diffs")
    publish(spark, str(small_run), database)
    assert spark.table(f"{database}.runs").count() == 1


def drop(spark: SparkSession, table: str) -> None:
    """Drop a published table and its view."""
    with suppress(AnalysisException):  # a catalog without views
        spark.sql(f"DROP VIEW IF EXISTS {DATABASE}.current_{table}")
    spark.sql(f"DROP TABLE {DATABASE}.{table}")


def halve(folder: Path, table: str) -> None:
    (file,) = (folder / table).glob("*.parquet")
    rows = pq.read_table(file)
    pq.write_table(rows.slice(0, len(rows) // 2), file)


def test_half_a_table_is_not_published(
    spark: SparkSession, small_run: Path, database: str, tmp_path: Path
) -> None:
    torn = shutil.copytree(small_run, tmp_path / "torn")
    halve(torn, "diffs")
    with pytest.raises(InputRefused, match=r"diffs has \d+ rows; \d+ are recorded"):
        publish(spark, str(torn), database)
    with pytest.raises(InputRefused, match=r"diffs has \d+ rows; \d+ are recorded"):
        Ledger.read(spark, str(torn))
    assert not spark.catalog.databaseExists(database)
    words = ["publish", "--run", str(torn), "--to", database]
    assert main(None, words) == main(None, [*words, "--dry-run"]) == 4
    record = json.loads((torn / "_run.json").read_text())
    (torn / "_run.json").write_text(json.dumps(record | {"run_id": "x' OR '1'='1"}))
    with pytest.raises(InputRefused, match=r"run_id is .* not hexadecimal"):
        publish(spark, str(torn), database)


def test_rows_are_counted_where_they_lie(
    spark: SparkSession, small_run: Path, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another publish removes what this one wrote, or fails it: in words, and without a mark."""
    replace_run = catalogs._replace_run
    publish(spark, str(small_run), database)

    def losing(session: SparkSession, name: str, rows: DataFrame, *more: Any) -> None:
        replace_run(session, name, rows.limit(0) if name.endswith(".diffs") else rows, *more)

    def failing(session: SparkSession, name: str, rows: DataFrame, *more: Any) -> None:
        if name.endswith(".diffs"):
            spark.sql("SELECT raise_error('java.io.FileNotFoundException: _temporary')").collect()
        replace_run(session, name, rows, *more)

    for replacing, said in ((losing, r"\.diffs has 0 of \d+ rows"), (failing, "_temporary")):
        drop(spark, "epochs")  # what is there whole is not written again
        monkeypatch.setattr(catalogs, "_replace_run", replacing)
        with pytest.raises(
            StoreFailed, match=f"incomplete (?:in|there).*{said}.*another publish"
        ) as caught:
            publish(spark, str(small_run), database)
        assert "\n" not in str(caught.value)
        assert spark.table(f"{database}.runs").count() == 0


def test_two_at_once_end_in_words(spark: SparkSession, small_run: Path, database: str) -> None:
    def one(_: int) -> object:
        try:
            return publish(spark, str(small_run), database)
        except RebalanceError as error:
            return error

    with ThreadPoolExecutor(2) as pool:
        ended = list(pool.map(one, range(2)))
    assert not [error for error in ended if "\n" in str(error)]
    whole = publish(spark, str(small_run), database)
    for name, rows in whole.tables.items():
        assert spark.table(name).count() == rows


def test_dynamic_overwriting_of_the_session_stays_its_own(
    spark: SparkSession, small_run: Path, database: str
) -> None:
    mode = "spark.sql.sources.partitionOverwriteMode"
    spark.conf.set(mode, "dynamic")
    try:
        publish(spark, str(small_run), database)
        publish(spark, str(small_run), database)
        assert spark.conf.get(mode) == "dynamic"
    finally:
        spark.conf.unset(mode)
    assert spark.table(f"{database}.runs").count() == 1


def test_what_cannot_be_published(
    spark: SparkSession, run: Path, database: str, tmp_path: Path
) -> None:
    with pytest.raises(InputRefused, match=r"holds no _run\.json"):
        publish(spark, str(tmp_path), database)
    record = json.loads((run / "_run.json").read_text())
    (tmp_path / "_run.json").write_text(json.dumps(record | {"run_id": None}))
    with pytest.raises(
        InputRefused, match=r"has no run_id: rebalance-core .* wrote it; run the job again"
    ):
        publish(spark, str(tmp_path), database)
    for to, prefix in ((database, "a-b"), ("a b", ""), ("nowhere.db", "")):
        with pytest.raises(
            UsageError, match=r"prefix 'a-b'|names no database|sql\.catalog\.nowhere"
        ):
            publish(spark, str(run), to, prefix)


def test_input_tables_of_a_catalog(spark: SparkSession, database: str) -> None:
    read = InputTables.read(spark, str(TABLES))
    spark.sql(f"CREATE DATABASE {database}")
    for name, frame in read.tables().items():
        both = frame.unionByName(frame.withColumn("cluster", sf.lit("other")))
        both.drop("_source", "_raw", "_read_issues").createOrReplaceTempView("both")
        spark.sql(f"CREATE TABLE {database}.{name} {USING} AS SELECT * FROM both")
    spark.catalog.dropTempView("both")
    told: list[str] = []
    where = "cluster <> 'other' AND event_ms < 1e15"
    inputs = InputTables.from_catalog(spark, database, where, warn=told.append)
    assert told == [
        f"where {where}: these tables lack its columns and "
        "are read whole: consumer_groups, queue_offsets, "
        "committed_offsets"
    ]
    assert inputs.paths["cluster_events"] == f"{database}.cluster_events"
    chosen = InputTables.from_catalog(spark, database, where="cluster <> 'other'")
    for name, frame in read.tables().items():
        columns = INPUT_TABLES[name].column_names
        same_rows(chosen.tables()[name].select(*columns), frame.select(*columns))
    with simulate(chosen) as found:
        expected = frame_of(
            spark, replayed("join-leave")["diffs"], LEDGER_TABLES["diffs"].plain_ddl
        )
        same_rows(found.diffs, expected)


def test_what_no_catalog_has(spark: SparkSession, database: str) -> None:
    spark.sql(f"CREATE DATABASE {database}")
    with pytest.raises(InputRefused, match="has no table cluster_events"):
        InputTables.from_catalog(spark, database)
    spark.sql(f"CREATE TABLE {database}.cluster_events (cluster STRING) {USING}")
    with pytest.raises(InputRefused, match="event_ms"):
        InputTables.from_catalog(spark, database)
    with pytest.raises(UsageError, match=r"where clutser = 'a': \[UNRESOLVED_COLUMN"):
        InputTables.from_catalog(spark, database, "clutser = 'a'")
    spark.sql(f"CREATE TABLE {database}.queue_offsets (max_offset BIGINT) {USING}")
    with pytest.raises(UsageError, match=r"no table of .* has all of its columns"):
        InputTables.from_catalog(spark, database, "CLUSTER = 'it''s' AND max_offset > 1")
    with pytest.raises(UsageError, match="where cluster = : "):
        InputTables.from_catalog(spark, database, "cluster = ")


def test_of_a_catalog_and_into_one_by_command(
    spark: SparkSession, database: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What `ingest` made, published; simulated from there, in the same numbers; published too."""
    ingested = str(tmp_path / "ingested")
    collection = str(DATA / "join-leave" / "collection")
    assert main(None, ["ingest", "--collection", collection, "--output", ingested]) == 0
    assert main(None, ["publish", "--run", ingested, "--to", database]) == 0
    capsys.readouterr()
    words = ["--output", str(tmp_path / "a")]
    words += ["--input-tables", database, "--where", "cluster = 'DefaultCluster'"]
    assert main(None, ["simulate", *words]) == 0
    assert "columns" not in capsys.readouterr().err  # those of the run are known
    assert main(None, ["simulate", "--input", ingested, "--output", str(tmp_path / "b")]) == 0
    here, there = (json.loads((tmp_path / name / "_run.json").read_text()) for name in "ab")
    assert (here["outputs"], here["run_id"]) == (there["outputs"], there["run_id"])
    assert here["inputs"][0]["path"] == f"{database}.cluster_events"
    capsys.readouterr()
    assert (
        main(
            None,
            [
                "publish",
                "--run",
                str(tmp_path / "a"),
                "--to",
                database,
                "--prefix",
                "ledger_",
                "--json",
            ],
        )
        == 0
    )
    said = json.loads(capsys.readouterr().out)
    assert (said["run_id"], said["rows"][f"{database}.ledger_runs"]) == (here["run_id"], 1)
    assert spark.table(f"{database}.ledger_epochs").count() == here["outputs"]["epochs"]["rows"]


def test_an_output_that_is_named_as_a_table(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ["simulate", "--input", str(TABLES), "--run-on", "spark", "--output"]
    spark.conf.set("spark.sql.catalog.lake", "not.loaded.Catalog")
    try:
        for more in ((), ("--dry-run",)):
            assert main(None, [*words, "lake.ops.epochs", *more]) == 2
            assert "publish --run FOLDER --to lake.ops" in capsys.readouterr().err
    finally:
        spark.conf.unset("spark.sql.catalog.lake")
    assert list(tmp_path.iterdir()) == []
    assert main(None, [*words, "lake.ops.epochs"]) == 0  # no such catalog: a folder
    assert (tmp_path / "lake.ops.epochs" / "_run.json").exists()
