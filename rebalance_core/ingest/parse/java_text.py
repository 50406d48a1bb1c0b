"""Java's texts back to plain values: numbers, rendered objects, tables of printf, fields
between words.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from rebalance_core.ingest.fact import BAD_NUMBER, Unreadable, shown
from rebalance_core.model.versions import (
    HIGHER_TEXT,
    is_before_known,
    is_known_line,
    nearest_version,
)

# Fields of a rendered text, by the literal words between them: linear in the text's length.
#
# Log templates are literals with values between them. Looking the literals up one after the other
# costs one pass over the line whatever the line holds; a regular expression with several lazy
# groups can cost a power of its length.


def between(text: str, *marks: str) -> list[str] | None:
    """Return the pieces between the marks; None if `text` lacks one or begins otherwise.

    Each mark is looked for after the mark before it. A last mark of ``""`` stands for the end of
    the text; otherwise what follows the last mark is ignored.

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


# Numbers as Java prints them, inside the bounds of their Java types.

LONG_MIN, LONG_MAX = -(2**63), 2**63 - 1
INT_MAX = 2**31 - 1

_INTEGER = re.compile(r"-?[0-9]{1,19}")
# `%.2f` follows the locale of the admin's JVM: a comma is a decimal comma, never a group.
_DECIMAL = re.compile(r"-?[0-9]{1,300}(?:[.,][0-9]{1,300})?(?:[eE][+-]?[0-9]{1,3})?")
_NOT_FINITE = {"NaN": None, "Infinity": None, "-Infinity": None}


def long_of(value: Any, name: str) -> int:
    """Return a Java ``long`` from text or from a parsed document.

    Args:
        value: the text or the parsed value.
        name: what it should be, for the message.

    Raises:
        Unreadable: it is no whole number of 64 bits.
    """
    if isinstance(value, str) and _INTEGER.fullmatch(value):
        value = int(value)
    if type(value) is not int or not LONG_MIN <= value <= LONG_MAX:
        raise Unreadable(BAD_NUMBER, f"{name} is {shown(value)}, not a whole number of 64 bits")
    return value


def count_of(value: Any, name: str) -> int:
    """Return a Java ``int`` that counts or numbers something: a queue id, a number of queues.

    Raises:
        Unreadable: it is no whole number from 0 to 2,147,483,647.
    """
    number = long_of(value, name)
    if not 0 <= number <= INT_MAX:
        raise Unreadable(BAD_NUMBER, f"{name} is {number}, not one of 0 to {INT_MAX}")
    return number


def decimal_of(text: str, name: str) -> float | None:
    """Return a Java ``double`` as ``%.2f`` prints it; None for NaN and the infinities.

    Raises:
        Unreadable: it is no decimal number.
    """
    if text in _NOT_FINITE:
        return None
    if not _DECIMAL.fullmatch(text):
        raise Unreadable(BAD_NUMBER, f"{name} is {shown(text)}, not a decimal number")
    number = float(text.replace(",", "."))
    return number if abs(number) < float("inf") else None


# Rows of a table that Java's ``printf`` wrote, read by the format string that wrote them.

_COLUMN = re.compile(r"%-?([0-9]*)s( *)")


class PrintfRow:
    """A format string, for example ``"%-64s  %-32s  %-4s %s"``.

    A value wider than its column moves the rest of the row to the right and ends at the gap that
    follows it. Values may hold spaces, unless they overflow and hold as many as the gap has.
    Upstream's ``%-4d`` and ``%14.2f`` are written ``%-4s`` and ``%14s`` here: all are texts.
    """

    def __init__(self, pattern: str) -> None:
        self._columns = [(int(width or 0), len(gap)) for width, gap in _COLUMN.findall(pattern)]

    def read(self, line: str) -> list[str]:
        """Return each column's value without its padding; empty where the line ends before it.

        Cost: linear in the line.
        """
        values: list[str] = []
        position = 0
        for width, gap in self._columns[:-1]:
            edge = position + width
            if line[edge : edge + gap].strip(" "):
                end = line.find(" " * gap, edge)
                edge = len(line) if end < 0 else end
            values.append(line[position:edge].strip(" "))
            position = edge + gap
        values.append(line[position:].strip(" "))
        return values


# Java objects as the logs render them, back to plain values (rocketmq.md §10.2).

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
        return None  # torn, it lacks topics
    group, consume_type, model, where, _, subscriptions = pieces
    return {
        "group": group,
        "consume_type": consume_type,
        "message_model": model,
        "consume_from_where": where,
        **_subscriptions(subscriptions),
    }


def _subscriptions(text: str) -> dict[str, object]:
    """Return topics, sorted, and expressions of ``SubscriptionData […, topic=…, subString=…, …]``.

    ``versions`` has the subVersion of each topic: a client sets it when it subscribes and again
    when its queues of the topic change. It was there at the lowest, ``known_ms``. A
    DefaultMQPullConsumer sends 0, which shows nothing.
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
    """Return a subVersion in epoch ms: Java's clients send ms, Go's ns; None: it is no time.

    >>> sub_version_ms("1795644419126"), sub_version_ms("1795644419126412828"), sub_version_ms("-1")
    (1795644419126, 1795644419126, None)
    """
    number = whole(text, LONG_MAX)
    if number is None or number <= MS_MAX:
        return number
    return number // _NS_PER_MS if len(text) == _LONG_DIGITS else None


def subscribed_topics(text: str) -> dict[str, str]:
    """Return the expressions by topic of ``SubscriptionData […, topic=…, subString=…, …], …``."""
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
    """Return the bits of ``RW-`` and the like (PermName.perm2String), or of a plain number.

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
    """Return all ``MessageQueue [topic=…, brokerName=…, queueId=…]`` of a text, in order."""
    queues = []
    for part in text.split("MessageQueue [topic=")[1:]:
        pieces = between(part, "", ", brokerName=", ", queueId=", "]")
        queue_id = None if pieces is None else whole(pieces[2], INT_MAX)
        if pieces is not None and queue_id is not None:
            queues.append((pieces[0], pieces[1], queue_id))
    return queues


def whole(text: str, largest: int) -> int | None:
    """Return a whole number from 0 to `largest`, None for any other text.

    >>> whole("12", 100), whole("101", 100), whole("-1", 100)
    (12, None, None)
    """
    if not text.isascii() or not text.isdecimal() or len(text) > _LONG_DIGITS:
        return None
    number = int(text)
    return number if number <= largest else None


# Versions as the wire carries them: the ordinal of ``MQVersion.Version``.
#
# From 4.0.0 to 5.9.9 the enum lists ``Vx_y_z_SNAPSHOT, Vx_y_z`` for every y and z of 0 to 9, then
# ``HIGHER_VERSION``; real clusters send 407 for 4.9.7, 479 for 5.3.3 and 513 for 5.5.0.

V5_0_0 = 413
HIGHER_VERSION = 612
"""After the last of 5.x; a later enum may put releases there, so it names none."""
V3_4_9 = 121  # what ali-ons, a client for Node.js, sends in every release
V4_0_0 = 213  # below it the enum is irregular, and those releases are not modelled


def version_of_ordinal(ordinal: int) -> str | None:
    """Return the version with that ordinal, a snapshot as its release; None below 4.0.0 but 3.4.9.

    >>> version_of_ordinal(407), version_of_ordinal(478), version_of_ordinal(12)
    ('4.9.7', '5.3.3', None)
    >>> version_of_ordinal(513), version_of_ordinal(612)
    ('5.5.0', 'HIGHER.VERSION')
    """
    if ordinal < V4_0_0:
        return "3.4.9" if ordinal == V3_4_9 else None
    if ordinal >= HIGHER_VERSION:
        return HIGHER_TEXT
    number = 500 + ((ordinal | 1) - V5_0_0) // 2  # releases are odd, 5.0.0 is 500
    return f"{number // 100}.{number // 10 % 10}.{number % 10}"


def plain_version(text: str) -> str:
    """Return ``5.3.3`` for ``V5_3_3``; a snapshot as its release.

    >>> plain_version("V4_9_7"), plain_version("V5_3_4_SNAPSHOT")
    ('4.9.7', '5.3.4')
    """
    plain = text.removeprefix("V").replace("_", ".")
    return plain.removesuffix("-SNAPSHOT").removesuffix(".SNAPSHOT")


def is_later(version: str) -> bool:
    """Return True for a version after the newest line whose rules the simulator has.

    >>> is_later("5.5.1"), is_later("5.6.0"), is_later("4.3.0"), is_later("HIGHER.VERSION")
    (False, True, False, True)
    """
    if version == HIGHER_TEXT:
        return True
    nearest = nearest_version(version)
    return nearest is not None and not is_known_line(nearest)


def not_modelled(versions: Mapping[str, str]) -> Iterator[tuple[str, list[str], str, str]]:
    """Yield each version whose rules are not known, who has it, what stands for it, and the remedy.

    Args:
        versions: by client or broker, as `plain_version` has them.
    """
    for version in sorted({*versions.values()}):
        having = sorted(name for name, own in versions.items() if own == version)
        if is_before_known(version):
            instead = f"is older than the oldest known line; {nearest_version(version)}'s rules"
            remedy = "Upgrade to 4.9 or later; until then read starts and windows with care."
        elif is_later(version):
            instead = "is later than the newest known line; that line's rules"
            remedy = (
                "Look for a release of this project that knows the version; until then read "
                "starts and windows with care."
            )
        else:
            continue
        yield version, having, f"{instead} are used", remedy
