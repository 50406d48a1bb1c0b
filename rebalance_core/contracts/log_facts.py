"""Every fact that lines of logs state, declared once.

A new one is a template in `rebalance_core.ingest.parse.logs` and a declaration here: where it
counts, how it is thinned and which rows of ``observed_facts`` it becomes follow from it. The
declarations stand here because the kinds of ``observed_facts`` are part of the contract.
"""

from dataclasses import replace

from rebalance_core.contracts.fact_declaration import (
    BROKER,
    CLIENT,
    CLUSTER,
    COMMIT,
    EPISODES,
    GROUP,
    LOCK,
    LOG_FOLDER,
    MOMENTS,
    NAME_SERVER,
    ONE_A_MINUTE,
    ONE_A_PLACE,
    ONE_A_SECOND,
    PROCESS_ID,
    TOPIC,
    FactKind,
    LogFact,
    log_facts,
)
from rebalance_core.model.time_units import MINUTE_MS

_CLIENT_TOPIC = FactKind(
    "CLIENT_TOPIC",
    "a client's own subscription, as it or a broker that it told says: expression; retry topics "
    "are left out",
)
_ALLOCATION_FAILED = FactKind(
    "ALLOCATION_FAILED",
    "a strategy threw: strategy, message, log, pid; a client's line names no group or client, a "
    "broker's (QueryAssignment) group and topic; times are minutes",
    EPISODES,
    MINUTE_MS,
)

_BROKER_LOG = (
    LogFact(
        "consumer_connected", BROKER, GROUP, "group",
        "group, consume_type, message_model and the fields of channel_info",
        of_slaves=True,
    ),
    LogFact(
        "consumer_data", BROKER, GROUP, "group",
        "channel (remote address) and the fields of consumer_data",
        of_slaves=True,
        rows=(_CLIENT_TOPIC,),
    ),
    LogFact(
        "consumer_left", BROKER, GROUP, "group",
        "group and channel_info: UNREGISTER_CLIENT, a graceful leave",
        of_slaves=True,
    ),
    LogFact(
        "consumer_closed", BROKER, GROUP, "group",
        "group and channel_info: its connection was seen closing",
        of_slaves=True,
    ),
    LogFact(
        "consumer_expired", BROKER, GROUP, "group",
        "group, channel: removed by the scan; no client id is printed",
        of_slaves=True,
    ),
    LogFact(
        "topic_created", BROKER, TOPIC, "topic",
        "topic, read, write, perm: queues are new and empty",
    ),
    LogFact(
        "topic_updated", BROKER, TOPIC, "topic",
        "topic, read, write, perm, and old: the same before",
    ),
    LogFact(
        "topic_loaded", BROKER, TOPIC, "topic",
        "topic, read, write, perm: was there when the broker started",
    ),
    LogFact("topic_deleted", BROKER, TOPIC, "topic", "topic"),
    LogFact(
        "broker_starting", BROKER, CLUSTER, "",
        "perm: brokerPermission; the broker's consumer table is empty",
    ),
    LogFact("broker_booted", BROKER, CLUSTER, "", "broker, address"),
    LogFact(
        "broker_property", BROKER, CLUSTER, "",
        "name (brokerName, brokerId: 4.9; brokerRole) and value, at the start",
    ),
    LogFact(
        "broker_follows", BROKER, CLUSTER, "",
        "address of the master that this slave copies from",
        thinning=ONE_A_MINUTE,
    ),
    LogFact(
        "broker_stopping", BROKER, CLUSTER, "", "no field: the shutdown hook runs",
    ),
    LogFact(
        "group_created", BROKER, GROUP, "group", "group, by (auto, admin)",
        facts_only=True,
        rows=(
            FactKind(
                "GROUP_CREATED",
                "the broker logged that the group was created: by (auto, admin)",
                MOMENTS,
            ),
        ),
        details=("by",),
    ),
    LogFact(
        "group_deleted", BROKER, GROUP, "group", "group",
        facts_only=True,
        rows=(
            FactKind("GROUP_DELETED", "the broker logged that the group was deleted", MOMENTS),
        ),
    ),
    LogFact(
        "subscription_changed", BROKER, GROUP, "group",
        "group, topic; version: a heartbeat brought a newer subVersion, old and new where the "
        "expression changed too; without it a heartbeat lacked the topic and took it out of the "
        "group's table",
        of_slaves=True,
        thinning=ONE_A_SECOND,
        facts_only=True,
        rows=(
            FactKind(
                "TAGS_CHANGED", "the broker saw the topic's expression change: old, new", EPISODES
            ),
            FactKind(
                "TOPIC_DROPPED",
                "a heartbeat without the topic took it out of the group's table",
                EPISODES,
            ),
        ),
    ),
    LogFact(
        "no_subscription", BROKER, GROUP, "group", "group, topic: a pull was refused",
        thinning=ONE_A_SECOND,
        facts_only=True,
        rows=(
            FactKind(
                "NO_SUBSCRIPTION",
                "a pull was refused: the group's table at the broker lacks the topic",
                EPISODES,
            ),
        ),
    ),
    LogFact(
        "offset_went_back", BROKER, GROUP, "group",
        "group, topic, queue_id, host, asked, stored: a commit too low",
        thinning=ONE_A_SECOND,
        facts_only=True,
        rows=(
            FactKind(
                "OFFSET_WENT_BACK",
                "commits below the stored one: client_host (5 addresses at most), "
                "highest_stored, lowest_asked",
                EPISODES,
            ),
        ),
    ),
    LogFact(
        "broker_allocation_failed", BROKER, GROUP, "group",
        "group, topic, strategy, message: QueryAssignment (5.x)",
        thinning=ONE_A_SECOND,
        facts_only=True,
        rows=(_ALLOCATION_FAILED,),
        details=("strategy", "message", LOG_FOLDER, PROCESS_ID),
    ),
)  # fmt: skip

_LOCK_LOG = (
    LogFact(
        "queue_locked", LOCK, GROUP, "group", "group: a member asked this broker for an order lock",
        thinning=ONE_A_SECOND,
    ),
    LogFact(
        "lock_refused", LOCK, GROUP, "group",
        "group, topic, broker_name, queue_id, client_id (who asked), owner",
        thinning=ONE_A_SECOND,
        rows=(
            FactKind(
                "LOCK_REFUSED",
                "client_id asked for an order lock that another client has: owner",
                EPISODES,
            ),
        ),
        details=("owner",),
    ),
)  # fmt: skip

_NAME_SERVER_LOG = (
    LogFact(
        "broker_registered", NAME_SERVER, CLUSTER, "",
        "address; a replica that was not there before",
    ),
    LogFact(
        "broker_address", NAME_SERVER, CLUSTER, "",
        "broker, address: the name of a master's new address (4.9)",
    ),
    LogFact(
        "broker_known", NAME_SERVER, CLUSTER, "",
        "broker, address: the same, repeated at every registration of a master (4.9)",
        thinning=ONE_A_PLACE,
    ),
    LogFact(
        "broker_removed", NAME_SERVER, CLUSTER, "",
        "broker: no replica of that name is left here",
    ),
    LogFact(
        "replica_removed", NAME_SERVER, CLUSTER, "",
        "address: one process of a broker is out of the route here",
    ),
    LogFact(
        "topic_registered", NAME_SERVER, TOPIC, "topic",
        "topic, broker_name, read, write, perm: the first queues of a topic",
    ),
    LogFact(
        "topic_route", NAME_SERVER, TOPIC, "topic",
        "topic, broker_name, read, write, perm, and old: the same before",
    ),
    LogFact(
        "broker_channel_closed", NAME_SERVER, CLUSTER, "",
        "no field: a broker's channel was seen closing",
    ),
    LogFact("broker_expired", NAME_SERVER, CLUSTER, "", "address: no registration for 120 s"),
)  # fmt: skip

_CLIENT_LOG = (
    LogFact(
        "allocated", CLIENT, GROUP, "group",
        "group, client_id, topic, strategy, queues (where they tell the parameters)",
        thinning=ONE_A_PLACE,
        with_pid=True,
    ),
    LogFact(
        "broker_allocated", CLIENT, GROUP, "group",
        "group, client_id, topic, strategy, mode (None: no queue): QueryAssignment",
    ),
    LogFact(
        "heartbeat", CLIENT, GROUP, "group",
        "client_id and the fields of consumer_data; one fact a group",
        with_pid=True,
        rows=(_CLIENT_TOPIC,),
    ),
    LogFact(
        "committed", CLIENT, COMMIT, "group", "group, client_id, topic, broker, queue_id, offset",
    ),
    LogFact("suspended", CLIENT, GROUP, "group", "group", with_pid=True),
    LogFact("resumed", CLIENT, GROUP, "group", "group", with_pid=True),
    LogFact(
        "paused", CLIENT, GROUP, "group",
        "group, instance: pulls of a suspended consumer, once a second",
        thinning=ONE_A_SECOND,
        with_pid=True,
    ),
    LogFact(
        "unsubscribed", CLIENT, GROUP, "group",
        "group, topic: its queues were dropped by truncateMessageQueueNotMyTopic",
    ),
    LogFact(
        "left_broker", CLIENT, GROUP, "group", "group: the client unregistered from one broker",
        with_pid=True,
    ),
    LogFact(
        "order_lock", CLIENT, GROUP, "group", "group: the client asked for an order lock",
        thinning=ONE_A_SECOND,
    ),
    LogFact(
        "notified", CLIENT, GROUP, "group",
        "group, address: a broker sent CHANGE, at once after the group's members changed",
        thinning=replace(ONE_A_SECOND, per_place=False),
    ),
    LogFact(
        "no_member_list", CLIENT, GROUP, "group",
        "group, topic: no broker asked answered with the group's members",
        thinning=ONE_A_SECOND,
        with_pid=True,
        facts_only=True,
        rows=(
            FactKind(
                "NO_MEMBER_LIST", "a client got no list of members for the topic: log", EPISODES
            ),
        ),
        details=(LOG_FOLDER,),
    ),
    LogFact(
        "not_in_member_list", CLIENT, GROUP, "group",
        "group, client_id, listed (how many ids the broker answered)",
        thinning=ONE_A_SECOND,
        facts_only=True,
        rows=(
            FactKind(
                "NOT_IN_MEMBER_LIST",
                "a client did not find itself in the list of members: listed (how many were, the "
                "first time), log",
                EPISODES,
            ),
        ),
    ),
    LogFact(
        "allocation_failed", CLIENT, CLUSTER, "",
        "strategy, message: the strategy threw; no group is printed",
        thinning=ONE_A_MINUTE,
        with_pid=True,
        facts_only=True,
        rows=(_ALLOCATION_FAILED,),
        details=("strategy", "message", LOG_FOLDER, PROCESS_ID),
    ),
    LogFact(
        "heartbeat_failed", CLIENT, CLUSTER, "", "broker_name, address",
        thinning=ONE_A_MINUTE,
        with_pid=True,
        facts_only=True,
        rows=(
            FactKind(
                "HEARTBEAT_FAILED",
                "a client's process could not send a heartbeat to the broker: address, log, pid "
                "(5.1+); its line names no group or client; times are minutes",
                EPISODES,
                MINUTE_MS,
            ),
        ),
        details=("address", LOG_FOLDER, PROCESS_ID),
    ),
    LogFact(
        "broadcast_refused", CLIENT, GROUP, "group",
        "group, and where the line before tells them (5.x) topic, broker_name",
        thinning=ONE_A_SECOND,
        with_pid=True,
        facts_only=True,
        rows=(
            FactKind(
                "BROADCAST_REFUSED",
                "a pull was refused, as the group's configuration forbids broadcasting: log "
                "(folder under clients/); topic and broker_name in 5.x only",
                EPISODES,
            ),
        ),
        details=(LOG_FOLDER,),
    ),
)  # fmt: skip

LOG_FACTS: dict[str, LogFact] = log_facts(
    (*_BROKER_LOG, *_LOCK_LOG, *_NAME_SERVER_LOG, *_CLIENT_LOG)
)
