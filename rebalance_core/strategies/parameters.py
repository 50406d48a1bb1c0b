"""Parameters of strategies: how values are checked, and their form in a strategy text.

Invalid values raise `UsageError`. ``%XX`` escapes represent characters that a value in strategy
text must not contain.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rebalance_core.model.errors import UsageError, did_you_mean
from rebalance_core.model.queue import MessageQueue
from rebalance_core.model.times import MOST_DIGITS

Params = Mapping[str, Any]
"""The values of parameters, by name."""

JAVA_INT_MIN, JAVA_INT_MAX = -(2**31), 2**31 - 1
_SPECIAL = "%|,:()="
_ESCAPED = re.compile(r"(?:%[0-9A-Fa-f]{2})+")
_SECOND_QUEUE = re.compile(r"/-?[0-9]+\W")
"""A queue's id inside a broker name, which indicates that queues are separated by something other
than ``|``.
"""


@dataclass(frozen=True)
class Parameter:
    """A parameter of a strategy.

    Attributes:
        checked: Converts its name and a value passed in Python to the strategy's value.
        read: Converts its key and value in a strategy text to a value that `checked` accepts; None:
            it never occurs in a text.
        key: The key in texts; None: the name.
    """

    checked: Callable[[str, Any], Any]
    read: Callable[[str, str], Any] | None = None
    key: str | None = None


def unknown_name(
    kind: str,
    name: str,
    valid: Sequence[str],
    listed: Sequence[str] | None = None,
    meant: str | None = None,
) -> UsageError:
    """Return an error that lists the known names (or ``listed``) and the likeliest one, ``meant``.

    By default, that is the nearest of ``known``.
    """
    names = ", ".join(listed or valid) or "none"
    near = f"; did you mean {meant}?" if meant else did_you_mean(name, valid)
    return UsageError(f"unknown {kind}: {name!r}; known: {names}{near}")


def escape(text: str, also: str = "") -> str:
    """Return ``text`` as written inside a value; ``also`` contains additional characters to escape.

    Leading and trailing spaces are also escaped, because the parser trims keys and values.

    >>> escape("[2001:db8::5]")
    '[2001%3Adb8%3A%3A5]'
    """
    special = _SPECIAL + also
    body = "".join(f"%{ord(c):02X}" if c in special else c for c in text)
    inner = body.strip(" ")
    left = len(body) - len(body.lstrip(" "))
    right = len(body) - left - len(inner)
    return "%20" * left + inner + "%20" * right


def unescape(text: str) -> str:
    """Undo `escape`; consecutive %XX escapes form UTF-8.

    Raises `UsageError` for a ``%`` that does not start an escape, and for bytes that are not UTF-8.

    >>> unescape("%25RETRY%25group")
    '%RETRY%group'
    """
    if "%" in _ESCAPED.sub("", text):
        raise UsageError(f"{text!r} has a '%' that starts no %XX escape; write %25 for '%'")
    try:
        return _ESCAPED.sub(lambda m: bytes.fromhex(m[0].replace("%", "")).decode("utf-8"), text)
    except UnicodeDecodeError as error:
        raise UsageError(f"the %XX escapes of {text!r} are not UTF-8") from error


def text(key: str, value: Any) -> str:
    """Return a string."""
    if not isinstance(value, str):
        raise UsageError(f"{key} must be a string, not {value!r}")
    return value


def text_in_text(key: str, value: str) -> str:
    """Return the escaped value of a key as a string.

    Raises:
        UsageError: The value contains a separator.
    """
    if "|" in value or ":" in value:
        raise UsageError(f"{key}={value}: write %7C for '|' and %3A for ':' inside a value")
    return unescape(value)


def whole_number(key: str, value: Any) -> int:
    """Return a Java int."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise UsageError(f"{key} must be an integer, not {value!r}")
    if not JAVA_INT_MIN <= value <= JAVA_INT_MAX:
        raise UsageError(f"{key} {value} is outside Java's int")
    return value


def number_in_text(key: str, value: str) -> int:
    """Return the escaped value of a key as an integer.

    Raises:
        UsageError: The value is not an integer in Java's range.
    """
    digits = unescape(value)
    if not (digits.removeprefix("-").isdecimal() and digits.isascii()):
        raise UsageError(f"{key}={value}: not an integer")
    return _number(digits, f"{key}={value:.80}")


def _number(digits: str, what: str) -> int:
    """Return the number in a decimal text with no more digits than a Java long.

    Raises:
        UsageError: The message begins with ``what``.
    """
    if not (digits.removeprefix("-").isdecimal() and digits.isascii()):
        raise UsageError(f"{what} is not an integer")
    if len(digits) > MOST_DIGITS:
        raise UsageError(f"{what} is outside Java's int")
    return int(digits)


def optional_names(key: str, value: Any) -> tuple[str, ...] | None:
    """Return a list of strings, or None."""
    if value is None:
        return None
    if isinstance(value, str) or not isinstance(value, Sequence | set | frozenset):
        raise UsageError(f"{key} must be a list of strings, not {value!r}")
    names = sorted(value) if isinstance(value, set | frozenset) else value
    return tuple(text(f"an item of {key}", item) for item in names)


def names_in_text(key: str, value: str) -> list[str]:
    """Return the escaped value of a key as a list of strings.

    Raises:
        UsageError: An item contains a separator.
    """
    return [text_in_text(key, item) for item in _items(value)]


def _items(value: str) -> list[str]:
    return value.split("|") if value else []


def prefixes(key: str, value: Any) -> tuple[tuple[str, str], ...]:
    """Return a mapping from prefix to room; None counts as empty."""
    if value is None:
        return ()
    if not isinstance(value, Mapping):
        raise UsageError(f"{key} must map prefixes to rooms, not {value!r}")
    return tuple(
        (text(f"a prefix of {key}", p), text(f"a room of {key}", r)) for p, r in value.items()
    )


def prefixes_in_text(key: str, value: str) -> dict[str, str]:
    """Return the escaped value of a key as rooms by prefix.

    Raises:
        UsageError: An item is not prefix:room, or a prefix is repeated.
    """
    rooms: dict[str, str] = {}
    for item in _items(value):
        prefix, colon, room = item.partition(":")
        if not colon or ":" in room:
            raise UsageError(f"{key}: {item!r} is not prefix:room; write %3A for other ':'")
        prefix = unescape(prefix)
        if prefix in rooms:
            raise UsageError(f"{key}: prefix {prefix!r} is used twice")
        rooms[prefix] = unescape(room)
    return rooms


def optional_queues(key: str, value: Any) -> tuple[MessageQueue, ...] | None:
    """Return a list of ``topic|broker|qid`` strings or `MessageQueue` objects as queues, or
    None.
    """
    if value is None:
        return None
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise UsageError(f"{key} must be a list of 'topic|broker|qid', not {value!r}")
    return tuple(
        item if isinstance(item, MessageQueue) else _queue(key, text(f"an item of {key}", item))
        for item in value
    )


def _queue(key: str, item: str) -> MessageQueue:
    # Topics may contain '|' (TopicValidator); broker names and ids do not.
    parts = item.rsplit("|", 2)
    if len(parts) != 3:
        raise UsageError(f"{key}: {item!r} is not 'topic|broker|qid'")
    return MessageQueue(parts[0], parts[1], queue_id(key, parts[2]))


def queue_id(key: str, digits: str) -> int:
    """Return a queue id written in decimal."""
    return whole_number(f"{key}: queue id", _number(digits, f"{key}: queue id {digits!r:.80}"))


def queues_in_text(key: str, value: str) -> list[MessageQueue]:
    """Return the escaped value of a key as a list of queues.

    Raises:
        UsageError: An item is not topic/broker/queue id.
    """
    queues = []
    for item in _items(value):
        topic, slash, rest = item.partition("/")
        broker_name, second, digits = rest.rpartition("/")
        if not (slash and second) or _SECOND_QUEUE.search(broker_name):
            raise UsageError(
                f"{key}: {item!r:.200} is not topic/broker/queue id; separate queues by "
                "'|', e.g. CONFIG(queues=T/broker-a/0|T/broker-a/1); write %2F for '/' "
                "inside a name"
            )
        name = text_in_text(key, broker_name)
        queues.append(MessageQueue(text_in_text(key, topic), name, queue_id(key, digits)))
    return queues


TEXT = Parameter(text, text_in_text)
WHOLE_NUMBER = Parameter(whole_number, number_in_text)
NAMES = Parameter(optional_names, names_in_text)
PREFIXES = Parameter(prefixes, prefixes_in_text)
