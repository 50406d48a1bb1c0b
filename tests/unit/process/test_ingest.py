"""An ingest in one process: what is read back is what was put together."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from rebalance_core.contracts import ALL_TABLES, INGESTED_TABLES
from rebalance_core.contracts.table import rows_of_arrow
from rebalance_core.engine.table_writer import read_written
from rebalance_core.ingest.collection import open_collection
from rebalance_core.ingest.in_process import ingest_collection
from rebalance_core.model.errors import OutputExists
from rebalance_core.process import ingest as module
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
    expected = ingest_collection(COLLECTION)
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
    for name in INGESTED_TABLES:
        rows = expected.tables.get(name, [])
        whole = (dict.fromkeys(ALL_TABLES[name].column_names) | row for row in rows)
        assert by_text(rows_of_arrow(read_written(tmp_path, name))) == by_text(whole)
        assert done.tables[name].rows == len(rows)
    assert done.stats == expected.stats
    assert sum(done.counts.findings.values()) == len(expected.tables["findings"]) > 0


def test_a_table_that_is_there_is_never_written_over(tmp_path: Path) -> None:
    (tmp_path / "findings").mkdir()
    with pytest.raises(OutputExists, match="findings"):
        ingest_and_write(open_collection(COLLECTION), tmp_path)
