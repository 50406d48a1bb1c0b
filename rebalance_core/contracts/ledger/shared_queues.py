"""What a simulation says of queues that members share."""

from rebalance_core.contracts.table import Table, columns

POP_REACH = Table(
    "pop_reach",
    "Which queues a client may take messages from, of topics whose queues members share.",
    columns(
        """
        cluster STRING the RocketMQ cluster
        consumer_group STRING the group
        topic STRING the topic
        broker_name STRING the broker
        queue_id INT the queue id on that broker; -1: any readable queue of the broker
        client_id STRING who may take messages
        from_epoch INT first epoch
        to_epoch? INT first epoch after it; null: open
        from_ms BIGINT start of from_epoch, epoch ms UTC
        to_ms? BIGINT start of to_epoch, epoch ms UTC; null: open
        """
    ),
    key=(
        "cluster",
        "consumer_group",
        "topic",
        "broker_name",
        "queue_id",
        "client_id",
        "from_epoch",
    ),
    since=2,
)

POP_METRICS = Table(
    "pop_metrics",
    "How clients and queues of a shared topic meet, per epoch.",
    columns(
        """
        cluster STRING the RocketMQ cluster
        consumer_group STRING the group
        epoch INT the epoch
        topic STRING the topic
        clients INT distinct ids that subscribe it
        queues INT its readable queues
        min_clients_per_queue INT fewest clients that may take from one queue; 0 without queues
        max_clients_per_queue INT most of them
        min_queues_per_client INT fewest queues that one client may take from; 0 without clients
        max_queues_per_client INT most of them
        unreached INT readable queues that surely no client may take from
        """
    ),
    key=("cluster", "consumer_group", "epoch", "topic"),
    since=2,
)
