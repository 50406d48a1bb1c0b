"""What a running client answers of itself (GET_CONSUMER_RUNNING_INFO, rocketmq.md §10.7)."""

from __future__ import annotations

from rebalance_core.model.group_settings import LITE_PULL, PUSH
from rebalance_core.model.versions import parse_version

LITE_PULL_TELLS_SINCE = (5, 1, 1)


def tells_queues(consumer_type: str, version: str) -> bool:
    """True if the client's answer has the queues that it holds.

    ``consumerStatus`` prints the answer, and ``consumerProgress -s true`` takes the holders of
    queues out of it: of a client that does not tell, both show nothing. Lite pull consumers tell
    from 5.1.1 on, DefaultMQPullConsumer never does.

    >>> tells_queues("LITE_PULL", "4.9.4"), tells_queues("LITE_PULL", "5.1.4")
    (False, True)
    """
    if consumer_type == LITE_PULL:
        return parse_version(version) >= LITE_PULL_TELLS_SINCE
    return consumer_type == PUSH
