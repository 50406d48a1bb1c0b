"""Facts that logs of clients state, and those of POP that both clients and brokers log."""

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
    LOG_FOLDER,
    ONE_A_MINUTE,
    ONE_A_PLACE,
    ONE_A_SECOND,
    PROCESS_ID,
    FactKind,
    LogFact,
)
from rebalance_core.model.times import MINUTE_MS

# Facts that a client's rocketmq_client.log states.

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


# Facts on POP that broker.log and rocketmq_client.log state (rocketmq.md §14).

POP_FACTS = (
    LogFact(
        "no_assignment", BROKER, GROUP, "group",
        "group, topic, reason (NO_MEMBERS, NO_TOPIC): QueryAssignment had no answer",
        thinning=ONE_A_SECOND,
        facts_only=True,
        rows=(
            FactKind(
                "NO_ASSIGNMENT",
                "a broker that was asked for an assignment answered none: reason (NO_MEMBERS: it "
                "knows no member of the group; NO_TOPIC: it knows no such topic)",
                EPISODES,
            ),
        ),
        details=("reason",),
    ),
    LogFact(
        "strategy_unsupported", BROKER, CLUSTER, "",
        "strategy, client_addr: QueryAssignment knows AVG and AVG_BY_CIRCLE; no group is printed",
        thinning=ONE_A_MINUTE,
        facts_only=True,
        rows=(
            FactKind(
                "STRATEGY_UNSUPPORTED",
                "a client asked the broker for an assignment by a strategy that brokers do not "
                "know: strategy, client_addr; times are minutes",
                EPISODES,
                MINUTE_MS,
            ),
        ),
        details=("strategy", "client_addr"),
    ),
    LogFact(
        "pop_timed_out", CLIENT, GROUP, "group",
        "group, topic, invisible_ms: its invisible time was over before a message was consumed",
        thinning=ONE_A_SECOND,
        with_pid=True,
        facts_only=True,
        rows=(
            FactKind(
                "POP_TIMED_OUT",
                "a client let go of popped messages unconsumed, as their invisible time was over: "
                "invisible_ms, log; times counts the seconds in which it did",
                EPISODES,
            ),
        ),
        details=("invisible_ms", LOG_FOLDER),
    ),
    LogFact(
        "pop_forbidden", CLIENT, CLUSTER, "",
        "address (of the broker; empty where the line ends before): POP needs timerWheelEnable",
        thinning=ONE_A_SECOND,
        with_pid=True,
        facts_only=True,
        rows=(
            FactKind(
                "POP_FORBIDDEN",
                "a broker with timerWheelEnable=false refused POP: address, log, pid",
                EPISODES,
            ),
        ),
        details=("address", LOG_FOLDER, PROCESS_ID),
    ),
    LogFact(
        "missing_route", CLIENT, CLUSTER, "",
        "topic: no name server has a route of it",
        thinning=ONE_A_SECOND,
        with_pid=True,
        facts_only=True,
        rows=(
            FactKind(
                "MISSING_ROUTE",
                "a client asks for a topic that has no route: log, pid (its line names no group "
                "or client); a pop retry topic's is missing until a message is retried, and its "
                "subscriber passes every second until then",
                EPISODES,
            ),
        ),
        details=(LOG_FOLDER, PROCESS_ID),
    ),
)  # fmt: skip
