"""Reads a table from its files."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from rebalance_core.checks import text_lines, text_rows, unpacked_text
from rebalance_core.checks.conform import conform, conformed_schema, refuse_missing_columns
from rebalance_core.checks.parquet_rows import ParquetTable
from rebalance_core.checks.table_files import data_files, format_of_table, plain_path, unknown_names
from rebalance_core.checks.text_rows import Lines
from rebalance_core.contracts import Table
from rebalance_core.contracts.table import RAW, SOURCE, TECHNICAL
from rebalance_core.storage.place import Location, Place, place_of
from rebalance_core.storage.run_folder import refuse_changed


def read_table(
    table: Table, path: Location, input_format: str | None = None
) -> tuple[pa.Table, list[str]]:
    """Return the table's rows in the form of `conform`, and its unknown columns, sorted.

    Args:
        table: the contract.
        path: a file, a folder of part files or a pattern; a `Place` is never one.
        input_format: ``json``, ``csv`` or ``parquet``; None to infer it from the names.

    Raises:
        InputRefused: nothing exists there, columns are missing, a file cannot be read, or the rows
            differ from the table's record.
        UsageError: the format is unknown.
    """
    if not isinstance(path, Place):
        folder, _, last = plain_path(path).rstrip("/").rpartition("/")
        if last == table.name:
            refuse_changed(place_of(folder or "/"), [last])
    files, path = data_files(path), str(path)
    kind = format_of_table(path, files, input_format)
    if kind is None or not files:
        return conformed_schema(table).empty_table(), []
    if kind == "parquet":
        return _parquet(table, path, files)
    return (_json if kind == "json" else _csv)(table, path, files)


def _parquet(table: Table, path: str, files: Sequence[str]) -> tuple[pa.Table, list[str]]:
    read = ParquetTable.of(path, files)
    return conform(table, read.whole(files)), unknown_names(table, read.names, TECHNICAL)


def _json(table: Table, path: str, files: Sequence[str]) -> tuple[pa.Table, list[str]]:
    unknown: set[str] = set()
    parts = [conformed_schema(table).empty_table()]
    for lines in _lines(files):
        read = text_rows.json_rows(table, lines)
        parts.append(read.rows)
        unknown |= read.unknown
    return pa.concat_tables(parts), unknown_names(table, unknown, TECHNICAL)


def _csv(table: Table, path: str, files: Sequence[str]) -> tuple[pa.Table, list[str]]:
    header = _first_line(files)
    if header is None:
        return conformed_schema(table).empty_table(), []
    names = text_rows.header_names(path, header)
    refuse_missing_columns(table, names)
    parts = [conformed_schema(table).empty_table()]
    for lines in _lines(files, header):
        parts.append(text_rows.csv_rows(table, names, lines).rows)
    return pa.concat_tables(parts), unknown_names(table, names, TECHNICAL)


def _lines(files: Sequence[str], header: str | None = None) -> Iterator[Lines]:
    """Yield the numbered non-blank lines of all files."""
    for file in files:
        with unpacked_text.open_unpacked(file) as opened:
            for batch in text_lines.number_lines(
                text_lines.lines_of_file(Path(file).name, opened), header
            ):
                filled = text_lines.not_blank(batch[RAW])
                if pc.any(filled).as_py():
                    some = batch if pc.all(filled).as_py() else batch.filter(filled)
                    yield Lines(some[RAW], some[SOURCE], some[text_lines.UTF8])


def _first_line(files: Sequence[str]) -> str | None:
    """Return the first line of the largest non-empty file, because Spark's tasks begin there."""
    by_size = sorted(files, key=lambda file: place_of(file).size(), reverse=True)
    for file in by_size:
        with unpacked_text.open_unpacked(file) as opened:
            for batch in text_lines.lines_of_file(file, opened):
                if len(batch):
                    return str(batch[RAW][0].as_py()).lstrip("\ufeff")
    return None
