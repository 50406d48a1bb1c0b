"""The division of a topic's pull threshold among a push consumer's queues (rocketmq.md §4.4).

Upstream: ``RebalancePushImpl.messageQueueChanged``.
"""

THRESHOLD_OFF = -1


def pull_threshold_per_queue(*, for_topic: int, current: int, process_queues: int) -> int:
    """Return the threshold of each queue after a change of assignment.

    Despite the setting's name, the topic's threshold is divided by the number of all the consumer's
    process queues: those of every topic, including the retry topic, and dropped queues not yet
    removed.

    Args:
        for_topic: the ForTopic setting (messages or MiB); -1 if disabled.
        current: the current threshold per queue; kept if disabled or without process queues.
        process_queues: the size of the consumer's process queue table.

    >>> pull_threshold_per_queue(for_topic=1000, current=500, process_queues=3)
    333
    """
    if for_topic == THRESHOLD_OFF or process_queues == 0:
        return current
    return max(1, for_topic // process_queues)
