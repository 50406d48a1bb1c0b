import json

import pytest
from pyspark.sql import functions as sf

from rebalance_core.contracts import ALL_TABLES, CONTRACT_VERSION, LEDGER_TABLES, Table
from rebalance_core.contracts.table import columns
from rebalance_core.model.errors import InputRefused, OutputExists
from rebalance_core.spark.engine.ledger import Ledger
from rebalance_core.spark.tables.write import TableWritten, row_hash, write_table

pytestmark = pytest.mark.spark

NAME = "memberships"
ROW = ("c", "g", "1@1", None, ["a", "b"], "AVG", "5.3", "CLUSTERING", False, 0, None, 1, None)


def rows_of(spark, *rows, name=NAME):
    return spark.createDataFrame(list(rows), ALL_TABLES[name].ddl)


def changed(**fields):
    names = ALL_TABLES[NAME].column_names
    return tuple(fields.get(name, value) for name, value in zip(names, ROW, strict=True))


def test_the_digest_ignores_order_and_partitions(spark, tmp_path):
    rows = [changed(client_id=f"{n}@1", from_epoch=n) for n in range(50)]
    first = write_table(rows_of(spark, *rows), tmp_path / "a", NAME)
    turned = rows_of(spark, *reversed(rows)).repartition(7)
    second = write_table(turned.select(*reversed(turned.columns)), tmp_path / "b", NAME)
    assert first == second
    assert first.rows == 50
    assert int(first.digest, 16) > 0
    again = spark.read.parquet(str(tmp_path / "b" / NAME))
    assert tuple(again.columns) == ALL_TABLES[NAME].column_names
    assert write_table(again, tmp_path / "c", NAME) == first


def test_the_digest_sees_every_change(spark, tmp_path):
    variants = [
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
    digests = [
        write_table(rows_of(spark, *rows), tmp_path / str(n), NAME).digest
        for n, rows in enumerate(variants)
    ]
    assert len(set(digests)) == len(variants)


def test_the_hash_takes_maps_without_their_order(spark):
    table = Table("t", "", columns("evidence? MAP<STRING, STRING> a map"))
    maps = [{"a": "1", "b": "2"}, {"b": "2", "a": "1"}, {"a": "2"}, {"a": None}, {}, None]
    frame = spark.createDataFrame([(each,) for each in maps], "evidence MAP<STRING, STRING>")
    hashes = [row[0] for row in frame.select(row_hash(table)).collect()]
    assert hashes[0] == hashes[1]
    assert len(set(hashes)) == 5


def test_the_digest_sees_issues(spark, tmp_path):
    issues = [[("A", "x")], [("A", None)], [(None, "A")], [("A", "x"), ("A", "x")]]
    digests = []
    for n, each in enumerate(issues):
        frame = rows_of(spark, ("t", None, "raw", each), name="rejected")
        digests.append(write_table(frame, tmp_path / str(n), "rejected").digest)
    assert len(set(digests)) == len(issues)


def test_a_folder_that_exists_is_not_touched(spark, tmp_path):
    write_table(rows_of(spark, ROW), tmp_path, NAME)
    before = sorted(path.name for path in (tmp_path / NAME).iterdir())
    with pytest.raises(OutputExists, match="memberships exists already"):
        write_table(rows_of(spark, ROW, ROW), tmp_path, NAME)
    assert sorted(path.name for path in (tmp_path / NAME).iterdir()) == before


def test_no_rows_make_a_readable_table(spark, tmp_path):
    empty = rows_of(spark, ROW).where(sf.lit(False))
    written = write_table(empty, tmp_path, NAME)
    assert written == TableWritten(0, write_table(rows_of(spark), tmp_path / "b", NAME).digest)
    assert spark.read.parquet(str(tmp_path / NAME)).count() == 0


def ledger_folder(spark, tmp_path, **record):
    for name in LEDGER_TABLES:
        rows = [ROW] if name == NAME else []
        write_table(rows_of(spark, *rows, name=name), tmp_path, name)
    (tmp_path / "_run.json").write_text(json.dumps({"contract_version": CONTRACT_VERSION} | record))
    return str(tmp_path)


def test_a_ledger_reads_back(spark, tmp_path):
    folder = ledger_folder(spark, tmp_path)
    ledger = Ledger.read(spark, folder)
    assert list(ledger.frames()) == list(LEDGER_TABLES)
    assert [tuple(row) for row in ledger.memberships.collect()] == [ROW]
    assert ledger.epochs.collect() == []
    # the contract before: a column that came later is null
    (tmp_path / "_run.json").write_text(json.dumps({"contract_version": CONTRACT_VERSION - 1}))
    older = spark.createDataFrame([("c",)], "cluster STRING")
    older.write.mode("overwrite").parquet(f"{folder}/epochs")
    (row,) = Ledger.read(spark, folder).epochs.collect()
    assert (row.cluster, row.transient) == ("c", None)


def test_what_is_no_result_is_refused(spark, tmp_path):
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
