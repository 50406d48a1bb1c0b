"""What tasks make of evidence: rows on groups and topics, then tables in their final form.

In between rows are shuffled: an event gets its sequence where all events of its moment are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rebalance_core.checks.packed_rows import by_bucket, pack
from rebalance_core.contracts import INGESTED_TABLES
from rebalance_core.contracts.table import batch_of_rows, rows_of_arrow
from rebalance_core.ingest.group_tables import of_cluster, once, sequenced
from rebalance_core.ingest.rows import ORDER, Event, Tables, by_name, merged
from rebalance_core.ingest.whole_cluster import KeyedEvidence
from rebalance_core.process.ingested_rows import IngestCounts
from rebalance_core.process.runtime import Part, TableRows
from rebalance_core.spark.evidence_chunks import (
    evidence_of_buckets,
)
from rebalance_core.spark.routed_rows import routed_batch

Batches = Iterable[pa.RecordBatch]

_EVENTS = "cluster_events"
_ROWS_AT_ONCE = 20_000


@dataclass(frozen=True, slots=True)
class AssembleTask:
    """From evidence to rows that lack only the sequence of events; they stay in their bucket.

    Attributes:
        keyed: What becomes of the evidence.
        buckets: How many there are.
    """

    keyed: KeyedEvidence
    buckets: int

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        """Yield the rows of all groups and topics of a task, as `ROUTED_DDL`."""
        for bucket, keys in evidence_of_buckets(batches):
            waiting: list[Tables] = []
            rows = 0
            for part, key, evidence in keys:
                waiting.append(self.keyed.tables(part, key, evidence))
                rows += sum(map(len, by_name(waiting[-1]).values()))
                if rows >= _ROWS_AT_ONCE:
                    yield from self.routed(merged(*waiting), bucket)
                    waiting, rows = [], 0
            yield from self.routed(merged(*waiting), bucket)

    def routed(self, tables: Tables, bucket: int) -> Iterator[pa.RecordBatch]:
        """Yield the rows of groups and topics, as `ROUTED_DDL`; events in their second's bucket.

        Args:
            tables: By name.
            bucket: Of all other rows.
        """
        for name, rows in by_name(once(tables)).items():
            for begin in range(0, len(rows), _ROWS_AT_ONCE):
                some = of_cluster(
                    name, rows[begin : begin + _ROWS_AT_ONCE], self.keyed.context.cluster
                )
                made = pa.Table.from_batches([batch_of_rows(INGESTED_TABLES[name], some)])
                if name != _EVENTS:
                    yield routed_batch(bucket, name, pack(made))
                    continue
                for number, part in self._by_second(made, some):
                    yield routed_batch(number, name, pack(part))

    def _by_second(
        self, events: pa.Table, rows: list[dict[str, object]]
    ) -> Iterator[tuple[int, pa.Table]]:
        orders = pa.array([row.get(ORDER, 0) for row in rows], pa.int32())
        seconds = np.asarray(pc.divide(events["event_ms"], 1_000))
        yield from by_bucket(events.append_column(ORDER, orders), seconds % self.buckets)


def completing(parts: Iterable[Part], counts: IngestCounts) -> TableRows:
    """Make the tables of a task's rows, as `Work`; its facts count them."""
    for _, tables in parts:
        for name, rows in tables.items():
            for batch in rows.to_batches():
                counts.add(name, batch)
            if name == _EVENTS:
                events = sequenced(cast("list[Event]", rows_of_arrow(rows)))
                yield name, batch_of_rows(INGESTED_TABLES[name], events)
            else:
                yield from ((name, batch) for batch in rows.to_batches())
