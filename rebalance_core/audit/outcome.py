"""Summarises an audit: its verdict, whether the job fails, and its counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

from rebalance_core.audit.completeness import COLLECTION_INCOMPLETE
from rebalance_core.audit.counted_findings import Count, OfCluster, count_causes, count_findings
from rebalance_core.audit.group_snapshot import AuditRun, grouped
from rebalance_core.audit.night import logged_ms
from rebalance_core.model.system_groups import is_system_group
from rebalance_core.model.verdicts import (
    DUMPS,
    FAILED,
    FINDINGS,
    HEALTH,
    INCOMPLETE,
    INFO,
    OFFLINE,
    OK,
    PROGRESS,
    SEVERITIES,
    TROUBLE,
    UNKNOWN,
    Health,
    RunVerdict,
)

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import FindingsRow, GroupVerdictsRow
    from rebalance_core.contracts.run_record import AuditRecord


def verdict_of(counts: Iterable[Count], fail_on: str) -> tuple[RunVerdict, bool]:
    """Return the verdict, and True if the job ends with exit code 3."""
    still_open = [count for count in counts if count.findings and not count.accepted]
    worst = max((SEVERITIES.index(count.severity) for count in still_open), default=-1)
    failed = worst >= SEVERITIES.index(fail_on)
    if any(count.rule_id == COLLECTION_INCOMPLETE.rule_id for count in still_open):
        return INCOMPLETE, True
    if failed:
        return FAILED, True
    return (FINDINGS if worst > SEVERITIES.index(INFO) else OK), False


@dataclass(frozen=True)
class AuditOutcome:
    """The outcome of an audit run, or of one of its clusters.

    Attributes:
        cluster: names of the clusters.
        verdict: one word for all findings; fails: a finding is at or above ``fail_on``, or the
            collection is incomplete.
        start_ms: start of the audited period, epoch ms UTC; end_ms: its end.
        night_ms: when the audited night began; logged_ms: when brokers' logs end.
        counts: findings by rule, severity and acceptance.
        groups: the number of groups by verdict of the comparison, without RocketMQ's own; by_dumps:
            the number of those whose verdict rests only on the last round of dumps.
        progress: the same groups by whether they read their queues, except offline ones.
        unread: the number of unread messages by group, for the groups with the most, and the sum
            for all others; groups for which it is unknown are left out.
        health: the same groups by `model.verdicts.HEALTH`; troubled: (group, word) for those with a
            word from UNREAD to BEHIND, most severe first, at most `WORST_GROUPS`.
        causes: the open findings by highest severity; a finding and its consequences count once.
        clusters: each cluster separately; empty in the outcome of a single cluster.
    """

    cluster: str
    verdict: RunVerdict
    fails: bool
    fail_on: str
    start_ms: int
    end_ms: int
    night_ms: int
    logged_ms: int
    counts: Sequence[Count]
    groups: Mapping[str, int]
    causes: Mapping[str, int] = field(default_factory=dict)
    by_dumps: int = 0
    progress: Mapping[str, int] = field(default_factory=dict)
    unread: Mapping[str, int] = field(default_factory=dict)
    health: Mapping[str, int] = field(default_factory=dict)
    troubled: Sequence[tuple[str, Health]] = ()
    clusters: Sequence[Self] = field(default=())

    def record(self) -> AuditRecord:
        """Return the record for `_run.json`, with counts by rule and severity; accepted findings
        are counted separately.
        """
        findings: dict[str, dict[str, int]] = {}
        for count in self.counts:
            kind = "accepted" if count.accepted else count.severity
            of_rule = findings.setdefault(count.rule_id, {})
            of_rule[kind] = of_rule.get(kind, 0) + count.findings
        record: AuditRecord = {
            "verdict": self.verdict,
            "fails": self.fails,
            "fail_on": self.fail_on,
            "start_ms": self.start_ms,
            "end_ms": self.end_ms,
            "night_ms": self.night_ms,
            "logged_ms": self.logged_ms,
            "groups": dict(sorted(self.groups.items())),
            "by_dumps": self.by_dumps,
            "progress": dict(self.progress),
            "findings": dict(sorted(findings.items())),
            "causes": dict(self.causes),
        }
        if self.clusters:
            record["clusters"] = {cluster.cluster: cluster.record() for cluster in self.clusters}
        return record


def audit_outcome(
    findings: Sequence[FindingsRow],
    verdicts: Sequence[GroupVerdictsRow],
    runs: Mapping[str, AuditRun],
    fail_on: str,
) -> AuditOutcome:
    """Count findings and verdicts of all groups, and of each cluster.

    Args:
        findings: all rows.
        verdicts: rows of ``group_verdicts``.
        runs: the audited period, by cluster.
        fail_on: the lowest severity at which an open finding fails the run.
    """
    by_cluster, judged = _by_cluster(findings), _by_cluster(verdicts)
    names = sorted({*runs, *by_cluster, *judged})
    clusters = [
        _outcome(
            name,
            by_cluster.get(name, []),
            judged.get(name, []),
            [runs[name]] if name in runs else [],
            fail_on,
        )
        for name in names
    ]
    return _outcome(", ".join(names), findings, verdicts, list(runs.values()), fail_on, clusters)


def _outcome(
    cluster: str,
    findings: Iterable[FindingsRow],
    verdicts: Iterable[GroupVerdictsRow],
    runs: Sequence[AuditRun],
    fail_on: str,
    clusters: Sequence[AuditOutcome] = (),
) -> AuditOutcome:
    findings = list(findings)
    counts = count_findings(findings)
    verdict, fails = verdict_of(counts, fail_on)
    judged = [row for row in verdicts if not is_system_group(row["consumer_group"])]
    return AuditOutcome(
        cluster=cluster,
        verdict=verdict,
        fails=fails,
        fail_on=fail_on,
        start_ms=min((run.start_ms for run in runs), default=0),
        end_ms=max((run.end_ms for run in runs), default=0),
        night_ms=min((run.night_ms for run in runs), default=0),
        logged_ms=min((logged_ms(run) for run in runs), default=0),
        counts=counts,
        groups=dict(sorted(Counter(row["verdict"] for row in judged).items())),
        by_dumps=sum(row["basis"] == DUMPS and row["verdict"] != UNKNOWN for row in judged),
        progress=_progress(judged),
        unread=_unread(judged),
        health=_health(judged),
        troubled=_troubled(judged),
        causes=count_causes(findings),
        clusters=clusters,
    )


def _progress(judged: Sequence[GroupVerdictsRow]) -> dict[str, int]:
    counts = Counter(row["progress"] for row in judged if row["verdict"] != OFFLINE)
    return {word: counts[word] for word in PROGRESS if counts[word]}


def _health(judged: Sequence[GroupVerdictsRow]) -> dict[str, int]:
    counts = Counter(row["health"] for row in judged)
    return {word: counts[word] for word in HEALTH}


def _troubled(judged: Sequence[GroupVerdictsRow]) -> list[tuple[str, Health]]:
    rank = {word: place for place, word in enumerate(TROUBLE)}
    rows = [(row["consumer_group"], row["health"]) for row in judged if row["health"] in rank]
    return sorted(rows, key=lambda row: (rank[row[1]], row[0]))[:WORST_GROUPS]


WORST_GROUPS = 50
"""Groups with their own samples in metrics; the others share `OTHER_GROUPS`."""
OTHER_GROUPS = "(others)"
"""RocketMQ accepts no group of this name."""


def _unread(judged: Sequence[GroupVerdictsRow]) -> dict[str, int]:
    return with_most(
        (row["behind"], row["consumer_group"]) for row in judged if row["behind"] is not None
    )


def with_most(counted: Iterable[tuple[int, str]]) -> dict[str, int]:
    """Return the groups with the highest counts, and all others as `OTHER_GROUPS`."""
    worst = sorted(counted, key=lambda pair: (-pair[0], pair[1]))
    counts = {group: count for count, group in worst[:WORST_GROUPS]}
    if worst[WORST_GROUPS:]:
        counts[OTHER_GROUPS] = sum(count for count, _ in worst[WORST_GROUPS:])
    return counts


def _by_cluster(rows: Iterable[OfCluster]) -> dict[str, list[OfCluster]]:
    return grouped(rows, lambda row: row["cluster"])
