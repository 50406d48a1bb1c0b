"""Lines of JSON or CSV files, possibly packed, as rows of a contract table.

Whole blocks go through pyarrow's parsers. A block with a line that pyarrow refuses, or might read
differently from Python, is divided down to a few lines, which Python's own modules read one by one.
"""

import csv
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import NoneType
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pcsv
import pyarrow.json as pj

from rebalance_core.checks.conform import (
    Issue,
    conform,
    conformed_schema,
    issues_array,
    refuse_repeated_columns,
)
from rebalance_core.checks.text_lines import BOM
from rebalance_core.checks.typed_values import load_json
from rebalance_core.checks.value_texts import text_of
from rebalance_core.contracts import Table
from rebalance_core.contracts.table import RAW, READ_ISSUES, SOURCE, Column, arrow_type

FEW_LINES = 1_000
"""Up to this many lines are read one by one if they are not all regular."""
_PARTS = 8
_PARSED_AT_ONCE = 1 << 20  # bytes
_LONG_LINE = 1_000  # bytes; shorter lines have no long numbers and no deep nesting
_MOST_BRACKETS = 500
_LONG_NUMBER = r"[0-9]{300}"
_KINDS: dict[str, set[type]] = {
    "STRING": {str},
    "INT": {int},
    "BIGINT": {int},
    "BOOLEAN": {bool},
    "ARRAY<STRING>": {list},
}
"""The Python types that `json` yields for each contract type."""


@dataclass(frozen=True, eq=False)
class ReadRows:
    """Rows as `conform` returns them, and the names in them that are not columns."""

    rows: pa.Table
    unknown: frozenset[str]


class Lines(NamedTuple):
    """Non-blank lines: the text, the position of each, and whether it was UTF-8."""

    text: pa.Array
    source: pa.Array
    utf8: pa.Array


class Parsed(NamedTuple):
    """Columns by name before they are conformed, issues of rows, and unknown names."""

    columns: Mapping[str, pa.Array | pa.ChunkedArray]
    issues: Sequence[Issue]
    unknown: frozenset[str]


def json_rows(table: Table, lines: Lines) -> ReadRows:
    """Return the rows of lines of JSON objects; other lines are ``UNPARSABLE``."""
    return _read(table, lines, partial(json_block, table), partial(json_each, table))


def csv_rows(table: Table, names: Sequence[str], lines: Lines) -> ReadRows:
    """Return the rows of CSV lines, one record per line; ``names`` are the header's.

    Lines with more or fewer cells are ``UNPARSABLE``; an empty cell is null.
    """
    return _read(table, lines, partial(csv_block, table, names), partial(csv_each, table, names))


def _read(
    table: Table,
    lines: Lines,
    block: Callable[[Lines], Parsed | None],
    each: Callable[[Lines], Parsed],
) -> ReadRows:
    """Return the rows of all lines in their order, as ``each`` parses them."""
    regular, odd = _divided(lines, block)
    if len(regular) == 1 and not len(odd):
        ((_, parsed),) = regular
        return ReadRows(_conformed(table, parsed.columns, lines, []), parsed.unknown)
    rows = [conformed_schema(table).empty_table()]
    unknown = frozenset[str]()
    numbers = np.concatenate([np.zeros(0, np.int64), *(some for some, _ in regular)])
    if len(numbers):
        parts = pa.concat_tables(pa.table({**parsed.columns}) for _, parsed in regular)
        columns = dict(zip(parts.column_names, parts.columns, strict=True))
        rows.append(_conformed(table, columns, _taken(lines, numbers), []))
        unknown = unknown.union(*(parsed.unknown for _, parsed in regular))
    if len(odd):
        some = _taken(lines, odd)
        parsed = each(some)
        rows.append(_conformed(table, parsed.columns, some, parsed.issues))
        unknown |= parsed.unknown
    order = np.argsort(np.concatenate([numbers, odd]))
    return ReadRows(pa.concat_tables(rows).take(pa.array(order)), unknown)


def _divided(
    lines: Lines, block: Callable[[Lines], Parsed | None]
) -> tuple[list[tuple[np.ndarray, Parsed]], np.ndarray]:
    """Return parts that ``block`` parses, with their line numbers, and the other line numbers."""
    regular, odd = [], [np.zeros(0, np.int64)]
    pending = [np.arange(len(lines.text))] if len(lines.text) else []
    while pending:
        numbers = pending.pop()
        parsed = block(Lines(*(each.slice(numbers[0], len(numbers)) for each in lines)))
        if parsed is not None:
            regular.append((numbers, parsed))
        elif len(numbers) <= FEW_LINES:
            odd.append(numbers)
        else:
            pending += np.array_split(numbers, min(_PARTS, len(numbers)))
    return regular, np.concatenate(odd)


def _taken(lines: Lines, numbers: np.ndarray) -> Lines:
    return Lines(*(each.take(pa.array(numbers)) for each in lines))


def _conformed(
    table: Table,
    columns: Mapping[str, pa.Array | pa.ChunkedArray],
    lines: Lines,
    issues_read: Sequence[Issue],
) -> pa.Table:
    issues = issues_array(len(lines.text), issues_read)
    return conform(
        table, pa.table({**columns, SOURCE: lines.source, RAW: lines.text, READ_ISSUES: issues})
    )


def json_block(table: Table, lines: Lines) -> Parsed | None:
    """Return the lines as pyarrow parses them, or None if the result might differ from
    `json_each`.
    """
    if any("MAP" in column.type for column in table.columns):  # pyarrow reads no maps from JSON
        return None
    if not pc.all(lines.utf8).as_py() or not _one_object_a_line(lines.text):
        return None
    text = _one_text(lines.text)
    if not _harmless(lines.text, text):
        return None
    for unexpected in ("error", "infer"):
        try:
            parsed = pj.read_json(
                pa.BufferReader(text),
                pj.ReadOptions(block_size=_block_size(lines.text)),
                pj.ParseOptions(
                    explicit_schema=table.arrow_schema(), unexpected_field_behavior=unexpected
                ),
            )
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):  # other names or types; broken lines
            continue
        if len(parsed) == len(lines.text) and all(map(_is_plain, parsed.columns)):
            columns = {name: _plain_zero(parsed.column(name)) for name in table.column_names}
            unknown = frozenset(parsed.column_names) - set(table.column_names)
            return Parsed(columns, [], unknown)
    return None


def _one_text(lines: pa.Array) -> pa.Buffer:
    block = pa.ListArray.from_arrays(pa.array([0, len(lines)], pa.int32()), lines)
    return pc.binary_join(block, "\n")[0].as_buffer()


def _block_size(lines: pa.Array) -> int:
    """Return the number of bytes that pyarrow parses at once on each core, at least the longest
    line.
    """
    return max(_PARSED_AT_ONCE, int(pc.max(pc.binary_length(lines)).as_py()) + 2)


def _one_object_a_line(lines: pa.Array) -> bool:
    """Return True if lines that parse as this many objects have one object per line.

    A line that ends inside an object ends with a brace that must be followed by a comma or bracket,
    not by the brace that opens the next line; strings contain no line breaks.
    """
    whole = pc.and_(pc.starts_with(lines, "{"), pc.ends_with(lines, "}"))
    return bool(pc.all(whole).as_py())


def _harmless(lines: pa.Array, text: pa.Buffer) -> bool:
    """Return True if the lines contain nothing that only one of the parsers accepts."""
    data = memoryview(text).tobytes()
    if b"\0" in data or (b"\\u" in data and (b"\\ud" in data or b"\\uD" in data)):
        return False  # ends the text for pyarrow; may be half of a surrogate pair
    lengths = pc.binary_length(lines)
    if pc.max(lengths).as_py() < _LONG_LINE:
        return True
    long = lines.filter(pc.greater_equal(lengths, _LONG_LINE))
    brackets = pc.add(pc.count_substring(long, "["), pc.count_substring(long, "{"))
    numbers = pc.any(pc.match_substring_regex(long, _LONG_NUMBER)).as_py()
    return not numbers and bool(pc.max(brackets).as_py() <= _MOST_BRACKETS)


def _is_plain(values: pa.Array | pa.ChunkedArray) -> bool:
    """Return False if there is an infinity or a list with a null; no contract allows these."""
    if pa.types.is_floating(values.type):
        return pc.all(pc.is_finite(values)).as_py() is not False
    return not pa.types.is_list(values.type) or not pc.list_flatten(values).null_count


def _plain_zero(values: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.add(values, 0.0) if pa.types.is_floating(values.type) else values


def json_each(table: Table, lines: Lines) -> Parsed:
    """Return the lines as Python's `json` parses them one by one, the result of `json_rows`."""
    valid = lines.utf8.to_pylist()
    texts = lines.text.to_pylist()
    objects = [_object(line) if fine else None for line, fine in zip(texts, valid, strict=True)]
    unparsable = [row for row, members in enumerate(objects) if members is None]
    rows = [members or {} for members in objects]
    issues = [_unparsable(unparsable, lines.utf8, "the line is not a JSON object")]
    names = set().union(*rows)
    columns = {}
    for column in table.columns:
        values = [members.get(column.name) for members in rows] if column.name in names else ()
        columns[column.name], nested = _column(column, values or [None] * len(rows))
        issues += nested
    unknown = map(text_of, names - columns.keys())
    return Parsed(columns, issues, frozenset(map(str, unknown)))


def _column(column: Column, values: list[object]) -> tuple[pa.Array, list[Issue]]:
    """Return the values in the contract's type if all fit, otherwise as strings, and the values
    without text.
    """
    kinds = set(map(type, values)) - {NoneType}
    if kinds <= _KINDS.get(column.type, set()):
        try:
            typed = pa.array(values, arrow_type(column.type))
            if _is_plain(typed):
                return typed, []
        except (pa.ArrowException, OverflowError, UnicodeEncodeError):
            pass  # a number out of range, half a surrogate pair, other types in a list
    texts = list(map(text_of, values))
    if column.type != "STRING":
        return pa.array(texts, pa.string()), []
    nested = [row for row, value in enumerate(values) if isinstance(value, dict | list)]
    messages = [f"{column.name} is {texts[row]}, not a text" for row in nested]
    for row in nested:
        texts[row] = None
    return pa.array(texts, pa.string()), [Issue(np.array(nested, np.int64), "BAD_TYPE", messages)]


def _object(line: str) -> dict[str, object] | None:
    try:
        members = load_json(line)
    except (ValueError, RecursionError):
        return None
    return members if isinstance(members, dict) else None


def names_of_line(line: str) -> set[str]:
    """Return the member names in the line; empty if it is not a JSON object."""
    return set(map(str, map(text_of, _object(line) or ())))


def _unparsable(rows: Sequence[int] | np.ndarray, utf8: pa.Array, why: str) -> Issue:
    """Return the issue ``UNPARSABLE`` for these lines, because of ``why`` or invalid UTF-8."""
    numbers = np.array(rows, np.int64)
    valid = utf8.take(pa.array(numbers)).to_pylist()
    messages = [why if fine else "the line is not UTF-8" for fine in valid]
    return Issue(numbers, "UNPARSABLE", messages)


def header_names(path: str, header: str) -> list[str]:
    """Return the names of a header line; raise `model.errors.InputRefused` for duplicates."""
    names = [name.strip() for name in next(csv.reader([header]), [])]
    refuse_repeated_columns(f"{path}: the header", names)
    return names


def csv_block(table: Table, names: Sequence[str], lines: Lines) -> Parsed | None:
    """Return the lines as pyarrow parses them, or None if cells are missing or span lines."""
    text = _one_text(lines.text)
    if not pc.all(lines.utf8).as_py() or memoryview(text)[:3].tobytes() == BOM:
        return None  # pyarrow removes a byte order mark
    numbers = [str(number) for number in range(len(names))]
    try:
        parsed = pcsv.read_csv(
            pa.BufferReader(text),
            pcsv.ReadOptions(column_names=numbers, block_size=_block_size(lines.text)),
            pcsv.ParseOptions(ignore_empty_lines=False),
            pcsv.ConvertOptions(
                column_types=dict.fromkeys(numbers, pa.string()),
                null_values=[""],
                strings_can_be_null=True,
            ),
        )
    except pa.ArrowInvalid:
        return None
    if len(parsed) != len(lines.text):  # an unclosed quote extends into the next line
        return None
    cells = zip(names, parsed.columns, strict=True)
    return Parsed({n: c for n, c in cells if n in table.column_names}, [], frozenset())


def csv_each(table: Table, names: Sequence[str], lines: Lines) -> Parsed:
    """Return the lines as Python's `csv` parses them one by one, the result of `csv_rows`."""
    rows = list(map(_cells, lines.text.to_pylist()))
    complete = np.array([len(row) == len(names) for row in rows], bool)
    kept = [r if fits else [None] * len(names) for r, fits in zip(rows, complete, strict=True)]
    columns = {
        name: pa.array([row[number] or None for row in kept], pa.string())
        for number, name in enumerate(names)
        if name in table.column_names
    }
    why = (
        f"the line does not have the header's {len(names)} columns; each row must be one line, "
        "without line breaks in quotes"
    )
    bad = np.flatnonzero(~(complete & np.asarray(lines.utf8)))
    return Parsed(columns, [_unparsable(bad, lines.utf8, why)], frozenset())


def _cells(line: str) -> list[str]:
    try:
        return next(csv.reader([line]), [])
    except csv.Error:  # a cell of more than csv.field_size_limit
        return []
