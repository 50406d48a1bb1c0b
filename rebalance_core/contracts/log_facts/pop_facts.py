"""Facts on POP that broker.log and rocketmq_client.log state (rocketmq.md §14)."""

from rebalance_core.contracts.fact_declaration import (
    BROKER,
    CLIENT,
    CLUSTER,
    EPISODES,
    GROUP,
    LOG_FOLDER,
    ONE_A_MINUTE,
    ONE_A_SECOND,
    PROCESS_ID,
    FactKind,
    LogFact,
)
from rebalance_core.model.times import MINUTE_MS

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
