"""What an audit compares with: the observed tables, and the findings of an ingest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from rebalance_core.checks.reading.locations import local_tables
from rebalance_core.checks.reading.tables import read_table, stored_table
from rebalance_core.checks.row_checks import check_table
from rebalance_core.contracts import ALL_TABLES, FINDING_TABLES, OBSERVED_TABLES, REJECTED
from rebalance_core.storage.place import Place

READ_TABLES = (*OBSERVED_TABLES, *FINDING_TABLES)


@dataclass(frozen=True, eq=False)
class Observed:
    """The tables by name, each there and maybe empty; ``rejected`` has the rows that are none."""

    tables: Mapping[str, pa.Table]
    rejected: pa.Table


def read_observed(folder: str) -> Observed:
    """The tables that lie by name in the local folder, as `read_input_tables` reads its own.

    Raises:
        InputRefused: a table lacks columns, is there twice or is not readable.
    """
    locations = local_tables(folder, READ_TABLES)
    return observed({n: read_table(ALL_TABLES[n], path)[0] for n, path in locations.items()})


def stored_observed(folder: Place) -> Observed:
    """The tables that a job wrote into a folder, wherever that is.

    Raises:
        InputRefused: a table lacks columns, or a file cannot be read.
    """
    return observed({n: stored_table(ALL_TABLES[n], folder / n)[0] for n in READ_TABLES})


def observed(tables: Mapping[str, pa.Table]) -> Observed:
    """The tables out of Arrow tables by name, checked; those that are not there are empty.

    Raises:
        InputRefused: a table lacks columns.
    """
    good: dict[str, pa.Table] = {}
    rejected = [REJECTED.arrow_schema().empty_table()]
    for name in READ_TABLES:
        table = ALL_TABLES[name]
        if name not in tables:
            good[name] = table.arrow_schema().empty_table()
            continue
        checked = check_table(name, tables[name])
        good[name] = checked.tables[name].select(table.column_names)
        rejected.append(checked.rejected)
    return Observed(good, pa.concat_tables(rejected))
