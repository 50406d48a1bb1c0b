"""The tables of simulated time: how a change spreads through a group, and what it costs."""

from rebalance_core.contracts.table import QUEUE_KEY, Table, columns

_CHANGE = """
    change_ms BIGINT when the change happened: from_ms of its epoch
    cause STRING event types, by sequence, joined by " + "
"""

HANDOVERS = Table(
    "handovers",
    "A queue that moves from one client to another in one simulated future; only the first seeds "
    "have rows.",
    columns(
        f"""
        cluster STRING the RocketMQ cluster
        consumer_group STRING the group
        seed BIGINT seed of the simulated future
        {_CHANGE.strip()}
        topic STRING the topic
        broker_name STRING the broker
        queue_id INT the queue id on that broker
        from_client_id? STRING the previous owner; null: the queue had no owner
        to_client_id? STRING the next owner; null: the queue got no owner
        drop_ms? BIGINT when the previous owner revoked the queue; null: no owner, or not revoked
        start_ms? BIGINT when the next owner took over the queue; null: no client took it over
        gap_ms BIGINT time for which the queue was unread, including the first pull
        overlap_ms BIGINT time for which both owners read the queue
        read_again? BIGINT messages read again; null: the rate is not known
        skipped? BIGINT messages never read; null: not known
        """
    ),
    key=(
        "cluster",
        "consumer_group",
        "seed",
        *QUEUE_KEY,
        "from_client_id",
        "to_client_id",
        "drop_ms",
        "start_ms",
    ),
)

PROPAGATION = Table(
    "propagation",
    "The effects of one change in a group, as means and percentiles over all simulated futures.",
    columns(
        f"""
        cluster STRING the RocketMQ cluster
        consumer_group STRING the group
        {_CHANGE.strip()}
        convergence_ms_p50 BIGINT time until the last queue is revoked or assigned
        convergence_ms_p95 BIGINT time until the last queue is revoked or assigned
        convergence_ms_p99 BIGINT time until the last queue is revoked or assigned
        convergence_ms_max BIGINT time until the last queue is revoked or assigned
        gap_ms_p50 BIGINT time for which a queue that changes its owner is unread
        gap_ms_p95 BIGINT time for which a queue that changes its owner is unread
        gap_ms_p99 BIGINT time for which a queue that changes its owner is unread
        gap_ms_max BIGINT time for which a queue that changes its owner is unread
        orphan_queue_seconds DOUBLE queues x seconds without an owner until the next change
        double_queue_seconds DOUBLE seconds x (owners - 1) of readable queues
        read_again? DOUBLE messages read again; null: a rate is not known
        delays STRING the basis of the simulated delays: recordings, or a fit
        extrapolated? STRING what exceeds the measured range, with that range; null: nothing does
        """
    ),
    key=("cluster", "consumer_group", "change_ms"),
)

PROPAGATION_TOTALS = Table(
    "propagation_totals",
    "A rollout (overlapping changes in a group), as means and percentiles. Only suspensions that "
    "last until the member stops count.",
    columns(
        """
        cluster STRING the RocketMQ cluster
        consumer_group STRING the group
        from_ms BIGINT when the first change happened
        to_ms BIGINT end of the observation, exclusive
        seeds BIGINT number of simulated futures
        finish_ms_mean DOUBLE time until the last queue is revoked or assigned
        finish_ms_p50 BIGINT time within which 50, 95 and 99 % of the futures finish
        finish_ms_p95 BIGINT time within which 50, 95 and 99 % of the futures finish
        finish_ms_p99 BIGINT time within which 50, 95 and 99 % of the futures finish
        orphan_queue_seconds_mean DOUBLE queues x seconds without an owner
        orphan_queue_seconds_p50 DOUBLE queues x seconds without an owner
        orphan_queue_seconds_p95 DOUBLE queues x seconds without an owner
        orphan_queue_seconds_p99 DOUBLE queues x seconds without an owner
        double_queue_seconds_mean DOUBLE seconds x (owners - 1) of readable queues
        double_queue_seconds_p50 DOUBLE seconds x (owners - 1) of readable queues
        double_queue_seconds_p95 DOUBLE seconds x (owners - 1) of readable queues
        double_queue_seconds_p99 DOUBLE seconds x (owners - 1) of readable queues
        read_again_mean? DOUBLE messages read again; null: a rate is not known
        read_again_p50? DOUBLE messages read again; null: a rate is not known
        read_again_p95? DOUBLE messages read again; null: a rate is not known
        read_again_p99? DOUBLE messages read again; null: a rate is not known
        late_queue_seconds_mean? DOUBLE lower bound of queues x seconds more than 1 s behind
        late_queue_seconds_p50? DOUBLE lower bound of queues x seconds more than 1 s behind
        late_queue_seconds_p95? DOUBLE lower bound of queues x seconds more than 1 s behind
        late_queue_seconds_p99? DOUBLE lower bound of queues x seconds more than 1 s behind
        """
    ),
    key=("cluster", "consumer_group", "from_ms"),
)

HELD = """
        topic STRING the topic
        broker_name STRING the broker
        queue_id INT the queue id on that broker
        client_id STRING the client that holds the queue
        channel_id? STRING the client's process
        from_ms? BIGINT when the process took over the queue; null: before the first change
        to_ms? BIGINT when the process revoked the queue, exclusive; null: it holds it to the end
"""
"""Columns of an interval in which a process holds a queue."""

HOLDERS = Table(
    "holders",
    "When a process holds a queue in one simulated future (its broker may be away), for the "
    "first --holder-seeds futures (default 0). From 5.0 on, the first pull comes 0.5 s after "
    "from_ms. Includes groups that broadcast.",
    columns(
        f"""
        cluster STRING the RocketMQ cluster
        consumer_group STRING the group
        seed BIGINT seed of the simulated future
        {HELD.strip()}
        """
    ),
    key=("cluster", "consumer_group", "seed", *QUEUE_KEY, "client_id", "channel_id", "from_ms"),
)

PROPAGATION_TABLES = {
    table.name: table for table in (PROPAGATION, PROPAGATION_TOTALS, HANDOVERS, HOLDERS)
}
"""What `propagate` writes, besides ``rejected``."""
