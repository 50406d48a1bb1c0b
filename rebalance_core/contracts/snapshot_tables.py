"""The rows that an audit reads about a group or a whole cluster: tables as written, and data
derived from them.
"""

from dataclasses import replace

from rebalance_core.contracts import inputs
from rebalance_core.contracts.ledger import FINDINGS, SIMULATED_TABLES
from rebalance_core.contracts.observed import OBSERVED_TABLES
from rebalance_core.contracts.progress import SNAPSHOT_PROGRESS
from rebalance_core.contracts.propagation import PROPAGATION
from rebalance_core.contracts.table import Table, columns
from rebalance_core.model import events

TOPICS = Table(
    "topics",
    "A broker's settings, at the end, for a topic that the group reads or has offsets for.",
    columns(
        """
        cluster STRING the RocketMQ cluster
        consumer_group STRING the group
        topic STRING the topic
        broker_name STRING the broker
        event_ms BIGINT of the last event
        event_type STRING {allowed}
        read_queue_nums? INT queues consumers read
        write_queue_nums? INT queues producers write
        perm? INT 4 read + 2 write; 6 when null
        source? STRING of the last event: a name server may route what a broker deleted
        deleted_ms? BIGINT when it was last deleted there
        """,
        event_type=events.TOPIC_EVENTS,
    ),
)

QUEUE_OFFSETS = replace(
    inputs.QUEUE_OFFSETS,
    columns=(inputs.COMMITTED_OFFSETS.column("consumer_group"), *inputs.QUEUE_OFFSETS.columns),
)
"""Offsets of topics that the group reads or has offsets for."""

GROUP_TABLES: dict[str, Table] = {
    table.name: table
    for table in (
        inputs.CLUSTER_EVENTS,
        inputs.CONSUMER_GROUPS,
        inputs.COMMITTED_OFFSETS,
        QUEUE_OFFSETS,
        TOPICS,
        *SIMULATED_TABLES.values(),
        *OBSERVED_TABLES.values(),
        FINDINGS,
        PROPAGATION,
        SNAPSHOT_PROGRESS,
    )
}
"""Tables by name, with the rows that name the group; from `cluster_events`, only its own events."""


SPANS = Table(
    "spans",
    "The period that a cluster's events span.",
    columns(
        """
        cluster STRING the RocketMQ cluster
        first_ms BIGINT the first event
        last_ms BIGINT the last event
        """
    ),
)

NEWEST_DUMPS = Table(
    "newest_dumps",
    "The newest output of a command that queried a broker.",
    columns(
        """
        cluster STRING the RocketMQ cluster
        broker_name? STRING the broker; null: not named
        command STRING of mqadmin
        first_ms BIGINT when it was made
        last_ms BIGINT when it was made
        """
    ),
)


def _events(name: str, meaning: str, kinds: tuple[str, ...], *only: str) -> Table:
    """Return the rows of these types; ``only`` limits the columns, which keep their order."""
    kept = [c for c in inputs.CLUSTER_EVENTS.columns if not only or c.name in only]
    there = {n for n, needing in inputs.NEEDED.items() if set(kinds) <= set(needing)}
    of_kinds = (
        replace(
            column,
            nullable=column.nullable and column.name not in there,
            allowed=kinds if column.name == "event_type" else column.allowed,
        )
        for column in kept
    )
    return Table(name, meaning, tuple(of_kinds))


CONSUMER_EVENTS = _events(
    "consumer_events", ("Members that joined, changed and left."), events.CONSUMER_EVENTS
)
REQUEST_MODES = _events("request_modes", "The request modes of topics.", (events.REQUEST_MODE,))
BROKER_EVENTS = _events(
    "broker_events",
    "What happened to brokers.",
    (*events.BROKER_EVENTS, *events.MASTER_EVENTS, events.NOTICES),
    *("cluster", "event_ms", "sequence", "event_type", "broker_name", "detail", "source"),
)

CLUSTER_TABLES: dict[str, Table] = {
    table.name: table
    for table in (SPANS, NEWEST_DUMPS, BROKER_EVENTS, CONSUMER_EVENTS, REQUEST_MODES)
}
