"""Checks of single rows in a conformed table."""

from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rebalance_core.checks.conform import SHOWN_CHARACTERS, Issue
from rebalance_core.checks.expected_values import (
    DETAILS,
    ENUMS,
    MAX_NAME_BYTES,
    MAX_QUEUE_NUMS,
    NO_NAMES,
    OTHER_LANGUAGES,
    PARSED,
    number_ranges,
    unparsed,
)
from rebalance_core.contracts import INPUT_TABLES, PRODUCER_INPUT_TABLES, Table
from rebalance_core.contracts.inputs import NEEDED
from rebalance_core.contracts.table import READ_ISSUES
from rebalance_core.contracts.time_ranges import TIME_RANGES
from rebalance_core.model import events
from rebalance_core.model.client_releases import parse_release
from rebalance_core.model.group_settings import VALID_THRESHOLDS
from rebalance_core.model.intervals import INTERVALS, LONGEST_INTERVAL_MS, SHORTEST_INTERVAL_MS
from rebalance_core.model.request_mode import parse_request_mode


def row_issues(
    table: Table, rows: pa.RecordBatch, max_queue_nums: int = MAX_QUEUE_NUMS
) -> list[Issue]:
    """Return the issues of conformed rows other than reading issues, in the order in which rows
    list them.

    Texts in observed tables are observations, not settings, so any text is valid.
    """
    issues = [*_missing_values(table, rows), *_bad_times(table, rows)]
    issues += _bad_numbers(table, rows, max_queue_nums)
    if table.name in INPUT_TABLES or table.name in PRODUCER_INPUT_TABLES:
        if table.name == "cluster_events":
            issues += _bad_events(rows)
        issues += [*_bad_enums(table, rows), *_bad_texts(table, rows), *_long_names(table, rows)]
    return [each for each in issues if len(each.rows)]


def _issue(rows: pa.RecordBatch, wrong: pa.Array, code: str, *parts: str) -> Issue:
    """Return the issue of the rows where ``wrong`` is true.

    A part that begins with $ names a column whose value is shown.
    """
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
    # an unreadable value is already reported, and would be reported as missing here
    readable = pc.equal(pc.list_value_length(rows.column(READ_ISSUES)), 0)
    for column in table.columns:
        name = column.name
        if not column.nullable:
            wrong = pc.and_(readable, _is_empty(rows.column(name)))
            message = f"{name} is empty; every row of {table.name} needs a value"
            yield _issue(rows, wrong, "MISSING_VALUE", message)
        elif table.name == "cluster_events" and name in NEEDED:
            concerned = _is_in(rows.column("event_type"), NEEDED[name])
            wrong = pc.and_(pc.and_(readable, concerned), _is_empty(rows.column(name)))
            message = f"{name} is empty; "
            yield _issue(rows, wrong, "MISSING_VALUE", message, "$event_type", " needs it")


def _is_empty(values: pa.Array) -> pa.Array:
    missing = values.is_null()
    if not pa.types.is_string(values.type):
        return missing
    return pc.or_(missing, pc.fill_null(_is_blank(values), False))


def _is_blank(texts: pa.Array) -> pa.Array:
    return pc.match_substring_regex(texts, r"^ *$")


def _is_in(values: pa.Array, words: tuple[str, ...]) -> pa.Array:
    """Return whether each value is among the words; null for null, as in SQL."""
    known_word = pc.is_in(values, value_set=pa.array(words, pa.string()))
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
                yield _issue(rows, wrong, "BAD_TIME", f"{name} is ", f"${name}", f", {why}{valid}")


def _bad_numbers(table: Table, rows: pa.RecordBatch, max_queue_nums: int) -> Iterator[Issue]:
    ranges = number_ranges(max_queue_nums, table.name)
    for name in table.column_names:
        value = rows.column(name)
        if name in ranges:
            code, low, high = ranges[name]
            outside = pc.less(value, low)
            if high is not None:
                outside = pc.or_(outside, pc.greater(value, high))
            valid = f"; valid: {low} or more" if high is None else f"; valid: {low} to {high}"
            yield _issue(rows, outside, code, f"{name} is ", f"${name}", valid)
        if name.startswith("pull_threshold_"):
            wrong = pc.or_(pc.equal(value, 0), pc.less(value, -1))
            valid = f"; valid: {VALID_THRESHOLDS}"
            yield _issue(rows, wrong, "BAD_THRESHOLD", f"{name} is ", f"${name}", valid)
        if name in INTERVALS:
            yield from _bad_intervals(rows, name)
    if "min_offset" in table.column_names:
        wrong = pc.greater(rows.column("min_offset"), rows.column("max_offset"))
        parts = ("min_offset ", "$min_offset", " is above max_offset ", "$max_offset")
        yield _issue(rows, wrong, "BAD_OFFSET", *parts)


def _bad_intervals(rows: pa.RecordBatch, name: str) -> Iterator[Issue]:
    value = rows.column(name)
    valid = f"; valid: {SHORTEST_INTERVAL_MS} to {LONGEST_INTERVAL_MS} (ms)"
    short = pc.and_(pc.greater(value, 0), pc.less(value, SHORTEST_INTERVAL_MS))
    for wrong, why in (
        (pc.less_equal(value, 0), ""),
        (short, ", in seconds?"),
        (pc.greater(value, LONGEST_INTERVAL_MS), ", in microseconds?"),
    ):
        yield _issue(rows, wrong, "BAD_INTERVAL", f"{name} is ", f"${name}", why + valid)


def _bad_events(rows: pa.RecordBatch) -> Iterator[Issue]:
    event_type, detail = rows.column("event_type"), rows.column("detail")
    is_known = _is_in(event_type, events.EVENT_TYPES)
    unknown = pc.and_(pc.invert(is_known), pc.invert(_is_blank(event_type)))
    valid = f"'; valid: {', '.join(events.EVENT_TYPES)}"
    yield _issue(rows, unknown, "UNKNOWN_EVENT_TYPE", "event_type is '", "$event_type", valid)
    mode = pc.fill_null(pc.equal(event_type, events.REQUEST_MODE), False)
    others = pc.and_(pc.and_(is_known, detail.is_valid()), pc.invert(mode))
    for name in events.EVENT_TYPES:
        details = DETAILS.get(name, ())
        wrong = pc.and_(
            pc.and_(others, pc.equal(event_type, name)), pc.invert(_is_in(detail, details))
        )
        parts = ("detail is '", "$detail", "'; valid for ", "$event_type", ": ")
        yield _issue(rows, wrong, "BAD_ENUM", *parts, ", ".join(details) or "none")
    stated = pc.and_(mode, pc.invert(_is_blank(detail)))
    modes = pc.if_else(pc.fill_null(stated, False), detail, pa.scalar(None, pa.string()))
    yield _unparsed(modes, "BAD_REQUEST_MODE", "detail: ", parse_request_mode)


def _bad_enums(table: Table, rows: pa.RecordBatch) -> Iterator[Issue]:
    for name, values in ENUMS.items():
        if name in table.column_names:
            wrong = pc.invert(_is_in(rows.column(name), values))
            valid = f"'; valid: {', '.join(values)}"
            yield _issue(rows, wrong, "BAD_ENUM", f"{name} is '", f"${name}", valid)


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
            yield _issue(rows, wrong, "TOO_LONG", f"{column.name} is '", f"${column.name}", valid)


def _has_long_name(names: pa.Array) -> pa.Array:
    if pa.types.is_string(names.type):
        return pc.greater(pc.binary_length(names), MAX_NAME_BYTES)
    long = pc.greater(pc.binary_length(names.flatten()), MAX_NAME_BYTES)
    long_names = np.zeros(len(names), bool)
    long_names[np.asarray(pc.list_parent_indices(names).filter(long))] = True
    return pa.array(long_names)


def _unparsed(texts: pa.Array, code: str, prefix: str, parse: Callable[[str], object]) -> Issue:
    reasons = unparsed(texts, parse)
    numbers = np.flatnonzero(np.asarray(reasons.is_valid()))
    return Issue(numbers, code, [prefix + why for why in reasons.drop_null().to_pylist()])
