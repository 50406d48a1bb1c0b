import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, GroupedData, SparkSession
from pyspark.sql import functions as sf

from rebalance_core.checks.digest import TableWritten, table_written
from rebalance_core.contracts import ALL_TABLES, CONTRACT_VERSION, LEDGER_TABLES, Table
from rebalance_core.contracts.table import columns
from rebalance_core.model.errors import InputRefused, OutputExists
from rebalance_core.spark.engine.ledger import Ledger
from rebalance_core.spark.tables.write import row_hash, write_table

pytestmark = pytest.mark.spark

NAME = "memberships"
ROW = (
    *("c", "g", "1@1", None, ["a", "b"], "AVG", "5.3", "CLUSTERING", False, "CLIENT"),
    *(0, None, 1, None),
)


def rows_of(spark: SparkSession, *rows: tuple[object, ...], name: str = NAME) -> DataFrame:
    return spark.createDataFrame(list(rows), ALL_TABLES[name].ddl)


def written(frame: DataFrame, folder: Path, name: str = NAME) -> TableWritten:
    return write_table(frame, str(folder), name)


def changed(**fields: object) -> tuple[object, ...]:
    names = ALL_TABLES[NAME].column_names
    return tuple(fields.get(name, value) for name, value in zip(names, ROW, strict=True))


def summed(rows: GroupedData) -> list[tuple[int, int, int]]:
    """Of each group of rows the key, their number and the sum of their hashes."""
    total = sf.sum(row_hash(ALL_TABLES[NAME]).cast("DECIMAL(20, 0)")).cast("STRING")
    return [(n, count, int(text)) for n, count, text in rows.agg(sf.count("*"), total).collect()]


def test_the_digest_ignores_order_and_partitions(spark: SparkSession, tmp_path: Path) -> None:
    rows = [changed(client_id=f"{n}@1", from_epoch=n) for n in range(50)]
    first = written(rows_of(spark, *rows), tmp_path / "a")
    turned = rows_of(spark, *reversed(rows)).repartition(7)
    second = written(turned.select(*reversed(turned.columns)), tmp_path / "b")
    assert first == second
    assert first.rows == 50
    assert int(first.digest, 16) > 0
    again = spark.read.parquet(str(tmp_path / "b" / NAME))
    assert tuple(again.columns) == ALL_TABLES[NAME].column_names
    assert written(again, tmp_path / "c") == first


def test_the_digest_sees_every_change(spark: SparkSession, tmp_path: Path) -> None:
    variants: list[tuple[tuple[object, ...], ...]] = [
        (ROW,),
        (ROW, ROW),
        (ROW, ROW, ROW),
        (),
        (changed(subscriptions=["b", "a"]),),
        (changed(subscriptions=["a", "b", None]),),
        (changed(subscriptions=[None, "a", "b"]),),
        (changed(subscriptions=["ab"]),),
        (changed(subscriptions=[]),),
        (changed(subscriptions=['a","b']),),
        (changed(suspended=True),),
        (changed(channel_id="AVG", strategy=""),),
        (changed(channel_id=""),),
        (changed(to_epoch=1),),
        (changed(to_ms=1),),
        (changed(to_epoch=0),),
        (changed(from_epoch=1, from_ms=0),),
        (changed(client_id="1@", strategy="1AVG"),),
        (changed(from_ms=9007199254740993),),
        (changed(from_ms=9007199254740992),),
    ]
    numbered = [(n, *row) for n, rows in enumerate(variants) for row in rows]
    frame = spark.createDataFrame(numbered, f"n INT, {ALL_TABLES[NAME].plain_ddl}")
    found = summed(frame.groupBy("n"))
    assert len(found) == len(variants) - 1  # one has no rows
    digests = {table_written(rows, total).digest for _, rows, total in found}
    assert len(digests | {written(rows_of(spark), tmp_path).digest}) == len(variants)
    first = next(row for row in found if row[0] == 0)
    assert table_written(*first[1:]) == written(rows_of(spark, ROW), tmp_path / "first")


def test_the_hash_takes_maps_without_their_order(spark: SparkSession) -> None:
    table = Table("t", "", columns("evidence? MAP<STRING, STRING> a map"))
    maps = [{"a": "1", "b": "2"}, {"b": "2", "a": "1"}, {"a": "2"}, {"a": None}, {}, None]
    frame = spark.createDataFrame([(each,) for each in maps], "evidence MAP<STRING, STRING>")
    hashes = [row[0] for row in frame.select(row_hash(table)).collect()]
    assert hashes[0] == hashes[1]
    assert len(set(hashes)) == 5


def test_the_digest_sees_issues(spark: SparkSession, tmp_path: Path) -> None:
    issues = [[("A", "x")], [("A", None)], [(None, "A")], [("A", "x"), ("A", "x")]]
    digests = []
    for n, each in enumerate(issues):
        frame = rows_of(spark, ("t", None, "raw", each), name="rejected")
        digests.append(written(frame, tmp_path / str(n), "rejected").digest)
    assert len(set(digests)) == len(issues)


def test_a_folder_that_exists_is_not_touched(spark: SparkSession, tmp_path: Path) -> None:
    written(rows_of(spark, ROW), tmp_path)
    before = sorted(path.name for path in (tmp_path / NAME).iterdir())
    with pytest.raises(OutputExists, match="memberships exists already"):
        written(rows_of(spark, ROW, ROW), tmp_path)
    assert sorted(path.name for path in (tmp_path / NAME).iterdir()) == before


def test_no_rows_make_a_readable_table(spark: SparkSession, tmp_path: Path) -> None:
    empty = rows_of(spark, ROW).where(sf.lit(False))
    result = written(empty, tmp_path)
    assert result == TableWritten(0, written(rows_of(spark), tmp_path / "b").digest)
    assert spark.read.parquet(str(tmp_path / NAME)).count() == 0


def ledger_folder(spark: SparkSession, tmp_path: Path) -> str:
    for name in LEDGER_TABLES:
        rows = [ROW] if name == NAME else []
        written(rows_of(spark, *rows, name=name), tmp_path, name)
    (tmp_path / "_run.json").write_text(json.dumps({"contract_version": CONTRACT_VERSION}))
    return str(tmp_path)


def test_a_ledger_reads_back(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = ledger_folder(spark, tmp_path)
    ledger = Ledger.read(spark, folder)
    assert list(ledger.frames()) == list(LEDGER_TABLES)
    assert [tuple(row) for row in ledger.memberships.collect()] == [ROW]
    assert ledger.epochs.collect() == []
    # the contract before: a column that came later is null
    (tmp_path / "_run.json").write_text(json.dumps({"contract_version": CONTRACT_VERSION - 1}))
    older = spark.createDataFrame([("c",)], "cluster STRING")
    older.write.mode("overwrite").parquet(f"{folder}/epochs")
    came_now = replace(LEDGER_TABLES["pop_reach"], since=CONTRACT_VERSION)
    monkeypatch.setitem(LEDGER_TABLES, "pop_reach", came_now)
    newer = [name for name, table in LEDGER_TABLES.items() if table.since == CONTRACT_VERSION]
    for name in newer:
        shutil.rmtree(f"{folder}/{name}")
    ledger = Ledger.read(spark, folder)
    (row,) = ledger.epochs.collect()
    assert (row.cluster, row.transient) == ("c", None)
    for name in newer:
        assert ledger.frames()[name].columns == list(LEDGER_TABLES[name].column_names)
        assert ledger.frames()[name].collect() == []
    (tmp_path / "_run.json").write_text(json.dumps({"contract_version": CONTRACT_VERSION}))
    with pytest.raises(InputRefused, match="lacks a table"):
        Ledger.read(spark, folder)


def test_what_is_no_result_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(InputRefused, match=r"holds no _run\.json"):
        Ledger.read(spark, str(tmp_path))
    for text, reason in [
        ("{", "is not JSON"),
        ("[]", "has no contract_version"),
        ('{"contract_version": null}', "has no contract_version"),
        (json.dumps({"contract_version": CONTRACT_VERSION + 1}), "upgrade"),
        (json.dumps({"contract_version": CONTRACT_VERSION - 2}), "run the job again"),
        (json.dumps({"contract_version": CONTRACT_VERSION, "status": "FAILED"}), "run that failed"),
        (json.dumps({"contract_version": CONTRACT_VERSION}), "lacks a table"),
    ]:
        (tmp_path / "_run.json").write_text(text)
        with pytest.raises(InputRefused, match=reason):
            Ledger.read(spark, str(tmp_path))
