"""Tables of Spark, which says NOT NULL, and changed ones."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rebalance_core.contracts import ALL_TABLES
from rebalance_core.engine.table_writer import read_written
from rebalance_core.model.errors import InputRefused


def test_columns_of_the_contract_alone_are_read(tmp_path: Path) -> None:
    folder = tmp_path / "group_verdicts"
    folder.mkdir()
    table = ALL_TABLES["group_verdicts"]
    schema = table.arrow_schema()
    row = dict.fromkeys(table.column_names) | {"cluster": "c"}
    written = schema.set(0, schema.field(0).with_nullable(False)).append(
        pa.field("new", pa.int64())
    )
    for number in range(2):
        rows = pa.Table.from_pylist([row | {"new": number}], written)
        pq.write_table(rows, folder / f"part-{number}.parquet")
    (folder / "_SUCCESS").touch()
    found = read_written(tmp_path, "group_verdicts")
    assert found.schema.equals(schema)
    assert found.to_pylist() == [row] * 2


def test_a_column_that_is_not_there(tmp_path: Path) -> None:
    folder = tmp_path / "group_verdicts"
    folder.mkdir()
    schema = ALL_TABLES["group_verdicts"].arrow_schema()
    without = schema.remove(schema.get_field_index("verdict"))
    pq.write_table(without.empty_table(), folder / "part-0.parquet")
    with pytest.raises(InputRefused, match=r"group_verdicts lacks the column\(s\) verdict"):
        read_written(tmp_path, "group_verdicts")


def test_a_table_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_written(tmp_path, "findings")
