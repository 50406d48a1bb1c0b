"""Conversion of Java objects, as logs render them, back to plain values, and of fields between
words.
"""

from collections.abc import Iterator

from rebalance_core.ingest.parse.java_numbers import INT_MAX, LONG_MAX


def between(text: str, *marks: str) -> list[str] | None:
    """Return the pieces between the marks, or None if `text` lacks one or has a different
    beginning.

    Each mark is searched for after the previous one. A last mark of ``""`` stands for the end of
    the text; otherwise text after the last mark is ignored.

    >>> between("unlock mq, group=G, clientId=C@1", "unlock mq, group=", ", clientId=", "")
    ['G', 'C@1']
    """
    if not text.startswith(marks[0]):
        return None
    begin = len(marks[0])
    pieces = []
    for mark in marks[1:]:
        end = text.find(mark, begin) if mark else len(text)
        if end < 0:
            return None
        pieces.append(text[begin:end])
        begin = end + len(mark)
    return pieces


PERM_READ, PERM_WRITE, PERM_INHERIT = 4, 2, 1  # PermName.PERM_READ and the others
PERM_MAX = 15
MS_MAX = 10**14
_LONG_DIGITS = 19
_NS_PER_MS = 10**6
_PERM_LETTERS = {"R": PERM_READ, "W": PERM_WRITE, "X": PERM_INHERIT, "-": 0}


def consumer_data(text: str) -> dict[str, object] | None:
    """Read ``ConsumerData [groupName=…, …, subscriptionDataSet=[SubscriptionData […], …]]``."""
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
    if pieces is None or not pieces[0] or "]]" not in pieces[-1]:
        return None  # torn: it lacks topics
    group, consume_type, model, where, _, subscriptions = pieces
    return {
        "group": group,
        "consume_type": consume_type,
        "message_model": model,
        "consume_from_where": where,
        **_subscriptions(subscriptions),
    }


def _subscriptions(text: str) -> dict[str, object]:
    """Return the sorted topics and the expressions in ``SubscriptionData […, topic=…, subString=…,
    …]``.

    ``versions`` has the subVersion of each topic, which a client sets when it subscribes and again
    when its queues of the topic change. The client already existed at the lowest one, ``known_ms``.
    A DefaultMQPullConsumer sends 0, which shows nothing.
    """
    topics = subscribed_topics(text)
    stated = ((topic, sub_version_ms(version)) for _, topic, _, version in _stated(text))
    versions = {topic: version for topic, version in stated if version}
    return {
        "topics": sorted(topics),
        "expressions": topics,
        "versions": versions,
        "known_ms": min(versions.values(), default=None),
    }


def sub_version_ms(text: str) -> int | None:
    """Return a subVersion in epoch ms (Java clients send ms, Go's ns), or None if it is not a time.

    >>> sub_version_ms("1795644419126"), sub_version_ms("1795644419126412828"), sub_version_ms("-1")
    (1795644419126, 1795644419126, None)
    """
    number = whole(text, LONG_MAX)
    if number is None or number <= MS_MAX:
        return number
    return number // _NS_PER_MS if len(text) == _LONG_DIGITS else None


def subscribed_topics(text: str) -> dict[str, str]:
    """Return the expressions by topic in ``SubscriptionData […, topic=…, subString=…, …], …``."""
    stated = ((topic, expression) for _, topic, expression, _ in _stated(text))
    return {topic: text.rpartition(", tagsSet=")[0] or text for topic, text in stated}


def _stated(text: str) -> Iterator[list[str]]:
    """Yield class filter, topic, expression and version of each subscription that names a topic."""
    for part in text.split("SubscriptionData [classFilterMode=")[1:]:
        pieces = between(part, "", ", topic=", ", subString=", ", subVersion=", ", expressionType=")
        if pieces is not None and pieces[1]:
            yield pieces


def topic_config(text: str) -> dict[str, object] | None:
    """Read ``TopicConfig [topicName=…, readQueueNums=…, writeQueueNums=…, perm=RW-, …]``."""
    return _queue_numbers(text, "topic", "TopicConfig [topicName=", ", topicFilterType=")


def queue_data(text: str) -> dict[str, object] | None:
    """``QueueData [brokerName=…, readQueueNums=…, writeQueueNums=…, perm=6, topicSysFlag=…]``."""
    return _queue_numbers(text, "broker_name", "QueueData [brokerName=", ", topicSysFlag=")


def _queue_numbers(text: str, what: str, begin: str, end: str) -> dict[str, object] | None:
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
    """Return the bits for ``RW-`` and the like (PermName.perm2String) or for a plain number.

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
    """Return all ``MessageQueue [topic=…, brokerName=…, queueId=…]`` in a string, in order."""
    queues = []
    for part in text.split("MessageQueue [topic=")[1:]:
        pieces = between(part, "", ", brokerName=", ", queueId=", "]")
        queue_id = None if pieces is None else whole(pieces[2], INT_MAX)
        if pieces is not None and queue_id is not None:
            queues.append((pieces[0], pieces[1], queue_id))
    return queues


def whole(text: str, largest: int) -> int | None:
    """Return a whole number from 0 to `largest`, or None for any other text.

    >>> whole("12", 100), whole("101", 100), whole("-1", 100)
    (12, None, None)
    """
    if not text.isascii() or not text.isdecimal() or len(text) > _LONG_DIGITS:
        return None
    number = int(text)
    return number if number <= largest else None
