"""Rows with the same key: equal rows are used once, differing rows not at all."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rebalance_core.checks.conform import (
    Issue,
)
from rebalance_core.checks.opening_state import GROUP_SETTINGS, is_of_state
from rebalance_core.checks.value_texts import as_text
from rebalance_core.contracts import Table
from rebalance_core.contracts.table import RAW, READ_ISSUES, SOURCE

_MOST_CODES = 2**62


def duplicate_keys(
    table: Table, rows: pa.Table, *, state_checked: bool = False
) -> tuple[np.ndarray, Issue]:
    """Compare the conformed rows that have the same key.

    Rows are equal if all columns except ``source`` match, because the same event may appear in two
    logs. Of equal rows, the one in the opening state is kept, or else the one with the smallest
    source. Rows with an unreadable field, or without a value that the key needs, have no key. The
    state takes precedence: if a row differs from it in more than settings, only that row has an
    issue.

    Args:
        table: The contract.
        rows: Conformed rows.
        state_checked: Whether each row of the opening state has a key.

    Returns:
        The numbers of rows that repeat a kept row, and the issue of rows that share their key with
        rows of different content.
    """
    none = np.zeros(0, np.int64)
    if not table.key or not len(rows):
        return none, Issue(none, "DUPLICATE_KEY", [])
    keyed = np.flatnonzero(_may_repeat(table, rows) if state_checked else has_key(table, rows))
    keys = rows.select(table.key)
    codes = _codes(keys.columns if len(keyed) == len(rows) else keys.take(keyed).columns)
    shared = keyed[np.bincount(codes)[codes] > 1] if len(keyed) else none
    several = rows.take(shared)
    groups = _codes([several.column(name) for name in table.key])
    names = [name for name in table.column_names if name != "source"]
    differ = _differ(groups, _codes([several.column(name) for name in names]))
    of_state = is_of_state(several)
    if of_state.any():
        names = [name for name in names if name not in GROUP_SETTINGS]
        from_state = _differ(groups, _codes([several.column(name) for name in names]))
        in_state = np.bincount(groups, weights=of_state)[groups] > 0
        differ = np.where(in_state, from_state & ~of_state, differ)
    order = _by_source(several, groups, of_state)
    first = np.unique(groups[order], return_index=True)[1] if len(order) else none
    repeat = np.ones(len(shared), bool)
    repeat[order[first]] = False
    differing = several.filter(pa.array(differ))
    times = np.bincount(groups)[groups[differ]] if len(groups) else none
    messages = _messages(table, differing, times)
    return shared[repeat], Issue(shared[differ], "DUPLICATE_KEY", messages)


def _may_repeat(table: Table, rows: pa.Table) -> np.ndarray:
    """Return `has_key` without rows of the state whose key no row of the input has."""
    of_state = is_of_state(rows)
    added = pa.array(np.flatnonzero(~of_state))
    numbers = np.flatnonzero(of_state)
    # times first: they exclude most rows, and are compared faster than names
    for name in sorted(table.key, key=lambda name: pa.types.is_string(rows[name].type)):
        earlier = rows[name].take(pa.array(numbers))
        numbers = numbers[np.asarray(pc.is_in(earlier, pc.unique(rows[name].take(added))))]
    may = ~of_state
    may[numbers] = True
    may &= has_key(table, rows)
    return may


def has_key(table: Table, rows: pa.Table | pa.RecordBatch) -> np.ndarray:
    """Return True for conformed rows with a key: all fields were read, and the key is complete."""
    keyed = pc.equal(pc.list_value_length(rows.column(READ_ISSUES)), 0)
    for column in table.columns:
        if column.name in table.key and not column.nullable:
            keyed = pc.and_(keyed, rows.column(column.name).is_valid())
    return np.asarray(keyed)


def _codes(columns: Iterable[pa.ChunkedArray]) -> np.ndarray:
    """Return a number for each row, the same for equal rows; nulls are equal to each other."""
    codes: np.ndarray | None = None
    count = 1
    for column in columns:
        of_column, distinct = _column_codes(column)
        if codes is None:
            codes, count = of_column, distinct
            continue
        if count * distinct >= _MOST_CODES:
            distinct_codes, codes = np.unique(codes, return_inverse=True)
            count = len(distinct_codes)
        codes = codes * distinct + of_column
        count *= distinct
    return np.zeros(0, np.int64) if codes is None else np.unique(codes, return_inverse=True)[1]


def _column_codes(column: pa.ChunkedArray) -> tuple[np.ndarray, int]:
    if pa.types.is_nested(column.type):
        column = pa.chunked_array([as_text(chunk) for chunk in column.chunks], pa.string())
    elif pa.types.is_floating(column.type):
        column = pc.add(column, 0.0)  # the zeros are equal
    encoded = column.dictionary_encode().unify_dictionaries()
    if not encoded.num_chunks:
        return np.zeros(0, np.int64), 1
    indices = [np.asarray(pc.fill_null(chunk.indices, -1)) for chunk in encoded.chunks]
    return np.concatenate(indices).astype(np.int64) + 1, len(encoded.chunk(0).dictionary) + 1


def _differ(groups: np.ndarray, contents: np.ndarray) -> np.ndarray:
    """Return True for rows of a group with more than one content; both are numbers from 0 on."""
    count = int(contents.max(initial=0)) + 1
    differ: np.ndarray = np.bincount(np.unique(groups * count + contents) // count)[groups] > 1
    return differ


def _by_source(rows: pa.Table, groups: np.ndarray, of_state: np.ndarray) -> np.ndarray:
    """Return the order of rows by group and then by place, those of the opening state first, then
    rows without a place.
    """
    columns: dict[str, pa.ChunkedArray | np.ndarray] = {"group": groups, "of input": ~of_state}
    for name in ("source", SOURCE, RAW):
        if name in rows.column_names:
            columns[f"{name} there"] = rows.column(name).is_valid()
            columns[name] = rows.column(name)
    table = pa.table(columns)
    return np.asarray(pc.sort_indices(table, sort_keys=[(n, "ascending") for n in columns]))


def _messages(table: Table, rows: pa.Table, times: np.ndarray) -> list[str]:
    keys = [rows.column(name).to_pylist() for name in table.key]
    return [
        f"{count} rows with different content have the key "
        + ", ".join(
            f"{name} {'null' if value is None else value}"
            for name, value in zip(table.key, key, strict=True)
        )
        + "; keep one"
        for count, key in zip(times, zip(*keys, strict=True), strict=True)
    ]
