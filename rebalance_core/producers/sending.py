"""One send with its retries, and what each failure reports (rocketmq.md §9.3)."""

from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from rebalance_core.model.queue import MessageQueue
from rebalance_core.producers.routes import PublishInfo
from rebalance_core.producers.strategy import FaultStrategy, ProducerProfile

# What can come of one attempt to send, and Java's exceptions for it.

OK = "ok"
STORE_STATUSES = {
    "ok": "SEND_OK",
    "flush_disk_timeout": "FLUSH_DISK_TIMEOUT",
    "flush_slave_timeout": "FLUSH_SLAVE_TIMEOUT",
    "slave_not_available": "SLAVE_NOT_AVAILABLE",
}
"""Answers that carry a SendStatus: only the first is stored as asked for."""
CODE_PREFIX = "code:"
CONNECT, SEND_REQUEST, TIMEOUT = "connect", "send_request", "timeout"
INTERRUPTED, NO_ADDRESS = "interrupted", "no_address"
SEND_FAILURES = (CONNECT, SEND_REQUEST, INTERRUPTED)
"""Failures before the request is out: the timeout of the request does not cut them short."""


class Reply(NamedTuple):
    """One attempt's fate: a kind above or ``code:N``, a broker's error, ``after_ms`` later."""

    kind: str
    after_ms: int


def in_time(answer: Reply, timeout_ms: int, found_ms: int) -> Reply:
    """Return what the client sees of an answer: after the timeout it is none, found so
    ``found_ms`` on.
    """
    late = answer.after_ms > timeout_ms and answer.kind not in SEND_FAILURES
    return Reply(TIMEOUT, found_ms) if late or answer.kind == TIMEOUT else answer


class Brokers(Protocol):
    """Who answers: a recorded world or a simulated one."""

    def knows(self, broker_name: str) -> bool:
        """True if the client has an address of the broker's master."""

    def answer(self, broker_name: str, queue_id: int, timeout_ms: int, now_ms: int) -> Reply:
        """Return what the next request to this broker meets; asked once for each request."""


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


# What the result of an attempt says of its broker: the catch blocks of ``sendDefaultImpl``.


class Verdict(NamedTuple):
    """The report to the fault table."""

    isolation: bool
    """it counts as the version's isolation latency, whatever it took"""
    reachable: bool


def verdict(failed: JavaFailure | None, profile: ProducerProfile, *, detector: bool) -> Verdict:
    """The verdict of a sync attempt. rocketmq.md §9.2.

    Args:
        failed: Its exception; null: the broker answered with a status.
        profile: Of the client's version.
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


# The exception that a send ends with when every attempt failed.

CONNECT_BROKER = 10001  # ClientErrorCode.CONNECT_BROKER_EXCEPTION
ACCESS_BROKER_TIMEOUT = 10002
BROKER_NOT_EXIST = 10003
NOT_FOUND_TOPIC = 10005
NO_CODE = -1


def final_failure(last: JavaFailure, attempts: int) -> JavaFailure:
    """``MQClientException`` around the last attempt's exception. rocketmq.md §9.3."""
    codes = {
        BROKER_EXCEPTION: last.code,
        REMOTING_CLASSES[CONNECT]: CONNECT_BROKER,
        REMOTING_CLASSES[TIMEOUT]: ACCESS_BROKER_TIMEOUT,
        CLIENT_EXCEPTION: BROKER_NOT_EXIST,
    }
    code = codes.get(last.java_class, NO_CODE)
    return JavaFailure(CLIENT_EXCEPTION, code, last.java_class, attempts)


def no_route() -> JavaFailure:
    """The topic has no queue to send to."""
    return JavaFailure(CLIENT_EXCEPTION, NOT_FOUND_TOPIC)


# A producer's settings, and what is kept of a send.

RETRY_TIMES = 2  # DefaultMQProducer.retryTimesWhenSendFailed


@dataclass(frozen=True, slots=True)
class ProducerSettings:
    """Settings of ``DefaultMQProducer`` that decide about retries; upstream's defaults."""

    retry_times: int = RETRY_TIMES
    retry_another_broker_when_not_store_ok: bool = False
    extra_retry_codes: frozenset[int] = frozenset()
    max_timeout_per_request_ms: int = -1
    """sendMsgMaxTimeoutPerRequest (5.3.3); -1: off"""
    detector: bool = False
    """startDetectorEnable (5.1.4+)"""


class Pick(NamedTuple):
    """A queue chosen, the broker to avoid, and the counter after the choice."""

    broker_name: str
    queue_id: int
    last_broker: str | None
    counter: int | None


class Request(NamedTuple):
    """A request that reached the transport."""

    broker_name: str
    queue_id: int
    timeout_ms: int
    at_ms: int


class Report(NamedTuple):
    """A call of updateFaultItem."""

    broker_name: str
    latency_ms: int
    isolation: bool
    reachable: bool
    at_ms: int


@dataclass(slots=True)
class SendRecord:
    """Everything one send did."""

    picks: list[Pick] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)
    reports: list[Report] = field(default_factory=list)
    status: str | None = None
    """SendStatus, or SENT of a one-way send; null: it failed"""
    stored_by: str | None = None
    """the broker whose answer the status is"""
    failure: JavaFailure | None = None
    end_ms: int = 0


@dataclass(slots=True)
class Producer:
    """One thread of one producer on one topic, and its clock."""

    strategy: FaultStrategy
    info: PublishInfo
    settings: ProducerSettings
    now_ms: int = 0
    late_ms: int = 0
    """how long after its timeout a sync attempt ends; on a real clock never at once"""

    def choose(self, record: SendRecord, last: str | None, reset: bool) -> MessageQueue:
        """Choose a queue and write it down."""
        queue = self.strategy.select(self.info, last, reset, self.now_ms)
        counter = self.info.counter.value
        record.picks.append(Pick(queue.broker_name, queue.queue_id, last, counter))
        return queue

    def report(
        self, record: SendRecord, broker: str, latency_ms: int, isolation: bool, reachable: bool
    ) -> None:
        """Report a result and write it down."""
        record.reports.append(Report(broker, latency_ms, isolation, reachable, self.now_ms))
        self.strategy.report(broker, latency_ms, isolation, reachable, self.now_ms)


# A send in the mode SYNC, or one-way (``DefaultMQProducerImpl.sendDefaultImpl``).

ONEWAY_STATUS = "SENT"


def send(
    producer: Producer, brokers: Brokers, timeout_ms: int, *, oneway: bool = False
) -> SendRecord:
    """Send one message; the producer's clock stands at the end of the send.

    A one-way send makes one attempt; a sync one repeats on failures, on the version's retry codes
    and, if so set, on a status that is not OK. rocketmq.md §9.1, §9.3.
    """
    record = SendRecord()
    begin_ms = producer.now_ms
    if not producer.info.queues:
        record.failure = no_route()
    else:
        _attempts(producer, brokers, timeout_ms, oneway, record)
    record.end_ms = max(producer.now_ms, begin_ms)
    return record


def _attempts(
    producer: Producer, brokers: Brokers, timeout_ms: int, oneway: bool, record: SendRecord
) -> None:
    begin_ms, total = producer.now_ms, 1 if oneway else 1 + producer.settings.retry_times
    last: str | None = None
    failure: JavaFailure | None = None
    for attempt in range(total):
        queue = producer.choose(record, last, attempt > 0)
        last, left_ms = queue.broker_name, timeout_ms - (producer.now_ms - begin_ms)
        if left_ms < 0:
            if record.status is None:
                record.failure = JavaFailure(TOO_MUCH_REQUEST)
            return
        left_ms = _capped(producer, left_ms, can_retry=attempt + 1 < total)
        kind = _attempt(producer, brokers, record, queue, left_ms, oneway)
        failed = failure_of(kind)
        if failed is None:
            record.status = ONEWAY_STATUS if oneway else STORE_STATUSES[kind]
            record.stored_by = None if oneway else last
            retry = producer.settings.retry_another_broker_when_not_store_ok
            if oneway or kind == OK or not retry:
                return
            continue
        failure = failed
        if _ends(producer, failed):
            if failed.java_class == INTERRUPTED_EXCEPTION or record.status is None:
                record.failure, record.status, record.stored_by = failed, None, None
            return
    if record.status is None and failure is not None:
        record.failure = final_failure(failure, total)


def _attempt(
    producer: Producer,
    brokers: Brokers,
    record: SendRecord,
    queue: MessageQueue,
    timeout_ms: int,
    oneway: bool,
) -> str:
    """Send one request and report its result; the kind of the answer."""
    begin_ms, broker = producer.now_ms, queue.broker_name
    if not brokers.knows(broker):
        kind = NO_ADDRESS
    else:
        record.requests.append(Request(broker, queue.queue_id, timeout_ms, begin_ms))
        answer = brokers.answer(broker, queue.queue_id, timeout_ms, begin_ms)
        kind, after_ms = (
            answer if oneway else in_time(answer, timeout_ms, timeout_ms + producer.late_ms)
        )
        producer.now_ms += after_ms
        if oneway and kind not in SEND_FAILURES:
            kind = OK  # nobody waits for an answer
    isolation, reachable = verdict(
        failure_of(kind), producer.strategy.profile, detector=producer.settings.detector
    )
    producer.report(record, broker, producer.now_ms - begin_ms, isolation, reachable)
    return kind


def _capped(producer: Producer, left_ms: int, can_retry: bool) -> int:
    cap = producer.settings.max_timeout_per_request_ms
    if producer.strategy.profile.caps_attempts and can_retry and -1 < cap < left_ms:
        return cap
    return left_ms


def _ends(producer: Producer, failure: JavaFailure) -> bool:
    """True if no attempt follows this failure."""
    if failure.java_class == BROKER_EXCEPTION:
        codes = producer.strategy.profile.retry_codes | producer.settings.extra_retry_codes
        return failure.code not in codes
    return failure.java_class == INTERRUPTED_EXCEPTION
