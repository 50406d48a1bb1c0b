"""A client's reports about itself: its language and release in each heartbeat and, on request, the
queues it holds (GET_CONSUMER_RUNNING_INFO, rocketmq.md §10.7).
"""

from rebalance_core.model.group_settings import (
    LITE_PULL,
    PULL,
    PUSH,
)
from rebalance_core.model.versions import parse_version

LITE_PULL_SUFFIX = "@STREAM"  # ClientConfig.buildMQClientId: lite pull requests the stream type
LITE_PULL_TELLS_SINCE = (5, 1, 1)


def tells_queues(consumer_type: str, version: str) -> bool:
    """Return True if the client's answer contains the queues that it holds.

    ``consumerStatus`` prints the answer, and ``consumerProgress -s true`` takes the holders of
    queues from it, so neither shows anything about a client that does not report its queues. Lite
    pull consumers report them from 5.1.1 on; DefaultMQPullConsumer never does.

    >>> tells_queues("LITE_PULL", "4.9.4"), tells_queues("LITE_PULL", "5.1.4")
    (False, True)
    """
    if consumer_type == LITE_PULL:
        return parse_version(version) >= LITE_PULL_TELLS_SINCE
    return consumer_type == PUSH


def consumer_type_of(consume_type: str, client_id: str) -> str:
    """Return the type of a consumer from its heartbeat and client id.

    >>> consumer_type_of("CONSUME_ACTIVELY", "10.0.0.1@1#1@STREAM")
    'LITE_PULL'
    """
    if consume_type == "CONSUME_PASSIVELY":
        return PUSH
    return LITE_PULL if client_id.endswith(LITE_PULL_SUFFIX) else PULL


def tells_start(client_id: str) -> bool:
    """Return True if the heartbeats of a client state its start rule.

    DefaultLitePullConsumerImpl sends CONSUME_FROM_LAST_OFFSET regardless of the consumer's setting.

    >>> tells_start("10.0.0.1@1#1"), tells_start("10.0.0.1@1#1@STREAM")
    (True, False)
    """
    return not client_id.endswith(LITE_PULL_SUFFIX)
