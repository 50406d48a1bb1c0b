"""Evidence, refusals and counts as Arrow rows: what travels between the tasks of a job."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict

import pyarrow as pa

from rebalance_core.ingest.evidence.evidence import Evidence
from rebalance_core.ingest.evidence.fields import OneOfEach
from rebalance_core.ingest.evidence.repeats import Repeats
from rebalance_core.ingest.fact import Unread
from rebalance_core.ingest.file_reader import FileStats

REFUSED, COUNTED = "refused", "counted"
"""Parts beside those of evidence: an `Unread`, and the `FileStats` of one file or split."""

Pieces = Iterable[Evidence | Unread | FileStats]
"""What a file states, what of it could not be read, and in the end how much was understood."""

EVIDENCE_SCHEMA = pa.schema(
    [
        ("part", pa.string()),
        ("key", pa.string()),
        ("kind", pa.string()),
        ("at_ms", pa.int64()),
        ("place", pa.string()),
        ("position", pa.int64()),
        ("source", pa.string()),
        ("fields", pa.string()),
    ]
)

_BATCH_ROWS = 4096


def evidence_batches(pieces: Pieces) -> Iterator[pa.RecordBatch]:
    """The pieces as record batches of `EVIDENCE_SCHEMA`, without those that repeat one."""
    repeats = Repeats()
    rows: list[tuple[object, ...]] = []
    for piece in pieces:
        row = _row(piece)
        if isinstance(piece, Evidence) and not repeats.is_new(piece, str(row[-1])):
            continue
        rows.append(row)
        if len(rows) >= _BATCH_ROWS:
            yield _batch(rows)
            rows = []
    if rows:
        yield _batch(rows)


def pieces_of(batches: Iterable[pa.RecordBatch]) -> Iterator[Evidence]:
    """The evidence of batches with the columns of `EVIDENCE_SCHEMA`, refusals and counts among it.

    A group may have a million pieces: they are made some at a time, and what is equal is one
    object.
    """
    same = OneOfEach()
    for batch in batches:
        for begin in range(0, batch.num_rows, _BATCH_ROWS):
            yield from _pieces(batch.slice(begin, _BATCH_ROWS), same)


def unread_of(piece: Evidence) -> Unread:
    """What was refused, as it comes out of `pieces_of`."""
    return Unread(piece.source, piece.values["raw"], piece.kind, piece.values["message"])


def stats_of(piece: Evidence) -> FileStats:
    """The counts of a file or split, as they come out of `pieces_of`."""
    return FileStats(**piece.values)


def _pieces(batch: pa.RecordBatch, same: OneOfEach) -> Iterator[Evidence]:
    part, key, kind, at_ms, place, position, source, fields = (
        batch[name].to_pylist() for name in EVIDENCE_SCHEMA.names
    )
    part, key, kind, at_ms, place = map(same.values, (part, key, kind, at_ms, place))
    # in one document, so that the names of fields are one object
    values = map(same.fields, json.loads(f"[{','.join(fields)}]"))
    return map(Evidence, part, key, kind, at_ms, place, position, source, values)


def _row(piece: Evidence | Unread | FileStats) -> tuple[object, ...]:
    if isinstance(piece, Evidence):
        fields = json.dumps(dict(piece.values), ensure_ascii=False)
        return (
            piece.part, piece.key, piece.kind, piece.at_ms, piece.place, piece.position,
            piece.source, fields,
        )  # fmt: skip
    if isinstance(piece, Unread):
        fields = json.dumps({"raw": piece.raw, "message": piece.message})
        return (REFUSED, "", piece.code, None, "", 0, piece.source, fields)
    return (COUNTED, "", piece.kind, None, "", 0, piece.name, json.dumps(asdict(piece)))


def _batch(rows: list[tuple[object, ...]]) -> pa.RecordBatch:
    arrays = [
        _array(column, field.type)
        for column, field in zip(zip(*rows, strict=True), EVIDENCE_SCHEMA, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=EVIDENCE_SCHEMA)


def _array(column: tuple[object, ...], kind: pa.DataType) -> pa.Array:
    try:
        return pa.array(column, kind)
    except UnicodeEncodeError:
        return pa.array([_text(value) for value in column], kind)


def _text(value: object) -> object:
    """Lone surrogates cannot travel as UTF-8; they come from broken names only."""
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value
