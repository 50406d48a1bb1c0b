"""What tasks do to check rows: each row alone, then the rows of each key together.

Between the two, rows are packed by bucket of their keys; afterwards the used rows and the rejected
ones are, with what was counted of them. What a task notes of all its used rows comes last.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Protocol, Self

import pyarrow as pa

from rebalance_core.checks.key_buckets import key_buckets
from rebalance_core.checks.packed_rows import by_bucket, pack, unpack
from rebalance_core.checks.reading.json_rows import ReadRows
from rebalance_core.checks.row_checks import Checked, by_keys, with_issues
from rebalance_core.contracts import ALL_TABLES
from rebalance_core.contracts.table import RAW, SOURCE

Batches = Iterable[pa.RecordBatch]


class Note(Protocol):
    """What a later step wants to know of used rows; it is pickled."""

    @classmethod
    def merged(cls, parts: Iterable[Self]) -> Self:
        """That of all these rows."""


Noting = Callable[[str, pa.Table], Note | None]
"""From used rows of a table to what they say, if that is something."""

KEYED_DDL = "bucket INT, name STRING, row_count INT, unknown STRING, chunk BINARY"
_KEYED = pa.schema(
    [
        ("bucket", pa.int32()),
        ("name", pa.string()),
        ("row_count", pa.int32()),
        ("unknown", pa.string()),
        ("chunk", pa.binary()),
    ]
)
CHECKED_DDL = (
    "name STRING, row_count BIGINT, bad BIGINT, unknown STRING, note BINARY, used BINARY, "
    "rejected BINARY"
)
_CHECKED = pa.schema(
    [
        ("name", pa.string()),
        ("row_count", pa.int64()),
        ("bad", pa.int64()),
        ("unknown", pa.string()),
        ("note", pa.binary()),
        ("used", pa.binary()),
        ("rejected", pa.binary()),
    ]
)
_ROWS_AT_ONCE = 1 << 17
"""So many rows are packed, or compared by their keys, together; more if one bucket has more."""


@dataclass(frozen=True, slots=True)
class RowTask:
    """Checks each row of one table alone.

    Attributes:
        name: Of the table.
        read: From batches to conformed rows.
        max_queue_nums: The most queues that a topic may have on a broker.
        buckets: How many buckets keys are spread over.
    """

    name: str
    read: Callable[[Batches], Iterator[ReadRows]]
    max_queue_nums: int
    buckets: int

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        """Rows of `KEYED_DDL`."""
        waiting: list[pa.Table] = []
        unknown: set[str] = set()
        for read in self.read(batches):
            table = ALL_TABLES[self.name]
            waiting.append(with_issues(table, read.rows, self.max_queue_nums))
            unknown |= read.unknown
            if sum(map(len, waiting)) >= _ROWS_AT_ONCE:
                yield from self._packed(waiting, unknown)
                waiting, unknown = [], set()
        yield from self._packed(waiting, unknown)

    def _packed(self, waiting: list[pa.Table], unknown: set[str]) -> Iterator[pa.RecordBatch]:
        if not waiting:
            return
        rows = pa.concat_tables(waiting)
        names = json.dumps(sorted(unknown))
        for bucket, part in by_bucket(rows, key_buckets(ALL_TABLES[self.name], rows, self.buckets)):
            yield _row(_KEYED, bucket, self.name, len(part), names, pack(part))


@dataclass(frozen=True, slots=True)
class KeyTask:
    """Compares the rows of each key; the rows of a bucket come together.

    Attributes:
        notings: Of the used rows; each gives notes of a class of its own.
    """

    notings: tuple[Noting, ...]

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        """Rows of `CHECKED_DDL`."""
        noted: dict[type[Note], Note] = {}
        for name, checked, unknown in _checked(batches):
            yield from _checked_rows(name, checked, unknown)
            for noting in self.notings:
                note = noting(name, checked.tables[name])
                if note is not None:
                    kind = type(note)
                    noted[kind] = kind.merged([noted[kind], note]) if kind in noted else note
        if noted:
            yield _row(_CHECKED, None, 0, 0, "[]", pickle.dumps([*noted.values()]), None, None)


def _checked(batches: Batches) -> Iterator[tuple[str, Checked, str]]:
    """Tables, some buckets of one at a time, and what in them are no columns."""
    waiting: list[dict[str, Any]] = []
    for _, chunks in groupby(_chunks(batches), key=lambda chunk: chunk["bucket"]):
        waiting += chunks
        if sum(chunk["row_count"] for chunk in waiting) >= _ROWS_AT_ONCE:
            yield from _checked_together(waiting)
            waiting = []
    yield from _checked_together(waiting)


def _checked_together(chunks: list[dict[str, Any]]) -> Iterator[tuple[str, Checked, str]]:
    by_table: dict[str, list[dict[str, Any]]] = {}
    for chunk in chunks:
        by_table.setdefault(chunk["name"], []).append(chunk)
    for name, of_table in by_table.items():
        rows = pa.concat_tables([unpack(chunk["chunk"]) for chunk in of_table])
        unknown = unknown_names(chunk["unknown"] for chunk in of_table)
        checked = by_keys(ALL_TABLES[name], rows.combine_chunks())
        yield name, checked, json.dumps(sorted(unknown))


def _checked_rows(name: str, checked: Checked, unknown: str) -> Iterator[pa.RecordBatch]:
    used, counts = checked.tables[name], checked.counts[name]
    rejected = pack(checked.rejected) if len(checked.rejected) else None
    first = pack(used.slice(0, _ROWS_AT_ONCE)) if len(used) else None
    yield _row(_CHECKED, name, counts.rows, counts.bad, unknown, None, first, rejected)
    for begin in range(_ROWS_AT_ONCE, len(used), _ROWS_AT_ONCE):
        packed = pack(used.slice(begin, _ROWS_AT_ONCE))
        yield _row(_CHECKED, name, 0, 0, "[]", None, packed, None)


def used_ddl(name: str) -> str:
    """The columns of used rows."""
    return f"{ALL_TABLES[name].plain_ddl}, {SOURCE} STRING, {RAW} STRING"


def unpacked(batches: Batches) -> Iterator[pa.RecordBatch]:
    """The rows that are packed in the only column."""
    for batch in batches:
        for chunk in batch.column(0):
            yield from unpack(chunk.as_buffer()).to_batches()


def unknown_names(texts: Iterable[str]) -> set[str]:
    """The names that `RowTask` found to be no columns."""
    return {name for text in texts for name in json.loads(text)}


def _chunks(batches: Batches) -> Iterator[dict[str, Any]]:
    for batch in batches:
        yield from batch.to_pylist()


def _row(schema: pa.Schema, *values: Any) -> pa.RecordBatch:
    arrays = [pa.array([v], f.type) for v, f in zip(values, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
