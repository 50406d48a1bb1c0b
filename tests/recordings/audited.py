"""A collection audited in this process, without Spark: what the distributed audit must give."""

from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import Any

from rebalance_core.audit.case import GroupCase
from rebalance_core.audit.completeness import CLUSTER_KINDS
from rebalance_core.audit.judge import judge, judge_cluster, missing_of_groups, missing_reason
from rebalance_core.contracts import ALL_TABLES, OBSERVED_TABLES, SIMULATED_TABLES
from rebalance_core.ingest.in_process import ingest_collection
from rebalance_core.model.events import BROKER_EVENTS, GROUP_EVENTS, TOPIC_DELETED, TOPIC_EVENTS
from rebalance_core.model.queue import retry_topic
from tests.recordings.tables import DATA, Row, Tables, ledger_of

STALE_HOURS = 6.0
OF_GROUPS = (
    *SIMULATED_TABLES,
    *OBSERVED_TABLES,
    "consumer_groups",
    "committed_offsets",
    "findings",
)


@cache
def audited(recording: str) -> Tables:
    """``findings``, ``group_verdicts`` and ``epochs`` of a recording's collection."""
    return audit_folder(DATA / recording / "collection")


def audit_folder(folder: Path) -> Tables:
    """``findings`` and ``group_verdicts`` of a collection."""
    return audit_tables(ingest_collection(folder).tables)


def audit_tables(tables: Tables) -> Tables:
    """The same of ingested tables."""
    given = tables
    tables = {name: [_whole(name, row) for row in found] for name, found in tables.items()}
    events = tables["cluster_events"]
    facts = tables["observed_facts"]
    run, rows = judge_cluster(
        [row for row in facts if row["kind"] in CLUSTER_KINDS],
        [row for row in facts if row["kind"] == "DUMP"],
        [row for row in events if row["event_type"] in BROKER_EVENTS],
        STALE_HOURS,
    )
    rows += [dict(row) for row in tables["findings"] if not row.get("consumer_group")]
    judged: Tables = {"findings": rows, "group_verdicts": []}
    ledger = ledger_of(given)
    for (cluster, group), found in sorted(_by_group(tables | ledger).items()):
        topics = _topics_of(group, found)
        found["topics"] = _topic_states(events, topics)
        found["queue_offsets"] = [r for r in tables["queue_offsets"] if r["topic"] in topics]
        for name, made in judge(GroupCase(cluster, group, run, found)).items():
            judged[name] += made
    unknown: dict[str, list[str]] = defaultdict(list)
    for row in judged["group_verdicts"]:
        reason = missing_reason(row)
        if reason:
            unknown[reason].append(row["consumer_group"])
    compared = sum(row["looks"] > 0 for row in judged["group_verdicts"])
    counted = {reason: (len(names), names) for reason, names in unknown.items()}
    judged["findings"] += missing_of_groups(counted, compared)
    return judged | {"epochs": ledger["epochs"]}


def _whole(table: str, row: Row) -> Row:
    """The row with all columns, as a written table has them."""
    return dict.fromkeys(ALL_TABLES[table].column_names) | row


def _by_group(tables: Tables) -> dict[tuple[str, str], dict[str, list[Row]]]:
    groups: dict[tuple[str, str], dict[str, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for name in OF_GROUPS:
        for row in tables.get(name, ()):
            if row.get("consumer_group"):
                groups[row["cluster"], row["consumer_group"]][name].append(row)
    for row in tables["cluster_events"]:
        if row["event_type"] in GROUP_EVENTS:
            groups[row["cluster"], row["consumer_group"]]["cluster_events"].append(row)
    return groups


def _topics_of(group: str, found: dict[str, list[Row]]) -> set[str]:
    joined = [t for row in found["cluster_events"] for t in row.get("subscriptions") or ()]
    later = [row["topic"] for row in found["cluster_events"] if row.get("topic")]
    given = [t for row in found["consumer_groups"] for t in row.get("subscriptions") or ()]
    committed = [row["topic"] for row in found["committed_offsets"]]
    return {*joined, *later, *given, *committed, retry_topic(group)}


def _topic_states(events: list[Row], topics: set[str]) -> list[Row]:
    last: dict[tuple[str, str], dict[str, Any]] = {}
    for row in sorted(events, key=lambda row: (row["event_ms"], row["sequence"])):
        if row["event_type"] not in TOPIC_EVENTS or row["topic"] not in topics:
            continue
        topic, broker, gone = row["topic"], row["broker_name"], row["event_type"] == TOPIC_DELETED
        if broker is not None:
            before = last.get((topic, broker), {}).get("deleted_ms")
            last[topic, broker] = row | {"deleted_ms": row["event_ms"] if gone else before}
        else:
            ended = dict.fromkeys(("event_ms", "deleted_ms"), row["event_ms"])
            last |= {k: v | ended | {"event_type": TOPIC_DELETED} for k, v in last.items()
                     if k[0] == topic}  # fmt: skip
    return list(last.values())
