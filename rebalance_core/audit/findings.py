"""Evaluates the cluster and each group, and returns rows of ``findings`` and ``group_verdicts``."""

from __future__ import annotations

import traceback
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypedDict

from rebalance_core.audit.accepted_findings import Acceptance, accept
from rebalance_core.audit.comparison import ComparisonResult, compare, unknown
from rebalance_core.audit.comparison_findings import comparison_findings, settling
from rebalance_core.audit.confidence import borne_out
from rebalance_core.audit.dumps import queue_of
from rebalance_core.audit.finding_rows import finding_row
from rebalance_core.audit.group_snapshot import AuditRun, Finding, GroupSnapshot, Rule
from rebalance_core.audit.health import health_of
from rebalance_core.audit.known_issues import of_group, with_known
from rebalance_core.audit.known_shares import lite_topics, strategy_is_known
from rebalance_core.audit.night import within_night
from rebalance_core.audit.offsets import Offsets, backlog
from rebalance_core.audit.orphans import orphans
from rebalance_core.audit.progress import progress_of
from rebalance_core.audit.redact import Redaction
from rebalance_core.audit.registry import RULE_FAILED
from rebalance_core.audit.rules import RULES
from rebalance_core.audit.rules.brokers_down import brokers_lost, queues_lost
from rebalance_core.engine.group_history import begun_epochs
from rebalance_core.model import verdicts
from rebalance_core.model.system_groups import is_system_group
from rebalance_core.model.timeline import Unknown

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import FindingsBegun, GroupVerdictsBegun, SnapshotRows


Findings = list[tuple[Rule, Finding]]


class Judged(TypedDict):
    """The results for a group, by table; the rows have no cluster yet."""

    findings: list[FindingsBegun]
    group_verdicts: list[GroupVerdictsBegun]


class Standing(TypedDict):
    """The columns of ``group_verdicts`` that describe the group's state at the end."""

    queues: int | None
    behind: int | None
    moved: int | None
    changed_ms: int | None


def run_rules(group: GroupSnapshot, accepted: Iterable[Acceptance] = ()) -> Judged:
    """Return a group's rows of ``findings``, including those of ingest, and ``group_verdicts``.

    For a system group, return only ingest's findings.
    """
    result, findings = _compared(group)
    standing, failed = _standing(group)
    findings += failed
    strategy_known = strategy_is_known(group) and result.reason != verdicts.IDS_REWRITTEN
    for rule in RULES if not is_system_group(group.consumer_group) else ():
        findings += (
            _by_rule(rule, group, result.verdict) if strategy_known or not rule.by_owners else []
        )
    rows = [finding_row(rule, finding, group.consumer_group) for rule, finding in findings]
    rows = with_known(rows, of_group(group)) if rows else rows
    of_ingest = group.tables["findings"]
    judged = [accept(within_night(row, group.run), accepted) for row in (*rows, *of_ingest)]
    return {
        "findings": judged,
        "group_verdicts": [_verdict_row(group, result, standing, judged)],
    }


def _compared(group: GroupSnapshot) -> tuple[ComparisonResult, Findings]:
    try:
        result = compare(group)
        if result.reason == verdicts.SYSTEM:
            return result, []
        findings = _covered(group, result)
        gap = _nothing_stands(findings) if result.verdict == verdicts.DIFFERS else None
        if gap is not None:
            said = gap.evidence
            why = Unknown(str(said["not_covered"]), "", str(said["why"]), gap.remedy or "")
            result = unknown(result, why)
            findings = _covered(group, result)
        return result, findings
    except Exception as error:  # an error in one group must not fail the audit of 10,000 groups
        return ComparisonResult(verdicts.UNKNOWN, verdicts.COMPARISON_FAILED), [
            rule_failed("The comparison", group, error)
        ]


def _covered(group: GroupSnapshot, result: ComparisonResult) -> Findings:
    findings = comparison_findings(group, result)
    return [
        (rule, checked)
        for rule, finding in findings
        for checked in borne_out(rule, group, [finding], result.verdict)
    ]


def _nothing_stands(findings: Findings) -> Finding | None:
    """Return a difference that lacks evidence if all differences do, because then the group may not
    differ.
    """
    differing = [(rule, finding) for rule, finding in findings if rule.by_owners]
    if any((finding.severity or rule.severity) != verdicts.INFO for rule, finding in differing):
        return None
    return next((finding for _, finding in differing if "not_covered" in finding.evidence), None)


def _by_rule(rule: Rule, group: GroupSnapshot, verdict: str) -> Findings:
    if rule.find is None:
        return []
    try:
        return [(rule, finding) for finding in borne_out(rule, group, rule.find(group), verdict)]
    except Exception as error:  # as above
        return [rule_failed(rule.rule_id, group, error)]


def rule_failed(what: str, group: GroupSnapshot, error: Exception) -> tuple[Rule, Finding]:
    """Return the finding about a rule that raised an error."""
    where = traceback.extract_tb(error.__traceback__)[-1]
    return RULE_FAILED, Finding(
        f"{what} failed on {group.consumer_group}: {type(error).__name__}: {error}",
        {"failed": what, "where": f"{where.name}:{where.lineno}"},
    )


def _verdict_row(
    group: GroupSnapshot,
    result: ComparisonResult,
    standing: Standing,
    findings: Iterable[FindingsBegun],
) -> GroupVerdictsBegun:
    progress = progress_of(group)
    return {
        **standing,
        "consumer_group": group.consumer_group,
        "verdict": result.verdict,
        "reason": result.reason,
        "looks": result.observations,
        "differences": len({difference.queue for difference in result.differences}),
        "members": len(group.members),
        "dumped_ms": result.dumped_ms,
        "unasked": list(result.unasked),
        "settled_by": settling(group, result),
        "dumps": len(group.facts["DUMP"]),
        "basis": result.basis,
        "progress": progress.word,
        "progress_reason": progress.reason or None,
        "health": health_of(result.verdict, progress.word, findings),
    }


def _standing(group: GroupSnapshot) -> tuple[Standing, Findings]:
    last = group.last_epoch
    standing: Standing = {"queues": None, "behind": None, "moved": None, "changed_ms": None}
    try:
        standing["behind"] = _behind(group)
        if last is not None:
            standing["queues"], standing["moved"] = last["queues"], _moved(group)
            standing["changed_ms"] = last["from_ms"]
        return standing, []
    except Exception as error:  # as below
        return standing, [rule_failed("The group's row", group, error)]


def _moved(group: GroupSnapshot) -> int:
    """Return the queues that received an owner in the night, after the group's first epoch, as
    ``group_nights`` counts them.
    """
    begun = begun_epochs(group.tables["epochs"], group.run.night_ms)
    metrics = group.tables["group_metrics"]
    return sum(row["moved"] for row in metrics if row["topic"] is None and row["epoch"] in begun)


def _behind(group: GroupSnapshot) -> int | None:
    """Return the number of messages beyond the latest commits, including those in queues without a
    reader.

    Return None if no commit is known, if a broker with some of the queues is down, or if the group
    reads a topic of type LITE.
    """
    if lite_topics(group):
        return None
    if any(queues_lost(group, broker) for broker in brokers_lost(group)):
        return None
    if not group.tables["committed_offsets"] and not group.facts["QUEUE_PROGRESS"]:
        return None
    behind, offsets = backlog(group), Offsets(group)
    left = {queue_of(row) for row in orphans(group)} - behind.keys() - offsets.commits.keys()
    return sum(behind.values()) + sum(map(offsets.lag, left))


@dataclass(frozen=True)
class GroupRules:
    """Judges one group at a time; small enough to be sent to every task.

    Attributes:
        runs: the audit runs by cluster.
        accepted: valid acceptances.
        salt: the salt for the names that replace client ids; None shows the ids.
    """

    runs: Mapping[str, AuditRun]
    accepted: tuple[Acceptance, ...] = ()
    salt: str | None = None

    def __call__(self, cluster: str, group: str, rows: SnapshotRows) -> Judged:
        """Return rows of ``findings`` and ``group_verdicts`` from the group's rows by table."""
        snapshot = GroupSnapshot(cluster, group, self.runs.get(cluster, AuditRun(0, 0)), rows)
        judged = run_rules(snapshot, self.accepted)
        if self.salt is None or not judged["findings"]:
            return judged
        redaction = Redaction(self.salt, snapshot)
        return {**judged, "findings": [redaction.finding(row) for row in judged["findings"]]}
