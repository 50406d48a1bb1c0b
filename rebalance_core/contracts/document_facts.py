"""Declarations of the facts that stores and dumps state, and of those that `ingest` infers."""

from dataclasses import replace

from rebalance_core.contracts.fact_declaration import DocumentFact, document_facts, fields

_QUEUE = "topic, broker_name, queue_id: int"
_OF_CLIENT = "client_file? (the queried client), partial?: bool (some of its rows may be missing)"
_LISTED = (
    "subscriptions: tuple[tuple[str, str], ...], consume_type: str | None, "
    "message_model: str | None, consume_from_where: str | None"
)
_CONFIG = (
    "consumer_group, consume_enable: bool, consume_broadcast_enable: bool, "
    "consume_from_min_enable: bool, consume_message_orderly: bool | None, "
    "notify_consumer_ids_changed_enable: bool | None, retry_queue_nums: int, "
    "retry_max_times: int, broker_id: int, which_broker_when_consume_slowly: int, "
    "consume_timeout_minute: int | None, group_sys_flag: int | None, "
    "subscriptions: tuple[str, ...], attributes: dict[str, str]"
)
_TOPIC = (
    "topic, read_queue_nums: int, write_queue_nums: int, perm: int, order: bool, "
    "topic_sys_flag: int, attributes: dict[str, str]"
)

STORES = (
    DocumentFact("topic_config", "a topic in topics.json", fields(_TOPIC)),
    DocumentFact("subscription_group", "a group in subscriptionGroup.json", fields(_CONFIG)),
    DocumentFact(
        "committed_offset",
        "a committed offset in consumerOffset.json",
        fields("consumer_group, topic, queue_id: int, committed_offset: int"),
    ),
    DocumentFact(
        "local_offset",
        "a committed offset in a client's local store",
        fields(_QUEUE + ", committed_offset: int, client_id, consumer_group"),
    ),
    DocumentFact(
        "order_info",
        "the order information for a FIFO group's last pop from a queue",
        fields(
            "consumer_group, topic, queue_id: int, attempt_id, commit_bits: int, "
            "offsets: list[int], pop_ms: int, invisible_ms: int, next_visible_ms: int | None, "
            "blocked_until_ms: int | None"
        ),
    ),
    DocumentFact(
        "request_mode", "the request mode of a topic", fields("consumer_group, topic, mode")
    ),
    DocumentFact(
        "data_version",
        "the version of a store",
        fields("counter: int, state_version: int | None, timestamp_ms: int"),
    ),
    DocumentFact(
        "store_form",
        "the stores that a RocksDB contains",
        fields(
            "forms: list[str], modified: list[tuple[str, int]] (a JSON store and its write time)"
        ),
    ),
    DocumentFact(
        "revive_metrics",
        "a revive queue, as reported by the broker's exporter",
        fields("revive_queue: int, late_ms: int, waiting: int | None, node: str | None"),
    ),
    DocumentFact(
        "pop_counts",
        "a broker's counters for a group's pops from a topic, as reported by its exporter",
        fields(
            "consumer_group, topic, node: str | None, checkpoints: int | None, "
            "acknowledgements: int | None, failed: int | None, put_back: int | None, "
            "given: int | None, given_again: int | None, in_flight: int | None"
        ),
    ),
    DocumentFact(
        "group_configs",
        "the entries read from subscriptionGroup.json",
        fields("groups: int, rejected: int"),
    ),
    DocumentFact(
        "exported_topic",
        "a topic in an export",
        fields(_TOPIC + ", summed: bool (over all brokers)"),
    ),
    DocumentFact(
        "exported_subscription_group", "a group in an export", fields(_CONFIG + ", summed: bool")
    ),
)

DUMPS = (
    DocumentFact(
        "dump",
        "the output of one command as a whole",
        fields(
            "command, group: str | None, topic: str | None, broker: str | None, "
            "client_id: str | None, rows: int, rejected: int, error, cut_off: bool, "
            "partial: bool, queues_told?: bool | None"
        ),
    ),
    DocumentFact(
        "no_members", "the command failed", fields("code: int | None, offline_group?: str")
    ),
    DocumentFact(
        "group_connection",
        "a group at a broker",
        fields("members: int, partial?: bool, " + _LISTED),
    ),
    DocumentFact(
        "member",
        "a connection at a broker",
        fields(
            "client_id, client_addr, language: str | None, version, partial?: bool, "
            "unpadded?: bool (nothing shows where it lost characters), " + _LISTED
        ),
    ),
    DocumentFact(
        "client",
        "a client's status, as reported by the client",
        fields(
            "consumer_group: str | None, message_model: str | None, "
            "consume_from_where: str | None, consume_timestamp: str | None, version: str | None, "
            "client_ip: str | None, instance_name: str | None, namesrv_addr: str | None, "
            "start_ms: int | None, pull_threshold_for_queue: int | None, "
            "pull_threshold_size_for_queue: int | None, pull_threshold_for_topic: int | None, "
            "pull_threshold_size_for_topic: int | None, consumer_type: str | None, "
            "strategy: str | None, ordered: bool | None, client_rebalance: bool | None, "
            "properties: dict[str, str], queues_told: bool, " + _OF_CLIENT
        ),
    ),
    DocumentFact(
        "client_subscription",
        "a topic that the client subscribes to",
        fields("topic, expression, class_filter: bool, " + _OF_CLIENT),
    ),
    DocumentFact(
        "client_queue",
        "a queue that the client holds",
        fields(
            _QUEUE + ", commit_offset: int, cached_messages: int, cached_min_offset: int, "
            "cached_max_offset: int, try_unlock_times: int, cached_mib: int | None, "
            "last_lock_ms: int, last_pull_ms: int, last_consume_ms: int, locked: bool, "
            "dropped: bool, " + _OF_CLIENT
        ),
    ),
    DocumentFact(
        "client_pop_queue",
        "a queue that the client pops from",
        fields(_QUEUE + ", wait_ack_count: int, dropped: bool, last_pop_ms: int, " + _OF_CLIENT),
    ),
    DocumentFact(
        "client_rates",
        "a client's rates for a topic",
        fields(
            "topic, pull_rt: float, pull_tps: float, consume_rt: float, consume_ok_tps: float, "
            "consume_failed_tps: float, consume_failed_msgs: int, " + _OF_CLIENT
        ),
    ),
    DocumentFact(
        "client_offset",
        "a client's committed offset",
        fields(_QUEUE + ", commit_offset: int, " + _OF_CLIENT),
    ),
    DocumentFact("listed_client", "a queried client", fields("client_id, version")),
    DocumentFact(
        "stuck_queue",
        "a warning by mqadmin about a queue",
        fields("client_id, " + _QUEUE + ", trouble (lock, unlock, consume), count: int"),
    ),
    DocumentFact(
        "queue_progress",
        "a consumerProgress row",
        fields(
            _QUEUE + ", topic_truncated: bool, broker_name_truncated: bool, broker_offset: int, "
            "consumer_offset: int, diff: int, inflight: int | None, last_time_ms: int | None, "
            "with_clients: bool, client_ip: str | None, "
            "client_id?: str | None (the dashboard has it)"
        ),
    ),
    DocumentFact(
        "queue_offsets",
        "a topicStatus row",
        fields(
            "broker_name, broker_name_truncated: bool, queue_id: int, min_offset: int, "
            "max_offset: int, last_updated_ms: int | None"
        ),
    ),
    DocumentFact(
        "route_broker",
        "a broker in a route",
        fields("cluster, broker_name, addresses: dict[str, str], acting?: bool | None"),
    ),
    DocumentFact(
        "route_queues",
        "a broker's queues in a route",
        fields(
            "broker_name, read_queue_nums: int, write_queue_nums: int, perm: int, partial?: bool"
        ),
    ),
    DocumentFact(
        "broker",
        "a clusterList row",
        fields(
            "cluster, broker_name, broker_id: int, addr, version: str | None, "
            "activated: bool | None"
        ),
    ),
    DocumentFact(
        "server_settings",
        "a server's settings (getBrokerConfig)",
        fields("address, settings: dict[str, str]"),
    ),
    DocumentFact("queue_mapping", "the topic is static", fields("topic")),
    DocumentFact(
        "rocksdb_export",
        "an export was requested",
        fields("done: bool, whole_cluster: bool, argument? (of the command)"),
    ),
)

CLOSING = (
    DocumentFact(
        "admin_error", "the command failed", fields("exception, code: int | None, message")
    ),
    DocumentFact(
        "progress_total", "a total at the end of consumerProgress", fields("name, total: float")
    ),
)
"""Facts about an output as a whole: they are stored in `dump` and are not evidence by themselves.
"""

CONCLUDED = (
    DocumentFact("broker_local", "the broker's end of a connection", fields("address")),
    DocumentFact("broker_topic", "the topic named after a broker", fields("topic")),
    DocumentFact("proxy_local", "the proxy's end of a connection", fields("address")),
    DocumentFact("lite_topic", "the topic is of type LITE", fields("topic")),
    DocumentFact(
        "revive_progress",
        "a broker's revive queue, as reported by consumerProgress",
        fields("broker_name, queue_id: int, broker_offset: int, consumer_offset: int"),
    ),
    DocumentFact(
        "reset_kept",
        "a broker stored an offset reset",
        fields("group, topic, broker, queue_id: int, offset: int"),
    ),
    DocumentFact(
        "queues_changed", "a broker's log states different queues for the topic", fields("topic")
    ),
    DocumentFact("group_connected", "a member of the group is registered"),
    DocumentFact("request_modes", "messageRequestMode.json was read completely"),
    DocumentFact(
        "store_copied",
        "a copy of a store",
        fields("store, digest: str | None, version_ms: int | None, whole: bool"),
    ),
    DocumentFact("store_printed", "mqadmin printed a store", fields("store")),
    DocumentFact("broker_out", "a broker went away"),
    DocumentFact("log_ended", "the broker's log ends"),
    DocumentFact(
        "consumer_listed",
        "a connection that only a dump shows",
        fields(
            "channel, client_id, topics: list[str] | None, message_model: str | None, "
            "consume_from_where: str | None, "
            "known_ms: int | None, ended?: bool (the broker's log had ended by then), "
            "later?: bool (its topics are those that it stated when all logs had ended)"
        ),
    ),
    DocumentFact(
        "members_listed",
        "all connections of a broker whose log has ended",
        fields("members: dict[str, list[ConsumerListedValues]] (by client id)"),
    ),
    DocumentFact("topics_listed", "all topics of a client", fields("client_id, topics: set[str]")),
)


def _markable(fact: DocumentFact) -> DocumentFact:
    """Return the fact about an output that may be marked because rows may be missing."""
    if any(field.name == "partial" for field in fact.fields):
        return fact
    return replace(fact, fields=(*fact.fields, *fields("partial?: bool")))


DOCUMENT_FACTS: dict[str, DocumentFact] = document_facts(
    (*STORES, *map(_markable, DUMPS), *CLOSING, *CONCLUDED)
)


SUBJECTS: dict[str, tuple[str, ...]] = {
    "members": (
        "consumer_connected",
        "consumer_data",
        "consumer_left",
        "consumer_closed",
        "consumer_expired",
        "consumer_listed",
        "members_listed",
        "topics_listed",
        "log_ended",
        "broker_starting",
        "broker_out",
    ),
    "group": (
        "consumer_connected",
        "consumer_data",
        "consumer_left",
        "consumer_closed",
        "consumer_expired",
        "group_topic",
        "group_emptied",
        "group_updated",
        "subscription_changed",
        "queue_locked",
        "lock_refused",
        "allocated",
        "broker_allocated",
        "heartbeat",
        "client_language",
        "suspended",
        "resumed",
        "paused",
        "unsubscribed",
        "left_broker",
        "queue_taken",
        "queue_given_up",
        "order_lock",
        "notified",
        "request_mode",
        "subscription_group",
        "client",
        "client_subscription",
        "client_queue",
        "client_pop_queue",
        "listed_client",
        "member",
        "group_connection",
        "no_members",
        "queue_progress",
    ),
    "logged_members": (
        "consumer_connected",
        "consumer_data",
        "consumer_left",
        "consumer_closed",
        "consumer_expired",
    ),
    "topics": (
        "topic_created",
        "topic_updated",
        "topic_loaded",
        "topic_deleted",
        "topic_registered",
        "topic_route",
        "topic_config",
        "route_queues",
        "group_connected",
        "queue_offsets",
        "queue_progress",
    ),
    "commits": (
        "committed",
        "offset_reset",
        "commit_refused",
        "offset_went_back",
        "queue_progress",
        "committed_offset",
        "local_offset",
    ),
    "strategies": (
        "allocated",
        "broker_allocated",
        "client",
        "client_queue",
        "consumer_connected",
        "member",
        "queue_progress",
    ),
    "cluster": (
        "broker_starting",
        "broker_booted",
        "broker_property",
        "broker_follows",
        "broker_copy_failed",
        "broker_role",
        "min_broker",
        "broker_stopping",
        "broker_registered",
        "broker_address",
        "broker_known",
        "broker_removed",
        "replica_removed",
        "broker_channel_closed",
        "broker_expired",
        "name_server_property",
        "name_server_starting",
        "name_server_stopping",
        "client_created",
        "pull_refused",
        "proxy_starting",
        "proxy_mode",
        "proxy_alive",
        "proxy_local",
        "route_broker",
        "broker",
        "server_settings",
        "queue_mapping",
        "rocksdb_export",
        "store_copied",
        "store_printed",
        "store_form",
        "request_modes",
        "broker_local",
        "broker_topic",
        "lite_topic",
        "reset_kept",
        "queues_changed",
    ),
    "registration": ("broker_registered", "broker_address", "broker_known"),
    "cluster_documents": (
        "dump",
        "group_configs",
        "broker",
        "server_settings",
        "revive_progress",
        "revive_metrics",
    ),
    "dumped_members": (
        "client",
        "client_subscription",
        "consumer_connected",
        "heartbeat",
        "member",
    ),
}
"""Kinds of evidence by the code that reads them; a union of all kinds would slow mypy down by
minutes.
"""

FACT_SUBJECTS: dict[str, tuple[str, ...]] = {
    "dating": (
        "broker",
        "broker_booted",
        "broker_registered",
        "client",
        "client_created",
        "client_queue",
        "committed",
        "committed_offset",
        "consumer_closed",
        "consumer_connected",
        "consumer_expired",
        "consumer_left",
        "data_version",
        "group_connection",
        "group_created",
        "group_deleted",
        "heartbeat",
        "member",
        "no_members",
        "notified",
        "queue_offsets",
        "queue_progress",
        "route_queues",
        "subscription_group",
        "topic_config",
        "topic_updated",
    ),
    "answer": (
        "admin_error",
        "broker",
        "client",
        "client_pop_queue",
        "client_queue",
        "group_connection",
        "member",
        "no_members",
        "progress_total",
        "queue_progress",
    ),
}
"""The same for facts whose subject is not yet resolved: those that date the file and its clock, and
those about an output as a whole.
"""
