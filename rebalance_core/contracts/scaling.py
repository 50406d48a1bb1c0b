"""The tables of `autoscale`: arrivals, members' capacity, and how scalers react."""

from rebalance_core.contracts.table import Table, columns

WORLDS = ("likely", "low", "high")

ARRIVALS = Table(
    "arrivals",
    "Messages that arrive per second during a period: for a topic (divided evenly among its "
    "queues), for a broker's queues of the topic, or for one queue.",
    columns(
        """
        cluster? STRING the RocketMQ cluster; null: every cluster of the input
        from_ms BIGINT start of the period
        to_ms BIGINT end of the period, exclusive
        topic STRING the topic
        broker_name? STRING the broker; null: all brokers of the topic
        queue_id? INT the queue id on that broker; null: all its queues
        messages_per_second DOUBLE the most likely mean rate; 0 or more
        low? DOUBLE lowest possible rate; null: messages_per_second
        high? DOUBLE highest possible rate; null: messages_per_second
        """
    ),
    key=("cluster", "topic", "broker_name", "queue_id", "from_ms"),
    required=False,
)

CAPACITY = Table(
    "capacity",
    "The processing capacity of a member of a group.",
    columns(
        """
        cluster? STRING the RocketMQ cluster; null: every cluster of the input
        consumer_group STRING the group
        service_ms DOUBLE most likely mean time that a thread takes per message, in ms; above 0
        threads? INT messages that a member processes at once; null: 20
        batch? INT messages per call of the listener; null: 1
        ordered? BOOLEAN orderly listener: one thread reads a queue; null: as in consumer_groups
        service_ms_low? DOUBLE lowest possible mean; null: service_ms
        service_ms_high? DOUBLE highest possible mean; null: service_ms
        service_ms_p99? DOUBLE 99 % of messages take at most this, log-normal; null: the mean
        """
    ),
    key=("cluster", "consumer_group"),
    required=False,
)

RECORDED_SCALING = Table(
    "recorded_scaling",
    "A group at one moment, according to metrics. Replicas hold until the next row that has them. "
    "Where such rows are twice as far apart as usual (the median) one is missing; the row before, "
    "like the last, then holds for the usual distance, and a single row for no time.",
    columns(
        """
        cluster? STRING the RocketMQ cluster; null: the series do not name it
        consumer_group STRING the group
        at_ms BIGINT the moment
        replicas? INT replicas of the group's Deployment, or members counted by an exporter
        lag? DOUBLE waiting messages
        delivered_per_second? DOUBLE messages per second to members since the previous moment
        """
    ),
    key=("cluster", "consumer_group", "at_ms"),
    required=False,
)

SCALING_INPUT_TABLES = {table.name: table for table in (ARRIVALS, CAPACITY, RECORDED_SCALING)}
"""What `autoscale` reads besides the input tables, and `read-metrics` writes."""

_OF_FUTURE = """
        cluster STRING the RocketMQ cluster
        consumer_group STRING the group
        policy STRING name of the policy
        world STRING {allowed}: the value of the inputs' intervals that is assumed
        seed BIGINT seed of the simulated future
"""

SCALING_STEPS = Table(
    "scaling_steps",
    "A scaler decision that changes the number of replicas.",
    columns(
        f"""
        {_OF_FUTURE.strip()}
        at_ms BIGINT when the scaler decided
        from_replicas INT replicas before the decision
        to_replicas INT replicas after the decision
        lag? DOUBLE the group's lag as seen by the scaler; null: no value
        rate? DOUBLE arriving messages per second as seen by the scaler; null: it ignores rates
        """,
        world=WORLDS,
    ),
    key=("cluster", "consumer_group", "policy", "world", "seed", "at_ms"),
)

LAG_OVER_TIME = Table(
    "lag_over_time",
    "A group under a policy, minute by minute, in the first --lag-seeds futures.",
    columns(
        f"""
        {_OF_FUTURE.strip()}
        at_ms BIGINT the moment
        lag DOUBLE waiting messages
        replicas INT pods, including those that are starting
        members INT members that have joined
        messages_per_second DOUBLE messages that arrive per second in all queues
        unowned_queues DOUBLE queues without a reader in the previous second
        """,
        world=WORLDS,
    ),
    key=("cluster", "consumer_group", "policy", "world", "seed", "at_ms"),
)

POLICY_SUMMARY = Table(
    "policy_summary",
    "A policy in a group, and in all simulated groups together (consumer_group is null): means "
    "over the futures; p99 is what 99 % of them do not exceed.",
    columns(
        """
        cluster? STRING cluster of the group; null: all groups together
        consumer_group? STRING the group; null: all groups together
        policy STRING name of the policy; recorded: the replicas of recorded_scaling
        world STRING {allowed}: the value of the inputs' intervals that is assumed
        futures BIGINT number of simulated futures
        from_ms? BIGINT start of the replayed period
        to_ms? BIGINT end of the replayed period
        pod_hours? DOUBLE replicas x hours
        steps? DOUBLE decisions that change the replicas
        reversals? DOUBLE steps in the opposite direction of the previous step
        moves? DOUBLE queues that a member takes from another
        no_owner_queue_seconds? DOUBLE queues x seconds in which no member reads
        read_again? DOUBLE messages that two members read
        pulled_again? DOUBLE messages that a member had cached and the next one pulls again
        lag_mean? DOUBLE waiting messages
        lag_p50? DOUBLE lag that half of the seconds do not exceed
        lag_p99? DOUBLE lag that 99 % of the seconds do not exceed
        lag_max? DOUBLE largest number of waiting messages
        longest_wait_s? DOUBLE longest wait of a message, in whole seconds
        late_queue_seconds? DOUBLE queues x seconds with a message that waits longer than --promise
        late_messages? DOUBLE messages that waited longer than --promise
        late_messages_p99? DOUBLE the same
        pod_hours_p99? DOUBLE replicas x hours
        price? DOUBLE price by --pod-hour-price and --late-price
        on_front? BOOLEAN no policy but recorded has both fewer pod hours and fewer late messages
        within_budget? BOOLEAN 99 % of the futures keep --max-late and --max-pod-hours
        regret? DOUBLE price above that of the best policy in this world; recorded: may be negative
        chosen BOOLEAN within the budgets, with the smallest maximum regret across worlds
        reason? STRING the reason why the policy is not simulated and its figures are null
        """,
        world=WORLDS,
    ),
    key=("cluster", "consumer_group", "policy", "world"),
)

SCALING_TABLES = {table.name: table for table in (SCALING_STEPS, LAG_OVER_TIME, POLICY_SUMMARY)}
"""What `autoscale` writes, besides `rejected`."""
