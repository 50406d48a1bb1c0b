"""The input tables of one simulation, as read from files or made by hand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

import pyarrow as pa

from rebalance_core.checks.conform import conform
from rebalance_core.checks.reading.locations import (
    local_files,
    local_tables,
    not_found,
    unknown_names,
)
from rebalance_core.checks.reading.tables import read_table, stored_table
from rebalance_core.checks.reading.text_rows import names_of_line
from rebalance_core.contracts import INPUT_TABLES
from rebalance_core.contracts.table import RAW, TECHNICAL
from rebalance_core.model.errors import InputRefused
from rebalance_core.storage.place import Place

_NOTHING: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, eq=False)
class InputTables:
    """The tables of one simulation that are there, by name.

    Attributes:
        tables: as `conform` returns them: the contract's columns and `TECHNICAL`.
        paths: where a table was read from.
        unknown_columns: names, sorted, that are no columns and are read past.
    """

    tables: Mapping[str, pa.Table]
    paths: Mapping[str, str] = field(default_factory=dict)
    unknown_columns: Mapping[str, list[str]] = field(default_factory=dict)


def read_input_tables(
    folder: str | None = None,
    *,
    paths: Mapping[str, str] = _NOTHING,
    input_format: str | None = None,
) -> InputTables:
    """Read the tables found by name in ``folder``; the paths given by name go first.

    A table is a file or a folder of part files: ``cluster_events.jsonl``, ``.json``, ``.csv``
    (each also ``.gz``) or ``.parquet``. JSON has one object a line; CSV has a header in every
    part, RFC 4180 quoting, one record a line, arrays as JSON text. Blank lines are skipped.

    Args:
        folder: a local folder.
        paths: local files, folders of part files or patterns, by name of the table.
        input_format: ``json``, ``csv`` or ``parquet``; None: as the names tell.

    Raises:
        InputRefused: a path does not exist or is not local, a required table is not there or lacks
            columns, a file cannot be read.
        UsageError: the format is unknown.
    """
    locations = local_tables(str(folder), INPUT_TABLES) if folder is not None else {}
    locations |= {name: str(path) for name, path in paths.items()}
    for table in INPUT_TABLES.values():
        if table.required and table.name not in locations:
            files = () if folder is None else local_files(str(folder))
            raise InputRefused(not_found(table, folder, files))
    read = {n: read_table(INPUT_TABLES[n], p, input_format) for n, p in locations.items()}
    return InputTables(
        tables={name: rows for name, (rows, _) in read.items()},
        paths=locations,
        unknown_columns={name: unknown for name, (_, unknown) in read.items() if unknown},
    )


def stored_input_tables(folder: Place) -> InputTables:
    """The tables that a job wrote into a folder, wherever that is, as `read_input_tables` does.

    Raises:
        InputRefused: a table lacks columns, or a file cannot be read.
    """
    read = {name: stored_table(table, folder / name) for name, table in INPUT_TABLES.items()}
    return InputTables(
        tables={name: rows for name, (rows, _) in read.items()},
        paths={name: str(folder / name) for name in read},
        unknown_columns={name: unknown for name, (_, unknown) in read.items() if unknown},
    )


def input_tables_of(tables: Mapping[str, pa.Table]) -> InputTables:
    """Tables made by hand, conformed: of other types, with columns missing or too many.

    Raises:
        InputRefused: ``cluster_events`` or columns that may not be null are missing.
    """
    if "cluster_events" not in tables:
        raise InputRefused(not_found(INPUT_TABLES["cluster_events"], None, ()))
    unknown = {}
    for name, rows in tables.items():
        names = _names_in_raw(rows) if RAW in rows.column_names else rows.column_names
        unknown[name] = unknown_names(INPUT_TABLES[name], names, TECHNICAL)
    return InputTables(
        tables={name: conform(INPUT_TABLES[name], rows) for name, rows in tables.items()},
        unknown_columns={name: names for name, names in unknown.items() if names},
    )


def _names_in_raw(rows: pa.Table) -> set[str]:
    lines = rows.column(RAW).drop_null().to_pylist()
    return set().union(*map(names_of_line, lines))
