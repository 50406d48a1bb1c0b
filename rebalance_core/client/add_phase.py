"""The add phase of a pass, in which the client takes queues (rocketmq.md §4.3).

Upstream: the second half of ``RebalanceImpl.updateProcessQueueTableInRebalance``.
"""

from collections.abc import Iterable
from typing import Any

from rebalance_core.client.broker_answers import BrokerAnswers
from rebalance_core.client.pass_record import PULL_FROM_WHERE, UPDATE_TABLE, PassRecord
from rebalance_core.client.process import ClientProcess, ProcessQueue
from rebalance_core.model.queue import MessageQueue
from rebalance_core.model.times import FIRST_PULL_DELAY_MS, REBALANCE_LATER_MS
from rebalance_core.protocol.start_offset import (
    QUERY_FAILED,
    compute_pull_from_where_no_exception,
    start_rule,
)


def add_assigned(
    process: ClientProcess,
    brokers: BrokerAnswers,
    assigned: Iterable[MessageQueue],
    record: PassRecord,
) -> bool:
    """Add every assigned queue that is not in the table; return True if any was added.

    A zombie is still in the table, so it blocks its queue. The topic is not checked, so CONFIG's
    queues of other topics are added too. Upstream's order (that of a HashSet) has no visible
    effect, so any order will do.
    """
    all_locked = True
    added = False
    for queue in assigned:
        if queue in process.table:
            continue
        if process.locks_on_addition:
            granted = brokers.lock(queue, process.client_id)
            record.locks.append((queue, granted))
            record.note(UPDATE_TABLE, "locked" if granted else "lock refused", queue)
            if not granted:
                all_locked = False
                continue
        process.store.remove(queue)  # removeDirtyOffset
        offset = _start_offset(process, brokers, queue, record)
        if offset >= 0:
            process.table[queue] = ProcessQueue(offset)
            record.added[queue] = offset
            record.note(UPDATE_TABLE, "added", queue, offset=offset)
            added = True
    if not process.version.is_v4:
        if not all_locked:
            record.rebalance_later_ms.append(REBALANCE_LATER_MS)
            record.note(UPDATE_TABLE, "later", delay_ms=REBALANCE_LATER_MS)
        if added:
            record.first_pull_delay_ms = FIRST_PULL_DELAY_MS
    return added


def _start_offset(
    process: ClientProcess, brokers: BrokerAnswers, queue: MessageQueue, record: PassRecord
) -> int:
    """Return the start offset, or a negative number if the queue is not added in this pass."""
    asked: dict[str, Any] = {
        "consumer_type": process.settings.consumer_type,
        "consume_from_where": process.settings.consume_from_where,
        "topic": queue.topic,
        "stored_offset": process.store.read(queue, brokers, memory_first=process.is_lite_pull),
        "max_offset": brokers.max_offset(queue),
        "timestamp_offset": brokers.timestamp_offset(queue),
        "version": process.version,
    }
    offset = compute_pull_from_where_no_exception(**asked)
    if record.steps is not None:
        rule = QUERY_FAILED if offset < 0 else start_rule(**asked)[0]
        record.note(
            PULL_FROM_WHERE,
            "start" if offset >= 0 else "no start",
            queue,
            rule=rule,
            stored_offset=asked["stored_offset"],
            max_offset=asked["max_offset"],
            offset=offset,
        )
    return offset
