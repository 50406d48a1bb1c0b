"""Lines of CSV as rows of texts, one column a header's name.

Regular lines go through pyarrow's parser as texts; `csv_text` reads the others.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pcsv

from rebalance_core.checks.conform import refuse_repeated_columns
from rebalance_core.checks.issue_arrays import issues_array
from rebalance_core.checks.reading.csv_text import cells_of_line
from rebalance_core.checks.reading.json_rows import unparsable_lines
from rebalance_core.contracts import Table
from rebalance_core.contracts.table import RAW, READ_ISSUES, SOURCE

_REGULAR_CELL = r'(?:[^",\x00]*|"(?:[^"\x00]|"")*")'
_LONGEST_LINE = 1 << 19  # bytes


def header_names(path: str, header: str) -> list[str]:
    """The names of a header line; `InputRefused` if one is there twice."""
    names = [name.strip() for name in next(csv.reader([header]), [])]
    refuse_repeated_columns(f"{path}: the header", names)
    return names


def csv_rows(
    table: Table, names: Sequence[str], lines: pa.Array, source: pa.Array, utf8: pa.Array
) -> pa.Table:
    """The rows of lines that are not blank, as Spark reads them, for `conform`.

    Args:
        table: the contract.
        names: of the header.
        lines: text, one record in each.
        source: where each line stands.
        utf8: false for a line that was no UTF-8 before it was made text.
    """
    cells, complete = _cells(lines, len(names))
    bad = np.flatnonzero(~(complete & np.asarray(utf8)))
    wrong = (
        f"the line has not the {len(names)} columns of the header; a row is one line, without line "
        "breaks in quotes"
    )
    issues = issues_array(len(lines), [unparsable_lines(bad, utf8, wrong)])
    columns = {
        name: pc.if_else(pa.array(complete), cell, pa.scalar(None, pa.string()))
        for name, cell in zip(names, cells, strict=True)
        if name in table.column_names
    }
    return pa.table(
        [*columns.values(), source, lines, issues], [*columns, SOURCE, RAW, READ_ISSUES]
    )


def _cells(lines: pa.Array, width: int) -> tuple[list[pa.Array], np.ndarray]:
    """The cells by column, null where they are empty; and which lines have all columns."""
    pattern = rf"^{_REGULAR_CELL}(?:,{_REGULAR_CELL}){{{width - 1}}}$"
    if width > _MOST_REPEATS or pc.max(pc.binary_length(lines)).as_py() > _LONGEST_LINE:
        regular = np.zeros(len(lines), bool)
    else:
        regular = np.asarray(pc.match_substring_regex(lines, pattern))
    parsed = _parsed(lines.filter(pa.array(regular)), width)
    if parsed is None:
        regular[:] = False
        parsed = [pa.array([], pa.string())] * width
    odd_lines = lines.filter(pa.array(~regular)).to_pylist()
    rows = [cells_of_line(line) for line in odd_lines]
    fits = np.array([len(row) == width for row in rows], bool)
    kept = [row if fit else [None] * width for row, fit in zip(rows, fits, strict=True)]
    odd = [pa.array([row[n] or None for row in kept], pa.string()) for n in range(width)]
    complete = regular.copy()
    complete[~regular] = fits
    order = pa.array(np.argsort(np.argsort(~regular, kind="stable")))
    return [
        pa.concat_arrays([first, second]).take(order)
        for first, second in zip(parsed, odd, strict=True)
    ], complete


_MOST_REPEATS = 1_000  # of RE2
_BOM = b"\xef\xbb\xbf"


def _parsed(lines: pa.Array, width: int) -> list[pa.Array] | None:
    """The cells of regular lines by column."""
    names = [str(n) for n in range(width)]
    block = pa.ListArray.from_arrays(pa.array([0, len(lines)], pa.int32()), lines)
    text = pc.binary_join(block, "\n")[0].as_buffer()
    if len(lines) == 0 or memoryview(text)[:3].tobytes() == _BOM:
        return None  # pyarrow takes a byte order mark away
    try:
        parsed = pcsv.read_csv(
            pa.BufferReader(text),
            pcsv.ReadOptions(column_names=names, block_size=2 * _LONGEST_LINE),
            pcsv.ParseOptions(ignore_empty_lines=False),
            pcsv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()),
                null_values=[""],
                strings_can_be_null=True,
            ),
        )
    except pa.ArrowInvalid:
        return None
    if len(parsed) != len(lines):
        return None
    return [_one_array(column) for column in parsed.columns]


def _one_array(column: pa.ChunkedArray) -> pa.Array:
    return pa.concat_arrays(column.chunks)
