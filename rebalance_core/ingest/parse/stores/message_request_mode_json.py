"""``messageRequestMode.json`` of a broker (5.x): which groups pop which topics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rebalance_core.ingest.fact import Fact, Unread
from rebalance_core.ingest.parse.text.java_numbers import INT_MAX
from rebalance_core.ingest.parse.text.json_tables import (
    Entry,
    Results,
    entries,
    name_of,
    object_of,
    read_document,
    table_of,
)
from rebalance_core.ingest.refusal import BAD_ENTRY, BAD_NUMBER, Unreadable, shown
from rebalance_core.model.request_mode import DEFAULT_SHARE_QUEUE_NUM, PULL_MODE, RequestMode

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
    return read_document(text, source, _parse)


def _parse(document: Mapping[str, Any], source: str) -> Results:
    def modes(key: str, value: Any) -> Iterator[Fact]:
        topic = name_of(key, "a topic of messageRequestModeMap")
        for name, body in object_of(value, f"groups of {topic}").items():
            group = name_of(name, f"a group of {topic}")
            mode = _mode(Entry(body, f"{group} of {topic}"), f"{group} of {topic}")
            values = {"consumer_group": group, "topic": topic, "mode": str(mode)}
            yield Fact("request_mode", None, values, source)

    yield from entries(table_of(document, "messageRequestModeMap"), source, modes)


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
