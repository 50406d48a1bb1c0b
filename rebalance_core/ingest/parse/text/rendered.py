"""Java objects as the logs render them, back to plain values (rocketmq.md §10.2)."""

from __future__ import annotations

from typing import Any

from rebalance_core.ingest.parse.text.between import between

PERM_READ, PERM_WRITE, PERM_INHERIT = 4, 2, 1  # PermName.PERM_READ and the others
PERM_MAX = 15
INT_MAX, LONG_MAX = 2**31 - 1, 2**63 - 1
MS_MAX = 10**14
_LONG_DIGITS = 19
_NS_PER_MS = 10**6
_PERM_LETTERS = {"R": PERM_READ, "W": PERM_WRITE, "X": PERM_INHERIT, "-": 0}


def consumer_data(text: str) -> dict[str, Any] | None:
    """``ConsumerData [groupName=…, …, subscriptionDataSet=[SubscriptionData […], …]]``."""
    pieces = between(
        text,
        "ConsumerData [groupName=",
        ", consumeType=",
        ", messageModel=",
        ", consumeFromWhere=",
        ", unitMode=",
        ", subscriptionDataSet=[",
        "",
    )
    if pieces is None or not pieces[0]:
        return None
    group, consume_type, model, where, _, subscriptions = pieces
    return {
        "group": group,
        "consume_type": consume_type,
        "message_model": model,
        "consume_from_where": where,
        **_subscriptions(subscriptions),
    }


def _subscriptions(text: str) -> dict[str, Any]:
    """Topics, sorted, and expressions of ``SubscriptionData […, topic=…, subString=…, …]``.

    ``versions`` has the subVersion of each topic: a client sets it when it subscribes and again
    when its queues of the topic change. It was there at the lowest, ``known_ms``. A
    DefaultMQPullConsumer sends 0, which tells nothing.
    """
    topics = subscribed_topics(text)
    versions: dict[str, int] = {}
    for part in text.split("SubscriptionData [classFilterMode=")[1:]:
        pieces = between(part, "", ", topic=", ", subString=", ", subVersion=", ", expressionType=")
        version = sub_version_ms(pieces[3]) if pieces is not None and pieces[1] else None
        if pieces is not None and version:
            versions[pieces[1]] = version
    return {
        "topics": sorted(topics),
        "expressions": topics,
        "versions": versions,
        "known_ms": min(versions.values(), default=None),
    }


def sub_version_ms(text: str) -> int | None:
    """A subVersion in epoch ms: Java's clients send ms, Go's ns; None: it is no time.

    >>> sub_version_ms("1795644419126"), sub_version_ms("1795644419126412828"), sub_version_ms("-1")
    (1795644419126, 1795644419126, None)
    """
    number = whole(text, LONG_MAX)
    if number is None or number <= MS_MAX:
        return number
    return number // _NS_PER_MS if len(text) == _LONG_DIGITS else None


def subscribed_topics(text: str) -> dict[str, str]:
    """Expressions by topic of ``SubscriptionData […, topic=…, subString=…, …], …``."""
    topics: dict[str, str] = {}
    for part in text.split("SubscriptionData [classFilterMode=")[1:]:
        pieces = between(part, "", ", topic=", ", subString=", ", subVersion=", ", expressionType=")
        if pieces is not None and pieces[1]:
            topics[pieces[1]] = pieces[2].rpartition(", tagsSet=")[0] or pieces[2]
    return topics


def topic_config(text: str) -> dict[str, Any] | None:
    """``TopicConfig [topicName=…, readQueueNums=…, writeQueueNums=…, perm=RW-, …]``."""
    return _queue_numbers(text, "topic", "TopicConfig [topicName=", ", topicFilterType=")


def queue_data(text: str) -> dict[str, Any] | None:
    """``QueueData [brokerName=…, readQueueNums=…, writeQueueNums=…, perm=6, topicSysFlag=…]``."""
    return _queue_numbers(text, "broker_name", "QueueData [brokerName=", ", topicSysFlag=")


def _queue_numbers(text: str, what: str, begin: str, end: str) -> dict[str, Any] | None:
    pieces = between(text, begin, ", readQueueNums=", ", writeQueueNums=", ", perm=", end)
    if pieces is None or not pieces[0]:
        return None
    name, read, write, perm = pieces
    numbers = {
        "read": whole(read, INT_MAX),
        "write": whole(write, INT_MAX),
        "perm": perm_bits(perm),
    }
    return None if None in numbers.values() else {what: name, **numbers}


def perm_bits(text: str) -> int | None:
    """Bits of ``RW-`` and the like (PermName.perm2String), or of a plain number.

    >>> perm_bits("RW-"), perm_bits("4"), perm_bits("?")
    (6, 4, None)
    """
    number = whole(text, PERM_MAX)
    if number is not None:
        return number
    if len(text) != 3 or any(letter not in _PERM_LETTERS for letter in text):
        return None
    return sum(_PERM_LETTERS[letter] for letter in text)


def message_queues(text: str) -> list[tuple[str, str, int]]:
    """All ``MessageQueue [topic=…, brokerName=…, queueId=…]`` of a text, in order."""
    queues = []
    for part in text.split("MessageQueue [topic=")[1:]:
        pieces = between(part, "", ", brokerName=", ", queueId=", "]")
        queue_id = None if pieces is None else whole(pieces[2], INT_MAX)
        if pieces is not None and queue_id is not None:
            queues.append((pieces[0], pieces[1], queue_id))
    return queues


def whole(text: str, largest: int) -> int | None:
    """A whole number from 0 to `largest`, None for any other text.

    >>> whole("12", 100), whole("101", 100), whole("-1", 100)
    (12, None, None)
    """
    if not text.isascii() or not text.isdecimal() or len(text) > _LONG_DIGITS:
        return None
    number = int(text)
    return number if number <= largest else None
