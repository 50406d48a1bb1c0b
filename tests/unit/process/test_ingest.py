"""An ingest in a process: what is read back is what was put together."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from rebalance_core.contracts import ALL_TABLES, COLLECTED_TABLES, INGESTED_TABLES
from rebalance_core.contracts.table import rows_of_arrow
from rebalance_core.engine.table_writer import read_written
from rebalance_core.ingest.assumptions import Assumptions
from rebalance_core.ingest.collection import open_collection
from rebalance_core.ingest.in_process import ingest_collection
from rebalance_core.model.errors import OutputExists
from rebalance_core.process import ingested_rows as module
from rebalance_core.process.audit import audit_and_write, unwritten_inputs
from rebalance_core.process.ingest import ingest_and_write
from tests.recordings.tables import DATA

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
