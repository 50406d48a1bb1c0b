"""What row checks look for: codes, limits, and allowed values by column."""

from collections.abc import Callable

import pyarrow as pa

from rebalance_core.contracts.inputs import CONSUMER_GROUPS
from rebalance_core.contracts.observed import OBSERVED_FACTS
from rebalance_core.contracts.producers import SEND_RESULTS
from rebalance_core.model import events
from rebalance_core.model.errors import UsageError
from rebalance_core.model.languages import JAVA, LANGUAGES, parse_language
from rebalance_core.model.versions import parse_version
from rebalance_core.strategies import parse_strategy
from rebalance_core.strategies.pop import WHOLE_BROKER

ISSUE_CODES = {
    "UNPARSABLE": "the line is not a JSON object, lacks the header's columns or is not UTF-8",
    "BAD_TYPE": "a field does not have its column's type",
    "TOO_LONG": "a name is longer in bytes than any name that RocketMQ accepts",
    "MISSING_VALUE": "a field that every row or this event type requires is empty",
    "UNKNOWN_EVENT_TYPE": "the event_type is unknown",
    "BAD_QUEUE_NUMS": "a number of queues is negative or above the limit",
    "BAD_PERM": "perm is not between 0 and 15",
    "BAD_TIME": "a time is before the year 2000 or after 2200, or a consume timestamp is negative",
    "BAD_ENUM": "a field does not have an allowed value",
    "BAD_STRATEGY": "the strategy text does not parse",
    "BAD_REQUEST_MODE": "the detail of a REQUEST_MODE does not parse",
    "BAD_VERSION": "the version does not parse or is not modelled",
    "BAD_VALUE": "a text is not an allowed value",
    "BAD_OFFSET": "an offset is negative, or the minimum is above the maximum",
    "BAD_QUEUE_ID": "the queue id is negative, or at or above the limit",
    "BAD_THRESHOLD": "a pull threshold is 0 or less than -1",
    "BAD_LATENCY": "a latency is negative",
    "BAD_INTERVAL": "a client's interval is 0, or not a plausible number of milliseconds",
    "DUPLICATE_KEY": "rows with the same key differ; all of these rows are rejected",
    "UNKNOWN_MEMBER": "the event concerns a member that does not exist (detected by the replay)",
    "UNKNOWN_BROKER": "no event of the cluster names the broker (detected by `producers`)",
    "TIME_WENT_BACK": (
        "a client's result is earlier than the result of a line above (detected by `producers`)"
    ),
}
"""The codes of what is wrong with a row, and their meanings."""

MAX_QUEUE_NUMS = 65536
MAX_PERM = 15  # PermName: priority 8, read 4, write 2, inherit 1

DETAILS = {
    events.CONSUMER_JOIN: (events.OBSERVED,),
    events.CONSUMER_LOST: ("CLOSED", events.EXPIRED),
    events.BROKER_UP: (events.OBSERVED,),
    events.BROKER_DOWN: ("STOPPED", "CLOSED", events.EXPIRED),
    events.TOPIC_CONFIG: (events.OBSERVED,),
    events.MASTER_DOWN: events.MASTER_MODES,
    events.NOTICES: events.NOTICE_MODES,
}
"""Valid values of `detail`, by event type; REQUEST_MODE has its own format, other types have none.
"""

ENUM_COLUMNS = ("consumer_type", "message_model", "rebalance_mode", "consume_from_where")
ENUMS = {name: CONSUMER_GROUPS.column(name).allowed for name in ENUM_COLUMNS} | {
    "status": SEND_RESULTS.column("status").allowed
}
"""Allowed values by column, in the order of a row's issues; cluster_events allows the same values.
"""
PARSED: dict[str, tuple[str, Callable[[str], object]]] = {
    "strategy": ("BAD_STRATEGY", parse_strategy),
    "version": ("BAD_VERSION", parse_version),
    "client_version": ("BAD_VERSION", parse_version),
    "broker_version": ("BAD_VERSION", parse_version),
    "language": ("BAD_VALUE", parse_language),
}
"""Code and parser of columns whose values have a grammar."""
OTHER_LANGUAGES = tuple(language for language in LANGUAGES if language != JAVA)
"""Clients in these languages have their own versions (`model.clients`)."""
MAX_NAME_BYTES = 4096
"""Maximum length of a name; RocketMQ's topics have up to 127 characters, its groups 255
(``Validators``)."""
NO_NAMES = ("event_type", "detail", "source", *PARSED, *ENUMS)
"""Text columns that contain no names."""


def number_ranges(max_queue_nums: int, table_name: str) -> dict[str, tuple[str, int, int | None]]:
    """Return, by numeric column, the code and the first and last valid numbers (None for no limit).

    A fact may be on any queue of a broker (rocketmq.md §2.8), every other row is on one queue.
    """
    first_id = WHOLE_BROKER if table_name == OBSERVED_FACTS.name else 0
    last_id = max_queue_nums - 1
    offsets = ("min_offset", "max_offset", "committed_offset")
    return {
        **dict.fromkeys(
            ("read_queue_nums", "write_queue_nums"), ("BAD_QUEUE_NUMS", 0, max_queue_nums)
        ),
        **dict.fromkeys(offsets, ("BAD_OFFSET", 0, None)),
        "latency_ms": ("BAD_LATENCY", 0, None),
        "queue_id": ("BAD_QUEUE_ID", first_id, last_id),
        "perm": ("BAD_PERM", 0, MAX_PERM),
    }


def unparsed(texts: pa.Array, parse: Callable[[str], object]) -> pa.Array:
    """Return why each text does not parse, or null if it does; each distinct text is parsed
    once.
    """
    encoded = texts.dictionary_encode()
    reasons = [_complaint(text, parse) for text in encoded.dictionary.to_pylist()]
    return pa.array(reasons, pa.string()).take(encoded.indices)


def _complaint(text: str, parse: Callable[[str], object]) -> str | None:
    try:
        parse(text)
    except UsageError as error:
        return str(error)
    return None
