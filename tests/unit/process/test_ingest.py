"""What an ingest and a generated fleet write is what is read back."""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rebalance_core.checks.input_tables import read_input_tables
from rebalance_core.contracts import ALL_TABLES, COLLECTED_TABLES, INGESTED_TABLES
from rebalance_core.contracts.table import rows_of_arrow
from rebalance_core.engine.table_writer import read_written
from rebalance_core.ingest.collection import open_collection
from rebalance_core.ingest.collection_settings import Assumptions
from rebalance_core.ingest.in_process import ingest_collection
from rebalance_core.model.errors import InputRefused, OutputExists
from rebalance_core.process import ingested_rows as module
from rebalance_core.process.audit import audit_and_write, unwritten_inputs
from rebalance_core.process.generate import generate_and_write
from rebalance_core.process.ingest import ingest_and_write
from rebalance_core.process.simulate import simulate
from rebalance_core.synthetic.fleet import FleetPlan
from tests.recordings.tables import DATA

# An ingest in one process: what is read back is what was put together.

COLLECTION = DATA / "nightly" / "collection"


def by_text(rows: Iterable[dict[str, Any]]) -> list[str]:
    return sorted(str(sorted(row.items())) for row in rows)


@pytest.mark.parametrize("rows_at_once", [7, 20_000])
def test_the_tables_read_back(
    rows_at_once: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "ROWS_PER_BATCH", rows_at_once)
    expected: Any = ingest_collection(COLLECTION)
    begun: list[bool] = []
    told: list[tuple[int, int]] = []
    done = ingest_and_write(
        open_collection(COLLECTION),
        tmp_path,
        before_writing=lambda: begun.append(any(tmp_path.iterdir())),
        progress=lambda done, total: told.append((done, total)),
    )
    assert begun == [False]
    assert told == [(read, len(done.stats)) for read in range(1, len(done.stats) + 1)]
    assert tuple(done.tables) == tuple(INGESTED_TABLES)
    for name in COLLECTED_TABLES:
        rows = expected.tables.get(name, [])
        whole = (dict.fromkeys(ALL_TABLES[name].column_names) | row for row in rows)
        assert by_text(rows_of_arrow(read_written(tmp_path, name))) == by_text(whole)
        assert done.tables[name].rows == len(rows)
    assert done.stats == expected.stats
    assert sum(done.counts.findings.values()) == len(expected.tables["findings"]) > 0


@pytest.mark.parametrize("recording", ["nightly", "slave", "pop", "controller"])
def test_progress_is_that_of_an_audit_but_for_the_holders(recording: str, tmp_path: Path) -> None:
    collection = open_collection(DATA / recording / "collection")
    audited, ingested = tmp_path / "audit", tmp_path / "ingest"
    inputs = unwritten_inputs(collection, Assumptions())
    audit_and_write(inputs, audited, findings_per_rule=1)
    ingest_and_write(collection, ingested)

    def rows(folder: Path) -> list[dict[str, Any]]:
        of_queues: Any = rows_of_arrow(read_written(folder, "queue_progress"))
        return [{**row, "client_id": None} for row in of_queues]

    assert by_text(rows(ingested)) == by_text(rows(audited)) != []


def test_the_newest_dumps_show_who_holds_a_queue(tmp_path: Path) -> None:
    ingest_and_write(open_collection(COLLECTION), tmp_path)
    held: Any = rows_of_arrow(read_written(tmp_path, "observed_ownership"))
    newest: dict[tuple[str, ...], dict[str, Any]] = {}
    for row in sorted(held, key=lambda row: row["observed_ms"]):
        newest[row["consumer_group"], row["topic"], row["broker_name"], row["queue_id"]] = row
    progress: Any = rows_of_arrow(read_written(tmp_path, "queue_progress"))
    holders = {
        (r["consumer_group"], r["topic"], r["broker_name"], r["queue_id"]): r["client_id"]
        for r in progress
        if r["client_id"] is not None
    }
    assert len(holders) > 50
    assert holders == {queue: newest[queue]["client_id"] for queue in holders}


def test_a_table_that_is_there_is_never_written_over(tmp_path: Path) -> None:
    (tmp_path / "findings").mkdir()
    with pytest.raises(OutputExists, match="findings"):
        ingest_and_write(open_collection(COLLECTION), tmp_path)


# Synthetic fleets as they are written: every row is read, none is bad.

PLAN = FleetPlan(40, 1, 11, groups_per_cluster=20)


def test_a_simulation_reads_every_row_and_rejects_none(tmp_path: Path) -> None:
    generate_and_write(PLAN, tmp_path)
    ledger = simulate(read_input_tables(str(tmp_path)))
    assert ledger.rejected.num_rows == 0
    epochs = ledger.epochs.to_pylist()
    assert len({(row["cluster"], row["consumer_group"]) for row in epochs}) == PLAN.groups
    statuses = Counter(row["status"] for row in epochs)
    assert statuses["SETTLED"] > 0.9 * statuses.total()
    known = Counter(ledger.pull_starts["status"].to_pylist())
    assert known["OK"] > 0.9 * known.total()


# Tables of Spark, which says NOT NULL, and those that were changed.


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
