"""What the page of an audit shows, from the tables as they were written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow.compute as pc

from rebalance_core.audit.outcome import shown_first
from rebalance_core.audit.redact import Redaction
from rebalance_core.contracts import ALL_TABLES
from rebalance_core.contracts.table import rows_of_arrow
from rebalance_core.engine.units import GROUP
from rebalance_core.process.written_tables import GroupName, ReadWritten
from rebalance_core.report.audit_report import ShownFinding
from rebalance_core.report.audit_rows import (
    ROWS_OF_A_TIMELINE,
    TABLES_OF_GROUPS,
    Rows,
    shown_finding,
)

Row = dict[str, Any]


def rows_of_groups(read: ReadWritten, groups: Sequence[GroupName]) -> dict[str, Rows]:
    """Rows of `TABLES_OF_GROUPS`: what the page shows of the groups."""
    return {name: _newest_rows(read, name, groups, time) for name, time in TABLES_OF_GROUPS.items()}


def shown_findings(
    findings: Iterable[Mapping[str, Any]], limit: int, redaction: Redaction | None = None
) -> list[ShownFinding]:
    """The worst findings, open ones first."""
    rows = shown_first(findings, limit)
    return [shown_finding(redaction.finding(row) if redaction else row) for row in rows]


def _newest_rows(read: ReadWritten, name: str, groups: Sequence[GroupName], time: str) -> list[Row]:
    """The rows of these few groups, of each at most `ROWS_OF_A_TIMELINE`, the newest."""
    found: list[Row] = []
    for group in groups:
        rows = read(name, group)
        if len(rows) > ROWS_OF_A_TIMELINE:
            key = [c for c in ALL_TABLES[name].key if c not in GROUP]
            order = [(time, "descending"), *((c, "ascending") for c in key)]
            newest = pc.sort_indices(rows, order, null_placement="at_start")
            rows = rows.take(newest[:ROWS_OF_A_TIMELINE])
        found += rows_of_arrow(rows)
    return found
