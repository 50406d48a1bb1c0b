"""A queue in the process queue table of a client, as ``consumerStatus`` prints it."""

from datetime import tzinfo

from rebalance_core.ingest.fact import (
    UNPARSABLE_LINE,
    Unreadable,
    shown,
)
from rebalance_core.ingest.parse.java_numbers import long_of
from rebalance_core.ingest.parse.mqadmin_times import packed_ms

QUEUE_LONGS = {
    "commit_offset": "commitOffset",
    "cached_messages": "cachedMsgCount",
    "cached_min_offset": "cachedMsgMinOffset",
    "cached_max_offset": "cachedMsgMaxOffset",
    "try_unlock_times": "tryUnlockTimes",
}


_SIZE = "cachedMsgSizeInMiB"


TIMES = {
    "last_lock_ms": "lastLockTimestamp",
    "last_pull_ms": "lastPullTimestamp",
    "last_consume_ms": "lastConsumeTimestamp",
}


def queue_values(text: str, time_zone: tzinfo) -> dict[str, object]:
    """Read ``ProcessQueueInfo.toString()``: see ``client_queue`` of `parse_running_info`.

    Times are printed by mqadmin, so they are in the local time of its machine, not the client's.

    Raises:
        Unreadable: it has a different form.
    """
    fields = _fields(text, "ProcessQueueInfo [", "=")
    return {
        **{name: long_of(_field(fields, key), key) for name, key in QUEUE_LONGS.items()},
        "cached_mib": long_of(fields[_SIZE], _SIZE) if _SIZE in fields else None,
        **{name: packed_ms(_field(fields, key), time_zone) for name, key in TIMES.items()},
        "locked": _queue_flag(fields, "locked"),
        "dropped": _queue_flag(fields, "droped"),
    }


def pop_queue_values(text: str) -> dict[str, object]:
    """Read ``PopProcessQueueInfo.toString()`` (5.x): see ``client_pop_queue``.

    Raises:
        Unreadable: it has a different form.
    """
    fields = _fields(text, "PopProcessQueueInfo [", ":")
    return {
        "wait_ack_count": long_of(_field(fields, "waitAckCount"), "waitAckCount"),
        "dropped": _queue_flag(fields, "droped"),
        "last_pop_ms": long_of(_field(fields, "lastPopTimestamp"), "lastPopTimestamp"),
    }


def _fields(text: str, prefix: str, separator: str) -> dict[str, str]:
    if not text.startswith(prefix) or not text.endswith("]"):
        raise Unreadable(UNPARSABLE_LINE, f"{shown(text)} is not {prefix}…]")
    parts = (part.partition(separator) for part in text[len(prefix) : -1].split(", "))
    return {name: value for name, _, value in parts}


def _field(fields: dict[str, str], name: str) -> str:
    if name not in fields:
        raise Unreadable(UNPARSABLE_LINE, f"{name} is missing")
    return fields[name]


def _queue_flag(fields: dict[str, str], name: str) -> bool:
    value = _field(fields, name)
    if value not in ("true", "false"):
        raise Unreadable(UNPARSABLE_LINE, f"{name} is {shown(value)}, not true or false")
    return value == "true"
