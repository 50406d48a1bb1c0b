"""Rows of the tables that ingest writes, as plain dicts with the contract's columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, TypedDict, Unpack, cast

from rebalance_core.model.verdicts import INFO

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import (
        ClusterEventsColumns,
        ClusterEventsGiven,
        CommittedOffsetsBegun,
        ConsumerGroupsColumns,
        CoverageBegun,
        FindingsBegun,
        LatenciesBegun,
        ObservedFactsBegun,
        ObservedMembersBegun,
        ObservedOwnershipBegun,
        QueueMovesBegun,
        QueueOffsetsBegun,
        RejectedRow,
        RowsByTable,
    )

    class Event(ClusterEventsColumns, total=False):
        """An event under construction."""

        _order: int

    class Tables(TypedDict, total=False):
        """Rows under construction, by table."""

        cluster_events: list[Event]
        consumer_groups: list[ConsumerGroupsColumns]
        queue_offsets: list[QueueOffsetsBegun]
        committed_offsets: list[CommittedOffsetsBegun]
        observed_ownership: list[ObservedOwnershipBegun]
        observed_members: list[ObservedMembersBegun]
        observed_facts: list[ObservedFactsBegun]
        latencies: list[LatenciesBegun]
        queue_moves: list[QueueMovesBegun]
        coverage: list[CoverageBegun]
        findings: list[FindingsBegun]
        rejected: list[RejectedRow]

    Finding: TypeAlias = FindingsBegun
else:
    Event = Finding = Tables = dict

ORDER: Final = "_order"
"""An additional column: the order of events at the same instant, before sequence numbers are
assigned.
"""

FINDING_IDS = {
    "INGEST_ASSIGNED_QUEUES": (
        "Lite pull members read what they assign, not what they subscribe to."
    ),
    "INGEST_ASSUMED": "A field, parameter, time zone or state was assumed because no file has it.",
    "INGEST_BROKER_FOLDER_UNCLEAR": "No file shows which broker a folder's files belong to.",
    "INGEST_BROKER_LOG_MISSING": "The log of an expected broker was not collected.",
    "INGEST_CLOCK_OFFSET": "The clock of a host differs from those of the others.",
    "INGEST_CLOCK_SET_BACK": "The clock of a log jumps back; each part is compared with others.",
    "INGEST_CONTRADICTION": "A dump contradicts the logs.",
    "INGEST_EMPTY_FILE": "A log is empty.",
    "INGEST_EXPORT_OLD": "A JSON store beside a RocksDB counts as of its last export.",
    "INGEST_EXPORT_UNDATED": "No file shows when a JSON store beside a RocksDB was exported.",
    "INGEST_INTERVAL_REFUSED": "A client's interval is 0 or implausible and is not used.",
    "INGEST_JOIN_NOT_LOGGED": "A dump lists a member whose join is in no log.",
    "INGEST_LANGUAGE_NOT_MODELLED": "Some clients use a language that is not modelled.",
    "INGEST_LEAVE_NOT_LOGGED": "No broker lists a member any more, but no log records its end.",
    "INGEST_LITE_TOPIC": "A topic is of type LITE: which client reads which part is not modelled.",
    "INGEST_LOG_ENDED": (
        "A broker's log ends before the dumps: what only dumps show has no known time."
    ),
    "INGEST_MAY_ASSIGN": "No log shows whether lite pull members divide their topics' queues.",
    "INGEST_NAMESRV_LOG_MISSING": "The log of an expected name server was not collected.",
    "INGEST_NOTICES_CHANGED": "A group's notices were both on and off; windows cover both.",
    "INGEST_COPY_DIFFERS": (
        "A copy of a file differs from the original; the file with the plain name is read."
    ),
    "INGEST_NOT_UNDERSTOOD": "Few lines of a log are understood: it may be the wrong file.",
    "INGEST_NO_NAMESRV_LOG": "No name server's log was collected.",
    "INGEST_RELEASE_NOT_TOLD": "Clients of other languages do not send their release.",
    "INGEST_REQUEST_MODE_CHANGED": "A topic's request mode changed at a time that no file shows.",
    "INGEST_REQUEST_MODES_DIFFER": "Brokers alternately answered to pop a topic and to pull it.",
    "INGEST_STATES_NOTHING": "A client's log was read but contains nothing about a consumer.",
    "INGEST_STATIC_TOPIC": "The group reads a static topic, whose queues are not modelled.",
    "INGEST_STRATEGY_INFERRED": "No file names the strategy; live ownership fits this one.",
    "INGEST_STRATEGY_UNKNOWN": (
        "The strategy or its parameters are unknown, so the group is not compared."
    ),
    "INGEST_SUBSCRIPTION_NOT_LOGGED": "No log line records what a member subscribes to; other "
    "files may show it.",
    "INGEST_TIMESTAMP_UNKNOWN": "No file has the group's consumeTimestamp.",
    "INGEST_TIME_ZONE": (
        "The local times of a file are off by a whole time zone and were corrected."
    ),
    "INGEST_TOPIC_CHANGE_NOT_LOGGED": "A store or dump differs from the logs about a topic.",
    "INGEST_TOPIC_SETTINGS_DIFFER": "Brokers have different settings for a topic.",
    "INGEST_VERSION_NOT_MODELLED": "The rules of a client's or broker's version are unknown.",
    "INGEST_WRAPPED": "Logs were in a container's or logger's format, which was removed.",
}
"""Findings of `ingest` and their meaning."""

OF_A_BROKER = frozenset(
    {
        "INGEST_BROKER_FOLDER_UNCLEAR",
        "INGEST_BROKER_LOG_MISSING",
        "INGEST_EXPORT_OLD",
        "INGEST_EXPORT_UNDATED",
        "INGEST_TOPIC_CHANGE_NOT_LOGGED",
        "INGEST_VERSION_NOT_MODELLED",
    }
)
"""Findings that concern the broker that they name, if any."""

RANK = {
    "BROKER_UP": 0,
    "BROKER_DOWN": 0,
    "MASTER_DOWN": 0,
    "MASTER_UP": 0,
    "NOTICES": 0,
    "TOPIC_CONFIG": 1,
    "TOPIC_DELETED": 1,
    "REQUEST_MODE": 2,
}
"""The order of events at the same instant, in which consumer events come last."""


def event(
    event_type: str, event_ms: int, source: str, /, **columns: Unpack[ClusterEventsGiven]
) -> Event:
    """Return an event without cluster and sequence; columns that are None are left out."""
    row = {"event_type": event_type, "event_ms": event_ms, "source": source}
    row |= {name: value for name, value in columns.items() if value is not None}
    return cast("Event", row)


def event_order(row: Event) -> tuple[int | str, ...]:
    """Return the sort order of an event: by time, then brokers, topics and consumers.

    A group's order takes precedence; a topic's distinguishes what one log has within one second.
    """
    order, of_group = row.get(ORDER, 0), bool(row.get("consumer_group"))
    return (
        row["event_ms"],
        RANK.get(row["event_type"], len(RANK)),
        row.get("consumer_group") or "",
        order if of_group else 0,
        row.get("topic") or "",
        row.get("broker_name") or "",
        row.get("client_id") or "",
        row.get("channel_id") or "",
        0 if of_group else order,
        row["event_type"],
        row["source"],
    )


def finding(
    rule_id: str,
    summary: str,
    remedy: str,
    severity: Literal["INFO", "WARNING"] = INFO,
    evidence: Mapping[str, object] | None = None,
    *,
    consumer_group: str | None = None,
    topic: str | None = None,
    broker_name: str | None = None,
    client_id: str | None = None,
    first_ms: int | None = None,
    last_ms: int | None = None,
) -> FindingsBegun:
    """Return a row of ``findings`` without the cluster.

    Raises:
        KeyError: the id is not in `FINDING_IDS`, against which files of accepted findings are
            checked.
    """
    if rule_id not in FINDING_IDS:
        raise KeyError(rule_id)
    return {
        "rule_id": rule_id,
        "severity": severity,
        "consumer_group": consumer_group,
        "topic": topic,
        "broker_name": broker_name,
        "queue_id": None,
        "client_id": client_id,
        "first_ms": first_ms,
        "last_ms": last_ms,
        "summary": summary,
        "evidence": {name: str(value) for name, value in (evidence or {}).items()},
        "remedy": remedy,
        "accepted": None,
    }


def by_name(tables: Tables | RowsByTable) -> dict[str, list[dict[str, object]]]:
    """Return the rows by table, for code that treats all tables alike."""
    return cast("dict[str, list[dict[str, object]]]", tables)


def merged(*parts: Tables) -> Tables:
    """Return the concatenated tables of all parts."""
    tables: dict[str, list[dict[str, object]]] = {}
    for part in parts:
        for name, rows in by_name(part).items():
            tables.setdefault(name, []).extend(rows)
    return cast("Tables", tables)
