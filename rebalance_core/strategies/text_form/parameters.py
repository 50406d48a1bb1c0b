"""The values of strategy parameters, checked and frozen: wrong types raise `UsageError`."""

from collections.abc import Mapping, Sequence
from typing import Any

from rebalance_core.model.errors import UsageError
from rebalance_core.model.queue import MessageQueue

JAVA_INT_MIN, JAVA_INT_MAX = -(2**31), 2**31 - 1


def text(key: str, value: Any) -> str:
    """A string."""
    if not isinstance(value, str):
        raise UsageError(f"{key} must be a string, not {value!r}")
    return value


def whole_number(key: str, value: Any) -> int:
    """A Java int."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise UsageError(f"{key} must be an integer, not {value!r}")
    if not JAVA_INT_MIN <= value <= JAVA_INT_MAX:
        raise UsageError(f"{key} {value} is outside Java's int")
    return value


def optional_names(key: str, value: Any) -> tuple[str, ...] | None:
    """A list of strings, or None."""
    if value is None:
        return None
    if isinstance(value, str) or not isinstance(value, Sequence | set | frozenset):
        raise UsageError(f"{key} must be a list of strings, not {value!r}")
    names = sorted(value) if isinstance(value, set | frozenset) else value
    return tuple(text(f"an item of {key}", item) for item in names)


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


def prefixes(key: str, value: Any) -> tuple[tuple[str, str], ...]:
    """A mapping from prefix to room, None being empty."""
    if value is None:
        return ()
    if not isinstance(value, Mapping):
        raise UsageError(f"{key} must map prefixes to rooms, not {value!r}")
    return tuple(
        (text(f"a prefix of {key}", p), text(f"a room of {key}", r)) for p, r in value.items()
    )


def _queue(key: str, item: str) -> MessageQueue:
    # Topics may contain '|' (TopicValidator), broker names and ids do not.
    parts = item.rsplit("|", 2)
    if len(parts) != 3:
        raise UsageError(f"{key}: {item!r} is not 'topic|broker|qid'")
    return MessageQueue(parts[0], parts[1], queue_id(key, parts[2]))


def queue_id(key: str, digits: str) -> int:
    """A queue id written in decimal."""
    if not (digits.removeprefix("-").isdecimal() and digits.isascii()):
        raise UsageError(f"{key}: queue id {digits!r} is not an integer")
    return whole_number(f"{key}: queue id", int(digits))
