"""A ledger that a run wrote, read as frames."""

import json
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from rebalance_core.contracts import CONTRACT_VERSION, LEDGER_TABLES
from rebalance_core.model.errors import InputRefused
from rebalance_core.spark.ledger import Ledger

NAME = "memberships"
ROW = (
    *("c", "g", "1@1", None, ["a", "b"], "AVG", "5.3", "CLUSTERING", False, "CLIENT"),
    *(0, None, 1, None, "JAVA"),
)


def write(folder: Path, rows: pa.Table) -> None:
    folder.mkdir(exist_ok=True)
    pq.write_table(rows, folder / "part-0.parquet")


def ledger_folder(tmp_path: Path) -> str:
    for name, table in LEDGER_TABLES.items():
        rows = [dict(zip(table.column_names, ROW, strict=True))] if name == NAME else []
        write(tmp_path / name, pa.Table.from_pylist(rows, table.arrow_schema()))
    (tmp_path / "_run.json").write_text(json.dumps({"contract_version": CONTRACT_VERSION}))
    return str(tmp_path)


def test_a_ledger_reads_back(spark: SparkSession, tmp_path: Path) -> None:
    folder = ledger_folder(tmp_path)
    ledger = Ledger.read(spark, folder)
    assert list(ledger.frames()) == list(LEDGER_TABLES)
    for name, table in LEDGER_TABLES.items():
        rows = [ROW] if name == NAME else []
        found, expected = ledger.frames()[name], spark.createDataFrame(rows, table.plain_ddl)
        assert (found.dtypes, found.collect()) == (expected.dtypes, rows)
    shutil.rmtree(f"{folder}/queue_states")
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
        (json.dumps({"contract_version": CONTRACT_VERSION - 1}), "run the job again"),
        (json.dumps({"contract_version": CONTRACT_VERSION, "status": "FAILED"}), "run that failed"),
        (json.dumps({"contract_version": CONTRACT_VERSION}), "lacks a table"),
    ]:
        (tmp_path / "_run.json").write_text(text)
        with pytest.raises(InputRefused, match=reason):
            Ledger.read(spark, str(tmp_path))
