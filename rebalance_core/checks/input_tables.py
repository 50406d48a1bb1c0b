"""The input tables of one simulation, as read from files or made by hand."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

import pyarrow as pa

from rebalance_core.checks import text_rows
from rebalance_core.checks.conform import conform
from rebalance_core.checks.table_files import data_files, not_found, tables_at, unknown_names
from rebalance_core.checks.table_reading import read_table
from rebalance_core.contracts import ALL_TABLES, INPUT_TABLES
from rebalance_core.contracts.table import RAW, TECHNICAL
from rebalance_core.model.errors import InputRefused
from rebalance_core.storage.place import Location

_NOTHING: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, eq=False)
class ArrowTables:
    """The existing tables of a simulation, by name.

    Attributes:
        tables: as returned by `conform`: the contract's columns and `TECHNICAL`.
        paths: where a table was read from.
        unknown_columns: sorted names of unknown columns, which are ignored.
        state_end_ms: the end of the opening state whose rows are among them; None without such a
            state.
        state_checked_queue_nums: the limit on queues per topic with which the run that left the
            state checked its rows; 0 if they are unchecked.
    """

    tables: Mapping[str, pa.Table]
    paths: Mapping[str, str] = field(default_factory=dict)
    unknown_columns: Mapping[str, list[str]] = field(default_factory=dict)
    state_end_ms: int | None = None
    state_checked_queue_nums: int = 0


def read_input_tables(
    folder: Location | None = None,
    *,
    paths: Mapping[str, str] = _NOTHING,
    input_format: str | None = None,
) -> ArrowTables:
    """Read the tables found by name in ``folder``; paths passed by name take precedence.

    A table is a file or a folder of part files: ``cluster_events.jsonl``, ``.json``, ``.csv``
    (each also ``.gz``) or ``.parquet``. JSON has one object per line. CSV has a header in every
    part, RFC 4180 quoting, one record per line, and arrays as JSON text. Blank lines are skipped.

    Args:
        folder: a folder that this process can reach.
        paths: files, folders of part files or, if local, patterns, by table name.
        input_format: ``json``, ``csv`` or ``parquet``; None to infer it from the names.

    Raises:
        InputRefused: a path does not exist, a required table is missing or lacks columns, or a file
            cannot be read.
        UsageError: the format is unknown.
    """
    of_folder = {} if folder is None else tables_at(folder, INPUT_TABLES)
    locations: dict[str, Location] = {**of_folder, **paths}
    for table in INPUT_TABLES.values():
        if table.required and table.name not in locations:
            files = () if folder is None else data_files(folder)
            raise InputRefused(not_found(table, None if folder is None else str(folder), files))
    return read_tables(locations, input_format)


def read_tables(locations: Mapping[str, Location], input_format: str | None = None) -> ArrowTables:
    """Return any tables by name, read from their locations; see `read_table`."""
    read = {name: read_table(ALL_TABLES[name], p, input_format) for name, p in locations.items()}
    return ArrowTables(
        tables={name: rows for name, (rows, _) in read.items()},
        paths={name: str(path) for name, path in locations.items()},
        unknown_columns={name: unknown for name, (_, unknown) in read.items() if unknown},
    )


def input_tables_of(tables: Mapping[str, pa.Table]) -> ArrowTables:
    """Return tables made by hand, conformed from other types and missing or extra columns.

    Raises:
        InputRefused: ``cluster_events`` or non-null columns are missing.
    """
    if "cluster_events" not in tables:
        raise InputRefused(not_found(INPUT_TABLES["cluster_events"], None, ()))
    unknown = {}
    for name, rows in tables.items():
        names = _names_in_raw(rows) if RAW in rows.column_names else rows.column_names
        unknown[name] = unknown_names(INPUT_TABLES[name], names, TECHNICAL)
    return ArrowTables(
        tables={name: conform(INPUT_TABLES[name], rows) for name, rows in tables.items()},
        unknown_columns={name: names for name, names in unknown.items() if names},
    )


def _names_in_raw(rows: pa.Table) -> set[str]:
    lines = rows.column(RAW).drop_null().to_pylist()
    return set().union(*map(text_rows.names_of_line, lines))
