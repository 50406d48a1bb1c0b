"""An audit in short: its verdict, whether the job fails, the counts of page and metrics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, field
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, Any, Self, TypeVar

from rebalance_core.audit.completeness import COLLECTION_INCOMPLETE
from rebalance_core.audit.group_snapshot import AuditRun, grouped, listed, plural
from rebalance_core.audit.known_issues import ToAccept
from rebalance_core.audit.night import logged_ms
from rebalance_core.contracts.ledger import by_cause
from rebalance_core.model.system_groups import is_system_group
from rebalance_core.model.times import MINUTE_MS, utc
from rebalance_core.model.verdicts import (
    DUMPS,
    ERROR,
    FAILED,
    FINDINGS,
    HEALTH,
    INCOMPLETE,
    INFO,
    OFFLINE,
    OK,
    PROGRESS,
    RUN_VERDICTS,
    SEVERITIES,
    TROUBLE,
    UNKNOWN,
    WORST_FIRST,
    Health,
    RunVerdict,
)

if TYPE_CHECKING:
    from rebalance_core.contracts.audit_record import AuditRecord
    from rebalance_core.contracts.rows import CoverageRow, FindingsRow, GroupVerdictsRow

# The verdict of an audit run: one word from its findings, and whether the job fails.


@dataclass(frozen=True, slots=True)
class Count:
    """How many findings of a rule and severity there are, accepted or open."""

    rule_id: str
    severity: str
    accepted: bool
    findings: int


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


# Which findings are counted, kept and shown, of rows of ``findings``.
#
# Where they are put in order, null comes first, and texts go by their code points.


OfCluster = TypeVar("OfCluster", "FindingsRow", "GroupVerdictsRow")

_RANK: dict[object, int] = {severity: rank for rank, severity in enumerate(WORST_FIRST, 1)}

_PLACE = ("consumer_group", "topic", "broker_name", "queue_id", "client_id")
KEPT_FIRST = (*_PLACE, "first_ms", "summary", "last_ms", "remedy")
"""The order of a rule's findings of one severity, where only some are kept."""
SHOWN_FIRST = ("rule_id", *_PLACE, "summary", "cluster", "first_ms", "last_ms", "remedy")
"""The order in which findings of one severity are shown."""


def count_findings(findings: Iterable[FindingsRow]) -> list[Count]:
    """Return how many there are by rule, severity and acceptance, in this order."""
    counted = Counter(
        (row["rule_id"], row["severity"], row["accepted"] is not None) for row in findings
    )
    return sorted((Count(*kind, times) for kind, times in counted.items()), key=astuple)


def count_causes(findings: Iterable[FindingsRow]) -> dict[str, int]:
    """Return how many causes the open findings have, by the gravest severity of what follows from
    each.
    """
    rows = [row for row in findings if row["accepted"] is None]
    lists = by_cause((row["fingerprint"], row["caused_by"]) for row in rows)
    gravest: Counter[str] = Counter(
        max((rows[number]["severity"] for number in numbers), key=SEVERITIES.index)
        for numbers in lists
    )
    return {severity: gravest[severity] for severity in WORST_FIRST if gravest[severity]}


def is_open(finding: FindingsRow) -> bool:
    """Return True for a finding above INFO that is not accepted."""
    return finding["accepted"] is None and finding["severity"] != INFO


def to_accept(findings: Iterable[FindingsRow]) -> list[ToAccept]:
    """Return what accepts the open findings (`known_issues.ToAccept`), each once."""
    named: dict[tuple[object, ...], ToAccept] = {}
    for row in filter(is_open, findings):
        names: ToAccept = {
            "rule_id": row["rule_id"],
            "consumer_group": row["consumer_group"],
            "topic": row["topic"],
            "broker_name": row["broker_name"],
            "client_id": row["client_id"],
        }
        named.setdefault(tuple(names.values()), names)
    return list(named.values())


def shown_first(findings: Iterable[FindingsRow], limit: int) -> list[FindingsRow]:
    """Return the findings to show first: open, then most severe."""
    return sorted(findings, key=_order(SHOWN_FIRST))[:limit]


def capped(findings: Iterable[FindingsRow], rows_of_a_rule: int) -> list[FindingsRow]:
    """Return the first findings of each rule of a cluster, open and most severe first."""
    rule = ("cluster", "rule_id")
    ordered = sorted(sorted(findings, key=_order(KEPT_FIRST)), key=_by(rule))
    return [row for _, rows in groupby(ordered, _by(rule)) for row in list(rows)[:rows_of_a_rule]]


def worst_groups(findings: Iterable[FindingsRow], groups: int) -> list[tuple[str, str]]:
    """Return the (cluster, consumer_group) of the groups with the worst open findings above
    INFO.
    """
    errors: Counter[tuple[str, str]] = Counter()
    total: Counter[tuple[str, str]] = Counter()
    for row in findings:
        if is_open(row) and row["consumer_group"] is not None:
            group = (row["cluster"], row["consumer_group"])
            errors[group] += row["severity"] == ERROR
            total[group] += 1
    return sorted(total, key=lambda group: (-errors[group], -total[group], *group))[:groups]


def _by(names: Iterable[str]) -> Callable[[Mapping[str, object]], tuple[Any, ...]]:
    return lambda row: tuple((row[name] is not None, row[name]) for name in names)


def _order(names: Iterable[str]) -> Callable[[Mapping[str, object]], tuple[Any, ...]]:
    """Open findings first, then by severity, then by these columns."""
    rest = _by(names)
    return lambda row: (row["accepted"] is not None, _RANK.get(row["severity"], 0), *rest(row))


# An audit in short: the verdict, and the counts that the page, metrics and summary show.


@dataclass(frozen=True)
class AuditOutcome:
    """The outcome of an audit run, or of one of its clusters.

    Attributes:
        cluster: names of the clusters.
        verdict: one word for all findings; fails: a finding is at or above ``fail_on``, or the
            collection is incomplete.
        start_ms: start of what was audited, epoch ms UTC; end_ms: its end.
        night_ms: when the night that is judged began; logged_ms: until when brokers' logs go.
        counts: findings by rule, severity and acceptance.
        groups: groups by verdict of the comparison, RocketMQ's own left out; by_dumps: how many of
            them rest on the last round of dumps alone.
        progress: the same groups by whether they read what they hold, those offline left out.
        unread: messages that the groups with the most of them have not read, by group, and those
            of all others together; groups of which it is unknown left out.
        health: the same groups by `model.verdicts.HEALTH`; troubled: (group, word) of those whose
            word is from UNREAD to BEHIND, the gravest first, at most `WORST_GROUPS`.
        causes: what is open by its gravest severity: a finding with what follows from it is one.
        clusters: each cluster by itself; empty in the outcome of a single cluster.
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
        """Return the record for `_run.json`, with counts by rule and severity, accepted ones
        apart.
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
        runs: what was audited, by cluster.
        fail_on: the least severity of an open finding that fails the run.
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
"""Groups with samples of their own in metrics; the others are one, `OTHER_GROUPS`."""
OTHER_GROUPS = "(others)"
"""No name that RocketMQ would take for a group."""


def _unread(judged: Sequence[GroupVerdictsRow]) -> dict[str, int]:
    return _with_most(
        (row["behind"], row["consumer_group"]) for row in judged if row["behind"] is not None
    )


def _with_most(counted: Iterable[tuple[int, str]]) -> dict[str, int]:
    """Return the groups with the highest counts, and all others as `OTHER_GROUPS`."""
    worst = sorted(counted, key=lambda pair: (-pair[0], pair[1]))
    counts = {group: count for count, group in worst[:WORST_GROUPS]}
    if worst[WORST_GROUPS:]:
        counts[OTHER_GROUPS] = sum(count for count, _ in worst[WORST_GROUPS:])
    return counts


def _by_cluster(rows: Iterable[OfCluster]) -> dict[str, list[OfCluster]]:
    return grouped(rows, lambda row: row["cluster"])


# ``metrics.prom``: an audit run's counts as a Prometheus text file (node_exporter's textfile).

Labels = Mapping[str, str]


def render_metrics(
    clusters: Sequence[AuditOutcome], finished_ms: int, stalled: Mapping[tuple[str, str], int]
) -> str:
    """Return the file's text, which ends with a newline and has its lines in a fixed order.

    Args:
        clusters: what came of each; every sample is labelled with the name of one.
        finished_ms: when the audit ended.
        stalled: by (cluster, group) how many of its queues stand still.
    """
    lines: list[str] = []

    def metric(
        name: str, text: str, samples: Callable[[AuditOutcome], Iterable[tuple[Labels, int]]]
    ) -> None:
        lines.append(f"# HELP rebalance_audit_{name} {text}")
        lines.append(f"# TYPE rebalance_audit_{name} gauge")
        for cluster in clusters:
            for labels, value in samples(cluster):
                shown = {"cluster": cluster.cluster, **labels}.items()
                text_of_labels = ",".join(f'{k}="{_escaped(v)}"' for k, v in shown)
                lines.append(f"rebalance_audit_{name}{{{text_of_labels}}} {value}")

    metric("findings", "Findings by rule, severity and acceptance.", _findings)
    metric(
        "groups",
        "Consumer groups by the verdict on their ownership, predicted against live.",
        lambda cluster: (({"verdict": name}, n) for name, n in sorted(cluster.groups.items())),
    )
    metric(
        "groups_progress",
        "Consumer groups with members by whether they read the queues they hold.",
        lambda cluster: (({"progress": name}, n) for name, n in cluster.progress.items()),
    )
    metric(
        "groups_health",
        "Consumer groups by the word for who is on call.",
        lambda cluster: (({"health": word}, n) for word, n in cluster.health.items()),
    )
    metric(
        "group_health",
        "1 for each group in trouble, of at most 50, the gravest first.",
        lambda cluster: (({"group": g, "health": word}, 1) for g, word in cluster.troubled),
    )
    metric(
        "unread_messages",
        "Messages after the group's newest commits, of the groups with the most.",
        lambda cluster: (({"group": name}, n) for name, n in cluster.unread.items()),
    )
    metric(
        "stalled_queues",
        "Queues whose commit stands still while messages arrive, of the groups with the most.",
        lambda cluster: (
            ({"group": name}, n)
            for name, n in _with_most(
                (n, group)
                for (of_cluster, group), n in stalled.items()
                if of_cluster == cluster.cluster and not is_system_group(group)
            ).items()
        ),
    )
    metric(
        "verdict",
        "1 for the cluster's verdict, 0 for the others.",
        lambda cluster: (
            ({"verdict": word}, int(word == cluster.verdict)) for word in RUN_VERDICTS
        ),
    )
    metric(
        "collection_end_seconds",
        "Last moment of the collection.",
        lambda cluster: [({}, cluster.end_ms // 1000)],
    )
    metric("finished_seconds", "When the audit ended.", lambda cluster: [({}, finished_ms // 1000)])
    return "\n".join(lines) + "\n"


def _findings(outcome: AuditOutcome) -> Iterator[tuple[Labels, int]]:
    ordered = sorted(
        outcome.counts, key=lambda count: (count.rule_id, count.severity, count.accepted)
    )
    for count in ordered:
        accepted = str(count.accepted).lower()
        labels = {"rule_id": count.rule_id, "severity": count.severity, "accepted": accepted}
        yield labels, count.findings


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


# What was not looked at, in one sentence.

LATE_MS = 5 * MINUTE_MS
"""Logs that begin or end so much later than others are named."""
_LOGS = {"NAME_SERVER": "the logs of name servers", "CLIENT": "the logs of clients"}


def not_looked_at(rows: Iterable[CoverageRow]) -> str:
    """Say in one sentence what the files of one cluster do not cover; empty where that is
    not known.

    >>> row = {"host": "a", "role": "BROKER", "kind": "broker_log", "complete": True, "note": None}
    >>> row |= {"from_ms": 0, "to_ms": 60_000}
    >>> others = [row | {"role": role, "kind": "log"} for role in ("CLIENT", "NAME_SERVER")]
    >>> not_looked_at([row, *others])
    'Not looked at: anything before 1970-01-01 00:00:00Z or after 1970-01-01 00:01:00Z.'
    """
    rows = list(rows)
    if not rows:
        return ""
    logs = [
        (row["host"], row["from_ms"], row["to_ms"])
        for row in rows
        if row["kind"] == "broker_log" and row["from_ms"] is not None and row["to_ms"] is not None
    ]
    parts = []
    if logs:
        begins: dict[str, int] = {}
        ends: dict[str, int] = {}
        for host, from_ms, to_ms in logs:
            begins[host] = min(from_ms, begins.get(host, from_ms))
            ends[host] = max(to_ms, ends.get(host, to_ms))
        dumped = max((r["from_ms"] or 0 for r in rows if r["role"] == "ADMIN"), default=0)
        last = max(dumped, *ends.values())
        parts.append(
            f"anything before {utc(min(begins.values()))} or after {utc(last)}"
            + _edges(begins, ends, last)
        )
        parts += [
            f"{host} from {utc(from_ms)} to {utc(to_ms)}" for host, from_ms, to_ms in _holes(logs)
        ]
    parts += [what for role, what in _LOGS.items() if not any(r["role"] == role for r in rows)]
    broken = [row for row in rows if not row["complete"]]
    if broken:
        parts.append(f"what {plural(len(broken), 'file')} lacks that is cut off or unreadable")
    return f"Not looked at: {'; '.join(parts)}."


def _edges(begins: Mapping[str, int], ends: Mapping[str, int], last_ms: int) -> str:
    """Return the brokers whose logs begin later or end earlier than the others'."""
    first_ms = min(begins.values())
    late = [f"{h} before {utc(ms)}" for h, ms in sorted(begins.items()) if ms > first_ms + LATE_MS]
    early = [f"{h} after {utc(ms)}" for h, ms in sorted(ends.items()) if ms < last_ms - LATE_MS]
    return f" (of the broker.log of {listed([*late, *early], 5)})" if late or early else ""


def _holes(logs: Iterable[tuple[str, int, int]]) -> Iterator[tuple[str, int, int]]:
    ordered = sorted(logs, key=lambda log: log[:2])
    for (host, _, to_ms), (other, from_ms, _) in pairwise(ordered):
        if host == other and to_ms < from_ms:
            yield host, to_ms, from_ms
