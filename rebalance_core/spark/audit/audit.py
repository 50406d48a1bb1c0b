"""The audit of whole tables: every group judged in its task, the cluster on the driver."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from pyspark.sql import DataFrame

from rebalance_core.audit.accepted import Acceptance
from rebalance_core.audit.case import AuditRun
from rebalance_core.audit.clusters import judge_clusters
from rebalance_core.audit.completeness import CLUSTER_KINDS
from rebalance_core.audit.evidence.formatting import LISTED
from rebalance_core.audit.group_judge import GroupJudge
from rebalance_core.audit.verdict import Count
from rebalance_core.spark.audit.group_cases import judge_groups
from rebalance_core.spark.audit.queries import (
    count_findings,
    findings_frame,
    judged_tables,
    read_cluster_rows,
    unknown_groups,
)
from rebalance_core.spark.driver_rows import rows_of


@dataclass(frozen=True, eq=False)
class AuditResult:
    """``findings`` and ``group_verdicts`` as frames, and the audit runs by cluster.

    Both frames read ``judged``, which is kept once computed; `close` releases it.
    """

    findings: DataFrame
    verdicts: DataFrame
    runs: Mapping[str, AuditRun]
    judged: DataFrame

    def counts(self) -> list[Count]:
        """Findings by rule, severity and acceptance, in this order."""
        return count_findings(self.findings)

    def groups_by_verdict(self) -> dict[str, int]:
        """Groups by verdict of the comparison."""
        counted = rows_of(self.verdicts.groupBy("verdict").count())
        return {row["verdict"]: row["count"] for row in counted}

    def close(self) -> None:
        """Release what is kept; the frames stay usable, and compute it again."""
        self.judged.unpersist()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def audit_tables(
    tables: Mapping[str, DataFrame],
    *,
    accepted: tuple[Acceptance, ...] = (),
    stale_hours: float = 6.0,
    not_before_ms: int | None = None,
    redact_salt: str | None = None,
) -> AuditResult:
    """Judge every cluster and group of the tables; close the result when it is read.

    Args:
        tables: input tables, ledger, observed tables and ingest's findings, by name. They are read
            several times: as written ones, not as plans.
        accepted: acceptances that hold.
        stale_hours: what is older than this at the end says nothing about the present.
        not_before_ms: a collection that ends before is incomplete; None: it may be of any age.
        redact_salt: show names for client ids, mixed with this; None: show the ids.
    """
    clusters = judge_clusters(read_cluster_rows(tables, CLUSTER_KINDS), stale_hours, not_before_ms)
    judge = GroupJudge(clusters.runs, accepted, redact_salt)
    judged = judge_groups(tables, judge).persist()
    try:
        findings, verdicts = judged_tables(judged)
        rows = clusters.all_findings(
            rows_of(tables["findings"].where("consumer_group IS NULL")),
            unknown_groups(verdicts, LISTED),
            accepted,
            redact_salt,
        )
    except BaseException:
        judged.unpersist()
        raise
    of_clusters = findings_frame(judged.sparkSession, rows)
    return AuditResult(findings.unionByName(of_clusters), verdicts, clusters.runs, judged)
