"""All evidence on one group or topic to the rows of its tables, each as a text, in one task."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator

import pyarrow as pa

from rebalance_core.ingest.cluster_context import ClusterContext
from rebalance_core.ingest.evidence.evidence import Evidence
from rebalance_core.ingest.evidence.evidence_table import pieces_of
from rebalance_core.ingest.rows import ORDER, Tables

ROWS_DDL = f"table_name STRING, {ORDER} INT, row STRING"
ROWS_SCHEMA = pa.schema([("table_name", pa.string()), (ORDER, pa.int32()), ("row", pa.string())])

_BATCH_ROWS = 4096

Assemble = Callable[[tuple[pa.Scalar, ...], Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
"""From a key and its evidence to rows of `ROWS_DDL`, both batch by batch."""


def assembling(
    tables_of: Callable[[str, Iterable[Evidence], ClusterContext], Tables], context: ClusterContext
) -> Assemble:
    """What a task does with the evidence on one key.

    A group may have a million lines: they come, and its rows go, in batches, as Spark takes the
    annotations to say.

    Args:
        tables_of: `group_tables` or `topic_tables`.
        context: of the cluster.
    """

    def assemble(
        key: tuple[pa.Scalar, ...], batches: Iterator[pa.RecordBatch]
    ) -> Iterator[pa.RecordBatch]:
        return row_batches(tables_of(key[0].as_py(), pieces_of(batches), context))

    return assemble


def row_batches(tables: Tables) -> Iterator[pa.RecordBatch]:
    """The rows of all tables as `ROWS_SCHEMA`, each row as JSON."""
    for name, rows in tables.items():
        for begin in range(0, len(rows), _BATCH_ROWS):
            some = rows[begin : begin + _BATCH_ROWS]
            orders = [row.get(ORDER, 0) for row in some]
            texts = [json.dumps({k: v for k, v in row.items() if k != ORDER}) for row in some]
            columns = zip(([name] * len(some), orders, texts), ROWS_SCHEMA, strict=True)
            arrays = [pa.array(column, field.type) for column, field in columns]
            yield pa.RecordBatch.from_arrays(arrays, schema=ROWS_SCHEMA)
