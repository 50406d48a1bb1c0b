"""A whole ingest in this process: read a collection and write its tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from rebalance_core.checks.digest import TableWritten
from rebalance_core.checks.row_checks import Rejections
from rebalance_core.contracts import INGESTED_TABLES
from rebalance_core.contracts.table import batch_of_rows
from rebalance_core.engine.table_writer import TableWriters
from rebalance_core.ingest.collection import Collection
from rebalance_core.ingest.collection_settings import Assumptions
from rebalance_core.ingest.file_reader import FileStats
from rebalance_core.ingest.in_process import read_collection
from rebalance_core.storage.place import Location

ROWS_PER_BATCH = 20_000


@dataclass(slots=True)
class IngestCounts:
    """Counts of ingested rows beside how many there are; those of parts are merged.

    Attributes:
        rejections: What is wrong with rows of ``rejected``.
        findings: Rows of ``findings`` by rule.
        event_ms: Times of the first and the last event; empty where there is none.
    """

    rejections: Rejections = field(default_factory=Rejections)
    findings: Counter[str] = field(default_factory=Counter)
    event_ms: tuple[int, ...] = ()

    def add(self, table: str, rows: pa.RecordBatch) -> None:
        """Count some rows of a table."""
        if table == "rejected":
            self.rejections.add(rows)
        elif table == "findings":
            self.findings.update(rows["rule_id"].to_pylist())
        elif table == "cluster_events" and len(rows):
            self._span(pc.min_max(rows["event_ms"]).as_py().values())

    def merge(self, other: IngestCounts) -> None:
        """Add what was counted of other rows."""
        self.rejections.merge(other.rejections)
        self.findings.update(other.findings)
        self._span(other.event_ms)

    def _span(self, times: Iterable[int]) -> None:
        found = sorted((*self.event_ms, *times))
        self.event_ms = (found[0], found[-1]) if found else ()


@dataclass(frozen=True)
class IngestWritten:
    """Tables that an ingest wrote, and how it understood the files.

    Attributes:
        tables: Rows and digest of every table written.
        stats: How each file was understood.
        counts: See there.
    """

    tables: Mapping[str, TableWritten]
    stats: tuple[FileStats, ...]
    counts: IngestCounts


def ingest_and_write(
    collection: Collection,
    output: Location,
    assumed: Assumptions | None = None,
    *,
    before_writing: Callable[[], object] | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> IngestWritten:
    """Read a collection and write its tables. Memory: all that the files state.

    Args:
        collection: `open_collection` of a folder.
        output: A folder (`place_of`), which gets the tables; none of them may be there.
        assumed: What is taken for granted where no file says it.
        before_writing: Called once every file is read, before the first table is written.
        progress: Told how many files are read, of how many.

    Raises:
        OutputExists: A table is in the folder already.
    """
    ingested = read_collection(collection, assumed, progress)
    if before_writing is not None:
        before_writing()
    counts = IngestCounts()
    with TableWriters(output, tuple(INGESTED_TABLES)) as writers:
        for name, table in INGESTED_TABLES.items():
            rows = ingested.tables.get(name, [])
            for begin in range(0, len(rows), ROWS_PER_BATCH):
                batch = batch_of_rows(table, rows[begin : begin + ROWS_PER_BATCH])
                writers.write(name, batch)
                counts.add(name, batch)
    return IngestWritten(writers.written(), ingested.stats, counts)
