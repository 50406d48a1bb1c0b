"""The observed tables and ingest findings with which an audit compares the ledger."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from rebalance_core.checks.input_tables import ArrowTables, read_tables
from rebalance_core.checks.row_checks import check_tables
from rebalance_core.checks.row_counts import RowCounts
from rebalance_core.checks.table_files import tables_at
from rebalance_core.contracts import (
    ALL_TABLES,
    COVERAGE_TABLES,
    FINDING_TABLES,
    OBSERVED_TABLES,
)
from rebalance_core.storage.place import Location

READ_TABLES = (*OBSERVED_TABLES, *FINDING_TABLES, *COVERAGE_TABLES)


@dataclass(frozen=True, eq=False)
class Observed:
    """The observed tables by name, some of which may be empty, and their bad rows as ``rejected``.

    ``counts`` covers the existing tables.
    """

    tables: Mapping[str, pa.Table]
    rejected: pa.Table
    counts: Mapping[str, RowCounts]


def read_observed(folder: Location) -> Observed:
    """Return the observed tables in a folder, as `read_input_tables` does for input tables.

    Raises:
        InputRefused: a table lacks columns, appears twice or is not readable.
    """
    locations = tables_at(folder, READ_TABLES)
    return observed(read_tables(locations).tables)


def observed(tables: Mapping[str, pa.Table]) -> Observed:
    """Return the checked tables, given Arrow tables by name; missing tables are empty.

    Raises:
        InputRefused: a table lacks columns.
    """
    checked = check_tables(
        ArrowTables({name: tables[name] for name in READ_TABLES if name in tables})
    )
    good = {name: ALL_TABLES[name].arrow_schema().empty_table() for name in READ_TABLES}
    for name, rows in checked.tables.items():
        good[name] = rows.select(good[name].column_names)
    return Observed(good, checked.rejected, checked.counts)
