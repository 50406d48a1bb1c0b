"""An audit in short: the verdict, and the counts that the page, metrics and summary show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from rebalance_core.audit.case import AuditRun
from rebalance_core.audit.verdict import Count, verdict_of
from rebalance_core.model.verdicts import RunVerdict


class Judged(Protocol):
    """Findings and verdicts of all groups, wherever they are."""

    @property
    def runs(self) -> Mapping[str, AuditRun]:
        """What was audited, by cluster."""

    def counts(self) -> list[Count]:
        """Findings by rule, severity and acceptance, in this order."""

    def groups_by_verdict(self) -> Mapping[str, int]:
        """Groups by verdict of the comparison."""


@dataclass(frozen=True)
class AuditOutcome:
    """What came of an audit run.

    Attributes:
        cluster: names of the clusters.
        verdict: one word for all findings; fails: True if one is at or above ``fail_on``, or the
            collection is incomplete.
        start_ms: start of what was audited, epoch ms UTC; end_ms: its end.
        counts: findings by rule, severity and acceptance.
        groups: groups by verdict of the comparison.
    """

    cluster: str
    verdict: RunVerdict
    fails: bool
    fail_on: str
    start_ms: int
    end_ms: int
    counts: Sequence[Count]
    groups: Mapping[str, int]

    def record(self) -> dict[str, Any]:
        """As `_run.json` has it; counts by rule and severity, those accepted apart."""
        findings: dict[str, dict[str, int]] = {}
        for count in self.counts:
            kind = "accepted" if count.accepted else count.severity
            of_rule = findings.setdefault(count.rule_id, {})
            of_rule[kind] = of_rule.get(kind, 0) + count.findings
        return {
            "verdict": self.verdict,
            "fails": self.fails,
            "fail_on": self.fail_on,
            "start_ms": self.start_ms,
            "end_ms": self.end_ms,
            "groups": dict(sorted(self.groups.items())),
            "findings": dict(sorted(findings.items())),
        }


def audit_outcome(judged: Judged, fail_on: str) -> AuditOutcome:
    """Count findings and verdicts of all groups.

    Args:
        judged: what was judged.
        fail_on: the least severity of an open finding that fails the run.
    """
    counts, runs = judged.counts(), judged.runs.values()
    verdict, fails = verdict_of(counts, fail_on)
    return AuditOutcome(
        cluster=", ".join(sorted(judged.runs)),
        verdict=verdict,
        fails=fails,
        fail_on=fail_on,
        start_ms=min((run.start_ms for run in runs), default=0),
        end_ms=max((run.end_ms for run in runs), default=0),
        counts=counts,
        groups=dict(sorted(judged.groups_by_verdict().items())),
    )
