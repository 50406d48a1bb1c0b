"""Rows as one binary value, so that what is kept or sent between tasks moves at memory speed.

A row with many columns costs microseconds on its way from the JVM to Python, mostly for nulls.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Self
from zlib import crc32

import numpy as np
import pyarrow as pa


def pack(rows: pa.Table) -> bytes:
    """Return the rows, compressed."""
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="lz4")
    with pa.ipc.new_stream(sink, rows.schema, options=options) as writer:
        writer.write_table(rows)
    packed: bytes = sink.getvalue().to_pybytes()
    return packed


def one_row(schema: pa.Schema, *values: Any) -> pa.RecordBatch:
    """Return a single row of these values."""
    arrays = [pa.array([v], f.type) for v, f in zip(values, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def arrow_schema_of(ddl: str) -> pa.Schema:
    """Return the Arrow schema of the plain columns of a Spark DDL string.

    >>> arrow_schema_of("name STRING, chunk BINARY").types
    [DataType(string), DataType(binary)]
    """
    columns = (column.split(" ") for column in ddl.split(", "))
    return pa.schema([(name, _KINDS[kind]) for name, kind in columns])


_KINDS = {"INT": pa.int32(), "BIGINT": pa.int64(), "STRING": pa.string(), "BINARY": pa.binary()}


def unpack(packed: bytes | pa.Buffer) -> pa.Table:
    """Return the rows that `pack` compressed."""
    return pa.ipc.open_stream(packed).read_all()


class PackedTables:
    """A frozen dataclass whose fields are tables: pickled as by `pack`.

    Arrow pickles whole buffers, which are many times as large as the rows of a slice or of a small
    aggregate.
    """

    SCHEMAS: ClassVar[Mapping[str, pa.Schema]]
    """The schema of each field."""

    @classmethod
    def of(cls, **tables: pa.Table) -> Self:
        """Return an instance with these tables and empty tables for the rest."""
        return cls(
            **{
                name: tables[name].cast(schema) if name in tables else schema.empty_table()
                for name, schema in cls.SCHEMAS.items()
            }
        )

    @classmethod
    def joined(cls, parts: Iterable[Self]) -> dict[str, pa.Table]:
        """Return the rows of all parts, by field."""
        all_of = [cls.of(), *parts]
        return {name: pa.concat_tables(getattr(p, name) for p in all_of) for name in cls.SCHEMAS}

    def __reduce__(self) -> tuple[Any, ...]:
        values = vars(self)
        return _unpacked, (type(self), tuple(values), tuple(map(pack, values.values())))


def _unpacked(made: type, names: tuple[str, ...], packed: tuple[bytes, ...]) -> Any:
    return made(**dict(zip(names, map(unpack, packed), strict=True)))


def bucket_of(key: Sequence[str], buckets: int) -> int:
    """Return the bucket of a key, the same on every machine.

    >>> bucket_of(("c", "g"), 8) == bucket_of(["c", "g"], 8) < 8
    True
    """
    return crc32("\0".join(key).encode()) % buckets


def by_bucket(
    rows: pa.Table, buckets: np.ndarray, numbers: np.ndarray | None = None
) -> Iterator[tuple[int, pa.Table]]:
    """Yield the rows of each non-empty bucket, in their order.

    Args:
        rows: any.
        buckets: the bucket of each row, or of each of ``numbers``.
        numbers: the numbers of rows that may be duplicates.

    >>> table = pa.table({"x": [1, 2, 3]})
    >>> [(bucket, part["x"].to_pylist()) for bucket, part in by_bucket(table, np.array([1, 0, 1]))]
    [(0, [2]), (1, [1, 3])]
    """
    order = np.argsort(buckets, kind="stable")
    distinct, first = np.unique(buckets[order], return_index=True)
    taken = rows.take(pa.array(order if numbers is None else numbers[order])).combine_chunks()
    for bucket, begin, end in zip(
        distinct, first, np.append(first[1:], len(order))[: len(first)], strict=True
    ):
        yield int(bucket), taken.slice(begin, end - begin)


def by_key(rows: pa.Table, names: Sequence[str]) -> Iterator[tuple[tuple[Any, ...], pa.Table]]:
    """Yield the rows of each key, in the order in which keys first occur.

    >>> table = pa.table({"x": ["b", "a", "b"], "y": [1, 2, 3]})
    >>> [(key, part["y"].to_pylist()) for key, part in by_key(table, ["x"])]
    [(('b',), [1, 3]), (('a',), [2])]
    """
    numbers: dict[tuple[Any, ...], int] = {}
    keys = zip(*(rows[name].to_pylist() for name in names), strict=True)
    number = np.array([numbers.setdefault(key, len(numbers)) for key in keys], np.int64)
    for key, (_, part) in zip(numbers, by_bucket(rows, number), strict=True):
        yield key, part
