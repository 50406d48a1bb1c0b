"""Live ownership and members from dumps, which the audit compares with the ledger."""

from typing import Final

from rebalance_core.contracts.fact_declaration import (
    MOMENTS,
    QUEUE,
    FactKind,
    fact_kinds,
    fields,
)
from rebalance_core.contracts.log_facts import LOG_FACTS
from rebalance_core.contracts.table import Table, columns
from rebalance_core.model.group_settings import MESSAGE_MODELS

OBSERVED_OWNERSHIP = Table(
    "observed_ownership",
    "A queue that a client holds according to a dump.",
    columns(
        """
        cluster STRING the RocketMQ cluster
        consumer_group STRING the group
        topic STRING the topic
        broker_name STRING the broker
        queue_id INT the queue id on that broker
        client_id STRING the holder
        observed_ms BIGINT when it was seen
        source STRING file:line it came from
        """
    ),
    required=False,
)

OBSERVED_MEMBERS = Table(
    "observed_members",
    "A member of a group according to one broker's list.",
    columns(
        """
        cluster STRING the RocketMQ cluster
        consumer_group STRING the group
        asked_broker? STRING the broker that was asked; null: unknown, or a proxy
        client_id STRING the member
        client_addr? STRING as the broker lists it
        language? STRING as the broker lists it
        version? STRING as the broker lists it
        subscriptions? ARRAY<STRING> its topics
        message_model? STRING {allowed}
        consume_from_where? STRING ConsumeFromWhere
        observed_ms BIGINT when it was seen
        source STRING file:line it came from
        """,
        message_model=MESSAGE_MODELS,
    ),
    required=False,
)

OBSERVED_FACTS = Table(
    "observed_facts",
    "Other facts that files state about a group, topic or server.",
    columns(
        """
        cluster STRING the RocketMQ cluster
        kind STRING what is stated: one of FACT_KINDS
        consumer_group? STRING what it concerns
        topic? STRING what it concerns
        broker_name? STRING the broker that it concerns, or that stated it
        queue_id? INT what it concerns
        client_id? STRING what it concerns
        first_ms BIGINT when it was stated first and last
        last_ms BIGINT when it was stated first and last
        times BIGINT rows of one dump; else seconds in which it was stated
        details MAP<STRING, STRING> the fields of the kind
        source STRING file:line of the first statement
        """
    ),
    required=False,
)

ROLES = ("BROKER", "NAME_SERVER", "PROXY", "CLIENT", "ADMIN")
FROM_START = "begins with the start of the broker"
"""Note on a broker's log: there was nothing to cover before this time."""
CLOCK_UNSURE = "its clock differs from others, and no evidence shows which is right"
NAME_ALONE = "no other file dates its contents: only its name shows when it was made"
LINES_REFUSED = "some of its lines were refused"
"""Note on a broker's log: it may have had entries that are missing."""
STEADY = "has a line every few seconds"
"""Note on a name server's log that was cut off at its end; otherwise it would continue."""

COVERAGE = Table(
    "coverage",
    "The period for which a host's files of one kind are evidence. What no row covers was not "
    "examined.",
    columns(
        """
        cluster STRING the RocketMQ cluster
        host STRING the folder of its files, or `mqadmin`
        role STRING {allowed}
        kind STRING kind of file
        from_ms? BIGINT first line, or when it was written
        to_ms? BIGINT last line, or as from_ms
        lines BIGINT lines or rows read
        understood BIGINT lines or rows understood
        facts BIGINT facts that they state
        complete BOOLEAN false: cut off, refused, or unreadable before its end
        clock_offset_ms? BIGINT by how much its clock is behind the others
        clock_error_ms? BIGINT the remaining error of its corrected times
        time_zone? STRING zone of its times; null: epoch times
        note? STRING what is special or missing
        """,
        role=ROLES,
    ),
    key=("cluster", "host", "role", "kind", "from_ms"),
    required=False,
)

_OF_BROKER = ("broker_name",)
_OF_CLIENT = ("client_id",)
_AT_BROKER = "members, topics, consume_type, message_model, consume_from_where"

_OTHER_KINDS = (
    FactKind(
        "COLLECTED",
        "the collection as a whole",
        details=fields("start_ms, end_ms, hashed? (the addresses of clients look hashed)"),
    ),
    FactKind("EXPECTED_BROKER", "collection.toml expects this broker", about=_OF_BROKER),
    FactKind(
        "EXPECTED_NAME_SERVER",
        "collection.toml expects this name server",
        details=fields("name"),
    ),
    FactKind(
        "BROKER_FILE",
        "files of a broker",
        about=_OF_BROKER,
        details=fields(
            "file (log, store), name (broker.log, topics.json, …), files (how many), facts, "
            "until_ms? (last line of broker.log), "
            "unreadable? (files of broker.log without a readable end), "
            "folders? (whose logs speak for the broker), unlogged? (those of them without one), "
            "elected? (whether DLedger elects the master)"
        ),
    ),
    FactKind(
        "BROKER_STORE",
        "the broker uses RocksDB, and when each JSON store was last exported, epoch ms",
        about=_OF_BROKER,
        details=fields(
            "form (ROCKSDB, SINGLE_ROCKSDB, ROCKSDB_V2), topics.json, subscriptionGroup.json, "
            "consumerOffset.json"
        ),
    ),
    FactKind(
        "BROKER_SLAVES",
        "the broker has slaves",
        about=_OF_BROKER,
        details=fields("mode (without its master: REFUSED, SLAVE_READ, ACTING)"),
    ),
    FactKind(
        "NAME_SERVER_FILE",
        "a name server's log was collected",
        details=fields("name, files (how many), facts"),
    ),
    FactKind(
        "DUMP",
        "one output of mqadmin",
        MOMENTS,
        details=fields(
            "command, rows, rejected (lines), error, proxy? (if one was asked), "
            "queues_told? (consumerStatus: false if some of its queues may be missing), cut_off?, "
            "partial? (rows may be missing: it was cut off, or some were refused)"
        ),
    ),
    FactKind(
        "NOT_READ",
        "a dump or store that is empty or of which rows may be missing, a refused file, or a "
        "server's log with fewer than half of its lines understood",
        details=fields(
            "what (command, or file), name? (of the name server), lines, understood, "
            "code, why (of the first refusal), first_line, looks_like"
        ),
    ),
    FactKind(
        "NOT_COLLECTED",
        "what the collector could not copy or query, or an unfinished copy (.part)",
        details=fields("what (a path in the collection, a broker or a question), why"),
    ),
    FactKind(
        "GROUP_RENAMED",
        "logs name a group otherwise than dumps or stores: it is read under the name in the latter",
        details=fields(
            "in_logs, group (the name in dumps and stores), log, dump (or the store; the files "
            "that have them)"
        ),
    ),
    FactKind(
        "BROKER_IN_CLUSTER",
        "clusterList lists this broker",
        about=_OF_BROKER,
        details=fields("version, broker_id, addr"),
    ),
    FactKind(
        "REVIVE_PROGRESS",
        "how far a broker has read a revive queue, according to consumerProgress",
        MOMENTS,
        about=_OF_BROKER,
        details=fields("revive_queue, offset (the last one read), end (the next to be written)"),
    ),
    FactKind(
        "REVIVE_METRICS",
        "a revive queue by the broker's metrics",
        MOMENTS,
        about=_OF_BROKER,
        details=fields(
            "revive_queue, late_ms (how long ago its first checkpoint was due), waiting (entries "
            "not read yet)"
        ),
    ),
    FactKind(
        "BROKER_REGISTERED",
        "the last line of a name server's log on the broker",
        about=_OF_BROKER,
        details=fields("name, registered, untold_ms? (since it had registered no line removed it)"),
    ),
    FactKind(
        "GROUP_CONFIG",
        "the broker's last subscriptionGroup.json",
        about=_OF_BROKER,
        details=fields(
            "consume_enable, consume_broadcast_enable, consume_from_min_enable, "
            "consume_message_orderly, notify_consumer_ids_changed_enable, retry_queue_nums, "
            "retry_max_times, broker_id, which_broker_when_consume_slowly, "
            "consume_timeout_minute, group_sys_flag, subscriptions, attributes"
        ),
    ),
    FactKind(
        "GROUP_CONFIGS",
        "what was read from that file",
        about=_OF_BROKER,
        details=fields("groups, rejected (entries)"),
    ),
    FactKind(
        "GROUP_AT_BROKER",
        "consumerConnection of this broker",
        MOMENTS,
        details=fields(_AT_BROKER),
    ),
    FactKind(
        "GROUP_AT_PROXY",
        "consumerConnection of a proxy",
        MOMENTS,
        details=fields(_AT_BROKER + ", proxy"),
    ),
    FactKind(
        "CONNECTION",
        "a member that consumerConnection lists",
        MOMENTS,
        about=_OF_CLIENT,
        details=fields("client_addr, language, version, proxy? (if one was asked)"),
    ),
    FactKind(
        "HELD_QUEUE",
        "a client's process queue",
        MOMENTS,
        about=(*QUEUE, *_OF_CLIENT),
        details=fields(
            "commit_offset, cached_messages, locked, try_unlock_times, dropped, last_lock_ms, "
            "last_pull_ms, last_consume_ms"
        ),
    ),
    FactKind(
        "POP_QUEUE",
        "a client's pop process queue (queue_id -1: any of the broker's)",
        MOMENTS,
        about=(*QUEUE, *_OF_CLIENT),
        details=fields("wait_ack_count, dropped, last_pop_ms"),
    ),
    FactKind(
        "POP_SETTINGS",
        "settings of a client that can pop (consumerStatus)",
        MOMENTS,
        about=_OF_CLIENT,
        details=fields("invisible_ms, threads"),
    ),
    FactKind(
        "HEARTBEAT_INTERVAL",
        "heartbeatBrokerInterval that differs from the default",
        about=_OF_CLIENT,
        details=fields("interval_ms"),
    ),
    FactKind(
        "GAVE_UP_ASKING",
        "a client with clientRebalance=false divides the topic itself",
        about=("topic", *_OF_CLIENT),
        details=fields(
            "strategy, over_ms? (when it asked again or was restarted), over_by? (the line)"
        ),
    ),
    FactKind(
        "CONSUME_RATE",
        "consume RT of a topic, mean of the last minute",
        MOMENTS,
        about=("topic", *_OF_CLIENT),
        details=fields("consume_rt_ms"),
    ),
    FactKind(
        "ORDER_BLOCK",
        "consumerOrderInfo.json: what a FIFO group last popped from the queue",
        MOMENTS,
        about=QUEUE,
        details=fields(
            "attempt_id, commit_bits (bit n: the nth offset was acknowledged), offsets, pop_ms, "
            "invisible_ms, next_visible_ms (latest renewal), "
            "blocked_until_ms (OrderInfo.needBlock)"
        ),
    ),
    FactKind(
        "POP_COUNTS",
        "a group's pops of a topic and of its retries, by the broker's metrics; counts are since "
        "the broker started, empty: not shown",
        MOMENTS,
        about=("topic", "broker_name"),
        details=fields(
            "checkpoints (written by pops and renewals), acknowledgements (written, also by "
            "renewals), failed (of both, refused by the store), put_back (into the retry topic), "
            "given (messages of the topic), given_again (of its retry topic), in_flight (popped "
            "and not acknowledged, at that moment)"
        ),
    ),
    FactKind(
        "NOT_ONLINE",
        "consumerConnection failed with CODE 206: the broker, or proxy, knows no member",
        MOMENTS,
        details=fields("proxy? (if one was asked)"),
    ),
    FactKind(
        "PROXY",
        "a proxy, collected or expected",
        details=fields("name, mode (CLUSTER, LOCAL), addresses, files (how many)"),
    ),
    FactKind(
        "STUCK_QUEUE",
        "mqadmin's warning of a queue",
        MOMENTS,
        about=(*QUEUE, *_OF_CLIENT),
        details=fields("trouble (lock, unlock, consume), count"),
    ),
    FactKind(
        "QUEUE_PROGRESS",
        "consumerProgress",
        MOMENTS,
        about=QUEUE,
        details=fields(
            "broker_offset, consumer_offset (0 may mean none), last_time_ms, client_ip, "
            "with_clients (-s true), names_cut (topic or broker)"
        ),
    ),
)

FACT_KINDS = fact_kinds(_OTHER_KINDS, LOG_FACTS.values())
"""The kinds of `OBSERVED_FACTS`: those from stores, dumps and the collection, then those of
`LOG_FACTS`.

Refusals, drops and failures more than `EPISODE_MS` apart are separate rows; so are the statements
of each dump. Anything else is one row.
"""

START_UP: Final = "START_UP"
"""From the creation of a client's instance to its registration with the last broker."""
REGISTRATION: Final = "REGISTRATION"
"""From one broker's registration of a joining client to the next broker's."""
UNREGISTRATION: Final = "UNREGISTRATION"
"""From one broker's answer to a leave to the next broker's."""
QUEUE_TAKEN: Final = "QUEUE_TAKEN"
"""From one queue that a pass takes to the next of the same topic: before that, the client looks up
its offset and, in an orderly group, requests its lock."""
LATENCY_KINDS = (
    START_UP,
    REGISTRATION,
    UNREGISTRATION,
    QUEUE_TAKEN,
)
LATENCIES = Table(
    "latencies",
    "How long a request took, according to log lines at the default level.",
    columns(
        """
        cluster STRING the RocketMQ cluster
        kind STRING {allowed}
        consumer_group STRING the group
        client_id? STRING the client that sent the request; null: not known
        broker_name? STRING the broker that it concerns; null: not known
        version? STRING of the client; null: not known
        at_ms BIGINT when it ended
        ms DOUBLE milliseconds
        source STRING file:line of its end
        """,
        kind=LATENCY_KINDS,
    ),
    required=False,
)

ADD, DROP = "ADD", "DROP"
QUEUE_MOVES = Table(
    "queue_moves",
    "A queue that a client's pass took or gave up, according to the client's log.",
    columns(
        """
        cluster STRING the RocketMQ cluster
        consumer_group STRING the group
        topic STRING the topic
        broker_name STRING the broker
        queue_id INT the queue id on that broker
        client_id? STRING the client; null: its log does not show which of several
        at_ms BIGINT when
        action STRING {allowed}
        source STRING file:line of it
        """,
        action=(ADD, DROP),
    ),
    required=False,
)

OBSERVED_TABLES = {
    table.name: table for table in (OBSERVED_OWNERSHIP, OBSERVED_MEMBERS, OBSERVED_FACTS)
}
