"""Evidence, refusals and counts as Arrow rows: the data sent between the tasks of a job."""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast

import pyarrow as pa

from rebalance_core.contracts.fact_declaration import CLUSTER, GROUP, TOPIC
from rebalance_core.ingest.evidence import Evidence, thinning_of
from rebalance_core.ingest.fact import Unread
from rebalance_core.ingest.file_reader import FileStats
from rebalance_core.ingest.piece import Piece


class Fields(Mapping[str, object]):
    """The fields of a statement, by name; created by `OneOfEach`.

    Args:
        places: index in `row` of each name's value, shared by all statements with the same names.
        row: the values.
    """

    __slots__ = ("_places", "_row")

    def __init__(self, places: Mapping[str, int], row: tuple[Any, ...]) -> None:
        self._places = places
        self._row = row

    def __getitem__(self, name: str) -> Any:
        return self._row[self._places[name]]

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._row)

    def __contains__(self, name: object) -> bool:
        return name in self._places

    def __repr__(self) -> str:
        return repr(dict(self))

    def get(self, name: str, default: Any = None) -> Any:
        """Return the value, or the default; faster than `Mapping`'s, which catches an error."""
        place = self._places.get(name)
        return default if place is None else self._row[place]


class OneOfEach:
    """Interns strings, numbers and sets of names, so that equal values share one object.

    >>> same = OneOfEach()
    >>> first = same.fields({"group": "g", "pid": 7})
    >>> second = same.fields({"group": "g", "pid": None})
    >>> first["pid"], second.get("topic", "none"), "topic" in second, dict(second)
    (7, 'none', False, {'group': 'g', 'pid': None})
    >>> first == {"pid": 7, "group": "g"}, first["group"] is second["group"]
    (True, True)
    """

    def __init__(self) -> None:
        self._interned: dict[str | int | None, str | int | None] = {}
        self._places: dict[tuple[str, ...], dict[str, int]] = {}

    def values(self, column: Iterable[str | int | None]) -> list[Any]:
        """Return the values, each interned; none of them may be a bool."""
        return [self._interned.setdefault(value, value) for value in column]

    def fields(self, values: Mapping[str, object]) -> Fields:
        """Return the same fields; lists and mappings among their values are kept as they are."""
        names, interned = tuple(values), self._interned
        if names not in self._places:
            self._places[names] = {name: place for place, name in enumerate(names)}
        row = [
            # not isinstance: True equals 1
            interned.setdefault(value, value) if type(value) is str or type(value) is int else value
            for value in values.values()
        ]
        return Fields(self._places[names], tuple(row))


_MOST_KNOWN = 100_000


class Repeats:
    """Separates new evidence from evidence that only repeats it, by the rules of `Thinning`.

    The first of equal statements counts. A later statement with an earlier time, after a clock was
    set back, is also new. With more than 100,000 different statements, some count as new twice.
    """

    def __init__(self) -> None:
        self._thinning = {part: thinning_of(part) for part in (CLUSTER, GROUP, TOPIC)}
        self._first: dict[tuple[object, ...], tuple[object, ...]] = {}

    def is_new(self, piece: Evidence, fields: str) -> bool:
        """Return True if the piece states something new.

        Args:
            piece: Any.
            fields: Its fields as one string.
        """
        thinning = self._thinning.get(piece.part, {}).get(piece.kind)
        if thinning is None:
            return True
        at_ms, window_ms = piece.at_ms, thinning.window_ms
        window = None if at_ms is None or window_ms is None else at_ms // window_ms
        place = piece.place if thinning.per_place else None
        alike = (piece.part, piece.key, piece.kind, fields, place, window)
        when = (at_ms or 0, piece.place, piece.position, piece.source)
        first = self._first.get(alike)
        if first is not None and first <= when:
            return False
        if len(self._first) >= _MOST_KNOWN:
            self._first.clear()
        self._first[alike] = when
        return True


REFUSED, COUNTED = "refused", "counted"
"""Parts other than evidence: an `Unread`, and the `FileStats` of one file or split."""

Pieces = Iterable[Evidence | Unread | FileStats]
"""A file's facts, what could not be read, and finally how much was understood."""

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
_AS_JSON = json.JSONEncoder(ensure_ascii=False, check_circular=False)


def evidence_batches(pieces: Pieces) -> Iterator[pa.RecordBatch]:
    """Yield the pieces as record batches of `EVIDENCE_SCHEMA`, without repetitions."""
    repeats = Repeats()
    rows: list[tuple[object, ...]] = []
    for piece in pieces:
        row = _row(piece)
        if isinstance(piece, Piece) and not repeats.is_new(piece, str(row[-1])):
            continue
        rows.append(row)
        if len(rows) >= _BATCH_ROWS:
            yield _batch(rows)
            rows = []
    if rows:
        yield _batch(rows)


def pieces_of(batches: Iterable[pa.RecordBatch]) -> Iterator[Evidence]:
    """Yield the evidence of batches of `EVIDENCE_SCHEMA`, refusals and counts among it.

    A group may have a million pieces, so they are built in batches and share equal values.
    """
    same = OneOfEach()
    for batch in batches:
        for begin in range(0, batch.num_rows, _BATCH_ROWS):
            yield from _pieces(batch.slice(begin, _BATCH_ROWS), same)


def unread_of(piece: Evidence) -> Unread:
    """Return the refusal that `pieces_of` packed into the piece."""
    v = piece.values
    return Unread(piece.source, str(v["raw"]), piece.kind, str(v["message"]))


def stats_of(piece: Evidence) -> FileStats:
    """Return the counts of a file or split, as `pieces_of` yields them."""
    return FileStats(**{**cast("Any", piece.values), "name": piece.source})


def _pieces(batch: pa.RecordBatch, same: OneOfEach) -> Iterator[Evidence]:
    part, key, kind, at_ms, place, position, source, fields = (
        batch[name].to_pylist() for name in EVIDENCE_SCHEMA.names
    )
    part, key, kind, at_ms, place = map(same.values, (part, key, kind, at_ms, place))
    # as a single document, so that all rows share the field names
    values = map(same.fields, json.loads(f"[{','.join(fields)}]"))
    return map(Evidence, part, key, kind, at_ms, place, position, source, values)


def _row(piece: Evidence | Unread | FileStats) -> tuple[object, ...]:
    if isinstance(piece, Piece):
        fields = _AS_JSON.encode(dict(piece.values))
        return (
            piece.part, piece.key, piece.kind, piece.at_ms, piece.place, piece.position,
            piece.source, fields,
        )  # fmt: skip
    if isinstance(piece, Unread):
        fields = json.dumps({"raw": piece.raw, "message": piece.message})
        return (REFUSED, "", piece.code, None, "", 0, piece.source, fields)
    return (COUNTED, "", piece.kind, None, "", 0, piece.name, json.dumps(vars(piece)))


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
    """Return text without lone surrogates, which come from broken names and are not UTF-8."""
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value
