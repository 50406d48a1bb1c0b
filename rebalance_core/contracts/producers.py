"""The tables of producers, and the words in them."""

from rebalance_core.contracts.planning import QUEUE_RATES
from rebalance_core.contracts.table import QUEUE_KEY, Table, columns

SEND_OK = "SEND_OK"
STORED = (SEND_OK, "FLUSH_DISK_TIMEOUT", "FLUSH_SLAVE_TIMEOUT", "SLAVE_NOT_AVAILABLE")
"""The values of SendStatus with which the broker answered and has the message."""
CONNECT_FAILED, SEND_FAILED, TIMEOUT, BROKER_ERROR, NO_ADDRESS, INTERRUPTED = FAILED = (
    "CONNECT_FAILED",
    "SEND_FAILED",
    "TIMEOUT",
    "BROKER_ERROR",
    "NO_ADDRESS",
    "INTERRUPTED",
)
"""RemotingConnectException, RemotingSendRequestException, RemotingTimeoutException,
MQBrokerException, MQClientException (the client has no address of the broker), interruption.
"""
SEND_STATUSES = (*STORED, *FAILED)

BY_LATENCY, BY_FAILURE = ISOLATION_REASONS = ("LATENCY", "FAILURE")
"""Only slow results, or slow results including a failed one."""


SEND_RESULTS = Table(
    "send_results",
    "The result of one attempt of a producer to send to a broker.",
    columns(
        """
        cluster STRING the RocketMQ cluster
        producer_group STRING the producer group
        client_id STRING the producer's client id
        topic STRING the topic
        broker_name STRING the broker that was tried
        event_ms BIGINT when the result arrived
        latency_ms BIGINT time from the attempt to its result
        status STRING {allowed}
        """,
        status=SEND_STATUSES,
    ),
)

PRODUCER_INPUT_TABLES = {SEND_RESULTS.name: SEND_RESULTS}
"""What `producers` reads, besides ``cluster_events`` for the brokers' names."""

_PRODUCER = columns(
    """
        cluster STRING the RocketMQ cluster
        producer_group STRING the producer group
        client_id STRING the producer's client id
    """
)

PUBLISH_CHOICES = Table(
    "publish_choices",
    "The number of times that a producer chose a queue in a period, including retries.",
    _PRODUCER
    + columns(
        """
        topic STRING the topic
        broker_name STRING the broker
        queue_id? INT the queue id on that broker; null: results do not name it
        from_ms BIGINT start of the period
        to_ms BIGINT end of the period, exclusive
        sends BIGINT number of attempts to send, 1 or more
        """
    ),
    key=("cluster", "producer_group", "client_id", *QUEUE_KEY, "from_ms"),
)

BROKER_ISOLATIONS = Table(
    "broker_isolations",
    "A period in which a producer with sendLatencyFaultEnable avoids a broker.",
    _PRODUCER
    + columns(
        """
        broker_name STRING the broker
        from_ms BIGINT when the result that caused the isolation arrived
        to_ms BIGINT when the broker may be chosen again
        latency_ms BIGINT largest latency of the preceding results
        reason STRING LATENCY (slow results only) or FAILURE (including a failed result)
        """,
        reason=ISOLATION_REASONS,
    ),
    key=("cluster", "producer_group", "client_id", "broker_name", "from_ms"),
)

_VARIANT_PHASE = columns(
    """
        cluster STRING the RocketMQ cluster
        producer_group STRING the producer group
        topic STRING the topic
        client_version STRING version of the client
        fault_tolerance BOOLEAN sendLatencyFaultEnable
        phase STRING what is disturbed in the phase; healthy: nothing; recorded: as in send_results
        from_ms BIGINT start of the phase
        to_ms BIGINT end of the phase, exclusive
    """
)
_VARIANT_KEY = (
    "cluster",
    "producer_group",
    "topic",
    "client_version",
    "fault_tolerance",
    "from_ms",
)

PRODUCER_OUTCOMES = Table(
    "producer_outcomes",
    "What happens to a producer group's messages in each phase, version and setting.",
    _VARIANT_PHASE
    + columns(
        """
        producers INT number of clients in the group
        sends BIGINT messages sent, successfully or not
        failed BIGINT messages that failed after all retries
        held_back BIGINT messages not sent because a send occupied the thread
        mean_wait_ms? DOUBLE mean time for which a send occupied its thread
        stored BIGINT messages stored
        peak_queue_ratio? DOUBLE messages of the busiest queue x queues / stored
        """
    ),
    key=_VARIANT_KEY,
)

PRODUCER_SHARES = Table(
    "producer_shares",
    "Each broker's share of a producer group's attempts.",
    _VARIANT_PHASE
    + columns(
        """
        broker_name STRING the broker
        attempts BIGINT attempts to send to the broker
        share? DOUBLE share of all attempts; null without attempts
        slow BIGINT attempts that took 550 ms or more, including failed ones
        errors BIGINT attempts that failed
        recovery_ms? BIGINT from the end of the disturbance until the last producer chose it again
        not_recovered? INT producers that did not choose the broker again
        avoided? BIGINT attempts that the fault table advised against; null: from a model
        """
    ),
    key=(*_VARIANT_KEY, "broker_name"),
)

PRODUCER_OUTPUT_TABLES = {
    table.name: table
    for table in (PUBLISH_CHOICES, BROKER_ISOLATIONS, PRODUCER_OUTCOMES, PRODUCER_SHARES)
}
"""What `producers` writes, besides ``queue_rates`` and ``rejected``."""

PRODUCER_WRITTEN = (*PRODUCER_OUTPUT_TABLES, QUEUE_RATES.name)
