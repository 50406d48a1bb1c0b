"""Reads the rows of Parquet files, each with its file and row number.

A table may be read whole, or in pieces by several tasks: the rows are the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from rebalance_core.checks.conform import refuse_repeated_columns
from rebalance_core.contracts.table import SOURCE, TECHNICAL
from rebalance_core.model.errors import InputRefused
from rebalance_core.storage.place import Location, Place, place_of
from rebalance_core.storage.store_answers import is_of_store, refusal

_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
_WHOLE_BYTES = 8 << 20
"""Files larger than this many bytes are divided into their row groups."""
_ROWS_AT_ONCE = 1 << 17


@dataclass(frozen=True, slots=True)
class ParquetRows:
    """A part of a Parquet file's rows.

    Attributes:
        file: The file.
        size: The approximate size in bytes.
        row_group: The row group; None for all.
        before: The number of rows in the file before these.
    """

    file: Place
    size: int
    row_group: int | None = None
    before: int = 0


@dataclass(frozen=True, eq=False)
class ParquetTable:
    """Parquet files that form one table; picklable.

    Attributes:
        path: The table's name.
        schema: The first file's schema; columns that another file lacks are null there. Folders
            named ``column=value`` add a column. `SOURCE` is among them.
    """

    path: str
    schema: pa.Schema

    @classmethod
    def of(cls, path: str, files: Sequence[Location]) -> ParquetTable:
        """Return the table of one or more files; raise `InputRefused` if the first is not
        Parquet.
        """
        file = place_of(files[0])
        with _refusing(path):
            opened = _opened(file)
            return cls(path, _rows(file, opened, opened.schema_arrow.empty_table(), 0).schema)

    @property
    def names(self) -> list[str]:
        """The names of all columns, without `SOURCE`."""
        return [name for name in self.schema.names if name != SOURCE]

    def whole(self, files: Sequence[Location]) -> pa.Table:
        """Return all rows of one or more files for `conform`; raise `InputRefused` as `rows`
        does.
        """
        with _refusing(self.path):
            return pa.concat_tables(self._whole_file(place_of(file)) for file in files)

    def rows(self, piece: ParquetRows) -> Iterator[pa.Table]:
        """Yield the rows of a piece for `conform`, some at a time.

        Raises:
            InputRefused: The file is not Parquet, or its types do not fit the schema.
        """
        groups = None if piece.row_group is None else [piece.row_group]
        with _refusing(self.path):
            opened, before = _opened(piece.file), piece.before
            for batch in opened.iter_batches(_ROWS_AT_ONCE, groups, use_threads=False):
                rows = _rows(piece.file, opened, pa.Table.from_batches([batch]), before)
                yield self._fitting(rows)
                before += len(batch)

    def _whole_file(self, file: Place) -> pa.Table:
        opened = _opened(file)
        return self._fitting(_rows(file, opened, opened.read(), 0))

    def _fitting(self, rows: pa.Table) -> pa.Table:
        """Return the columns of the schema; columns that the rows lack are null."""
        by_name = dict(zip(rows.column_names, rows.columns, strict=True))
        columns = [
            by_name[field.name].cast(field.type)
            if field.name in by_name
            else pa.nulls(len(rows), field.type)
            for field in self.schema
        ]
        return pa.table(columns, schema=self.schema)


def pieces_of(path: str, files: Sequence[Location]) -> list[ParquetRows]:
    """Return the rows of files in pieces; a small file is one piece.

    Args:
        path: The table's name.
        files: The table's files.

    Raises:
        InputRefused: A file is not Parquet.
    """
    pieces = []
    for file in map(place_of, files):
        size = file.size()
        if size <= _WHOLE_BYTES:
            pieces.append(ParquetRows(file, size))
            continue
        with _refusing(path):
            metadata = _opened(file).metadata
        before = 0
        for number in range(metadata.num_row_groups):
            pieces.append(ParquetRows(file, size // metadata.num_row_groups, number, before))
            before += metadata.row_group(number).num_rows
    return pieces


_NOT_OF_SPARK = {"TIME", "FLOAT16", "UUID", "INTERVAL"}
_MOST_DIGITS = 38
"""The maximum number of digits in Spark's decimals."""


def has_types_of_spark(path: str, files: Iterable[Location]) -> bool:
    """Return True if Spark's Parquet reader supports the types of all columns in all files.

    It refuses a file for any column, used or not, of nanosecond timestamps (which pandas and
    pyarrow write), times of day, half floats, UUIDs or decimals of more than 38 digits.

    Args:
        path: The table's name.
        files: The table's files, whose footers are read.

    Raises:
        InputRefused: A file is not Parquet.
    """
    with _refusing(path):
        return all(_is_of_spark(_opened(place_of(file)).schema) for file in files)


def _is_of_spark(schema: pq.ParquetSchema) -> bool:
    for leaf in map(schema.column, range(len(schema))):
        kind = leaf.logical_type
        nanoseconds = kind.type == "TIMESTAMP" and '"nanoseconds"' in kind.to_json()
        if nanoseconds or kind.type in _NOT_OF_SPARK or (leaf.precision or 0) > _MOST_DIGITS:
            return False
    return True


@contextmanager
def _refusing(path: str) -> Iterator[None]:
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        if is_of_store(error):
            raise refusal(error, f"{path} cannot be read", InputRefused) from error
        raise InputRefused(f"{path} cannot be read as parquet: {error}") from error


def _opened(file: Place) -> pq.ParquetFile:
    return pq.ParquetFile(file.path, filesystem=file.file_system)


def _rows(file: Place, opened: pq.ParquetFile, read: pa.Table, before: int) -> pa.Table:
    """Return rows as read, with `SOURCE` and the columns that folders name."""
    refuse_repeated_columns(file.name, read.column_names)
    named = zip(read.column_names, read.columns, strict=True)
    columns = {name: column for name, column in named if name not in TECHNICAL}
    for leaf in map(opened.schema.column, range(len(opened.schema))):
        if leaf.physical_type == "INT96" and leaf.path in columns:
            # timestamps from Spark and old Hive are instants, but pyarrow reads them as local times
            moments = columns[leaf.path].cast(pa.timestamp("us"), safe=False)
            columns[leaf.path] = moments.cast(pa.timestamp("us", "UTC"))
    for name, value in _partition(file.path).items():
        columns[name] = pa.chunked_array([pa.repeat(pa.scalar(value, pa.string()), len(read))])
    numbers = pa.array(np.arange(before + 1, before + 1 + len(read))).cast(pa.string())
    source = pc.binary_join_element_wise(file.name, numbers, ":")
    return pa.table({**columns, SOURCE: source})


def _partition(file: str) -> dict[str, str | None]:
    """Return the columns named by the folders above the file, as strings."""
    pairs = (part.partition("=") for part in file.split("/")[:-1] if "=" in part)
    return {unquote(k): None if v == _NO_VALUE else unquote(v) for k, _, v in pairs}
