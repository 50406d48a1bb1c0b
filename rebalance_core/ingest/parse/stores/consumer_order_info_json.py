"""``consumerOrderInfo.json`` of a broker (5.x): what each FIFO group popped last of each queue."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rebalance_core.ingest.fact import Fact, Unread
from rebalance_core.ingest.parse.stores.json_store import JsonStore, Stated
from rebalance_core.ingest.parse.text.java_numbers import count_of, long_of
from rebalance_core.ingest.parse.text.json_tables import Entry, name_of, object_of
from rebalance_core.ingest.refusal import BAD_ENTRY, Unreadable, shown

KINDS = {
    "order_info": (
        "the messages of one queue that a FIFO group popped last: consumer_group, topic, queue_id, "
        "attempt_id (None: the version that wrote it has none), commit_bits, offsets, pop_ms, "
        "invisible_ms, next_visible_ms (latest of those renewed), blocked_until_ms (None: each was "
        "acknowledged, or the file does not tell)"
    ),
}


LONG_BITS = 64
"""commitOffsetBit is a Java long, which shifts by the number modulo 64."""


def parse_consumer_order_info_json(text: str, source: str) -> list[Fact | Unread]:
    """The facts of `KINDS` from the text of the store of `ConsumerOrderInfoManager`.

    Never raises; linear in the text.
    """
    return _STORE.parse(text, source)


def _queues(key: str, value: Any) -> Stated:
    topic, _, group = name_of(key, "a key of table").partition("@")
    if not topic or not group:
        raise Unreadable(BAD_ENTRY, f"{shown(key)} is not <topic>@<group>")
    for queue, body in object_of(value, f"queues of {key}").items():
        what = f"{key}, queue {queue}"
        queue_id = count_of(queue, f"a queue id of {key}")
        names = {"consumer_group": group, "topic": topic, "queue_id": queue_id}
        yield "order_info", {**names, **_order(Entry(body, what), what)}


def _order(entry: Entry, what: str) -> Mapping[str, Any]:
    first_and_steps = [long_of(offset, f"an offset of {what}") for offset in entry.items("o")]
    # the first is absolute, the others are counted from it (OrderInfo.buildOffsetList)
    offsets = [first_and_steps[0] + (step if n else 0) for n, step in enumerate(first_and_steps)]
    renewed = {
        long_of(offset, f"an offset of ot of {what}"): long_of(ms, f"a time of ot of {what}")
        for offset, ms in entry.mapping("ot").items()
    }
    bits = entry.optional_long("cm") or 0
    pop_ms, invisible_ms = entry.optional_long("popTime"), entry.optional_long("i")
    until = None
    if pop_ms is not None and invisible_ms is not None:
        until = pop_ms + invisible_ms
    open_ones = [o for n, o in enumerate(offsets) if not bits >> n % LONG_BITS & 1]
    waiting = [renewed.get(offset, until) for offset in open_ones]
    known = [ms for ms in waiting if ms is not None]
    return {
        "attempt_id": entry.text("a"),
        "commit_bits": bits,
        "offsets": offsets,
        "pop_ms": pop_ms,
        "invisible_ms": invisible_ms,
        "next_visible_ms": max(renewed.values(), default=None),
        "blocked_until_ms": max(known) if known and len(known) == len(waiting) else None,
    }


_STORE = JsonStore("table", _queues, versioned=False)
