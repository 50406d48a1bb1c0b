"""Parameters of strategies: how a value is checked, and how the text of a strategy has it.

Wrong values raise `UsageError`. ``%XX`` escapes stand for what a value in a text must not contain.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rebalance_core.model.errors import UsageError, did_you_mean
from rebalance_core.model.queue import MessageQueue
from rebalance_core.model.times import MOST_DIGITS

Params = Mapping[str, Any]
"""Values of parameters by name."""

JAVA_INT_MIN, JAVA_INT_MAX = -(2**31), 2**31 - 1
_SPECIAL = "%|,:()="
_ESCAPED = re.compile(r"(?:%[0-9A-Fa-f]{2})+")
_SECOND_QUEUE = re.compile(r"/-?[0-9]+\W")
"""In a broker's name: the id of a queue that another sign than ``|`` parts from the next."""


@dataclass(frozen=True)
class Parameter:
    """A parameter of a strategy.

    Attributes:
        checked: From its name and a value, as Python gives it, to what the strategy keeps.
        read: From its key and its value in a strategy text to a value that `checked` takes; None:
            no text has it.
        key: In texts; None: its name.
    """

    checked: Callable[[str, Any], Any]
    read: Callable[[str, str], Any] | None = None
    key: str | None = None


def unknown_name(
    kind: str,
    name: str,
    known: Sequence[str],
    listed: Sequence[str] | None = None,
    meant: str | None = None,
) -> UsageError:
    """An error that lists the known names (``listed`` if given) and the one ``meant``.

    That is the nearest of ``known`` where the caller does not know better.
    """
    names = ", ".join(listed or known) or "none"
    near = f"; did you mean {meant}?" if meant else did_you_mean(name, known)
    return UsageError(f"unknown {kind}: {name!r}; known: {names}{near}")


def escape(text: str, also: str = "") -> str:
    """``text`` as it stands inside a value; ``also`` names further characters to escape.

    Spaces at the edges are escaped too, because the parser trims around keys and values.

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
    """Undoes `escape`; several %XX in a row are UTF-8.

    Raises `UsageError` for a ``%`` that starts no escape, and for bytes that are not UTF-8.

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
    """A string."""
    if not isinstance(value, str):
        raise UsageError(f"{key} must be a string, not {value!r}")
    return value


def text_in_text(key: str, value: str) -> str:
    """The escaped value of a key as a string. Raises: UsageError."""
    if "|" in value or ":" in value:
        raise UsageError(f"{key}={value}: write %7C for '|' and %3A for ':' inside a value")
    return unescape(value)


def whole_number(key: str, value: Any) -> int:
    """A Java int."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise UsageError(f"{key} must be an integer, not {value!r}")
    if not JAVA_INT_MIN <= value <= JAVA_INT_MAX:
        raise UsageError(f"{key} {value} is outside Java's int")
    return value


def number_in_text(key: str, value: str) -> int:
    """The escaped value of a key as an integer. Raises: UsageError."""
    digits = unescape(value)
    if not (digits.removeprefix("-").isdecimal() and digits.isascii()):
        raise UsageError(f"{key}={value}: not an integer")
    return _number(digits, f"{key}={value:.80}")


def _number(digits: str, what: str) -> int:
    """The number of a decimal text; more digits than Java's long has are none.

    Raises:
        UsageError: begins with ``what``.
    """
    if not (digits.removeprefix("-").isdecimal() and digits.isascii()):
        raise UsageError(f"{what} is not an integer")
    if len(digits) > MOST_DIGITS:
        raise UsageError(f"{what} is outside Java's int")
    return int(digits)


def optional_names(key: str, value: Any) -> tuple[str, ...] | None:
    """A list of strings, or None."""
    if value is None:
        return None
    if isinstance(value, str) or not isinstance(value, Sequence | set | frozenset):
        raise UsageError(f"{key} must be a list of strings, not {value!r}")
    names = sorted(value) if isinstance(value, set | frozenset) else value
    return tuple(text(f"an item of {key}", item) for item in names)


def names_in_text(key: str, value: str) -> list[str]:
    """The escaped value of a key as a list of strings. Raises: UsageError."""
    return [text_in_text(key, item) for item in _items(value)]


def _items(value: str) -> list[str]:
    return value.split("|") if value else []


def prefixes(key: str, value: Any) -> tuple[tuple[str, str], ...]:
    """A mapping from prefix to room, None being empty."""
    if value is None:
        return ()
    if not isinstance(value, Mapping):
        raise UsageError(f"{key} must map prefixes to rooms, not {value!r}")
    return tuple(
        (text(f"a prefix of {key}", p), text(f"a room of {key}", r)) for p, r in value.items()
    )


def prefixes_in_text(key: str, value: str) -> dict[str, str]:
    """The escaped value of a key as rooms by prefix. Raises: UsageError."""
    rooms: dict[str, str] = {}
    for item in _items(value):
        prefix, colon, room = item.partition(":")
        if not colon or ":" in room:
            raise UsageError(f"{key}: {item!r} is not prefix:room; write %3A for other ':'")
        prefix = unescape(prefix)
        if prefix in rooms:
            raise UsageError(f"{key}: prefix {prefix!r} is given twice")
        rooms[prefix] = unescape(room)
    return rooms


def optional_queues(key: str, value: Any) -> tuple[MessageQueue, ...] | None:
    """A list of ``topic|broker|qid`` strings or `MessageQueue`, or None."""
    if value is None:
        return None
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise UsageError(f"{key} must be a list of 'topic|broker|qid', not {value!r}")
    return tuple(
        item if isinstance(item, MessageQueue) else _queue(key, text(f"an item of {key}", item))
        for item in value
    )


def _queue(key: str, item: str) -> MessageQueue:
    # Topics may contain '|' (TopicValidator), broker names and ids do not.
    parts = item.rsplit("|", 2)
    if len(parts) != 3:
        raise UsageError(f"{key}: {item!r} is not 'topic|broker|qid'")
    return MessageQueue(parts[0], parts[1], queue_id(key, parts[2]))


def queue_id(key: str, digits: str) -> int:
    """A queue id written in decimal."""
    return whole_number(f"{key}: queue id", _number(digits, f"{key}: queue id {digits!r:.80}"))


def queues_in_text(key: str, value: str) -> list[MessageQueue]:
    """The escaped value of a key as a list of queues. Raises: UsageError."""
    queues = []
    for item in _items(value):
        topic, slash, rest = item.partition("/")
        broker_name, second, digits = rest.rpartition("/")
        if not (slash and second) or _SECOND_QUEUE.search(broker_name):
            raise UsageError(
                f"{key}: {item!r:.200} is not topic/broker/queue id; queues stand between '|', "
                "e.g. CONFIG(queues=T/broker-a/0|T/broker-a/1); %2F is a '/' inside a name"
            )
        name = text_in_text(key, broker_name)
        queues.append(MessageQueue(text_in_text(key, topic), name, queue_id(key, digits)))
    return queues


TEXT = Parameter(text, text_in_text)
WHOLE_NUMBER = Parameter(whole_number, number_in_text)
NAMES = Parameter(optional_names, names_in_text)
PREFIXES = Parameter(prefixes, prefixes_in_text)
