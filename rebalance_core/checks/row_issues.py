"""What a row check looks for: the codes, the limits, what columns may hold, and what breaks it."""

from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rebalance_core.checks.conform import SHOWN_CHARACTERS, Issue
from rebalance_core.contracts import INPUT_TABLES, PRODUCER_INPUT_TABLES, Table
from rebalance_core.contracts.inputs import CONSUMER_GROUPS, NEEDED, TIME_RANGES
from rebalance_core.contracts.observed import OBSERVED_FACTS
from rebalance_core.contracts.producers import SEND_RESULTS
from rebalance_core.contracts.table import READ_ISSUES
from rebalance_core.model import events
from rebalance_core.model.clients import parse_language, parse_release, parse_version
from rebalance_core.model.errors import UsageError
from rebalance_core.model.group_settings import (
    INTERVALS,
    JAVA,
    LANGUAGES,
    LONGEST_INTERVAL_MS,
    SHORTEST_INTERVAL_MS,
    parse_request_mode,
)
from rebalance_core.strategies import parse_strategy
from rebalance_core.strategies.pop import WHOLE_BROKER

# What a row check looks for: the codes, the limits, and what columns may hold.

ISSUE_CODES = {
    "UNPARSABLE": "the line is not one JSON object, has not the header's columns or is not UTF-8",
    "BAD_TYPE": "a field is not of its column's type",
    "TOO_LONG": "a name has more bytes than the limit, which no name of RocketMQ reaches",
    "MISSING_VALUE": "a field is empty that every row, or this event type, needs",
    "UNKNOWN_EVENT_TYPE": "event_type is none of the known ones",
    "BAD_QUEUE_NUMS": "a number of queues is negative or above the limit",
    "BAD_PERM": "perm is outside 0..15",
    "BAD_TIME": "a time is before the year 2000 or after 2200; a consume timestamp is negative",
    "BAD_ENUM": "a field has none of its allowed values",
    "BAD_STRATEGY": "the strategy text does not parse",
    "BAD_REQUEST_MODE": "the detail of a REQUEST_MODE does not parse",
    "BAD_VERSION": "the version does not parse or is not modelled",
    "BAD_VALUE": "a text is none of those that there are",
    "BAD_OFFSET": "an offset is negative, or the minimum is above the maximum",
    "BAD_QUEUE_ID": "the queue id is negative or not below the limit",
    "BAD_THRESHOLD": "a pull threshold is 0 or below -1",
    "BAD_LATENCY": "a latency is negative",
    "BAD_INTERVAL": "a client's interval is 0 or no number of milliseconds that makes sense",
    "DUPLICATE_KEY": "rows with the same key differ; all of them are rejected",
    "UNKNOWN_MEMBER": "the event is about a member that is not there (found by the replay)",
    "UNKNOWN_BROKER": "no event of the cluster names the broker (found by `producers`)",
    "TIME_WENT_BACK": "a client's result is earlier than that of a line above (found there too)",
}
"""What is wrong with a row, and what it means."""

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
"""What `detail` may say, by event type; REQUEST_MODE has a text of its own, others have none."""

ENUM_COLUMNS = ("consumer_type", "message_model", "rebalance_mode", "consume_from_where")
ENUMS = {name: CONSUMER_GROUPS.column(name).allowed for name in ENUM_COLUMNS} | {
    "status": SEND_RESULTS.column("status").allowed
}
"""Allowed words by column, in the order of a row's issues; cluster_events allows the same."""
PARSED: dict[str, tuple[str, Callable[[str], object]]] = {
    "strategy": ("BAD_STRATEGY", parse_strategy),
    "version": ("BAD_VERSION", parse_version),
    "client_version": ("BAD_VERSION", parse_version),
    "broker_version": ("BAD_VERSION", parse_version),
    "language": ("BAD_VALUE", parse_language),
}
"""Code and parser of columns whose texts have a grammar."""
OTHER_LANGUAGES = tuple(language for language in LANGUAGES if language != JAVA)
"""Members of these have versions of their own (`model.clients`)."""
MAX_NAME_BYTES = 4096
"""Of a name; RocketMQ's topics have up to 127 characters, its groups 255 (``Validators``)."""
NO_NAMES = ("event_type", "detail", "source", *PARSED, *ENUMS)
"""Columns of texts that hold no names."""


def number_ranges(max_queue_nums: int, table_name: str) -> dict[str, tuple[str, int, int | None]]:
    """By column of numbers the code, the first good one and the last (None: no limit).

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
    """Say why each text does not parse, null where it does; each distinct one is parsed once."""
    encoded = texts.dictionary_encode()
    reasons = [_complaint(text, parse) for text in encoded.dictionary.to_pylist()]
    return pa.array(reasons, pa.string()).take(encoded.indices)


def _complaint(text: str, parse: Callable[[str], object]) -> str | None:
    try:
        parse(text)
    except UsageError as error:
        return str(error)
    return None


# What is wrong with single rows of a conformed table.


def row_issues(
    table: Table, rows: pa.RecordBatch, max_queue_nums: int = MAX_QUEUE_NUMS
) -> list[Issue]:
    """The issues of conformed rows beside those of reading, in the order in which a row lists them.

    Texts of observed tables are what was seen, not settings: any is good.
    """
    found = [*_missing_values(table, rows), *_bad_times(table, rows)]
    found += _bad_numbers(table, rows, max_queue_nums)
    if table.name in INPUT_TABLES or table.name in PRODUCER_INPUT_TABLES:
        if table.name == "cluster_events":
            found += _bad_events(rows)
        found += [*_bad_enums(table, rows), *_bad_texts(table, rows), *_long_names(table, rows)]
    return [each for each in found if len(each.rows)]


def _found(rows: pa.RecordBatch, wrong: pa.Array, code: str, *parts: str) -> Issue:
    """Rows where ``wrong`` is true; a part that begins with $ names the column that it shows."""
    numbers = np.flatnonzero(np.asarray(pc.fill_null(wrong, False)))
    if not len(numbers):
        return Issue(numbers, code, [])
    taken = pa.array(numbers)
    texts = [
        _shown(rows.column(part[1:]).take(taken)) if part.startswith("$") else [part] * len(numbers)
        for part in parts
    ]
    return Issue(numbers, code, ["".join(pieces) for pieces in zip(*texts, strict=True)])


def _shown(values: pa.Array) -> list[str]:
    texts = ["null" if value is None else str(value) for value in values.to_pylist()]
    return [f"{t[:SHOWN_CHARACTERS]}…" if len(t) > SHOWN_CHARACTERS else t for t in texts]


def _missing_values(table: Table, rows: pa.RecordBatch) -> Iterator[Issue]:
    # what did not read is named already, and would be called missing here
    readable = pc.equal(pc.list_value_length(rows.column(READ_ISSUES)), 0)
    for column in table.columns:
        name = column.name
        if not column.nullable:
            wrong = pc.and_(readable, _is_empty(rows.column(name)))
            message = f"{name} is empty; every row of {table.name} needs it"
            yield _found(rows, wrong, "MISSING_VALUE", message)
        elif table.name == "cluster_events" and name in NEEDED:
            concerned = _is_in(rows.column("event_type"), NEEDED[name])
            wrong = pc.and_(pc.and_(readable, concerned), _is_empty(rows.column(name)))
            message = f"{name} is empty; "
            yield _found(rows, wrong, "MISSING_VALUE", message, "$event_type", " needs it")


def _is_empty(values: pa.Array) -> pa.Array:
    missing = values.is_null()
    if not pa.types.is_string(values.type):
        return missing
    return pc.or_(missing, pc.fill_null(_is_blank(values), False))


def _is_blank(texts: pa.Array) -> pa.Array:
    return pc.match_substring_regex(texts, r"^ *$")


def _is_in(values: pa.Array, known: tuple[str, ...]) -> pa.Array:
    """Whether a value is one of the words; null for null, as in SQL."""
    known_word = pc.is_in(values, value_set=pa.array(known, pa.string()))
    return pc.if_else(values.is_valid(), known_word, pa.scalar(None, pa.bool_()))


def _bad_times(table: Table, rows: pa.RecordBatch) -> Iterator[Issue]:
    for name, good in TIME_RANGES.items():
        if name in table.column_names:
            value = rows.column(name)
            valid = f" valid: {good.first_ms} to {good.end_ms - 1} (epoch ms)"
            for wrong, why in (
                (pc.less(value, good.first_ms), good.too_early),
                (pc.greater_equal(value, good.end_ms), good.too_late),
            ):
                yield _found(rows, wrong, "BAD_TIME", f"{name} is ", f"${name}", f", {why}{valid}")


def _bad_numbers(table: Table, rows: pa.RecordBatch, max_queue_nums: int) -> Iterator[Issue]:
    ranges = number_ranges(max_queue_nums, table.name)
    for name in table.column_names:
        value = rows.column(name)
        if name in ranges:
            code, low, high = ranges[name]
            outside = pc.less(value, low)
            if high is not None:
                outside = pc.or_(outside, pc.greater(value, high))
            valid = f"; valid: {low} and more" if high is None else f"; valid: {low} to {high}"
            yield _found(rows, outside, code, f"{name} is ", f"${name}", valid)
        if name.startswith("pull_threshold_"):
            wrong = pc.or_(pc.equal(value, 0), pc.less(value, -1))
            valid = "; valid: -1 (off), 1 and more"
            yield _found(rows, wrong, "BAD_THRESHOLD", f"{name} is ", f"${name}", valid)
        if name in INTERVALS:
            yield from _bad_intervals(rows, name)
    if "min_offset" in table.column_names:
        wrong = pc.greater(rows.column("min_offset"), rows.column("max_offset"))
        parts = ("min_offset ", "$min_offset", " is above max_offset ", "$max_offset")
        yield _found(rows, wrong, "BAD_OFFSET", *parts)


def _bad_intervals(rows: pa.RecordBatch, name: str) -> Iterator[Issue]:
    value = rows.column(name)
    valid = f"; valid: {SHORTEST_INTERVAL_MS} to {LONGEST_INTERVAL_MS} (ms)"
    short = pc.and_(pc.greater(value, 0), pc.less(value, SHORTEST_INTERVAL_MS))
    for wrong, why in (
        (pc.less_equal(value, 0), ""),
        (short, ", in seconds?"),
        (pc.greater(value, LONGEST_INTERVAL_MS), ", in microseconds?"),
    ):
        yield _found(rows, wrong, "BAD_INTERVAL", f"{name} is ", f"${name}", why + valid)


def _bad_events(rows: pa.RecordBatch) -> Iterator[Issue]:
    event_type, detail = rows.column("event_type"), rows.column("detail")
    known = _is_in(event_type, events.EVENT_TYPES)
    unknown = pc.and_(pc.invert(known), pc.invert(_is_blank(event_type)))
    valid = f"'; valid: {', '.join(events.EVENT_TYPES)}"
    yield _found(rows, unknown, "UNKNOWN_EVENT_TYPE", "event_type is '", "$event_type", valid)
    mode = pc.fill_null(pc.equal(event_type, events.REQUEST_MODE), False)
    others = pc.and_(pc.and_(known, detail.is_valid()), pc.invert(mode))
    for name in events.EVENT_TYPES:
        details = DETAILS.get(name, ())
        wrong = pc.and_(
            pc.and_(others, pc.equal(event_type, name)), pc.invert(_is_in(detail, details))
        )
        parts = ("detail is '", "$detail", "'; valid for ", "$event_type", ": ")
        yield _found(rows, wrong, "BAD_ENUM", *parts, ", ".join(details) or "none")
    stated = pc.and_(mode, pc.invert(_is_blank(detail)))
    modes = pc.if_else(pc.fill_null(stated, False), detail, pa.scalar(None, pa.string()))
    yield _unparsed(modes, "BAD_REQUEST_MODE", "detail: ", parse_request_mode)


def _bad_enums(table: Table, rows: pa.RecordBatch) -> Iterator[Issue]:
    for name, values in ENUMS.items():
        if name in table.column_names:
            wrong = pc.invert(_is_in(rows.column(name), values))
            valid = f"'; valid: {', '.join(values)}"
            yield _found(rows, wrong, "BAD_ENUM", f"{name} is '", f"${name}", valid)


def _bad_texts(table: Table, rows: pa.RecordBatch) -> Iterator[Issue]:
    for name in table.column_names:
        if name in PARSED:
            code, parse = PARSED[name]
            texts = rows.column(name)
            if name == "version" and "language" in table.column_names:
                others = _is_in(rows.column("language"), OTHER_LANGUAGES)
                others, none = pc.fill_null(others, False), pa.scalar(None, pa.string())
                releases = pc.if_else(others, texts, none)
                yield _unparsed(releases, code, f"{name}: ", parse_release)
                texts = pc.if_else(others, none, texts)
            yield _unparsed(texts, code, f"{name}: ", parse)


def _long_names(table: Table, rows: pa.RecordBatch) -> Iterator[Issue]:
    valid = f"'; valid: up to {MAX_NAME_BYTES} bytes"
    for column in table.columns:
        if column.name not in NO_NAMES and column.type in ("STRING", "ARRAY<STRING>"):
            wrong = _has_long_name(rows.column(column.name))
            yield _found(rows, wrong, "TOO_LONG", f"{column.name} is '", f"${column.name}", valid)


def _has_long_name(names: pa.Array) -> pa.Array:
    if pa.types.is_string(names.type):
        return pc.greater(pc.binary_length(names), MAX_NAME_BYTES)
    long = pc.greater(pc.binary_length(names.flatten()), MAX_NAME_BYTES)
    found = np.zeros(len(names), bool)
    found[np.asarray(pc.list_parent_indices(names).filter(long))] = True
    return pa.array(found)


def _unparsed(texts: pa.Array, code: str, prefix: str, parse: Callable[[str], object]) -> Issue:
    reasons = unparsed(texts, parse)
    numbers = np.flatnonzero(np.asarray(reasons.is_valid()))
    return Issue(numbers, code, [prefix + why for why in reasons.drop_null().to_pylist()])
