"""``messageRequestMode.json`` of a broker (5.x): which groups pop which topics."""

from __future__ import annotations

from typing import Any

from rebalance_core.ingest.fact import Fact, Unread
from rebalance_core.ingest.parse.stores.json_store import JsonStore, Stated
from rebalance_core.ingest.parse.text.java_numbers import INT_MAX
from rebalance_core.ingest.parse.text.json_tables import (
    Entry,
    name_of,
    object_of,
)
from rebalance_core.ingest.refusal import BAD_ENTRY, BAD_NUMBER, Unreadable, shown
from rebalance_core.model.group_settings import DEFAULT_SHARE_QUEUE_NUM, PULL_MODE, RequestMode

KINDS = {
    "request_mode": (
        "the mode in which a group gets messages of a topic from the broker whose file this is: "
        "consumer_group, topic, mode (as the detail of REQUEST_MODE); a switch back is written "
        "as PULL, what was never set has no entry and is PULL"
    ),
}


def parse_message_request_mode_json(text: str, source: str) -> list[Fact | Unread]:
    """The facts of `KINDS` from the text of the store of `MessageRequestModeManager`.

    Never raises; linear in the text.
    """
    return _STORE.parse(text, source)


def _modes(key: str, value: Any) -> Stated:
    topic = name_of(key, "a topic of messageRequestModeMap")
    for name, body in object_of(value, f"groups of {topic}").items():
        group = name_of(name, f"a group of {topic}")
        mode = _mode(Entry(body, f"{group} of {topic}"), f"{group} of {topic}")
        yield "request_mode", {"consumer_group": group, "topic": topic, "mode": str(mode)}


def _mode(entry: Entry, what: str) -> RequestMode:
    mode = entry.text("mode")
    if mode == "PULL":
        return PULL_MODE
    if mode != "POP":
        raise Unreadable(BAD_ENTRY, f"mode of {what} is {shown(mode)}, not PULL or POP")
    number = entry.optional_long("popShareQueueNum")
    share = DEFAULT_SHARE_QUEUE_NUM if number is None else number
    if not -INT_MAX - 1 <= share <= INT_MAX:
        raise Unreadable(BAD_NUMBER, f"popShareQueueNum of {what} is {share}, no 32-bit number")
    return RequestMode(share)


_STORE = JsonStore("messageRequestModeMap", _modes, versioned=False)
