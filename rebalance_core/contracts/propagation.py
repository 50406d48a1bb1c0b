"""The tables of simulated time: how a change spreads through a group, and what it costs."""

from rebalance_core.contracts.table import Table, columns

_CHANGE = """
    change_ms BIGINT the change; as from_ms of its epoch
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
        drop_ms? BIGINT when the one gave it up; null: had nobody, or never did
        start_ms? BIGINT when the other took it; null: nobody did
        gap_ms BIGINT how long nobody read it: until start_ms without an owner, then without a pull
        overlap_ms BIGINT how long both had it
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
    "What one change of a group leads to: means and percentiles over all simulated futures.",
    columns(
        f"""
        cluster STRING the RocketMQ cluster
        consumer_group STRING the group
        {_CHANGE.strip()}
        convergence_ms_p50 BIGINT from the change to the last queue given up or taken; 0: none moved
        convergence_ms_p95 BIGINT from the change to the last queue given up or taken; 0: none moved
        convergence_ms_p99 BIGINT from the change to the last queue given up or taken; 0: none moved
        convergence_ms_max BIGINT from the change to the last queue given up or taken; 0: none moved
        gap_ms_p50 BIGINT how long a queue passed on was unread, first pull included; 0: none was
        gap_ms_p95 BIGINT how long a queue passed on was unread, first pull included; 0: none was
        gap_ms_p99 BIGINT how long a queue passed on was unread, first pull included; 0: none was
        gap_ms_max BIGINT how long a queue passed on was unread, first pull included; 0: none was
        orphan_queue_seconds DOUBLE queues x seconds without an owner until the next change
        double_queue_seconds DOUBLE time x (owners - 1) of readable queues, s
        replayed_messages? DOUBLE messages read again; null: a rate is not known
        """
    ),
    key=("cluster", "consumer_group", "change_ms"),
)

PROPAGATION_TOTALS = Table(
    "propagation_totals",
    "A rollout, that is changes of a group of which each comes before the last is over: means and "
    "percentiles over the futures.",
    columns(
        """
        cluster STRING the RocketMQ cluster
        consumer_group STRING the group
        from_ms BIGINT the first change
        to_ms BIGINT until when it is followed, exclusive
        seeds BIGINT simulated futures
        finish_ms_mean DOUBLE from from_ms to the last queue given up or taken: mean
        finish_ms_p50 BIGINT 50, 95 and 99 % of the futures are done by then
        finish_ms_p95 BIGINT 50, 95 and 99 % of the futures are done by then
        finish_ms_p99 BIGINT 50, 95 and 99 % of the futures are done by then
        orphan_queue_seconds_mean DOUBLE queues x seconds without an owner
        orphan_queue_seconds_p50 DOUBLE queues x seconds without an owner
        orphan_queue_seconds_p95 DOUBLE queues x seconds without an owner
        orphan_queue_seconds_p99 DOUBLE queues x seconds without an owner
        double_queue_seconds_mean DOUBLE time x (owners - 1) of readable queues, s
        double_queue_seconds_p50 DOUBLE time x (owners - 1) of readable queues, s
        double_queue_seconds_p95 DOUBLE time x (owners - 1) of readable queues, s
        double_queue_seconds_p99 DOUBLE time x (owners - 1) of readable queues, s
        replayed_messages_mean? DOUBLE messages read again; null: a rate is not known
        replayed_messages_p50? DOUBLE messages read again; null: a rate is not known
        replayed_messages_p95? DOUBLE messages read again; null: a rate is not known
        replayed_messages_p99? DOUBLE messages read again; null: a rate is not known
        late_queue_seconds_mean? DOUBLE queues x s over 1 s behind; null: rate unknown or too high
        late_queue_seconds_p50? DOUBLE queues x s over 1 s behind; null: rate unknown or too high
        late_queue_seconds_p95? DOUBLE queues x s over 1 s behind; null: rate unknown or too high
        late_queue_seconds_p99? DOUBLE queues x s over 1 s behind; null: rate unknown or too high
        """
    ),
    key=("cluster", "consumer_group", "from_ms"),
)

PROPAGATION_TABLES = {table.name: table for table in (PROPAGATION, PROPAGATION_TOTALS, HANDOVERS)}
"""What `propagate` writes, beside ``rejected``."""
