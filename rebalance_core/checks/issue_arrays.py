"""The columns beside a contract's: where a row came from, and what of it did not read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rebalance_core.contracts import Table
from rebalance_core.contracts.table import ISSUES_TYPE, RAW, READ_ISSUES, SOURCE, arrow_type

SHOWN_CHARACTERS = 200
"""Of a bad value in a message; the whole row is in `rejected.raw`."""


@dataclass(frozen=True, eq=False)
class Found:
    """One issue of some rows: their numbers, ascending, the code, and a message for each."""

    rows: np.ndarray
    code: str
    messages: Sequence[str]


def conformed_schema(table: Table) -> pa.Schema:
    """The contract's columns and `TECHNICAL`."""
    technical = [(SOURCE, pa.string()), (RAW, pa.string()), (READ_ISSUES, arrow_type(ISSUES_TYPE))]
    return pa.schema([*table.arrow_schema(), *technical])


def issues_array(rows: int, found: Iterable[Found]) -> pa.ListArray:
    """The issues of each of ``rows`` rows; those of one row in the order they are given."""
    parts = [each for each in found if len(each.rows)]
    numbers = np.concatenate([np.zeros(0, np.int64), *(each.rows for each in parts)])
    codes = np.repeat([each.code for each in parts], [len(each.rows) for each in parts])
    messages = [message for each in parts for message in each.messages]
    order = np.argsort(numbers, kind="stable")
    offsets = np.searchsorted(numbers[order], np.arange(rows + 1))
    struct = pa.StructArray.from_arrays(
        [
            pa.array(codes[order] if parts else [], pa.string()),
            pa.array([messages[n] for n in order], pa.string()),
        ],
        fields=list(arrow_type(ISSUES_TYPE).value_type),
    )
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), struct).cast(
        arrow_type(ISSUES_TYPE)
    )


def joined_issues(first: pa.ListArray, second: pa.ListArray) -> pa.ListArray:
    """The issues of both, row by row, those of the first before those of the second."""
    lengths = [np.asarray(each.value_lengths()) for each in (first, second)]
    if not lengths[0].any():
        return second
    if not lengths[1].any():
        return first
    rows = np.concatenate([np.repeat(np.arange(len(length)), length) for length in lengths])
    values = pa.concat_arrays([first.flatten(), second.flatten()])
    order = np.argsort(rows, kind="stable")
    offsets = np.concatenate([[0], np.cumsum(lengths[0] + lengths[1])])
    return pa.ListArray.from_arrays(
        pa.array(offsets, pa.int32()), values.take(pa.array(order))
    ).cast(arrow_type(ISSUES_TYPE))


def without_issues(rows: int) -> pa.ListArray:
    """No issue for each of ``rows`` rows."""
    return issues_array(rows, ())


def issue_counts(rejected: pa.Table | pa.RecordBatch) -> dict[str, int]:
    """How often each code occurs in rows of ``rejected``; a row may have several."""
    codes = pc.struct_field(pc.list_flatten(rejected["issues"]), "code")
    return {one["values"]: one["counts"] for one in pc.value_counts(codes).to_pylist()}
