"""Declarations of the facts that log lines state."""

from dataclasses import replace

from rebalance_core.contracts.fact_declaration import (
    ALLOCATION_FAILED,
    BROKER,
    CLIENT,
    CLIENT_TOPIC,
    CLUSTER,
    COMMIT,
    EPISODES,
    GROUP,
    LOCK,
    MESSAGE_RETENTION,
    MOMENTS,
    NAME_SERVER,
    ONE_A_MINUTE,
    ONE_A_PLACE,
    ONE_A_SECOND,
    PROXY,
    QUEUE,
    TOPIC,
    FactKind,
    LogFact,
    fields,
    log_facts,
    trouble,
)
from rebalance_core.model.times import BROKER_LOCK_LIFE_MS, HOUR_MS, MINUTE_MS

BROKER_LOG = (
    LogFact(
        "consumer_connected", BROKER, GROUP,
        "a member opened a new connection",
        fields(
            "group, consume_type, message_model, channel, client_id, language, "
            "version: int | None, beat_ms: int, local?, proxy_addr?, protocol?, "
            "remote?: bool, topics?: list[str] | None"
        ),
        of_slaves=True,
    ),
    LogFact(
        "consumer_data", BROKER, GROUP,
        "the connection's subscriptions, as reported by a heartbeat",
        fields(
            "group, channel (remote address), consume_type, message_model, "
            "consume_from_where: str | None, topics: list[str], expressions: dict[str, str], "
            "versions: dict[str, int], known_ms: int | None"
        ),
        of_slaves=True,
        rows=(CLIENT_TOPIC,),
    ),
    LogFact(
        "consumer_left", BROKER, GROUP,
        "a graceful leave by UNREGISTER_CLIENT",
        fields(
            "group, channel, client_id, language, version: int | None, beat_ms: "
            "int, local?, proxy_addr?, protocol?, remote?: bool, topics?: "
            "list[str] | None"
        ),
        of_slaves=True,
    ),
    LogFact(
        "consumer_closed", BROKER, GROUP,
        "the broker detected that a member's connection had closed",
        fields(
            "group, channel, client_id, language, version: int | None, beat_ms: "
            "int, local?, proxy_addr?, protocol?, remote?: bool, topics?: "
            "list[str] | None"
        ),
        of_slaves=True,
        rows=(
            FactKind(
                "CONNECTION_CLOSED", "a member's connection closed", MOMENTS,
                about=("broker_name", "client_id"),
            ),
        ),
    ),
    LogFact(
        "consumer_expired", BROKER, GROUP,
        "the broker's scan removed a member; the line has no client id",
        fields("group, channel, client_id?"),
        of_slaves=True,
    ),
    LogFact(
        "group_topic", BROKER, GROUP,
        "a topic was added to the group's table; the line names no member",
        fields("group, topic, expression"),
        of_slaves=True,
    ),
    LogFact(
        "group_emptied", BROKER, GROUP,
        "the group's last member is gone, so the broker removed the group's table",
        fields("group"),
        of_slaves=True,
    ),
    LogFact(
        "topic_created", BROKER, TOPIC,
        "the topic was created with empty queues",
        fields("topic, read: int, write: int, perm: int"),
    ),
    LogFact(
        "topic_updated", BROKER, TOPIC,
        "the topic's configuration was updated",
        fields(
            "topic, read: int, write: int, perm: int, old: TopicCreatedValues "
            "(the same before)"
        ),
    ),
    LogFact(
        "topic_loaded", BROKER, TOPIC,
        "the topic already existed when the broker started",
        fields("topic, read: int, write: int, perm: int"),
    ),
    LogFact(
        "topic_deleted", BROKER, TOPIC,
        "the topic was deleted",
        fields("topic"),
    ),
    LogFact(
        "broker_starting", BROKER, CLUSTER,
        "the broker is starting with an empty consumer table",
        fields("perm?: int (brokerPermission)"),
    ),
    LogFact(
        "broker_booted", BROKER, CLUSTER,
        "the broker has started",
        fields("broker, address"),
        rows=(
            FactKind(
                "BROKER_STARTED", "the broker has started or restarted", MOMENTS,
                about=("broker_name",),
                details=fields("address (of the broker itself; empty if no line has it)"),
            ),
        ),
    ),
    trouble(
        "channel_event_dropped", BROKER, CLUSTER,
        fields("size, type (CONNECT, CLOSE, IDLE, EXCEPTION)"),
        "CHANNEL_EVENTS_DROPPED",
        "the broker dropped channel events because their queue was full",
        about=("broker_name",),
        details=fields("type (of the dropped events)"),
    ),
    LogFact(
        "broker_property", BROKER, CLUSTER,
        "a broker setting, as read at startup",
        fields(
            "name (brokerName, brokerId: 4.9; brokerRole, slaveReadEnable, "
            "enableSlaveActingMaster; notifyConsumerIdsChangedEnable, "
            "realTimeNotifyConsumerChange: where false, or changed later; "
            "accessMessageInMemoryMaxRatio: where 0), value"
        ),
    ),
    LogFact(
        "message_retention", BROKER, CLUSTER,
        "the broker's message retention time (fileReservedTime), as read at startup or changed "
        "later",
        fields("hours: int"),
        facts_only=True,
        rows=(MESSAGE_RETENTION,),
    ),
    LogFact(
        "broker_follows", BROKER, CLUSTER,
        "this slave replicates from the master at this address",
        fields("address"),
        thinning=ONE_A_MINUTE,
    ),
    LogFact(
        "broker_copy_failed", BROKER, CLUSTER,
        "this slave fails to replicate from the master at this address",
        fields("address"),
        thinning=ONE_A_MINUTE,
    ),
    LogFact(
        "broker_role", BROKER, CLUSTER,
        "the role assigned to this broker by the controller (5.x) or by a DLedger election (4.5 "
        "and later), which makes its brokerRole setting meaningless",
        fields("address?, broker?, slave: bool (else master)"),
    ),
    LogFact(
        "min_broker", BROKER, CLUSTER,
        "the replica that now has the lowest id, as logged by a slave that may act as master "
        "(5.x); id 0 is the master, and any other id is the acting master",
        fields("broker_id: int, address"),
    ),
    LogFact(
        "broker_stopping", BROKER, CLUSTER,
        "the broker's shutdown hook is running",
    ),
    LogFact(
        "group_created", BROKER, GROUP,
        "the group was created",
        fields("group, by (auto, admin)"),
        facts_only=True,
        rows=(
            FactKind(
                "GROUP_CREATED", "the group was created", MOMENTS,
                about=("broker_name",),
                details=fields("by (auto, admin)"),
            ),
        ),
    ),
    LogFact(
        "group_updated", BROKER, GROUP,
        "the group's settings were changed",
        fields(
            "group, changes (name: old → new), was?: bool (notifyConsumerIdsChangedEnable, if "
            "the line has it), now?: bool"
        ),
        rows=(
            FactKind(
                "GROUP_UPDATED", "an administrator updated the group's settings", MOMENTS,
                about=("broker_name",),
                details=fields("changes (name: old → new)"),
            ),
        ),
    ),
    LogFact(
        "group_deleted", BROKER, GROUP,
        "the group was deleted",
        fields("group"),
        facts_only=True,
        rows=(
            FactKind("GROUP_DELETED", "the group was deleted", MOMENTS, about=("broker_name",)),
        ),
    ),
    LogFact(
        "subscription_changed", BROKER, GROUP,
        "a heartbeat reported a newer subVersion, with the old and new expressions if they "
        "differ; without a version, a heartbeat that omitted the topic removed it from the "
        "group's table",
        fields("group, topic, version?: int, old?, new?"),
        of_slaves=True,
        thinning=ONE_A_SECOND,
        facts_only=True,
        rows=(
            FactKind(
                "TAGS_CHANGED", "the topic's filter expression changed", EPISODES,
                about=("topic", "broker_name"),
                details=fields("old, new"),
            ),
            FactKind(
                "TOPIC_DROPPED",
                "a heartbeat that omitted the topic removed it from the group's table",
                EPISODES,
                about=("topic", "broker_name"),
            ),
        ),
    ),
    trouble(
        "no_subscription", BROKER, GROUP,
        fields("group, topic"),
        "NO_SUBSCRIPTION",
        "the broker refused a pull because its table for the group lacks the topic",
        about=("topic", "broker_name"),
    ),
    trouble(
        "subscription_not_latest", BROKER, GROUP,
        fields("group"),
        "SUBSCRIPTION_NOT_LATEST",
        "the broker refused pulls until a heartbeat reported the member's newer subscription",
        about=("broker_name",),
    ),
    trouble(
        "group_not_known", BROKER, GROUP,
        fields("group"),
        "GROUP_NOT_KNOWN",
        "the broker refused a pull because it has no member of the group",
        about=("broker_name",),
    ),
    trouble(
        "offset_corrected", BROKER, GROUP,
        fields("group, topic, asked: int, given: int"),
        "OFFSET_CORRECTED",
        "the broker redirected a pull that requested an offset outside the queue",
        about=("topic", "broker_name"),
        details=fields("asked, given"),
    ),
    LogFact(
        "offset_not_corrected", BROKER, GROUP,
        "a slave lacks the requested offset and redirects the client to another replica",
        fields("group, topic, asked: int, sent_to: int (the replica's id)"),
        thinning=ONE_A_MINUTE,
        of_replicas=True,
        facts_only=True,
        rows=(
            FactKind(
                "OFFSET_NOT_CORRECTED",
                "a slave lacks the requested offsets and redirects clients to another replica; "
                "`times` counts minutes",
                EPISODES,
                MINUTE_MS,
                about=("topic", "broker_name"),
                details=fields("sent_to (its id), lowest_asked, highest_asked"),
            ),
        ),
    ),
    LogFact(
        "offset_went_back", BROKER, GROUP,
        "a commit below the stored offset",
        fields("group, topic, queue_id: int, host, asked: int, stored: int"),
        facts_only=True,
        rows=(
            FactKind(
                "OFFSET_WENT_BACK",
                "commits below the stored offset",
                EPISODES,
                about=QUEUE,
                details=fields(
                    "client_host (at most 5), highest_stored, lowest_asked, step_stored (of the "
                    "largest step), step_asked (of that step), steps (their number), read_again "
                    "(the sum of their differences)"
                ),
            ),
        ),
    ),
    LogFact(
        "offset_reset", BROKER, GROUP,
        "an administrator's offset reset, stored by the broker (useServerSideResetOffset, 5.2+)",
        fields("group, topic, broker, queue_id: int, offset: int"),
        rows=(
            FactKind(
                "OFFSET_RESET",
                "an administrator's offset reset that the broker accepted",
                MOMENTS,
                about=QUEUE,
                details=fields("offset"),
            ),
        ),
    ),
    LogFact(
        "reset_asked", BROKER, GROUP,
        "an administrator requested an offset reset; without an offset_reset at that time, the "
        "broker leaves the reset to the clients",
        fields("group, topic, by (address)"),
        facts_only=True,
        rows=(
            FactKind(
                "RESET_ASKED",
                "an administrator requested an offset reset from the broker",
                MOMENTS,
                about=("topic", "broker_name"),
            ),
        ),
    ),
    LogFact(
        "commit_refused", BROKER, COMMIT,
        "the broker refused a commit by a client that had not seen a reset; the reset stays in "
        "effect",
        fields("group, topic, queue_id: int"),
    ),
    LogFact(
        "broker_allocation_failed", BROKER, GROUP,
        "QueryAssignment (5.x) threw an exception",
        fields("group, topic, strategy, message"),
        thinning=ONE_A_SECOND,
        facts_only=True,
        rows=(ALLOCATION_FAILED,),
    ),
)  # fmt: skip

LOCK_LOG = (
    LogFact(
        "queue_locked",
        LOCK,
        GROUP,
        "a member requested an order lock from this broker",
        fields("group"),
        thinning=ONE_A_SECOND,
    ),
    LogFact(
        "lock_refused",
        LOCK,
        GROUP,
        "the broker refused a member's request for an order lock",
        fields("group, topic, broker_name, queue_id: int, client_id (of the requester), owner"),
        thinning=ONE_A_SECOND,
        rows=(
            FactKind(
                "LOCK_REFUSED",
                "client_id requested an order lock that another client holds",
                EPISODES,
                apart_ms=BROKER_LOCK_LIFE_MS,  # it asks at least once per pass
                about=(*QUEUE, "client_id"),
                details=fields("owner"),
            ),
        ),
    ),
)


NAME_SERVER_LOG = (
    LogFact(
        "broker_registered", NAME_SERVER, CLUSTER,
        "a new replica registered",
        fields("address, cluster? (5.0+)"),
    ),
    LogFact(
        "broker_address", NAME_SERVER, CLUSTER,
        "the broker name of a master that registered from a new address (4.9)",
        fields("broker, address, cluster?"),
        rows=(
            FactKind(
                "MASTER_ADDRESS",
                "a process registered as the broker's master from a different address than before",
                about=("broker_name",),
                details=fields("address, cluster"),
            ),
        ),
    ),
    LogFact(
        "broker_known", NAME_SERVER, CLUSTER,
        "the broker name of a master, repeated at each of its registrations (4.9)",
        fields("broker, address, cluster?"),
        thinning=ONE_A_MINUTE,
    ),
    LogFact(
        "broker_removed", NAME_SERVER, CLUSTER,
        "this name server has no replica of the broker left",
        fields("broker"),
    ),
    LogFact(
        "replica_removed", NAME_SERVER, CLUSTER,
        "this name server removed one process of a broker from the route",
        fields("address"),
    ),
    LogFact(
        "topic_registered", NAME_SERVER, TOPIC,
        "a broker registered its first queues of a topic",
        fields("topic, broker_name, read: int, write: int, perm: int"),
    ),
    LogFact(
        "topic_route", NAME_SERVER, TOPIC,
        "a topic's queues changed",
        fields(
            "topic, broker_name, read: int, write: int, perm: int, old: "
            "RouteBefore (the same before)"
        ),
    ),
    LogFact(
        "broker_channel_closed", NAME_SERVER, CLUSTER,
        "the name server detected that a broker's channel had closed",
    ),
    LogFact(
        "name_server_property", NAME_SERVER, CLUSTER,
        "a name server setting, as read at startup (5.x)",
        fields("name (supportActingMaster), value"),
    ),
    LogFact(
        "name_server_starting", NAME_SERVER, CLUSTER,
        "the name server is starting without any registered broker",
    ),
    LogFact(
        "name_server_stopping", NAME_SERVER, CLUSTER,
        "the name server is shutting down",
    ),
    LogFact(
        "broker_expired", NAME_SERVER, CLUSTER,
        "a broker has not registered for 120 s",
        fields("address"),
    ),
)  # fmt: skip


PROXY_LOG = (
    LogFact(
        "proxy_starting", PROXY, CLUSTER,
        "the proxy is starting with an empty consumer table",
        rows=(
            FactKind("PROXY_STARTED", "the proxy has started", MOMENTS, details=fields("proxy")),
        ),
    ),
    LogFact(
        "proxy_mode", PROXY, CLUSTER,
        "the proxy mode, as read at startup",
        fields("mode (CLUSTER, LOCAL)"),
    ),
    LogFact(
        "proxy_alive", PROXY, CLUSTER,
        "the proxy logged a line about a member; one fact per minute",
    ),
)  # fmt: skip


CLIENT_LOG = (
    LogFact(
        "client_created", CLIENT, CLUSTER,
        "a client instance was created, with those intervals that differ from the defaults",
        fields(
            "client_id, pollNameServerInterval? (ms), heartbeatBrokerInterval? "
            "(ms), persistConsumerOffsetInterval? (ms)"
        ),
    ),
    LogFact(
        "allocated", CLIENT, GROUP,
        "a client allocated the queues of a topic",
        fields(
            "group, client_id, topic, strategy, queues?: list[list[str | int]] "
            "(if they reveal the parameters)"
        ),
        thinning=ONE_A_PLACE,
        with_pid=True,
    ),
    LogFact(
        "broker_allocated", CLIENT, GROUP,
        "a broker allocated the queues of a topic (QueryAssignment)",
        fields(
            "group, client_id, topic, strategy, mode: str | None (None: no "
            "queue), whole_brokers: bool (any of its queues stands for all of a "
            "broker)"
        ),
        with_pid=True,
    ),
    LogFact(
        "heartbeat", CLIENT, GROUP,
        "a client's heartbeat; one fact per group",
        fields(
            "group, client_id, consume_type, message_model, consume_from_where, "
            "topics: list[str], expressions: dict[str, str], versions: dict[str, "
            "int], known_ms: int | None"
        ),
        with_pid=True,
        rows=(CLIENT_TOPIC,),
    ),
    LogFact(
        "client_language", CLIENT, GROUP,
        "a Go or C++ client, as identified by its log format",
        fields("group, client_id, language"),
        thinning=ONE_A_PLACE,
    ),
    LogFact(
        "committed", CLIENT, COMMIT,
        "a client committed an offset",
        fields("group, client_id: str | None, topic, broker, queue_id: int, offset: int"),
    ),
    LogFact(
        "suspended", CLIENT, GROUP,
        "the consumer was suspended",
        fields("group"), with_pid=True),
    LogFact(
        "resumed", CLIENT, GROUP,
        "the consumer was resumed",
        fields("group"), with_pid=True),
    LogFact(
        "paused", CLIENT, GROUP,
        "pull attempts by a suspended consumer, once per second",
        fields("group, instance"),
        thinning=ONE_A_SECOND,
        with_pid=True,
    ),
    LogFact(
        "unsubscribed", CLIENT, GROUP,
        "truncateMessageQueueNotMyTopic dropped the topic's queues",
        fields("group, topic"),
    ),
    LogFact(
        "queue_taken", CLIENT, GROUP,
        "a rebalance pass took over a queue",
        fields("group, topic, broker_name, queue_id: int"),
        with_pid=True,
    ),
    LogFact(
        "queue_given_up", CLIENT, GROUP,
        "a rebalance pass revoked a queue",
        fields("group, topic, broker_name, queue_id: int"),
        with_pid=True,
    ),
    LogFact(
        "left_broker", CLIENT, GROUP,
        "the client unregistered from one broker",
        fields("group"),
        with_pid=True,
    ),
    LogFact(
        "order_lock", CLIENT, GROUP,
        "the client requested an order lock",
        fields("group"),
        thinning=ONE_A_SECOND,
    ),
    LogFact(
        "notified", CLIENT, GROUP,
        "a broker sent NOTIFY_CONSUMER_IDS_CHANGED as soon as the group's members changed",
        fields("group, address"),
        thinning=replace(ONE_A_SECOND, per_place=False),
        rows=(
            FactKind(
                "NOTIFIED",
                "members received NOTIFY_CONSUMER_IDS_CHANGED; `times` counts seconds in which "
                "any did",
                EPISODES,
                details=fields("address"),
            ),
        ),
    ),
    trouble(
        "no_member_list", CLIENT, GROUP,
        fields("group, topic"),
        "NO_MEMBER_LIST",
        "a client received no member list for the topic",
        with_pid=True,
        about=("topic",),
        details=fields("log"),
    ),
    trouble(
        "not_in_member_list", CLIENT, GROUP,
        fields("group, client_id, listed: int (number of ids in the broker's answer)"),
        "NOT_IN_MEMBER_LIST",
        "a client was missing from the member list",
        about=("client_id",),
        details=fields("listed (number of ids), log"),
    ),
    trouble(
        "flow_controlled", CLIENT, GROUP,
        fields(
            "group, topic, broker_name, queue_id: int, reason (COUNT, SIZE, SPAN), "
            "min_offset?: int (of the first message in the cache)"
        ),
        "FLOW_CONTROLLED",
        "a client pauses pulls from a queue until it has consumed some of its cached messages",
        thinning=ONE_A_MINUTE,
        with_pid=True,
        about=QUEUE,
        details=fields(
            "reason, log, min_offset? (of the first message in the cache, newest value), "
            "min_since_ms? (when that message became the first)"
        ),
    ),
    trouble(
        "start_refused", CLIENT, GROUP,
        fields(
            "group, topic, broker_name, queue_id: int, "
            "reason (LOCK_FAILED, NO_OFFSET, OFFSET_FAILED)"
        ),
        "START_REFUSED",
        "a rebalance pass did not take over a queue that the client's allocation assigns to it",
        with_pid=True,
        about=QUEUE,
        details=fields("reason, log"),
    ),
    trouble(
        "topic_missing", CLIENT, GROUP,
        fields("group, topic"),
        "TOPIC_MISSING",
        "a rebalance pass skipped a topic because the client has no route to it",
        with_pid=True,
        about=("topic",),
        details=fields("log"),
    ),
    trouble(
        "unlock_failed", CLIENT, CLUSTER,
        fields("topic, broker_name, queue_id: int"),
        "UNLOCK_FAILED",
        "a client keeps the order lock of a queue that it no longer owns because its listener "
        "still has messages from the queue",
        about=QUEUE,
        details=fields("log"),
    ),
    trouble(
        "offset_illegal", CLIENT, GROUP,
        fields("group, topic, broker_name, queue_id: int, asked: int, given: int"),
        "OFFSET_ILLEGAL",
        "a broker lacks the offset that a client requested and redirected the client to another "
        "offset",
        with_pid=True,
        about=QUEUE,
        details=fields("asked, given, log"),
    ),
    LogFact(
        "message_expired", CLIENT, GROUP,
        "a listener held the first message of a queue for longer than consumeTimeout; the thread "
        "name contains the group (5.1.1+)",
        fields("group, topic, address, queue_id: int, offset: int"),
        with_pid=True,
        facts_only=True,
        rows=(
            FactKind(
                "MESSAGES_EXPIRED",
                "a client sent back messages that its listener had held for longer than "
                "consumeTimeout; for a retry topic, the original topic is given",
                EPISODES,
                MINUTE_MS,
                apart_ms=HOUR_MS,
                about=("topic", "queue_id"),
                details=fields("address, lowest, highest, log"),
            ),
        ),
    ),
    LogFact(
        "message_of_any_expired", CLIENT, CLUSTER,
        "the same as message_expired, from a line without the thread name that would contain the "
        "group",
        fields("topic, address, queue_id: int, offset: int"),
        facts_only=True,
        rows=(
            FactKind(
                "MESSAGES_OF_ANY_EXPIRED",
                "the same as MESSAGES_EXPIRED, for a client whose log names no group (up to 5.1.0)",
                EPISODES,
                MINUTE_MS,
                apart_ms=HOUR_MS,
                about=("topic", "queue_id"),
                details=fields("address, lowest, highest, log"),
            ),
        ),
    ),
    LogFact(
        "pull_expired", CLIENT, GROUP,
        "a queue was not pulled for pullMaxIdleTime (120 s), so the rebalance pass that detected "
        "this revoked it and took it over again",
        fields("group, topic, broker_name, queue_id: int"),
        with_pid=True,
        facts_only=True,
        rows=(
            FactKind(
                "PULL_EXPIRED",
                "a client revoked a queue that it owned but had not pulled for two minutes, and "
                "took it over again",
                EPISODES,
                about=QUEUE,
                details=fields("log"),
            ),
        ),
    ),
    LogFact(
        "allocation_failed", CLIENT, CLUSTER,
        "the allocation strategy threw an exception; the line names no group",
        fields("strategy, message"),
        thinning=ONE_A_MINUTE,
        with_pid=True,
        facts_only=True,
        rows=(ALLOCATION_FAILED,),
    ),
    trouble(
        "heartbeat_failed", CLIENT, CLUSTER,
        fields("broker_name, address"),
        "HEARTBEAT_FAILED",
        "a client's heartbeat failed; the line names neither the group nor the client, and "
        "`times` counts minutes",
        thinning=ONE_A_MINUTE,
        with_pid=True,
        about=("broker_name",),
        details=fields("address, log, pid (5.1+)"),
    ),
    trouble(
        "heartbeat_refused", CLIENT, CLUSTER,
        fields("address, reason"),
        "HEARTBEAT_REFUSED",
        "the reason for a failed client heartbeat, as worded by the broker or the network; the "
        "line names neither the group nor the client, and `times` counts minutes",
        thinning=ONE_A_MINUTE,
        details=fields("address, reason, log"),
    ),
    trouble(
        "no_broker", CLIENT, CLUSTER,
        fields("topic, broker_name, queue_id: int"),
        "NO_BROKER_ADDRESS",
        "a Go client did not pull because it had no address for the queue's broker; the line "
        "names neither the group nor the client, and `times` counts minutes",
        thinning=ONE_A_MINUTE,
        about=QUEUE,
        details=fields("log"),
    ),
    trouble(
        "nothing_committed", CLIENT, GROUP,
        fields("group, topic, broker_name, queue_id: int"),
        "NOTHING_COMMITTED",
        "a broker reported that the group has no committed offset for the queue; `times` counts "
        "minutes",
        thinning=ONE_A_MINUTE,
        about=QUEUE,
        details=fields("log"),
    ),
    LogFact(
        "pull_refused", CLIENT, CLUSTER,
        "a broker refused a pull; the line names no group",
        fields("address, reason? (other than [REJECTREQUEST]: a slave that refuses reads)"),
        thinning=ONE_A_MINUTE,
    ),
    trouble(
        "request_failed", CLIENT, GROUP,
        fields("group, request, reason, address"),
        "REQUEST_FAILED",
        "a server refused or did not answer a client's request; `times` counts minutes",
        thinning=ONE_A_MINUTE,
        with_pid=True,
        details=fields(
            "request (PULL, MEMBER_LIST, COMMIT), reason (as worded by the server), address (of "
            "the server; empty if the line has none), log"
        ),
    ),
    trouble(
        "broadcast_refused", CLIENT, GROUP,
        fields("group, topic?, broker_name? (if the previous line names them)"),
        "BROADCAST_REFUSED",
        "a broker refused a pull because the group forbids broadcasting; only 5.x logs the topic "
        "and broker_name",
        with_pid=True,
        details=fields("log"),
    ),
)  # fmt: skip


# Facts about POP in broker.log, pop.log and rocketmq_client.log (rocketmq.md §14).
POP_FACTS = (
    trouble(
        "no_assignment", BROKER, GROUP,
        fields("group, topic, reason (NO_MEMBERS, NO_TOPIC)"),
        "NO_ASSIGNMENT",
        "a broker had no assignment to return",
        about=("topic", "broker_name"),
        details=fields("reason (NO_MEMBERS, NO_TOPIC)"),
    ),
    trouble(
        "strategy_unsupported", BROKER, CLUSTER,
        fields("strategy, client_addr"),
        "STRATEGY_UNSUPPORTED",
        "a client requested an assignment by a strategy that brokers do not support; `times` "
        "counts minutes",
        thinning=ONE_A_MINUTE,
        about=("broker_name",),
        details=fields("strategy, client_addr"),
    ),
    LogFact(
        "revive_pass", BROKER, CLUSTER,
        "a pass of the revive service, which redelivers unacknowledged messages",
        fields(
            "revive_queue: int, late_s: int (its first checkpoint was due at least this long ago; "
            "0: less than 10 s), stands: bool (late, and it ended where it began)"
        ),
        thinning=ONE_A_MINUTE,
        facts_only=True,
        rows=(
            FactKind(
                "REVIVE_PASS",
                "the revive service, which redelivers unacknowledged messages, read a revive "
                "queue; `times` counts minutes",
                EPISODES,
                MINUTE_MS,
                about=("broker_name",),
                details=fields(
                    "revive_queue, late_s (the first checkpoint was due at least this long ago; 0: "
                    "less than 10 s), stands (late, and the pass ended where it began)"
                ),
            ),
        ),
    ),
    trouble(
        "revive_trouble", BROKER, CLUSTER,
        fields(
            "reason (SWITCHED_OFF, FAILED, PUT_FAILED, OFFSET_ILLEGAL, TOO_SLOW, "
            "MESSAGE_NOT_READ, MESSAGE_GONE, GIVEN_UP), topic?, revive_queue?: int"
        ),
        "REVIVE_TROUBLE",
        "the reason why the revive service did not redeliver an unacknowledged message",
        about=("broker_name",),
        details=fields(
            "reason (SWITCHED_OFF: timerWheelEnable=false, FAILED: an exception, PUT_FAILED: a "
            "write to the retry topic failed, OFFSET_ILLEGAL: an illegal offset of the revive "
            "queue, TOO_SLOW: a message was not read within 30 s, MESSAGE_NOT_READ: the read is "
            "retried, MESSAGE_GONE: the message is no longer stored, GIVEN_UP: the message is not "
            "redelivered), revive_queue?"
        ),
    ),
    trouble(
        "pop_timed_out", CLIENT, GROUP,
        fields("group, topic, invisible_ms: int"),
        "POP_TIMED_OUT",
        "a client dropped popped messages unconsumed because their invisible time had expired",
        with_pid=True,
        about=("topic",),
        details=fields("invisible_ms, log"),
    ),
    trouble(
        "pop_forbidden", CLIENT, CLUSTER,
        fields("address (of the broker; empty if the line ends before it)"),
        "POP_FORBIDDEN",
        "a broker with timerWheelEnable=false refused a POP request",
        with_pid=True,
        details=fields("address, log, pid"),
    ),
    trouble(
        "missing_route", CLIENT, CLUSTER,
        fields("topic"),
        "MISSING_ROUTE",
        "a client requested the route of a topic that has none; the line names neither the group "
        "nor the client",
        with_pid=True,
        about=("topic",),
        details=fields("log, pid"),
    ),
)  # fmt: skip


LOG_FACTS: dict[str, LogFact] = log_facts(
    (*BROKER_LOG, *LOCK_LOG, *NAME_SERVER_LOG, *CLIENT_LOG, *POP_FACTS, *PROXY_LOG)
)
