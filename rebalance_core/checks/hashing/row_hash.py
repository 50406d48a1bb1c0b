"""A 64-bit hash of each row of a table, equal to that of `rebalance_core.spark.tables.write`.

Spark's ``xxhash64(isnull(a), a, isnull(b), b, …)``: the hash of each value is the seed of the next.
Rows that begin alike, as those of one group do, are hashed once as long as they are alike.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rebalance_core.checks.casts.to_json import json_of_values
from rebalance_core.checks.hashing.xxhash64 import (
    SEED,
    Hashes,
    hash_doubles,
    hash_ints,
    hash_longs,
    hash_texts,
    hash_zeros,
)
from rebalance_core.contracts import Table
from rebalance_core.contracts.table import Column, arrow_type

BLOCK_ROWS = 32_768
"""Hashed at once: what a step needs stays in the processor's cache."""
_RUNS_WORTH_IT = 2  # rows a run must have on average


def row_hashes(table: Table, rows: pa.RecordBatch) -> np.ndarray:
    """The hashes of rows with the table's columns, int64."""
    return column_hashes(table.columns, rows)


def column_hashes(of: Iterable[Column], rows: pa.RecordBatch) -> np.ndarray:
    """The hashes of some columns of the rows, int64."""
    columns = [_hashable(rows.column(c.name), c.type) for c in of]
    hashes = np.empty(len(rows), np.int64)
    for begin in range(0, len(rows), BLOCK_ROWS):
        block = [column.slice(begin, BLOCK_ROWS) for column in columns]
        hashes[begin : begin + BLOCK_ROWS] = _block_hashes(block).view(np.int64)
    return hashes


def _hashable(values: pa.Array, sql_type: str) -> pa.Array:
    """The values with the contract's type; nested ones as the JSON text that is hashed."""
    wanted = arrow_type(sql_type)
    if pa.types.is_dictionary(values.type):
        if values.type.value_type == wanted:
            return values
        values = values.dictionary_decode()
    values = values if values.type == wanted else values.cast(wanted)
    if pa.types.is_map(wanted):
        values = _sorted_entries(values)  # the order of entries means nothing
    if pa.types.is_nested(wanted):
        # the hash of an array does not tell [null, a] from [a, null]; its JSON does
        return json_of_values(values, null_fields=True)
    return values


def _sorted_entries(values: pa.MapArray) -> pa.ListArray:
    """Maps as ``array_sort(map_entries(…))``."""
    offsets = np.asarray(values.offsets)
    first, count = int(offsets[0]), int(offsets[-1] - offsets[0])
    keys, items = values.keys.slice(first, count), values.items.slice(first, count)
    row = np.repeat(np.arange(len(values)), np.diff(offsets))
    # nulls come first: false before true
    entries = {"row": row, "key": keys, "there": items.is_valid(), "value": items}
    order = pc.sort_indices(pa.table(entries), sort_keys=[(name, "ascending") for name in entries])
    names = ["key", "value"]
    sorted_entries = pa.StructArray.from_arrays([keys.take(order), items.take(order)], names)
    moved = pa.array(offsets - first, pa.int32())
    return pa.ListArray.from_arrays(moved, sorted_entries, mask=values.is_null())


@dataclass(frozen=True, eq=False)
class _Runs:
    """Hashes of runs of rows that are alike so far; ``ends`` is None once each row has its own."""

    ends: np.ndarray | None
    hashes: Hashes


def _block_hashes(columns: list[pa.Array]) -> Hashes:
    rows = len(columns[0])
    runs = _Runs(np.array([rows]), np.array([SEED], np.uint64))
    for column in columns:
        runs = _split(runs, column, rows)
        if runs.ends is not None:
            column = column.take(pa.array(_starts(runs.ends)))
        runs = _Runs(runs.ends, _hash_values(column, runs.hashes))
    return runs.hashes if runs.ends is None else np.repeat(runs.hashes, _lengths(runs.ends))


def _starts(ends: np.ndarray) -> np.ndarray:
    return np.concatenate([[0], ends[:-1]])


def _lengths(ends: np.ndarray) -> np.ndarray:
    return np.diff(ends, prepend=0)


def _split(runs: _Runs, column: pa.Array, rows: int) -> _Runs:
    """The runs cut where the column changes, or one hash a row if that leaves few alike."""
    if runs.ends is None:
        return runs
    last = _last_of_runs(column)
    last[runs.ends - 1] = True
    ends = np.flatnonzero(last) + 1
    if len(ends) * _RUNS_WORTH_IT > rows:
        return _Runs(None, np.repeat(runs.hashes, _lengths(runs.ends)))
    return _Runs(ends, runs.hashes[np.searchsorted(runs.ends, ends)])


def _last_of_runs(column: pa.Array) -> np.ndarray:
    """True where the next value is another one, or none."""
    last = np.zeros(len(column), np.bool_)
    values = column.indices if pa.types.is_dictionary(column.type) else column
    if values.null_count or not pa.types.is_integer(values.type):
        last[np.asarray(pc.run_end_encode(values).run_ends) - 1] = True
    else:
        numbers = np.asarray(values)
        np.not_equal(numbers[1:], numbers[:-1], out=last[:-1])
    return last


def _hash_values(values: pa.Array, seeds: Hashes) -> Hashes:
    if not values.null_count:
        return _hash_present(values, hash_zeros(seeds))
    nulls = np.asarray(values.is_null())
    seeds = hash_ints(nulls, seeds)
    there = np.flatnonzero(~nulls)
    if len(there):
        seeds[there] = _hash_present(values.take(pa.array(there)), seeds[there])
    return seeds  # xxhash64 passes over a null


def _hash_present(values: pa.Array, seeds: Hashes) -> Hashes:
    kind = values.type
    if pa.types.is_dictionary(kind):
        codes = np.asarray(values.indices)
        if pa.types.is_string(kind.value_type):
            octets, starts, lengths = _text_places(values.dictionary)
            return hash_texts(octets, starts[codes], lengths[codes], seeds)
        values = values.dictionary_decode()
        kind = values.type
    if pa.types.is_string(kind):
        return hash_texts(*_text_places(values), seeds)
    numbers = values.to_numpy(zero_copy_only=False)
    if pa.types.is_int64(kind):
        return hash_longs(numbers, seeds)
    if pa.types.is_float64(kind):
        return hash_doubles(numbers, seeds)
    return hash_ints(numbers, seeds)


def _text_places(texts: pa.Array) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The bytes of all texts, where each begins, and how many it has."""
    _, offsets, data = texts.buffers()
    ends = np.frombuffer(offsets, np.int32)[texts.offset :][: len(texts) + 1].astype(np.int64)
    first, last = (int(ends[0]), int(ends[-1])) if len(texts) else (0, 0)
    octets = np.zeros(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
    return octets[first:last], ends[:-1] - first, np.diff(ends)
