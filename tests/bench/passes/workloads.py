"""Ways to get the rows of ``ownership``: the engine, and what it is compared with."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from zlib import crc32

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from rebalance_core.checks.digest import TableDigest
from rebalance_core.contracts import INPUT_TABLES, LEDGER_TABLES, REJECTED
from rebalance_core.contracts.table import TABLE
from rebalance_core.engine.fan_out import (
    GROUP,
    ROWS_PER_CHUNK,
    GroupedRows,
    fan_out,
    with_empty_events_if_missing,
)
from rebalance_core.engine.ledger_pass import (
    prepare_tables,
    reference_pass,
    rows_of,
)
from rebalance_core.engine.options import REFERENCE, VECTORIZED
from rebalance_core.kernels.engine_options import EngineOptions
from rebalance_core.kernels.table_columns import EVENTS, GROUPS
from rebalance_core.process.runtime import TableRows
from rebalance_core.process.stage_rows import RowsSeen
from rebalance_core.spark.routed_rows import routed_tables

OPTIONS = EngineOptions(queue_offsets_given=True, committed_offsets_given=True)
OWNERSHIP = LEDGER_TABLES["ownership"]
ROWS_PER_BATCH = 1 << 16
"""Output rows that travel at once."""

Batches = Iterable[pa.RecordBatch]
_FANNED = pa.unify_schemas([INPUT_TABLES[name].arrow_schema() for name in (EVENTS, GROUPS)]).append(
    pa.field(TABLE, pa.string())
)


@dataclass(frozen=True, slots=True)
class Owned:
    """`Work` over `routed_rows`: rows of ownership alone, of whole groups.

    Attributes:
        engine: `VECTORIZED` or `REFERENCE`.
        one_in: One in so many groups, by the hash of its name.
        number: Which of these shares.
        digested: The note, a `TableDigest`, is that of the rows; else it stays empty.
    """

    engine: str = VECTORIZED
    one_in: int = 1
    number: int = 0
    digested: bool = False

    def __call__(self, batches: Batches, digest: TableDigest, seen: RowsSeen) -> TableRows:
        """The rows of a task; none that it takes is counted."""
        for grouped in _grouped(batches):
            for name, batch in self._made(grouped):
                if name == OWNERSHIP.name:
                    if self.digested:
                        digest.add(batch)
                    yield name, batch

    def _made(self, grouped: GroupedRows) -> TableRows:
        whole = self.one_in == 1 and self.engine != REFERENCE
        for begin, end in grouped.chunks(ROWS_PER_CHUNK if whole else 1):
            if whole or self._in_share(grouped, begin):
                rows = grouped.tables_of(begin, end)
                if self.engine == REFERENCE:
                    yield from reference_pass(rows, OPTIONS)
                else:
                    yield from owned(rows, OPTIONS, names_encoded=True)

    def _in_share(self, grouped: GroupedRows, group: int) -> bool:
        name = f"{grouped.clusters[group]}/{grouped.groups[group]}"
        return crc32(name.encode()) % self.one_in == self.number % self.one_in


def owned(
    tables: Mapping[str, pa.Table], options: EngineOptions, *, names_encoded: bool
) -> TableRows:
    """What the kernels make of some groups for ``ownership``."""
    wanted = [OWNERSHIP.name]
    return rows_of(prepare_tables(tables, options, wanted), wanted, names_encoded=names_encoded)


def fanned_out(routed: DataFrame) -> DataFrame:
    """Events and settings of all groups as plain rows, which ``_table`` tells apart."""

    def run(batches: Batches) -> Iterator[pa.RecordBatch]:
        for grouped in _grouped(batches):
            for begin, end in grouped.chunks(ROWS_PER_CHUNK):
                for name, rows in grouped.tables_of(begin, end).items():
                    if name in (EVENTS, GROUPS):
                        named = rows.append_column(TABLE, pa.repeat(name, rows.num_rows))
                        tables = [_FANNED.empty_table(), named]
                        rows = pa.concat_tables(tables, promote_options="default")
                        yield from rows.select(_FANNED.names).to_batches()

    columns = {c.name: c.type for name in (EVENTS, GROUPS) for c in INPUT_TABLES[name].columns}
    ddl = ", ".join(f"`{name}` {kind}" for name, kind in (columns | {TABLE: "STRING"}).items())
    return routed.mapInArrow(run, ddl)


def _grouped(batches: Batches) -> Iterator[GroupedRows]:
    for _, tables in routed_tables(batches):
        yield fan_out(
            with_empty_events_if_missing({n: t for n, t in tables.items() if n != REJECTED.name})
        )


def per_group(fanned: DataFrame) -> DataFrame:
    """The same kernel called on one group's rows at a time by applyInPandas."""
    options = EngineOptions(queue_offsets_given=False, committed_offsets_given=False)

    def one_group(group: Any) -> Any:
        rows = pa.Table.from_pandas(group, _FANNED, preserve_index=False)
        tables = {name: rows.filter(pc.equal(rows[TABLE], name)) for name in (EVENTS, GROUPS)}
        made = owned(tables, options, names_encoded=False)
        batches = [batch for name, batch in made if name == OWNERSHIP.name]
        return pa.Table.from_batches(batches, OWNERSHIP.arrow_schema()).to_pandas()

    return fanned.groupBy(*GROUP).applyInPandas(one_group, OWNERSHIP.plain_ddl)


def from_memory(spark: SparkSession, sample: pa.RecordBatch, rows: int, tasks: int) -> DataFrame:
    """A mapInArrow that only yields: as many rows of ownership, all from memory.

    Args:
        spark: The session.
        sample: Rows to yield again and again.
        rows: How many in all.
        tasks: By how many tasks.
    """
    share = -(-rows // tasks)
    data, schema = sample.serialize().to_pybytes(), sample.schema

    def give(batches: Batches) -> Iterator[pa.RecordBatch]:
        batch = pa.ipc.read_record_batch(pa.py_buffer(data), schema)
        for asked in batches:
            for number in asked.column(0).to_pylist():
                left = min(share, rows - number * share)
                while left > 0:
                    yield batch.slice(0, min(left, batch.num_rows, ROWS_PER_BATCH))
                    left -= min(left, batch.num_rows, ROWS_PER_BATCH)

    return spark.range(0, tasks, 1, tasks).mapInArrow(give, OWNERSHIP.plain_ddl)
