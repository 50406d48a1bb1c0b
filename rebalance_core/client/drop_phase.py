"""The drop phase of a pass and truncation, in which queues are given up (rocketmq.md §3.2, §4.1,
rocketmq.md §4.2).

Upstream: ``RebalanceImpl.updateProcessQueueTableInRebalance`` (first half),
``truncateMessageQueueNotMyTopic`` and ``removeUnnecessaryMessageQueue`` of the consumers.
"""

from collections.abc import Collection, Set

from rebalance_core.client.broker_answers import BrokerAnswers
from rebalance_core.client.pass_record import REMOVE, TRUNCATE, UPDATE_TABLE, PassRecord
from rebalance_core.client.process import ClientProcess, ProcessQueue
from rebalance_core.model.queue import MessageQueue
from rebalance_core.model.times import UNLOCK_DELAY_MS

FORCED_UNLOCK = (5, 2, 0)  # ISSUE #7644: tryRemoveOrderMessageQueue
TRY_LOCK_MS, OLD_TRY_LOCK_MS = 500, 1_000
"""How long the removal of an orderly queue waits for its consume lock, from 5.2 on and in earlier
versions.
"""


def drop_unassigned(
    process: ClientProcess,
    brokers: BrokerAnswers,
    topic: str,
    assigned: Set[MessageQueue],
    record: PassRecord,
) -> bool:
    """Drop the topic's queues that are not in ``assigned``; return True if any was removed.

    Push consumers also remove an assigned queue whose pull has expired; the add phase of the same
    pass takes it again. A zombie that is assigned again stays dead, because only an expired pull
    leads to its removal here. 5.x marks all queues before it removes any, whereas 4.9 marks and
    removes queue by queue, which only makes a difference to listeners that run meanwhile.
    """
    unnecessary = [
        (queue, state)
        for queue, state in process.table.items()
        if queue.topic == topic
        and (queue not in assigned or (state.pull_expired and process.is_push))
    ]
    changed = False
    together = not process.version.is_v4
    for queue, state in unnecessary if together else ():
        _mark_dropped(queue, state, assigned, record)
    for queue, state in unnecessary:
        if not together:
            _mark_dropped(queue, state, assigned, record)
        if _remove(process, brokers, queue, state, record):
            del process.table[queue]
            record.removed.append(queue)
            record.note(UPDATE_TABLE, "removed", queue)
            changed = True
        else:
            record.removal_failed.append(queue)
            record.note(REMOVE, "zombie", queue)
    return changed


def _mark_dropped(
    queue: MessageQueue, state: ProcessQueue, assigned: Set[MessageQueue], record: PassRecord
) -> None:
    state.dropped = True
    record.note(UPDATE_TABLE, "expired" if queue in assigned else "not mine", queue)


def truncate_unsubscribed(
    process: ClientProcess, subscribed: Collection[str], record: PassRecord
) -> None:
    """Remove queues of unsubscribed topics: no persist, no unlock, no messageQueueChanged."""
    for queue in [q for q in process.table if q.topic not in subscribed]:
        process.table.pop(queue).dropped = True
        record.truncated.append(queue)
        record.note(TRUNCATE, "truncated", queue)


def _remove(
    process: ClientProcess,
    brokers: BrokerAnswers,
    queue: MessageQueue,
    state: ProcessQueue,
    record: PassRecord,
) -> bool:
    """Run ``removeUnnecessaryMessageQueue``; return False if the queue stays as a zombie."""
    _persist(process, brokers, queue, record)
    if not process.unlocks_on_removal:
        process.store.remove(queue)
        return True
    if process.version >= FORCED_UNLOCK:
        return _remove_orderly_forced(process, brokers, queue, state, record)
    return _remove_orderly(process, brokers, queue, state, record)


def _remove_orderly_forced(
    process: ClientProcess,
    brokers: BrokerAnswers,
    queue: MessageQueue,
    state: ProcessQueue,
    record: PassRecord,
) -> bool:
    """Remove as 5.2+ does: once the listener releases the lock or the last renewal is 20 s old."""
    if state.listener_busy and state.lock_age_ms <= UNLOCK_DELAY_MS:
        record.note(REMOVE, "busy", queue, waited_ms=TRY_LOCK_MS, lock_age_ms=state.lock_age_ms)
        return False
    # Upstream persists a second time here; the offset in memory is the one just sent.
    process.store.remove(queue)
    brokers.unlock(queue, process.client_id)
    record.note(REMOVE, "forced" if state.listener_busy else "unlocked", queue)
    return True


def _remove_orderly(
    process: ClientProcess,
    brokers: BrokerAnswers,
    queue: MessageQueue,
    state: ProcessQueue,
    record: PassRecord,
) -> bool:
    """Remove as versions up to 5.1.4 do: erase the offset, try the consume lock, then unlock
    later.
    """
    process.store.remove(queue)
    if state.listener_busy:
        record.note(REMOVE, "busy", queue, waited_ms=OLD_TRY_LOCK_MS)
        return False
    if state.holds_messages:
        record.delayed_unlocks[queue] = UNLOCK_DELAY_MS
        record.note(REMOVE, "unlock later", queue, delay_ms=UNLOCK_DELAY_MS)
    else:
        brokers.unlock(queue, process.client_id)
        record.note(REMOVE, "unlocked", queue)
    return True


def _persist(
    process: ClientProcess, brokers: BrokerAnswers, queue: MessageQueue, record: PassRecord
) -> None:
    sent = process.store.persist(queue, brokers)
    if sent is not None:
        record.persisted[queue] = sent
    record.note(REMOVE, "not persisted" if sent is None else "persisted", queue, offset=sent)
