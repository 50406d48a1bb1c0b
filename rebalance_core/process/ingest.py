"""A whole ingest: read a collection and write its tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from rebalance_core.checks.digest import TableWritten
from rebalance_core.contracts import INGESTED_TABLES
from rebalance_core.ingest.collection import Collection
from rebalance_core.ingest.collection_settings import Assumptions
from rebalance_core.ingest.file_reader import FileStats
from rebalance_core.process.ingested_rows import IngestCounts
from rebalance_core.process.runtime import HERE, Runtime
from rebalance_core.storage.place import Location


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
    runtime: Runtime = HERE,
) -> IngestWritten:
    """Read a collection and write its tables. Memory: in a process all that the files state.

    Args:
        collection: `open_collection` of a folder, which all tasks reach.
        output: A folder (`place_of`), which gets the tables; none of them may be there.
        assumed: The settings that apply where no file states them.
        before_writing: Called once every file is read, before the first table is written.
        progress: Called with how many files are read, of how many; in a process.
        runtime: Where.

    Raises:
        OutputExists: A table is in the folder already.
    """
    names = tuple(INGESTED_TABLES)
    with runtime.read_files(collection, assumed or Assumptions(), progress) as read:
        if before_writing is not None:
            before_writing()
        with runtime.tables(output, names) as tables:
            counts = tables.write(read.rows, read.work, IngestCounts, names)
            written = tables.finish()
    return IngestWritten(written, read.stats, counts)
