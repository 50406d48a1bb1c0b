"""Evidence, refusals and counts as Arrow rows: what travels between the tasks of a job."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict

import pyarrow as pa

from rebalance_core.ingest.evidence.evidence import Evidence
from rebalance_core.ingest.evidence.fields import OneOfEach
from rebalance_core.ingest.fact import Unread
from rebalance_core.ingest.file_reader import FileStats

REFUSED, COUNTED = "refused", "counted"
"""Parts beside those of evidence: an `Unread`, and the `FileStats` of one file or split."""

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
EVIDENCE_DDL = (
    "part STRING, key STRING, kind STRING, at_ms BIGINT, place STRING, position BIGINT, "
    "source STRING, fields STRING"
)

_BATCH_ROWS = 4096


def evidence_batches(
    pieces: Iterable[Evidence | Unread | FileStats],
) -> Iterator[pa.RecordBatch]:
    """The pieces as record batches of `EVIDENCE_SCHEMA`."""
    rows: list[tuple[object, ...]] = []
    for piece in pieces:
        rows.append(_row(piece))
        if len(rows) >= _BATCH_ROWS:
            yield _batch(rows)
            rows = []
    if rows:
        yield _batch(rows)


def pieces_of(batches: Iterable[pa.RecordBatch]) -> Iterator[Evidence]:
    """The evidence of batches with the columns of `EVIDENCE_SCHEMA`.

    A group may have a million pieces: they are made some at a time, and what is equal is one
    object.
    """
    same = OneOfEach()
    for batch in batches:
        for begin in range(0, batch.num_rows, _BATCH_ROWS):
            yield from _pieces(batch.slice(begin, _BATCH_ROWS), same)


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
