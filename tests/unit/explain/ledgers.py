"""Ledgers as rows and as folders of Parquet, made by the plain replay."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from rebalance_core.contracts import CONTRACT_VERSION, LEDGER_TABLES
from rebalance_core.explain.view import GroupRows
from tests.recordings.tables import Tables

RECORD = {
    "job": "simulate",
    "status": "OK",
    "library_version": "0",
    "contract_version": CONTRACT_VERSION,
}


def group_rows(tables: Tables, group: str) -> GroupRows:
    """The rows of one group."""
    names = GroupRows.__slots__
    rows: Any = ([r for r in tables[n] if r["consumer_group"] == group] for n in names)
    return GroupRows(*rows)


def write_ledger(folder: Path, tables: Tables) -> Path:
    """The ledger as `simulate` writes it: one folder a table, the record last."""
    for name, table in LEDGER_TABLES.items():
        (folder / name).mkdir(parents=True)
        rows = pa.Table.from_pylist(tables.get(name, []), schema=table.arrow_schema())
        pq.write_table(rows, folder / name / "part-00000.parquet")
    (folder / "_run.json").write_text(json.dumps(RECORD))
    return folder
