"""What can come of one attempt to send, and Java's exceptions for it."""

from dataclasses import dataclass
from typing import NamedTuple, Protocol

OK = "ok"
STORE_STATUSES = {
    "ok": "SEND_OK",
    "flush_disk_timeout": "FLUSH_DISK_TIMEOUT",
    "flush_slave_timeout": "FLUSH_SLAVE_TIMEOUT",
    "slave_not_available": "SLAVE_NOT_AVAILABLE",
}
"""Answers that carry a SendStatus: only the first is stored as asked for."""
CODE_PREFIX = "code:"
CONNECT, SEND_REQUEST, TIMEOUT, INTERRUPTED, NO_ADDRESS = FAILURES = (
    "connect",
    "send_request",
    "timeout",
    "interrupted",
    "no_address",
)
SEND_FAILURES = (CONNECT, SEND_REQUEST, INTERRUPTED)
"""Failures before the request is out: the timeout of the request does not cut them short."""


class Answer(NamedTuple):
    """One attempt's fate: a kind above or ``code:N``, a broker's error, ``after_ms`` later."""

    kind: str
    after_ms: int


def in_time(answer: Answer, timeout_ms: int, found_ms: int) -> Answer:
    """What the client sees of an answer: after the timeout it is none, found so ``found_ms`` on."""
    late = answer.after_ms > timeout_ms and answer.kind not in SEND_FAILURES
    return Answer(TIMEOUT, found_ms) if late or answer.kind == TIMEOUT else answer


class Brokers(Protocol):
    """Who answers: a recorded world or a simulated one."""

    def knows(self, broker_name: str) -> bool:
        """True if the client has an address of the broker's master."""
        ...

    def answer(self, broker_name: str, queue_id: int, timeout_ms: int, now_ms: int) -> Answer:
        """What the next request to this broker meets; asked once for each request."""
        ...


@dataclass(frozen=True, slots=True)
class JavaFailure:
    """An exception of the client: its simple class name and response code."""

    java_class: str
    code: int | None = None
    cause: str | None = None
    """class of the exception inside"""
    times: int | None = None
    """attempts that the message names"""

    @property
    def is_remoting(self) -> bool:
        """True for ``RemotingException`` and its children."""
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
    """The exception of an answer; null for a status.

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
