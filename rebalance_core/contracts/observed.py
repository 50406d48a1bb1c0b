"""What the audit compares with: live ownership and members as dumps show them."""

from rebalance_core.contracts.table import Table, columns

OBSERVED_OWNERSHIP = Table(
    "observed_ownership",
    "A queue held by a client as a dump shows it.",
    columns(
        """
        cluster STRING the RocketMQ cluster
        consumer_group STRING the group
        topic STRING the topic
        broker_name STRING the broker
        queue_id INT the queue id on that broker
        client_id STRING the holder
        observed_ms BIGINT when it was seen, epoch ms UTC
        source STRING file:line it came from
        """
    ),
    required=False,
)

OBSERVED_MEMBERS = Table(
    "observed_members",
    "A member of a group as one broker lists it.",
    columns(
        """
        cluster STRING the RocketMQ cluster
        consumer_group STRING the group
        asked_broker? STRING the broker that was asked; null: unknown
        client_id STRING the member
        client_addr? STRING its address
        language? STRING its language
        version? STRING its version
        subscriptions? ARRAY<STRING> its topics
        message_model? STRING CLUSTERING or BROADCASTING
        consume_from_where? STRING ConsumeFromWhere
        observed_ms BIGINT when it was seen, epoch ms UTC
        source STRING file:line it came from
        """
    ),
    required=False,
)

OBSERVED_TABLES = {table.name: table for table in (OBSERVED_OWNERSHIP, OBSERVED_MEMBERS)}
