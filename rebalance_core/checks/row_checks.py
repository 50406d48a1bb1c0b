"""Row checks: every input row is either used, or rejected with the reasons."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rebalance_core.checks.conform import (
    conform,
    issues_array,
    joined_issues,
    unknown_columns,
    with_text,
)
from rebalance_core.checks.digest import hash_sum
from rebalance_core.checks.duplicate_keys import duplicate_keys
from rebalance_core.checks.expected_values import MAX_QUEUE_NUMS
from rebalance_core.checks.input_tables import ArrowTables
from rebalance_core.checks.opening_state import is_of_state, late_events, superseded
from rebalance_core.checks.rejections import Rejections
from rebalance_core.checks.row_counts import Complaint, Content, RowCounts
from rebalance_core.checks.row_issues import row_issues
from rebalance_core.contracts import ALL_TABLES, REJECTED, Table
from rebalance_core.contracts.table import ISSUES_TYPE, RAW, READ_ISSUES, SOURCE, arrow_type

ISSUES = "issues"
"""The column that names what is wrong with each row."""


@dataclass(frozen=True, eq=False)
class Checked:
    """The input after the checks.

    Attributes:
        tables: the used rows by table: contract columns, ``_source``, ``_raw`` (null: see
            `conform.with_text`); equal repeats once.
        rejected: the ledger table.
        counts: rows and bad rows by table.
        state_end_ms: see `ArrowTables`.
    """

    tables: Mapping[str, pa.Table]
    rejected: pa.Table
    counts: Mapping[str, RowCounts]
    state_end_ms: int | None = None

    @cached_property
    def rejections(self) -> Rejections:
        """Issues of the rejected rows."""
        return Rejections.of(self.rejected)

    def complaints(self) -> list[Complaint]:
        """Return the lines of a refusal, one per table and code."""
        return self.rejections.complaints()


def check_tables(
    inputs: ArrowTables,
    *,
    max_queue_nums: int = MAX_QUEUE_NUMS,
    warn: Callable[[str], object] | None = None,
) -> Checked:
    """Check every existing table; see `check_table`.

    Args:
        inputs: as read or made by hand.
        max_queue_nums: the maximum number of queues of a topic on a broker.
        warn: called with a message for each table with unknown columns, which are ignored.
    """
    if warn is not None:
        for name, columns in inputs.unknown_columns.items():
            warn(unknown_columns(name, columns))
    tables: dict[str, pa.Table] = {}
    counts: dict[str, RowCounts] = {}
    rejected = [REJECTED.arrow_schema().empty_table()]
    for name, rows in inputs.tables.items():
        part = check_table(
            name,
            rows,
            max_queue_nums=max_queue_nums,
            state_end_ms=inputs.state_end_ms,
            state_checked=0 < inputs.state_checked_queue_nums <= max_queue_nums,
        )
        tables |= part.tables
        counts |= part.counts
        rejected.append(part.rejected)
    return Checked(tables, pa.concat_tables(rejected), counts, inputs.state_end_ms)


def check_table(
    table_name: str,
    rows: pa.Table,
    *,
    max_queue_nums: int = MAX_QUEUE_NUMS,
    state_end_ms: int | None = None,
    state_checked: bool = False,
) -> Checked:
    """Return the rows of one table, used or rejected.

    Observed tables have no keys, and their strings are observations, not settings, so any string is
    valid.

    Args:
        table_name: An input table.
        rows: Its rows, after those of the opening state.
        max_queue_nums: The maximum number of queues of a topic on a broker.
        state_end_ms: See `ArrowTables`.
        state_checked: Whether the run that left the state checked its rows against the same limits;
            they are then compared only with those of the input.

    Raises:
        InputRefused: non-null columns are missing.
    """
    table = ALL_TABLES[table_name]
    conformed = conform(table, rows)
    of_state = int(is_of_state(conformed).sum()) if state_checked else 0
    checked = with_issues(table, conformed.slice(of_state), max_queue_nums)
    if of_state:
        earlier = conformed.slice(0, of_state)
        none = pa.chunked_array([issues_array(of_state, ())], arrow_type(ISSUES_TYPE))
        checked = pa.concat_tables([earlier.append_column(ISSUES, none), checked])
    return by_keys(table, checked, state_end_ms, state_checked=state_checked)


def with_issues(table: Table, rows: pa.Table, max_queue_nums: int) -> pa.Table:
    """Return conformed rows with the issues of each row on its own in the column `ISSUES`."""
    issues = []
    for batch in rows.to_batches():
        row_errors = issues_array(len(batch), row_issues(table, batch, max_queue_nums))
        issues.append(joined_issues(batch.column(READ_ISSUES), row_errors))
    return rows.append_column(ISSUES, pa.chunked_array(issues, arrow_type(ISSUES_TYPE)))


def by_keys(
    table: Table,
    rows: pa.Table,
    state_end_ms: int | None = None,
    *,
    state_checked: bool = False,
) -> Checked:
    """Return rows of `with_issues`, used or rejected; all rows with a key must be among them.

    Bad rows of the opening state are neither, because the earlier run rejected them, or would have.
    """
    replaced = superseded(table, rows)
    if replaced.any():
        rows = rows.filter(pa.array(~replaced))
    repeats, differing = duplicate_keys(table, rows, state_checked=state_checked)
    late = late_events(table, rows, repeats, state_end_ms)
    of_keys = issues_array(len(rows), [differing, late])
    issues = joined_issues(_one_array(rows.column(ISSUES)), of_keys)
    bad = np.asarray(pc.list_value_length(issues)) > 0
    used = ~bad
    used[repeats] = False
    good = rows.select([*table.column_names, SOURCE, RAW])
    good = good if used.all() else good.filter(pa.array(used))
    of_state = is_of_state(rows)
    bad &= ~of_state
    new, earlier = int((~of_state).sum()), int(of_state.sum())
    content = _content(table, rows, good)
    return Checked(
        {table.name: good},
        _rejected(table, rows, issues, bad),
        {table.name: RowCounts(new, int(bad.sum()), content, earlier)},
    )


def _content(table: Table, rows: pa.Table, good: pa.Table) -> Content:
    """Return the content of all rows, bad ones included; the times are those of the input's good
    rows.
    """
    hashes = hash_sum([c for c in table.columns if c.name != "source"], rows)
    clusters = pc.unique(rows.column("cluster")).drop_null().to_pylist()
    first = last = None
    if "event_ms" in table.column_names:
        of_input = good.column("event_ms").filter(pa.array(~is_of_state(good)))
        first, last = pc.min_max(of_input).as_py().values()
    return Content(hashes, frozenset(clusters), first, last)


def _one_array(issues: pa.ChunkedArray) -> pa.Array:
    empty = pa.array([], arrow_type(ISSUES_TYPE))
    return pa.concat_arrays([empty, *issues.chunks])


def _rejected(table: Table, rows: pa.Table, issues: pa.Array, bad: np.ndarray) -> pa.Table:
    chosen = pa.array(bad)
    wrong = with_text(table, rows.filter(chosen))
    columns = [pa.repeat(table.name, len(wrong)), wrong[SOURCE], wrong[RAW], issues.filter(chosen)]
    return pa.table(columns, schema=REJECTED.arrow_schema())
