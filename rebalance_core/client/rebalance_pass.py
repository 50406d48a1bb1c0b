"""One client's rebalance pass, as upstream runs it (rocketmq.md §3.2, §3.3, §4)."""

from collections.abc import Collection, Iterable, Mapping, Set
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from rebalance_core.client.process import BrokerAnswers, ClientProcess, ProcessQueue
from rebalance_core.model.errors import AllocationError
from rebalance_core.model.queue import MessageQueue, is_retry_topic, sort_client_ids, sort_queues
from rebalance_core.model.times import FIRST_PULL_DELAY_MS, REBALANCE_LATER_MS, UNLOCK_DELAY_MS
from rebalance_core.protocol.members import pull_threshold_per_queue
from rebalance_core.protocol.start_offset import (
    QUERY_FAILED,
    compute_pull_from_where_no_exception,
    start_rule,
)
from rebalance_core.strategies.spi import EMPTY_ARGUMENT

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
class QueueChange:
    """Arguments of ``messageQueueChanged``: size of mqAll and the set of own queues."""

    mq_all_size: int
    mq_divided: frozenset[MessageQueue]


class Step(NamedTuple):
    """One step of a pass.

    Attributes:
        method: upstream's, in which it happens.
        what: which of its steps; `client.one_pass` has a sentence for each.
        topic: whose; None: of all.
        queue: which; None: of none alone.
        values: numbers and names that the step is about.
    """

    method: str
    what: str
    topic: str | None
    queue: MessageQueue | None
    values: Mapping[str, Any]


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
        answered: topics of which the client has a share, or that it reads whole.
        balanced: what doRebalance returns; None for 4.9, which returns nothing.
        steps: all of it step by step, where somebody wants to know; else None.
    """

    added: dict[MessageQueue, int] = field(default_factory=dict)
    removed: list[MessageQueue] = field(default_factory=list)
    removal_failed: list[MessageQueue] = field(default_factory=list)
    truncated: list[MessageQueue] = field(default_factory=list)
    persisted: dict[MessageQueue, int] = field(default_factory=dict)
    locks: list[tuple[MessageQueue, bool]] = field(default_factory=list)
    delayed_unlocks: dict[MessageQueue, int] = field(default_factory=dict)
    changed: dict[str, QueueChange] = field(default_factory=dict)
    heartbeats: int = 0
    rebalance_later_ms: list[int] = field(default_factory=list)
    first_pull_delay_ms: int | None = None
    answered: set[str] = field(default_factory=set, compare=False)
    balanced: bool | None = None
    steps: list[Step] | None = None

    def note(
        self, method: str, what: str, at: str | MessageQueue | None = None, **values: Any
    ) -> None:
        """Note a step about a topic or a queue."""
        if self.steps is not None:
            topic = at.topic if isinstance(at, MessageQueue) else at
            queue = at if isinstance(at, MessageQueue) else None
            self.steps.append(Step(method, what, topic, queue, values))


UPDATE_TABLE, REMOVE = "updateProcessQueueTableInRebalance", "removeUnnecessaryMessageQueue"
TRUNCATE, CHANGED = "truncateMessageQueueNotMyTopic", "messageQueueChanged"
BY_TOPIC, PULL_FROM_WHERE = "rebalanceByTopic", "computePullFromWhere"
DISPATCH, DO_REBALANCE = "dispatchPullRequest", "doRebalance"
"""Methods of RebalanceImpl and its consumers, as `Step.method` names them."""


# How a pass gives up queues: the drop phase and truncation (rocketmq.md §3.2, §4.1, §4.2).
#
# Upstream: ``RebalanceImpl.updateProcessQueueTableInRebalance`` (first half),
# ``truncateMessageQueueNotMyTopic`` and ``removeUnnecessaryMessageQueue`` of the consumers.

FORCED_UNLOCK = (5, 2, 0)  # ISSUE #7644: tryRemoveOrderMessageQueue
TRY_LOCK_MS, OLD_TRY_LOCK_MS = 500, 1_000
"""How long the removal of an orderly queue waits for its consume lock, from 5.2 on and before."""


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
    """Removes queues of topics not subscribed: no persist, no unlock, no messageQueueChanged."""
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
    """``removeUnnecessaryMessageQueue``: False leaves a zombie."""
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
    """5.2+: the offset is kept until the listener lets go or the last renewal is 20 s old."""
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
    """To 5.1.4: the offset goes first, then the consume lock is tried, then the unlock waits."""
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
    """The start offset; negative: the queue is not added in this pass."""
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
        record.note(PULL_FROM_WHERE, "start" if offset >= 0 else "no start", queue, rule=rule,
                    stored_offset=asked["stored_offset"], max_offset=asked["max_offset"],
                    offset=offset)  # fmt: skip
    return offset


# One client's rebalance pass, as upstream runs it (rocketmq.md §3.2, §3.3, §4.4).
#
# Upstream: ``RebalanceImpl.doRebalance``. The oracle: written to be checked against
# docs/rocketmq.md line by line, not to be fast.

# RebalanceImpl.rebalanceByTopic: 5.4.0 still leaves both to the strategy, which throws.
EMPTY_IS_UNKNOWN = (5, 5, 0)


def run_pass(
    process: ClientProcess, view: PassView, brokers: BrokerAnswers, *, steps: bool = False
) -> PassRecord:
    """Runs one pass of one process over its own view.

    Changes ``process`` (table, store, thresholds) and ``brokers`` (commits, order locks) as the
    real pass does; nobody else's process is touched. A suspended process runs no pass at all.

    Args:
        process: whose pass it is.
        view: what this client knows of routes and members; its topics are the subscription.
        brokers: what brokers answer during the pass.
        steps: note every step, in the order of the code.

    Returns:
        What the pass did.
    """
    record = PassRecord(steps=[] if steps else None)
    balanced = True
    for topic in view.queues:
        if process.is_broadcasting:
            result = _broadcasting(process, view, brokers, topic, record)
        else:
            result = _clustering(process, view, brokers, topic, record)
        balanced = balanced and result
        if process.ends_pass and topic not in record.answered:
            break
    truncate_unsubscribed(process, view.queues.keys(), record)
    record.balanced = None if process.version.is_v4 else balanced
    record.note(DO_REBALANCE, "end", balanced=record.balanced)
    return record


def _broadcasting(
    process: ClientProcess, view: PassView, brokers: BrokerAnswers, topic: str, record: PassRecord
) -> bool:
    """Every queue of the route is the client's; True when it works on exactly those."""
    queues = view.queues[topic]
    if queues is None:
        record.note(BY_TOPIC, "no route", topic)
        if not process.version.is_v4:
            _message_queue_changed(process, topic, 0, frozenset(), record)
        return True
    assigned = frozenset(queues)
    record.note(BY_TOPIC, "all of them", topic, queues=len(assigned))
    if _update_table(process, brokers, topic, assigned, record):
        _message_queue_changed(process, topic, len(assigned), assigned, record)
    return process.working(topic) == assigned


def _clustering(
    process: ClientProcess, view: PassView, brokers: BrokerAnswers, topic: str, record: PassRecord
) -> bool:
    """The client's share by its strategy; False: try again soon (5.2+)."""
    queues, members = _known(process, view, topic)
    if queues is None or members is None:
        record.note(BY_TOPIC, "no route" if queues is None else "no members", topic)
    if queues is None and not is_retry_topic(topic) and not process.version.is_v4:
        # A heartbeat and new thresholds in every pass while the topic is missing.
        _message_queue_changed(process, topic, 0, frozenset(), record)
    if queues is None or members is None:
        return True  # what the client holds stays as it is
    mq_all, cid_all = sort_queues(queues), sort_client_ids(members)
    if process.by_bytes:  # code points are in the order of their UTF-8
        mq_all, cid_all = sorted(queues), sorted(members)
    record.note(BY_TOPIC, "sorted", topic, mq_all=mq_all, cid_all=cid_all)
    try:
        share = process.strategy.allocate(process.client_id, mq_all, cid_all)
    except AllocationError as error:
        record.note(BY_TOPIC, "threw", topic, strategy=process.strategy.name, error=str(error))
        if not (process.lets_go and error.java_class == EMPTY_ARGUMENT):
            return False
        share = []
    assigned = frozenset(share)
    record.note(BY_TOPIC, "allocated", topic, strategy=process.strategy.name, result=share)
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
    record.answered.add(topic)
    dropped = drop_unassigned(process, brokers, topic, assigned, record)
    before = len(record.added)
    added = add_assigned(process, brokers, sort_queues(assigned), record)
    if added:
        requests = list(record.added.items())[before:]
        record.note(DISPATCH, "pull" if process.is_push else "listener", topic,
                    requests=requests, delay_ms=record.first_pull_delay_ms or 0)  # fmt: skip
    return dropped or added


def _message_queue_changed(
    process: ClientProcess,
    topic: str,
    mq_all_size: int,
    mq_divided: frozenset[MessageQueue],
    record: PassRecord,
) -> None:
    """``messageQueueChanged``: push sets its thresholds and heartbeats, others only listen."""
    record.changed[topic] = QueueChange(mq_all_size, mq_divided)
    if not process.is_push:
        record.note(CHANGED, "listener", topic, mq_divided=len(mq_divided))
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
    record.note(
        CHANGED, "push", topic, process_queues=len(process.table),
        pull_threshold_for_queue=process.threshold_for_queue,
        pull_threshold_size_for_queue=process.threshold_size_for_queue,
    )  # fmt: skip
