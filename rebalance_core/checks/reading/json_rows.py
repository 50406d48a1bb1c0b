"""Lines of JSON as rows of a contract table.

Regular lines go through pyarrow's parser with the contract's types. It reads some lines otherwise
than Spark, so it gets only blocks where it cannot differ; others are cut down to the lines
that are not regular, which `json_text` reads.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from rebalance_core.checks.casts.java_text import without_surrogates
from rebalance_core.checks.conform import conform
from rebalance_core.checks.issue_arrays import Found, conformed_schema, issues_array, without_issues
from rebalance_core.checks.reading.json_text import names_of_line, object_of_line
from rebalance_core.contracts import Table
from rebalance_core.contracts.table import RAW, READ_ISSUES, SOURCE

NO_UTF8 = "the line is not UTF-8"
FEW_LINES = 32
"""So many are read one by one if they are not regular together."""
PARTS = 8
_LONG_LINE = 1_000  # bytes; shorter ones reach none of Jackson's limits
_LONGEST_LINE = 1 << 19
_NEAR_A_LIMIT = re.compile(r"[0-9.eE+-]{1000}")
_DEEP = 500
_SURROGATES = (b"\\ud", b"\\uD")
_MOST_EXACT = {"INT": 2.0**31, "BIGINT": 2.0**53}
_COLON = " *: *"
_TEXT = r'"(?:[^"\\\x00-\x1f]|\\["\\/bfnrt])*"'
_VALUES = {
    "STRING": _TEXT,
    "INT": "-?(?:0|[1-9][0-9]{0,8})",
    "BIGINT": "-?(?:0|[1-9][0-9]{0,17})",
    "BOOLEAN": "true|false",
    "DOUBLE": r"-?(?:0|[1-9][0-9]{0,15})(?:\.[0-9]{1,15})?",
    "ARRAY<STRING>": rf"\[ *(?:{_TEXT} *(?:, *{_TEXT} *)*)?\]",
}
_FIELD = re.compile(r'"(\w+)" *: *(?:(["\[])|(-?[0-9]+)([.eE])?)?')


@dataclass(frozen=True, eq=False)
class ReadRows:
    """Rows as `conform` returns them, and the names in them that are no columns."""

    rows: pa.Table
    unknown: frozenset[str]


def json_rows(table: Table, lines: pa.Array, source: pa.Array, utf8: pa.Array) -> ReadRows:
    """The rows of lines that are not blank, as Spark reads them.

    Args:
        table: the contract.
        lines: text, one JSON object in each.
        source: where each line stands.
        utf8: false for a line that was no UTF-8 before it was made text.
    """
    read = regular_rows(table, lines, source, utf8)
    if read is not None:
        return read
    names = set(_shapes(lines)) - set(table.column_names)
    pattern = regular_line(table, names)
    regular = np.asarray(pc.and_(utf8, pc.match_substring_regex(lines, pattern)))
    parts: list[tuple[np.ndarray, ReadRows]] = []
    odd = [np.flatnonzero(~regular)]
    pending = [np.flatnonzero(regular)]
    while pending:
        numbers = pending.pop()
        chosen = pa.array(numbers)
        read = regular_rows(
            table, lines.take(chosen), source.take(chosen), utf8.take(chosen), names
        )
        if read is not None:
            parts.append((numbers, read))
        elif len(numbers) <= FEW_LINES:
            odd.append(numbers)
        else:
            pending += np.array_split(numbers, PARTS)
    numbers = np.concatenate(odd)
    chosen = pa.array(numbers)
    one_by_one = careful_rows(table, lines.take(chosen), source.take(chosen), utf8.take(chosen))
    return _in_order([*parts, (numbers, one_by_one)])


def _in_order(parts: Sequence[tuple[np.ndarray, ReadRows]]) -> ReadRows:
    """The rows of all parts, each of which knows the numbers of its rows."""
    order = np.argsort(np.concatenate([numbers for numbers, _ in parts]))
    rows = pa.concat_tables([read.rows for _, read in parts]).take(pa.array(order))
    return ReadRows(rows, frozenset[str]().union(*(read.unknown for _, read in parts)))


def careful_rows(table: Table, lines: pa.Array, source: pa.Array, utf8: pa.Array) -> ReadRows:
    """The same line by line; `json_rows` returns this for any lines."""
    columns: dict[str, list[str | None]] = {name: [] for name in table.column_names}
    texts = {column.name for column in table.columns if column.type == "STRING"}
    unparsable, found, unknown = [], [], set()
    for row, (line, valid) in enumerate(zip(lines.to_pylist(), utf8.to_pylist(), strict=True)):
        members, exact = (object_of_line(line) if valid else None) or (None, False)
        if members is None:
            unparsable.append(row)
        values = {name: (value, nested) for name, value, nested in members or ()}
        unknown |= (values.keys() if exact else names_of_line(line)) - columns.keys()
        for name, column in columns.items():
            value, nested = values.get(name, (None, False))
            if value is not None and not exact:
                value = without_surrogates(value)
            if nested and exact and name in texts:
                found.append(Found(np.array([row]), "BAD_TYPE", [f"{name} is {value}, no text"]))
                value = None
            column.append(value)
    wrong = unparsable_lines(unparsable, utf8, "the line is not one JSON object")
    arrays = [pa.array(values, pa.string()) for values in columns.values()]
    issues = issues_array(len(lines), [wrong, *found])
    rows = pa.table([*arrays, source, lines, issues], [*columns, SOURCE, RAW, READ_ISSUES])
    return ReadRows(conform(table, rows), frozenset(unknown))


def unparsable_lines(rows: Sequence[int] | np.ndarray, utf8: pa.Array, why: str) -> Found:
    """``UNPARSABLE`` for these lines: for ``why``, or because they are no UTF-8."""
    numbers = np.array(rows, np.int64)
    valid = utf8.take(pa.array(numbers)).to_pylist()
    return Found(numbers, "UNPARSABLE", [why if fine else NO_UTF8 for fine in valid])


def regular_rows(
    table: Table,
    lines: pa.Array,
    source: pa.Array,
    utf8: pa.Array,
    names: Collection[str] | None = None,
) -> ReadRows | None:
    """The rows if pyarrow cannot differ from Spark on these lines; else None.

    Args:
        table: the contract.
        lines: text.
        source: where each line stands.
        utf8: as for `json_rows`.
        names: given for lines that match `regular_line`, the names that are no columns.
    """
    if len(lines) == 0:
        return ReadRows(conformed_schema(table).empty_table(), frozenset())
    if any("MAP" in column.type for column in table.columns) or not pc.all(utf8).as_py():
        return None
    text = _joined(lines)
    if not _one_object_a_line(lines) or not _harmless(lines, text):
        return None
    for schema in _schemas(table, lines):
        for unexpected in ("error", "infer") if names is None else ("ignore",):
            parsed = _parsed(text, schema, unexpected)
            if parsed is None or len(parsed) != len(lines):
                continue
            if not _exact(table, parsed):
                return None
            there = parsed.column_names if names is None else _names_in(lines, names)
            unknown = frozenset(there) - set(table.column_names)
            return ReadRows(_conformed(table, parsed, source, lines), unknown)
    return None


def _joined(lines: pa.Array) -> pa.Buffer:
    block = pa.ListArray.from_arrays(pa.array([0, len(lines)], pa.int32()), lines)
    return pc.binary_join(block, "\n")[0].as_buffer()


def _one_object_a_line(lines: pa.Array) -> bool:
    """True if lines that parse as so many objects hold one each.

    A line that ends inside an object ends with a brace that a comma or bracket must follow, not
    the brace that opens the next line; strings hold no line breaks.
    """
    offsets = np.frombuffer(lines.buffers()[1], np.int32)[lines.offset :][: len(lines) + 1]
    octets = np.frombuffer(lines.buffers()[2] or b"", np.uint8)
    if (np.diff(offsets) < 2).any():
        return False
    return bool(
        (octets[offsets[:-1]] == ord("{")).all() and (octets[offsets[1:] - 1] == ord("}")).all()
    )


def _harmless(lines: pa.Array, text: pa.Buffer) -> bool:
    """True if nothing is in the lines that the parsers treat differently."""
    data = memoryview(text).tobytes()
    if b"\0" in data or (b"\\u" in data and any(mark in data for mark in _SURROGATES)):
        return False
    lengths = pc.binary_length(lines)
    if pc.max(lengths).as_py() < _LONG_LINE:
        return True
    if pc.max(lengths).as_py() > _LONGEST_LINE:
        return False
    long = lines.filter(pc.greater_equal(lengths, _LONG_LINE)).to_pylist()
    return not any(
        _NEAR_A_LIMIT.search(line) or line.count("[") + line.count("{") > _DEEP for line in long
    )


def _schemas(table: Table, lines: pa.Array) -> list[pa.Schema]:
    """The contract's types; then those of the first lines, if numbers are texts or fractions there.

    What differs from the contract is conformed like any other column of that type.
    """
    schema = table.arrow_schema()
    shapes = _shapes(lines)
    fields = []
    for field, column in zip(schema, table.columns, strict=True):
        seen = shapes.get(field.name, set())
        if column.type != "STRING" and '"' in seen:
            field = field.with_type(pa.string())
        elif column.type in _MOST_EXACT and "." in seen:
            field = field.with_type(pa.float64())
        elif column.type == "STRING" and "0" in seen:
            field = field.with_type(pa.int64())
        fields.append(field)
    other = pa.schema(fields)
    return [schema] if other == schema else [schema, other]


def _shapes(lines: pa.Array) -> dict[str, set[str]]:
    """By name of a field what its values in the first lines look like: text, fraction or number."""
    shapes: dict[str, set[str]] = {}
    for line in lines.slice(0, FEW_LINES).to_pylist():
        for name, quote, digits, fraction in _FIELD.findall(line):
            shapes.setdefault(name, set()).add(quote or fraction or (digits and "0"))
    return shapes


def _names_in(lines: pa.Array, names: Collection[str]) -> list[str]:
    """Which of the names are members of regular lines; their texts hold no bare quotes."""
    patterns = {name: rf'[{{,] *"{name}"{_COLON}' for name in names}
    return [n for n, p in patterns.items() if pc.any(pc.match_substring_regex(lines, p)).as_py()]


def regular_line(table: Table, names: Collection[str]) -> str:
    """A pattern of lines with members of the contract's types, or of ``names`` and any type."""
    by_type: dict[str, list[str]] = {}
    for column in table.columns:
        by_type.setdefault(column.type, []).append(column.name)
    members = [
        f'"(?:{"|".join(names)})"{_COLON}(?:null|{_VALUES[kind]})'
        for kind, names in by_type.items()
        if kind in _VALUES
    ]
    if names:
        any_value = "|".join(_VALUES.values())
        members.append(f'"(?:{"|".join(sorted(names))})"{_COLON}(?:null|{any_value})')
    member = f" *(?:{'|'.join(members)}) *"
    return rf"^\{{{member}(?:,{member})*\}}$"


def _parsed(text: pa.Buffer, schema: pa.Schema, unexpected: str) -> pa.Table | None:
    try:
        return pj.read_json(
            pa.BufferReader(text),
            pj.ReadOptions(block_size=2 * _LONGEST_LINE),
            pj.ParseOptions(explicit_schema=schema, unexpected_field_behavior=unexpected),
        )
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None  # other types, or broken lines: they are read one by one


def _exact(table: Table, parsed: pa.Table) -> bool:
    """False if a value is there that Spark reads otherwise, or a reading that lost digits."""
    for column in table.columns:
        values = parsed.column(column.name)
        if pa.types.is_list(values.type) and pc.list_flatten(values).null_count:
            return False
        if not pa.types.is_float64(values.type):
            continue
        if not pc.all(pc.is_finite(values)).as_py() or _has_negative_zero(values):
            return False
        if column.type in _MOST_EXACT:
            whole = pc.and_(
                pc.less(pc.abs(values), _MOST_EXACT[column.type]),
                pc.equal(values, pc.round(values)),
            )
            if not pc.all(whole).as_py():
                return False
    return True


def _has_negative_zero(values: pa.ChunkedArray) -> bool:
    numbers = np.asarray(pc.fill_null(values, 1.0))
    return bool((np.signbit(numbers) & (numbers == 0)).any())


def _conformed(table: Table, parsed: pa.Table, source: pa.Array, lines: pa.Array) -> pa.Table:
    columns = [parsed.column(name) for name in table.column_names]
    names = [*table.column_names, SOURCE, RAW, READ_ISSUES]
    return conform(table, pa.table([*columns, source, lines, without_issues(len(lines))], names))
