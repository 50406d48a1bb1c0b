"""Facts that a client's rocketmq_client.log states."""

from dataclasses import replace

from rebalance_core.contracts.fact_declaration import (
    CLIENT,
    CLUSTER,
    COMMIT,
    EPISODES,
    GROUP,
    LOG_FOLDER,
    ONE_A_MINUTE,
    ONE_A_PLACE,
    ONE_A_SECOND,
    PROCESS_ID,
    FactKind,
    LogFact,
)
from rebalance_core.contracts.log_facts.shared_kinds import ALLOCATION_FAILED, CLIENT_TOPIC
from rebalance_core.model.times import MINUTE_MS

CLIENT_LOG = (
    LogFact(
        "allocated", CLIENT, GROUP, "group",
        "group, client_id, topic, strategy, queues (where they tell the parameters)",
        thinning=ONE_A_PLACE,
        with_pid=True,
    ),
    LogFact(
        "broker_allocated", CLIENT, GROUP, "group",
        "group, client_id, topic, strategy, mode (None: no queue), whole_brokers (any of its "
        "queues stands for all of a broker): QueryAssignment",
        with_pid=True,
    ),
    LogFact(
        "heartbeat", CLIENT, GROUP, "group",
        "client_id and the fields of consumer_data; one fact a group",
        with_pid=True,
        rows=(CLIENT_TOPIC,),
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
        rows=(
            FactKind(
                "NOTIFIED",
                "the broker sent CHANGE to members whose logs were collected: address; times are "
                "seconds in which any of them was told",
                EPISODES,
            ),
        ),
        details=("address",),
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
        "pull_expired", CLIENT, GROUP, "group",
        "group, topic, broker_name, queue_id: not pulled for pullMaxIdleTime (120 s), given up by "
        "the pass that finds it so and taken anew",
        with_pid=True,
        facts_only=True,
        rows=(
            FactKind(
                "PULL_EXPIRED",
                "a client gave up a queue of its own that it had not pulled for two minutes, and "
                "took it anew: log",
                EPISODES,
            ),
        ),
        details=(LOG_FOLDER,),
    ),
    LogFact(
        "allocation_failed", CLIENT, CLUSTER, "",
        "strategy, message: the strategy threw; no group is printed",
        thinning=ONE_A_MINUTE,
        with_pid=True,
        facts_only=True,
        rows=(ALLOCATION_FAILED,),
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
        "pull_refused", CLIENT, CLUSTER, "",
        "address of the broker that refused a pull ([REJECTREQUEST]): a slave not to be read",
        thinning=ONE_A_MINUTE,
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
