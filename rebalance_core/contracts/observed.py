"""What the audit compares with: live ownership and members as dumps show them."""

from rebalance_core.contracts.fact_declaration import MOMENTS, FactKind, fact_kinds
from rebalance_core.contracts.log_facts import LOG_FACTS
from rebalance_core.contracts.table import Table, columns
from rebalance_core.model.group_settings import MESSAGE_MODELS

OBSERVED_OWNERSHIP = Table(
    "observed_ownership",
    "A queue held by a client as a dump shows it.",
    columns(
        """
        cluster STRING the RocketMQ cluster
        consumer_group STRING the group
        topic STRING the topic
        broker_name STRING the broker
        queue_id INT the queue id on that broker
        client_id STRING the holder
        observed_ms BIGINT when it was seen, epoch ms UTC
        source STRING file:line it came from
        """
    ),
    required=False,
)

OBSERVED_MEMBERS = Table(
    "observed_members",
    "A member of a group as one broker lists it.",
    columns(
        """
        cluster STRING the RocketMQ cluster
        consumer_group STRING the group
        asked_broker? STRING the broker that was asked; null: unknown, or a proxy was asked
        client_id STRING the member
        client_addr? STRING its address
        language? STRING its language
        version? STRING its version
        subscriptions? ARRAY<STRING> its topics
        message_model? STRING {allowed}
        consume_from_where? STRING ConsumeFromWhere
        observed_ms BIGINT when it was seen, epoch ms UTC
        source STRING file:line it came from
        """,
        message_model=MESSAGE_MODELS,
    ),
    required=False,
)

OBSERVED_FACTS = Table(
    "observed_facts",
    "What files state of a group, topic or server beside the other tables; evidence of the audit.",
    columns(
        """
        cluster STRING the RocketMQ cluster
        kind STRING what is stated, one of FACT_KINDS
        consumer_group? STRING the group concerned
        topic? STRING the topic concerned
        broker_name? STRING the broker concerned, or that stated it
        queue_id? INT the queue concerned
        client_id? STRING the client concerned
        first_ms BIGINT when it was stated first, epoch ms UTC
        last_ms BIGINT when it was stated last, epoch ms UTC
        times BIGINT rows of one dump; else in how many seconds it was stated
        details MAP<STRING, STRING> the fields of the kind
        source STRING file:line of the first statement
        """
    ),
    required=False,
)

ROLES = ("BROKER", "NAME_SERVER", "PROXY", "CLIENT", "ADMIN")
FROM_START = "begins with the start of the broker"
"""Note of a broker's log before which there is nothing to tell."""
CLOCK_UNSURE = "its clock differs from others, and nothing tells which is right"
STEADY = "has a line every few seconds"
"""Note of a name server's log that was cut where it ends: else it would go on."""

COVERAGE = Table(
    "coverage",
    "What the files of one kind of one host can tell of: a stretch of a log, or the moment of a "
    "store or dump. What no row covers was not looked at.",
    columns(
        """
        cluster STRING the RocketMQ cluster
        host STRING the folder of its files; of mqadmin's output `mqadmin`
        role STRING {allowed}
        kind STRING kind of file, as `_run.json` has it
        from_ms? BIGINT first line, or when it was written, epoch ms UTC; null: not known
        to_ms? BIGINT last line; of a store or dump as from_ms
        lines BIGINT lines (of a document: rows) that were read
        understood BIGINT those that were understood
        facts BIGINT what they state
        complete BOOLEAN whole: false: cut off, refused, or not readable to its end
        clock_offset_ms? BIGINT how far its clock is behind the others; null: not known
        time_zone? STRING the zone that its times are read in; null: they are epoch times
        note? STRING what is special; why it is not complete
        """,
        role=ROLES,
    ),
    key=("cluster", "host", "role", "kind", "from_ms"),
    required=False,
    since=3,
)

_OTHER_KINDS = (
    FactKind("COLLECTED", "the collection as a whole: start_ms, end_ms"),
    FactKind("EXPECTED_BROKER", "collection.toml expects this broker"),
    FactKind("EXPECTED_NAME_SERVER", "collection.toml expects this name server: name"),
    FactKind(
        "BROKER_FILE",
        "what was collected of a broker, its first and last statement (a store: copy): file "
        "(log, store), name (broker.log, lock.log, topics.json, …), files, facts (a log with 0: "
        "its time is not known and is the collection's end); of broker.log also until_ms (time of "
        "its last line), unreadable (files of which the end could not be read) and folders (whose "
        "logs speak for the broker)",
    ),
    FactKind(
        "BROKER_STORE",
        "the broker keeps its configurations in RocksDB: form (ROCKSDB, SINGLE_ROCKSDB, "
        "ROCKSDB_V2, joined by or), topics.json, subscriptionGroup.json, consumerOffset.json "
        "(when the newest copy of each was exported, epoch ms; empty: there is none, or no file "
        "tells)",
    ),
    FactKind(
        "BROKER_SLAVES",
        "the broker has slaves: mode, what they do without its master (REFUSED, SLAVE_READ, "
        "ACTING; empty: no file tells)",
    ),
    FactKind("NAME_SERVER_FILE", "a name server's log was collected: name, files, facts"),
    FactKind(
        "DUMP",
        "one output of mqadmin on a group, topic or broker (client_id: the file of that "
        "client): command, rows, rejected (lines not understood), error (empty: none was "
        "printed), proxy (where one was asked), queues_told (of a client's consumerStatus: false "
        "where it ends before its queues or among them), cut_off (true where the output ends too "
        "early)",
        MOMENTS,
    ),
    FactKind(
        "NOT_READ",
        "a dump or store that is there, is not empty and states nothing, or a server's log (all "
        "its files together) of which under half the lines are understood, or a file that was "
        "refused before it was read, or a dump that is cut off (understood: what is left of it): "
        "what (the command of a dump; store; broker.log; "
        "namesrv.log; proxy.log), name (of the name server), lines, understood, why (the first "
        "refusal), first_line, looks_like (what the file seems to be instead)",
    ),
    FactKind("BROKER_IN_CLUSTER", "clusterList lists this broker: version, broker_id, addr"),
    FactKind(
        "BROKER_REGISTERED",
        "the last that a name server's log says of the broker: name, registered (true, false); "
        "no row: the log does not name it",
    ),
    FactKind(
        "GROUP_CONFIG",
        "the last subscriptionGroup.json of this broker has the group: consume_enable, "
        "consume_broadcast_enable, consume_from_min_enable, consume_message_orderly, "
        "notify_consumer_ids_changed_enable, retry_queue_nums, retry_max_times, broker_id, "
        "which_broker_when_consume_slowly, consume_timeout_minute, group_sys_flag, "
        "subscriptions, attributes (empty: that version has no such field)",
    ),
    FactKind(
        "GROUP_CONFIGS",
        "the last subscriptionGroup.json of this broker could be read: groups, rejected "
        "(entries that could not)",
    ),
    FactKind(
        "GROUP_AT_BROKER",
        "consumerConnection of this broker: members (0: it printed none, the rest is empty), "
        "topics, consume_type, message_model, consume_from_where",
        MOMENTS,
    ),
    FactKind(
        "GROUP_AT_PROXY",
        "consumerConnection of a proxy, which lists the members behind all: as GROUP_AT_BROKER, "
        "and proxy",
        MOMENTS,
    ),
    FactKind(
        "CONNECTION",
        "a member that consumerConnection of this broker lists: client_addr, language, version; "
        "proxy (where one was asked, then without broker and version: it answers its own)",
        MOMENTS,
    ),
    FactKind(
        "HELD_QUEUE",
        "a queue in a client's process queue table: commit_offset, cached_messages, locked, "
        "try_unlock_times, dropped, last_lock_ms, last_pull_ms, last_consume_ms",
        MOMENTS,
    ),
    FactKind(
        "POP_QUEUE",
        "a queue in a client's pop process queue table (queue_id -1: any of the broker's): "
        "wait_ack_count, dropped, last_pop_ms",
        MOMENTS,
    ),
    FactKind(
        "POP_SETTINGS",
        "how a client that can pop is set (consumerStatus): invisible_ms, threads",
        MOMENTS,
    ),
    FactKind(
        "HEARTBEAT_INTERVAL",
        "heartbeatBrokerInterval of a client that is not set to the default (consumerStatus): "
        "interval_ms",
    ),
    FactKind(
        "GAVE_UP_ASKING",
        "a client that is set to ask brokers (clientRebalance=false) divides the topic itself, as "
        "its log says: strategy",
    ),
    FactKind(
        "CONSUME_RATE",
        "how long the listener of a client takes for a message of a topic (consumerStatus), the "
        "mean of the last minute: consume_rt_ms",
        MOMENTS,
    ),
    FactKind(
        "ORDER_BLOCK",
        "consumerOrderInfo.json: the messages of a FIFO group's queue that were popped last: "
        "attempt_id, commit_bits (bit n set: the nth of offsets was acknowledged), offsets, "
        "pop_ms, invisible_ms, next_visible_ms (latest of those renewed; empty: none was), "
        "blocked_until_ms (until then nothing after them is given out, as OrderInfo.needBlock has "
        "it; empty: all were acknowledged, or the file does not tell)",
        MOMENTS,
    ),
    FactKind(
        "NOT_ONLINE",
        "consumerConnection failed with CODE 206: the broker, or the proxy that details name, "
        "knows no member of the group; brokers never know one behind a CLUSTER mode proxy",
        MOMENTS,
    ),
    FactKind(
        "PROXY",
        "a proxy whose files were collected or that collection.toml expects: name, mode (CLUSTER, "
        "LOCAL; empty: not known), addresses (its own, as its connections show them), files "
        "(how many)",
    ),
    FactKind(
        "STUCK_QUEUE",
        "mqadmin warns of a client's queue: trouble (lock, unlock, consume), count",
        MOMENTS,
    ),
    FactKind(
        "QUEUE_PROGRESS",
        "consumerProgress: broker_offset, consumer_offset (0 may mean none), last_time_ms, "
        "client_ip, with_clients (run with -s true), names_cut (topic or broker may be cut)",
        MOMENTS,
    ),
)

FACT_KINDS = fact_kinds(_OTHER_KINDS, LOG_FACTS.values())
"""The kinds of `OBSERVED_FACTS`: of stores, dumps and the collection, then those of `LOG_FACTS`.

Refusals, drops and failures more than `EPISODE_MS` apart are rows of their own; so is what each
dump says. Anything else is one row.
"""

OBSERVED_TABLES = {
    table.name: table for table in (OBSERVED_OWNERSHIP, OBSERVED_MEMBERS, OBSERVED_FACTS)
}
