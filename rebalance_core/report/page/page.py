"""The report page: an `AuditReport` in, HTML out."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from rebalance_core.model.statuses import WORST_FIRST
from rebalance_core.model.times import utc
from rebalance_core.report.audit_report import AuditReport
from rebalance_core.report.page.bars import balance_line, group_bar
from rebalance_core.report.page.group_timeline import draw_timeline
from rebalance_core.report.page.headline import headline
from rebalance_core.report.page.sections import failing, named_queues, rule_sections, severities_of
from rebalance_core.report.page.shapes import shape
from rebalance_core.report.page.visible import visible
from rebalance_core.report.timeline.time_markup import duration, time_tag

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
    """What the template reads beside the report itself."""
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
