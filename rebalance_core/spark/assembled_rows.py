"""The tasks' work on evidence: first rows about groups and topics, then the tables in final form.

Rows are shuffled in between, so that an event gets its sequence number in the task that has all
events of the same moment.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rebalance_core.checks.packed_rows import bucket_of, by_bucket, pack
from rebalance_core.contracts import COLLECTED_TABLES
from rebalance_core.contracts.table import batch_of_rows, rows_of_arrow
from rebalance_core.ingest.group_tables import of_cluster, once, sequenced
from rebalance_core.ingest.rows import ORDER, Tables, by_name, merged
from rebalance_core.ingest.whole_cluster import KeyedEvidence
from rebalance_core.process.ingested_progress import (
    PROGRESS,
    ingested_progress,
    progress_evidence,
)
from rebalance_core.process.ingested_rows import IngestCounts
from rebalance_core.process.runtime import Part, TableRows
from rebalance_core.spark.evidence_chunks import (
    evidence_of_buckets,
)
from rebalance_core.spark.routed_rows import routed_batch

Batches = Iterable[pa.RecordBatch]

_EVENTS = "cluster_events"
OF_PROGRESS = "progress: "
"""The prefix of the inputs for progress that are not tables."""
_ROWS_AT_ONCE = 20_000


@dataclass(frozen=True, slots=True)
class AssembleTask:
    """Turns evidence into rows that lack only the sequence numbers of events; rows stay in their
    bucket.

    Attributes:
        keyed: What the evidence is used for.
        buckets: The number of buckets.
        progress: Whether to include the inputs for `queue_progress`.
    """

    keyed: KeyedEvidence
    buckets: int
    progress: bool = True

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
        """Yield the rows of groups and topics as `ROUTED_DDL`, with events in the bucket of their
        second and the inputs for progress in that of their topic.

        Args:
            tables: The tables by name.
            bucket: The bucket of all other rows.
        """
        for name, rows in by_name(once(tables)).items():
            for begin in range(0, len(rows), _ROWS_AT_ONCE):
                some = of_cluster(
                    name, rows[begin : begin + _ROWS_AT_ONCE], self.keyed.context.cluster
                )
                made = pa.Table.from_batches([batch_of_rows(COLLECTED_TABLES[name], some)])
                if self.progress:
                    yield from self._of_progress({name: made})
                if name != _EVENTS:
                    yield routed_batch(bucket, name, pack(made))
                    continue
                for number, part in self._by_second(made, some):
                    yield routed_batch(number, name, pack(part))

    def _of_progress(self, made: Mapping[str, pa.Table]) -> Iterator[pa.RecordBatch]:
        for name, rows in progress_evidence(made).items():
            for number, part in self._by_topic(rows):
                yield routed_batch(number, OF_PROGRESS + name, pack(part))

    def _by_topic(self, rows: pa.Table) -> Iterator[tuple[int, pa.Table]]:
        """Yield the rows of each topic in its bucket, and rows without a topic in every bucket."""
        if "topic" not in rows.column_names:
            yield from ((number, rows) for number in range(self.buckets))
            return
        without = rows.filter(rows["topic"].is_null())
        yield from ((number, without) for number in range(self.buckets) if len(without))
        rows = rows.filter(rows["topic"].is_valid())
        encoded = rows["topic"].combine_chunks().dictionary_encode()
        buckets = [bucket_of((topic,), self.buckets) for topic in encoded.dictionary.to_pylist()]
        if len(rows):
            yield from by_bucket(rows, np.array(buckets)[encoded.indices.to_numpy()])

    def _by_second(
        self, events: pa.Table, rows: list[dict[str, object]]
    ) -> Iterator[tuple[int, pa.Table]]:
        orders = pa.array([row.get(ORDER, 0) for row in rows], pa.int32())
        seconds = np.asarray(pc.divide(events["event_ms"], 1_000))
        yield from by_bucket(events.append_column(ORDER, orders), seconds % self.buckets)


def completing(parts: Iterable[Part], counts: IngestCounts) -> TableRows:
    """Make the tables of a task's rows, as `Work`; its facts count them."""
    for _, tables in parts:
        yield from _progress(tables)
        for name, rows in tables.items():
            if name.startswith(OF_PROGRESS):
                continue
            for batch in rows.to_batches():
                counts.add(name, batch)
            if name == _EVENTS:
                events = sequenced(rows_of_arrow(rows))
                yield name, batch_of_rows(COLLECTED_TABLES[name], events)
            else:
                yield from ((name, batch) for batch in rows.to_batches())


def _progress(tables: Mapping[str, pa.Table]) -> TableRows:
    """Yield the progress on all topics in a bucket."""
    evidence = {
        name.removeprefix(OF_PROGRESS): rows
        for name, rows in tables.items()
        if name.startswith(OF_PROGRESS)
    }
    yield from ((PROGRESS, batch) for batch in ingested_progress(evidence).to_batches())
