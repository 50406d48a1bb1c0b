"""``ProcessQueueInfo [commitOffset=…, …]``: one queue in the process queue table of a client."""

from __future__ import annotations

from datetime import tzinfo
from typing import Any

from rebalance_core.ingest.parse.mqadmin.admin_times import packed_ms
from rebalance_core.ingest.parse.text.java_numbers import long_of
from rebalance_core.ingest.refusal import UNPARSABLE_LINE, Unreadable, shown

QUEUE_FIELDS = (
    "commit_offset, cached_messages, cached_min_offset, cached_max_offset, cached_mib (None: its "
    "version, 3.x or an early 4.x, does not print it), locked (an order lock; 4.9 and "
    "broadcasting print it too), try_unlock_times, dropped, last_lock_ms, "
    "last_pull_ms, last_consume_ms"
)
POP_FIELDS = "wait_ack_count, dropped, last_pop_ms"

_LONGS = {
    "commit_offset": "commitOffset",
    "cached_messages": "cachedMsgCount",
    "cached_min_offset": "cachedMsgMinOffset",
    "cached_max_offset": "cachedMsgMaxOffset",
    "try_unlock_times": "tryUnlockTimes",
}
_SIZE = "cachedMsgSizeInMiB"
_TIMES = {
    "last_lock_ms": "lastLockTimestamp",
    "last_pull_ms": "lastPullTimestamp",
    "last_consume_ms": "lastConsumeTimestamp",
}


def queue_values(text: str, time_zone: tzinfo) -> dict[str, Any]:
    """The fields of `QUEUE_FIELDS` from ``ProcessQueueInfo.toString()``.

    Times are printed by mqadmin, so in the local time of its machine, not of the client's.

    Raises:
        Unreadable: it is written otherwise.
    """
    fields = _fields(text, "ProcessQueueInfo [", "=")
    return {
        **{name: long_of(_field(fields, key), key) for name, key in _LONGS.items()},
        "cached_mib": long_of(fields[_SIZE], _SIZE) if _SIZE in fields else None,
        **{name: packed_ms(_field(fields, key), time_zone) for name, key in _TIMES.items()},
        "locked": _flag(fields, "locked"),
        "dropped": _flag(fields, "droped"),
    }


def pop_queue_values(text: str) -> dict[str, Any]:
    """The fields of `POP_FIELDS` from ``PopProcessQueueInfo.toString()`` (5.x).

    Raises:
        Unreadable: it is written otherwise.
    """
    fields = _fields(text, "PopProcessQueueInfo [", ":")
    return {
        "wait_ack_count": long_of(_field(fields, "waitAckCount"), "waitAckCount"),
        "dropped": _flag(fields, "droped"),
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


def _flag(fields: dict[str, str], name: str) -> bool:
    value = _field(fields, name)
    if value not in ("true", "false"):
        raise Unreadable(UNPARSABLE_LINE, f"{name} is {shown(value)}, not true or false")
    return value == "true"
