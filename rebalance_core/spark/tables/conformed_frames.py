"""Any DataFrame as a contract table: types, missing columns, and what could not be read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import pyarrow as pa
from pyspark.sql import DataFrame, types

from rebalance_core.checks.conform import conform as conformed
from rebalance_core.checks.conform import refuse_missing_columns
from rebalance_core.contracts import Table
from rebalance_core.contracts.table import ISSUES_TYPE
from rebalance_core.contracts.technical_columns import RAW, READ_ISSUES, SOURCE, TECHNICAL

Batches = Iterable[pa.RecordBatch]


def conform(table: Table, frame: DataFrame) -> DataFrame:
    """The frame with exactly the columns of ``table`` in order and type, and `TECHNICAL`.

    Missing nullable columns are added as null, unknown ones dropped. A value that is not of the
    contract's type becomes null and a ``BAD_TYPE`` in ``_read_issues``; nothing is nulled
    silently. NaN (a gap, for pandas) is null. A conformed frame is returned as it is.

    Raises:
        InputRefused: columns that may not be null are missing; all of them are named.
    """
    refuse_missing_columns(table, frame.columns)
    present = {field.name: field.dataType for field in frame.schema.fields}
    wanted = {column.name: _data_type(column.type) for column in table.columns}
    if set(TECHNICAL) <= set(present) and all(present.get(n) == t for n, t in wanted.items()):
        return frame.select(*table.column_names, *TECHNICAL)
    return frame.mapInArrow(_task(table), conformed_ddl(table))


def conformed_ddl(table: Table) -> str:
    """The columns of a conformed frame."""
    return f"{table.plain_ddl}, {SOURCE} STRING, {RAW} STRING, {READ_ISSUES} {ISSUES_TYPE}"


def _task(table: Table) -> Callable[[Batches], Iterator[pa.RecordBatch]]:
    def run(batches: Batches) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield from conformed(table, pa.Table.from_batches([batch])).to_batches()

    return run


def _data_type(sql_type: str) -> types.DataType:
    # the contracts' few types; comparing with a frame's schema must not depend on null flags
    return {
        "STRING": types.StringType(),
        "BIGINT": types.LongType(),
        "INT": types.IntegerType(),
        "BOOLEAN": types.BooleanType(),
        "DOUBLE": types.DoubleType(),
        "ARRAY<STRING>": types.ArrayType(types.StringType()),
        "MAP<STRING, STRING>": types.MapType(types.StringType(), types.StringType()),
    }[sql_type]
