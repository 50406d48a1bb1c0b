"""Tables of earlier versions, and of Spark, which says NOT NULL."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rebalance_core.contracts import ALL_TABLES
from rebalance_core.engine.table_writer import read_written


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
