"""The findings in the order of the page: by severity, then by rule."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from rebalance_core.model.statuses import WORST_FIRST
from rebalance_core.report.audit_report import AuditReport, ShownFinding

OPEN_FINDINGS = 10
"""Of each rule; the others are one click away."""


@dataclass(frozen=True, slots=True)
class RuleSection:
    """The findings of one rule with one severity.

    Attributes:
        anchor: the id of the section in the page.
        remedy: what to do, where all findings say the same; else "".
        more: findings that are not in the page at all.
    """

    rule_id: str
    severity: str
    meaning: str
    anchor: str
    findings: tuple[ShownFinding, ...]
    remedy: str
    more: int

    @property
    def count(self) -> int:
        """All findings, shown or not."""
        return len(self.findings) + self.more

    @property
    def groups(self) -> tuple[str, ...]:
        """Consumer groups that the shown findings name, in the order of the findings."""
        return tuple(dict.fromkeys(f.consumer_group for f in self.findings if f.consumer_group))

    @property
    def first_ms(self) -> int | None:
        """Since when the oldest of the shown findings holds."""
        return min((f.first_ms for f in self.findings if f.first_ms is not None), default=None)

    @property
    def opened(self) -> tuple[ShownFinding, ...]:
        """What is read without a click."""
        return self.findings[:OPEN_FINDINGS]

    @property
    def folded(self) -> tuple[ShownFinding, ...]:
        """The rest."""
        return self.findings[OPEN_FINDINGS:]


def rule_sections(report: AuditReport) -> list[RuleSection]:
    """All findings that are not accepted: the worst severity first, then the most frequent rule.

    What is not shown of a rule counts for its least severe section; a rule that is not shown at
    all has a section without findings.
    """
    by_rule: dict[tuple[str, str], list[ShownFinding]] = {}
    for finding in report.findings:
        if finding.accepted is None:
            by_rule.setdefault((finding.severity, finding.rule_id), []).append(finding)
    more = _places_of_more(by_rule, report.more)
    for place in more:
        by_rule.setdefault(place, [])
    sections = [
        (severity, rule_id, tuple(findings), more.get((severity, rule_id), 0))
        for (severity, rule_id), findings in by_rule.items()
    ]
    sections.sort(key=lambda s: (severity_rank(s[0]), s[0], -len(s[2]) - s[3], s[1]))
    return [
        RuleSection(
            rule_id,
            severity,
            report.rules.get(rule_id, ""),
            f"rule-{at}",
            findings,
            _one_remedy(findings),
            not_shown,
        )
        for at, (severity, rule_id, findings, not_shown) in enumerate(sections, start=1)
    ]


def severity_rank(severity: str) -> int:
    """0 for the worst; unknown words last."""
    return WORST_FIRST.index(severity) if severity in WORST_FIRST else len(WORST_FIRST)


def severities_of(sections: Iterable[RuleSection]) -> dict[str, list[RuleSection]]:
    """The sections by severity, in their order."""
    by_severity: dict[str, list[RuleSection]] = {}
    for section in sections:
        by_severity.setdefault(section.severity, []).append(section)
    return by_severity


def failing(report: AuditReport) -> int:
    """Findings at or above the severity at which the audit exits 3; 0 if it is none of ours."""
    if report.fail_on not in WORST_FIRST:
        return 0
    return sum(
        count
        for severity, count in report.counts.items()
        if severity_rank(severity) <= severity_rank(report.fail_on)
    )


def named_queues(
    findings: Iterable[ShownFinding],
) -> dict[tuple[str, str], frozenset[tuple[str, str, int]]]:
    """By (cluster, group), the queues that a finding names."""
    named: dict[tuple[str, str], set[tuple[str, str, int]]] = {}
    for f in findings:
        whole = f.topic is not None and f.broker_name is not None and f.queue_id is not None
        if whole and f.consumer_group is not None:
            queue = (str(f.topic), str(f.broker_name), int(f.queue_id or 0))
            named.setdefault((f.cluster, f.consumer_group), set()).add(queue)
    return {group: frozenset(queues) for group, queues in named.items()}


def _places_of_more(
    by_rule: Mapping[tuple[str, str], object], more: Mapping[str, int]
) -> dict[tuple[str, str], int]:
    places = {}
    for rule_id, count in more.items():
        severities = [severity for severity, rule in by_rule if rule == rule_id]
        if count > 0:
            least = max(severities, key=lambda s: (severity_rank(s), s), default="NOT SHOWN")
            places[least, rule_id] = count
    return places


def _one_remedy(findings: tuple[ShownFinding, ...]) -> str:
    remedies = {finding.remedy for finding in findings}
    return remedies.pop() if len(remedies) == 1 else ""
