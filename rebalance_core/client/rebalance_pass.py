"""One client's rebalance pass, as upstream runs it (rocketmq.md §3.2, §3.3, §4.4).

Upstream: ``RebalanceImpl.doRebalance``. The oracle: written to be checked against docs/rocketmq.md
line by line, not to be fast.
"""

from rebalance_core.client.broker_answers import BrokerAnswers
from rebalance_core.client.pass_record import Changed, PassRecord, PassView
from rebalance_core.client.process import ClientProcess
from rebalance_core.client.queue_addition import add_assigned
from rebalance_core.client.queue_removal import drop_unassigned, truncate_unsubscribed
from rebalance_core.model.errors import AllocationError
from rebalance_core.model.ordering import sort_client_ids
from rebalance_core.model.queue import MessageQueue, is_retry_topic, sort_queues
from rebalance_core.protocol.thresholds import pull_threshold_per_queue

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
