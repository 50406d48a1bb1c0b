"""The verdict of an audit run: one word from its findings, and whether the job fails."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from rebalance_core.audit.missing_files import COLLECTION_INCOMPLETE
from rebalance_core.model.statuses import INFO, SEVERITIES
from rebalance_core.model.verdicts import FAILED, FINDINGS, INCOMPLETE, OK, RunVerdict


@dataclass(frozen=True, slots=True)
class Count:
    """How many findings of a rule and severity there are, accepted or open."""

    rule_id: str
    severity: str
    accepted: bool
    findings: int


def verdict_of(counts: Iterable[Count], fail_on: str) -> tuple[RunVerdict, bool]:
    """The verdict, and True if the job ends with exit code 3."""
    still_open = [one for one in counts if one.findings and not one.accepted]
    worst = max((SEVERITIES.index(one.severity) for one in still_open), default=-1)
    failed = worst >= SEVERITIES.index(fail_on)
    if any(one.rule_id == COLLECTION_INCOMPLETE.rule_id for one in still_open):
        return INCOMPLETE, True
    if failed:
        return FAILED, True
    return (FINDINGS if worst > SEVERITIES.index(INFO) else OK), False
