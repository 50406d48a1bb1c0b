"""Findings as far as the evidence bears them out: for information where something is unknown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from rebalance_core.audit.case import PERSISTENT_MS, Finding, GroupCase, Rule, listed
from rebalance_core.audit.subjects import STRATEGIES, gap_of, logs_gap
from rebalance_core.model.timeline import Unknown
from rebalance_core.model.times import utc
from rebalance_core.model.verdicts import EQUAL, INFO

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import ConsumerEventsRow


def without_evidence(
    rule: Rule, case: GroupCase, found: Iterable[Finding], verdict: str
) -> Iterator[Finding]:
    """The findings; those that lack evidence are for information, with the reason, and so is a
    state that has ended, with what shows that.

    Args:
        rule: whose.
        case: the group.
        found: by the rule.
        verdict: of the group: EQUAL shows that all divide as they are taken to.
    """
    for finding in found:
        if finding.last_ms is not None and (rule.state or finding.ended_by):
            yield as_ended(case, rule, finding, finding.last_ms)
            continue
        gap = None
        if (finding.severity or rule.severity) != INFO:
            reads = rule.reads if finding.reads is None else finding.reads
            if rule.by_owners and verdict != EQUAL:
                reads = (*reads, STRATEGIES)
            gap = finding.unknown or _unseen_change(case, finding)
            gaps = (gap_of(case, subject, finding) for subject in reads)
            gap = gap or next((one for one in gaps if one is not None), None)
        yield finding if gap is None else as_not_sure(finding, gap)


def _unseen_change(case: GroupCase, finding: Finding) -> Unknown | None:
    """A time before what a dump showed of which the logs state nothing: it may not have settled."""
    seen_ms = finding.seen_ms
    if seen_ms is None:
        return None
    first_ms = seen_ms if finding.first_ms is None else finding.first_ms
    return logs_gap(case, first_ms - PERSISTENT_MS, seen_ms)


def as_ended(case: GroupCase, rule: Rule, finding: Finding, at_ms: int) -> Finding:
    """The finding for information, with when it ended and what shows it."""
    return ended(rule, finding, at_ms, finding.ended_by or _turn(case, at_ms))


def ended(rule: Rule, finding: Finding, at_ms: int, shown_by: str) -> Finding:
    """As `as_ended`, of a finding on a cluster, too."""
    return replace(
        finding,
        severity=INFO,
        summary=f"{finding.summary.removesuffix('.')}; ended at {utc(at_ms)}: {shown_by}.",
        evidence={**finding.evidence, "ended_by": shown_by},
        remedy=f"Nothing now. If it comes back: {finding.remedy or rule.remedy}",
    )


def _turn(case: GroupCase, at_ms: int) -> str:
    """What happened to the group at a time, with the line of the broker's log that shows it."""
    happened = [row for row in case.consumer_events if row["event_ms"] == at_ms]
    if happened:
        return listed(map(_named, happened), 2)
    epoch = case.epoch_at(at_ms)
    return listed(epoch["causes"], 3) if epoch and epoch["causes"] else "as the logs show"


def _named(event: ConsumerEventsRow) -> str:
    source = event.get("source") or ""
    line = f" ({source})" if source.startswith("brokers/") else ""
    return f"{event['event_type']} of {event['client_id']}{line}"


def as_not_sure(finding: Finding, gap: Unknown) -> Finding:
    """The finding for information, with what is missing to be sure of it."""
    return replace(
        finding,
        severity=INFO,
        summary=f"{finding.summary.removesuffix('.')}; not sure: {gap.why}.",
        evidence={**finding.evidence, "not_covered": gap.reason, "why": gap.why},
        remedy=gap.remedy,
    )
