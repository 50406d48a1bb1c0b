"""The tables of simulated time: how a change spreads through a group, and what it costs."""

from rebalance_core.contracts.table import Table, columns

_CHANGE = """
    change_ms BIGINT the change, epoch ms UTC; as from_ms of its epoch
    cause STRING types, by sequence, of the events that changed the state, joined by " + "
"""

HANDOVERS = Table(
    "handovers",
    "A queue passed from one client to the next in one simulated future; the first seeds alone.",
    columns(
        f"""
        cluster STRING the RocketMQ cluster
        consumer_group STRING the group
        seed BIGINT of the simulated future
        {_CHANGE.strip()}
        topic STRING the topic
        broker_name STRING the broker
        queue_id INT the queue id on that broker
        from_client_id? STRING who had it; null: nobody since the queue or the group was there
        to_client_id? STRING who took it next; null: nobody until the group was at rest
        drop_ms? BIGINT when the one gave it up, epoch ms UTC; null: had nobody, or never did
        start_ms? BIGINT when the other took it, epoch ms UTC; null: nobody did
        gap_ms BIGINT how long nobody read it, ms: until start_ms an owner was missing, then a pull
        overlap_ms BIGINT how long both had it, ms
        replayed? BIGINT messages read again; null: rate not known, or not between two owners
        skipped? BIGINT messages never read; 0 where a stored offset is certain, else null
        """
    ),
    key=(
        "cluster",
        "consumer_group",
        "seed",
        "topic",
        "broker_name",
        "queue_id",
        "from_client_id",
        "to_client_id",
        "drop_ms",
        "start_ms",
    ),
)

PROPAGATION = Table(
    "propagation",
    "What one change of a group leads to, over all simulated futures.",
    columns(
        f"""
        cluster STRING the RocketMQ cluster
        consumer_group STRING the group
        {_CHANGE.strip()}
        convergence_ms_p50 BIGINT from the change to the last queue given up or taken, ms: median
        convergence_ms_p95 BIGINT 95 % of the futures are done by then, ms
        convergence_ms_p99 BIGINT 99 %, ms
        convergence_ms_max BIGINT the slowest future, ms; 0: no queue moved in any
        gap_ms_p50 BIGINT how long a queue passed on was unread, first pull waited for, ms: median
        gap_ms_p95 BIGINT 95 % of these queues in all futures, ms
        gap_ms_p99 BIGINT 99 %, ms
        gap_ms_max BIGINT the longest, ms; 0: no queue passed from client to client
        orphan_queue_seconds DOUBLE queues x seconds without owner until the next change: mean
        double_queue_seconds DOUBLE time x (owners - 1) of readable queues, s: mean over seeds
        replayed_messages? DOUBLE messages read again: mean over seeds; null: a rate is not known
        """
    ),
    key=("cluster", "consumer_group", "change_ms"),
)

PROPAGATION_TOTALS = Table(
    "propagation_totals",
    "A rollout: changes of a group of which each comes before the last is over, as one.",
    columns(
        """
        cluster STRING the RocketMQ cluster
        consumer_group STRING the group
        from_ms BIGINT the first change, epoch ms UTC
        to_ms BIGINT until when it is followed, epoch ms UTC, exclusive
        seeds BIGINT simulated futures
        finish_ms_mean DOUBLE from from_ms to the last queue given up or taken, ms: mean
        finish_ms_p50 BIGINT median
        finish_ms_p95 BIGINT 95 % of the futures are done by then, ms
        finish_ms_p99 BIGINT 99 %, ms
        orphan_queue_seconds_mean DOUBLE queues x seconds without an owner: mean
        orphan_queue_seconds_p50 DOUBLE median
        orphan_queue_seconds_p95 DOUBLE 95 % of the futures have no more
        orphan_queue_seconds_p99 DOUBLE 99 %
        double_queue_seconds_mean DOUBLE time x (owners - 1) of readable queues, s: mean
        double_queue_seconds_p50 DOUBLE median
        double_queue_seconds_p95 DOUBLE 95 % of the futures have no more
        double_queue_seconds_p99 DOUBLE 99 %
        replayed_messages_mean? DOUBLE messages read again: mean; null: a rate is not known
        replayed_messages_p50? DOUBLE median; null: as the mean
        replayed_messages_p95? DOUBLE 95 % of the futures have no more; null: as the mean
        replayed_messages_p99? DOUBLE 99 %; null: as the mean
        late_queue_seconds_mean? DOUBLE queues x s with the oldest message over 1 s: mean; null: so
        late_queue_seconds_p50? DOUBLE median; null: a rate is not known, or above the speed
        late_queue_seconds_p95? DOUBLE 95 % of the futures have no more; null: as the median
        late_queue_seconds_p99? DOUBLE 99 %; null: as the median
        """
    ),
    key=("cluster", "consumer_group", "from_ms"),
)

PROPAGATION_TABLES = {table.name: table for table in (PROPAGATION, PROPAGATION_TOTALS, HANDOVERS)}
"""What `propagate` writes, beside ``rejected``."""
