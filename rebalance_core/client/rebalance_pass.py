"""A client's rebalance pass, as upstream runs it (rocketmq.md §3.2, §3.3, §4.4).

Upstream: ``RebalanceImpl.doRebalance``. This is the oracle, written to be checked line by line
against docs/rocketmq.md rather than to be fast.
"""

from rebalance_core.client.add_phase import add_assigned
from rebalance_core.client.broker_answers import BrokerAnswers
from rebalance_core.client.drop_phase import drop_unassigned, truncate_unsubscribed
from rebalance_core.client.pass_record import (
    BY_TOPIC,
    CHANGED,
    DISPATCH,
    DO_REBALANCE,
    PassRecord,
    PassView,
    QueueChange,
)
from rebalance_core.client.process import ClientProcess
from rebalance_core.model.errors import AllocationError
from rebalance_core.model.queue import MessageQueue, is_retry_topic, sort_client_ids, sort_queues
from rebalance_core.protocol.pull_threshold import pull_threshold_per_queue
from rebalance_core.strategies.spi import EMPTY_ARGUMENT

# RebalanceImpl.rebalanceByTopic: 5.4.0 still passes both to the strategy, which throws.
EMPTY_IS_UNKNOWN = (5, 5, 0)


def run_pass(
    process: ClientProcess, view: PassView, brokers: BrokerAnswers, *, steps: bool = False
) -> PassRecord:
    """Run one pass of one process on its own view.

    Changes ``process`` (table, store, thresholds) and ``brokers`` (commits, order locks) as the
    real pass does, but no other process. A suspended process runs no pass at all.

    Args:
        process: the process that runs the pass.
        view: the routes and members that this client knows; its topics are the subscription.
        brokers: the brokers' answers during the pass.
        steps: whether to record every step, in the order of the code.

    Returns:
        The actions of the pass.
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
    """Take every queue of the route; return True if the client works on exactly those."""
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
    """Take the client's share by its strategy; return False if the pass should be retried soon
    (5.2+).
    """
    queues, members = _known(process, view, topic)
    if queues is None or members is None:
        record.note(BY_TOPIC, "no route" if queues is None else "no members", topic)
    if queues is None and not is_retry_topic(topic) and not process.version.is_v4:
        # While the topic is missing, every pass sends a heartbeat and sets thresholds.
        _message_queue_changed(process, topic, 0, frozenset(), record)
    if queues is None or members is None:
        return True  # the client keeps what it holds
    mq_all, cid_all = sort_queues(queues), sort_client_ids(members)
    if process.by_bytes:  # code points sort in the same order as their UTF-8 bytes
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
    # They differ after a refused lock, without a start offset, with a zombie or with CONFIG's
    # queues of other topics.
    return process.working(topic) == assigned


def _known(
    process: ClientProcess, view: PassView, topic: str
) -> tuple[tuple[MessageQueue, ...] | None, tuple[str, ...] | None]:
    """Return queues and members as the pass takes them; from 5.5.0 on, an empty list is unknown."""
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
    """Run ``updateProcessQueueTableInRebalance``; only changes that succeed count."""
    record.answered.add(topic)
    dropped = drop_unassigned(process, brokers, topic, assigned, record)
    before = len(record.added)
    added = add_assigned(process, brokers, sort_queues(assigned), record)
    if added:
        requests = list(record.added.items())[before:]
        record.note(
            DISPATCH,
            "pull" if process.is_push else "listener",
            topic,
            requests=requests,
            delay_ms=record.first_pull_delay_ms or 0,
        )
    return dropped or added


def _message_queue_changed(
    process: ClientProcess,
    topic: str,
    mq_all_size: int,
    mq_divided: frozenset[MessageQueue],
    record: PassRecord,
) -> None:
    """Run ``messageQueueChanged``: push consumers set thresholds and send heartbeats, others only
    notify their listener.
    """
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
        CHANGED,
        "push",
        topic,
        process_queues=len(process.table),
        pull_threshold_for_queue=process.threshold_for_queue,
        pull_threshold_size_for_queue=process.threshold_size_for_queue,
    )
