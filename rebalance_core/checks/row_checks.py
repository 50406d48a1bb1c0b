"""Row checks: every input row is used, or rejected with the reasons."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rebalance_core.checks.conform import conform, with_text
from rebalance_core.checks.duplicate_keys import duplicate_keys
from rebalance_core.checks.input_tables import InputTables
from rebalance_core.checks.issue_arrays import issues_array, joined_issues
from rebalance_core.checks.row_counts import Complaint, RowCounts
from rebalance_core.checks.row_issues import row_issues
from rebalance_core.checks.rules import MAX_QUEUE_NUMS
from rebalance_core.contracts import ALL_TABLES, REJECTED, Table
from rebalance_core.contracts.table import ISSUES_TYPE, RAW, READ_ISSUES, SOURCE, arrow_type

ISSUES = "issues"
"""The column of what is wrong with each row."""

_LINE = re.compile(r"[:@]([0-9]+)$")
_LARGEST_LINE = 2**63 - 1


@dataclass(frozen=True, eq=False)
class Checked:
    """The input after the checks.

    Attributes:
        tables: the used rows by table: contract columns, ``_source``, ``_raw`` (null: see
            `conform.with_text`); equal repeats once.
        rejected: the ledger table.
        counts: rows and bad rows by table.
    """

    tables: Mapping[str, pa.Table]
    rejected: pa.Table
    counts: Mapping[str, RowCounts]


def check_tables(inputs: InputTables, *, max_queue_nums: int = MAX_QUEUE_NUMS) -> Checked:
    """Check every table there is; see `check_table`.

    Args:
        inputs: as read or made by hand.
        max_queue_nums: the most queues that a topic may have on a broker.
    """
    return _checked(
        check_table(name, rows, max_queue_nums=max_queue_nums)
        for name, rows in inputs.tables.items()
    )


def _checked(parts: Iterable[Checked]) -> Checked:
    tables: dict[str, pa.Table] = {}
    counts: dict[str, RowCounts] = {}
    rejected = [REJECTED.arrow_schema().empty_table()]
    for part in parts:
        tables |= part.tables
        counts |= part.counts
        rejected.append(part.rejected)
    return Checked(tables, pa.concat_tables(rejected), counts)


def check_table(
    table_name: str, rows: pa.Table, *, max_queue_nums: int = MAX_QUEUE_NUMS
) -> Checked:
    """The rows of one table, used or rejected.

    Observed tables have no keys, and their texts are what was seen, not settings: any is good.

    Raises:
        InputRefused: columns that may not be null are missing.
    """
    table = ALL_TABLES[table_name]
    return by_keys(table, with_issues(table, conform(table, rows), max_queue_nums))


def with_issues(table: Table, rows: pa.Table, max_queue_nums: int) -> pa.Table:
    """Conformed rows with all that is wrong with each alone, in the column `ISSUES`."""
    issues = []
    for batch in rows.to_batches():
        own = issues_array(len(batch), row_issues(table, batch, max_queue_nums))
        issues.append(joined_issues(batch.column(READ_ISSUES), own))
    return rows.append_column(ISSUES, pa.chunked_array(issues, arrow_type(ISSUES_TYPE)))


def by_keys(table: Table, rows: pa.Table) -> Checked:
    """Rows of `with_issues`, used or rejected; all rows of one key must be among them."""
    duplicates = duplicate_keys(table, rows)
    own = issues_array(len(rows), [duplicates.differing])
    issues = joined_issues(_one_array(rows.column(ISSUES)), own)
    bad = np.asarray(pc.list_value_length(issues)) > 0
    used = ~bad
    used[duplicates.repeats] = False
    good = rows.select([*table.column_names, SOURCE, RAW])
    good = good if used.all() else good.filter(pa.array(used))
    return Checked(
        {table.name: good},
        _rejected(table, rows, issues, bad),
        {table.name: RowCounts(len(rows), int(bad.sum()))},
    )


def _one_array(issues: pa.ChunkedArray) -> pa.Array:
    empty = pa.array([], arrow_type(ISSUES_TYPE))
    return pa.concat_arrays([empty, *issues.chunks])


def _rejected(table: Table, rows: pa.Table, issues: pa.Array, bad: np.ndarray) -> pa.Table:
    chosen = pa.array(bad)
    wrong = with_text(table, rows.filter(chosen))
    columns = [pa.repeat(table.name, len(wrong)), wrong[SOURCE], wrong[RAW], issues.filter(chosen)]
    return pa.table(columns, schema=REJECTED.arrow_schema())


def complaints(rejected: pa.Table) -> list[Complaint]:
    """The issues of rows of ``rejected``, by table and code, the most frequent first.

    The row that a complaint shows is the first by file, line and message.
    """
    times: dict[tuple[str, str], int] = {}
    first: dict[tuple[str, str], _Place] = {}
    for row in rejected.to_pylist():
        for issue in row["issues"]:
            group = (row["table_name"], issue["code"])
            place = _place(row["source"], issue["message"])
            times[group] = times.get(group, 0) + 1
            first[group] = min(first.get(group, place), place)
    order = sorted(times, key=lambda group: (group[0], -times[group], group[1]))
    return [Complaint(*group, times[group], *first[group][-2:]) for group in order]


_Place = tuple[bool, str, int, str, str]
"""Whether there is a source, its file and line (-1: none), the source and the message."""


def _place(source: str | None, message: str) -> _Place:
    found = _LINE.search(source or "")
    line = int(found[1]) if found is not None else -1
    file = _LINE.sub("", source or "")
    return source is not None, file, line if line <= _LARGEST_LINE else -1, source or "", message
