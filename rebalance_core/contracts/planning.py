"""The tables that only plans read."""

from rebalance_core.contracts.table import Table, columns

QUEUE_RATES = Table(
    "queue_rates",
    "How many messages a second came into a queue over a stretch of time.",
    columns(
        """
        cluster STRING the RocketMQ cluster
        topic STRING the topic
        broker_name STRING the broker
        queue_id INT the queue id on that broker
        from_ms BIGINT start, epoch ms UTC
        to_ms? BIGINT end (exclusive), epoch ms UTC; null: until further notice
        messages_per_second DOUBLE mean rate over the stretch, messages per second, 0 or more
        """
    ),
    key=("cluster", "topic", "broker_name", "queue_id", "from_ms"),
    required=False,
)

PLANNING_TABLES = {QUEUE_RATES.name: QUEUE_RATES}
"""What `plan` reads beside the input tables."""
