"""Tables of earlier versions, and of Spark, which says NOT NULL."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rebalance_core.contracts import ALL_TABLES, SIMULATED_TABLES
from rebalance_core.contracts.arrow_rows import batch_of_rows
from rebalance_core.engine.table_writer import TableWriter
from rebalance_core.engine.units import GROUP
from rebalance_core.process.written_tables import LedgerFiles, read_written


def test_columns_that_were_not_known_are_null_and_others_not_read(tmp_path: Path) -> None:
    folder = tmp_path / "group_verdicts"
    folder.mkdir()
    cluster = pa.field("cluster", pa.string(), nullable=False)
    for number in range(2):
        columns = pa.table([["c"], [number]], pa.schema([cluster, pa.field("new", pa.int64())]))
        pq.write_table(columns, folder / f"part-{number}.parquet")
    (folder / "_SUCCESS").touch()
    rows = read_written(tmp_path, "group_verdicts")
    table = ALL_TABLES["group_verdicts"]
    assert rows.schema.equals(table.arrow_schema())
    assert rows.to_pylist() == [dict.fromkeys(table.column_names) | {"cluster": "c"}] * 2


def test_a_table_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_written(tmp_path, "findings")


def test_a_table_that_the_contract_before_did_not_have_is_empty(tmp_path: Path) -> None:
    for name, table in SIMULATED_TABLES.items():
        if table.since == 1:
            with TableWriter(tmp_path, name) as writer:
                writer.write(batch_of_rows(table, [{"cluster": "c", "consumer_group": "g"}]))
    older = LedgerFiles(tmp_path, contract_version=1)
    rows = {name: len(rows) for name, rows in older.of([("c", "g")]).items()}
    assert rows == {name: int(table.since == 1) for name, table in SIMULATED_TABLES.items()}
    assert sum(rows.values()) < len(rows)
    assert older.rows_by_group() == {("c", "g"): sum(rows.values())}
    with pytest.raises(FileNotFoundError):
        LedgerFiles(tmp_path).of([("c", "g")])


def test_the_rows_of_some_groups_of_a_ledger(tmp_path: Path) -> None:
    names = [("c", "a"), ("c", "b"), ("c", "\U0001f600"), ("d", "a")]
    for name, table in SIMULATED_TABLES.items():
        rows = [{"cluster": c, "consumer_group": g} for c, g in reversed(names) for _ in range(2)]
        with TableWriter(tmp_path, name) as writer:
            writer.write(batch_of_rows(table, rows))
    ledger = LedgerFiles(tmp_path)
    assert ledger.rows_by_group() == dict.fromkeys(names, 2 * len(SIMULATED_TABLES))
    for wanted in (names[1:3], names[2:], names[:1], [names[2], names[0]]):
        for rows in ledger.of(wanted).values():
            found = set(zip(*(rows[name].to_pylist() for name in GROUP), strict=True))
            assert set(wanted) <= found
    assert {len(rows) for rows in ledger.of(names[:1]).values()} == {2}
