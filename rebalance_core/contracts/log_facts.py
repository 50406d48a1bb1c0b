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
        "a new connection of a member",
        fields(
            "group, consume_type, message_model, channel, client_id, language, "
            "version: int | None, beat_ms: int, local?, proxy_addr?, protocol?, "
            "remote?: bool, topics?: list[str] | None"
        ),
        of_slaves=True,
    ),
    LogFact(
        "consumer_data", BROKER, GROUP,
        "a heartbeat brought what the connection subscribes",
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
        "UNREGISTER_CLIENT, a graceful leave",
        fields(
            "group, channel, client_id, language, version: int | None, beat_ms: "
            "int, local?, proxy_addr?, protocol?, remote?: bool, topics?: "
            "list[str] | None"
        ),
        of_slaves=True,
    ),
    LogFact(
        "consumer_closed", BROKER, GROUP,
        "its connection was seen closing",
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
        "removed by the scan; no client id is printed",
        fields("group, channel, client_id?"),
        of_slaves=True,
    ),
    LogFact(
        "group_topic", BROKER, GROUP,
        "new to the group's table; names no member",
        fields("group, topic, expression"),
        of_slaves=True,
    ),
    LogFact(
        "group_emptied", BROKER, GROUP,
        "the group's last member is gone, and its table with it",
        fields("group"),
        of_slaves=True,
    ),
    LogFact(
        "topic_created", BROKER, TOPIC,
        "queues are new and empty",
        fields("topic, read: int, write: int, perm: int"),
    ),
    LogFact(
        "topic_updated", BROKER, TOPIC,
        "the topic was set up anew",
        fields(
            "topic, read: int, write: int, perm: int, old: TopicCreatedValues "
            "(the same before)"
        ),
    ),
    LogFact(
        "topic_loaded", BROKER, TOPIC,
        "was there when the broker started",
        fields("topic, read: int, write: int, perm: int"),
    ),
    LogFact(
        "topic_deleted", BROKER, TOPIC,
        "the topic was deleted",
        fields("topic"),
    ),
    LogFact(
        "broker_starting", BROKER, CLUSTER,
        "the broker's consumer table is empty",
        fields("perm?: int (brokerPermission)"),
    ),
    LogFact(
        "broker_booted", BROKER, CLUSTER,
        "the broker is up",
        fields("broker, address"),
        rows=(
            FactKind(
                "BROKER_STARTED", "the broker is up: a restart", MOMENTS, about=("broker_name",),
                details=fields("address (its own; empty if no line has it)"),
            ),
        ),
    ),
    trouble(
        "channel_event_dropped", BROKER, CLUSTER,
        fields("size, type (CONNECT, CLOSE, IDLE, EXCEPTION)"),
        "CHANNEL_EVENTS_DROPPED",
        "the queue of channel events was full",
        about=("broker_name",),
        details=fields("type (of those dropped)"),
    ),
    LogFact(
        "broker_property", BROKER, CLUSTER,
        "a setting of the broker at the start",
        fields(
            "name (brokerName, brokerId: 4.9; brokerRole, slaveReadEnable, "
            "enableSlaveActingMaster; notifyConsumerIdsChangedEnable, "
            "realTimeNotifyConsumerChange: where false, or changed later; "
            "accessMessageInMemoryMaxRatio: where 0), value"
        ),
    ),
    LogFact(
        "message_retention", BROKER, CLUSTER,
        "how long the broker keeps messages: fileReservedTime at its start, or changed later",
        fields("hours: int"),
        facts_only=True,
        rows=(MESSAGE_RETENTION,),
    ),
    LogFact(
        "broker_follows", BROKER, CLUSTER,
        "this slave copies from that master",
        fields("address"),
        thinning=ONE_A_MINUTE,
    ),
    LogFact(
        "broker_copy_failed", BROKER, CLUSTER,
        "this slave tries to copy from that master but fails",
        fields("address"),
        thinning=ONE_A_MINUTE,
    ),
    LogFact(
        "broker_role", BROKER, CLUSTER,
        "what the controller (5.x) or an election of DLedger (4.5 and later) made of this broker; "
        "brokerRole in its settings then has no meaning",
        fields("address?, broker?, slave: bool (else master)"),
    ),
    LogFact(
        "min_broker", BROKER, CLUSTER,
        "the replica with the lowest id now, as a slave logs that may act as "
        "master; 0 is the master, else that slave acts (5.x)",
        fields("broker_id: int, address"),
    ),
    LogFact(
        "broker_stopping", BROKER, CLUSTER,
        "the shutdown hook runs",
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
            "group, changes (name: old → new), was?: bool (notifyConsumerIdsChangedEnable, where "
            "the line has it), now?: bool"
        ),
        rows=(
            FactKind(
                "GROUP_UPDATED", "an administrator set the group up anew", MOMENTS,
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
        "a heartbeat brought a newer subVersion, old and new where the expression "
        "changed too; without it a heartbeat lacked the topic and took it out of "
        "the group's table",
        fields("group, topic, version?: int, old?, new?"),
        of_slaves=True,
        thinning=ONE_A_SECOND,
        facts_only=True,
        rows=(
            FactKind(
                "TAGS_CHANGED", "the topic's expression changed", EPISODES,
                about=("topic", "broker_name"),
                details=fields("old, new"),
            ),
            FactKind(
                "TOPIC_DROPPED",
                "a heartbeat without the topic took it out of the group's table",
                EPISODES,
                about=("topic", "broker_name"),
            ),
        ),
    ),
    trouble(
        "no_subscription", BROKER, GROUP,
        fields("group, topic"),
        "NO_SUBSCRIPTION",
        "a pull was refused: the group's table at the broker lacks the topic",
        about=("topic", "broker_name"),
    ),
    trouble(
        "subscription_not_latest", BROKER, GROUP,
        fields("group"),
        "SUBSCRIPTION_NOT_LATEST",
        "pulls were refused until a heartbeat brought the member's newer subscription",
        about=("broker_name",),
    ),
    trouble(
        "group_not_known", BROKER, GROUP,
        fields("group"),
        "GROUP_NOT_KNOWN",
        "a pull was refused: the broker has no member of the group",
        about=("broker_name",),
    ),
    trouble(
        "offset_corrected", BROKER, GROUP,
        fields("group, topic, asked: int, given: int"),
        "OFFSET_CORRECTED",
        "a pull of an offset that the queue lacks was redirected",
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
                "times are minutes",
                EPISODES,
                MINUTE_MS,
                about=("topic", "broker_name"),
                details=fields("sent_to (its id), lowest_asked, highest_asked"),
            ),
        ),
    ),
    LogFact(
        "offset_went_back", BROKER, GROUP,
        "a commit too low",
        fields("group, topic, queue_id: int, host, asked: int, stored: int"),
        facts_only=True,
        rows=(
            FactKind(
                "OFFSET_WENT_BACK",
                "commits below the stored one",
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
        "an administrator's reset, kept by the broker (useServerSideResetOffset, "
        "5.2+)",
        fields("group, topic, broker, queue_id: int, offset: int"),
        rows=(
            FactKind(
                "OFFSET_RESET",
                "an administrator's reset that the broker took",
                MOMENTS,
                about=QUEUE,
                details=fields("offset"),
            ),
        ),
    ),
    LogFact(
        "reset_asked", BROKER, GROUP,
        "an administrator asked for a reset; without offset_reset at that time the broker leaves "
        "it to the clients",
        fields("group, topic, by (address)"),
        facts_only=True,
        rows=(
            FactKind(
                "RESET_ASKED",
                "an administrator asked the broker for a reset",
                MOMENTS,
                about=("topic", "broker_name"),
            ),
        ),
    ),
    LogFact(
        "commit_refused", BROKER, COMMIT,
        "a client committed before it had seen a reset; the reset stays",
        fields("group, topic, queue_id: int"),
    ),
    LogFact(
        "broker_allocation_failed", BROKER, GROUP,
        "QueryAssignment (5.x) threw",
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
        "a member asked this broker for an order lock",
        fields("group"),
        thinning=ONE_A_SECOND,
    ),
    LogFact(
        "lock_refused",
        LOCK,
        GROUP,
        "a member asked in vain",
        fields("group, topic, broker_name, queue_id: int, client_id (who asked), owner"),
        thinning=ONE_A_SECOND,
        rows=(
            FactKind(
                "LOCK_REFUSED",
                "client_id asked for an order lock that another client has",
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
        "a replica that was not there before",
        fields("address, cluster? (5.0+)"),
    ),
    LogFact(
        "broker_address", NAME_SERVER, CLUSTER,
        "the name of a master's new address (4.9)",
        fields("broker, address, cluster?"),
        rows=(
            FactKind(
                "MASTER_ADDRESS",
                "a process registered as the master of the broker, from another address than the "
                "one before",
                about=("broker_name",),
                details=fields("address, cluster"),
            ),
        ),
    ),
    LogFact(
        "broker_known", NAME_SERVER, CLUSTER,
        "the same, repeated at every registration of a master (4.9)",
        fields("broker, address, cluster?"),
        thinning=ONE_A_MINUTE,
    ),
    LogFact(
        "broker_removed", NAME_SERVER, CLUSTER,
        "no replica of that name is left here",
        fields("broker"),
    ),
    LogFact(
        "replica_removed", NAME_SERVER, CLUSTER,
        "one process of a broker is out of the route here",
        fields("address"),
    ),
    LogFact(
        "topic_registered", NAME_SERVER, TOPIC,
        "the first queues of a topic",
        fields("topic, broker_name, read: int, write: int, perm: int"),
    ),
    LogFact(
        "topic_route", NAME_SERVER, TOPIC,
        "the queues of a topic changed",
        fields(
            "topic, broker_name, read: int, write: int, perm: int, old: "
            "RouteBefore (the same before)"
        ),
    ),
    LogFact(
        "broker_channel_closed", NAME_SERVER, CLUSTER,
        "a broker's channel was seen closing",
    ),
    LogFact(
        "name_server_property", NAME_SERVER, CLUSTER,
        "a setting at the start (5.x)",
        fields("name (supportActingMaster), value"),
    ),
    LogFact(
        "name_server_starting", NAME_SERVER, CLUSTER,
        "a name server starts, and knows no broker yet",
    ),
    LogFact(
        "name_server_stopping", NAME_SERVER, CLUSTER,
        "it shuts down",
    ),
    LogFact(
        "broker_expired", NAME_SERVER, CLUSTER,
        "no registration for 120 s",
        fields("address"),
    ),
)  # fmt: skip


PROXY_LOG = (
    LogFact(
        "proxy_starting", PROXY, CLUSTER,
        "the proxy starts; its consumer table is empty",
        rows=(
            FactKind("PROXY_STARTED", "the proxy starts", MOMENTS, details=fields("proxy")),
        ),
    ),
    LogFact(
        "proxy_mode", PROXY, CLUSTER,
        "as it starts",
        fields("mode (CLUSTER, LOCAL)"),
    ),
    LogFact(
        "proxy_alive", PROXY, CLUSTER,
        "it logged of a member; one fact a minute",
    ),
)  # fmt: skip


CLIENT_LOG = (
    LogFact(
        "client_created", CLIENT, CLUSTER,
        "a client's instance was made; intervals that are not the usual",
        fields(
            "client_id, pollNameServerInterval? (ms), heartbeatBrokerInterval? "
            "(ms), persistConsumerOffsetInterval? (ms)"
        ),
    ),
    LogFact(
        "allocated", CLIENT, GROUP,
        "a client divided a topic",
        fields(
            "group, client_id, topic, strategy, queues?: list[list[str | int]] "
            "(where they tell the parameters)"
        ),
        thinning=ONE_A_PLACE,
        with_pid=True,
    ),
    LogFact(
        "broker_allocated", CLIENT, GROUP,
        "QueryAssignment",
        fields(
            "group, client_id, topic, strategy, mode: str | None (None: no "
            "queue), whole_brokers: bool (any of its queues stands for all of a "
            "broker)"
        ),
        with_pid=True,
    ),
    LogFact(
        "heartbeat", CLIENT, GROUP,
        "a client's heartbeat; one fact a group",
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
        "a Go or C++ client, by the form of its log",
        fields("group, client_id, language"),
        thinning=ONE_A_PLACE,
    ),
    LogFact(
        "committed", CLIENT, COMMIT,
        "a client committed",
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
        "its queues were dropped by truncateMessageQueueNotMyTopic",
        fields("group, topic"),
    ),
    LogFact(
        "queue_taken", CLIENT, GROUP,
        "a pass took a queue",
        fields("group, topic, broker_name, queue_id: int"),
        with_pid=True,
    ),
    LogFact(
        "queue_given_up", CLIENT, GROUP,
        "a pass gave up a queue",
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
        "the client asked for an order lock",
        fields("group"),
        thinning=ONE_A_SECOND,
    ),
    LogFact(
        "notified", CLIENT, GROUP,
        "a broker sent CHANGE, at once after the group's members changed",
        fields("group, address"),
        thinning=replace(ONE_A_SECOND, per_place=False),
        rows=(
            FactKind(
                "NOTIFIED",
                "members got CHANGE; times are seconds in which any got it",
                EPISODES,
                details=fields("address"),
            ),
        ),
    ),
    trouble(
        "no_member_list", CLIENT, GROUP,
        fields("group, topic"),
        "NO_MEMBER_LIST",
        "a client got no list of members for the topic",
        with_pid=True,
        about=("topic",),
        details=fields("log"),
    ),
    trouble(
        "not_in_member_list", CLIENT, GROUP,
        fields("group, client_id, listed: int (how many ids the broker answered)"),
        "NOT_IN_MEMBER_LIST",
        "a client was not in the list of members",
        about=("client_id",),
        details=fields("listed (how many), log"),
    ),
    trouble(
        "flow_controlled", CLIENT, GROUP,
        fields(
            "group, topic, broker_name, queue_id: int, reason (COUNT, SIZE, SPAN), "
            "min_offset?: int (of the first message in the cache)"
        ),
        "FLOW_CONTROLLED",
        "a client pauses pulls from a queue until it has finished messages in its cache",
        thinning=ONE_A_MINUTE,
        with_pid=True,
        about=QUEUE,
        details=fields(
            "reason, log, min_offset? (of the first message in the cache, newest), "
            "min_since_ms? (since when that was the first)"
        ),
    ),
    trouble(
        "start_refused", CLIENT, GROUP,
        fields(
            "group, topic, broker_name, queue_id: int, "
            "reason (LOCK_FAILED, NO_OFFSET, OFFSET_FAILED)"
        ),
        "START_REFUSED",
        "a pass did not take over a queue that the client's allocation assigns to it",
        with_pid=True,
        about=QUEUE,
        details=fields("reason, log"),
    ),
    trouble(
        "topic_missing", CLIENT, GROUP,
        fields("group, topic"),
        "TOPIC_MISSING",
        "a pass skipped a topic because the client has no route to it",
        with_pid=True,
        about=("topic",),
        details=fields("log"),
    ),
    trouble(
        "unlock_failed", CLIENT, CLUSTER,
        fields("topic, broker_name, queue_id: int"),
        "UNLOCK_FAILED",
        "a client keeps the order lock of a queue that is no longer its own, because its listener "
        "still has messages of the queue",
        about=QUEUE,
        details=fields("log"),
    ),
    trouble(
        "offset_illegal", CLIENT, GROUP,
        fields("group, topic, broker_name, queue_id: int, asked: int, given: int"),
        "OFFSET_ILLEGAL",
        "a broker lacks the offset that a client asked for, and sent it to another",
        with_pid=True,
        about=QUEUE,
        details=fields("asked, given, log"),
    ),
    LogFact(
        "message_expired", CLIENT, GROUP,
        "a listener kept the first message of a queue for longer than consumeTimeout; the thread "
        "names the group (5.1.1+)",
        fields("group, topic, address, queue_id: int, offset: int"),
        with_pid=True,
        facts_only=True,
        rows=(
            FactKind(
                "MESSAGES_EXPIRED",
                "a client sent back messages that its listener had kept for longer than "
                "consumeTimeout; for a retry topic, the topic is the original one",
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
        "the same, from client lines without the thread name, which would name the group",
        fields("topic, address, queue_id: int, offset: int"),
        facts_only=True,
        rows=(
            FactKind(
                "MESSAGES_OF_ANY_EXPIRED",
                "MESSAGES_EXPIRED of a client whose log names no group (to 5.1.0)",
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
        "not pulled for pullMaxIdleTime (120 s), then revoked and taken again by the pass that "
        "detects this",
        fields("group, topic, broker_name, queue_id: int"),
        with_pid=True,
        facts_only=True,
        rows=(
            FactKind(
                "PULL_EXPIRED",
                "a client revoked its own queue, which it had not pulled for two minutes, and took "
                "it again",
                EPISODES,
                about=QUEUE,
                details=fields("log"),
            ),
        ),
    ),
    LogFact(
        "allocation_failed", CLIENT, CLUSTER,
        "the strategy threw; no group is printed",
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
        "a client's heartbeat failed; no group or client; times are minutes",
        thinning=ONE_A_MINUTE,
        with_pid=True,
        about=("broker_name",),
        details=fields("address, log, pid (5.1+)"),
    ),
    trouble(
        "heartbeat_refused", CLIENT, CLUSTER,
        fields("address, reason"),
        "HEARTBEAT_REFUSED",
        "why a client's heartbeat failed, in the words of the broker or the network; no group or "
        "client; times are minutes",
        thinning=ONE_A_MINUTE,
        details=fields("address, reason, log"),
    ),
    trouble(
        "no_broker", CLIENT, CLUSTER,
        fields("topic, broker_name, queue_id: int"),
        "NO_BROKER_ADDRESS",
        "a Go client had no address of the queue's broker and did not pull; no group or client; "
        "times are minutes",
        thinning=ONE_A_MINUTE,
        about=QUEUE,
        details=fields("log"),
    ),
    trouble(
        "nothing_committed", CLIENT, GROUP,
        fields("group, topic, broker_name, queue_id: int"),
        "NOTHING_COMMITTED",
        "according to a broker, the group has committed nothing on the queue; times are minutes",
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
        "a server refused a client's request or did not answer it; times are minutes",
        thinning=ONE_A_MINUTE,
        with_pid=True,
        details=fields(
            "request (PULL, MEMBER_LIST, COMMIT), reason (the server's words), address (of the "
            "server; empty if the line has none), log"
        ),
    ),
    trouble(
        "broadcast_refused", CLIENT, GROUP,
        fields("group, topic?, broker_name? (where the line before names them)"),
        "BROADCAST_REFUSED",
        "a pull was refused because the group forbids broadcasting; topic and broker_name in 5.x "
        "only",
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
        "a broker had no assignment to answer",
        about=("topic", "broker_name"),
        details=fields("reason (NO_MEMBERS, NO_TOPIC)"),
    ),
    trouble(
        "strategy_unsupported", BROKER, CLUSTER,
        fields("strategy, client_addr"),
        "STRATEGY_UNSUPPORTED",
        "an assignment by a strategy that brokers do not know; times are minutes",
        thinning=ONE_A_MINUTE,
        about=("broker_name",),
        details=fields("strategy, client_addr"),
    ),
    LogFact(
        "revive_pass", BROKER, CLUSTER,
        "a pass of the service that redelivers messages that no client acknowledged",
        fields(
            "revive_queue: int, late_s: int (its first checkpoint was due at least this long ago; "
            "0: less than 10 s), stands: bool (late, and it ended where it began)"
        ),
        thinning=ONE_A_MINUTE,
        facts_only=True,
        rows=(
            FactKind(
                "REVIVE_PASS",
                "the service that redelivers unacknowledged messages read a revive queue; times "
                "are minutes",
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
        "why the service that redelivers unacknowledged messages did not",
        about=("broker_name",),
        details=fields(
            "reason (SWITCHED_OFF: timerWheelEnable=false, FAILED: an exception, PUT_FAILED: the "
            "retry topic took no message, OFFSET_ILLEGAL: of the revive queue, TOO_SLOW: a message "
            "was not read within 30 s, MESSAGE_NOT_READ: tried again, MESSAGE_GONE: no longer "
            "stored, GIVEN_UP: not delivered again), revive_queue?"
        ),
    ),
    trouble(
        "pop_timed_out", CLIENT, GROUP,
        fields("group, topic, invisible_ms: int"),
        "POP_TIMED_OUT",
        "popped messages were dropped unconsumed because their invisible time had ended",
        with_pid=True,
        about=("topic",),
        details=fields("invisible_ms, log"),
    ),
    trouble(
        "pop_forbidden", CLIENT, CLUSTER,
        fields("address (of the broker; empty if the line ends before it)"),
        "POP_FORBIDDEN",
        "a broker with timerWheelEnable=false refused POP",
        with_pid=True,
        details=fields("address, log, pid"),
    ),
    trouble(
        "missing_route", CLIENT, CLUSTER,
        fields("topic"),
        "MISSING_ROUTE",
        "a client queries a topic without a route; no group or client",
        with_pid=True,
        about=("topic",),
        details=fields("log, pid"),
    ),
)  # fmt: skip


LOG_FACTS: dict[str, LogFact] = log_facts(
    (*BROKER_LOG, *LOCK_LOG, *NAME_SERVER_LOG, *CLIENT_LOG, *POP_FACTS, *PROXY_LOG)
)
