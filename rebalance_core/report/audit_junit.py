"""An audit as JUnit XML for change gates, with a test per group and one for the cluster itself."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING

from rebalance_core.model.system_groups import is_system_group
from rebalance_core.model.times import utc
from rebalance_core.model.verdicts import UNKNOWN, WORST_FIRST
from rebalance_core.report.junit import ERROR, FAILURE, TestCase, Trouble, junit_xml
from rebalance_core.report.visible import visible

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import FindingsRow, GroupVerdictsRow

NAME = "rebalance audit"
"""The name of the root element, which identifies such a file."""
OF_CLUSTER = "(cluster)"
"""The test for findings that concern no particular group; RocketMQ does not accept it as a group
name.
"""


def render_junit(
    findings: Sequence[FindingsRow],
    verdicts: Iterable[GroupVerdictsRow],
    failing: Collection[str | None],
    clusters: Iterable[str],
    finished_ms: int,
    incomplete: str,
) -> str:
    """Return the XML, with a suite per cluster that fails if the run fails.

    A group's test fails if it has failing findings and is skipped if its verdict is UNKNOWN; its
    output lists the other open findings. An incomplete collection is an error of the cluster's
    test.

    Args:
        findings: All findings of the run.
        verdicts: Rows of ``group_verdicts``.
        failing: Fingerprints of the findings that cause exit code 3.
        clusters: The clusters that were audited.
        finished_ms: When the run ended, epoch ms UTC.
        incomplete: The id of the rule for incomplete collections.
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
    suites = {
        name: [
            _judged(
                group, found.get((name, group), []), judged.get((name, group)), failing, incomplete
            )
            for group in sorted(groups, key=lambda group: (group != OF_CLUSTER, group))
        ]
        for name, groups in sorted(tested.items())
    }
    return junit_xml(NAME, suites, finished_ms)


def _judged(
    group: str,
    findings: Sequence[FindingsRow],
    verdict: GroupVerdictsRow | None,
    failing: Collection[str | None],
    incomplete: str,
) -> TestCase:
    """Return a test that fails, is skipped or passes."""
    findings = sorted(
        findings,
        key=lambda row: (row["rule_id"] != incomplete, WORST_FIRST.index(row["severity"])),
    )
    fatal = [row for row in findings if row["fingerprint"] in failing]
    trouble = skipped = None
    if fatal:  # most readers show only the first of several failures
        first = fatal[0]
        tag = ERROR if first["rule_id"] == incomplete else FAILURE
        text = "\n\n".join(map(_text, fatal))
        trouble = Trouble(tag, first["rule_id"], first["summary"], text)
    elif verdict is not None and verdict["verdict"] == UNKNOWN:
        why = f"UNKNOWN: {verdict['reason']}"
        settled_by = verdict["settled_by"]
        skipped = f"{why}; {settled_by}" if settled_by else why
    others = [
        row for row in findings if row["accepted"] is None and row["fingerprint"] not in failing
    ]
    return TestCase(group, trouble, skipped, list(map(_text, others)))


def _text(finding: FindingsRow) -> str:
    since = "" if finding["first_ms"] is None else f" since {utc(finding['first_ms'])}"
    head = f"{finding['severity']} {finding['rule_id']}{since}: {finding['summary']}"
    return f"{visible(head)}\n-> {visible(finding['remedy'])}"
