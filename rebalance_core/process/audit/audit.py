"""The audit of tables with their ledger: every cluster judged, then every group."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa

from rebalance_core.process.audit.audit_result import AuditResult
from rebalance_core.process.audit.cluster_rows import read_cluster_tables
from rebalance_core.process.audit.group_cases import group_cases
from rebalance_core.process.audit.judges import judge_cases, judges_of


def audit_tables(
    tables: Mapping[str, pa.Table],
    *,
    progress: Callable[[int, int], object] | None = None,
    **options: Any,
) -> AuditResult:
    """Judge every cluster and group of tables with a ledger; `run.audit_and_write` makes it.

    Cost: memory for the tables, and for the rows of some groups, all findings and all verdicts.

    Args:
        tables: input tables, observed tables, ingest's findings and the ledger, by name.
        progress: told how many groups are judged, of how many.
        options: those of `judges_of`.
    """
    judges = judges_of(read_cluster_tables(tables), **options)
    return judges.result(judge_cases(judges.groups, group_cases(tables, progress)))
