"""Converts arrays of codes into rows of a ledger table."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from rebalance_core.contracts import LEDGER_TABLES
from rebalance_core.kernels.codes import encoded
from rebalance_core.kernels.segments import NEVER, AnyInts, Bools, Ints

if TYPE_CHECKING:
    from rebalance_core.kernels.ownership.prepared_groups import PreparedGroups

NAMES = pa.dictionary(pa.int32(), pa.string())
"""The type of names as returned by `encoded`."""
CODED = ("ownership", "diffs", "pull_starts")
"""The tables with coded names, because they contain most of the rows."""


def table_rows(
    table: str, columns: Mapping[str, Any], *, names_encoded: bool = False
) -> pa.RecordBatch:
    """Return a batch with exactly the columns of the contract, including derived columns.

    Args:
        table: the name of the ledger table.
        columns: the other columns by name: numpy or Arrow arrays of the column's type, or names as
            returned by `encoded`.
        names_encoded: whether columns of names stay encoded, with the type `NAMES`.
    """
    schema = coded_schema(table) if names_encoded else plain_schema(table)
    derived = LEDGER_TABLES[table].derived
    arrays = {}
    for field in schema:
        if field.name not in derived:
            values = columns[field.name]
            array = values if isinstance(values, pa.Array) else pa.array(values)
            arrays[field.name] = array if array.type == field.type else array.cast(field.type)
    for name, column in derived.items():
        arrays[name] = column.array(*(arrays[other] for other in column.of))
    return pa.RecordBatch.from_arrays([arrays[name] for name in schema.names], schema=schema)


@cache
def plain_schema(table: str) -> pa.Schema:
    """Return the columns of a ledger table as in its contract."""
    return LEDGER_TABLES[table].arrow_schema()


@cache
def coded_schema(table: str) -> pa.Schema:
    """Return the columns of a ledger table, with strings as `NAMES`."""
    return pa.schema(
        field.with_type(NAMES) if field.type == pa.string() else field
        for field in plain_schema(table)
    )


def group_columns(prepared: PreparedGroups, group: Ints) -> dict[str, pa.Array]:
    """Return ``cluster`` and ``consumer_group`` of each row."""
    names = prepared.encoded.names
    return {
        "cluster": encoded(names.clusters, group),
        "consumer_group": encoded(names.groups, group),
    }


def span_columns(prepared: PreparedGroups, first: Ints, end: Ints) -> dict[str, pa.Array]:
    """Return the columns of rows that span epochs of a group.

    Args:
        prepared: the epochs.
        first: the first epoch of each row.
        end: the epoch after the last; null at the end of the group's epochs.
    """
    epochs = prepared.epochs
    is_open = end == epochs.of_group[epochs.group[first] + 1]
    shown_end = np.where(is_open, first, end)
    return {
        "from_epoch": pa.array(epochs.number[first]),
        "to_epoch": pa.array(epochs.number[shown_end], mask=is_open),
        "from_ms": pa.array(epochs.from_ms[first]),
        "to_ms": pa.array(epochs.from_ms[shown_end], mask=is_open),
    }


def until(values: Ints) -> pa.Array:
    """Return the instants, with null for `NEVER`."""
    return pa.array(values, mask=values == NEVER)


def nullable(values: Any, valid: Bools) -> pa.Array:
    """Return the known values, with null for unknown ones."""
    return pa.array(values, mask=~valid)


def dictionary_array(choices: tuple[str, ...], codes: AnyInts) -> pa.DictionaryArray:
    """Return the word for each code; -1 is null."""
    return encoded(pa.array(choices, pa.string()), codes)
