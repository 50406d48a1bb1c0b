"""The possible results of a send attempt, and what each failure reports (rocketmq.md §9.3)."""

from dataclasses import dataclass
from typing import NamedTuple, Protocol

from rebalance_core.producers.profile import ProducerProfile

OK = "ok"
STORE_STATUSES = {
    "ok": "SEND_OK",
    "flush_disk_timeout": "FLUSH_DISK_TIMEOUT",
    "flush_slave_timeout": "FLUSH_SLAVE_TIMEOUT",
    "slave_not_available": "SLAVE_NOT_AVAILABLE",
}
"""Answers that carry a SendStatus; only the first means that the message is stored as requested."""
CODE_PREFIX = "code:"
CONNECT, SEND_REQUEST, TIMEOUT = "connect", "send_request", "timeout"
INTERRUPTED, NO_ADDRESS = "interrupted", "no_address"
SEND_FAILURES = (CONNECT, SEND_REQUEST, INTERRUPTED)
"""Failures before the request is sent, which the request's timeout does not cut short."""


class Reply(NamedTuple):
    """The outcome of an attempt, ``after_ms`` later: a kind above or ``code:N``, a broker's
    error.
    """

    kind: str
    after_ms: int


def in_time(answer: Reply, timeout_ms: int, found_ms: int) -> Reply:
    """Return the answer as the client sees it; a timeout hides it and is noticed ``found_ms``
    later.
    """
    late = answer.after_ms > timeout_ms and answer.kind not in SEND_FAILURES
    return Reply(TIMEOUT, found_ms) if late or answer.kind == TIMEOUT else answer


class Brokers(Protocol):
    """The brokers that answer, recorded or simulated."""

    def knows(self, broker_name: str) -> bool:
        """Return True if the client has an address for the broker's master."""

    def answer(self, broker_name: str, queue_id: int, timeout_ms: int, now_ms: int) -> Reply:
        """Return the answer to the next request to this broker; called once per request."""


@dataclass(frozen=True, slots=True)
class JavaFailure:
    """An exception of the client: its simple class name and response code."""

    java_class: str
    code: int | None = None
    cause: str | None = None
    """the class of the inner exception"""
    times: int | None = None
    """the number of attempts stated in the message"""

    @property
    def is_remoting(self) -> bool:
        """True for ``RemotingException`` and its subclasses."""
        return self.java_class.startswith("Remoting")


REMOTING_CLASSES = {
    CONNECT: "RemotingConnectException",
    SEND_REQUEST: "RemotingSendRequestException",
    TIMEOUT: "RemotingTimeoutException",
}
CLIENT_EXCEPTION, BROKER_EXCEPTION = "MQClientException", "MQBrokerException"
INTERRUPTED_EXCEPTION = "InterruptedException"
TOO_MUCH_REQUEST = "RemotingTooMuchRequestException"


def failure_of(kind: str) -> JavaFailure | None:
    """Return the exception for an answer, or None for a status.

    >>> failure_of("code:17")
    JavaFailure(java_class='MQBrokerException', code=17, cause=None, times=None)
    """
    if kind in STORE_STATUSES:
        return None
    if kind.startswith(CODE_PREFIX):
        return JavaFailure(BROKER_EXCEPTION, int(kind.removeprefix(CODE_PREFIX)))
    if kind == INTERRUPTED:
        return JavaFailure(INTERRUPTED_EXCEPTION)
    if kind == NO_ADDRESS:
        return JavaFailure(CLIENT_EXCEPTION)
    return JavaFailure(REMOTING_CLASSES[kind])


class Verdict(NamedTuple):
    """The report to the fault table."""

    isolation: bool
    """whether it counts as the version's isolation latency, regardless of its duration"""
    reachable: bool


def verdict(failed: JavaFailure | None, profile: ProducerProfile, *, detector: bool) -> Verdict:
    """Return the verdict on a sync attempt (rocketmq.md §9.2).

    Args:
        failed: The exception of the attempt; None if the broker answered with a status.
        profile: The profile of the client's version.
        detector: startDetectorEnable.
    """
    if failed is None or failed.java_class == INTERRUPTED_EXCEPTION:
        return Verdict(False, True)
    if not profile.filters:
        return Verdict(True, True)
    if failed.is_remoting:
        return Verdict(True, not detector)
    if failed.java_class == CLIENT_EXCEPTION:
        return Verdict(False, True)
    return Verdict(True, False)


CONNECT_BROKER = 10001  # ClientErrorCode.CONNECT_BROKER_EXCEPTION
ACCESS_BROKER_TIMEOUT = 10002
BROKER_NOT_EXIST = 10003
NOT_FOUND_TOPIC = 10005
NO_CODE = -1


def final_failure(last: JavaFailure, attempts: int) -> JavaFailure:
    """Return the ``MQClientException`` that wraps the last attempt's exception.
    rocketmq.md §9.3.
    """
    codes = {
        BROKER_EXCEPTION: last.code,
        REMOTING_CLASSES[CONNECT]: CONNECT_BROKER,
        REMOTING_CLASSES[TIMEOUT]: ACCESS_BROKER_TIMEOUT,
        CLIENT_EXCEPTION: BROKER_NOT_EXIST,
    }
    code = codes.get(last.java_class, NO_CODE)
    return JavaFailure(CLIENT_EXCEPTION, code, last.java_class, attempts)


def no_route() -> JavaFailure:
    """Return the failure for a topic without a queue to send to."""
    return JavaFailure(CLIENT_EXCEPTION, NOT_FOUND_TOPIC)
