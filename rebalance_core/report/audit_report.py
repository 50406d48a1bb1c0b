"""What the report page shows of an audit run: plain values, no Spark, no files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from rebalance_core.model.verdicts import RunVerdict


@dataclass(frozen=True, slots=True)
class ShownFinding:
    """A row of ``findings`` as the page shows it.

    Attributes:
        first_ms: since when, epoch ms UTC; last_ms: until when, None where it still holds.
        evidence: what it was seen by, shown in the order of its keys.
        accepted: why it is known and accepted; None where it is not.
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

    @property
    def key(self) -> tuple[str | int | None, ...]:
        """What makes it the same finding in two audit runs: the rule and what it is about."""
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
    """How many groups there are, and how their live ownership compares with the computed one.

    Attributes:
        total: groups seen.
        equal: live ownership is what the rules say.
        shared: so it is, and members share queues: what they pop is what the rules say, too.
        differing: it is not.
        unstable: at no time settled, so there is nothing to compare at.
        unknown: nothing observed to compare with.
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
    """What changed since the previous audit run.

    Attributes:
        time_ms: end of that run's period, epoch ms UTC.
        new: findings that it did not have, the worst of them.
        gone: findings that only it had, the same.
        not_looked_at: findings that it had, and of which this run cannot tell, the same.
        counts: how many there are, shown or not: new, still, gone, not_looked_at.
    """

    time_ms: int
    new: tuple[ShownFinding, ...] = ()
    gone: tuple[ShownFinding, ...] = ()
    not_looked_at: tuple[ShownFinding, ...] = ()
    counts: Mapping[str, int] = field(
        default_factory=lambda: dict.fromkeys(("new", "still", "gone", "not_looked_at"), 0)
    )


@dataclass(frozen=True, slots=True)
class Stretch:
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
    """One queue and who held it when; of a shared queue who may take its messages.

    The queue id -1 is any queue of the broker.
    """

    topic: str
    broker_name: str
    queue_id: int
    stretches: tuple[Stretch, ...] = ()


@dataclass(frozen=True, slots=True)
class Cause:
    """What set off a rebalance: an event of the log, in words."""

    time_ms: int
    text: str


@dataclass(frozen=True, slots=True)
class GroupTimeline:
    """Who owned the queues of a group over the period; queues in RocketMQ's order."""

    consumer_group: str
    queues: tuple[QueueHistory, ...]
    causes: tuple[Cause, ...] = ()
    cluster: str = ""


@dataclass(frozen=True, slots=True)
class GroupBalance:
    """How even a group is at the end of the period, and how much moved during it.

    Attributes:
        client_ids: the distinct members.
        queues: queues of each, those that it shares included, in the same order.
        moved: queues moved in each epoch of the period, in order.
        peak_ratio: most queues of one member x members / queues; None where it means nothing.
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
                f"{len(self.queues)} numbers of queues; give one number for each client id"
            )


@dataclass(frozen=True, slots=True)
class AuditReport:
    """All that the page shows.

    Attributes:
        verdict: OK = no finding that is not accepted; FINDINGS = findings, all below ``fail_on``;
            FAILED = some at or above it; INCOMPLETE = part of the run could not be compared.
        fail_on: the least severity at which the audit exits 3.
        from_ms: start of the period, epoch ms UTC; to_ms: its end; generated_ms: when audited.
        counts: findings by severity, shown or not, accepted ones not counted.
        findings: those shown, accepted ones too, the most important of each rule first.
        rules: meaning of every rule.
        more: findings of a rule that are not shown.
        previous: None: no previous run was given.
        timelines: groups worth a picture, the worst first.
        notes: what a reader must know of this run, one sentence each.
    """

    cluster: str
    verdict: RunVerdict
    fail_on: str
    from_ms: int
    to_ms: int
    generated_ms: int
    library_version: str
    counts: Mapping[str, int] = field(default_factory=dict)
    groups: GroupCounts = field(default_factory=GroupCounts)
    findings: tuple[ShownFinding, ...] = ()
    rules: Mapping[str, str] = field(default_factory=dict)
    more: Mapping[str, int] = field(default_factory=dict)
    previous: Previous | None = None
    timelines: tuple[GroupTimeline, ...] = ()
    balance: tuple[GroupBalance, ...] = ()
    notes: tuple[str, ...] = ()
