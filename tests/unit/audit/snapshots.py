"""Small snapshots of groups: a ledger replayed from a few events, facts and dumps by hand."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pyarrow as pa

from rebalance_core.audit.cluster_findings import run_cluster_rules
from rebalance_core.audit.cluster_snapshot import cluster_snapshot
from rebalance_core.audit.comparison import ComparisonResult
from rebalance_core.audit.confidence import borne_out_in_cluster
from rebalance_core.audit.coverage import CollectedLog, Coverage, LogSpan
from rebalance_core.audit.group_snapshot import (
    AuditRun,
    ClusterSnapshot,
    Finding,
    GroupSnapshot,
    facts_by_kind,
    snapshot_rows,
)
from rebalance_core.audit.rules import rules_by_id
from rebalance_core.audit.unknowns import broker_log, client_log, name_server_log
from rebalance_core.contracts import ALL_TABLES
from rebalance_core.contracts.table import batch_of_rows
from rebalance_core.model import events as kinds
from rebalance_core.model.events import GROUP_EVENTS, TOPIC_EVENTS, Event
from rebalance_core.model.group_settings import GroupSettings
from rebalance_core.model.queue import MessageQueue
from rebalance_core.process.queue_progress import queue_progress
from rebalance_core.replay.group_replay import replay_group
from rebalance_core.replay.history import CommittedOffset, GroupHistory, QueueOffset
from rebalance_core.replay.masters import MasterOutages
from rebalance_core.strategies import parse_strategy
from tests.unit.audit.group_rows import declared_details

BEGIN_MS = 1_795_000_000_000
GROUP = "g"
UNKNOWN_STRATEGY = "INGEST_STRATEGY_UNKNOWN"
COLUMNS = tuple(Event.__dataclass_fields__)

Row = Any


def ms(seconds: float) -> int:
    """A moment so many seconds after the collection began."""
    return BEGIN_MS + int(seconds * 1000)


def event(kind: str, seconds: float, client: str | None = None, **fields: Any) -> Event:
    return Event(ms(seconds), 0, kind, client_id=client, **fields)


def topic(
    name: str = "T",
    broker: str = "a",
    read: int = 4,
    write: int | None = None,
    perm: int = 6,
    at: float = 0,
    **fields: Any,
) -> Event:
    numbers: Row = {"read_queue_nums": read, "write_queue_nums": read if write is None else write}
    where: Row = {"topic": name, "broker_name": broker, "perm": perm}
    return event(kinds.TOPIC_CONFIG, at, **where, **numbers, **fields)


def join(
    client: str, *topics: str, at: float = 10, channel: str | None = None, **own: Any
) -> Event:
    channel = channel or f"{client}:1"
    asked = topics or ("T",)
    return event(kinds.CONSUMER_JOIN, at, client, channel_id=channel, subscriptions=asked, **own)


def of_member(kind: str, client: str, at: float, channel: str | None = None, **own: Any) -> Event:
    return event(kind, at, client, channel_id=channel or f"{client}:1", **own)


def leave(client: str, at: float, channel: str | None = None) -> Event:
    return of_member(kinds.CONSUMER_LEAVE, client, at, channel)


def fact(kind: str, at: float, until: float | None = None, times: int = 1, **fields: Any) -> Row:
    """A row of observed_facts; what is no column is a detail."""
    row: Row = dict.fromkeys(("topic", "broker_name", "queue_id", "client_id"))
    own = {name: fields.pop(name) for name in list(fields) if name in row}
    fields = declared_details(kind) | fields
    return (
        row
        | own
        | {
            "cluster": "c",
            "kind": kind,
            "consumer_group": GROUP,
            "first_ms": ms(at),
            "last_ms": ms(at if until is None else until),
            "times": times,
            "details": {
                name: str(value).lower() if isinstance(value, bool) else str(value)
                for name, value in fields.items()
            },
            "source": "file:1",
        }
    )


def of_client_log(row: Row, folder: str = "app-1") -> Row:
    """Return a fact as the log of a client states it."""
    return row | {"source": f"clients/{folder}/rocketmq_client.log:1"}


def listed_at(broker: str, at: float, *clients: str, **own: Any) -> list[Row]:
    """Members as consumerConnection of a broker lists them, each as ``id`` or ``id/address``."""
    return [
        {
            "cluster": "c",
            "consumer_group": GROUP,
            "asked_broker": broker,
            "client_id": text.partition("/")[0],
            "client_addr": text.partition("/")[2] or text,
            "language": "JAVA",
            "version": "5.3.3",
            "subscriptions": ["T"],
            "message_model": "CLUSTERING",
            "consume_from_where": None,
            "observed_ms": ms(at),
            "source": "file:1",
        }
        | own
        for text in clients
    ]


def queue_row(name: str, broker: str, number: int, at: float, **fields: Any) -> Row:
    return {
        "cluster": "c",
        "consumer_group": GROUP,
        "topic": name,
        "broker_name": broker,
        "queue_id": number,
        "client_id": None,
        "observed_ms": ms(at),
    } | fields


def end(
    number: int, high: int, low: int = 0, at: float = 900, name: str = "T", broker: str = "a"
) -> Row:
    """Minimum and maximum offset of a queue."""
    return queue_row(name, broker, number, at, min_offset=low, max_offset=high)


def commit(
    number: int,
    offset: int,
    at: float = 900,
    name: str = "T",
    broker: str = "a",
    client: str | None = None,
) -> Row:
    return queue_row(name, broker, number, at, committed_offset=offset, client_id=client)


def broker_logs(**spans: Iterable[LogSpan]) -> dict[str, CollectedLog]:
    """Logs of brokers by name, of these stretches."""
    return {name: CollectedLog(broker_log(name), tuple(of)) for name, of in spans.items()}


def client_logs(**spans: Iterable[LogSpan]) -> dict[str, CollectedLog]:
    """Logs of clients by folder, of these stretches."""
    return {
        name: CollectedLog(client_log(name), tuple(of), begun=True) for name, of in spans.items()
    }


def name_server_logs(*spans: LogSpan) -> CollectedLog:
    """The logs of all name servers, of these stretches."""
    return CollectedLog(name_server_log(), spans)


def snapshot_of(
    *happened: Event,
    until: float = 1000,
    settings: GroupSettings | None = None,
    facts: Iterable[Row] = (),
    members: Iterable[Row] = (),
    owned: Iterable[Row] = (),
    ends: Iterable[Row] = (),
    commits: Iterable[Row] | None = (),
    stores: Iterable[str] = ("a", "b"),
) -> GroupSnapshot:
    """The snapshot of group ``g`` in a collection of ``until`` seconds."""
    settings = settings or GroupSettings()
    happened = tuple(
        Event(**{name: getattr(one, name) for name in COLUMNS} | {"sequence": number})
        for number, one in enumerate(happened)
    )
    ends, commits = list(ends), None if commits is None else list(commits)
    history = GroupHistory(
        "c",
        GROUP,
        settings,
        happened,
        tuple(map(_end, ends)),
        None if commits is None else tuple(map(_commit, commits)),
    )
    tables = dict(replay_group(history, lambda key: parse_strategy(key[0], version=key[1])))
    rows = [{name: getattr(one, name) for name in COLUMNS} for one in happened]
    last: dict[tuple[str, str], Row] = {}
    for row in rows:
        if row["event_type"] in TOPIC_EVENTS:
            place = row["topic"], row["broker_name"]
            before = last.get(place, {}).get("deleted_ms")
            gone = row["event_type"] == kinds.TOPIC_DELETED
            last[place] = row | {"deleted_ms": row["event_ms"] if gone else before}
    tables |= {
        "cluster_events": [row for row in rows if row["event_type"] in GROUP_EVENTS],
        "consumer_groups": [{n: getattr(settings, n) for n in settings.__dataclass_fields__}],
        "topics": list(last.values()),
        "observed_facts": list(facts),
        "observed_members": list(members),
        "observed_ownership": list(owned),
        "queue_offsets": ends,
        "committed_offsets": commits or [],
    }
    tables["queue_progress"] = _progress_rows(tables)
    masters = MasterOutages(happened).by_broker
    run = AuditRun(BEGIN_MS, ms(until), store_ms=dict.fromkeys(stores, ms(until)), masters=masters)
    return GroupSnapshot("c", GROUP, run, snapshot_rows(tables))


def with_rows(group: GroupSnapshot, **tables: Iterable[Row]) -> GroupSnapshot:
    """The snapshot with these rows instead of those that it has of the tables."""
    rows: Any = {**group.tables, **{name: list(rows) for name, rows in tables.items()}}
    return replace(group, tables=rows)


def of_unknown_strategy(group: GroupSnapshot, severity: str = "WARNING") -> GroupSnapshot:
    """The snapshot with ingest's word that it does not know how the group divides."""
    row = {"rule_id": UNKNOWN_STRATEGY, "severity": severity}
    return with_rows(group, findings=[row])


def findings_of(rule_id: str, group: GroupSnapshot) -> list[Finding]:
    """The findings of one rule."""
    find = rules_by_id()[rule_id].find
    assert find is not None, f"{rule_id} is found elsewhere"
    return list(find(group))


def judge_cluster(
    facts: Iterable[Row],
    dumps: Iterable[Row] = (),
    events: Iterable[Row] = (),
    stale_hours: float = 6.0,
    not_before_ms: int | None = None,
    coverage: Iterable[Row] = (),
) -> tuple[AuditRun, list[Row]]:
    """The run of a cluster, and the findings on it as a whole as rows."""
    group = cluster_snapshot(
        facts_by_kind(facts),
        dumps,
        events,
        coverage,
        stale_hours=stale_hours,
        not_before_ms=not_before_ms,
    )
    rows: list[Row] = [*run_cluster_rules(group)]
    return group.run, rows


def found_in_cluster(
    rule_id: str,
    facts: Iterable[Row] = (),
    events: Iterable[Row] = (),
    covered: Coverage | None = None,
    coverage: Iterable[Row] = (),
    end: float | None = None,
) -> list[Finding]:
    """The findings of one rule on a cluster, as far as they are borne out, until ``end`` s."""
    run = AuditRun(0, 0 if end is None else ms(end), coverage=covered or Coverage())
    group = ClusterSnapshot(run, facts_by_kind(facts), list(events), list(coverage))
    rule = rules_by_id()[rule_id]
    assert rule.find_in_cluster is not None, f"{rule_id} is none on a cluster"
    return list(borne_out_in_cluster(rule, rule.find_in_cluster(group)))


def why_unknown(result: ComparisonResult) -> str:
    """What a comparison rests on and no file shows, in words; empty: nothing."""
    return "" if result.unknown is None else result.unknown.why


def settled_by(result: ComparisonResult) -> str:
    """What would settle an UNKNOWN; empty: nothing is named."""
    return "" if result.unknown is None else result.unknown.remedy


def severities(rule_id: str, group: GroupSnapshot) -> list[str]:
    """The severities of one rule's findings; INFO where one lacks evidence by itself, or is of a
    state that has ended.
    """
    rule = rules_by_id()[rule_id]
    return [
        "INFO"
        if one.unknown or (one.last_ms and (rule.state or one.ended_by))
        else one.severity or rule.severity
        for one in findings_of(rule_id, group)
    ]


def _progress_rows(tables: dict[str, Any]) -> list[Row]:
    """The group's rows of queue_progress, as an audit makes them of its other rows."""
    asked = [row for row in tables["observed_facts"] if row["kind"] == "QUEUE_PROGRESS"]
    rows = {
        "committed_offsets": tables["committed_offsets"],
        "queue_offsets": [row | {"head_cached": None} for row in tables["queue_offsets"]],
        "observed_facts": [{"cluster": "c", "consumer_group": GROUP} | row for row in asked],
    }
    given = {
        name: pa.Table.from_batches([batch_of_rows(ALL_TABLES[name], of_table)])
        for name, of_table in rows.items()
    }
    read = sorted({row["topic"] for row in tables["ownership"]})
    names = ["cluster", "consumer_group", "topic"]
    topics = pa.table([["c"] * len(read), [GROUP] * len(read), pa.array(read, pa.string())], names)
    made: list[Row] = queue_progress(given, topics).to_pylist()
    owned: dict[Any, set[str]] = {}
    for row in tables["ownership"]:
        if row["to_ms"] is None and row["client_id"] is not None:
            owned.setdefault(_queue(row), set()).add(row["client_id"])
    for row in made:
        holders = owned.get(_queue(row), set())
        row["client_id"] = min(holders) if len(holders) == 1 else None
    return made


def _end(row: Row) -> QueueOffset:
    return QueueOffset(_queue(row), row["observed_ms"], row["min_offset"], row["max_offset"])


def _commit(row: Row) -> CommittedOffset:
    return CommittedOffset(
        _queue(row), row["client_id"], row["observed_ms"], row["committed_offset"]
    )


def _queue(row: Row) -> MessageQueue:
    return MessageQueue(row["topic"], row["broker_name"], row["queue_id"])
