"""A rule's input (everything known about a group in the audited period) and its output."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeGuard, TypeVar, cast

from rebalance_core.audit.coverage import Coverage, Process
from rebalance_core.contracts.inputs import CONSUMER_GROUPS
from rebalance_core.contracts.ledger import BROKER, QUEUE
from rebalance_core.contracts.observed import FACT_KINDS
from rebalance_core.contracts.snapshot_tables import GROUP_TABLES
from rebalance_core.model import times
from rebalance_core.model.events import (
    CONSUMER_EVENTS,
    CONSUMER_LOST,
    EXPIRED,
    NOTICE_MODES,
    ON,
    REQUEST_MODE,
    Event,
)
from rebalance_core.model.intervals import DEFAULT_INTERVALS, INTERVALS, Intervals
from rebalance_core.model.queue import MessageQueue, is_retry_topic
from rebalance_core.model.timeline import Timeline, Unknown
from rebalance_core.model.verdicts import EMPTY, Severity
from rebalance_core.protocol.settling_windows import notices_of, window_ms
from rebalance_core.replay.masters import MasterOutage
from rebalance_core.strategies.pop import WHOLE_BROKER

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import (
        BrokerEventsRow,
        ClusterEventsRow,
        ConsumerEventsRow,
        ConsumerGroupsRow,
        CoverageRow,
        EpochsRow,
        FactsByKind,
        GroupQueueOffsetsRow,
        MembershipsRow,
        NewestDumpsRow,
        ObservedFactsRow,
        OwnershipRow,
        RequestModesRow,
        SnapshotRows,
    )

Item = TypeVar("Item")
Key = TypeVar("Key", bound=Hashable)

_NO_SETTINGS = dict.fromkeys(CONSUMER_GROUPS.column_names)

PERSISTENT_MS = times.CHANNEL_EXPIRY_MS + times.CHANNEL_SCAN_MS + times.REBALANCE_WAIT_MS
"""The longest window of a host loss (rocketmq.md §6.4), longer than any transient."""


@dataclass(frozen=True, slots=True)
class BrokerOutage:
    """A period in which no replica of a broker was up.

    Attributes:
        down_ms: its start; None if unknown.
        up_ms: its end; None if the broker is down at the end.
        evidence: the evidence, in words.
        seen_ms: the broker's last sign of life, if no event dates the end.
        planned: whether it shut down and collection.toml expects other brokers but not this one.
    """

    down_ms: int | None
    up_ms: int | None
    evidence: str
    seen_ms: int | None = None
    planned: bool = False


class KeptLock(NamedTuple):
    """A period in which a client kept the order lock of a queue that it no longer owned.

    Attributes:
        log: The folder of the client's log.
        first_ms: When the log first shows it.
        last_ms: When the log last shows it.
        times: The number of seconds with such lines.
    """

    log: str
    first_ms: int
    last_ms: int
    times: int


class GroupUpdate(NamedTuple):
    """A change of a group's settings that a broker logged.

    Attributes:
        at_ms: When.
        consumer_group: The group.
        broker_name: The broker.
        changes: ``name: old → new``, separated by commas.
    """

    at_ms: int
    consumer_group: str
    broker_name: str
    changes: str


class RefusedHeartbeat(NamedTuple):
    """The reason why a client's heartbeats failed.

    Attributes:
        address: The broker's address as the client knows it.
        reason: The reason that the broker or the network gave.
        last_ms: When this reason was last given.
    """

    address: str
    reason: str
    last_ms: int


class ExpiredMessages(NamedTuple):
    """Messages of a queue that a listener kept for longer than consumeTimeout.

    Attributes:
        topic: Their topic; for messages of a retry topic, the original one.
        queue_id: The queue's id on its broker.
        address: The broker's address.
        log: The folder of the client's log.
        client_id: The client; None if unknown.
        highest: The highest of their offsets.
        last_ms: When the client sent the last of them back.
        of_group: Whether its line names the group; in some releases it does not.
    """

    topic: str
    queue_id: int
    address: str
    log: str
    client_id: str | None
    highest: int
    last_ms: int
    of_group: bool

    @property
    def queue(self) -> tuple[str, int]:
        """The topic and the queue id."""
        return self.topic, self.queue_id


@dataclass(frozen=True, slots=True)
class AuditRun:
    """What an audit run knows about the whole cluster; small, because every task receives it.

    Attributes:
        start_ms: the start of the collection's coverage.
        end_ms: its end, the audit's "now".
        night_ms: the start of the audited night.
        over_ms: findings that ended before this time are over because an earlier run saw them; 0 if
            no night is known.
        stated: of findings that ended since then, before the night: the ends that the earlier run
            stated, by `night.identity`; those that ended no later are over, too.
        stale_ms: a dump older than this at the end does not show the present state.
        members_since_ms: when the servers' logs begin: no row shows an earlier member.
        missing: brokers from which nothing sufficiently recent was collected.
        masters: by broker, when its master was gone while a slave was alive.
        store_ms: by broker, when its last subscriptionGroup.json was copied, if one was.
        versions: the brokers' versions, if a file shows them.
        offsets_ms: by broker, when its first consumerOffset.json was copied, if one was; None if
            the tables do not come from a collection, so that missing commits were never made.
        offsets_until_ms: by broker, when its last one was copied.
        addresses: the broker at each last known address.
        popped: by broker, the last dumps of its revive log between which it grew because clients
            popped messages, epoch ms.
        retention_ms: by broker, how long it keeps messages, if a file states its fileReservedTime.
        unlock_failed: by queue, the clients whose logs show that they kept its order lock.
        expired: by topic and queue id, messages that a client of some group kept for too long.
        heartbeats_refused: by the folder of the client's log, why heartbeats failed.
        overloads: by broker, when it dropped connection events.
        updates: changes of groups' settings.
        down: brokers that are down at the end.
        coverage: the periods that the brokers' logs cover.
        returned: brokers that are down according to events but continue to run, with the start of
            the outage.
        slaves: brokers that have a slave, according to any file.
        elected: brokers whose master DLedger elects.
        notices: by broker, how it notifies members of changes, in order; without brokers that
            always notify at once.
        stops: by broker, when it was running and when not; unknown between two starts or
            registrations without a logged stop.
        moments: by broker, log entries about it from itself, its replicas and the name servers, in
            chronological order; by proxy, its starts.
        outages: by broker, its outages, in order; the last may not have ended.
        proxies: proxies whose logs show a start.
        ids_hashed: whether the clients' addresses look hashed, so that ids sort differently.
        changed_unseen: by topic, when it changed at a time that was not logged.
    """

    start_ms: int
    end_ms: int
    stale_ms: int = 6 * times.HOUR_MS
    members_since_ms: int = 0
    missing: frozenset[str] = frozenset()
    store_ms: Mapping[str, int] = field(default_factory=dict)
    masters: Mapping[str, tuple[MasterOutage, ...]] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    offsets_ms: Mapping[str, int] | None = None
    offsets_until_ms: Mapping[str, int] = field(default_factory=dict)
    addresses: Mapping[str, str] = field(default_factory=dict)
    popped: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    retention_ms: Mapping[str, int] = field(default_factory=dict)
    unlock_failed: Mapping[MessageQueue, tuple[KeptLock, ...]] = field(default_factory=dict)
    expired: Mapping[tuple[str, int], Sequence[ExpiredMessages]] = field(default_factory=dict)
    heartbeats_refused: Mapping[str, tuple[RefusedHeartbeat, ...]] = field(default_factory=dict)
    overloads: Mapping[str, tuple[tuple[int, int], ...]] = field(default_factory=dict)
    updates: tuple[GroupUpdate, ...] = ()
    down: frozenset[str] = frozenset()
    coverage: Coverage = field(default_factory=Coverage)
    returned: Mapping[str, int] = field(default_factory=dict)
    slaves: frozenset[str] = frozenset()
    elected: frozenset[str] = frozenset()
    notices: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    stops: Mapping[str, Timeline[Process]] = field(default_factory=dict)
    moments: Mapping[str, tuple[tuple[int, str], ...]] = field(default_factory=dict)
    outages: Mapping[str, tuple[BrokerOutage, ...]] = field(default_factory=dict)
    proxies: frozenset[str] = frozenset()
    ids_hashed: bool = False
    changed_unseen: Mapping[str, tuple[tuple[int, int], ...]] = field(default_factory=dict)
    night_ms: int = 0
    over_ms: int = 0
    stated: Mapping[tuple[object, ...], int] = field(default_factory=dict)


def snapshot_rows(tables: Mapping[str, Iterable[Mapping[str, object]]]) -> SnapshotRows:
    """Return a group's rows by table; a missing table has no rows."""
    return cast("SnapshotRows", {name: list(tables.get(name, ())) for name in GROUP_TABLES})


def facts_by_kind(rows: Iterable[ObservedFactsRow]) -> FactsByKind:
    """Return the rows of each kind in order; a kind without rows has an empty list."""
    by_kind: dict[str, list[ObservedFactsRow]] = {kind: [] for kind in FACT_KINDS}
    for row in rows:
        by_kind.setdefault(row["kind"], []).append(row)
    return cast("FactsByKind", by_kind)


@dataclass(frozen=True)
class GroupSnapshot:
    """The rows of one group, by table of `GROUP_TABLES`.

    ``findings`` are ingest's findings about the group; ``propagation`` exists if the group's
    changes were simulated over time.
    """

    cluster: str
    consumer_group: str
    run: AuditRun
    tables: SnapshotRows = field(default_factory=lambda: snapshot_rows({}))

    @cached_property
    def facts(self) -> FactsByKind:
        """The observed facts by kind, each kind in chronological order."""
        rows = self.tables["observed_facts"]
        return facts_by_kind(sorted(rows, key=lambda row: (row["first_ms"], row["source"])))

    @cached_property
    def ends(self) -> dict[tuple[str, str, int], list[GroupQueueOffsetsRow]]:
        """The rows of queue_offsets by topic, broker name and queue id."""
        return grouped(
            self.tables["queue_offsets"],
            lambda row: (row["topic"], row["broker_name"], row["queue_id"]),
        )

    @cached_property
    def epochs(self) -> list[EpochsRow]:
        """The group's epochs in order."""
        return sorted(self.tables["epochs"], key=lambda row: row["epoch"])

    @cached_property
    def last_epoch(self) -> EpochsRow | None:
        """The epoch at the end; None for a group without members in the log."""
        return self.epochs[-1] if self.epochs else None

    @cached_property
    def emptied(self) -> EpochsRow | None:
        """The epoch since which the group has had no member; None if it has members or never had an
        epoch.

        Later changes to brokers and topics begin new epochs of a group that is already empty.
        """
        first = None
        for row in reversed(self.epochs):
            if row["status"] != EMPTY:
                break
            first = row
        return first

    @cached_property
    def members(self) -> list[MembershipsRow]:
        """The members at the end: open rows of memberships."""
        return [row for row in self.tables["memberships"] if row["to_ms"] is None]

    @cached_property
    def owned(self) -> list[OwnershipRow]:
        """The holdings at the end, including queues without an owner: open rows of ownership."""
        return [row for row in self.tables["ownership"] if row["to_ms"] is None]

    @cached_property
    def settings(self) -> ConsumerGroupsRow:
        """Return the group's row in consumer_groups; all values are null if it has none."""
        rows = self.tables["consumer_groups"]
        return rows[0] if rows else cast("ConsumerGroupsRow", _NO_SETTINGS)

    @cached_property
    def settled_by(self) -> dict[int, int]:
        """By epoch, the time by which its changes have certainly happened, epoch ms; open windows
        extend it.

        Retry topics settle later, so callers add the window of a route for them. The possible error
        of corrected clocks is included.
        """
        latest: dict[int, int] = {}
        for row in self.tables["diffs"]:
            if not is_retry_topic(row["topic"]):
                latest[row["epoch"]] = max(row["latest_ms"], latest.get(row["epoch"], 0))
        settled: dict[int, int] = {}
        before = 0
        for epoch in self.epochs:
            number = epoch["epoch"]
            windows = [
                self._window_ms(cause, in_diffs=number in latest) for cause in epoch["causes"]
            ]
            window_end = max(latest.get(number, 0), epoch["from_ms"] + max(windows, default=0))
            off_ms = self.run.coverage.clock_error_ms(epoch["from_ms"], window_end)
            before = settled[number] = max(window_end + off_ms, before)
        return settled

    def _window_ms(self, cause: str, *, in_diffs: bool) -> int:
        """Return the window of a cause; ``in_diffs``: whether the diffs show whether a loss was an
        expiry.
        """
        expired = cause == CONSUMER_LOST and not in_diffs
        event = Event(0, 0, cause, detail=EXPIRED if expired else None)
        modes_seen = [mode for modes in self.notices.values() for mode in modes]
        brokers = max(modes_seen, key=NOTICE_MODES.index, default=ON)
        notified = self.settings.get("notified") is not False
        return window_ms(event, self.slowest, notices_of(event, brokers, notified=notified))

    @cached_property
    def notices(self) -> dict[str, tuple[str, ...]]:
        """The notice modes of brokers that have one of the group's topics and do not always notify
        at once.
        """
        brokers = {row["broker_name"] for row in self.tables["topics"]}
        return {name: modes for name, modes in self.run.notices.items() if name in brokers}

    @cached_property
    def _events(self) -> list[ClusterEventsRow]:
        rows = self.tables["cluster_events"]
        return sorted(rows, key=lambda row: (row["event_ms"], row["sequence"]))

    @cached_property
    def consumer_events(self) -> list[ConsumerEventsRow]:
        """The group's rows of cluster_events about clients, in order."""
        return list(filter(_is_of_consumer, self._events))

    @cached_property
    def request_modes(self) -> list[RequestModesRow]:
        """The group's rows of cluster_events about request modes, in order."""
        return list(filter(_is_request_mode, self._events))

    @cached_property
    def slowest(self) -> Intervals:
        """Return, for each timer, the longest interval of any client in the group."""
        stated = [self.settings, *self.consumer_events]
        usual = [self.settings[name] or getattr(DEFAULT_INTERVALS, name) for name in INTERVALS]
        longest = [max((row[name] or 0 for row in stated), default=0) for name in INTERVALS]
        return Intervals(*map(max, usual, longest))

    @cached_property
    def offline(self) -> list[EpochsRow]:
        """The epochs in which the group has no member."""
        return [row for row in self.epochs if row["status"] == EMPTY]

    def epoch_at(self, at_ms: int) -> EpochsRow | None:
        """Return the epoch that holds at this time, or None before the first."""
        begun = bisect_right(self.epochs, at_ms, key=lambda row: row["from_ms"])
        return self.epochs[begun - 1] if begun else None


@dataclass(frozen=True)
class ClusterSnapshot:
    """The rows about a cluster as a whole.

    Attributes:
        run: the audit run's knowledge of the cluster.
        facts: the facts of `cluster_snapshot.CLUSTER_KINDS`, by kind.
        broker_events: BROKER_UP and BROKER_DOWN, MASTER_UP and MASTER_DOWN.
        coverage: rows of ``coverage``; empty if the files cover all times.
        dumps: the latest dump by command and broker.
        not_before_ms: a collection that ends before this is too old; None allows any age.
        lost_kinds: kinds of files that the previous run read and this run lacks.
    """

    run: AuditRun
    facts: FactsByKind
    broker_events: Sequence[BrokerEventsRow] = ()
    coverage: Sequence[CoverageRow] = ()
    dumps: Sequence[NewestDumpsRow] = ()
    not_before_ms: int | None = None
    lost_kinds: tuple[str, ...] = ()


def _is_of_consumer(row: ClusterEventsRow) -> TypeGuard[ConsumerEventsRow]:
    return row["event_type"] in CONSUMER_EVENTS


def _is_request_mode(row: ClusterEventsRow) -> TypeGuard[RequestModesRow]:
    return row["event_type"] == REQUEST_MODE


def known_topics(member: MembershipsRow) -> frozenset[str]:
    """Return the topics to which a member is known to subscribe; empty if they are unknown."""
    return frozenset(member["subscriptions"] or ())


def grouped(items: Iterable[Item], key: Callable[[Item], Key]) -> dict[Key, list[Item]]:
    """Return the items by key, in order.

    >>> grouped("aAb", str.lower)
    {'a': ['a', 'A'], 'b': ['b']}
    """
    groups: dict[Key, list[Item]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups


@dataclass(frozen=True, slots=True)
class Subject:
    """A part of a rule's input: a fact about a group that is known only at certain times.

    Attributes:
        name: its name in docs/audit-rules.md.
        meaning: what it is, and which files show it.
        timelines: the timelines that show it for a finding, all of which must be known.
        when: the time of a finding at which it is read: END for the end, BEGIN for the begin, SPAN
            for the whole time.
        before_ms: how long before the finding a span begins.
    """

    name: str
    meaning: str
    timelines: Callable[[GroupSnapshot, Finding], Iterable[Timeline[Process]]]
    when: Literal["BEGIN", "END", "SPAN"] = "END"
    before_ms: int = 0


__all__ = ["BROKER", "QUEUE", "Finding", "Rule"]


@dataclass(frozen=True, slots=True)
class Finding:
    """A finding about a group, topic, queue or client; a row of ``findings``.

    Attributes:
        summary: a sentence with the relevant names and numbers.
        evidence: the evidence, with values as text.
        severity: its severity; None for the rule's default.
        first_ms: when it began, epoch ms; last_ms: when it ended, None if it still holds.
        seen_ms: when a dump showed it, if it counts only while nothing changes.
        shown_ms: when it was last shown, if it holds until the end; subjects are read at that time
            if the ledger ends earlier.
        reads: this finding's input; None for its rule's input.
        unknown: what the rule itself found to be unknown; None for nothing.
        ended_by: what shows that it ended at `last_ms`; if empty, the group's event at that moment
            for a rule about states (`Rule.state`), while for other rules it has not ended.
    """

    summary: str
    evidence: Mapping[str, object] = field(default_factory=dict)
    severity: Severity | None = None
    topic: str | None = None
    broker_name: str | None = None
    queue_id: int | None = None
    client_id: str | None = None
    first_ms: int | None = None
    last_ms: int | None = None
    remedy: str | None = None
    seen_ms: int | None = None
    shown_ms: int | None = None
    reads: tuple[Subject, ...] | None = None
    unknown: Unknown | None = None
    ended_by: str = ""


@dataclass(frozen=True, slots=True)
class Rule:
    """A pathology, with a stable id, a default severity, its meaning, its remedy, and a way to find
    it.

    Attributes:
        rule_id: never changes its meaning, because accepted findings name it.
        severity: the severity of findings that do not set one.
        meaning: one or two sentences for docs/audit-rules.md.
        seen_by: the tables and kinds of facts it reads.
        remedy: what the operator should do.
        find: returns the findings about one group; None if the comparison or `find_in_cluster`
            yields them.
        find_in_cluster: returns the findings about the whole cluster.
        by_owners: whether the rule depends on predicted owners, so that it reports nothing for
            groups whose strategy is unknown.
        by_absence: whether the rule finds that something is missing everywhere, which a single file
            cannot show.
        about: `BROKER` or `QUEUE` if each finding is about a broker or queue, which is then part of
            its fingerprint; if empty, a broker or queue in a finding is only an example.
        files: kinds of files (as in `_run.json`; for mqadmin's output, the command) that it reads
            besides broker.log; if a kind that was present before is missing, none of its findings
            is gone.
        reads: subjects that it reads besides the line or dump that shows the finding. If any of
            them is unknown at the time of a finding, the finding is INFO with the reason and
            remedy.
        state: whether the rule reports a state rather than an event: once the state has ended (a
            finding's ``last_ms``), the finding is INFO with the time and what shows it.
    """

    rule_id: str
    severity: Severity
    meaning: str
    seen_by: str
    remedy: str
    find: Callable[[GroupSnapshot], Iterable[Finding]] | None = None
    by_owners: bool = False
    by_absence: bool = False
    about: str = ""
    files: tuple[str, ...] = ()
    reads: tuple[Subject, ...] = ()
    state: bool = False
    find_in_cluster: Callable[[ClusterSnapshot], Iterable[Finding]] | None = None


MAX_LISTED = 20
"""The number of list items shown; the rest are counted."""


def listed(items: Iterable[Any], limit: int = MAX_LISTED, count: int | None = None) -> str:
    """Return the first items as text; ``count`` is the total if only the first items are passed.

    >>> listed("abcd", 2), listed("ab", count=30)
    ('a, b and 2 more', 'a, b and 28 more')
    """
    texts = [str(item) for item in items]
    shown = texts[:limit]
    more = (len(texts) if count is None else count) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more > 0 else "")


def lasting(span_ms: int) -> str:
    """Return a duration in its most readable unit.

    >>> lasting(87_400), lasting(600_000), lasting(7_200_000)
    ('87 s', '10 min', '2.0 h')
    """
    if span_ms < 3 * times.MINUTE_MS:
        return f"{span_ms // times.SECOND_MS} s"
    if span_ms < 2 * times.HOUR_MS:
        return f"{span_ms // times.MINUTE_MS} min"
    return f"{span_ms / times.HOUR_MS:.1f} h"


def plural(count: int, noun: str) -> str:
    """Return the count with its noun.

    >>> plural(1, "queue"), plural(3, "queue"), plural(2, "process")
    ('1 queue', '3 queues', '2 processes')
    """
    return f"{count} {noun}" + ("" if count == 1 else "es" if noun.endswith("s") else "s")


def queue_names(queues: Iterable[tuple[str, int]]) -> str:
    """Return one topic's queues as (broker name, queue id), with runs of ids shortened.

    >>> queue_names([("b", 1), ("a", 0), ("a", 2), ("a", 1)]), queue_names([("a", -1)])
    ('a:0-2, b:1', 'a:any')
    """
    texts = []
    for broker, of_broker in groupby(sorted(set(queues)), key=lambda queue: queue[0]):
        ids = [queue_id for _, queue_id in of_broker]
        runs = ["any"] if WHOLE_BROKER in ids else []
        ids = [queue_id for queue_id in ids if queue_id != WHOLE_BROKER]
        for _, run in groupby(enumerate(ids), key=lambda pair: pair[1] - pair[0]):
            members = [queue_id for _, queue_id in run]
            last = f"-{members[-1]}" if len(members) > 1 else ""
            runs.append(f"{members[0]}{last}")
        texts.append(f"{broker}:{','.join(runs)}")
    return listed(texts)
