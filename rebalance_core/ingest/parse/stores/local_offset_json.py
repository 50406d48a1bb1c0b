"""``offsets.json`` of a BROADCASTING client: what it has read, on its own disk."""

from __future__ import annotations

from typing import Any

from rebalance_core.ingest.fact import Fact, Unread
from rebalance_core.ingest.parse.stores.json_store import JsonStore, Stated
from rebalance_core.ingest.parse.text.java_numbers import long_of
from rebalance_core.ingest.parse.text.json_tables import (
    Entry,
    name_of,
)
from rebalance_core.ingest.parse.text.relaxed_json import read_relaxed_json
from rebalance_core.ingest.refusal import BAD_ENTRY, Unreadable, shown

KINDS = {
    "local_offset": (
        "an offset in the local store of a client; the path of the file holds client id and "
        "group: topic, broker_name, queue_id, committed_offset"
    ),
}


def parse_local_offset_json(text: str, source: str) -> list[Fact | Unread]:
    """The facts of `KINDS` from a file of `LocalFileOffsetStore`, of either form.

    Up to 5.x the keys are objects; a stricter codec writes them as texts that hold the object.
    Never raises; linear in the text.
    """
    return _STORE.parse(text, source)


def _offset(key: Any, value: Any) -> Stated:
    queue = Entry(_queue(key), "a key of offsetTable")
    yield (
        "local_offset",
        {
            "topic": name_of(queue.text("topic"), "topic"),
            "broker_name": name_of(queue.text("brokerName"), "brokerName"),
            "queue_id": queue.count("queueId"),
            "committed_offset": long_of(value, "the offset"),
        },
    )


def _queue(key: Any) -> Any:
    if isinstance(key, tuple):
        return dict(key)
    try:
        return read_relaxed_json(key)
    except Unreadable:
        raise Unreadable(BAD_ENTRY, f"the key {shown(key)} is not a queue") from None


_STORE = JsonStore("offsetTable", _offset, versioned=False)
