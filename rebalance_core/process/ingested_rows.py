"""Computes the rows of an ingest and counts them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from rebalance_core.checks.rejections import Rejections
from rebalance_core.contracts import COLLECTED_TABLES
from rebalance_core.contracts.opening_state import EVIDENCE
from rebalance_core.contracts.table import batch_of_rows
from rebalance_core.engine.table_writer import read_written
from rebalance_core.ingest.collection import Collection
from rebalance_core.ingest.opening_evidence import ContinuedCollection
from rebalance_core.ingest.rows import by_name
from rebalance_core.process.ingested_progress import (
    PROGRESS,
    ingested_progress,
    progress_evidence,
)

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import RowsByTable

ROWS_PER_BATCH = 20_000


def opening_rows(collection: Collection) -> Iterator[pa.RecordBatch]:
    """Yield the evidence of an earlier run that applies to a collection, read in this process."""
    if isinstance(collection, ContinuedCollection):
        rows = read_written(collection.opening.place, EVIDENCE.name)
        yield from collection.rows(rows.to_batches())


@dataclass(slots=True)
class IngestCounts:
    """What an ingest counts besides rows; the counts of parts are merged.

    Attributes:
        rejections: What is wrong with rows of ``rejected``.
        findings: The number of ``findings`` by rule.
        event_ms: Times of the first and the last event; empty without events.
    """

    rejections: Rejections = field(default_factory=Rejections)
    findings: Counter[str] = field(default_factory=Counter)
    event_ms: tuple[int, ...] = ()

    def add(self, table: str, rows: pa.RecordBatch) -> None:
        """Count rows of a table."""
        if table == "rejected":
            self.rejections.add(rows)
        elif table == "findings":
            self.findings.update(rows["rule_id"].to_pylist())
        elif table == "cluster_events" and len(rows):
            self._span(pc.min_max(rows["event_ms"]).as_py().values())

    def merge(self, other: IngestCounts) -> None:
        """Add the counts of other rows."""
        self.rejections.merge(other.rejections)
        self.findings.update(other.findings)
        self._span(other.event_ms)

    def _span(self, times: Iterable[int]) -> None:
        times_ms = sorted((*self.event_ms, *times))
        self.event_ms = (times_ms[0], times_ms[-1]) if times_ms else ()


@dataclass(frozen=True)
class IngestedRows:
    """`Work` that passes rows on and adds their `queue_progress`; its facts count them."""

    tables: RowsByTable

    def __call__(
        self, parts: Iterable[object], counts: IngestCounts
    ) -> Iterator[tuple[str, pa.RecordBatch]]:
        """Yield the rows of each table in batches."""
        made = by_name(self.tables)
        evidence: dict[str, list[pa.Table]] = {}
        for name, table in COLLECTED_TABLES.items():
            rows = made.get(name, [])
            for begin in range(0, len(rows), ROWS_PER_BATCH):
                batch = batch_of_rows(table, rows[begin : begin + ROWS_PER_BATCH])
                counts.add(name, batch)
                yield name, batch
                for of, shown in progress_evidence({name: pa.Table.from_batches([batch])}).items():
                    evidence.setdefault(of, []).append(shown)
        progress = ingested_progress({of: pa.concat_tables(e) for of, e in evidence.items()})
        yield from ((PROGRESS, batch) for batch in progress.to_batches())
