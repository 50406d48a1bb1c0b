"""One task of the edits: whole groups and clusters, each for all histories at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from rebalance_core.engine.units import chunks
from rebalance_core.planning.sweep.history_names import cluster_of
from rebalance_core.planning.sweep.history_rows import HistoryRows
from rebalance_core.planning.variants import HistoryEdits


@dataclass(frozen=True, slots=True)
class EditTask:
    """What a task makes of the rows of whole groups; small enough to be sent to every task."""

    edits: HistoryEdits
    count: int
    columns: tuple[str, ...]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows of all histories, under the names that clusters have in them."""
        for chunk in chunks(batches):
            rows = HistoryRows(chunk, self.edits)
            for number in range(self.count):
                edited = rows.of(number).select(self.columns)
                yield from _named(edited, number).to_batches()


def _named(rows: pa.Table, number: int) -> pa.Table:
    suffix = pa.scalar(cluster_of("", number))
    named = pc.binary_join_element_wise(rows["cluster"], suffix, "")
    return rows.set_column(rows.column_names.index("cluster"), "cluster", named)
