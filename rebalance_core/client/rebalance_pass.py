"""One client's rebalance pass, as upstream runs it (rocketmq.md §3.2, §3.3, §4)."""

from collections.abc import Collection, Iterable, Mapping, Set
from dataclasses import dataclass, field

from rebalance_core.client.process import BrokerAnswers, ClientProcess, ProcessQueue
from rebalance_core.model.errors import AllocationError
from rebalance_core.model.queue import MessageQueue, is_retry_topic, sort_client_ids, sort_queues
from rebalance_core.model.times import FIRST_PULL_DELAY_MS, REBALANCE_LATER_MS, UNLOCK_DELAY_MS
from rebalance_core.protocol.members import pull_threshold_per_queue
from rebalance_core.protocol.start_offset import compute_pull_from_where_no_exception

# What one client sees when a pass begins, and what the pass did.


@dataclass(frozen=True, slots=True)
class PassView:
    """A client's own view at the start of a pass; nothing in it is agreed with anybody.

    Attributes:
        queues: per subscribed topic, in the order the pass takes them: the queues of the client's
            route, None while it knows no route.
        members: per subscribed topic: client ids as the sampled broker returned them (unsorted,
            duplicates kept), None when the query failed.
    """

    queues: Mapping[str, tuple[MessageQueue, ...] | None]
    members: Mapping[str, tuple[str, ...] | None]


@dataclass(frozen=True, slots=True)
class Changed:
    """Arguments of ``messageQueueChanged``: size of mqAll and the set of own queues."""

    mq_all_size: int
    mq_divided: frozenset[MessageQueue]


@dataclass(slots=True)
class PassRecord:
    """The steps of a pass, in the order it took them.

    Attributes:
        added: start offset of each queue added.
        removed: queues dropped and removed.
        removal_failed: queues dropped that stay, as zombies, until a later pass removes them.
        truncated: queues (zombies too) of topics no longer subscribed.
        persisted: last offset committed to a broker, per queue.
        locks: order locks asked for, and whether they were granted.
        delayed_unlocks: delay in ms of an unlock that a timer will do.
        changed: per topic whose pass called ``messageQueueChanged``.
        heartbeats: rounds of heartbeats sent.
        rebalance_later_ms: extra passes asked for.
        first_pull_delay_ms: delay of the first pull of the added queues; None where there is none.
        balanced: what doRebalance returns; None for 4.9, which returns nothing.
    """

    added: dict[MessageQueue, int] = field(default_factory=dict)
    removed: list[MessageQueue] = field(default_factory=list)
    removal_failed: list[MessageQueue] = field(default_factory=list)
    truncated: list[MessageQueue] = field(default_factory=list)
    persisted: dict[MessageQueue, int] = field(default_factory=dict)
    locks: list[tuple[MessageQueue, bool]] = field(default_factory=list)
    delayed_unlocks: dict[MessageQueue, int] = field(default_factory=dict)
    changed: dict[str, Changed] = field(default_factory=dict)
    heartbeats: int = 0
    rebalance_later_ms: list[int] = field(default_factory=list)
    first_pull_delay_ms: int | None = None
    balanced: bool | None = None


# How a pass gives up queues: the drop phase and truncation (rocketmq.md §3.2, §4.1, §4.2).
#
# Upstream: ``RebalanceImpl.updateProcessQueueTableInRebalance`` (first half),
# ``truncateMessageQueueNotMyTopic`` and ``removeUnnecessaryMessageQueue`` of the consumers.

FORCED_UNLOCK = (5, 2, 0)  # ISSUE #7644: tryRemoveOrderMessageQueue


def drop_unassigned(
    process: ClientProcess,
    brokers: BrokerAnswers,
    topic: str,
    assigned: Set[MessageQueue],
    record: PassRecord,
) -> bool:
    """Drops the topic's queues that are not ``assigned``; True if one was removed.

    An assigned queue whose pull expired is removed too, by push consumers: the add phase of the
    same pass takes it again. A zombie that is assigned again stays dead: only its expiry, not its
    being a zombie, leads here. 5.x marks all before it removes, 4.9 does both queue by queue,
    which only differs for listeners that run meanwhile.
    """
    unnecessary = [
        (queue, state)
        for queue, state in process.table.items()
        if queue.topic == topic
        and (queue not in assigned or (state.pull_expired and process.is_push))
    ]
    changed = False
    for queue, state in unnecessary:
        state.dropped = True
        if _remove(process, brokers, queue, state, record):
            del process.table[queue]
            record.removed.append(queue)
            changed = True
        else:
            record.removal_failed.append(queue)
    return changed


def truncate_unsubscribed(
    process: ClientProcess, subscribed: Collection[str], record: PassRecord
) -> None:
    """Removes queues of topics not subscribed: no persist, no unlock, no messageQueueChanged."""
    for queue in [q for q in process.table if q.topic not in subscribed]:
        process.table.pop(queue).dropped = True
        record.truncated.append(queue)


def _remove(
    process: ClientProcess,
    brokers: BrokerAnswers,
    queue: MessageQueue,
    state: ProcessQueue,
    record: PassRecord,
) -> bool:
    """``removeUnnecessaryMessageQueue``: False leaves a zombie."""
    _persist(process, brokers, queue, record)
    if not process.unlocks_on_removal:
        process.store.remove(queue)
        return True
    if process.version >= FORCED_UNLOCK:
        return _remove_orderly_forced(process, brokers, queue, state)
    return _remove_orderly(process, brokers, queue, state, record)


def _remove_orderly_forced(
    process: ClientProcess, brokers: BrokerAnswers, queue: MessageQueue, state: ProcessQueue
) -> bool:
    """5.2+: the offset is kept until the listener lets go or the last renewal is 20 s old."""
    if state.listener_busy and state.lock_age_ms <= UNLOCK_DELAY_MS:
        return False
    # Upstream persists a second time here; the offset in memory is the one just sent.
    process.store.remove(queue)
    brokers.unlock(queue, process.client_id)
    return True


def _remove_orderly(
    process: ClientProcess,
    brokers: BrokerAnswers,
    queue: MessageQueue,
    state: ProcessQueue,
    record: PassRecord,
) -> bool:
    """To 5.1.4: the offset goes first, then the consume lock is tried, then the unlock waits."""
    process.store.remove(queue)
    if state.listener_busy:
        return False
    if state.holds_messages:
        record.delayed_unlocks[queue] = UNLOCK_DELAY_MS
    else:
        brokers.unlock(queue, process.client_id)
    return True


def _persist(
    process: ClientProcess, brokers: BrokerAnswers, queue: MessageQueue, record: PassRecord
) -> None:
    sent = process.store.persist(queue, brokers)
    if sent is not None:
        record.persisted[queue] = sent


# How a pass takes queues: the add phase (rocketmq.md §4.3).
#
# Upstream: ``RebalanceImpl.updateProcessQueueTableInRebalance``, second half.


def add_assigned(
    process: ClientProcess,
    brokers: BrokerAnswers,
    assigned: Iterable[MessageQueue],
    record: PassRecord,
) -> bool:
    """Adds every assigned queue that is not in the table; True if one was added.

    Not in the table: a zombie blocks its queue. Nothing here looks at the topic: CONFIG's queues
    of other topics are added too. Upstream's order (a HashSet's) shows nowhere; any order will do.
    """
    all_locked = True
    added = False
    for queue in assigned:
        if queue in process.table:
            continue
        if process.locks_on_addition:
            granted = brokers.lock(queue, process.client_id)
            record.locks.append((queue, granted))
            if not granted:
                all_locked = False
                continue
        process.store.remove(queue)  # removeDirtyOffset
        offset = _start_offset(process, brokers, queue)
        if offset >= 0:
            process.table[queue] = ProcessQueue(offset)
            record.added[queue] = offset
            added = True
    if not process.version.is_v4:
        if not all_locked:
            record.rebalance_later_ms.append(REBALANCE_LATER_MS)
        if added:
            record.first_pull_delay_ms = FIRST_PULL_DELAY_MS
    return added


def _start_offset(process: ClientProcess, brokers: BrokerAnswers, queue: MessageQueue) -> int:
    """The start offset; negative: the queue is not added in this pass."""
    return compute_pull_from_where_no_exception(
        consumer_type=process.settings.consumer_type,
        consume_from_where=process.settings.consume_from_where,
        topic=queue.topic,
        stored_offset=process.store.read(queue, brokers, memory_first=process.is_lite_pull),
        max_offset=brokers.max_offset(queue),
        timestamp_offset=brokers.timestamp_offset(queue),
        version=process.version,
    )


# One client's rebalance pass, as upstream runs it (rocketmq.md §3.2, §3.3, §4.4).
#
# Upstream: ``RebalanceImpl.doRebalance``. The oracle: written to be checked against
# docs/rocketmq.md line by line, not to be fast.

# RebalanceImpl.rebalanceByTopic: 5.4.0 still leaves both to the strategy, which throws.
EMPTY_IS_UNKNOWN = (5, 5, 0)


def run_pass(process: ClientProcess, view: PassView, brokers: BrokerAnswers) -> PassRecord:
    """Runs one pass of one process over its own view.

    Changes ``process`` (table, store, thresholds) and ``brokers`` (commits, order locks) as the
    real pass does; nobody else's process is touched. A suspended process runs no pass at all.

    Args:
        process: whose pass it is.
        view: what this client knows of routes and members; its topics are the subscription.
        brokers: what brokers answer during the pass.

    Returns:
        What the pass did.
    """
    record = PassRecord()
    balanced = True
    for topic in view.queues:
        if process.is_broadcasting:
            result = _broadcasting(process, view, brokers, topic, record)
        else:
            result = _clustering(process, view, brokers, topic, record)
        balanced = balanced and result
    truncate_unsubscribed(process, view.queues.keys(), record)
    record.balanced = None if process.version.is_v4 else balanced
    return record


def _broadcasting(
    process: ClientProcess,
    view: PassView,
    brokers: BrokerAnswers,
    topic: str,
    record: PassRecord,
) -> bool:
    """Every queue of the route is the client's; True when it works on exactly those."""
    queues = view.queues[topic]
    if queues is None:
        if not process.version.is_v4:
            _message_queue_changed(process, topic, 0, frozenset(), record)
        return True
    assigned = frozenset(queues)
    if _update_table(process, brokers, topic, assigned, record):
        _message_queue_changed(process, topic, len(assigned), assigned, record)
    return process.working(topic) == assigned


def _clustering(
    process: ClientProcess,
    view: PassView,
    brokers: BrokerAnswers,
    topic: str,
    record: PassRecord,
) -> bool:
    """The client's share by its strategy; False: try again soon (5.2+)."""
    queues, members = _known(process, view, topic)
    if queues is None and not is_retry_topic(topic) and not process.version.is_v4:
        # A heartbeat and new thresholds in every pass while the topic is missing.
        _message_queue_changed(process, topic, 0, frozenset(), record)
    if queues is None or members is None:
        return True  # what the client holds stays as it is
    mq_all = sort_queues(queues)
    try:
        share = process.strategy.allocate(process.client_id, mq_all, sort_client_ids(members))
    except AllocationError:
        return False
    assigned = frozenset(share)
    if _update_table(process, brokers, topic, assigned, record):
        _message_queue_changed(process, topic, len(mq_all), assigned, record)
    # Not equal: a lock refused, no start offset, a zombie, or CONFIG's queues of other topics.
    return process.working(topic) == assigned


def _known(
    process: ClientProcess, view: PassView, topic: str
) -> tuple[tuple[MessageQueue, ...] | None, tuple[str, ...] | None]:
    """Queues and members as the pass takes them: from 5.5.0 on none of them is like unknown."""
    queues, members = view.queues[topic], view.members[topic]
    if process.version < EMPTY_IS_UNKNOWN:
        return queues, members
    return queues or None, members or None


def _update_table(
    process: ClientProcess,
    brokers: BrokerAnswers,
    topic: str,
    assigned: frozenset[MessageQueue],
    record: PassRecord,
) -> bool:
    """``updateProcessQueueTableInRebalance``: only removals and additions that succeed count."""
    dropped = drop_unassigned(process, brokers, topic, assigned, record)
    added = add_assigned(process, brokers, sort_queues(assigned), record)
    return dropped or added


def _message_queue_changed(
    process: ClientProcess,
    topic: str,
    mq_all_size: int,
    mq_divided: frozenset[MessageQueue],
    record: PassRecord,
) -> None:
    """``messageQueueChanged``: push sets its thresholds and heartbeats, others only listen."""
    record.changed[topic] = Changed(mq_all_size, mq_divided)
    if not process.is_push:
        return
    settings = process.settings
    process.threshold_for_queue = pull_threshold_per_queue(
        for_topic=settings.pull_threshold_for_topic,
        current=process.threshold_for_queue,
        process_queues=len(process.table),
    )
    process.threshold_size_for_queue = pull_threshold_per_queue(
        for_topic=settings.pull_threshold_size_for_topic,
        current=process.threshold_size_for_queue,
        process_queues=len(process.table),
    )
    record.heartbeats += 1
