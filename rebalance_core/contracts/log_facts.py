"""Every fact that lines of logs state, declared once."""

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
from rebalance_core.model.times import BROKER_LOCK_LIFE_MS

# Facts that a broker's broker.log and lock.log state.

BROKER_LOG = (
    LogFact(
        "consumer_connected", BROKER, GROUP,
        "group, consume_type, message_model and the fields of channel_info",
        of_slaves=True,
    ),
    LogFact(
        "consumer_data", BROKER, GROUP,
        "channel (remote address) and the fields of consumer_data",
        of_slaves=True,
        rows=(CLIENT_TOPIC,),
    ),
    LogFact(
        "consumer_left", BROKER, GROUP,
        "group and channel_info: UNREGISTER_CLIENT, a graceful leave",
        of_slaves=True,
    ),
    LogFact(
        "consumer_closed", BROKER, GROUP,
        "group and channel_info: its connection was seen closing",
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
        "group, channel: removed by the scan; no client id is printed",
        of_slaves=True,
    ),
    LogFact(
        "group_topic", BROKER, GROUP,
        "group, topic, expression: new to the group's table; names no member",
        of_slaves=True,
    ),
    LogFact(
        "group_emptied", BROKER, GROUP,
        "group: its last member is gone, and its table with it",
        of_slaves=True,
    ),
    LogFact("topic_created", BROKER, TOPIC, "topic, read, write, perm: queues are new and empty"),
    LogFact("topic_updated", BROKER, TOPIC, "topic, read, write, perm, and old: the same before"),
    LogFact(
        "topic_loaded", BROKER, TOPIC,
        "topic, read, write, perm: was there when the broker started",
    ),
    LogFact("topic_deleted", BROKER, TOPIC, "topic"),
    LogFact(
        "broker_starting", BROKER, CLUSTER,
        "perm: brokerPermission; the broker's consumer table is empty",
    ),
    LogFact(
        "broker_booted", BROKER, CLUSTER,
        "broker, address",
        rows=(
            FactKind(
                "BROKER_STARTED", "the broker is up: a restart", MOMENTS, about=("broker_name",)
            ),
        ),
    ),
    trouble(
        "channel_event_dropped", BROKER, CLUSTER,
        "size, type (CONNECT, CLOSE, IDLE, EXCEPTION): an overloaded broker forgets that a "
        "connection opened or closed",
        "CHANNEL_EVENTS_DROPPED",
        "the queue of channel events was full",
        about=("broker_name",),
        details=fields("type (of those dropped)"),
    ),
    LogFact(
        "broker_property", BROKER, CLUSTER,
        "name (brokerName, brokerId: 4.9; brokerRole, slaveReadEnable, enableSlaveActingMaster; "
        "notifyConsumerIdsChangedEnable, realTimeNotifyConsumerChange: where false, or changed "
        "later; accessMessageInMemoryMaxRatio: where 0) and value, at the start",
    ),
    LogFact(
        "broker_follows", BROKER, CLUSTER,
        "address of the master that this slave copies from",
        thinning=ONE_A_MINUTE,
    ),
    LogFact(
        "broker_copy_failed", BROKER, CLUSTER,
        "address of the master that this slave copies from, in vain",
        thinning=ONE_A_MINUTE,
    ),
    LogFact(
        "broker_role", BROKER, CLUSTER,
        "address or broker, slave (else master): what the controller (5.x) or an election of "
        "DLedger (4.5 and later) made of this broker; brokerRole of its settings means nothing "
        "then",
    ),
    LogFact(
        "min_broker", BROKER, CLUSTER,
        "broker_id, address: the replica with the lowest id now, as a slave logs that may act as "
        "master; 0 is the master, else that slave acts (5.x)",
    ),
    LogFact("broker_stopping", BROKER, CLUSTER, "no field: the shutdown hook runs"),
    LogFact(
        "group_created", BROKER, GROUP,
        "group, by (auto, admin)",
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
        "group; was and now: notifyConsumerIdsChangedEnable, where the line has it",
        rows=(
            FactKind(
                "GROUP_UPDATED", "an administrator set the group up anew", MOMENTS,
                about=("broker_name",),
            ),
        ),
    ),
    LogFact(
        "group_deleted", BROKER, GROUP,
        "group",
        facts_only=True,
        rows=(
            FactKind("GROUP_DELETED", "the group was deleted", MOMENTS, about=("broker_name",)),
        ),
    ),
    LogFact(
        "subscription_changed", BROKER, GROUP,
        "group, topic; version: a heartbeat brought a newer subVersion, old and new where the "
        "expression changed too; without it a heartbeat lacked the topic and took it out of the "
        "group's table",
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
        "group, topic: a pull was refused",
        "NO_SUBSCRIPTION",
        "a pull was refused: the group's table at the broker lacks the topic",
        about=("topic", "broker_name"),
    ),
    trouble(
        "subscription_not_latest", BROKER, GROUP,
        "group: a pull was refused, as the member's subscription is newer than the broker's",
        "SUBSCRIPTION_NOT_LATEST",
        "pulls were refused until a heartbeat brought the member's newer subscription",
        about=("broker_name",),
    ),
    trouble(
        "group_not_known", BROKER, GROUP,
        "group: a pull was refused, CODE 24; no member of the group is registered",
        "GROUP_NOT_KNOWN",
        "a pull was refused: the broker has no member of the group",
        about=("broker_name",),
    ),
    trouble(
        "offset_corrected", BROKER, GROUP,
        "group, topic, asked, given: a pull beyond an end of its queue was sent elsewhere",
        "OFFSET_CORRECTED",
        "a pull of an offset that the queue lacks was moved",
        about=("topic", "broker_name"),
        details=fields("asked, given"),
    ),
    LogFact(
        "offset_went_back", BROKER, GROUP,
        "group, topic, queue_id, host, asked, stored: a commit too low",
        facts_only=True,
        rows=(
            FactKind(
                "OFFSET_WENT_BACK",
                "commits below the stored one",
                EPISODES,
                about=QUEUE,
                details=fields(
                    "client_host (at most 5), highest_stored, lowest_asked, "
                    "step_stored (of the largest single one), step_asked (of that one), "
                    "steps (how many), read_again (the sum of their differences)"
                ),
            ),
        ),
    ),
    LogFact(
        "offset_reset", BROKER, GROUP,
        "group, topic, broker, queue_id, offset: an administrator's reset, kept by the broker "
        "(useServerSideResetOffset, 5.2+)",
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
        "commit_refused", BROKER, COMMIT,
        "group, topic, queue_id: a client committed before it had seen a reset; the reset stays",
    ),
    LogFact(
        "broker_allocation_failed", BROKER, GROUP,
        "group, topic, strategy, message: QueryAssignment (5.x)",
        thinning=ONE_A_SECOND,
        facts_only=True,
        rows=(ALLOCATION_FAILED,),
    ),
)  # fmt: skip

LOCK_LOG = (
    LogFact(
        "queue_locked", LOCK, GROUP,
        "group: a member asked this broker for an order lock",
        thinning=ONE_A_SECOND,
    ),
    LogFact(
        "lock_refused", LOCK, GROUP,
        "group, topic, broker_name, queue_id, client_id (who asked), owner",
        thinning=ONE_A_SECOND,
        rows=(
            FactKind(
                "LOCK_REFUSED",
                "client_id asked for an order lock that another client has",
                EPISODES,
                apart_ms=BROKER_LOCK_LIFE_MS,  # it asks in every pass, or more often
                about=(*QUEUE, "client_id"),
                details=fields("owner"),
            ),
        ),
    ),
)  # fmt: skip


# Facts that a name server's namesrv.log states.

NAME_SERVER_LOG = (
    LogFact(
        "broker_registered", NAME_SERVER, CLUSTER,
        "address; a replica that was not there before",
    ),
    LogFact(
        "broker_address", NAME_SERVER, CLUSTER,
        "broker, address: the name of a master's new address (4.9)",
    ),
    LogFact(
        "broker_known", NAME_SERVER, CLUSTER,
        "broker, address: the same, repeated at every registration of a master (4.9)",
        thinning=ONE_A_PLACE,
    ),
    LogFact("broker_removed", NAME_SERVER, CLUSTER, "broker: no replica of that name is left here"),
    LogFact(
        "replica_removed", NAME_SERVER, CLUSTER,
        "address: one process of a broker is out of the route here",
    ),
    LogFact(
        "topic_registered", NAME_SERVER, TOPIC,
        "topic, broker_name, read, write, perm: the first queues of a topic",
    ),
    LogFact(
        "topic_route", NAME_SERVER, TOPIC,
        "topic, broker_name, read, write, perm, and old: the same before",
    ),
    LogFact(
        "broker_channel_closed", NAME_SERVER, CLUSTER,
        "no field: a broker's channel was seen closing",
    ),
    LogFact(
        "name_server_property", NAME_SERVER, CLUSTER,
        "name (supportActingMaster) and value, at the start (5.x)",
    ),
    LogFact(
        "name_server_starting", NAME_SERVER, CLUSTER,
        "no field: a name server starts, and knows no broker yet",
    ),
    LogFact("name_server_stopping", NAME_SERVER, CLUSTER, "no field: it shuts down"),
    LogFact("broker_expired", NAME_SERVER, CLUSTER, "address: no registration for 120 s"),
)  # fmt: skip


# Facts that a proxy's broker.log and proxy.log state beside those of a broker's.

PROXY_LOG = (
    LogFact(
        "proxy_starting", PROXY, CLUSTER,
        "no field: the proxy starts; its consumer table is empty",
    ),
    LogFact("proxy_mode", PROXY, CLUSTER, "mode (CLUSTER, LOCAL), as it starts"),
    LogFact("proxy_alive", PROXY, CLUSTER, "no field: it logged of a member; one fact a minute"),
)  # fmt: skip


# Facts that a client's rocketmq_client.log states.

CLIENT_LOG = (
    LogFact(
        "client_created", CLIENT, CLUSTER,
        "client_id, pollNameServerInterval, heartbeatBrokerInterval and "
        "persistConsumerOffsetInterval (ms) of a client that has not the usual ones",
    ),
    LogFact(
        "allocated", CLIENT, GROUP,
        "group, client_id, topic, strategy, queues (where they tell the parameters)",
        thinning=ONE_A_PLACE,
        with_pid=True,
    ),
    LogFact(
        "broker_allocated", CLIENT, GROUP,
        "group, client_id, topic, strategy, mode (None: no queue), whole_brokers (any of its "
        "queues stands for all of a broker): QueryAssignment",
        with_pid=True,
    ),
    LogFact(
        "heartbeat", CLIENT, GROUP,
        "client_id and the fields of consumer_data; one fact a group",
        with_pid=True,
        rows=(CLIENT_TOPIC,),
    ),
    LogFact(
        "client_language", CLIENT, GROUP,
        "group, client_id, language: of a Go or C++ client, by the form of its log",
        thinning=ONE_A_PLACE,
    ),
    LogFact("committed", CLIENT, COMMIT, "group, client_id, topic, broker, queue_id, offset"),
    LogFact("suspended", CLIENT, GROUP, "group", with_pid=True),
    LogFact("resumed", CLIENT, GROUP, "group", with_pid=True),
    LogFact(
        "paused", CLIENT, GROUP,
        "group, instance: pulls of a suspended consumer, once a second",
        thinning=ONE_A_SECOND,
        with_pid=True,
    ),
    LogFact(
        "unsubscribed", CLIENT, GROUP,
        "group, topic: its queues were dropped by truncateMessageQueueNotMyTopic",
    ),
    LogFact(
        "left_broker", CLIENT, GROUP,
        "group: the client unregistered from one broker",
        with_pid=True,
    ),
    LogFact(
        "order_lock", CLIENT, GROUP,
        "group: the client asked for an order lock",
        thinning=ONE_A_SECOND,
    ),
    LogFact(
        "notified", CLIENT, GROUP,
        "group, address: a broker sent CHANGE, at once after the group's members changed",
        thinning=replace(ONE_A_SECOND, per_place=False),
        rows=(
            FactKind(
                "NOTIFIED",
                "members got CHANGE; times are seconds in which any was told",
                EPISODES,
                details=fields("address"),
            ),
        ),
    ),
    trouble(
        "no_member_list", CLIENT, GROUP,
        "group, topic: no broker asked answered with the group's members",
        "NO_MEMBER_LIST",
        "a client got no list of members for the topic",
        with_pid=True,
        about=("topic",),
        details=fields("log"),
    ),
    trouble(
        "not_in_member_list", CLIENT, GROUP,
        "group, client_id, listed (how many ids the broker answered)",
        "NOT_IN_MEMBER_LIST",
        "a client was not in the list of members",
        about=("client_id",),
        details=fields("listed (how many), log"),
    ),
    LogFact(
        "pull_expired", CLIENT, GROUP,
        "group, topic, broker_name, queue_id: not pulled for pullMaxIdleTime (120 s), given up by "
        "the pass that finds it so and taken anew",
        with_pid=True,
        facts_only=True,
        rows=(
            FactKind(
                "PULL_EXPIRED",
                "a client gave up its queue, not pulled for two minutes, and took it anew",
                EPISODES,
                about=QUEUE,
                details=fields("log"),
            ),
        ),
    ),
    LogFact(
        "allocation_failed", CLIENT, CLUSTER,
        "strategy, message: the strategy threw; no group is printed",
        thinning=ONE_A_MINUTE,
        with_pid=True,
        facts_only=True,
        rows=(ALLOCATION_FAILED,),
    ),
    trouble(
        "heartbeat_failed", CLIENT, CLUSTER,
        "broker_name, address",
        "HEARTBEAT_FAILED",
        "a client's heartbeat failed; no group or client; times are minutes",
        thinning=ONE_A_MINUTE,
        with_pid=True,
        about=("broker_name",),
        details=fields("address, log, pid (5.1+)"),
    ),
    trouble(
        "no_broker", CLIENT, CLUSTER,
        "topic, broker_name, queue_id: a Go client's routes have no address of the queue's broker",
        "NO_BROKER_ADDRESS",
        "a Go client had no address of the queue's broker and did not pull; no group or client; "
        "times are minutes",
        thinning=ONE_A_MINUTE,
        about=QUEUE,
        details=fields("log"),
    ),
    trouble(
        "nothing_committed", CLIENT, GROUP,
        "group, topic, broker_name, queue_id: a broker told a Go client that the group has "
        "committed nothing on the queue (code 22)",
        "NOTHING_COMMITTED",
        "by a broker's answer the group has committed nothing on the queue; times are minutes",
        thinning=ONE_A_MINUTE,
        about=QUEUE,
        details=fields("log"),
    ),
    LogFact(
        "pull_refused", CLIENT, CLUSTER,
        "address of the broker that refused a pull ([REJECTREQUEST]): a slave not to be read",
        thinning=ONE_A_MINUTE,
    ),
    trouble(
        "broadcast_refused", CLIENT, GROUP,
        "group, and where the line before tells them (5.x) topic, broker_name",
        "BROADCAST_REFUSED",
        "a pull was refused, as the group forbids broadcasting; topic and broker_name in 5.x only",
        with_pid=True,
        details=fields("log"),
    ),
)  # fmt: skip


# Facts on POP that broker.log and rocketmq_client.log state (rocketmq.md §14).

POP_FACTS = (
    trouble(
        "no_assignment", BROKER, GROUP,
        "group, topic, reason (NO_MEMBERS, NO_TOPIC): QueryAssignment had no answer",
        "NO_ASSIGNMENT",
        "a broker had no assignment to answer",
        about=("topic", "broker_name"),
        details=fields("reason (NO_MEMBERS, NO_TOPIC)"),
    ),
    trouble(
        "strategy_unsupported", BROKER, CLUSTER,
        "strategy, client_addr: QueryAssignment knows AVG and AVG_BY_CIRCLE; no group is printed",
        "STRATEGY_UNSUPPORTED",
        "an assignment by a strategy that brokers do not know; times are minutes",
        thinning=ONE_A_MINUTE,
        about=("broker_name",),
        details=fields("strategy, client_addr"),
    ),
    trouble(
        "pop_timed_out", CLIENT, GROUP,
        "group, topic, invisible_ms: its invisible time was over before a message was consumed",
        "POP_TIMED_OUT",
        "popped messages were dropped unconsumed, their invisible time over",
        with_pid=True,
        about=("topic",),
        details=fields("invisible_ms, log"),
    ),
    trouble(
        "pop_forbidden", CLIENT, CLUSTER,
        "address (of the broker; empty where the line ends before): POP needs timerWheelEnable",
        "POP_FORBIDDEN",
        "a broker with timerWheelEnable=false refused POP",
        with_pid=True,
        details=fields("address, log, pid"),
    ),
    trouble(
        "missing_route", CLIENT, CLUSTER,
        "topic: no name server has a route of it",
        "MISSING_ROUTE",
        "a client asks for a topic without a route; no group or client",
        with_pid=True,
        about=("topic",),
        details=fields("log, pid"),
    ),
)  # fmt: skip


LOG_FACTS: dict[str, LogFact] = log_facts(
    (*BROKER_LOG, *LOCK_LOG, *NAME_SERVER_LOG, *CLIENT_LOG, *POP_FACTS, *PROXY_LOG)
)
