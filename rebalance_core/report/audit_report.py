"""Data that the report page shows about an audit run: plain values, no Spark, no files."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING, TypedDict, TypeVar

from rebalance_core.model import verdicts
from rebalance_core.model.file_statuses import FILE_STATUSES
from rebalance_core.model.group_settings import BROADCASTING
from rebalance_core.model.queue import MessageQueue, queue_sort_key, sort_client_ids
from rebalance_core.model.verdicts import CHANGES, RunVerdict
from rebalance_core.report.group_table import GroupRow
from rebalance_core.report.loss_table import LossRow
from rebalance_core.report.server_table import ServerRow
from rebalance_core.report.tonight import NightDifference, Tonight
from rebalance_core.version import LIBRARY_VERSION

if TYPE_CHECKING:
    from rebalance_core.contracts.audit_record import AuditRecord
    from rebalance_core.contracts.rows import (
        ConsumerLoadRow,
        EpochsRow,
        FindingsRow,
        GroupMetricsRow,
        MembershipsRow,
        OwnershipRow,
        PopReachRow,
        RowsByTable,
    )
    from rebalance_core.ingest.file_record import FileOutcome


@dataclass(frozen=True, slots=True)
class ShownFinding:
    """A row of ``findings`` as the page shows it.

    Attributes:
        first_ms: its start, epoch ms UTC; last_ms: its end, None if it still holds.
        evidence: what shows it, in the order of its keys.
        accepted: why it is accepted; None if it is not.
        fingerprint: the same in every run; caused_by: that of the finding it follows from.
    """

    rule_id: str
    severity: str
    summary: str
    remedy: str = ""
    consumer_group: str | None = None
    topic: str | None = None
    broker_name: str | None = None
    queue_id: int | None = None
    client_id: str | None = None
    first_ms: int | None = None
    last_ms: int | None = None
    evidence: Mapping[str, str] = field(default_factory=dict)
    accepted: str | None = None
    cluster: str = ""
    fingerprint: str | None = None
    caused_by: str | None = None

    @property
    def key(self) -> tuple[str | int | None, ...]:
        """Return the key that makes it the same finding in two audit runs: the rule and its
        subject.
        """
        return (
            self.cluster,
            self.rule_id,
            self.consumer_group,
            self.topic,
            self.broker_name,
            self.queue_id,
            self.client_id,
        )


@dataclass(frozen=True, slots=True)
class GroupCounts:
    """Counts of groups by how their live ownership compares with the prediction.

    Attributes:
        total: all groups.
        equal: live ownership follows the rules.
        shared: it does, and members share queues: what they pop follows the rules, too.
        differing: it does not.
        unstable: never settled, so there is no time at which to compare.
        unknown: no observation to compare with.
        offline: no member at the end, so nothing to compare.
    """

    total: int = 0
    equal: int = 0
    differing: int = 0
    unstable: int = 0
    unknown: int = 0
    offline: int = 0
    shared: int = 0


@dataclass(frozen=True, slots=True)
class Previous:
    """The changes since the previous audit run.

    Attributes:
        time_ms: end of that run's period, epoch ms UTC.
        new: findings that it did not have, the worst of them.
        gone: findings that only it had, the same.
        not_looked_at: findings of the previous run that this run could not check, the same.
        counts: how many there are of each state of `CHANGES`, shown or not.
        healed: findings that it had, and that have ended, the worst of them.
        difference: groups whose state differs from that at its end.
    """

    time_ms: int
    new: tuple[ShownFinding, ...] = ()
    gone: tuple[ShownFinding, ...] = ()
    not_looked_at: tuple[ShownFinding, ...] = ()
    counts: Mapping[str, int] = field(default_factory=lambda: dict.fromkeys(CHANGES, 0))
    healed: tuple[ShownFinding, ...] = ()
    difference: NightDifference = field(default_factory=NightDifference)


@dataclass(frozen=True, slots=True)
class OwnerSpan:
    """A queue held by one client (None: by none) from from_ms to to_ms (None: open).

    ``holders`` counts the processes of that client id that hold it. Stretches of two clients that
    overlap are a shared queue; a time without any stretch is one at which the queue was not there.
    """

    from_ms: int
    to_ms: int | None
    client_id: str | None
    holders: int = 1


@dataclass(frozen=True, slots=True)
class QueueHistory:
    """A queue and its holders over time or, for a shared queue, the clients that may take its
    messages.

    The queue id -1 is any queue of the broker.
    """

    topic: str
    broker_name: str
    queue_id: int
    stretches: tuple[OwnerSpan, ...] = ()


@dataclass(frozen=True, slots=True)
class Cause:
    """The trigger of a rebalance: an event of the log, in words."""

    time_ms: int
    text: str


@dataclass(frozen=True, slots=True)
class GroupTimeline:
    """The owners of a group's queues over the period; queues in RocketMQ's order."""

    consumer_group: str
    queues: tuple[QueueHistory, ...]
    causes: tuple[Cause, ...] = ()
    cluster: str = ""


@dataclass(frozen=True, slots=True)
class GroupBalance:
    """The balance of a group at the end of the period, and the moves during it.

    Attributes:
        client_ids: the distinct members.
        queues: number of queues of each, shared queues included, in the same order.
        moved: queues moved in each epoch of the period, in order.
        peak_ratio: most queues of one member x members / queues; None if it is not meaningful.
        idle: members without a queue.
    """

    consumer_group: str
    client_ids: tuple[str, ...] = ()
    queues: tuple[int, ...] = ()
    moved: tuple[int, ...] = ()
    peak_ratio: float | None = None
    idle: int = 0
    cluster: str = ""

    def __post_init__(self) -> None:
        if len(self.client_ids) != len(self.queues):
            raise ValueError(
                f"balance of {self.consumer_group!r}: {len(self.client_ids)} client ids and "
                f"{len(self.queues)} numbers of queues; pass one number per client id"
            )


@dataclass(frozen=True, slots=True)
class ShownFile:
    """A file of the collection.

    Attributes:
        name: path in the collection.
        kind: from its path; empty: not part of the layout.
        reason: for its status.
    """

    name: str
    kind: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class FilesOfStatus:
    """The files of the collection with one of `FILE_STATUSES`.

    Attributes:
        status: READ …
        count: how many there are, shown or not.
        files: the first by name, those with a reason before others.
    """

    status: str
    count: int
    files: tuple[ShownFile, ...] = ()


@dataclass(frozen=True, slots=True)
class AuditReport:
    """All that the page shows.

    Attributes:
        verdict: OK = no finding that is not accepted; FINDINGS = findings, all below ``fail_on``;
            FAILED = some at or above it; INCOMPLETE = part of the run could not be compared.
        fail_on: the least severity at which the audit exits 3.
        from_ms: start of the period, epoch ms UTC; to_ms: its end; generated_ms: when audited.
        counts: findings by severity, shown or not, without accepted findings.
        causes: how many causes these have, by the gravest severity of what follows from each.
        findings: those shown, accepted findings too, the most important of each rule first.
        rules: meaning of the rules that found something.
        more: findings of a rule that are not shown.
        group_rows: every group, the worst first; RocketMQ's own, which are not judged, last.
        previous: None: no previous run was given.
        timelines: groups worth a picture, the worst first.
        notes: what a reader must know of this run, one sentence each.
        files: those of the collection by status; empty: tables were audited.
        rules_url: the folder of the rules' pages, without a slash at its end; None: no links.
        servers: brokers and name servers, those that are down first.
        tonight: what happened in the night; None: unknown.
        losses: the worst single loss of each group, the group that suffers most first.
    """

    cluster: str
    verdict: RunVerdict
    fail_on: str
    from_ms: int
    to_ms: int
    generated_ms: int
    library_version: str
    counts: Mapping[str, int] = field(default_factory=dict)
    causes: Mapping[str, int] = field(default_factory=dict)
    groups: GroupCounts = field(default_factory=GroupCounts)
    findings: tuple[ShownFinding, ...] = ()
    rules: Mapping[str, str] = field(default_factory=dict)
    more: Mapping[str, int] = field(default_factory=dict)
    previous: Previous | None = None
    timelines: tuple[GroupTimeline, ...] = ()
    balance: tuple[GroupBalance, ...] = ()
    notes: tuple[str, ...] = ()
    group_rows: tuple[GroupRow, ...] = ()
    files: tuple[FilesOfStatus, ...] = ()
    rules_url: str | None = None
    servers: tuple[ServerRow, ...] = ()
    tonight: Tonight | None = None
    losses: tuple[LossRow, ...] = ()


ROWS_OF_A_TIMELINE = 50_000
"""Of each group and table: the newest."""
TABLES_OF_GROUPS = {
    "ownership": "from_ms",
    "epochs": "from_ms",
    "consumer_load": "from_ms",
    "group_metrics": "epoch",
    "memberships": "from_ms",
    "pop_reach": "from_ms",
}
"""Tables of the ledger that the page shows of some groups, each with the column of its time."""

SEVERAL = "several members"
"""Who holds a shared queue, in a picture."""

GroupName = tuple[str, str]
OfGroup = TypeVar(
    "OfGroup",
    "ConsumerLoadRow",
    "EpochsRow",
    "GroupMetricsRow",
    "MembershipsRow",
    "OwnershipRow",
    "PopReachRow",
)


class Holding(TypedDict):
    """The columns of `ownership` that a picture needs."""

    topic: str
    broker_name: str
    queue_id: int
    client_id: str | None
    holders: int
    from_ms: int
    to_ms: int | None


def group_timelines(worst: Iterable[GroupName], tables: "RowsByTable") -> tuple[GroupTimeline, ...]:
    """Return who owned the queues of these groups, without groups whose members read every queue.

    Args:
        worst: (cluster, group) of those wanted.
        tables: their rows of `TABLES_OF_GROUPS`.
    """
    ownership, epochs = _by_group(tables.get("ownership", ())), _by_group(tables.get("epochs", ()))
    memberships = _by_group(tables.get("memberships", ()))
    reach = _by_group(tables.get("pop_reach", ()))
    return tuple(
        _timeline(
            name,
            [*ownership.get(name, []), *shared_holdings(reach.get(name, []))],
            epochs.get(name, []),
        )
        for name in worst
        if not _broadcasting(memberships.get(name, []))
    )


def group_balances(worst: Iterable[GroupName], tables: "RowsByTable") -> tuple[GroupBalance, ...]:
    """Return how even these groups are; arguments as of `group_timelines`."""
    loads, metrics = _by_group(tables["consumer_load"]), _by_group(tables["group_metrics"])
    return tuple(_balance(name, loads.get(name, []), metrics.get(name, [])) for name in worst)


def _by_group(rows: Iterable[OfGroup]) -> dict[GroupName, list[OfGroup]]:
    groups: dict[GroupName, list[OfGroup]] = {}
    for row in rows:
        groups.setdefault((row["cluster"], row["consumer_group"]), []).append(row)
    return groups


def _broadcasting(memberships: "Iterable[MembershipsRow]") -> bool:
    """Return True if every member reads every queue, so that there is nothing to draw."""
    return any(row["message_model"] == BROADCASTING for row in memberships)


def shared_holdings(pop_reach: "Iterable[PopReachRow]") -> "list[Holding]":
    """Return shared queues as rows of ownership, of their only client or of `SEVERAL`.

    Args:
        pop_reach: rows of one group.
    """
    by_queue: dict[tuple[str, str, int], list[PopReachRow]] = {}
    for row in sorted(pop_reach, key=lambda row: row["from_ms"]):
        by_queue.setdefault((row["topic"], row["broker_name"], row["queue_id"]), []).append(row)
    return [
        {
            "topic": topic,
            "broker_name": broker,
            "queue_id": queue_id,
            "holders": 1,
            "client_id": client_id,
            "from_ms": from_ms,
            "to_ms": to_ms,
        }
        for (topic, broker, queue_id), rows in by_queue.items()
        for client_id, from_ms, to_ms in _merged(rows)
    ]


def _merged(rows: "Iterable[PopReachRow]") -> Iterator[tuple[str, int, int | None]]:
    """Yield the stretches, in order, that time-ordered rows cover together."""
    together: list[PopReachRow] = []
    until: float = -inf
    for row in rows:
        if together and row["from_ms"] > until:
            yield _stretch(together, until)
            together, until = [], -inf
        together.append(row)
        until = max(until, inf if row["to_ms"] is None else row["to_ms"])
    if together:
        yield _stretch(together, until)


def _stretch(together: "Sequence[PopReachRow]", until: float) -> tuple[str, int, int | None]:
    """Return the only client that reaches the queue, else `SEVERAL`, with its from and to time."""
    clients = {row["client_id"] for row in together}
    client_id = min(clients) if len(clients) == 1 else SEVERAL
    return client_id, together[0]["from_ms"], None if until == inf else int(until)


def _timeline(
    name: GroupName, ownership: "Iterable[Holding]", epochs: "Iterable[EpochsRow]"
) -> GroupTimeline:
    queues: dict[MessageQueue, list[OwnerSpan]] = {}
    for row in sorted(ownership, key=lambda row: (row["from_ms"], row["client_id"] or "")):
        queue = MessageQueue(row["topic"], row["broker_name"], row["queue_id"])
        stretch = OwnerSpan(row["from_ms"], row["to_ms"], row["client_id"], row["holders"])
        queues.setdefault(queue, []).append(stretch)
    in_order = sorted(epochs, key=lambda row: (row["from_ms"], row["epoch"]))
    return GroupTimeline(
        name[1],
        tuple(
            QueueHistory(*queue, tuple(queues[queue]))
            for queue in sorted(queues, key=queue_sort_key)
        ),
        tuple(Cause(row["from_ms"], ", ".join(row["causes"])) for row in in_order),
        name[0],
    )


def _balance(
    name: GroupName, loads: "Iterable[ConsumerLoadRow]", metrics: "Iterable[GroupMetricsRow]"
) -> GroupBalance:
    now = {
        row["client_id"]: row["queues"] + (row["shared_queues"] or 0)
        for row in loads
        if row["to_ms"] is None
    }
    clients = sort_client_ids(now)
    whole = sorted((row for row in metrics if row["topic"] is None), key=lambda row: row["epoch"])
    return GroupBalance(
        consumer_group=name[1],
        client_ids=tuple(clients),
        queues=tuple(now[client] for client in clients),
        moved=tuple(row["moved"] for row in whole),
        peak_ratio=whole[-1]["peak_ratio"] if whole else None,
        idle=whole[-1]["idle_members"] if whole else 0,
        cluster=name[0],
    )


FINDINGS_ON_PAGE = 500
CHANGES_ON_PAGE = 50
FILES_ON_PAGE = 200
"""Of each status."""


def audit_report(
    cluster: str,
    audit: "AuditRecord",
    rules: Mapping[str, str],
    shown: Sequence[ShownFinding],
    groups: Sequence[GroupRow],
    worst: Sequence[GroupName],
    tables: "RowsByTable",
    previous: Previous | None,
    notes: Sequence[str],
    finished_ms: int,
    files: "Sequence[FileOutcome]" = (),
    rules_url: str | None = None,
    servers: Sequence[ServerRow] = (),
    tonight: Tonight | None = None,
    losses: Sequence[LossRow] = (),
) -> AuditReport:
    """Build what the page shows.

    Args:
        cluster: names of the clusters.
        audit: the verdict and the counts, as `_run.json` has them.
        rules: meaning of every rule.
        shown: the worst findings, at most `FINDINGS_ON_PAGE`.
        groups: every group.
        worst: (cluster, group) of the groups that get a timeline.
        tables: their rows of `TABLES_OF_GROUPS`, of each group at most `ROWS_OF_A_TIMELINE`.
        previous: what changed since the previous audit.
        notes: what the reader has to know.
        finished_ms: when the audit ended, epoch ms UTC.
        files: the collection's files, as `_run.json` has them.
        rules_url: the folder of the rules' pages.
        servers: brokers and name servers.
        tonight: what happened in the night.
        losses: the worst single loss of each group, in order.
    """
    return AuditReport(
        cluster=cluster,
        verdict=audit["verdict"],
        fail_on=audit["fail_on"],
        from_ms=audit["start_ms"],
        to_ms=audit["end_ms"],
        generated_ms=finished_ms,
        library_version=LIBRARY_VERSION,
        counts=_by_severity(audit["findings"]),
        causes=audit["causes"],
        groups=_group_counts(audit["groups"]),
        findings=tuple(shown),
        rules={rule_id: rules.get(rule_id, "") for rule_id in audit["findings"]},
        more=_not_shown(audit["findings"], shown),
        previous=previous,
        timelines=group_timelines(worst, tables),
        balance=group_balances(worst, tables),
        notes=tuple(notes),
        group_rows=tuple(groups),
        files=files_by_status(files),
        rules_url=rules_url.rstrip("/") if rules_url else None,
        servers=tuple(servers),
        tonight=tonight,
        losses=tuple(losses),
    )


def files_by_status(files: "Sequence[FileOutcome]") -> tuple[FilesOfStatus, ...]:
    """Return the files of the collection by their status, those to look at first.

    Args:
        files: as in `_run.json`.
    """
    by_status: dict[str, list[FileOutcome]] = {status: [] for status in FILE_STATUSES if files}
    for file in files:
        by_status[file["status"]].append(file)
    return tuple(
        FilesOfStatus(
            status,
            len(of_status),
            tuple(
                ShownFile(file["name"], file["kind"], file["reason"])
                for file in sorted(of_status, key=lambda file: not file["reason"])[:FILES_ON_PAGE]
            ),
        )
        for status, of_status in by_status.items()
    )


def shown_finding(row: "FindingsRow") -> ShownFinding:
    """Return a row of ``findings`` as the page shows it."""
    return ShownFinding(
        rule_id=row["rule_id"],
        severity=row["severity"],
        summary=row["summary"],
        remedy=row["remedy"],
        consumer_group=row["consumer_group"],
        topic=row["topic"],
        broker_name=row["broker_name"],
        queue_id=row["queue_id"],
        client_id=row["client_id"],
        first_ms=row["first_ms"],
        last_ms=row["last_ms"],
        evidence=dict(sorted((row["evidence"] or {}).items())),
        accepted=row["accepted"],
        cluster=row["cluster"],
        fingerprint=row["fingerprint"],
        caused_by=row["caused_by"],
    )


def _by_severity(findings: Mapping[str, Mapping[str, int]]) -> dict[str, int]:
    """Add up the open findings of all rules."""
    severities: Counter[str] = Counter()
    for of_rule in findings.values():
        severities.update(of_rule)
    del severities["accepted"]
    return dict(severities)


def _not_shown(
    findings: Mapping[str, Mapping[str, int]], shown: Iterable[ShownFinding]
) -> dict[str, int]:
    more = Counter({rule_id: sum(of_rule.values()) for rule_id, of_rule in findings.items()})
    more.subtract(finding.rule_id for finding in shown)
    return {rule: count for rule, count in sorted(more.items()) if count > 0}


def _group_counts(groups: Mapping[str, int]) -> GroupCounts:
    return GroupCounts(
        total=sum(groups.values()),
        equal=groups.get(verdicts.EQUAL, 0),
        differing=groups.get(verdicts.DIFFERS, 0),
        unstable=groups.get(verdicts.UNSTABLE, 0),
        unknown=groups.get(verdicts.UNKNOWN, 0),
        offline=groups.get(verdicts.OFFLINE, 0),
        shared=groups.get(verdicts.SHARED, 0),
    )
