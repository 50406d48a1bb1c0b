"""Renders an `AuditReport` as the HTML report page."""

from __future__ import annotations

from base64 import b64encode
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined, Template
from markupsafe import Markup, escape

from rebalance_core.contracts.ledger import by_cause
from rebalance_core.model.file_statuses import FILE_STATUSES, NOT_UNDERSTOOD, REFUSED
from rebalance_core.model.times import UTC_TEXT, utc
from rebalance_core.model.verdicts import HEALTH, INCOMPLETE, INFO, TROUBLE, WORST_FIRST
from rebalance_core.report.audit_report import AuditReport, ShownFinding
from rebalance_core.report.group_table import (
    HEALTH_ORDER,
    OWNER_MARKS,
    OWNER_WORDS,
    GroupName,
    anchors,
    by_health,
    href,
)
from rebalance_core.report.group_timeline import TimelineSvg, draw_timeline
from rebalance_core.report.loss_table import LOSSES_ON_PAGE
from rebalance_core.report.painting import balance_line, group_bar
from rebalance_core.report.server_table import SERVERS_ON_PAGE
from rebalance_core.report.shapes import shape
from rebalance_core.report.time_text import duration, time_tag
from rebalance_core.report.tonight import DIFFERENCES_ON_PAGE, NAMES_ON_PAGE
from rebalance_core.report.visible import visible

OPEN_FINDINGS = 10
"""Number of findings per rule that are expanded; the rest expand with a click."""


@dataclass(frozen=True, slots=True)
class PageItem:
    """A finding as the page shows it, with what follows from it.

    Attributes:
        anchor: its id in the page.
    """

    finding: ShownFinding
    anchor: str
    consequences: tuple[PageItem, ...] = ()

    @property
    def all(self) -> tuple[PageItem, ...]:
        """The finding itself and the findings that follow from it."""
        return (self, *self.consequences)

    @property
    def severity(self) -> str:
        """The worst severity among the finding and what follows from it."""
        return min(
            (item.finding.severity for item in self.all), key=lambda s: (severity_rank(s), s)
        )

    @property
    def rules_below(self) -> list[tuple[str, int]]:
        """Return the number of findings per rule that follow from it."""
        return sorted(Counter(item.finding.rule_id for item in self.consequences).items())


def items_of(findings: Iterable[ShownFinding]) -> list[PageItem]:
    """Return all findings with their anchors, accepted findings included, each below its cause."""
    rows = list(findings)
    still_open = [index for index, row in enumerate(rows) if row.accepted is None]
    lists = by_cause((rows[index].fingerprint, rows[index].caused_by) for index in still_open)
    places = [[still_open[index] for index in places_in_list] for places_in_list in lists]
    places += [[index] for index, row in enumerate(rows) if row.accepted is not None]
    items = [[PageItem(rows[index], f"f{index + 1}") for index in indices] for indices in places]
    return [replace(of_cause[0], consequences=tuple(of_cause[1:])) for of_cause in items]


@dataclass(frozen=True, slots=True)
class RuleSection:
    """The findings of one rule with one severity.

    Attributes:
        anchor: the id of the section in the page.
        items: the findings, each with those that follow from it.
        remedy: the remedy if it is the same for all findings, otherwise "".
        more: the number of findings that are not on the page.
    """

    rule_id: str
    severity: str
    meaning: str
    anchor: str
    items: tuple[PageItem, ...]
    remedy: str
    more: int

    @property
    def count(self) -> int:
        """The number of the rule's findings that follow from no other, shown or not."""
        return len(self.items) + self.more

    @property
    def following(self) -> int:
        """The number of findings that follow from these."""
        return sum(len(item.consequences) for item in self.items)

    @property
    def groups(self) -> tuple[GroupName, ...]:
        """Groups that the shown findings name, in the order of the findings."""
        findings = (shown.finding for item in self.items for shown in item.all)
        named = ((f.cluster, f.consumer_group) for f in findings if f.consumer_group)
        return tuple(dict.fromkeys(named))

    @property
    def first_ms(self) -> int | None:
        """When the oldest of the shown findings began."""
        times = (item.finding.first_ms for item in self.items)
        return min((begin_ms for begin_ms in times if begin_ms is not None), default=None)

    @property
    def sentences(self) -> tuple[PageItem, ...]:
        """Return the findings quoted in the table at the top: the first, and further ones that also
        concern no group, because each states something different.
        """
        others = (item for item in self.items[1:SENTENCES] if not item.finding.consumer_group)
        alone = not self.items or self.items[0].finding.consumer_group
        return self.items[:1] if alone else (self.items[0], *others)

    @property
    def unquoted(self) -> int:
        """Return the number of findings about no group that that table does not quote."""
        of_no_group = sum(not item.finding.consumer_group for item in self.items)
        return of_no_group - sum(not item.finding.consumer_group for item in self.sentences)

    @property
    def advice(self) -> str:
        """Return the remedies of the quoted findings, empty for INFO."""
        remedies = dict.fromkeys(item.finding.remedy for item in self.sentences)
        return "" if self.severity == INFO else " ".join(filter(None, remedies))

    @property
    def opened(self) -> tuple[PageItem, ...]:
        """Return the items that are expanded by default."""
        return self.items[:OPEN_FINDINGS]

    @property
    def folded(self) -> tuple[PageItem, ...]:
        """The items that expand with a click."""
        return self.items[OPEN_FINDINGS:]


def rule_sections(report: AuditReport, items: Iterable[PageItem]) -> list[RuleSection]:
    """Return all open findings by severity, then by the rule's frequency.

    A finding that follows from another appears below it, without its own section.
    Hidden findings of a rule count towards its least severe section; a rule without a shown finding
    has an empty section.
    """
    by_rule: dict[tuple[str, str], list[PageItem]] = {}
    for item in items:
        if item.finding.accepted is None:
            by_rule.setdefault((item.severity, item.finding.rule_id), []).append(item)
    more = _places_of_more(by_rule, report.more)
    for place in more:
        by_rule.setdefault(place, [])
    sections = [
        (severity, rule_id, tuple(items_of_rule), more.get((severity, rule_id), 0))
        for (severity, rule_id), items_of_rule in by_rule.items()
    ]
    sections.sort(key=lambda s: (severity_rank(s[0]), s[0], -len(s[2]) - s[3], s[1]))
    return [
        RuleSection(
            rule_id=rule_id,
            severity=severity,
            meaning=report.rules.get(rule_id, ""),
            anchor=f"rule-{number}",
            items=items_of_rule,
            remedy=_one_remedy(items_of_rule),
            more=not_shown,
        )
        for number, (severity, rule_id, items_of_rule, not_shown) in enumerate(sections, start=1)
    ]


def severity_rank(severity: str) -> int:
    """Return the rank of a severity, 0 for the worst; unknown severities rank last."""
    return WORST_FIRST.index(severity) if severity in WORST_FIRST else len(WORST_FIRST)


def severities_of(sections: Iterable[RuleSection]) -> dict[str, list[RuleSection]]:
    """Return the sections by severity, in their order."""
    by_severity: dict[str, list[RuleSection]] = {}
    for section in sections:
        by_severity.setdefault(section.severity, []).append(section)
    return by_severity


def failing(report: AuditReport) -> int:
    """Return how many findings reach the severity at which the audit exits with 3; 0 for an unknown
    severity.
    """
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
    """Collect the queues that a finding names, by (cluster, group)."""
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


def _one_remedy(items: tuple[PageItem, ...]) -> str:
    remedies = {item.finding.remedy for item in items}
    return remedies.pop() if len(remedies) == 1 else ""


def headline(report: AuditReport) -> str:
    """Return the verdict in one or two sentences."""
    return " ".join(part for part in (_start(report), _findings(report), _compared(report)) if part)


def _start(report: AuditReport) -> str:
    if report.verdict == INCOMPLETE:
        return (
            "Part of the run could not be compared: groups that are not listed may still have "
            "problems."
        )
    return ""


def _findings(report: AuditReport) -> str:
    accepted = sum(finding.accepted is not None for finding in report.findings)
    accepted_text = f" Known and accepted: {accepted:,}." if accepted else ""
    words = [
        f"{report.counts[severity]:,} {severity}{_causes(report, severity)}"
        for severity in sorted(report.counts, key=lambda s: (severity_rank(s), s))
        if report.counts[severity]
    ]
    return (f"{', '.join(words)}{_weight(report)}." if words else "No findings.") + accepted_text


def _causes(report: AuditReport, severity: str) -> str:
    causes = report.causes.get(severity, 0)
    return f" of {_count(causes, 'cause')}" if 0 < causes < report.counts[severity] else ""


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
        return "The files name no group."
    online = groups.total - groups.offline
    idle = f" {groups.offline:,} more without a member." if groups.offline else ""
    if not online:
        return f"No group is online: {groups.total:,} without a member."
    if groups.differing:
        return (
            f"In {groups.differing:,} of {online:,} online groups the live owners differ from the "
            f"predicted owners.{idle}"
        )
    same = groups.equal + groups.shared
    shared = f" ({groups.shared:,} with shared queues)" if groups.shared else ""
    if same == online:
        whole = "the online group" if online == 1 else f"all {online:,} online groups"
        return f"In {whole}{shared} the live owners are the predicted owners.{idle}"
    if not same:
        whole = "The online group" if online == 1 else f"None of the {online:,} online groups"
        return f"{whole} could {'not ' if online == 1 else ''}be compared.{idle}"
    others = "the other" if online - same == 1 else f"the other {online - same:,}"
    return (
        f"In {same:,} of {online:,} online groups{shared} the live owners are the predicted "
        f"owners; {others} could not be compared.{idle}"
    )


TEMPLATES = "templates"
PAGE, SCRIPT = "page.html.j2", "page.js"
SENTENCES = 4
"""Maximum number of findings per rule quoted in the table at the top."""
GROUPS_NAMED = 6
"""Number of groups per rule that the table at the top names."""


def render_page(report: AuditReport) -> str:
    """Return the report as one HTML document.

    The document is self-contained and fetches nothing. Its content security policy allows one
    script, which filters and sorts the table of groups; without it everything is still readable.
    Names are escaped, including invisible characters. Equal reports give equal bytes.
    """
    return template(PAGE).render(page_facts(report))


def page_facts(report: AuditReport) -> Mapping[str, Any]:
    """Return the template's values besides the report itself."""
    items = items_of(report.findings)
    clusters = {finding.cluster for finding in report.findings} | {
        t.cluster for t in report.timelines
    }
    clusters |= {row.cluster for row in report.group_rows}
    named = named_queues(f for f in report.findings if f.accepted is None)
    ids = anchors(report.group_rows)
    new = report.previous.new if report.previous else ()
    sections = rule_sections(report, items)
    judged = [row for row in report.group_rows if not row.built_in]
    script = _read_template(SCRIPT)
    return {
        "report": report,
        "headline": headline(report),
        "failing": failing(report),
        "urgent": [section for section in sections if section.severity != INFO],
        "for_information": [section for section in sections if section.severity == INFO],
        "severities": severities_of(sections),
        "worst_first": WORST_FIRST,
        "groups_named": GROUPS_NAMED,
        "accepted": [item for item in items if item.finding.accepted is not None],
        "new_keys": frozenset(f.key for f in new),
        "group_bar": group_bar(report.groups),
        "judged": judged,
        "health": by_health(judged),
        "healths": HEALTH,
        "trouble": TROUBLE,
        "health_order": HEALTH_ORDER,
        "owner_marks": OWNER_MARKS,
        "owner_words": OWNER_WORDS,
        "built_in": [row for row in report.group_rows if row.built_in],
        "servers_on_page": SERVERS_ON_PAGE,
        "losses_on_page": LOSSES_ON_PAGE,
        "tonight_of": {} if report.tonight is None else report.tonight.of_groups,
        "differences_on_page": DIFFERENCES_ON_PAGE,
        "names_on_page": NAMES_ON_PAGE,
        "anchor_of": ids,
        "links": {name: href(anchor) for name, anchor in ids.items()},
        "found_in": _found_in(items),
        "pictures": _pictures(report, named),
        "picture_of": {
            (t.cluster, t.consumer_group): number
            for number, t in enumerate(report.timelines, start=1)
        },
        "several_clusters": len(clusters) > 1,
        "balance": [balance_line(group) for group in report.balance],
        "file_statuses": FILE_STATUSES,
        "to_look_at": (NOT_UNDERSTOOD, REFUSED),
        "script": Markup(script),
        "script_hash": b64encode(sha256(script.encode()).digest()).decode(),
    }


def template(name: str) -> Template:
    """Return a page template."""
    return _environment().get_template(name)


def _pictures(
    report: AuditReport, named: Mapping[GroupName, frozenset[tuple[str, str, int]]]
) -> list[TimelineSvg]:
    return [
        draw_timeline(
            timeline,
            report.from_ms,
            report.to_ms,
            f"t{number}",
            named.get((timeline.cluster, timeline.consumer_group), frozenset()),
        )
        for number, timeline in enumerate(report.timelines, start=1)
    ]


def _found_in(items: Iterable[PageItem]) -> dict[GroupName, list[PageItem]]:
    """Return the shown findings above INFO by group, and those about a broker that is down, worst
    first.
    """
    by_group: dict[GroupName, list[PageItem]] = {}
    for shown in (each for item in items for each in item.all):
        group = shown.finding.consumer_group
        counts = shown.finding.severity != INFO or shown.finding.rule_id == "BROKER_DOWN"
        if group is not None and counts:
            by_group.setdefault((shown.finding.cluster, group), []).append(shown)
    for of_group in by_group.values():
        of_group.sort(key=lambda shown: severity_rank(shown.finding.severity))
    return by_group


@cache
def _environment() -> Environment:
    """Return a template environment that applies `visible` to all text and escapes it."""
    environment = Environment(
        loader=FunctionLoader(_read_template),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"time": time_tag, "utc": utc, "duration": duration, "count": _count}
    environment.filters["rule"] = _broken
    environment.filters["sentence"] = _sentence
    environment.filters["amount"] = _amount
    environment.globals["shape"] = shape
    return environment


def _read_template(name: str) -> str:
    """Return the text of a template, from a folder or a zip."""
    return (files("rebalance_core.report") / TEMPLATES / name).read_text("utf-8")


def _shown(value: object) -> object:
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _sentence(text: str) -> Markup:
    """Return a sentence whose times do not break at the end of a line.

    >>> _sentence("<b> since 2026-11-21 03:47:36Z.")
    Markup('&lt;b&gt; since <time>2026-11-21 03:47:36Z</time>.')
    """
    return Markup(UTC_TEXT.sub(r"<time>\g<0></time>", str(escape(visible(text)))))


def _amount(number: int | None) -> str:
    return "–" if number is None else f"{number:,}"


def _broken(rule_id: str) -> Markup:
    """Return a rule's name with an optional line break after each underscore.

    >>> _broken("NOT_<A>")
    Markup('NOT_<wbr>&lt;A&gt;')
    """
    return Markup("_<wbr>").join(visible(rule_id).split("_"))


def _count(number: int, singular: str, many: str = "") -> str:
    """Return a number with its noun.

    >>> _count(1, "group"), _count(1200, "query", "queries")
    ('1 group', '1,200 queries')
    """
    return f"{number:,} {singular if number == 1 else many or singular + 's'}"
