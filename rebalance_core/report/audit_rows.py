"""What the page of an audit shows, from rows of ``findings`` and of the ledger."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from rebalance_core.model.verdicts import (
    DIFFERS,
    EQUAL,
    OFFLINE,
    SHARED,
    UNKNOWN,
    UNSTABLE,
    RunVerdict,
)
from rebalance_core.report.audit_report import (
    AuditReport,
    GroupCounts,
    Previous,
    ShownFinding,
)
from rebalance_core.report.group_pictures import (
    GroupName,
    Rows,
    group_balances,
    group_timelines,
)
from rebalance_core.version import LIBRARY_VERSION

FINDINGS_ON_PAGE = 500
CHANGES_ON_PAGE = 50
Row = Mapping[str, Any]


class Counted(Protocol):
    """Findings of a rule, severity and acceptance."""

    @property
    def rule_id(self) -> str:
        """The rule."""

    @property
    def severity(self) -> str:
        """Of the findings."""

    @property
    def accepted(self) -> bool:
        """True if they are accepted."""

    @property
    def findings(self) -> int:
        """How many."""


class Outcome(Protocol):
    """An audit in short: an `AuditOutcome`."""

    @property
    def cluster(self) -> str:
        """Names of the clusters."""

    @property
    def verdict(self) -> RunVerdict:
        """One word for all findings."""

    @property
    def fail_on(self) -> str:
        """The least severity that fails the run."""

    @property
    def start_ms(self) -> int:
        """Start of what was audited, epoch ms UTC."""

    @property
    def end_ms(self) -> int:
        """Its end."""

    @property
    def counts(self) -> Sequence[Counted]:
        """All findings."""

    @property
    def groups(self) -> Mapping[str, int]:
        """Groups by verdict of the comparison."""


def audit_report(
    outcome: Outcome,
    rules: Mapping[str, str],
    shown: Sequence[ShownFinding],
    worst: Sequence[GroupName],
    tables: Mapping[str, Rows],
    previous: Previous | None,
    notes: Sequence[str],
    finished_ms: int,
) -> AuditReport:
    """What the page shows.

    Args:
        outcome: the verdict and the counts.
        rules: meaning of every rule.
        shown: the worst findings, at most `FINDINGS_ON_PAGE`.
        worst: (cluster, group) of the groups that get a timeline.
        tables: their rows of `TABLES_OF_GROUPS`, of each group at most `ROWS_OF_A_TIMELINE`.
        previous: what changed since the previous audit.
        notes: what the reader has to know.
        finished_ms: when the audit ended, epoch ms UTC.
    """
    return AuditReport(
        cluster=outcome.cluster,
        verdict=outcome.verdict,
        fail_on=outcome.fail_on,
        from_ms=outcome.start_ms,
        to_ms=outcome.end_ms,
        generated_ms=finished_ms,
        library_version=LIBRARY_VERSION,
        counts=_by_severity(outcome.counts),
        groups=_group_counts(outcome.groups),
        findings=tuple(shown),
        rules=rules,
        more=_not_shown(outcome.counts, shown),
        previous=previous,
        timelines=group_timelines(worst, tables),
        balance=group_balances(worst, tables),
        notes=tuple(notes),
    )


def shown_finding(row: Row) -> ShownFinding:
    """A row of ``findings`` as the page shows it."""
    evidence = dict(sorted((row["evidence"] or {}).items()))
    own = {k: v for k, v in row.items() if k not in ("evidence", "fingerprint")}
    return ShownFinding(**own, evidence=evidence)


def _by_severity(counts: Iterable[Counted]) -> dict[str, int]:
    severities: Counter[str] = Counter()
    for count in counts:
        if not count.accepted:
            severities[count.severity] += count.findings
    return dict(severities)


def _not_shown(counts: Iterable[Counted], shown: Iterable[ShownFinding]) -> dict[str, int]:
    more: Counter[str] = Counter()
    for count in counts:
        more[count.rule_id] += count.findings
    more.subtract(one.rule_id for one in shown)
    return {rule: count for rule, count in sorted(more.items()) if count > 0}


def _group_counts(groups: Mapping[str, int]) -> GroupCounts:
    return GroupCounts(
        total=sum(groups.values()),
        equal=groups.get(EQUAL, 0),
        differing=groups.get(DIFFERS, 0),
        unstable=groups.get(UNSTABLE, 0),
        unknown=groups.get(UNKNOWN, 0),
        offline=groups.get(OFFLINE, 0),
        shared=groups.get(SHARED, 0),
    )
