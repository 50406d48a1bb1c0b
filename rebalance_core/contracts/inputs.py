"""The tables that a simulation reads."""

from rebalance_core.contracts.table import QUEUE_KEY, Table, columns
from rebalance_core.model import events
from rebalance_core.model.group_settings import (
    CONSUME_FROM_WHERE,
    CONSUMER_TYPES,
    MESSAGE_MODELS,
    REBALANCE_MODES,
)
from rebalance_core.model.languages import LANGUAGES

CLUSTER_EVENTS = Table(
    "cluster_events",
    "What happened to consumers, brokers and topics. The only required input.",
    columns(
        """
        cluster STRING the RocketMQ cluster
        event_ms BIGINT when the event happened
        sequence BIGINT order of events at the same time within a cluster
        event_type STRING an event type of docs/semantics.md
        consumer_group? STRING the group, for consumer events
        client_id? STRING the client id, an opaque string, for consumer events
        channel_id? STRING a process as seen by brokers; null: the nameless channel
        topic? STRING the topic, for topic and (un)subscribe events
        broker_name? STRING the broker; TOPIC_DELETED, null: all; consumers: the only one to see it
        read_queue_nums? INT TOPIC_CONFIG: queues that consumers read
        write_queue_nums? INT TOPIC_CONFIG: queues that producers write
        perm? INT TOPIC_CONFIG: sum of 4 (read) and 2 (write); null: 6
        subscriptions? ARRAY<STRING> CONSUMER_JOIN: its topics; null: the group's, or else unknown
        strategy? STRING CONSUMER_JOIN: its own strategy text; null: the group's
        detail? STRING the kind of loss, OBSERVED, a request mode, or the mode of slaves or notices
        version? STRING CONSUMER_JOIN, BROKER_UP: version of the client or broker; null: the group's
        message_model? STRING CONSUMER_JOIN: its own value; null: the group's
        consume_from_where? STRING CONSUMER_JOIN: its own value; null: the group's
        rebalance_mode? STRING CONSUMER_JOIN: its own value; null: the group's
        language? STRING CONSUMER_JOIN: its language ({allowed}); null: unknown, treated as JAVA
        wait_interval_ms? BIGINT CONSUMER_JOIN: its own value; null: the group's
        min_interval_ms? BIGINT CONSUMER_JOIN: its own value; null: the group's
        poll_name_server_interval_ms? BIGINT CONSUMER_JOIN: its own value; null: the group's
        heartbeat_broker_interval_ms? BIGINT CONSUMER_JOIN: its own value; null: the group's
        persist_consumer_offset_interval_ms? BIGINT CONSUMER_JOIN: its own value; null: the group's
        source? STRING file:line from which the event came
        """,
        event_type=events.EVENT_TYPES,
        language=LANGUAGES,
        consume_from_where=CONSUME_FROM_WHERE,
        rebalance_mode=REBALANCE_MODES,
    ),
    key=("cluster", "event_ms", "sequence"),
)

_BROKER_NEEDED = (*events.BROKER_EVENTS, *events.MASTER_EVENTS, events.TOPIC_CONFIG, events.NOTICES)
_TOPIC_NEEDED = (events.SUBSCRIBE, events.UNSUBSCRIBE, events.REQUEST_MODE, *events.TOPIC_EVENTS)
NEEDED = {
    "consumer_group": events.GROUP_EVENTS,
    "client_id": events.CONSUMER_EVENTS,
    "topic": _TOPIC_NEEDED,
    "broker_name": _BROKER_NEEDED,
    "read_queue_nums": (events.TOPIC_CONFIG,),
    "detail": (events.REQUEST_MODE, events.NOTICES),
}
"""Columns of cluster_events that are required for some event types."""

CONSUMER_GROUPS = Table(
    "consumer_groups",
    "Settings of a consumer group. A group without a row has the defaults.",
    columns(
        """
        cluster STRING the RocketMQ cluster
        consumer_group STRING the group
        consumer_type? STRING {allowed}; default PUSH
        message_model? STRING {allowed}; default CLUSTERING
        strategy? STRING strategy text; default AVG
        subscriptions? ARRAY<STRING> topics of members that state none; null means unknown, not none
        consume_from_where? STRING ConsumeFromWhere; default CONSUME_FROM_LAST_OFFSET
        consume_timestamp_ms? BIGINT CONSUME_FROM_TIMESTAMP: the timestamp; may be 0
        ordered? BOOLEAN orderly listener; default false
        client_version? STRING version, default 5.3; without a patch number, its last patch is meant
        broker_version? STRING version, default 5.3; without a patch number, its last patch is meant
        rebalance_mode? STRING CLIENT, BROKER (members ask one), PROXY (gRPC); default CLIENT
        pull_threshold_for_queue? INT limit in messages; default 1000
        pull_threshold_size_for_queue? INT limit in MiB; default 100
        pull_threshold_for_topic? INT limit in messages; default -1 = off
        pull_threshold_size_for_topic? INT limit in MiB; default -1 = off
        notified? BOOLEAN brokers notify the group's members of joins and leaves; default true
        wait_interval_ms? BIGINT time between passes of a client that no notice wakes; default 20000
        min_interval_ms? BIGINT shortest time between two passes of a client (5.2+); default 1000
        poll_name_server_interval_ms? BIGINT time between two route polls; default 30000
        heartbeat_broker_interval_ms? BIGINT time between two heartbeats; default 30000
        persist_consumer_offset_interval_ms? BIGINT time between two commits; default 5000
        """,
        consumer_type=CONSUMER_TYPES,
        message_model=MESSAGE_MODELS,
        consume_from_where=CONSUME_FROM_WHERE,
        rebalance_mode=REBALANCE_MODES,
    ),
    key=("cluster", "consumer_group"),
    required=False,
)

QUEUE_OFFSETS = Table(
    "queue_offsets",
    "Offsets of a queue as observed at one moment.",
    columns(
        """
        cluster STRING the RocketMQ cluster
        topic STRING the topic
        broker_name STRING the broker
        queue_id INT the queue id on that broker
        observed_ms BIGINT when the offsets were observed
        min_offset BIGINT minimum offset
        max_offset BIGINT next offset to be written
        head_cached? BOOLEAN entry 0 is in page cache; null: not known; counts only when max > 0
        """
    ),
    key=("cluster", *QUEUE_KEY, "observed_ms"),
    required=False,
)

COMMITTED_OFFSETS = Table(
    "committed_offsets",
    "A group's commit on a queue as observed at one moment. No row means that nothing was "
    "committed.",
    columns(
        """
        cluster STRING the RocketMQ cluster
        consumer_group STRING the group
        topic STRING the topic
        broker_name STRING the broker
        queue_id INT the queue id on that broker
        client_id? STRING the sender, or the owner of a local store; null: seen on the broker
        observed_ms BIGINT when the commit was sent, or seen on the broker
        committed_offset BIGINT the offset from which the next owner would read
        """
    ),
    key=("cluster", "consumer_group", *QUEUE_KEY, "client_id", "observed_ms"),
    required=False,
)

INPUT_TABLES = {
    table.name: table
    for table in (CLUSTER_EVENTS, CONSUMER_GROUPS, QUEUE_OFFSETS, COMMITTED_OFFSETS)
}
