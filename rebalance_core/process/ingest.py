"""A whole ingest in this process: read a collection and write its tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from rebalance_core.checks.digest import TableWritten
from rebalance_core.contracts import INGESTED_TABLES
from rebalance_core.contracts.table import batch_of_rows
from rebalance_core.engine.table_writer import TableWriters
from rebalance_core.ingest.collection import Collection
from rebalance_core.ingest.collection_settings import Assumptions
from rebalance_core.ingest.file_reader import FileStats
from rebalance_core.ingest.in_process import read_collection
from rebalance_core.ingest.rows import Tables
from rebalance_core.storage.place import Location

ROWS_PER_BATCH = 20_000


@dataclass(frozen=True)
class IngestWritten:
    """What an ingest wrote.

    Attributes:
        tables: Rows and digest of every table written.
        stats: How each file was understood.
        rejected: How often each issue code occurs in ``rejected``.
        findings: Rows of ``findings`` by rule.
    """

    tables: Mapping[str, TableWritten]
    stats: tuple[FileStats, ...]
    rejected: Mapping[str, int]
    findings: Mapping[str, int]


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
    with TableWriters(output, tuple(INGESTED_TABLES)) as writers:
        for name, table in INGESTED_TABLES.items():
            rows = ingested.tables.get(name, [])
            for begin in range(0, len(rows), ROWS_PER_BATCH):
                writers.write(name, batch_of_rows(table, rows[begin : begin + ROWS_PER_BATCH]))
    return IngestWritten(
        tables=writers.written(),
        stats=ingested.stats,
        rejected=_codes(ingested.tables),
        findings=dict(sorted(Counter(r["rule_id"] for r in ingested.tables["findings"]).items())),
    )


def _codes(tables: Tables) -> dict[str, int]:
    """How often each issue code occurs in ``rejected``; a row may have several."""
    codes = Counter(issue["code"] for row in tables["rejected"] for issue in row["issues"])
    return dict(sorted(codes.items()))
