"""The audit of whole tables in this process: every cluster judged, then every group."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from rebalance_core.audit.accepted import Acceptance
from rebalance_core.audit.case import AuditRun
from rebalance_core.audit.clusters import judge_clusters
from rebalance_core.audit.group_judge import GroupJudge
from rebalance_core.audit.selection import count_findings
from rebalance_core.audit.verdict import Count
from rebalance_core.contracts import AUDITED_TABLES
from rebalance_core.contracts.arrow_rows import rows_of_arrow
from rebalance_core.process.audit.cluster_rows import read_cluster_rows
from rebalance_core.process.audit.group_cases import group_cases
from rebalance_core.process.written_tables import LedgerFiles

Row = dict[str, Any]


@dataclass(frozen=True, eq=False)
class AuditResult:
    """``findings`` and ``group_verdicts`` as rows with the contract's columns.

    Attributes:
        findings: on groups, then on clusters.
        verdicts: one a group.
        runs: the audit runs by cluster.
    """

    findings: list[Row]
    verdicts: list[Row]
    runs: Mapping[str, AuditRun]

    def counts(self) -> list[Count]:
        """Findings by rule, severity and acceptance, in this order."""
        return count_findings(self.findings)

    def groups_by_verdict(self) -> Mapping[str, int]:
        """Groups by verdict of the comparison."""
        return Counter(row["verdict"] for row in self.verdicts)


def audit_tables(
    tables: Mapping[str, pa.Table],
    ledger: LedgerFiles | None = None,
    *,
    accepted: tuple[Acceptance, ...] = (),
    stale_hours: float = 6.0,
    not_before_ms: int | None = None,
    redact_salt: str | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> AuditResult:
    """Judge every cluster and group of the tables.

    Cost: memory for the tables, and for the rows of some groups, all findings and all verdicts.

    Args:
        tables: input tables, observed tables and ingest's findings, by name; and the ledger.
        ledger: where the ledger is, if ``tables`` has none: a ledger is large.
        accepted: acceptances that hold.
        stale_hours: what is older than this at the end says nothing about the present.
        not_before_ms: a collection that ends before is incomplete; None: it may be of any age.
        redact_salt: show names for client ids, mixed with this; None: show the ids.
        progress: told how many groups are judged, of how many.
    """
    clusters = judge_clusters(read_cluster_rows(tables), stale_hours, not_before_ms)
    judge = GroupJudge(clusters.runs, accepted, redact_salt)
    judged: dict[str, list[Row]] = {"findings": [], "group_verdicts": []}
    for cluster, group, rows in group_cases(tables, ledger, progress):
        for name, found in judge(cluster, group, rows).items():
            judged[name] += _whole(name, ({**row, "cluster": cluster} for row in found))
    of_ingest = tables["findings"].filter(pc.is_null(tables["findings"]["consumer_group"]))
    found = clusters.all_findings(
        rows_of_arrow(of_ingest),
        _unknown_groups(judged["group_verdicts"]),
        accepted,
        redact_salt,
    )
    findings = judged["findings"] + _whole("findings", found)
    return AuditResult(findings, judged["group_verdicts"], clusters.runs)


def _whole(table: str, rows: Iterable[Row]) -> list[Row]:
    """The rows with all columns, in the contract's order."""
    names = AUDITED_TABLES[table].column_names
    return [{name: row.get(name) for name in names} for row in rows]


def _unknown_groups(verdicts: Iterable[Row]) -> dict[str, tuple[list[Row], int]]:
    """By cluster the groups with their names, and how many of them were compared."""
    by_cluster: dict[str, tuple[list[Row], int]] = {}
    for row in verdicts:
        rows, compared = by_cluster.get(row["cluster"], ([], 0))
        rows.append(row | {"groups": 1, "names": [row["consumer_group"]]})
        by_cluster[row["cluster"]] = (rows, compared + (row["looks"] > 0))
    return by_cluster
