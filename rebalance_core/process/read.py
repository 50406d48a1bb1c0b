"""The read job: parse a single file as ingest does and apply the audit's rules, without writing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import pyarrow as pa

from rebalance_core.audit.cluster_snapshot import cluster_snapshot
from rebalance_core.audit.completeness import COLLECTION_INCOMPLETE, COVERAGE_UNKNOWN
from rebalance_core.audit.confidence import borne_out_in_cluster
from rebalance_core.audit.finding_rows import finding_row
from rebalance_core.audit.group_snapshot import AuditRun, GroupSnapshot, facts_by_kind
from rebalance_core.audit.rules import CLUSTER_RULES
from rebalance_core.audit.single_file import GroupShown, shown
from rebalance_core.checks.input_tables import ArrowTables
from rebalance_core.checks.row_checks import check_tables
from rebalance_core.contracts import COLLECTED_TABLES, INPUT_TABLES
from rebalance_core.contracts.table import batch_of_rows
from rebalance_core.engine.fan_out import fan_out
from rebalance_core.engine.group_history import history_of, strategy_for
from rebalance_core.ingest.assumptions import Assumptions
from rebalance_core.ingest.collection import CLIENT_LOG
from rebalance_core.ingest.in_process import read_collection, understood
from rebalance_core.ingest.pasted import PastedFile
from rebalance_core.ingest.rows import by_name
from rebalance_core.model.events import TOPIC_CONFIG
from rebalance_core.model.queue import is_retry_topic
from rebalance_core.process.cluster_tables import read_cluster_tables
from rebalance_core.process.group_snapshots import by_group, group_tables, names_of, snapshots_of
from rebalance_core.process.observed_tables import READ_TABLES
from rebalance_core.process.topic_states import topic_states
from rebalance_core.replay.group_replay import GroupLedger

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import FindingsBegun, SnapshotRows
    from rebalance_core.ingest.file_record import FileRecord

STALE_HOURS = 1e6
"""So large that a single file is never stale."""
_OF_A_COLLECTION = (COLLECTION_INCOMPLETE, COVERAGE_UNKNOWN)
"""Rules about which files a collection has."""
_LIFE = ("epochs", "memberships")
"""Ledger tables that show who was a member and when; owners depend on other files."""


@dataclass(frozen=True, slots=True)
class TopicShown:
    """A topic's settings on a broker, from the last line or row about it in the file."""

    topic: str
    broker_name: str
    read_queue_nums: int | None
    write_queue_nums: int | None


@dataclass(frozen=True, slots=True)
class BrokerShown:
    """A broker as clusterList lists it."""

    broker_name: str
    broker_id: str
    address: str
    version: str


@dataclass(frozen=True)
class FileShown:
    """The contents of a single file.

    Attributes:
        record: how much of the file was understood.
        error: the failure that an answer reports, if any.
        online: False if the broker answered that no member of the group is online.
        groups: the groups in it.
        topics: its topics, without retry topics.
        brokers: the brokers in a clusterList.
        queues: the number of queues whose end it states, and of the messages in them.
        findings: findings about the whole cluster, without the cluster's name.
    """

    record: FileRecord
    error: str
    online: bool
    groups: tuple[GroupShown, ...]
    topics: tuple[TopicShown, ...]
    brokers: tuple[BrokerShown, ...]
    queues: tuple[int, int]
    findings: tuple[FindingsBegun, ...]


def read_alone(pasted: PastedFile, assumed: Assumptions) -> FileShown:
    """Read a single file and judge it on its own.

    Args:
        pasted: from `ingest.pasted.recognise`.
        assumed: values used when the file does not state them.
    """
    ingested = read_collection(pasted, assumed)
    rows = by_name(ingested.tables)
    tables = {
        name: pa.Table.from_batches([batch_of_rows(table, rows.get(name, []))])
        for name, table in COLLECTED_TABLES.items()
    }
    if pasted.file.is_log:  # a log has only the end offsets at which topics began
        tables["queue_offsets"] = tables["queue_offsets"].slice(0, 0)
    wanted = {name: tables[name] for name in (*INPUT_TABLES, *READ_TABLES)}
    checked = {**tables, **check_tables(ArrowTables(wanted)).tables}
    clusters = read_cluster_tables(checked).by_cluster()
    run, findings = AuditRun(0, 0), list["FindingsBegun"]()
    for tables_of_cluster in clusters.values():
        snapshot = cluster_snapshot(
            facts_by_kind(tables_of_cluster.facts),
            tables_of_cluster.dumps,
            tables_of_cluster.broker_events,
            tables_of_cluster.coverage,
            stale_hours=STALE_HOURS,
        )
        run = snapshot.run
        for rule in CLUSTER_RULES:
            if rule.find_in_cluster is not None and rule not in _OF_A_COLLECTION:
                alone = borne_out_in_cluster(rule, rule.find_in_cluster(snapshot))
                findings += [finding_row(rule, finding) for finding in alone]
    facts = facts_by_kind(ingested.tables["observed_facts"])
    errors = (row["details"]["error"] for row in facts["DUMP"])
    ends = {
        (row["topic"], row["broker_name"], row["queue_id"]): row["max_offset"] - row["min_offset"]
        for row in checked["queue_offsets"].to_pylist()
    }
    return FileShown(
        record=understood(pasted, ingested.stats)[0],
        error=next(filter(None, errors), ""),
        online=not facts["NOT_ONLINE"],
        groups=tuple(
            map(shown, _snapshots(checked, run, one_client=pasted.file.kind == CLIENT_LOG))
        ),
        topics=tuple(_topics(checked["cluster_events"])),
        brokers=tuple(
            BrokerShown(
                row["broker_name"] or "",
                row["details"]["broker_id"],
                row["details"]["addr"],
                row["details"]["version"],
            )
            for row in facts["BROKER_IN_CLUSTER"]
        ),
        queues=(len(ends), sum(ends.values())),
        findings=tuple(findings),
    )


def _topics(cluster_events: pa.Table) -> Iterator[TopicShown]:
    for row in topic_states(cluster_events).sort_by("topic").to_pylist():
        if row["event_type"] == TOPIC_CONFIG and not is_retry_topic(row["topic"]):
            yield TopicShown(
                row["topic"], row["broker_name"], row["read_queue_nums"], row["write_queue_nums"]
            )


def _snapshots(
    tables: Mapping[str, pa.Table], run: AuditRun, *, one_client: bool
) -> Iterator[GroupSnapshot]:
    """Yield the snapshot of each group, with its members.

    ``one_client`` means that the file is a client's log, which does not state when an earlier
    process ended, so only the last process counts.
    """
    grouped, lives = by_group(group_tables(tables)), _lives(tables)
    for life in lives.values() if one_client else ():
        last = max(life["memberships"], key=lambda row: row["from_ms"], default=None)
        life["memberships"] = [
            row for row in life["memberships"] if last and row["client_id"] == last["client_id"]
        ]
    for cluster, group, rows in snapshots_of(grouped):
        yield GroupSnapshot(
            cluster, group, run, cast("SnapshotRows", {**rows, **lives.get(group, {})})
        )


def _lives(tables: Mapping[str, pa.Table]) -> dict[str, SnapshotRows]:
    """Return the rows of `_LIFE` by group, for groups with members."""
    if not len(tables["cluster_events"]):
        return {}
    fanned = fan_out({name: tables[name] for name in ("cluster_events", "consumer_groups")})
    lives = {}
    for place, (_, group) in enumerate(names_of(fanned, 0, len(fanned))):
        ledger = GroupLedger(history_of(fanned.tables_of(place, place + 1)), strategy_for)
        lives[group] = cast("SnapshotRows", {name: list(ledger.rows(name)) for name in _LIFE})
    return lives
