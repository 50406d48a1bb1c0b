"""What the page of an audit shows, from the tables as they were written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame

from rebalance_core.audit.redact import Redaction
from rebalance_core.audit.selection import SHOWN_FIRST
from rebalance_core.report.audit_report import ShownFinding
from rebalance_core.report.audit_rows import shown_finding
from rebalance_core.report.group_pictures import ROWS_OF_A_TIMELINE, TABLES_OF_GROUPS, Rows
from rebalance_core.spark.audit.queries import of_groups, worst_first
from rebalance_core.spark.driver_rows import rows_of


def rows_of_groups(
    tables: Mapping[str, DataFrame], groups: Sequence[tuple[str, str]]
) -> dict[str, Rows]:
    """Rows of `TABLES_OF_GROUPS`: what the page shows of the groups."""
    return {
        name: of_groups(tables[name], name, groups, time, ROWS_OF_A_TIMELINE)
        for name, time in TABLES_OF_GROUPS.items()
    }


def shown_findings(
    findings: DataFrame, limit: int, redaction: Redaction | None = None
) -> list[ShownFinding]:
    """The worst findings, open ones first."""
    ordered = findings.orderBy(*worst_first(), *SHOWN_FIRST).limit(limit)
    return [shown_finding(redaction.finding(row) if redaction else row) for row in rows_of(ordered)]
