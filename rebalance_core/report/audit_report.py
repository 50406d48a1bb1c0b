"""What the report page shows about an audit run, as plain values without Spark or files."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING, TypeVar

from rebalance_core.engine.group_history import begun_epochs
from rebalance_core.model import verdicts
from rebalance_core.model.events import GROUP_EVENTS
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
    from rebalance_core.contracts.row_parts import Holding
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
    from rebalance_core.contracts.run_record import AuditRecord
    from rebalance_core.ingest.file_record import FileOutcome


@dataclass(frozen=True, slots=True)
class ShownFinding:
    """A row of ``findings`` as the page shows it.

    Attributes:
        first_ms: its start, epoch ms UTC; last_ms: its end, None if it still holds.
        evidence: the evidence, in the order of its keys.
        accepted: why it is accepted; None if it is not.
        fingerprint: its id, the same in every run; caused_by: the fingerprint of its cause.
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
        """Return the rule and its subject, which identify the finding in different audit runs."""
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
    """The numbers of groups that match the predicted ownership, and of those that do not.

    Attributes:
        total: all groups.
        equal: groups whose live ownership follows the rules.
        shared: the same for groups whose members share queues, including what they pop.
        differing: groups whose live ownership differs.
        unstable: groups that never settled and so cannot be compared.
        unknown: groups without an observation.
        offline: groups without a member at the end.
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
        new: the worst findings that the previous run did not have.
        gone: the worst findings that only the previous run had.
        not_looked_at: the worst findings of the previous run that this run could not check.
        counts: the number of findings in each state of `CHANGES`, shown or not.
        healed: the worst findings of the previous run that have ended.
        difference: groups whose state differs from that at the end of the previous run.
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
    """The period from from_ms to to_ms (None if open) in which a client, or no client (None), held
    a queue.

    ``holders`` counts the processes of that client id that hold it. Overlapping spans of two
    clients mean a shared queue; the queue did not exist at times without a span.
    """

    from_ms: int
    to_ms: int | None
    client_id: str | None
    holders: int = 1


@dataclass(frozen=True, slots=True)
class QueueHistory:
    """A queue's holders over time or, if it is shared, the clients that may take its messages.

    Queue id -1 stands for any queue on the broker.
    """

    topic: str
    broker_name: str
    queue_id: int
    stretches: tuple[OwnerSpan, ...] = ()


@dataclass(frozen=True, slots=True)
class Cause:
    """An event in the log that triggered a rebalance, in words."""

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
    """The balance of a group at the end of the period, and the moves in its night.

    Attributes:
        client_ids: the distinct members.
        queues: the number of queues per member, including shared queues, in the same order.
        moved: queues moved in each epoch of the night after the group's first, in order.
        peak_ratio: the largest number of queues per member x members / queues; None if not
            meaningful.
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
        name: its path in the collection.
        kind: the kind of file that the path implies; empty if not part of the layout.
        reason: the reason for its status.
    """

    name: str
    kind: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class FilesOfStatus:
    """The files of the collection with one of `FILE_STATUSES`.

    Attributes:
        status: READ …
        count: the number of files with this status, shown or not.
        files: the first
        files: those with a reason first, then by name.
    """

    status: str
    count: int
    files: tuple[ShownFile, ...] = ()


@dataclass(frozen=True, slots=True)
class AuditReport:
    """Everything that the page shows.

    Attributes:
        verdict: OK = every finding is accepted; FINDINGS = findings, all below ``fail_on``;
            FAILED = some at or above it; INCOMPLETE = part of the run could not be compared.
        fail_on: the lowest severity at which the audit exits with code 3.
        from_ms: start of the period, epoch ms UTC; to_ms: its end; generated_ms: when audited.
        counts: findings by severity, shown or not, without accepted findings.
        causes: the number of their causes, by the worst severity among the findings that each
            explains.
        findings: the findings shown, including accepted ones, most important first within each
            rule.
        rules: the meanings of the rules with findings.
        more: the number of findings per rule that are not shown.
        group_rows: all groups, worst first; RocketMQ's own groups, which are not judged, come last.
        previous: the changes since the previous run, if one was given.
        timelines: groups worth drawing, worst first.
        notes: what a reader must know about this run, one sentence each.
        files: the collection's files by status; empty if tables were audited.
        rules_url: the folder of the rules' pages, without a trailing slash; None for no links.
        servers: brokers and name servers, those that are down first.
        tonight: what happened in the night; None if unknown.
        losses: the worst single loss for each group, worst-affected group first.
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
"""Maximum number of rows, the most recent, kept per group and table."""
TABLES_OF_GROUPS = {
    "ownership": "from_ms",
    "epochs": "from_ms",
    "consumer_load": "from_ms",
    "group_metrics": "epoch",
    "memberships": "from_ms",
    "pop_reach": "from_ms",
}
"""Ledger tables that the page shows for the worst groups, each with its time column."""

SEVERAL = "several members"
"""The holder of a shared queue in a drawing."""

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


def group_timelines(worst: Iterable[GroupName], tables: "RowsByTable") -> tuple[GroupTimeline, ...]:
    """Return the owners of these groups' queues over time, leaving out groups whose members read
    every queue.

    Args:
        worst: the groups, as (cluster, group).
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
            memberships.get(name, []),
        )
        for name in worst
        if not _broadcasting(memberships.get(name, []))
    )


def group_balances(
    worst: Iterable[GroupName], tables: "RowsByTable", nights: Mapping[str, int]
) -> tuple[GroupBalance, ...]:
    """Return the balance of these groups.

    Args:
        worst: as in `group_timelines`.
        tables: as there.
        nights: by cluster, when its night began; without one, every epoch counts.
    """
    loads, metrics = _by_group(tables["consumer_load"]), _by_group(tables["group_metrics"])
    epochs = _by_group(tables.get("epochs", ()))
    return tuple(
        _balance(
            name,
            loads.get(name, []),
            metrics.get(name, []),
            begun_epochs(epochs.get(name, []), nights.get(name[0], 0)),
        )
        for name in worst
    )


def _by_group(rows: Iterable[OfGroup]) -> dict[GroupName, list[OfGroup]]:
    groups: dict[GroupName, list[OfGroup]] = {}
    for row in rows:
        groups.setdefault((row["cluster"], row["consumer_group"]), []).append(row)
    return groups


def _broadcasting(memberships: "Iterable[MembershipsRow]") -> bool:
    """Return True if every member reads every queue, which leaves nothing to draw."""
    return any(row["message_model"] == BROADCASTING for row in memberships)


def shared_holdings(pop_reach: "Iterable[PopReachRow]") -> "list[Holding]":
    """Return shared queues as rows of ownership, held by their only client or by `SEVERAL`.

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
    """Yield, in order, the stretches that the time-ordered rows cover together."""
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
    """Return the only client that reaches the queue, or `SEVERAL`, with the start and end of the
    stretch.
    """
    clients = {row["client_id"] for row in together}
    client_id = min(clients) if len(clients) == 1 else SEVERAL
    return client_id, together[0]["from_ms"], None if until == inf else int(until)


def _timeline(
    name: GroupName,
    ownership: "Iterable[Holding]",
    epochs: "Iterable[EpochsRow]",
    memberships: "Sequence[MembershipsRow]",
) -> GroupTimeline:
    queues: dict[MessageQueue, list[OwnerSpan]] = {}
    for row in sorted(ownership, key=lambda row: (row["from_ms"], row["client_id"] or "")):
        queue = MessageQueue(row["topic"], row["broker_name"], row["queue_id"])
        stretch = OwnerSpan(row["from_ms"], row["to_ms"], row["client_id"], row["holders"])
        queues.setdefault(queue, []).append(stretch)
    in_order = sorted(epochs, key=lambda row: (row["from_ms"], row["epoch"]))
    clients: dict[int | None, set[str]] = {}
    for membership in memberships:
        for number in (membership["from_epoch"], membership["to_epoch"]):
            clients.setdefault(number, set()).add(membership["client_id"])
    return GroupTimeline(
        name[1],
        tuple(
            QueueHistory(*queue, tuple(queues[queue]))
            for queue in sorted(queues, key=queue_sort_key)
        ),
        tuple(Cause(row["from_ms"], _named_cause(row, clients)) for row in in_order),
        name[0],
    )


CLIENTS_OF_A_CAUSE = 2


def _named_cause(epoch: "EpochsRow", clients_of: Mapping[int | None, Collection[str]]) -> str:
    """Return what began an epoch, with the clients that came, went or changed then.

    Args:
        epoch: the epoch.
        clients_of: by epoch, the clients whose memberships begin or end with it.
    """
    causes = ", ".join(epoch["causes"])
    if not {*GROUP_EVENTS}.intersection(epoch["causes"]):
        return causes
    clients = clients_of.get(epoch["epoch"], ())
    if not clients:
        return causes
    named, more = sorted(clients)[:CLIENTS_OF_A_CAUSE], len(clients) - CLIENTS_OF_A_CAUSE
    return f"{causes} of {', '.join(named)}" + (f" and {more:,} more" if more > 0 else "")


def _balance(
    name: GroupName,
    loads: "Iterable[ConsumerLoadRow]",
    metrics: "Iterable[GroupMetricsRow]",
    of_night: Collection[int],
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
        moved=tuple(row["moved"] for row in whole if row["epoch"] in of_night),
        peak_ratio=whole[-1]["peak_ratio"] if whole else None,
        idle=whole[-1]["idle_members"] if whole else 0,
        cluster=name[0],
    )


FINDINGS_ON_PAGE = 500
CHANGES_ON_PAGE = 50
FILES_ON_PAGE = 200
"""The number of files that the page lists per status."""


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
        audit: the verdict and the counts, as in `_run.json`.
        rules: the meaning of every rule.
        shown: the worst findings, at most `FINDINGS_ON_PAGE`.
        groups: every group.
        worst: (cluster, group) of the groups that get a timeline.
        tables: their rows of `TABLES_OF_GROUPS`, at most `ROWS_OF_A_TIMELINE` per group.
        previous: changes since the previous audit.
        notes: what the reader has to know.
        finished_ms: when the audit ended, epoch ms UTC.
        files: the collection's files, as in `_run.json`.
        rules_url: the folder of the rules' pages.
        servers: brokers and name servers.
        tonight: what happened in the night.
        losses: the worst single loss for each group, in order.
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
        balance=group_balances(
            worst, tables, {name: of["night_ms"] for name, of in audit.get("clusters", {}).items()}
        ),
        notes=tuple(notes),
        group_rows=tuple(groups),
        files=files_by_status(files),
        rules_url=rules_url.rstrip("/") if rules_url else None,
        servers=tuple(servers),
        tonight=tonight,
        losses=tuple(losses),
    )


def files_by_status(files: "Sequence[FileOutcome]") -> tuple[FilesOfStatus, ...]:
    """Return the collection's files by status, with those that need attention first.

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
