"""The ingest job: read a collection and write its tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

import pyarrow as pa

from rebalance_core.checks.digest import TableWritten
from rebalance_core.contracts import EVIDENCE_TABLES, INGESTED_TABLES
from rebalance_core.contracts.opening_state import EVIDENCE, EVIDENCE_FILES
from rebalance_core.ingest.assumptions import Assumptions
from rebalance_core.ingest.collection import Collection
from rebalance_core.ingest.file_reader import FileStats
from rebalance_core.ingest.opening_evidence import file_rows, kept_evidence
from rebalance_core.process.ingested_rows import IngestCounts
from rebalance_core.process.runtime import HERE, NoFacts, Part, ReadFiles, Runtime, TableRows
from rebalance_core.storage.place import Location


@dataclass(frozen=True)
class IngestWritten:
    """The tables that an ingest wrote, and how well it understood the files.

    Attributes:
        tables: Rows and digest of every table written.
        stats: How each file was understood.
        counts: Counts of the written rows.
        state: Rows and digest of the tables that form the opening state of a later run.
    """

    tables: Mapping[str, TableWritten]
    stats: tuple[FileStats, ...]
    counts: IngestCounts
    state: Mapping[str, TableWritten] = field(default_factory=dict)


def ingest_and_write(
    collection: Collection,
    output: Location,
    assumed: Assumptions | None = None,
    *,
    state_output: Location | None = None,
    before_writing: Callable[[], object] | None = None,
    progress: Callable[[int, int], object] | None = None,
    runtime: Runtime = HERE,
) -> IngestWritten:
    """Read a collection and write its tables. Memory: in-process, all facts in the files.

    Args:
        collection: `open_collection` of a folder that all tasks can reach.
        output: The folder for the tables (`place_of`); none of them may exist in it.
        assumed: The settings that apply where no file states them.
        state_output: The folder for the evidence from which a later run may begin; None writes
            none.
        before_writing: Called after every file is read and before the first table is written.
        progress: Called with the number of files read and the total; only in-process.
        runtime: Where the job runs.

    Raises:
        OutputExists: A table already exists in the folder.
    """
    names = tuple(INGESTED_TABLES)
    with runtime.read_files(collection, assumed or Assumptions(), progress) as read:
        if before_writing is not None:
            before_writing()
        with runtime.tables(output, names) as tables:
            counts = tables.write(read.rows, read.work, IngestCounts, names)
            written = tables.finish()
        state = (
            {} if state_output is None else _write_state(runtime, collection, read, state_output)
        )
    return IngestWritten(written, read.stats, counts, state)


def _write_state(
    runtime: Runtime, collection: Collection, read: ReadFiles, output: Location
) -> Mapping[str, TableWritten]:
    """Write the facts from the files, and the list of files."""
    last_ms = {file_stats.name: file_stats.last_ms for file_stats in read.stats}
    files = file_rows(collection, last_ms, read.end_ms, read.left_out)
    with runtime.tables(output, EVIDENCE_TABLES) as tables:
        tables.write(read.evidence, EvidenceRows(read.end_ms), NoFacts, (EVIDENCE.name,))
        tables.add(EVIDENCE_FILES.name, pa.Table.from_batches([files]))
        return tables.finish()


@dataclass(frozen=True, slots=True)
class EvidenceRows:
    """`Work` on evidence that returns the rows to keep.

    Attributes:
        end_ms: The end of the collection.
    """

    VERB: ClassVar[str] = "keep evidence"
    end_ms: int

    def __call__(self, parts: Iterable[Part], facts: NoFacts) -> TableRows:
        """Yield the rows of `EVIDENCE`."""
        for _, tables in parts:
            batches = tables[EVIDENCE.name].to_batches()
            yield from ((EVIDENCE.name, kept) for kept in kept_evidence(batches, self.end_ms))
