"""The cluster and each group judged, as rows of ``findings`` and of ``group_verdicts``."""

from __future__ import annotations

import traceback
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypedDict

from rebalance_core.audit.case import AuditRun, Finding, GroupCase, Rule
from rebalance_core.audit.comparison import ComparisonResult, compare, unknown
from rebalance_core.audit.comparison_findings import comparison_findings, settling
from rebalance_core.audit.confidence import borne_out
from rebalance_core.audit.dumps import queue_of
from rebalance_core.audit.finding_rows import finding_row
from rebalance_core.audit.known_issues import Acceptance, accept, of_group, with_known
from rebalance_core.audit.offsets import Offsets, backlog
from rebalance_core.audit.orphans import orphans
from rebalance_core.audit.redact import Redaction
from rebalance_core.audit.registry import RULE_FAILED
from rebalance_core.audit.rules import RULES
from rebalance_core.audit.rules.brokers_down import brokers_lost, queues_lost
from rebalance_core.audit.subscriptions import strategy_is_known
from rebalance_core.model import verdicts
from rebalance_core.model.system_groups import is_system_group
from rebalance_core.model.timeline import Unknown

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import CaseRows, FindingsBegun, GroupVerdictsBegun


Findings = list[tuple[Rule, Finding]]


class Judged(TypedDict):
    """What is found of one group, by table; the rows have no cluster yet."""

    findings: list[FindingsBegun]
    group_verdicts: list[GroupVerdictsBegun]


class Standing(TypedDict):
    """The columns of ``group_verdicts`` that say how the group stands at the end."""

    queues: int | None
    behind: int | None
    moved: int | None
    changed_ms: int | None


def run_rules(case: GroupCase, accepted: Iterable[Acceptance] = ()) -> Judged:
    """Rows of ``findings`` (ingest's too) and ``group_verdicts`` of one group, without cluster.

    Of a system group ingest's findings alone.
    """
    result, findings = _compared(case)
    standing, failed = _standing(case)
    findings += failed
    known = strategy_is_known(case) and result.reason != verdicts.IDS_REWRITTEN
    for rule in RULES if not is_system_group(case.consumer_group) else ():
        findings += _by_rule(rule, case, result.verdict) if known or not rule.by_owners else []
    rows = [finding_row(rule, one, case.consumer_group) for rule, one in findings]
    rows = with_known(rows, of_group(case)) if rows else rows
    of_ingest = case.tables["findings"]
    return {
        "findings": [accept(row, accepted) for row in (*rows, *of_ingest)],
        "group_verdicts": [_verdict_row(case, result, standing)],
    }


def _compared(case: GroupCase) -> tuple[ComparisonResult, Findings]:
    try:
        result = compare(case)
        if result.reason == verdicts.SYSTEM:
            return result, []
        found = _covered(case, result)
        gap = _nothing_stands(found) if result.verdict == verdicts.DIFFERS else None
        if gap is not None:
            said = gap.evidence
            why = Unknown(str(said["not_covered"]), "", str(said["why"]), gap.remedy or "")
            result = unknown(result, why)
            found = _covered(case, result)
        return result, found
    except Exception as error:  # one group must not cost the audit of 10,000 groups
        return ComparisonResult(verdicts.UNKNOWN, verdicts.COMPARISON_FAILED), [
            _failed("The comparison", case, error)
        ]


def _covered(case: GroupCase, result: ComparisonResult) -> Findings:
    found = comparison_findings(case, result)
    return [
        (rule, one) for rule, each in found for one in borne_out(rule, case, [each], result.verdict)
    ]


def _nothing_stands(found: Findings) -> Finding | None:
    """A difference that lacks evidence, where none has all: then a group is not said to differ."""
    differing = [(rule, one) for rule, one in found if rule.by_owners]
    if any((one.severity or rule.severity) != verdicts.INFO for rule, one in differing):
        return None
    return next((one for _, one in differing if "not_covered" in one.evidence), None)


def _by_rule(rule: Rule, case: GroupCase, verdict: str) -> Findings:
    if rule.find is None:
        return []
    try:
        return [(rule, one) for one in borne_out(rule, case, rule.find(case), verdict)]
    except Exception as error:  # as above
        return [_failed(rule.rule_id, case, error)]


def _failed(what: str, case: GroupCase, error: Exception) -> tuple[Rule, Finding]:
    where = traceback.extract_tb(error.__traceback__)[-1]
    return RULE_FAILED, Finding(
        f"{what} failed on {case.consumer_group}: {type(error).__name__}: {error}",
        {"failed": what, "where": f"{where.name}:{where.lineno}"},
    )


def _verdict_row(
    case: GroupCase, result: ComparisonResult, standing: Standing
) -> GroupVerdictsBegun:
    return {
        **standing,
        "consumer_group": case.consumer_group,
        "verdict": result.verdict,
        "reason": result.reason,
        "looks": result.observations,
        "differences": len({one.queue for one in result.differences}),
        "members": len(case.members),
        "dumped_ms": result.dumped_ms,
        "unasked": list(result.unasked),
        "settled_by": settling(case, result),
        "dumps": len(case.facts["DUMP"]),
        "basis": result.basis,
    }


def _standing(case: GroupCase) -> tuple[Standing, Findings]:
    last = case.last_epoch
    standing: Standing = {"queues": None, "behind": None, "moved": None, "changed_ms": None}
    try:
        standing["behind"] = _behind(case)
        if last is not None:
            moved = (row["moved"] for row in case.tables["group_metrics"] if row["topic"] is None)
            standing["queues"], standing["moved"] = last["queues"], sum(moved)
            standing["changed_ms"] = last["from_ms"]
        return standing, []
    except Exception as error:  # as below
        return standing, [_failed("The group's row", case, error)]


def _behind(case: GroupCase) -> int | None:
    """Messages after the newest commits known, and those of queues that nobody reads or ever read.

    None: no commit is known, or a broker with some of its queues is down.
    """
    if any(queues_lost(case, broker) for broker in brokers_lost(case)):
        return None
    if not case.tables["committed_offsets"] and not case.facts["QUEUE_PROGRESS"]:
        return None
    behind, offsets = backlog(case), Offsets(case)
    left = {queue_of(row) for row in orphans(case)} - behind.keys() - offsets.commits.keys()
    return sum(behind.values()) + sum(map(offsets.lag, left))


@dataclass(frozen=True)
class GroupRules:
    """Judges one group; travels to every task.

    Attributes:
        runs: by cluster.
        accepted: acceptances that hold.
        salt: of the names for client ids; None: they are shown.
    """

    runs: Mapping[str, AuditRun]
    accepted: tuple[Acceptance, ...] = ()
    salt: str | None = None

    def __call__(self, cluster: str, group: str, rows: CaseRows) -> Judged:
        """Rows of ``findings`` and ``group_verdicts`` from the group's rows by table."""
        case = GroupCase(cluster, group, self.runs.get(cluster, AuditRun(0, 0)), rows)
        judged = run_rules(case, self.accepted)
        if self.salt is None or not judged["findings"]:
            return judged
        redaction = Redaction(self.salt, case)
        return {**judged, "findings": [redaction.finding(row) for row in judged["findings"]]}
