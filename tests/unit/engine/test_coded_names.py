"""Names travel as dictionary arrays into files, which look as if they had not."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rebalance_core.contracts import LEDGER_TABLES
from rebalance_core.engine.table_writer import FILE_NAME, TableWriters
from rebalance_core.kernels.ledger import ledger_rows
from rebalance_core.kernels.ownership.holdings import Holdings
from rebalance_core.kernels.table_rows import CODED, NAMES, coded_schema
from tests.unit.kernels.fleets import build
from tests.unit.replay.histories import history, join, leave, topic


def rows_of(table: str, *, clients: str, names_encoded: bool) -> list[pa.RecordBatch]:
    """Rows of a group whose queues change hands, and for a while have no owner."""
    events = [topic(0, 5)]
    for number, client in enumerate(clients):
        events += [join(10 * number + 1, client), leave(10 * number + 2, client)]
    prepared = build([history(*events)])
    return list(ledger_rows(table, prepared, Holdings(prepared), None, names_encoded=names_encoded))


@pytest.mark.parametrize("table", CODED)
def test_coded_names_are_the_plain_ones(table: str) -> None:
    encoded = rows_of(table, clients="ab", names_encoded=True)
    plain = rows_of(table, clients="ab", names_encoded=False)
    assert any(batch.num_rows for batch in encoded)
    assert {batch.schema for batch in encoded} == {coded_schema(table)}
    assert NAMES in coded_schema(table).types
    assert {batch.schema for batch in plain} == {LEDGER_TABLES[table].arrow_schema()}
    assert [batch.to_pylist() for batch in encoded] == [batch.to_pylist() for batch in plain]


@pytest.mark.parametrize("table", CODED)
def test_a_file_has_plain_names_whatever_came_in(table: str, tmp_path: Path) -> None:
    written = {}
    for kind, encoded in (
        ("plain", (False, False)),
        ("encoded", (True, True)),
        ("both", (True, False)),
    ):
        with TableWriters(tmp_path / kind, (table,)) as writers:
            for clients, names_encoded in zip(("ab", "cde"), encoded, strict=True):
                for batch in rows_of(table, clients=clients, names_encoded=names_encoded):
                    writers.write(table, batch)
        rows = pq.read_table(tmp_path / kind / table / FILE_NAME)
        assert rows.schema.equals(LEDGER_TABLES[table].arrow_schema())
        written[kind] = (rows.to_pylist(), writers.written()[table])
    assert written["plain"][1].rows > 0
    assert written["encoded"] == written["plain"] == written["both"]


def test_a_table_without_a_row_has_the_same_columns(tmp_path: Path) -> None:
    with TableWriters(tmp_path, CODED):
        pass
    for table in CODED:
        schema = pq.read_schema(tmp_path / table / FILE_NAME)
        assert schema.equals(LEDGER_TABLES[table].arrow_schema())


def test_files_code_texts_and_no_numbers(tmp_path: Path) -> None:
    with TableWriters(tmp_path, ("diffs",)) as writers:
        for batch in rows_of("diffs", clients="ab", names_encoded=True):
            writers.write("diffs", batch)
    row_group = pq.read_metadata(tmp_path / "diffs" / FILE_NAME).row_group(0)
    columns = (row_group.column(number) for number in range(row_group.num_columns))
    coded = {column.path_in_schema: column.has_dictionary_page for column in columns}
    names = ("client_id", "topic", "epoch", "change_ms")
    assert [coded[name] for name in names] == [True, True, False, False]
