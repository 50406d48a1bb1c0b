"""The SQL functions as pandas UDFs (Series to Series), for Spark versions without Arrow UDFs.

The work is done by `rebalance_core.kernels.functions`; this module only converts batches, which
accounts for the cost, because structs become dicts and back.
"""

import pandas as pd
import pyarrow as pa

from rebalance_core.kernels import functions as kernels
from rebalance_core.kernels.function_columns import (
    ALLOCATION,
    NUMBER,
    QUEUES,
    SQL_TYPES,
    TEXT,
    TEXTS,
    numbers_of,
)
from rebalance_core.model.errors import UsageError

EXACT = 2**53
"""From this number on, float64 is inexact; pandas uses float64 for integers in columns with
nulls.
"""


def rmq_allocate(strategy: pd.Series, queues: pd.Series, client_ids: pd.Series) -> pd.Series:
    """`rebalance_core.kernels.functions.rmq_allocate`."""
    return series_of(
        kernels.rmq_allocate(
            array_of("strategy", strategy, TEXT),
            array_of("queues", queues, QUEUES),
            array_of("client_ids", client_ids, TEXTS),
        )
    )


def try_rmq_allocate(strategy: pd.Series, queues: pd.Series, client_ids: pd.Series) -> pd.Series:
    """`rebalance_core.kernels.functions.try_rmq_allocate`."""
    return series_of(
        kernels.try_rmq_allocate(
            array_of("strategy", strategy, TEXT),
            array_of("queues", queues, QUEUES),
            array_of("client_ids", client_ids, TEXTS),
        )
    )


def rmq_allocate_error(strategy: pd.Series, queues: pd.Series, client_ids: pd.Series) -> pd.Series:
    """`rebalance_core.kernels.functions.rmq_allocate_error`."""
    return series_of(
        kernels.rmq_allocate_error(
            array_of("strategy", strategy, TEXT),
            array_of("queues", queues, QUEUES),
            array_of("client_ids", client_ids, TEXTS),
        )
    )


def rmq_assignment_diff(before: pd.Series, after: pd.Series) -> pd.Series:
    """`rebalance_core.kernels.functions.rmq_assignment_diff`."""
    return series_of(
        kernels.rmq_assignment_diff(
            array_of("before", before, ALLOCATION), array_of("after", after, ALLOCATION)
        )
    )


def rmq_pull_from_where(
    consumer_type: pd.Series,
    consume_from_where: pd.Series,
    topic: pd.Series,
    stored_offset: pd.Series,
    max_offset: pd.Series,
    timestamp_offset: pd.Series,
    version: pd.Series,
) -> pd.DataFrame:
    """`rebalance_core.kernels.functions.rmq_pull_from_where`; a struct is a DataFrame here."""
    starts = kernels.rmq_pull_from_where(
        array_of("consumer_type", consumer_type, TEXT),
        array_of("consume_from_where", consume_from_where, TEXT),
        array_of("topic", topic, TEXT),
        array_of("stored_offset", stored_offset, NUMBER),
        array_of("max_offset", max_offset, NUMBER),
        array_of("timestamp_offset", timestamp_offset, NUMBER),
        array_of("version", version, TEXT),
    )
    return pd.DataFrame({field.name: series_of(starts.field(field.name)) for field in starts.type})


def array_of(name: str, column: pd.Series, kind: pa.DataType) -> pa.Array:
    """Return a column as an Arrow array.

    Raises:
        UsageError: Its values have a different type, or are numbers that pandas rounded.
    """
    try:
        if kind == NUMBER:
            return _numbers(name, column)
        if pa.types.is_list(kind) and column.map(lambda value: isinstance(value, str)).any():
            raise TypeError(
                "a text is not a list, though pyarrow takes it for a list of characters"
            )
        # pyarrow would silently truncate 1.5 to 1, and pandas turns 1 into 1.0 in a column with
        # nulls
        return pa.Array.from_pandas(column, type=_with_floats(kind)).cast(kind)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise UsageError(f"{name} must be {SQL_TYPES[kind]}: {error}") from error


def _with_floats(kind: pa.DataType) -> pa.DataType:
    """Return the type with float64 in place of integers inside structs."""
    if pa.types.is_list(kind) and pa.types.is_struct(kind.value_type):
        return pa.list_(
            pa.struct(
                [
                    field.with_type(pa.float64()) if pa.types.is_integer(field.type) else field
                    for field in kind.value_type
                ]
            )
        )
    return kind


def _numbers(name: str, column: pd.Series) -> pa.Array:
    """Return a column of integers, or of integers as strings, which pandas does not round."""
    if column.dtype.kind == "f" and bool((column.abs() >= EXACT).any()):
        raise UsageError(
            f"{name}: pandas rounds whole numbers of 2^53 and above beside nulls; cast the column "
            "to STRING"
        )
    if column.dtype.kind == "f":
        return pa.Array.from_pandas(column, type=NUMBER)
    return numbers_of(name, pa.Array.from_pandas(column))


def series_of(array: pa.Array) -> pd.Series:
    """Return an Arrow array as a Series, keeping integers as integers."""
    column: pd.Series = array.to_pandas(integer_object_nulls=True)
    return column.astype(object) if isinstance(array, pa.Int64Array) else column
