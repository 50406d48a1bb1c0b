"""``topics.json`` of a broker: the queues and permission of each topic there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rebalance_core.ingest.fact import Fact, Unread
from rebalance_core.ingest.parse.stores.json_store import JsonStore, Stated
from rebalance_core.ingest.parse.text.json_tables import (
    DATA_VERSION,
    DATA_VERSION_KIND,
    Entry,
    name_of,
)

KINDS = {
    "topic_config": (
        "a topic on the broker whose file this is: topic, read_queue_nums, write_queue_nums, perm "
        "(bits: 4 read, 2 write, 1 inherit), order, topic_sys_flag, attributes (5.x; else empty)"
    ),
    DATA_VERSION_KIND: DATA_VERSION,
}


def parse_topics_json(text: str, source: str) -> list[Fact | Unread]:
    """The facts of `KINDS` from the text of the store of `TopicConfigManager`.

    Never raises; linear in the text.
    """
    return _STORE.parse(text, source)


def topic_values(key: str, value: Any) -> Mapping[str, Any]:
    """The fields of one ``TopicConfig``.

    Raises:
        Unreadable: a field is missing or no number.
    """
    topic = name_of(key, "the key of a topic")
    entry = Entry(value, f"topic {topic}")
    return {
        "topic": topic,
        "read_queue_nums": entry.count("readQueueNums"),
        "write_queue_nums": entry.count("writeQueueNums"),
        "perm": entry.count("perm"),
        "order": bool(entry.flag("order")),
        "topic_sys_flag": entry.count("topicSysFlag", 0),
        "attributes": dict(entry.mapping("attributes")),
    }


def _topic(key: str, value: Any) -> Stated:
    yield "topic_config", topic_values(key, value)


_STORE = JsonStore("topicConfigTable", _topic)
