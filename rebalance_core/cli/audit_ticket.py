"""The summary of an audit as Markdown, to paste into a ticket."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rebalance_core.audit.known_issues import KNOWN
from rebalance_core.cli import terminal
from rebalance_core.cli.audit_summary import (
    findings_counted,
    groups_counted,
    night_begun,
    not_read,
    reading_counted,
)
from rebalance_core.contracts.ledger import by_cause
from rebalance_core.model.verdicts import RUN_VERDICTS

_MARKUP = re.compile(r"([\\`*_~\[\]<>|#&])")


def render_ticket(facts: Mapping[str, Any]) -> str:
    """Return the Markdown: the verdict, a table of the most severe findings, and the remedy of
    each.

    Args:
        facts: `audit_summary.audit_facts`.
    """
    word = facts["verdict"]
    lines = [
        f"# {escaped(_title(facts))}: {word}",
        "",
        f"{RUN_VERDICTS[word][:1].upper()}{RUN_VERDICTS[word][1:]} (fails on "
        f"{facts['fail_on']}, exit code {facts['exit_code']}). Audited from "
        f"{terminal.utc(facts['start_ms'])} to {terminal.utc(facts['end_ms'])}.",
        *night_begun(facts),
        "",
        f"- Groups: {groups_counted(facts)}",
        *(f"- Reading: {words}" for words in reading_counted(facts)),
        f"- Findings: {findings_counted(facts)}",
        *_changes(facts["changes"]),
    ]
    if facts["not_looked_at"]:
        lines.append(f"- {escaped(facts['not_looked_at'])}")
    if facts["rejected"]:
        lines.append(f"- Not read: {escaped(not_read(facts['rejected']))}.")
    found = facts["top_findings"]
    several = len(facts["clusters"]) > 1
    if found:
        lines += ["", "| Severity | Rule | Where | Since |", "|---|---|---|---|"]
        lines += [_row(one, several=several) for one in found]
    for index in by_cause((one["fingerprint"], one["caused_by"]) for one in found):
        lines += _finding([found[at] for at in index], several=several)
    return terminal.joined(lines)


def escaped(text: str) -> str:
    r"""Return the text with Markdown's special characters escaped.

    >>> escaped("%RETRY%a_b | <x>")
    '%RETRY%a\\_b \\| \\<x\\>'
    """
    return _MARKUP.sub(r"\\\1", text)


def _title(facts: Mapping[str, Any]) -> str:
    return f"Audit of {', '.join(facts['clusters']) or 'consumer groups'}"


def _changes(changes: Mapping[str, Any] | None) -> list[str]:
    if changes is None:
        return []
    counted = {
        "new": changes["new"],
        "reopened": changes["reopened"],
        "healed": changes["healed"],
        "gone": changes["gone"],
        "not looked at": changes["not_looked_at"],
    }
    words = [f"{len(found):,} {state}" for state, found in counted.items() if found]
    words += [f"{changes['still']:,} still open"] if changes["still"] else []
    return [f"- Since the previous run: {', '.join(words) or 'nothing changed'}"]


def _where(finding: Mapping[str, Any], *, several: bool) -> str:
    names = [finding["cluster"]] if several else []
    names += [finding["consumer_group"], finding["topic"], finding["broker_name"]]
    return " / ".join(escaped(name) for name in names if name) or "cluster"


def _row(finding: Mapping[str, Any], *, several: bool) -> str:
    cells = (
        finding["severity"],
        f"`{finding['rule_id']}`",
        _where(finding, several=several),
        terminal.utc(finding["first_ms"]),
    )
    return f"| {' | '.join(cells)} |"


def _finding(findings: Sequence[Mapping[str, Any]], *, several: bool) -> Iterable[str]:
    """Yield the lines of a finding and of its consequences."""
    cause, *consequences = findings
    accepted = f" (accepted: {escaped(cause['accepted'])})" if cause["accepted"] else ""
    yield from ("", f"## {cause['rule_id']}: {_where(cause, several=several)}{accepted}", "")
    yield escaped(cause["summary"])
    if KNOWN in cause["evidence"]:
        yield from ("", f"Known: {escaped(cause['evidence'][KNOWN])}")
    for one in consequences:
        yield from ("", f"- with it `{one['rule_id']}`: {escaped(one['summary'])}")
    yield from ("", f"**What to do:** {escaped(cause['remedy'])}")
