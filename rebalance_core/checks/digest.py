"""Counts and fingerprints a table's rows while they are written, from a hash of each row.

A hash depends only on the values: not on the platform, Python's hash seed, the types that hold the
values, or other rows. Arithmetic is modulo 2**64.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rebalance_core.contracts import Table
from rebalance_core.contracts.table import Column, arrow_type

DIGEST_HEX_DIGITS = 32
BLOCK_ROWS = 32_768
"""Rows hashed at once, so that a step's data stays in the processor's cache."""
_UNITS_AT_ONCE = 1 << 16
"""Bytes of strings or elements of lists hashed at once, for the same reason; a longer one is hashed
whole."""
_LOW = np.uint64(0xFFFFFFFF)
_NULL = np.uint64(0xA0761D6478BD642F)  # wyhash's first secret: any odd number
_BASE = 0xE7037ED1A0B428DB  # odd, so that it has an inverse
_INVERSE = pow(_BASE, -1, 2**64)
_SECOND = np.uint64(0x8EBC6AF09C88C6E3)

Hashes = np.ndarray[tuple[int], np.dtype[np.uint64]]


@dataclass(frozen=True, slots=True)
class TableWritten:
    """The number of rows written, and a digest that depends only on the rows, not on their order or
    files.
    """

    rows: int
    digest: str


def table_written(rows: int, total: int) -> TableWritten:
    """Return the record of this many rows whose hashes add up to ``total``."""
    text = f"{rows}:{total}".encode()
    return TableWritten(rows, hashlib.sha256(text).hexdigest()[:DIGEST_HEX_DIGITS])


@dataclass(slots=True)
class TableDigest:
    """Takes batches of a table's rows in any order; digests of parts can be added.

    Attributes:
        table: the contract; batches have its columns, possibly among others.
        rows: number of rows added.
        total: sum of their hashes.
    """

    table: Table
    rows: int = field(default=0)
    total: int = field(default=0)

    def add(self, rows: pa.RecordBatch | pa.Table) -> None:
        """Add rows; values of other types are cast to the contract's types."""
        self.rows += len(rows)
        self.total += hash_sum(self.table.columns, rows)

    def merge(self, other: TableDigest) -> None:
        """Add the rows of another digest of the same table."""
        self.rows += other.rows
        self.total += other.total

    @property
    def result(self) -> TableWritten:
        """The number of rows and the digest of the added rows."""
        return table_written(self.rows, self.total)


def hash_sum(columns: Sequence[Column], rows: pa.RecordBatch | pa.Table) -> int:
    """Return the sum of the rows' `column_hashes`, independent of the order of rows."""
    total = 0
    for batch in [rows] if isinstance(rows, pa.RecordBatch) else rows.to_batches():
        hashes = column_hashes(columns, batch)
        # the sum of 64-bit numbers does not fit into 64 bits, but that of their halves does
        total += (int((hashes >> np.uint64(32)).sum()) << 32) + int((hashes & _LOW).sum())
    return total


def column_hashes(columns: Iterable[Column], rows: pa.RecordBatch) -> Hashes:
    """Return a hash of some columns of each row; the columns' order and number matter."""
    values = [_typed(rows.column(c.name), arrow_type(c.type)) for c in columns]
    hashes = np.empty(len(rows), np.uint64)
    for begin in range(0, len(rows), BLOCK_ROWS):
        block = [
            _hashes(each.slice(begin, BLOCK_ROWS))
            if isinstance(each, pa.Array)
            else each[begin : begin + BLOCK_ROWS]
            for each in values
        ]
        hashes[begin : begin + BLOCK_ROWS] = _together(block, min(len(rows) - begin, BLOCK_ROWS))
    return hashes


def _typed(values: pa.Array, wanted: pa.DataType) -> pa.Array | Hashes:
    """Return the values in the contract's type, and hashes of a dictionary's distinct values."""
    type_read = values.type
    if not pa.types.is_dictionary(type_read):
        return values if type_read == wanted else values.cast(wanted)
    if len(values.dictionary) > len(values):
        return values.dictionary_decode().cast(wanted)
    hashes = np.append(_hashes(values.dictionary.cast(wanted)), _NULL)
    codes = values.indices
    if values.null_count:
        codes = pc.fill_null(codes.cast(pa.int64()), -1)
    taken: Hashes = hashes.take(np.asarray(codes))
    return taken


def _together(parts: Iterable[Hashes], rows: int) -> Hashes:
    """Return a hash per row of its values' mixed hashes, each with its own factor."""
    total: Hashes = np.zeros(rows, np.uint64)
    factor = 1
    for part in parts:
        factor = factor * _BASE % 2**64
        total += part * np.uint64(factor)
    return _mixed(total)


def _hashes(values: pa.Array) -> Hashes:
    """Return a mixed hash of each value of any type."""
    kind = values.type
    if values.null_count == len(values):
        return np.broadcast_to(_NULL, len(values))
    if pa.types.is_string(kind):
        encoded = values.dictionary_encode()  # most texts occur many times
        octets, lengths = _octets(encoded.dictionary)
        codes = np.asarray(pc.fill_null(encoded.indices, 0))
        hashes: Hashes = _mixed(_in_order(octets, lengths, plus=1)).take(codes)
    elif pa.types.is_map(kind):
        hashes = _mixed(_entries(values))
    elif pa.types.is_list(kind):
        lengths = np.asarray(pc.fill_null(pc.list_value_length(values), 0))
        hashes = _mixed(_in_order(_hashes(values.flatten()), lengths))
    elif pa.types.is_struct(kind):
        hashes = _together(map(_hashes, values.flatten()), len(values))
    else:
        hashes = _mixed(_numbers(values))
    if values.null_count:
        np.copyto(hashes, _NULL, where=np.asarray(values.is_null()))
    return hashes


def _numbers(values: pa.Array) -> Hashes:
    """Return integers and booleans unchanged, doubles by their bits; both zeros are equal."""
    zero = False if pa.types.is_boolean(values.type) else 0
    plain = values.fill_null(zero) if values.null_count else values
    numbers = plain.to_numpy(zero_copy_only=False)
    if pa.types.is_floating(values.type):
        numbers = np.where(np.isnan(numbers), np.nan, numbers + 0.0).view(np.int64)
    whole: Hashes = numbers.astype(np.int64, copy=False).view(np.uint64)
    return whole


def _octets(texts: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """Return all strings' bytes, and the number of bytes of each; none may be null."""
    _, offsets, data = texts.buffers()
    ends = np.frombuffer(offsets, np.int32)[texts.offset :][: len(texts) + 1]
    octets = np.frombuffer(data or b"", np.uint8)[ends[0] : ends[-1]]
    return octets, np.diff(ends)


def _in_order(units: np.ndarray, lengths: np.ndarray, plus: int = 0) -> Hashes:
    """Return a polynomial of each stretch's units and its length, so that their order matters.

    Args:
        units: those of all stretches.
        lengths: of each stretch.
        plus: added to each unit.
    """
    ends = np.cumsum(lengths)
    hashes = lengths.astype(np.uint64) * _SECOND
    first = begin = 0
    while first < len(lengths):
        most = np.searchsorted(ends, begin + _UNITS_AT_ONCE, side="right")
        last = max(int(most), first + 1)
        end = int(ends[last - 1])
        hashes[first:last] += _polynomials(
            units[begin:end] + np.uint64(plus), ends[first:last] - begin, lengths[first:last]
        )
        first, begin = last, end
    return hashes


def _polynomials(units: Hashes, ends: np.ndarray, lengths: np.ndarray) -> Hashes:
    """Return the polynomial of the units of each stretch; the stretches fill ``units``.

    The difference of two running sums is the polynomial times a power of the base.
    """
    powers, inverses = _powers_up_to(len(units))
    sums = np.zeros(len(units) + 1, np.uint64)
    np.cumsum(units * powers[: len(units)], out=sums[1:])
    starts = ends - lengths
    hashes: Hashes = (sums[ends] - sums[starts]) * inverses[starts]
    return hashes


def _powers_up_to(most: int) -> tuple[Hashes, Hashes]:
    """Return the powers of the base and of its inverse, from 0 to at least ``most``."""
    return _kept_powers() if most <= _UNITS_AT_ONCE else _both_powers(most + 1)


@cache
def _kept_powers() -> tuple[Hashes, Hashes]:
    return _both_powers(_UNITS_AT_ONCE + 1)


def _both_powers(count: int) -> tuple[Hashes, Hashes]:
    return _powers(_BASE, count), _powers(_INVERSE, count)


def _powers(base: int, count: int) -> Hashes:
    factors = np.full(count, base, np.uint64)
    factors[0] = 1
    powers: Hashes = np.multiply.accumulate(factors)
    return powers


def _entries(maps: pa.MapArray) -> Hashes:
    """Return the sum of each map's entries, independent of their order, and their number."""
    offsets = np.asarray(maps.offsets).astype(np.int64)
    first, count = offsets[0], offsets[-1] - offsets[0]
    columns = (maps.keys.slice(first, count), maps.items.slice(first, count))
    entries = _together(map(_hashes, columns), count)
    sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(entries)])
    lengths = np.diff(offsets)
    hashes: Hashes = np.diff(sums[offsets - first])
    return hashes + lengths.astype(np.uint64) * _SECOND


def _mixed(hashes: Hashes) -> Hashes:
    """Return numbers whose bits depend on all input bits: the steps of splitmix64."""
    hashes = hashes + _SECOND
    shifted = hashes >> np.uint64(30)
    hashes ^= shifted
    hashes *= np.uint64(0xBF58476D1CE4E5B9)
    hashes ^= np.right_shift(hashes, np.uint64(27), out=shifted)
    hashes *= np.uint64(0x94D049BB133111EB)
    hashes ^= np.right_shift(hashes, np.uint64(31), out=shifted)
    return hashes
