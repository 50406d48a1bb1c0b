"""The audit of whole tables: every group judged in its task, the cluster on the driver."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Self

from pyspark.sql import DataFrame

from rebalance_core.audit.accepted import Acceptance, accept
from rebalance_core.audit.case import AuditRun, GroupCase
from rebalance_core.audit.completeness import CLUSTER_KINDS
from rebalance_core.audit.evidence.formatting import LISTED
from rebalance_core.audit.judge import judge, judge_cluster, missing_of_groups, missing_reason
from rebalance_core.audit.redact import Redaction
from rebalance_core.spark.audit.group_cases import judge_groups
from rebalance_core.spark.audit.queries import (
    cluster_rows,
    findings_frame,
    judged_tables,
    rows_of,
    unknown_groups,
)

Row = dict[str, Any]


@dataclass(frozen=True)
class GroupJudge:
    """Judges one group; travels to every task.

    Attributes:
        runs: by cluster.
        accepted: acceptances that hold.
        salt: of the names for client ids; None: they are shown.
    """

    runs: Mapping[str, AuditRun]
    accepted: tuple[Acceptance, ...] = ()
    salt: str | None = None

    def __call__(
        self, cluster: str, group: str, rows: Mapping[str, list[Row]]
    ) -> Mapping[str, list[Row]]:
        """Rows of ``findings`` and ``group_verdicts`` from the group's rows by table."""
        case = GroupCase(cluster, group, self.runs.get(cluster, AuditRun(0, 0)), rows)
        judged = judge(case, self.accepted)
        if self.salt is None or not judged["findings"]:
            return judged
        redaction = Redaction(self.salt, case)
        return {**judged, "findings": [redaction.finding(row) for row in judged["findings"]]}


@dataclass(frozen=True, eq=False)
class AuditResult:
    """``findings`` and ``group_verdicts`` as frames, and the audit runs by cluster.

    Both frames read ``judged``, which is kept once computed; `close` releases it.
    """

    findings: DataFrame
    verdicts: DataFrame
    runs: Mapping[str, AuditRun]
    judged: DataFrame

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
    runs, rows, brokers = {}, [], set[str]()
    for cluster, known in cluster_rows(tables, CLUSTER_KINDS).items():
        run, cluster_findings = judge_cluster(
            known.facts, known.dumps, known.broker_events, stale_hours, not_before_ms
        )
        runs[cluster] = run
        brokers |= {row["broker_name"] for row in (*known.facts, *known.broker_events)} - {None}
        rows += [{"cluster": cluster} | row for row in cluster_findings]
    rows += rows_of(tables["findings"].where("consumer_group IS NULL"))
    judged = judge_groups(tables, GroupJudge(runs, accepted, redact_salt)).persist()
    try:
        findings, verdicts = judged_tables(judged)
        for cluster, (unknown, compared) in unknown_groups(verdicts, LISTED).items():
            missing = missing_of_groups(_by_reason(unknown), compared)
            rows += [{"cluster": cluster} | row for row in missing]
    except BaseException:
        judged.unpersist()
        raise
    rows = [accept(row, accepted) for row in rows]
    if redact_salt is not None:
        rows = list(map(Redaction(redact_salt, brokers=brokers).finding, rows))
    of_clusters = findings_frame(judged.sparkSession, rows)
    return AuditResult(findings.unionByName(of_clusters), verdicts, runs, judged)


def _by_reason(unknown: Iterable[Row]) -> dict[str, tuple[int, list[str]]]:
    """Groups of which something is missing, by `missing_reason`; rows of `unknown_groups`."""
    by_reason: dict[str, tuple[int, list[str]]] = {}
    for row in unknown:
        reason = missing_reason(row)
        if reason is not None:
            groups, names = by_reason.get(reason, (0, []))
            by_reason[reason] = (groups + row["groups"], sorted([*names, *row["names"]])[:LISTED])
    return by_reason
