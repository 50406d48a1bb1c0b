"""A send with its retries, in sync or one-way mode (rocketmq.md §9.3).

Upstream: ``DefaultMQProducerImpl.sendDefaultImpl``.
"""

from rebalance_core.model.queue import MessageQueue
from rebalance_core.producers.send_failures import (
    BROKER_EXCEPTION,
    INTERRUPTED_EXCEPTION,
    NO_ADDRESS,
    OK,
    SEND_FAILURES,
    STORE_STATUSES,
    TOO_MUCH_REQUEST,
    Brokers,
    JavaFailure,
    failure_of,
    final_failure,
    in_time,
    no_route,
    verdict,
)
from rebalance_core.producers.send_record import Producer, Request, SendRecord

ONEWAY_STATUS = "SENT"


def send(
    producer: Producer, brokers: Brokers, timeout_ms: int, *, oneway: bool = False
) -> SendRecord:
    """Send one message and advance the producer's clock to the end of the send.

    A one-way send makes one attempt; a sync send is retried on failures, on the version's retry
    codes and, if so configured, on a status that is not OK. rocketmq.md §9.1, §9.3.
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
    """Send one request and report its result; return the kind of the answer."""
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
            kind = OK  # the sender does not wait for an answer
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
    """Return True if no attempt follows this failure."""
    if failure.java_class == BROKER_EXCEPTION:
        codes = producer.strategy.profile.retry_codes | producer.settings.extra_retry_codes
        return failure.code not in codes
    return failure.java_class == INTERRUPTED_EXCEPTION
