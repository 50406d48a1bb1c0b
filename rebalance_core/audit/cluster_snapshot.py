"""What the audit knows about a cluster, from the few rows that concern the whole cluster."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Literal

from rebalance_core.audit.broker_states import (
    broker_outages,
    down_brokers,
    going_on,
    master_outages,
    moments,
    notices,
    signs_of_life,
    unlogged_stops,
)
from rebalance_core.audit.completeness import missing_brokers
from rebalance_core.audit.coverage import coverage_of, name_servers_tell
from rebalance_core.audit.dumps import expired_messages, queue_of
from rebalance_core.audit.group_snapshot import (
    AuditRun,
    ClusterSnapshot,
    GroupUpdate,
    KeptLock,
    RefusedHeartbeat,
    grouped,
)
from rebalance_core.audit.retention import retention_ms, stated_last
from rebalance_core.model.events import BROKER_EVENTS, NOTICES
from rebalance_core.model.queue import MessageQueue
from rebalance_core.model.times import HOUR_MS

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import (
        BrokerEventsRow,
        CoverageRow,
        FactsByKind,
        GroupConfigsFact,
        NewestDumpsRow,
        ObservedFactsRow,
        SpansRow,
    )


ANY_EXPIRED = "MESSAGES_OF_ANY_EXPIRED"
MOST_EXPIRED = 10_000
"""The maximum number of these facts to keep per cluster, newest first; old clients with slow
listeners may log more.
"""
MOST_UPDATES = 1_000
"""The maximum number of changes of groups' settings to keep per cluster, newest first."""

CLUSTER_KINDS = (
    "COLLECTED",
    "EXPECTED_BROKER",
    "EXPECTED_NAME_SERVER",
    "BROKER_FILE",
    "BROKER_STORE",
    "NOT_READ",
    "NOT_COLLECTED",
    "GROUP_RENAMED",
    "BROKER_SLAVES",
    "NAME_SERVER_FILE",
    "BROKER_IN_CLUSTER",
    "MESSAGE_RETENTION",
    "BROKER_REGISTERED",
    "GROUP_CONFIGS",
    "GROUP_UPDATED",
    "HEARTBEAT_FAILED",
    "HEARTBEAT_REFUSED",
    "NO_BROKER_ADDRESS",
    "UNLOCK_FAILED",
    ANY_EXPIRED,
    "BROKER_STARTED",
    "PROXY_STARTED",
    "MASTER_ADDRESS",
    "CHANNEL_EVENTS_DROPPED",
    "REVIVE_PASS",
    "REVIVE_TROUBLE",
    "REVIVE_PROGRESS",
    "REVIVE_METRICS",
)
"""Facts about the cluster, few enough to collect on the driver. GROUP_UPDATED: one row per command
of an administrator and broker; HEARTBEAT_FAILED: one row per process and broker that it did not
reach; HEARTBEAT_REFUSED: one per reason in each client's log; NO_BROKER_ADDRESS, UNLOCK_FAILED: one
per queue that a client did not pull, or did not unlock; MESSAGES_OF_ANY_EXPIRED: at most
`MOST_EXPIRED`, one per queue of a client that logs no threads; BROKER_STARTED, PROXY_STARTED: one
per start; MASTER_ADDRESS: one per address of a master; REVIVE_PASS: one per revive queue (8 per
broker) and step of lateness.
"""


@dataclass(frozen=True)
class ClusterRows:
    """The facts about a cluster that rules read; their number grows with the number of brokers, not
    of groups.

    Attributes:
        facts: observed facts of the requested kinds; a COLLECTED fact covers the span of the
            events.
        dumps: the latest dump by command and broker.
        broker_events: BROKER_UP and BROKER_DOWN, MASTER_UP and MASTER_DOWN, NOTICES.
        coverage: the times that its files cover.
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
    """Return the rows by cluster.

    Args:
        spans: cluster, and first_ms and last_ms of its events.
        facts: observed facts of `CLUSTER_KINDS`.
        dumps: cluster, broker_name, command, first_ms and last_ms of the newest dumps.
        broker_events: events of the brokers of clusters that have a span.
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
    """Return a COLLECTED fact for the period that the events span, for tables without a
    collection.
    """
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
        "source": _SPANNED,
    }


_SPANNED = "cluster_events"
"""The source of a COLLECTED fact not written by ingest."""


def cluster_snapshot(
    facts: FactsByKind,
    dumps: Iterable[NewestDumpsRow],
    broker_events: Iterable[BrokerEventsRow],
    coverage: Iterable[CoverageRow],
    *,
    stale_hours: float,
    not_before_ms: int | None = None,
    lost_kinds: tuple[str, ...] = (),
) -> ClusterSnapshot:
    """Return the input of the cluster's rules, including the run that the rules about its groups
    use.

    Args:
        facts: observed facts of `CLUSTER_KINDS`.
        dumps: DUMP facts, or the newest by command and broker.
        broker_events: BROKER_UP and BROKER_DOWN, MASTER_UP and MASTER_DOWN, NOTICES of
            cluster_events.
        coverage: rows of the table.
        stale_hours: evidence older than this at the end no longer shows the present state.
        not_before_ms: a collection that ends before this is too old.
        lost_kinds: kinds of files that the previous run read and this run lacks.
    """
    dumps, rows, broker_events = list(dumps), list(coverage), list(broker_events)
    run = _period(facts, dumps, stale_hours)
    run = replace(
        run,
        store_ms=_newest(facts["GROUP_CONFIGS"]),
        versions={
            row["broker_name"]: row["details"]["version"]
            for row in facts["BROKER_IN_CLUSTER"]
            if row["details"].get("version")
        },
        offsets_ms=_offset_copies(facts, "first_ms") if facts["COLLECTED"] else None,
        offsets_until_ms=_offset_copies(facts, "last_ms"),
        addresses=_addresses(facts),
        popped=_popped(facts),
        retention_ms={
            broker: kept_ms
            for (_, broker), kept_ms in retention_ms(facts["MESSAGE_RETENTION"]).items()
        },
        unlock_failed=_unlock_failed(facts),
        expired=grouped(
            map(expired_messages, facts["MESSAGES_OF_ANY_EXPIRED"]), lambda each: each.queue
        ),
        heartbeats_refused=_heartbeats_refused(facts),
        overloads=_overloads(facts),
        updates=_updates(facts),
        notices=notices(broker_events),
        ids_hashed=any(row["details"].get("hashed") == "true" for row in facts["COLLECTED"]),
    )
    turns = [row for row in broker_events if row["event_type"] != NOTICES]
    run = _with_brokers(run, facts, dumps, turns, rows)
    group = ClusterSnapshot(
        run=run,
        facts=facts,
        broker_events=turns,
        coverage=rows,
        dumps=dumps,
        not_before_ms=not_before_ms,
        lost_kinds=lost_kinds,
    )
    return replace(group, run=replace(run, missing=frozenset(missing_brokers(group))))


def _period(facts: FactsByKind, dumps: Iterable[NewestDumpsRow], stale_hours: float) -> AuditRun:
    """Return the audit run for the period that the collection covers."""
    collected = facts["COLLECTED"]
    ends = [row["last_ms"] for row in (*collected, *facts["BROKER_FILE"], *dumps)]
    starts = [row["first_ms"] for row in collected] or ends
    logged = (row["first_ms"] for row in collected if row["source"] != _SPANNED)
    return AuditRun(
        min(starts, default=0),
        max(ends, default=0),
        int(stale_hours * HOUR_MS),
        members_since_ms=min(logged, default=0),
    )


def _updates(facts: FactsByKind) -> tuple[GroupUpdate, ...]:
    """Return the newest changes of groups' settings, in order of time."""
    made = [
        GroupUpdate(
            row["last_ms"], row["consumer_group"], row["broker_name"], row["details"]["changes"]
        )
        for row in facts["GROUP_UPDATED"]
        if row["consumer_group"] and row["details"].get("changes")
    ]
    return tuple(sorted(made)[-MOST_UPDATES:])


def _newest(rows: Iterable[GroupConfigsFact]) -> dict[str, int]:
    newest: dict[str, int] = {}
    for row in rows:
        newest[row["broker_name"]] = max(newest.get(row["broker_name"], 0), row["last_ms"])
    return newest


def _offset_copies(facts: FactsByKind, column: Literal["first_ms", "last_ms"]) -> dict[str, int]:
    return {
        row["broker_name"]: row[column]
        for row in facts["BROKER_FILE"]
        if row["details"]["name"] == "consumerOffset.json"
    }


def _unlock_failed(facts: FactsByKind) -> dict[MessageQueue, tuple[KeptLock, ...]]:
    kept = grouped(facts["UNLOCK_FAILED"], queue_of)
    return {
        queue: tuple(
            sorted(
                KeptLock(row["details"]["log"], row["first_ms"], row["last_ms"], row["times"])
                for row in rows
            )
        )
        for queue, rows in kept.items()
    }


def _heartbeats_refused(facts: FactsByKind) -> dict[str, tuple[RefusedHeartbeat, ...]]:
    by_log = grouped(facts["HEARTBEAT_REFUSED"], lambda row: row["details"]["log"])
    return {
        log: tuple(
            sorted(
                RefusedHeartbeat(
                    row["details"]["address"], row["details"]["reason"], row["last_ms"]
                )
                for row in rows
            )
        )
        for log, rows in by_log.items()
    }


def _addresses(facts: FactsByKind) -> dict[str, str]:
    """Return, for each address, the broker that had it last."""
    started = {
        row["broker_name"]: row["details"]["address"]
        for row in sorted(facts["BROKER_STARTED"], key=stated_last)
        if row["details"].get("address")
    }
    of_brokers = {address: broker for broker, address in started.items()}
    listed = {
        row["details"]["addr"]: row["broker_name"]
        for row in sorted(facts["BROKER_IN_CLUSTER"], key=stated_last)
        if row["broker_name"] not in started and row["details"].get("addr")
    }
    return of_brokers | listed


def _popped(facts: FactsByKind) -> dict[str, tuple[int, int]]:
    """Return, for each broker, the last dumps between which its revive log grew."""
    ends = grouped(
        facts["REVIVE_PROGRESS"], lambda row: (row["broker_name"], row["details"]["revive_queue"])
    )
    grown: dict[str, tuple[int, int]] = {}
    for (broker, _), rows in ends.items():
        seen = sorted((row["first_ms"], int(row["details"]["end"])) for row in rows)
        for (first_ms, before), (last_ms, after) in pairwise(seen):
            if after > before:
                grown[broker] = max((first_ms, last_ms), grown.get(broker, (0, 0)))
    return grown


def _overloads(facts: FactsByKind) -> dict[str, tuple[tuple[int, int], ...]]:
    dropped = grouped(facts["CHANNEL_EVENTS_DROPPED"], lambda row: row["broker_name"])
    return {
        broker: tuple((row["first_ms"], row["last_ms"]) for row in rows)
        for broker, rows in dropped.items()
    }


def _with_brokers(
    run: AuditRun,
    facts: FactsByKind,
    dumps: list[NewestDumpsRow],
    turns: list[BrokerEventsRow],
    coverage: list[CoverageRow],
) -> AuditRun:
    """Return the run, adding the times at which each broker was up, without a master or away.

    Args:
        run: the run so far.
        facts: as in `cluster_snapshot`.
        dumps: as in `cluster_snapshot`.
        turns: BROKER_UP and BROKER_DOWN, MASTER_UP and MASTER_DOWN.
        coverage: rows of the table.
    """
    events = [row for row in turns if row["event_type"] in BROKER_EVENTS]
    gone = down_brokers(events)
    newest_ms = max((row["last_ms"] for row in dumps), default=0)
    heard_to_the_end = name_servers_tell(coverage, newest_ms)
    down = gone if heard_to_the_end else frozenset[str]()
    files = facts["BROKER_FILE"]
    folders = {
        row["broker_name"]: names.split(", ")
        for row in files
        if (names := row["details"].get("folders"))
    }
    covered = coverage_of(coverage, folders, down)
    signs = signs_of_life(dumps, covered, {*folders, *gone})
    masters = master_outages(turns)
    headless = {b for b, outages in masters.items() if outages and outages[-1].up_ms is None}
    lives = {broker: covered.ends(broker) for broker in headless}
    lives |= {broker: signs[broker] for broker in gone}
    returned = going_on(events, masters, lives)
    # a former master may become master again without a log line
    unlogged = {row["broker_name"] for row in files if row["details"].get("unlogged")}
    returned |= {broker: masters[broker][-1].down_ms for broker in headless & unlogged}
    with_slaves = {row["broker_name"] for row in facts["BROKER_SLAVES"]}
    return replace(
        run,
        down=down,
        coverage=covered,
        masters=masters,
        returned=returned,
        slaves=frozenset(with_slaves | masters.keys()),
        elected=frozenset(
            row["broker_name"] for row in files if row["details"].get("elected") == "true"
        ),
        stops=unlogged_stops(turns, facts, returned),
        moments=moments(facts, turns),
        proxies=frozenset(row["details"]["proxy"] for row in facts["PROXY_STARTED"]),
        outages=broker_outages(events, facts, signs, covered, heard_to_the_end=heard_to_the_end),
    )
