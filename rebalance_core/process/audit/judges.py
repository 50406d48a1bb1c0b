"""Clusters judged first, then every group: what both need, and what is made of both."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from rebalance_core.audit.accepted import Acceptance
from rebalance_core.audit.changes import fingerprint
from rebalance_core.audit.judge import GroupJudge, JudgedClusters, judge_clusters
from rebalance_core.contracts import AUDITED_TABLES
from rebalance_core.contracts.table import rows_of_arrow
from rebalance_core.process.audit.audit_result import AuditResult, Row
from rebalance_core.process.audit.cluster_rows import ClusterTables
from rebalance_core.process.audit.group_cases import Case

FINDINGS = "findings"
JUDGED = (FINDINGS, "group_verdicts")
"""The tables of which a judge makes rows."""

Judged = Mapping[str, list[Row]]
"""Rows of `JUDGED` on groups."""


@dataclass(frozen=True)
class Judges:
    """Clusters that are judged, and who judges their groups.

    Attributes:
        clusters: what is known and found of them.
        of_ingest: what ingest found beside groups.
        groups: judges a group; travels to every task.
    """

    clusters: JudgedClusters
    of_ingest: list[Row]
    groups: GroupJudge

    def result(self, judged: Judged) -> AuditResult:
        """What is found of all groups and clusters.

        Args:
            judged: of all groups (`judge_cases`).
        """
        verdicts = judged["group_verdicts"]
        found = self.clusters.all_findings(
            self.of_ingest, _unknown_groups(verdicts), self.groups.accepted, self.groups.salt
        )
        findings = judged["findings"] + _whole("findings", found)
        return AuditResult(findings, verdicts, self.clusters.runs, self.clusters.incomplete)


def judges_of(
    clusters: ClusterTables,
    *,
    accepted: tuple[Acceptance, ...] = (),
    stale_hours: float = 6.0,
    not_before_ms: int | None = None,
    redact_salt: str | None = None,
) -> Judges:
    """Judge the clusters.

    Args:
        clusters: what concerns them.
        accepted: acceptances that hold.
        stale_hours: what is older than this at the end says nothing about the present.
        not_before_ms: a collection that ends before is incomplete; None: it may be of any age.
        redact_salt: show names for client ids, mixed with this; None: show the ids.
    """
    judged = judge_clusters(clusters.by_cluster(), stale_hours, not_before_ms)
    groups = GroupJudge(judged.runs, accepted, redact_salt)
    return Judges(judged, rows_of_arrow(clusters.findings), groups)


def judge_cases(judge: GroupJudge, cases: Iterable[Case]) -> dict[str, list[Row]]:
    """What is found of some groups: rows of `JUDGED` with all columns."""
    judged: dict[str, list[Row]] = {name: [] for name in JUDGED}
    for cluster, group, rows in cases:
        for name, found in judge(cluster, group, rows).items():
            judged[name] += _whole(name, ({**row, "cluster": cluster} for row in found))
    return judged


def _whole(table: str, rows: Iterable[Row]) -> list[Row]:
    """The rows with all columns, in the contract's order."""
    if table == FINDINGS:
        rows = ({**row, "fingerprint": fingerprint(row)} for row in rows)
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
