"""The tables of simulated time: how a change spreads through a group, and what it costs."""

from rebalance_core.contracts.table import QUEUE_KEY, Table, columns

_CHANGE = """
    change_ms BIGINT the change: from_ms of its epoch
    cause STRING event types, by sequence, joined by " + "
"""

HANDOVERS = Table(
    "handovers",
    "A queue that moves from one client to the next in one simulated future; only for the first "
    "seeds.",
    columns(
        f"""
        cluster STRING the RocketMQ cluster
        consumer_group STRING the group
        seed BIGINT of the simulated future
        {_CHANGE.strip()}
        topic STRING the topic
        broker_name STRING the broker
        queue_id INT the queue id on that broker
        from_client_id? STRING the previous owner; null: it had none
        to_client_id? STRING the next owner; null: it got none
        drop_ms? BIGINT when the previous owner revoked it; null: no owner, or never
        start_ms? BIGINT when the next owner took it; null: none did
        gap_ms BIGINT how long it was unread, first pull included
        overlap_ms BIGINT how long both read it
        read_again? BIGINT messages read again; null: rate not known
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
    "The effects of one change of a group: means and percentiles over all simulated futures.",
    columns(
        f"""
        cluster STRING the RocketMQ cluster
        consumer_group STRING the group
        {_CHANGE.strip()}
        convergence_ms_p50 BIGINT until the last queue is revoked or assigned
        convergence_ms_p95 BIGINT until the last queue is revoked or assigned
        convergence_ms_p99 BIGINT until the last queue is revoked or assigned
        convergence_ms_max BIGINT until the last queue is revoked or assigned
        gap_ms_p50 BIGINT how long a queue passed on was unread
        gap_ms_p95 BIGINT how long a queue passed on was unread
        gap_ms_p99 BIGINT how long a queue passed on was unread
        gap_ms_max BIGINT how long a queue passed on was unread
        orphan_queue_seconds DOUBLE queues x seconds without an owner until the next change
        double_queue_seconds DOUBLE seconds x (owners - 1) of readable queues
        read_again? DOUBLE messages read again; null: a rate is not known
        delays STRING the basis of the simulated delays: recordings, or a fit
        extrapolated? STRING what exceeds the measured range, and that range; null: nothing
        """
    ),
    key=("cluster", "consumer_group", "change_ms"),
)

PROPAGATION_TOTALS = Table(
    "propagation_totals",
    "A rollout (changes of a group that overlap): means and percentiles. Only suspensions that "
    "last until the member stops count.",
    columns(
        """
        cluster STRING the RocketMQ cluster
        consumer_group STRING the group
        from_ms BIGINT the first change
        to_ms BIGINT end of the observation, exclusive
        seeds BIGINT simulated futures
        finish_ms_mean DOUBLE until the last queue is revoked or assigned
        finish_ms_p50 BIGINT 50, 95 and 99 % of the futures are done by then
        finish_ms_p95 BIGINT 50, 95 and 99 % of the futures are done by then
        finish_ms_p99 BIGINT 50, 95 and 99 % of the futures are done by then
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
        late_queue_seconds_mean? DOUBLE at least: queues x seconds over 1 s behind
        late_queue_seconds_p50? DOUBLE at least: queues x seconds over 1 s behind
        late_queue_seconds_p95? DOUBLE at least: queues x seconds over 1 s behind
        late_queue_seconds_p99? DOUBLE at least: queues x seconds over 1 s behind
        """
    ),
    key=("cluster", "consumer_group", "from_ms"),
)

HELD = """
        topic STRING the topic
        broker_name STRING the broker
        queue_id INT the queue id on that broker
        client_id STRING who holds it
        channel_id? STRING its process
        from_ms? BIGINT when it took the queue; null: before the first change
        to_ms? BIGINT when it revoked the queue, exclusive; null: it holds the queue to the end
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
        seed BIGINT of the simulated future
        {HELD.strip()}
        """
    ),
    key=("cluster", "consumer_group", "seed", *QUEUE_KEY, "client_id", "channel_id", "from_ms"),
)

PROPAGATION_TABLES = {
    table.name: table for table in (PROPAGATION, PROPAGATION_TOTALS, HANDOVERS, HOLDERS)
}
"""What `propagate` writes, besides ``rejected``."""
