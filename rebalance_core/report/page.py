"""The report page: an `AuditReport` in, HTML out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from rebalance_core.model.times import utc
from rebalance_core.model.verdicts import INCOMPLETE, WORST_FIRST
from rebalance_core.report.audit_report import AuditReport, ShownFinding
from rebalance_core.report.group_timeline import draw_timeline
from rebalance_core.report.painting import balance_line, group_bar
from rebalance_core.report.svg import shape
from rebalance_core.report.timeline import duration, time_tag
from rebalance_core.report.visible import visible

# The findings in the order of the page: by severity, then by rule.

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
        """Return the parts that are open without a click."""
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


# The first sentence of the page: what the verdict means.


def headline(report: AuditReport) -> str:
    """The verdict in one or two sentences, true whatever the word says."""
    return " ".join(part for part in (_start(report), _findings(report), _compared(report)) if part)


def _start(report: AuditReport) -> str:
    if report.verdict == INCOMPLETE:
        return "Part of the run could not be compared: what is not listed may still be wrong."
    return ""


def _findings(report: AuditReport) -> str:
    accepted = sum(finding.accepted is not None for finding in report.findings)
    known = f" Known and accepted: {accepted:,}." if accepted else ""
    words = [
        f"{report.counts[severity]:,} {severity}"
        for severity in sorted(report.counts, key=lambda s: (severity_rank(s), s))
        if report.counts[severity]
    ]
    return (f"{', '.join(words)}{_weight(report)}." if words else "No findings.") + known


def _weight(report: AuditReport) -> str:
    if report.fail_on not in WORST_FIRST:
        return ""
    count = failing(report)
    if count:
        return f"; {count:,} at or above {report.fail_on}, where the audit exits 3"
    return f"; none at or above {report.fail_on}, where the audit would exit 3"


def _compared(report: AuditReport) -> str:
    groups = report.groups
    if not groups.total:
        return "No group was seen."
    online = groups.total - groups.offline
    idle = f" {groups.offline:,} more have no member." if groups.offline else ""
    if not online:
        return f"No group is online: {groups.total:,} have no member."
    if groups.differing:
        return (
            f"In {groups.differing:,} of {online:,} groups online the live owners differ from the "
            f"computed ones.{idle}"
        )
    same = groups.equal + groups.shared
    shared = f" ({groups.shared:,} share queues)" if groups.shared else ""
    if same == online:
        return (
            f"In all {online:,} groups online{shared} the live owners are the computed ones.{idle}"
        )
    return (
        f"In {same:,} of {online:,} groups online{shared} the live owners are the computed ones; "
        f"the other {online - same:,} could not be compared.{idle}"
    )


TEMPLATES = "templates"
PAGE = "page.html.j2"
GROUPS_NAMED = 6
"""Groups of a rule that the table at the top names."""


def render_page(report: AuditReport) -> str:
    """The report as one HTML document.

    It holds everything it shows: no script, nothing fetched (its own security policy forbids
    both). Names are escaped and made visible. Equal reports give equal bytes.
    """
    return _environment().get_template(PAGE).render(page_facts(report))


def page_facts(report: AuditReport) -> Mapping[str, Any]:
    """Return what the template reads beside the report itself."""
    sections = rule_sections(report)
    clusters = {one.cluster for one in report.findings} | {t.cluster for t in report.timelines}
    named = named_queues(f for f in report.findings if f.accepted is None)
    pictures = [
        draw_timeline(
            t,
            report.from_ms,
            report.to_ms,
            f"t{at}",
            named.get((t.cluster, t.consumer_group), frozenset()),
        )
        for at, t in enumerate(report.timelines, start=1)
    ]
    return {
        "report": report,
        "headline": headline(report),
        "failing": failing(report),
        "sections": sections,
        "severities": severities_of(sections),
        "worst_first": WORST_FIRST,
        "groups_named": GROUPS_NAMED,
        "accepted": [f for f in report.findings if f.accepted is not None],
        "new_keys": frozenset(f.key for f in report.previous.new)
        if report.previous
        else frozenset(),
        "group_bar": group_bar(report.groups),
        "pictures": pictures,
        "picture_of": {
            (t.cluster, t.consumer_group): at for at, t in enumerate(report.timelines, start=1)
        },
        "several_clusters": len(clusters) > 1,
        "balance": [balance_line(group) for group in report.balance],
    }


@cache
def _environment() -> Environment:
    """Autoescape for all; `visible` sees every value first."""
    environment = Environment(
        loader=FunctionLoader(_read_template),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"time": time_tag, "utc": utc, "duration": duration, "count": _count}
    environment.globals["shape"] = shape
    return environment


def _read_template(name: str) -> str:
    """The text of a template, from a folder or from inside a zip."""
    return (files("rebalance_core.report") / TEMPLATES / name).read_text("utf-8")


def _shown(value: object) -> object:
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _count(number: int, one: str, many: str = "") -> str:
    """A number with its noun.

    >>> _count(1, "group"), _count(1200, "query", "queries")
    ('1 group', '1,200 queries')
    """
    return f"{number:,} {one if number == 1 else many or one + 's'}"
