"""``consumerOffset.json`` of a broker: what each group has committed on the broker's own queues."""

from __future__ import annotations

from typing import Any

from rebalance_core.ingest.fact import Fact, Unread
from rebalance_core.ingest.parse.stores.json_store import JsonStore, Stated
from rebalance_core.ingest.parse.text.java_numbers import count_of, long_of
from rebalance_core.ingest.parse.text.json_tables import (
    DATA_VERSION,
    DATA_VERSION_KIND,
    name_of,
    object_of,
)
from rebalance_core.ingest.refusal import BAD_ENTRY, Unreadable, shown

KINDS = {
    "committed_offset": (
        "an offset that a group has committed on a queue of the broker whose file this is: "
        "consumer_group, topic, queue_id, committed_offset"
    ),
    "broadcast_offset": (
        "what the broker notes of a broadcasting group (5.x, key topic@group@broadcast): the "
        "lowest of its clients; consumer_group, topic, queue_id, committed_offset"
    ),
    "lmq_offset": "an offset of a light message queue: key (topic@group), committed_offset",
    DATA_VERSION_KIND: DATA_VERSION,
}

SEPARATOR = "@"
"""``ConsumerOffsetManager.TOPIC_GROUP_SEPARATOR``; neither topics nor groups may hold one."""
BROADCAST = "broadcast"
"""What ``BroadcastOffsetManager`` appends to the name of a group."""


def parse_consumer_offset_json(text: str, source: str) -> list[Fact | Unread]:
    """The facts of `KINDS` from the text of the store of `ConsumerOffsetManager`.

    ``groupTopicMap`` of 5.x repeats the keys of the table and makes no facts. Never raises; linear
    in the text.
    """
    return _STORE.parse(text, source)


def _offsets(key: str, value: Any) -> Stated:
    kind, topic, group = _names(key)
    for queue_id, offset in object_of(value, f"offsets of {key}").items():
        yield (
            kind,
            {
                "consumer_group": group,
                "topic": topic,
                "queue_id": count_of(queue_id, f"a queue id of {key}"),
                "committed_offset": long_of(offset, f"the offset of {key}, queue {queue_id}"),
            },
        )


def _light_offset(key: str, value: Any) -> Stated:
    offset = long_of(value, f"the offset of {key}")
    yield "lmq_offset", {"key": key, "committed_offset": offset}


def _names(key: Any) -> tuple[str, str, str]:
    """Kind, topic and group of a key of the table.

    Upstream passes over keys that do not have two parts; here they are refused by name.
    """
    parts = name_of(key, "a key of offsetTable").split(SEPARATOR)
    if len(parts) == 2 and all(parts):
        return "committed_offset", parts[0], parts[1]
    if len(parts) == 3 and all(parts) and parts[2] == BROADCAST:
        return "broadcast_offset", parts[0], parts[1]
    raise Unreadable(BAD_ENTRY, f"{shown(key)} is not <topic>@<group>")


_STORE = JsonStore("offsetTable", _offsets, {"lmqOffsetTable": _light_offset})
