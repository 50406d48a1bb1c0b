"""Queues and Java's string order, which determines who gets which queue."""

from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple


@lru_cache(maxsize=1 << 16)  # every pass sorts the same names
def java_string_key(text: str) -> bytes:
    """Return a sort key equal to Java's ``String.compareTo`` (UTF-16 code units, not code points).

    >>> sorted(["10.0.0.1@1", "10.0.0.10@1"], key=java_string_key)
    ['10.0.0.10@1', '10.0.0.1@1']
    """
    return text.encode("utf-16-be", "surrogatepass")


def sort_client_ids(client_ids: Iterable[str]) -> list[str]:
    """Return the ids, with duplicates, as the client sorts them to allocate (cidAll)."""
    ids = list(client_ids)
    if all(map(str.isascii, ids)):  # the usual case, in which both orders agree
        return sorted(ids)
    return sorted(ids, key=java_string_key)


RETRY_TOPIC_PREFIX = "%RETRY%"  # MixAll.RETRY_GROUP_TOPIC_PREFIX
POP_RETRY_MARKS = "_", "+"  # KeyBuilder: between group and topic, in versions 1 and 2
SYSTEM_PREFIXES = ("rmq_sys_", "RMQ_SYS_", "%SYS%", "%DLQ%", "%REPLY%")
SYSTEM_TOPICS = frozenset(
    {
        "TBW102",
        "SCHEDULE_TOPIC_XXXX",  # spelt like this in TopicValidator.RMQ_SYS_SCHEDULE_TOPIC
        "BenchmarkTest",
        "TRANS_CHECK_MAX_TIME_TOPIC",
        "SELF_TEST_TOPIC",
        "OFFSET_MOVED_EVENT",
    }
)
"""TopicValidator.SYSTEM_TOPIC_SET and its prefixes: topics that brokers create and read
themselves.
"""


class MessageQueue(NamedTuple):
    """A queue of a topic on one broker (``org.apache.rocketmq.common.message.MessageQueue``).

    Comparing two values compares Python strings; RocketMQ's order is `sort_queues`.
    """

    topic: str
    broker_name: str
    queue_id: int

    def __str__(self) -> str:
        """Return ``MessageQueue.toString()``: what CONSISTENT_HASH hashes and the logs print."""
        return (
            f"MessageQueue [topic={self.topic}, "
            f"brokerName={self.broker_name}, queueId={self.queue_id}]"
        )


@lru_cache(maxsize=1 << 16)  # every pass sorts the same queues
def queue_sort_key(queue: MessageQueue) -> tuple[bytes, bytes, int]:
    """Return the key of ``MessageQueue.compareTo``: topic, broker name (UTF-16), numeric queue id.

    Upstream subtracts the ids as ints, so for ids more than 2^31 apart, which no route has, the
    subtraction overflows and the order is not total.
    """
    return java_string_key(queue.topic), java_string_key(queue.broker_name), queue.queue_id


def sort_queues(queues: Iterable[MessageQueue]) -> list[MessageQueue]:
    """Return the queues, with duplicates, as the client sorts them to allocate (mqAll)."""
    return sorted(queues, key=queue_sort_key)


def retry_topic(consumer_group: str) -> str:
    """Return the name of the group's retry topic."""
    return RETRY_TOPIC_PREFIX + consumer_group


def pop_retry_topics(consumer_group: str, topic: str) -> tuple[str, str]:
    """Return the topics in which popped messages of a topic wait for redelivery to the group.

    Their names are those of versions 1 and 2 (``KeyBuilder.buildPopRetryTopicV1`` and ``V2``).
    """
    first, second = (f"{retry_topic(consumer_group)}{mark}{topic}" for mark in POP_RETRY_MARKS)
    return first, second


def is_retry_topic(topic: str) -> bool:
    """Return True for the retry topic of any group."""
    return topic.startswith(RETRY_TOPIC_PREFIX)


def is_system_topic(topic: str) -> bool:
    """Return True for a topic that belongs to the brokers."""
    return topic in SYSTEM_TOPICS or topic.startswith(SYSTEM_PREFIXES)
