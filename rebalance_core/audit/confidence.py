"""Lowers findings to INFO where the evidence is incomplete or a state has ended."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING

from rebalance_core.audit.group_snapshot import PERSISTENT_MS, Finding, GroupSnapshot, Rule, listed
from rebalance_core.audit.night import ENDED_BY
from rebalance_core.audit.subjects import STRATEGIES, gap_of, logs_gap
from rebalance_core.model.timeline import Unknown
from rebalance_core.model.times import utc
from rebalance_core.model.verdicts import EQUAL, INFO

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import ConsumerEventsRow


def borne_out(
    rule: Rule, group: GroupSnapshot, findings: Iterable[Finding], verdict: str
) -> Iterator[Finding]:
    """Yield a rule's findings about a group, lowered to INFO if their evidence is incomplete or the
    state has ended.

    Args:
        rule: the rule.
        group: the group's snapshot.
        findings: the rule's findings.
        verdict: the group's verdict; EQUAL shows that all members use the assumed strategy.
    """
    for finding in findings:
        reads = rule.reads if finding.reads is None else finding.reads
        if rule.by_owners and verdict != EQUAL:
            reads = (*reads, STRATEGIES)
        gaps = chain(
            [_unseen_change(group, finding)], (gap_of(group, subject, finding) for subject in reads)
        )
        shown_by = finding.ended_by
        if rule.state and finding.last_ms is not None:
            shown_by = shown_by or _turn(group, finding.last_ms)
        yield _as_known(rule, finding, shown_by, gaps)


def borne_out_in_cluster(rule: Rule, findings: Iterable[Finding]) -> Iterator[Finding]:
    """Yield a rule's findings about the cluster as a whole, lowered as by `borne_out`."""
    for finding in findings:
        yield _as_known(rule, finding, finding.ended_by, ())


def _as_known(
    rule: Rule, finding: Finding, shown_by: str, gaps: Iterable[Unknown | None]
) -> Finding:
    """Return the finding, as INFO if there is evidence that it ended or one of the gaps applies."""
    if finding.last_ms is not None and shown_by:
        return _ended(rule, finding, finding.last_ms, shown_by)
    if (finding.severity or rule.severity) == INFO:
        return finding
    gap = next((gap for gap in chain([finding.unknown], gaps) if gap is not None), None)
    return finding if gap is None else _not_sure(finding, gap)


def _unseen_change(group: GroupSnapshot, finding: Finding) -> Unknown | None:
    """Return a gap in the logs before the dumped state, in which an unseen change may have
    unsettled it.
    """
    seen_ms = finding.seen_ms
    if seen_ms is None:
        return None
    first_ms = seen_ms if finding.first_ms is None else finding.first_ms
    return logs_gap(group, first_ms - PERSISTENT_MS, seen_ms)


def _ended(rule: Rule, finding: Finding, at_ms: int, shown_by: str) -> Finding:
    """Return the finding as INFO, with the time at which it ended and the evidence."""
    return replace(
        finding,
        severity=INFO,
        summary=f"{finding.summary.removesuffix('.')}; ended at {utc(at_ms)}: {shown_by}.",
        evidence={**finding.evidence, ENDED_BY: shown_by},
        remedy=f"Nothing now. If it recurs: {finding.remedy or rule.remedy}",
    )


def _turn(group: GroupSnapshot, at_ms: int) -> str:
    """Return the group's event at a time, with the broker's log line that shows it."""
    happened = [row for row in group.consumer_events if row["event_ms"] == at_ms]
    if happened:
        return listed(map(_named, happened), 2)
    epoch = group.epoch_at(at_ms)
    return listed(epoch["causes"], 3) if epoch and epoch["causes"] else "as the logs show"


def _named(event: ConsumerEventsRow) -> str:
    source = event.get("source") or ""
    line = f" ({source})" if source.startswith("brokers/") else ""
    return f"{event['event_type']} of {event['client_id']}{line}"


def _not_sure(finding: Finding, gap: Unknown) -> Finding:
    """Return the finding as INFO, with the evidence that would confirm it."""
    return replace(
        finding,
        severity=INFO,
        summary=f"{finding.summary.removesuffix('.')}; uncertain: {gap.why}.",
        evidence={**finding.evidence, "not_covered": gap.reason, "why": gap.why},
        remedy=gap.remedy,
    )
