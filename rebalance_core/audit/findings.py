"""The cluster and each group judged, as rows of ``findings`` and of ``group_verdicts``."""

from __future__ import annotations

import traceback
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypedDict

from rebalance_core.audit.case import (
    LISTED,
    AuditRun,
    ClusterCase,
    Finding,
    GroupCase,
    Rule,
    facts_by_kind,
    grouped,
)
from rebalance_core.audit.comparison import ComparisonResult, compare, unknown
from rebalance_core.audit.comparison_findings import COMPARISON_RULES, comparison_findings, settling
from rebalance_core.audit.completeness import (
    COLLECTION_INCOMPLETE,
    COVERAGE_UNKNOWN,
    UNASKED,
    audit_run_of,
    incomplete_groups,
    no_coverage,
    unsure_findings,
)
from rebalance_core.audit.confidence import borne_out, borne_out_in_cluster
from rebalance_core.audit.coverage import Coverage, coverage_of, name_servers_tell
from rebalance_core.audit.dumps import queue_of
from rebalance_core.audit.known_issues import (
    Acceptance,
    accept,
    of_cluster,
    of_group,
    of_java_clients,
    with_known,
)
from rebalance_core.audit.orphans import Offsets, backlog, orphans
from rebalance_core.audit.redact import Redaction
from rebalance_core.audit.rules import CLUSTER_RULES, RULES
from rebalance_core.audit.rules.brokers_down import (
    DOWN,
    broker_outages,
    brokers_lost,
    find_down,
    queues_lost,
)
from rebalance_core.audit.rules.client_logs import STARVED_TIMERS
from rebalance_core.audit.rules.cluster import (
    down_brokers,
    going_on,
    master_outages,
    unlogged_stops,
)
from rebalance_core.audit.subscriptions import strategy_is_known
from rebalance_core.ingest.rows import FINDING_IDS
from rebalance_core.model import verdicts
from rebalance_core.model.events import BROKER_EVENTS, NOTICES
from rebalance_core.model.system_groups import is_system_group
from rebalance_core.model.timeline import Unknown

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import (
        BrokerEventsRow,
        CaseRows,
        CoverageRow,
        FactsByKind,
        FindingsBegun,
        FindingsRow,
        GroupVerdictsBegun,
        NewestDumpsRow,
        ObservedFactsRow,
        SpansRow,
    )

RULE_FAILED = Rule(
    "RULE_FAILED",
    verdicts.ERROR,
    "A rule, or the comparison with live ownership, failed on a group: a bug of the audit. The "
    "other rules went on; what this one would have found is unknown.",
    "the rule itself",
    "Report it with the evidence; accept it for the group until it is fixed.",
)

ALL_RULES: tuple[Rule, ...] = (
    COLLECTION_INCOMPLETE,
    COVERAGE_UNKNOWN,
    *COMPARISON_RULES.values(),
    *RULES,
    *CLUSTER_RULES,
    RULE_FAILED,
)
"""Every rule of the audit; those of `ingest` are in docs/ingest.md."""

MEANINGS = FINDING_IDS | {rule.rule_id: rule.meaning for rule in ALL_RULES}
"""What each finding means, those of `ingest` too."""

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


def run_cluster_rules(
    facts: FactsByKind,
    dumps: Iterable[NewestDumpsRow],
    broker_events: Iterable[BrokerEventsRow],
    stale_hours: float,
    not_before_ms: int | None = None,
    coverage: Iterable[CoverageRow] = (),
) -> tuple[AuditRun, list[FindingsBegun]]:
    """The audit run's view of the cluster, and the findings on the cluster as a whole.

    Args:
        facts: observed facts of `collection.CLUSTER_KINDS`.
        dumps: DUMP facts, or the newest by command and broker.
        broker_events: BROKER_UP and BROKER_DOWN, MASTER_UP and MASTER_DOWN, NOTICES of
            cluster_events.
        stale_hours: what is older at the end says nothing about the present.
        not_before_ms: a collection that ends before is old as a whole.
        coverage: what the files can tell of.
    """
    reported = list(broker_events)
    given = [row for row in reported if row["event_type"] != NOTICES]
    events = [row for row in given if row["event_type"] in BROKER_EVENTS]
    dumps, coverage = list(dumps), list(coverage)
    newest = max((row["last_ms"] for row in dumps), default=0)
    gone = down_brokers(events)
    heard_to_the_end = name_servers_tell(coverage, newest)
    down = gone if heard_to_the_end else frozenset[str]()
    run, missing = audit_run_of(facts, dumps, down, stale_hours, not_before_ms)
    rows = [finding_row(COLLECTION_INCOMPLETE, one) for one in missing]
    masters = master_outages(given)
    files = facts["BROKER_FILE"]
    folders = {
        row["broker_name"]: names.split(", ")
        for row in files
        if (names := row["details"].get("folders"))
    }
    covered = coverage_of(coverage, folders, down)
    headless = {b for b, outages in masters.items() if outages and outages[-1].up_ms is None}
    signs = _signs_of_life(dumps, covered, {*folders, *gone})
    named = {row["broker_name"] for row in facts["BROKER_SLAVES"]}
    slaves = frozenset(named | masters.keys())
    ends = {broker: covered.ends(broker) for broker in headless}
    returned = going_on(events, masters, ends | {broker: signs[broker] for broker in gone})
    outages = broker_outages(events, facts, signs, covered, heard_to_the_end=heard_to_the_end)
    # of a process that was a master by turns there is no log: it may be one again
    untold = {row["broker_name"] for row in files if row["details"].get("unlogged")}
    returned |= {broker: masters[broker][-1].down_ms for broker in headless & untold}
    run = replace(
        run,
        masters=masters,
        coverage=covered,
        returned=returned,
        slaves=slaves,
        stops=unlogged_stops(given, facts),
        notices=_notices(reported),
        moments=_moments(facts, given),
        outages=outages,
    )
    if not run.coverage.known and files:
        rows.append(finding_row(COVERAGE_UNKNOWN, no_coverage()))
    rows = with_known(rows, of_cluster(run))
    case = ClusterCase(run, facts, given, coverage)
    for rule in CLUSTER_RULES:
        found = rule.find_in_cluster(case) if rule.find_in_cluster else ()
        of_rule = [finding_row(rule, one) for one in borne_out_in_cluster(rule, found)]
        whom = of_java_clients(run) if rule is STARVED_TIMERS else of_cluster(run)
        rows += with_known(of_rule, whom)
    return run, rows


_MOMENTS = {
    "BROKER_STARTED": "started",
    "BROKER_UP": "registered with the name servers",
    "BROKER_DOWN": "went",
    "MASTER_DOWN": "lost its master",
    "MASTER_UP": "got a master",
}
"""What a fact or event says of its broker."""


def _moments(
    facts: FactsByKind, broker_events: Iterable[BrokerEventsRow]
) -> dict[str, tuple[tuple[int, str], ...]]:
    """By broker what it, its replicas and the name servers logged of it, by time."""
    logged: list[tuple[str, int, str]] = []
    logged += [
        (row["broker_name"], row["first_ms"], row["kind"]) for row in facts["BROKER_STARTED"]
    ]
    logged += [(row["broker_name"], row["event_ms"], row["event_type"]) for row in broker_events]
    found: dict[str, set[tuple[int, str]]] = {}
    for broker, at_ms, kind in logged:
        if kind in _MOMENTS:
            found.setdefault(broker, set()).add((at_ms, _MOMENTS[kind]))
    return {broker: tuple(sorted(moments)) for broker, moments in found.items()}


def _signs_of_life(
    dumps: Iterable[NewestDumpsRow], covered: Coverage, brokers: Iterable[str]
) -> dict[str, int]:
    """By broker the last line of its log or its last answer to consumerConnection, epoch ms."""
    signs = {broker: covered.ends(broker) for broker in brokers}
    for row in dumps:
        if row["broker_name"] and row["command"] == "consumerConnection":
            signs[row["broker_name"]] = max(signs.get(row["broker_name"], 0), row["last_ms"])
    return signs


def _notices(broker_events: Iterable[BrokerEventsRow]) -> dict[str, tuple[str, ...]]:
    """By broker how it told members of changes, in order."""
    found: dict[str, tuple[str, ...]] = {}
    for row in sorted(broker_events, key=lambda row: (row["event_ms"], row["sequence"])):
        if row["event_type"] == NOTICES:
            found[row["broker_name"]] = (*found.get(row["broker_name"], ()), row["detail"] or "")
    return found


def missing_of_groups(
    unknown: Mapping[str, tuple[int, list[str]]], compared: int, *, reported: bool = True
) -> list[FindingsBegun]:
    """Findings for groups of which something is missing that others have.

    Args:
        unknown: by reason (`missing_reason`) how many groups, and the first names.
        compared: groups that were compared; with none the whole kind of dump is missing, and that
            is a finding of its own.
        reported: that something of the cluster is missing is a finding already.
    """
    compared = compared or not reported
    return [
        finding_row(COLLECTION_INCOMPLETE, incomplete_groups(reason, *unknown[reason]))
        for reason in (
            verdicts.NO_DUMP,
            verdicts.STALE_DUMP,
            verdicts.LOG_BEGINS,
            verdicts.LOG_ENDED,
            verdicts.NOT_COVERED,
            UNASKED,
        )
        if reason in unknown and (compared or reason not in (verdicts.NO_DUMP, verdicts.STALE_DUMP))
    ]


class Missing(TypedDict):
    """What of a row of ``group_verdicts`` shows that something is missing."""

    verdict: verdicts.Verdict
    reason: str
    unasked: Sequence[str]


class MissingGroups(Missing):
    """Groups that miss the same: how many, the first names, how many dumps of them were made."""

    groups: int
    names: Sequence[str]
    dumps: int | None


MISSING_REASONS = (
    verdicts.NO_DUMP,
    verdicts.STALE_DUMP,
    verdicts.LOG_BEGINS,
    verdicts.LOG_ENDED,
    verdicts.NOT_COVERED,
)


def missing_reason(verdict: Missing) -> str | None:
    """Under which reason of `missing_of_groups` a row of ``group_verdicts`` counts; None: none."""
    if verdict["verdict"] == verdicts.UNKNOWN and verdict["reason"] in MISSING_REASONS:
        return str(verdict["reason"])
    return UNASKED if verdict["unasked"] else None


def finding_row(rule: Rule, finding: Finding, consumer_group: str | None = None) -> FindingsBegun:
    """A row of ``findings`` without the cluster."""
    return {
        "rule_id": rule.rule_id,
        "severity": finding.severity or rule.severity,
        "consumer_group": consumer_group,
        "topic": finding.topic,
        "broker_name": finding.broker_name,
        "queue_id": finding.queue_id,
        "client_id": finding.client_id,
        "first_ms": finding.first_ms,
        "last_ms": finding.last_ms,
        "summary": finding.summary,
        "evidence": {name: str(value) for name, value in finding.evidence.items()},
        "remedy": finding.remedy or rule.remedy,
        "accepted": None,
    }


def of_cluster_row(cluster: str, row: FindingsBegun) -> FindingsRow:
    """The row with its cluster; its fingerprint and cause come when all findings are there."""
    return {**row, "cluster": cluster, "fingerprint": None, "caused_by": None}


def _compared(case: GroupCase) -> tuple[ComparisonResult, Findings]:
    try:
        result = compare(case)
        if result.reason == verdicts.SYSTEM:
            return result, []
        found = _covered(case, result)
        gap = _nothing_stands(found) if result.verdict == verdicts.DIFFERS else None
        if gap is not None:
            said = gap.evidence
            why = Unknown(said["not_covered"], "", said["why"], gap.remedy or "")
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


# The rules of one group, wherever its rows are.


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


# Every cluster judged as a whole, from the few rows that concern it.


@dataclass(frozen=True)
class ClusterRows:
    """The facts about one cluster that rules read; grows with brokers, not with groups.

    Attributes:
        facts: observed facts of the kinds asked for; what the events span is a COLLECTED one.
        dumps: the newest dump by command and broker.
        broker_events: BROKER_UP and BROKER_DOWN, MASTER_UP and MASTER_DOWN, NOTICES.
        coverage: what its files can tell of.
    """

    facts: list[ObservedFactsRow] = field(default_factory=list)
    dumps: list[NewestDumpsRow] = field(default_factory=list)
    broker_events: list[BrokerEventsRow] = field(default_factory=list)
    coverage: list[CoverageRow] = field(default_factory=list)


def cluster_rows(
    spans: Iterable[SpansRow],
    facts: Iterable[ObservedFactsRow],
    dumps: Iterable[NewestDumpsRow],
    broker_events: Iterable[BrokerEventsRow],
    coverage: Iterable[CoverageRow] = (),
) -> dict[str, ClusterRows]:
    """The rows by cluster.

    Args:
        spans: cluster, and first_ms and last_ms of its events.
        facts: observed facts of `completeness.CLUSTER_KINDS`.
        dumps: cluster, broker_name, command, first_ms and last_ms of the newest dumps.
        broker_events: of clusters that have a span.
        coverage: rows of the table.
    """
    clusters = {row["cluster"]: ClusterRows([_collected(row)]) for row in spans}
    for fact in facts:
        clusters.setdefault(fact["cluster"], ClusterRows()).facts.append(fact)
    for dump in dumps:
        clusters.setdefault(dump["cluster"], ClusterRows()).dumps.append(dump)
    for event in broker_events:
        clusters[event["cluster"]].broker_events.append(event)
    for covered in coverage:
        clusters.setdefault(covered["cluster"], ClusterRows()).coverage.append(covered)
    return clusters


def _collected(span: SpansRow) -> ObservedFactsRow:
    """The fact COLLECTED of what events span, for tables of no collection."""
    return {
        "cluster": span["cluster"],
        "kind": "COLLECTED",
        "consumer_group": None,
        "topic": None,
        "broker_name": None,
        "queue_id": None,
        "client_id": None,
        "first_ms": span["first_ms"],
        "last_ms": span["last_ms"],
        "times": 1,
        "details": {"start_ms": str(span["first_ms"]), "end_ms": str(span["last_ms"])},
        "source": "cluster_events",
    }


@dataclass(frozen=True)
class ClusterFindings:
    """Facts and findings about the clusters as such.

    Attributes:
        runs: by cluster, what the judge of its groups has to know.
        findings: on clusters.
        brokers: names that no redaction takes for a client's.
        incomplete: clusters of which something was not collected.
    """

    runs: Mapping[str, AuditRun]
    findings: list[FindingsRow]
    brokers: frozenset[str]
    incomplete: frozenset[str] = frozenset()

    def all_findings(
        self,
        of_ingest: Iterable[FindingsRow],
        of_groups: Iterable[FindingsRow],
        unknown: Mapping[str, tuple[list[MissingGroups], int]],
        accepted: tuple[Acceptance, ...],
        redact_salt: str | None,
    ) -> list[FindingsRow]:
        """Every finding that is none on a group, accepted and redacted.

        Args:
            of_ingest: what `ingest` found beside groups.
            of_groups: what was found of groups.
            unknown: by cluster its groups with something missing, and how many were compared. A row
                has verdict, reason, unasked, groups (how many) and names, the first of them.
            accepted: acceptances that hold.
            redact_salt: of the names for client ids; None: they are shown.
        """
        rows = [*self.findings, *of_ingest]
        groups = grouped(of_groups, lambda row: row["cluster"])
        for cluster, run in self.runs.items():
            down = find_down(run.outages, groups.get(cluster, ()))
            rows += [of_cluster_row(cluster, finding_row(DOWN, one)) for one in down]
        for cluster, (missing, compared) in unknown.items():
            reported = compared > 0 or cluster in self.incomplete
            if not reported:
                missing = [
                    row for row in missing if row["reason"] != verdicts.NO_DUMP or not row["dumps"]
                ]
            lacking = missing_of_groups(_by_reason(missing), compared, reported=reported)
            rows += [of_cluster_row(cluster, row) for row in lacking]
        rows = [accept(row, accepted) for row in rows]
        of_clusters = grouped(rows, lambda row: row["cluster"])
        for cluster in sorted(groups.keys() | of_clusters.keys()):
            found = [*of_clusters.get(cluster, ()), *groups.get(cluster, ())]
            unsure = (finding_row(COLLECTION_INCOMPLETE, one) for one in unsure_findings(found))
            rows += [accept(of_cluster_row(cluster, row), accepted) for row in unsure]
        if redact_salt is None:
            return rows
        return list(map(Redaction(redact_salt, brokers=self.brokers).finding, rows))


def cluster_findings(
    clusters: Mapping[str, ClusterRows], stale_hours: float, not_before_ms: int | None
) -> ClusterFindings:
    """Judge each cluster; arguments as of `run_cluster_rules`."""
    runs: dict[str, AuditRun] = {}
    findings: list[FindingsRow] = []
    brokers: set[str | None] = set()
    for cluster, known in clusters.items():
        runs[cluster], found = run_cluster_rules(
            facts_by_kind(known.facts),
            known.dumps,
            known.broker_events,
            stale_hours,
            not_before_ms,
            known.coverage,
        )
        brokers |= {row["broker_name"] for row in (*known.facts, *known.broker_events)}
        findings += [of_cluster_row(cluster, row) for row in found]
    incomplete = frozenset(
        row["cluster"] for row in findings if row["rule_id"] == COLLECTION_INCOMPLETE.rule_id
    )
    names = frozenset(name for name in brokers if name is not None)
    return ClusterFindings(runs, findings, names, incomplete)


def _by_reason(unknown: Iterable[MissingGroups]) -> dict[str, tuple[int, list[str]]]:
    """How many groups something is missing of, and the first names, by `missing_reason`."""
    by_reason: dict[str, tuple[int, list[str]]] = {}
    for row in unknown:
        reason = missing_reason(row)
        if reason is not None:
            groups, names = by_reason.get(reason, (0, []))
            by_reason[reason] = (groups + row["groups"], sorted([*names, *row["names"]])[:LISTED])
    return by_reason
