"""An audit in short: the verdict, and the counts that the page, metrics and summary show."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from rebalance_core.audit.case import AuditRun
from rebalance_core.audit.selection import count_findings
from rebalance_core.audit.verdict import Count, verdict_of
from rebalance_core.model.verdicts import RunVerdict

Row = Mapping[str, Any]


@dataclass(frozen=True)
class AuditOutcome:
    """What came of an audit run, or of one of its clusters.

    Attributes:
        cluster: names of the clusters.
        verdict: one word for all findings; fails: True if one is at or above ``fail_on``, or the
            collection is incomplete.
        start_ms: start of what was audited, epoch ms UTC; end_ms: its end.
        counts: findings by rule, severity and acceptance.
        groups: groups by verdict of the comparison.
        clusters: each cluster by itself; empty in that of one.
    """

    cluster: str
    verdict: RunVerdict
    fails: bool
    fail_on: str
    start_ms: int
    end_ms: int
    counts: Sequence[Count]
    groups: Mapping[str, int]
    clusters: Sequence[Self] = field(default=())

    def record(self) -> dict[str, Any]:
        """As `_run.json` has it; counts by rule and severity, those accepted apart."""
        findings: dict[str, dict[str, int]] = {}
        for count in self.counts:
            kind = "accepted" if count.accepted else count.severity
            of_rule = findings.setdefault(count.rule_id, {})
            of_rule[kind] = of_rule.get(kind, 0) + count.findings
        record = {
            "verdict": self.verdict,
            "fails": self.fails,
            "fail_on": self.fail_on,
            "start_ms": self.start_ms,
            "end_ms": self.end_ms,
            "groups": dict(sorted(self.groups.items())),
            "findings": dict(sorted(findings.items())),
        }
        if self.clusters:
            record["clusters"] = {one.cluster: one.record() for one in self.clusters}
        return record


def audit_outcome(
    findings: Sequence[Row], verdicts: Sequence[Row], runs: Mapping[str, AuditRun], fail_on: str
) -> AuditOutcome:
    """Count findings and verdicts of all groups, and of each cluster.

    Args:
        findings: all rows.
        verdicts: rows of ``group_verdicts``.
        runs: what was audited, by cluster.
        fail_on: the least severity of an open finding that fails the run.
    """
    found, judged = _by_cluster(findings), _by_cluster(verdicts)
    names = sorted({*runs, *found, *judged})
    clusters = [
        _outcome(
            name,
            found.get(name, []),
            judged.get(name, []),
            [runs[name]] if name in runs else [],
            fail_on,
        )
        for name in names
    ]
    return _outcome(", ".join(names), findings, verdicts, list(runs.values()), fail_on, clusters)


def _outcome(
    cluster: str,
    findings: Iterable[Row],
    verdicts: Iterable[Row],
    runs: Sequence[AuditRun],
    fail_on: str,
    clusters: Sequence[AuditOutcome] = (),
) -> AuditOutcome:
    counts = count_findings(findings)
    verdict, fails = verdict_of(counts, fail_on)
    return AuditOutcome(
        cluster=cluster,
        verdict=verdict,
        fails=fails,
        fail_on=fail_on,
        start_ms=min((run.start_ms for run in runs), default=0),
        end_ms=max((run.end_ms for run in runs), default=0),
        counts=counts,
        groups=dict(sorted(Counter(row["verdict"] for row in verdicts).items())),
        clusters=clusters,
    )


def _by_cluster(rows: Iterable[Row]) -> dict[str, list[Row]]:
    by_cluster: dict[str, list[Row]] = {}
    for row in rows:
        by_cluster.setdefault(row["cluster"], []).append(row)
    return by_cluster
