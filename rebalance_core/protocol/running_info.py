"""What a client tells of itself: its language and release in each heartbeat, and the queues it
holds when it is asked (GET_CONSUMER_RUNNING_INFO, rocketmq.md §10.7).
"""

from __future__ import annotations

from rebalance_core.model.group_settings import LITE_PULL, PULL, PUSH
from rebalance_core.model.versions import parse_version

LITE_PULL_SUFFIX = "@STREAM"  # ClientConfig.buildMQClientId: lite pull asks for the stream type
LITE_PULL_TELLS_SINCE = (5, 1, 1)
JAVA, GO = "JAVA", "GO"
ALI_ONS, ALI_ONS_VERSION = "ali-ons", "3.4.9"
"""The client for Node.js, and the version that it sends, always, with Java's language."""


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


def library_of(language: str | None, version: str | None) -> str | None:
    """The client library of a language and version as brokers list them; None: neither is known.

    >>> library_of("JAVA", "5.3.3"), library_of("JAVA", "3.4.9"), library_of("GO", "4.5.2")
    ('JAVA', 'ali-ons', 'GO')
    """
    return ALI_ONS if (language, version) == (JAVA, ALI_ONS_VERSION) else language


def tells_release(library: str | None) -> bool:
    """True if the version that a client sends is that of its release; others send a constant.

    Go's is 4.5.2 in every release, that of C++ 3.1.8 or 4.6.0, of ali-ons 3.4.9.

    >>> tells_release("JAVA"), tells_release(None), tells_release("GO"), tells_release("ali-ons")
    (True, True, False, False)
    """
    return library in (JAVA, None)


def consumer_type_of(consume_type: str, client_id: str) -> str:
    """The type of a consumer by its heartbeat and its client id.

    >>> consumer_type_of("CONSUME_ACTIVELY", "10.0.0.1@1#1@STREAM")
    'LITE_PULL'
    """
    if consume_type == "CONSUME_PASSIVELY":
        return PUSH
    return LITE_PULL if client_id.endswith(LITE_PULL_SUFFIX) else PULL


def tells_start(client_id: str) -> bool:
    """True if the heartbeats of a client say where it starts without a commit.

    DefaultLitePullConsumerImpl sends CONSUME_FROM_LAST_OFFSET whatever the consumer is set to.

    >>> tells_start("10.0.0.1@1#1"), tells_start("10.0.0.1@1#1@STREAM")
    (True, False)
    """
    return not client_id.endswith(LITE_PULL_SUFFIX)
