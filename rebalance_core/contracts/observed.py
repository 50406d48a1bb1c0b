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
        source STRING file:line of the evidence
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
        asked_broker? STRING the queried broker; null: unknown, or a proxy was queried
        client_id STRING the member
        client_addr? STRING as the broker lists it
        language? STRING as the broker lists it
        version? STRING as the broker lists it
        subscriptions? ARRAY<STRING> the member's topics
        message_model? STRING {allowed}
        consume_from_where? STRING the member's ConsumeFromWhere
        observed_ms BIGINT when it was seen
        source STRING file:line of the evidence
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
        kind STRING the kind of fact, one of FACT_KINDS
        consumer_group? STRING what the fact concerns
        topic? STRING what the fact concerns
        broker_name? STRING the broker that the fact concerns or that stated it
        queue_id? INT what the fact concerns
        client_id? STRING what the fact concerns
        first_ms BIGINT when the fact was first and last stated
        last_ms BIGINT when the fact was first and last stated
        times BIGINT rows of one dump; otherwise the seconds in which the fact was stated
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
    "The period for which a host's files of one kind are evidence. A period without a row was not "
    "examined.",
    columns(
        """
        cluster STRING the RocketMQ cluster
        host STRING the folder of its files, or `mqadmin`
        role STRING {allowed}
        kind STRING the kind of file
        from_ms? BIGINT time of the first line, or when the file was written
        to_ms? BIGINT time of the last line, or the same as from_ms
        lines BIGINT number of lines or rows read
        understood BIGINT number of lines or rows understood
        facts BIGINT number of facts stated in them
        complete BOOLEAN false: a file was cut off, refused or unreadable before its end
        clock_offset_ms? BIGINT how far the host's clock is behind the others
        clock_error_ms? BIGINT the remaining error of the corrected times
        time_zone? STRING time zone of the host's timestamps; null: epoch times
        note? STRING a remark on special or missing content
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
        details=fields("start_ms, end_ms, hashed? (client addresses look hashed)"),
    ),
    FactKind("EXPECTED_BROKER", "collection.toml expects this broker", about=_OF_BROKER),
    FactKind(
        "EXPECTED_NAME_SERVER",
        "collection.toml expects this name server",
        details=fields("name"),
    ),
    FactKind(
        "BROKER_FILE",
        "a broker's collected files",
        about=_OF_BROKER,
        details=fields(
            "file (log, store), name (broker.log, topics.json, …), files (number of files), "
            "facts, until_ms? (last line of broker.log), unreadable? (broker.log files without a "
            "readable end), folders? (folders whose logs cover the broker), unlogged? (those of "
            "them without a log), elected? (whether DLedger elects the master)"
        ),
    ),
    FactKind(
        "BROKER_STORE",
        "the broker's RocksDB form and the last export time of each JSON store, epoch ms",
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
        details=fields("mode (while the master is down: REFUSED, SLAVE_READ, ACTING)"),
    ),
    FactKind(
        "NAME_SERVER_FILE",
        "a name server's log was collected",
        details=fields("name, files (number of files), facts"),
    ),
    FactKind(
        "DUMP",
        "the output of one mqadmin command",
        MOMENTS,
        details=fields(
            "command, rows, rejected (lines), error, proxy? (if a proxy was queried), "
            "queues_told? (consumerStatus: false if some queues may be missing), cut_off?, "
            "partial? (rows may be missing because the output was cut off or some rows were "
            "refused)"
        ),
    ),
    FactKind(
        "NOT_READ",
        "an empty or possibly incomplete dump or store, a refused file, or a server log of which "
        "fewer than half of the lines were understood",
        details=fields(
            "what (command or file), name? (of the name server), lines, understood, code, why "
            "(reason for the first refusal), first_line, looks_like"
        ),
    ),
    FactKind(
        "NOT_COLLECTED",
        "an item that the collector could not copy or query, or an unfinished copy (.part)",
        details=fields("what (a path in the collection, a broker or a query), why"),
    ),
    FactKind(
        "GROUP_RENAMED",
        "logs name a group differently from dumps or stores, whose name is used",
        details=fields(
            "in_logs, group (the name in dumps and stores), log, dump (the files with these "
            "names; dump may be a store)"
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
        "a broker's progress in a revive queue, according to consumerProgress",
        MOMENTS,
        about=_OF_BROKER,
        details=fields("revive_queue, offset (the last one read), end (the next to be written)"),
    ),
    FactKind(
        "REVIVE_METRICS",
        "a revive queue, according to the broker's metrics",
        MOMENTS,
        about=_OF_BROKER,
        details=fields(
            "revive_queue, late_ms (how long ago its first checkpoint was due), waiting (unread "
            "entries)"
        ),
    ),
    FactKind(
        "BROKER_REGISTERED",
        "the last line about the broker in a name server's log",
        about=_OF_BROKER,
        details=fields(
            "name, registered, untold_ms? (time since which the broker had been "
            "registered, without a line that removed it)"
        ),
    ),
    FactKind(
        "GROUP_CONFIG",
        "the group's settings in the broker's last subscriptionGroup.json",
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
        "the number of entries read from that file",
        about=_OF_BROKER,
        details=fields("groups, rejected (entries)"),
    ),
    FactKind(
        "GROUP_AT_BROKER",
        "the group's consumerConnection output for this broker",
        MOMENTS,
        details=fields(_AT_BROKER),
    ),
    FactKind(
        "GROUP_AT_PROXY",
        "the group's consumerConnection output for a proxy",
        MOMENTS,
        details=fields(_AT_BROKER + ", proxy"),
    ),
    FactKind(
        "CONNECTION",
        "a member that consumerConnection lists",
        MOMENTS,
        about=_OF_CLIENT,
        details=fields("client_addr, language, version, proxy? (if a proxy was queried)"),
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
        "a client's pop process queue; queue_id -1 stands for any queue of the broker",
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
        "a client's heartbeatBrokerInterval, if it differs from the default",
        about=_OF_CLIENT,
        details=fields("interval_ms"),
    ),
    FactKind(
        "GAVE_UP_ASKING",
        "a client with clientRebalance=false allocates the topic's queues itself",
        about=("topic", *_OF_CLIENT),
        details=fields(
            "strategy, over_ms? (when it queried the broker again or was restarted), over_by? "
            "(the line that shows this)"
        ),
    ),
    FactKind(
        "CONSUME_RATE",
        "a client's mean consume RT for a topic over the last minute",
        MOMENTS,
        about=("topic", *_OF_CLIENT),
        details=fields("consume_rt_ms"),
    ),
    FactKind(
        "ORDER_BLOCK",
        "the last pop of a FIFO group from the queue, according to consumerOrderInfo.json",
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
        "a group's pops from a topic and its retry topic, according to the broker's metrics; "
        "counts start at the broker's start, and a count that the metrics lack is empty",
        MOMENTS,
        about=("topic", "broker_name"),
        details=fields(
            "checkpoints (written by pops and renewals), acknowledgements (written by "
            "acknowledgements and renewals), failed (checkpoints and acknowledgements that the "
            "store refused), put_back (messages written to the retry topic), given (messages "
            "delivered from the topic), given_again (messages delivered from its retry topic), "
            "in_flight (messages popped but not acknowledged at that moment)"
        ),
    ),
    FactKind(
        "NOT_ONLINE",
        "consumerConnection failed with CODE 206 because the broker or proxy knows no member",
        MOMENTS,
        details=fields("proxy? (if a proxy was queried)"),
    ),
    FactKind(
        "PROXY",
        "a proxy that was collected or is expected",
        details=fields("name, mode (CLUSTER, LOCAL), addresses, files (number of files)"),
    ),
    FactKind(
        "STUCK_QUEUE",
        "a warning by mqadmin about a queue",
        MOMENTS,
        about=(*QUEUE, *_OF_CLIENT),
        details=fields("trouble (lock, unlock, consume), count"),
    ),
    FactKind(
        "QUEUE_PROGRESS",
        "a consumerProgress row",
        MOMENTS,
        about=QUEUE,
        details=fields(
            "broker_offset, consumer_offset (0 may mean no commit), last_time_ms, client_ip, "
            "with_clients (-s true), names_cut (truncated topic or broker name)"
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
    "The duration of a request, according to log lines at the default level.",
    columns(
        """
        cluster STRING the RocketMQ cluster
        kind STRING {allowed}
        consumer_group STRING the group
        client_id? STRING the client that sent the request; null: not known
        broker_name? STRING the broker that it concerns; null: not known
        version? STRING version of the client; null: not known
        at_ms BIGINT when the request ended
        ms DOUBLE duration in milliseconds
        source STRING file:line that shows the end
        """,
        kind=LATENCY_KINDS,
    ),
    required=False,
)

ADD, DROP = "ADD", "DROP"
QUEUE_MOVES = Table(
    "queue_moves",
    "A queue that a client's rebalance pass took over or revoked, according to the client's log.",
    columns(
        """
        cluster STRING the RocketMQ cluster
        consumer_group STRING the group
        topic STRING the topic
        broker_name STRING the broker
        queue_id INT the queue id on that broker
        client_id? STRING the client; null: the log does not show which of several clients
        at_ms BIGINT when the client logged it
        action STRING {allowed}
        source STRING file:line of the move
        """,
        action=(ADD, DROP),
    ),
    required=False,
)

OBSERVED_TABLES = {
    table.name: table for table in (OBSERVED_OWNERSHIP, OBSERVED_MEMBERS, OBSERVED_FACTS)
}
