"""An audit as JUnit XML, for change gates: a test for each group and one for the cluster itself."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from rebalance_core.model.system_groups import is_system_group
from rebalance_core.model.times import utc
from rebalance_core.model.verdicts import UNKNOWN, WORST_FIRST
from rebalance_core.report.visible import visible

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import FindingsRow, GroupVerdictsRow

NAME = "rebalance audit"
"""Of the whole, which shows that a file is one of these."""
OF_CLUSTER = "(cluster)"
"""The test of what concerns no single group; no name that RocketMQ would take for a group."""


def render_junit(
    findings: Sequence[FindingsRow],
    verdicts: Iterable[GroupVerdictsRow],
    failing: Collection[str | None],
    clusters: Iterable[str],
    finished_ms: int,
    incomplete: str,
) -> str:
    """Return the XML: a suite for each cluster, which fails where the run fails.

    A group's test fails for its failing findings, and is skipped where its verdict is UNKNOWN;
    other open findings are in its output. An incomplete collection is an error of the cluster.

    Args:
        findings: All findings of the run.
        verdicts: Rows of ``group_verdicts``.
        failing: Fingerprints of the findings for which the run ends with exit code 3.
        clusters: The clusters that were audited.
        finished_ms: When the run ended, epoch ms UTC.
        incomplete: The rule that a collection is incomplete.
    """
    found: dict[tuple[str, str], list[FindingsRow]] = {}
    for row in findings:
        test = row["cluster"], row["consumer_group"] or OF_CLUSTER
        found.setdefault(test, []).append(row)
    judged = {(row["cluster"], row["consumer_group"]): row for row in verdicts}
    tested = {name: {OF_CLUSTER} for name in clusters}
    for name, group in [*found, *judged]:
        if (name, group) in found or not is_system_group(group):
            tested.setdefault(name, {OF_CLUSTER}).add(group)
    root = Element("testsuites", name=NAME)
    ended = datetime.fromtimestamp(finished_ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    for name, groups in sorted(tested.items()):
        suite = SubElement(root, "testsuite", name=visible(name), timestamp=ended)
        for group in sorted(groups, key=lambda group: (group != OF_CLUSTER, group)):
            of_group = found.get((name, group), []), judged.get((name, group))
            case = SubElement(suite, "testcase", classname=visible(name), name=visible(group))
            _judge(case, *of_group, failing, incomplete)
        _count(suite)
    _count(root)
    indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + tostring(root, "unicode") + "\n"


def _judge(
    case: Element,
    findings: Sequence[FindingsRow],
    verdict: GroupVerdictsRow | None,
    failing: Collection[str | None],
    incomplete: str,
) -> None:
    """Fail or skip a test, or let it pass."""
    findings = sorted(
        findings,
        key=lambda row: (row["rule_id"] != incomplete, WORST_FIRST.index(row["severity"])),
    )
    fatal = [row for row in findings if row["fingerprint"] in failing]
    # most readers show the first of several failures alone
    for row in fatal[:1]:
        tag = "error" if row["rule_id"] == incomplete else "failure"
        shown = SubElement(case, tag, type=row["rule_id"], message=visible(row["summary"]))
        shown.text = "\n\n".join(map(_text, fatal))
    if not fatal and verdict is not None and verdict["verdict"] == UNKNOWN:
        why = f"UNKNOWN: {verdict['reason']}"
        settled_by = verdict["settled_by"]
        SubElement(case, "skipped", message=visible(f"{why}; {settled_by}" if settled_by else why))
    others = [
        row for row in findings if row["accepted"] is None and row["fingerprint"] not in failing
    ]
    if others:
        SubElement(case, "system-out").text = "\n\n".join(map(_text, others))


def _text(finding: FindingsRow) -> str:
    since = "" if finding["first_ms"] is None else f" since {utc(finding['first_ms'])}"
    head = f"{finding['severity']} {finding['rule_id']}{since}: {finding['summary']}"
    return f"{visible(head)}\n-> {visible(finding['remedy'])}"


def _count(total: Element) -> None:
    cases = list(total.iter("testcase"))
    total.set("tests", str(len(cases)))
    for name, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        total.set(name, str(sum(case.find(tag) is not None for case in cases)))
