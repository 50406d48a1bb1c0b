"""A send in the mode ASYNC (``MQClientAPIImpl.sendMessageAsync``, ``onExceptionImpl``).

The jobs send synchronously; the vectors of upstream's producers also hold async sends, which share
the choice of queues and the table of avoided brokers with them.
"""

from dataclasses import dataclass
from typing import NamedTuple

from rebalance_core.model.queue import MessageQueue
from rebalance_core.model.versions import Version
from rebalance_core.producers.send_failures import (
    BROKER_EXCEPTION,
    CLIENT_EXCEPTION,
    CONNECT,
    INTERRUPTED,
    NO_CODE,
    STORE_STATUSES,
    TOO_MUCH_REQUEST,
    Brokers,
    JavaFailure,
    Reply,
    failure_of,
    final_failure,
    in_time,
    no_route,
)
from rebalance_core.producers.send_record import Producer, Request, SendRecord

RESPONSE_SCAN_MS = 1_000
"""NettyRemotingClient's timer: an async call counts as expired this long after its timeout."""


class AsyncRules(NamedTuple):
    """What only async sends ask of a version and of a producer's settings."""

    connects_later: bool
    """5.2.0+: a failed connection comes to the callback; before, the call itself throws"""
    needs_time: bool
    """5.3.2+: an async send is repeated only if time is left"""
    retry_times: int
    """retryTimesWhenSendAsyncFailed"""


def async_rules(version: Version, retry_times: int) -> AsyncRules:
    """Return the rules of a version."""
    return AsyncRules(version >= (5, 2, 0), version >= (5, 3, 2), retry_times)


def send_async(
    producer: Producer, brokers: Brokers, timeout_ms: int, rules: AsyncRules
) -> SendRecord:
    """Send one message; callbacks run once the call returned. rocketmq.md §9.3.

    Transport failures are repeated on another broker with the queue id of the first choice; a
    broker's error or a status ends the send.
    """
    record = SendRecord()
    if not producer.info.queues:
        record.failure = no_route()
        record.end_ms = producer.now_ms
        return record
    begin_ms = producer.now_ms
    queue = producer.choose(record, None, False)
    if not brokers.knows(queue.broker_name):
        isolated = not producer.strategy.profile.filters
        producer.report(record, queue.broker_name, 0, isolated, True)
        record.failure = final_failure(JavaFailure(CLIENT_EXCEPTION), 1)
    else:
        call = _Call(producer, brokers, record, queue, rules)
        call.start(queue.broker_name, timeout_ms)
        producer.report(record, queue.broker_name, producer.now_ms - begin_ms, False, True)
        call.run_callbacks()
    record.end_ms = producer.now_ms
    return record


@dataclass(slots=True)
class _Pending:
    """A request under way."""

    broker_name: str
    timeout_ms: int
    begin_ms: int
    answer: Reply


@dataclass(slots=True)
class _Call:
    """One async send: its requests follow one another."""

    producer: Producer
    brokers: Brokers
    record: SendRecord
    first: MessageQueue
    rules: AsyncRules
    times: int = 0
    pending: _Pending | None = None

    def start(self, broker: str, timeout_ms: int) -> None:
        """``sendMessageAsync``: leaves a request under way, or has failed for good."""
        producer, begin_ms = self.producer, self.producer.now_ms
        if timeout_ms < 0 and not self.rules.connects_later:
            self._thrown(broker, JavaFailure(TOO_MUCH_REQUEST), timeout_ms, begin_ms)
            return
        if not self.brokers.knows(broker):
            answer = Reply(CONNECT, 0)
        else:
            request = Request(broker, self.first.queue_id, timeout_ms, begin_ms)
            self.record.requests.append(request)
            answer = self.brokers.answer(broker, self.first.queue_id, timeout_ms, begin_ms)
        if self._throws(answer):
            producer.now_ms += answer.after_ms
            failed = failure_of(answer.kind)
            assert failed is not None
            self._thrown(broker, failed, timeout_ms, begin_ms)
            return
        self.pending = _Pending(broker, timeout_ms, begin_ms, answer)

    def run_callbacks(self) -> None:
        """Let the answers arrive, one after the other."""
        while self.pending is not None:
            pending, self.pending = self.pending, None
            self._arrived(pending)

    def _throws(self, answer: Reply) -> bool:
        if answer.kind == INTERRUPTED:
            return True
        return answer.kind == CONNECT and not self.rules.connects_later

    def _thrown(self, broker: str, failure: JavaFailure, timeout_ms: int, begin_ms: int) -> None:
        """The call itself throws: the ``catch`` of sendMessageAsync."""
        cost_ms = self.producer.now_ms - begin_ms
        self.producer.report(
            self.record, broker, cost_ms, True, not self.producer.strategy.profile.filters
        )
        self._failed(broker, timeout_ms - cost_ms, failure, retry=True)

    def _arrived(self, pending: _Pending) -> None:
        """``operationComplete``, ``operationSucceed``, ``operationFail``."""
        found_ms = pending.timeout_ms + RESPONSE_SCAN_MS
        kind, after_ms = in_time(pending.answer, pending.timeout_ms, found_ms)
        self.producer.now_ms = pending.begin_ms + after_ms
        failure, broker = failure_of(kind), pending.broker_name
        self.producer.report(self.record, broker, after_ms, failure is not None, True)
        if failure is None:
            self.record.status, self.record.stored_by = STORE_STATUSES[kind], broker
            return
        left_ms = pending.timeout_ms - after_ms
        if failure.java_class == BROKER_EXCEPTION:
            self._failed(broker, left_ms, failure, retry=False)
        else:
            wrapped = JavaFailure(CLIENT_EXCEPTION, NO_CODE, failure.java_class)
            self._failed(broker, left_ms, wrapped, retry=True)

    def _failed(self, broker: str, left_ms: int, failure: JavaFailure, *, retry: bool) -> None:
        """``onExceptionImpl``."""
        self.times += 1
        in_time = left_ms > 0 or not self.rules.needs_time
        if retry and in_time and self.times <= self.rules.retry_times:
            queue = self.producer.choose(self.record, broker, False)
            self.start(queue.broker_name, left_ms)
        else:
            self.record.failure = failure
