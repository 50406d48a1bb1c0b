"""What tasks make of evidence: rows on groups and topics, then tables in their final form.

In between rows are shuffled: an event gets its sequence where all events of its moment are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rebalance_core.checks.issue_arrays import issue_counts
from rebalance_core.checks.packed_rows import by_bucket, pack
from rebalance_core.contracts import INGESTED_TABLES
from rebalance_core.contracts.table import batch_of_rows, rows_of_arrow
from rebalance_core.ingest.clock_zones import Shifts, corrected
from rebalance_core.ingest.cluster_context import ClusterContext
from rebalance_core.ingest.events.complete_tables import of_cluster, once, sequenced
from rebalance_core.ingest.evidence.evidence_table import REFUSED
from rebalance_core.ingest.group_tables import tables_of
from rebalance_core.ingest.in_process import is_of
from rebalance_core.ingest.rows import ORDER, Row, Tables
from rebalance_core.spark.engine.routed_rows import routed_batch, routed_tables
from rebalance_core.spark.ingest.evidence_chunks import evidence_of_buckets
from rebalance_core.spark.tables.task_tables import Rows

Batches = Iterable[pa.RecordBatch]

_EVENTS = "cluster_events"
_ROWS_AT_ONCE = 20_000


@dataclass(frozen=True, slots=True)
class Assembling:
    """From evidence to rows that lack only the sequence of events; they stay in their bucket.

    Attributes:
        context: Of the cluster.
        buckets: How many there are.
        whole: Files that were refused as a whole: their lines make no rows of ``rejected``.
        shifts: What has to be added to the times of files, by file.
    """

    context: ClusterContext
    buckets: int
    whole: frozenset[str] = frozenset()
    shifts: Shifts = field(default_factory=dict)

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        """The rows of all groups and topics of a task, as `ROUTED_DDL`."""
        for bucket, keys in evidence_of_buckets(batches):
            waiting: Tables = {}
            for part, key, evidence in keys:
                pieces = corrected(evidence, self.shifts) if self.shifts else evidence
                if part == REFUSED and self.whole:
                    pieces = (piece for piece in evidence if not is_of(piece.source, self.whole))
                for name, rows in tables_of(part, key, pieces, self.context).items():
                    waiting.setdefault(name, []).extend(rows)
                if sum(map(len, waiting.values())) >= _ROWS_AT_ONCE:
                    yield from self.routed(waiting, bucket)
                    waiting = {}
            yield from self.routed(waiting, bucket)

    def routed(self, tables: Tables, bucket: int) -> Iterator[pa.RecordBatch]:
        """Rows of whole groups and topics, as `ROUTED_DDL`; events in the bucket of their second.

        Args:
            tables: By name.
            bucket: Of all other rows.
        """
        for name, rows in once(tables).items():
            for begin in range(0, len(rows), _ROWS_AT_ONCE):
                some = of_cluster(name, rows[begin : begin + _ROWS_AT_ONCE], self.context.cluster)
                made = pa.Table.from_batches([batch_of_rows(INGESTED_TABLES[name], some)])
                if name != _EVENTS:
                    yield routed_batch(bucket, name, pack(made))
                    continue
                for number, part in self._by_second(made, some):
                    yield routed_batch(number, name, pack(part))

    def _by_second(self, events: pa.Table, rows: list[Row]) -> Iterator[tuple[int, pa.Table]]:
        orders = pa.array([row.get(ORDER, 0) for row in rows], pa.int32())
        seconds = np.asarray(pc.divide(events["event_ms"], 1_000))
        yield from by_bucket(events.append_column(ORDER, orders), seconds % self.buckets)


@dataclass(slots=True)
class IngestCounts:
    """What a summary tells of the rows.

    Attributes:
        rejected: How often each issue code occurs in ``rejected``.
        findings: Rows of ``findings`` by rule.
    """

    rejected: Counter[str] = field(default_factory=Counter)
    findings: Counter[str] = field(default_factory=Counter)

    def add(self, table: str, rows: pa.Table) -> None:
        """Count some rows of a table."""
        if table == "rejected":
            self.rejected.update(issue_counts(rows))
        elif table == "findings":
            self.findings.update(rows["rule_id"].to_pylist())


def completing(batches: Batches) -> tuple[Rows, IngestCounts]:
    """`Work` of `task_tables`: the tables of a task's rows; the note counts them."""
    counts = IngestCounts()
    return _completed(batches, counts), counts


def _completed(batches: Batches, counts: IngestCounts) -> Rows:
    for _, tables in routed_tables(batches):
        for name, rows in tables.items():
            counts.add(name, rows)
            if name == _EVENTS:
                events = sequenced(rows_of_arrow(rows))
                yield name, batch_of_rows(INGESTED_TABLES[name], events)
            else:
                yield from ((name, batch) for batch in rows.to_batches())
