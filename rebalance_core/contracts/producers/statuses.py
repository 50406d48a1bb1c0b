"""How an attempt to send ended, in words, and why a broker is avoided."""

SEND_OK = "SEND_OK"
STORED = (SEND_OK, "FLUSH_DISK_TIMEOUT", "FLUSH_SLAVE_TIMEOUT", "SLAVE_NOT_AVAILABLE")
"""SendStatus: the broker answered and has the message."""
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
"""Slow results alone, or a failed one among them."""
