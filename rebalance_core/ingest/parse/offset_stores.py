"""Offsets in JSON files: ``consumerOffset.json``, ``consumerOrderInfo.json``, a client's
``offsets.json``.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from rebalance_core.ingest.fact import (
    BAD_ENTRY,
    Fact,
    Unread,
    Unreadable,
    shown,
    unread,
)
from rebalance_core.ingest.parse.java_numbers import count_of, long_of, offset_of
from rebalance_core.ingest.parse.json_tables import (
    Entry,
    Results,
    data_version,
    entries,
    name_of,
    object_of,
    raw_entry,
    read_document,
    read_relaxed_json,
    table_of,
)


class Refused(NamedTuple):
    """A part of an entry that is refused by itself, such as one queue in a group's offsets.

    Attributes:
        key: The part's key.
        value: Its value.
        why: The refusal.
    """

    key: Any
    value: Any
    why: Unreadable


KindAndFields = tuple[str, Mapping[str, object]]
"""A fact stated by an entry."""
Stated = Iterator[KindAndFields | Refused]
"""The facts in one entry, and the parts that were refused."""
EntryReader = Callable[[Any, Any], Stated]
"""A reader of an entry's key and value; raises `Unreadable` if nothing in the entry can be used."""


def read_store(
    text: str,
    source: str,
    table: str,
    read: EntryReader,
    versioned: bool = True,
    **more: EntryReader,
) -> list[Fact | Unread]:
    """Read a file that a broker or client writes with fastjson; an `Unread` for an invalid entry.

    Never raises; linear in the text.

    Args:
        text: the text of the file.
        source: its name.
        table: the table that identifies the file.
        read: the reader for its entries.
        versioned: False for a store without a ``dataVersion``.
        more: readers for tables that only some versions write, by name.
    """

    def facts(document: Mapping[str, object], source: str) -> Results:
        yield from _facts_of(table_of(document, table), read, source)
        for name, read_other in more.items():
            yield from _facts_of(Entry(document, "the document").mapping(name), read_other, source)
        if versioned:
            yield from data_version(document, source)

    return read_document(text, source, facts)


def each_part(parts: Mapping[Any, Any], read: Callable[[Any, Any], KindAndFields]) -> Stated:
    """Read each part of an entry; a refused part does not affect the others."""
    for key, value in parts.items():
        try:
            yield read(key, value)
        except Unreadable as why:
            yield Refused(key, value, why)


def _facts_of(table: Mapping[Any, Any], read: EntryReader, source: str) -> Results:
    def facts(key: Any, value: Any) -> Results:
        for stated in read(key, value):
            if isinstance(stated, Refused):
                raw = raw_entry(key, {stated.key: stated.value})
                yield unread(source, raw, stated.why)
            else:
                yield Fact(stated[0], None, stated[1], source)

    return entries(table, source, facts)


SEPARATOR = "@"
"""``ConsumerOffsetManager.TOPIC_GROUP_SEPARATOR``; neither topics nor groups may contain it."""
BROADCAST = "broadcast"
"""The suffix that ``BroadcastOffsetManager`` appends to a group's name."""


def parse_consumer_offset_json(text: str, source: str) -> list[Fact | Unread]:
    """Read the store of ``ConsumerOffsetManager``.

    ``groupTopicMap`` of 5.x repeats the keys of the table and yields no facts. Never raises; linear
    in the text.

    Facts:
        committed_offset: an offset that a group has committed for a queue on the broker to which
            the file belongs: consumer_group, topic, queue_id, committed_offset
        broadcast_offset: the broker's entry for a broadcasting group (5.x, key
            topic@group@broadcast), the lowest of its clients' offsets: consumer_group, topic,
            queue_id, committed_offset
        lmq_offset: an offset of a light message queue: key (topic@group), committed_offset
    """
    return read_store(text, source, "offsetTable", _offsets, lmqOffsetTable=_light_offset)


def _offsets(key: str, value: Any) -> Stated:
    kind, topic, group = _names(key)

    def of_queue(queue_id: Any, offset: Any) -> KindAndFields:
        return kind, {
            "consumer_group": group,
            "topic": topic,
            "queue_id": count_of(queue_id, f"a queue id of {key}"),
            "committed_offset": offset_of(offset, f"the offset of {key}, queue {queue_id}"),
        }

    return each_part(object_of(value, f"offsets of {key}"), of_queue)


def _light_offset(key: str, value: Any) -> Stated:
    offset = offset_of(value, f"the offset of {key}")
    yield "lmq_offset", {"key": key, "committed_offset": offset}


def _names(key: Any) -> tuple[str, str, str]:
    """Return the kind, topic and group in a key of the table.

    Upstream skips keys that do not have two parts; here they are refused by name.
    """
    parts = name_of(key, "a key of offsetTable").split(SEPARATOR)
    if len(parts) == 2 and all(parts):
        return "committed_offset", parts[0], parts[1]
    if len(parts) == 3 and all(parts) and parts[2] == BROADCAST:
        return "broadcast_offset", parts[0], parts[1]
    raise Unreadable(BAD_ENTRY, f"{shown(key)} is not <topic>@<group>")


LONG_BITS = 64
"""commitOffsetBit is a Java long, which shifts by the number modulo 64."""


def parse_consumer_order_info_json(text: str, source: str) -> list[Fact | Unread]:
    """Read the store of ``ConsumerOrderInfoManager``.

    Never raises; linear in the text.

    Facts:
        order_info: the messages that a FIFO group last popped from a queue: consumer_group, topic,
            queue_id, attempt_id (None if the version that wrote it has none), commit_bits, offsets,
            pop_ms, invisible_ms, next_visible_ms (latest of those renewed), blocked_until_ms (None
            if all were acknowledged, or the file does not show it)
    """
    return read_store(text, source, "table", _queues, versioned=False)


def _queues(key: str, value: Any) -> Stated:
    topic, _, group = name_of(key, "a key of table").partition("@")
    if not topic or not group:
        raise Unreadable(BAD_ENTRY, f"{shown(key)} is not <topic>@<group>")

    def of_queue(queue: Any, body: Any) -> KindAndFields:
        what = f"{key}, queue {queue}"
        queue_id = count_of(queue, f"a queue id of {key}")
        names = {"consumer_group": group, "topic": topic, "queue_id": queue_id}
        return "order_info", {**names, **_order(Entry(body, what), what)}

    return each_part(object_of(value, f"queues of {key}"), of_queue)


def _order(entry: Entry, what: str) -> Mapping[str, object]:
    first_and_steps = [long_of(offset, f"an offset of {what}") for offset in entry.items("o")]
    # the first is absolute, the others are counted from it (OrderInfo.buildOffsetList)
    offsets = [
        offset_of(first_and_steps[0] + (step if n else 0), f"an offset of {what}")
        for n, step in enumerate(first_and_steps)
    ]
    renewed = {
        offset_of(offset, f"an offset of ot of {what}"): long_of(ms, f"a time of ot of {what}")
        for offset, ms in entry.mapping("ot").items()
    }
    bits = entry.optional_long("cm") or 0
    pop_ms, invisible_ms = entry.optional_long("popTime"), entry.optional_long("i")
    until = None
    if pop_ms is not None and invisible_ms is not None:
        until = pop_ms + invisible_ms
    open_ones = [o for n, o in enumerate(offsets) if not bits >> n % LONG_BITS & 1]
    waiting = [renewed.get(offset, until) for offset in open_ones]
    visible_ms = [ms for ms in waiting if ms is not None]
    return {
        "attempt_id": entry.text("a"),
        "commit_bits": bits,
        "offsets": offsets,
        "pop_ms": pop_ms,
        "invisible_ms": invisible_ms,
        "next_visible_ms": max(renewed.values(), default=None),
        "blocked_until_ms": max(visible_ms)
        if visible_ms and len(visible_ms) == len(waiting)
        else None,
    }


def parse_local_offset_json(text: str, source: str) -> list[Fact | Unread]:
    """Read a file of ``LocalFileOffsetStore``, in either form.

    Up to 5.x the keys are objects; a stricter codec writes them as strings that contain the object.
    Never raises; linear in the text.

    Facts:
        local_offset: an offset in a client's local store (the file's path contains the client id
            and group): topic, broker_name, queue_id, committed_offset
    """
    return read_store(text, source, "offsetTable", _offset, versioned=False)


def _offset(key: Any, value: Any) -> Stated:
    queue = Entry(_queue(key), "a key of offsetTable")
    names = {
        "topic": name_of(queue.text("topic"), "topic"),
        "broker_name": name_of(queue.text("brokerName"), "brokerName"),
        "queue_id": queue.count("queueId"),
    }
    what = f"the offset of {', '.join(map(str, names.values()))}"
    yield "local_offset", {**names, "committed_offset": offset_of(value, what)}


def _queue(key: Any) -> Any:
    if isinstance(key, tuple):
        return dict(key)
    try:
        return read_relaxed_json(key)
    except Unreadable:
        raise Unreadable(BAD_ENTRY, f"the key {shown(key)} is not a queue") from None
