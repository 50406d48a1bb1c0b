"""Reads a collection's ``consumer_groups.jsonl``, in which operators state settings that no
RocketMQ file shows.
"""

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from rebalance_core.contracts.inputs import CONSUMER_GROUPS
from rebalance_core.contracts.table import Column
from rebalance_core.contracts.time_ranges import TIME_RANGES
from rebalance_core.ingest.fact import BAD_ENTRY, UNPARSABLE_LINE, Unread, Unreadable, unread
from rebalance_core.model.errors import RebalanceError, did_you_mean
from rebalance_core.model.group_settings import VALID_THRESHOLDS, is_threshold
from rebalance_core.model.intervals import (
    INTERVALS,
    LONGEST_INTERVAL_MS,
    SHORTEST_INTERVAL_MS,
    is_interval,
)
from rebalance_core.model.versions import parse_version
from rebalance_core.strategies import parse_strategy

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import ConsumerGroupsGiven


VALID_INTERVALS = f"valid: {SHORTEST_INTERVAL_MS} to {LONGEST_INTERVAL_MS} (ms)"


_NUMBERS = {"BIGINT": range(-(2**63), 2**63), "INT": range(-(2**31), 2**31)}
_PARSED: dict[str, tuple[str, Callable[[str], object]]] = {
    "strategy": ("BAD_STRATEGY", parse_strategy),
    "client_version": (BAD_ENTRY, parse_version),
    "broker_version": (BAD_ENTRY, parse_version),
}
"""Code and parser of columns whose values have a grammar."""


def parse_given_groups(
    text: str, name: str, cluster: str
) -> tuple[dict[str, "ConsumerGroupsGiven"], list[Unread]]:
    """Return the rows by group, each with some of the table's columns, and the invalid lines.

    Rows of another cluster are refused; a group that appears twice keeps its first row.
    """
    rows: dict[str, ConsumerGroupsGiven] = {}
    refused: list[Unread] = []
    for number, line in enumerate(text.removeprefix("\ufeff").splitlines(), 1):
        if not line.strip():
            continue
        try:
            group, row = _row(line, cluster)
            if group in rows:
                raise Unreadable("DUPLICATE_KEY", f"{group} already has a row above")
            rows[group] = row
        except Unreadable as refusal:
            refused.append(unread(f"{name}:{number}", line, refusal))
    return rows, refused


def _row(line: str, cluster: str) -> tuple[str, "ConsumerGroupsGiven"]:
    """Return the group and the columns that its row gives."""
    try:
        document: object = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise Unreadable(UNPARSABLE_LINE, f"is not a single JSON object: {error}") from None
    row: dict[str, object] = document if isinstance(document, dict) else {}
    group = row.get("consumer_group")
    if not isinstance(group, str):
        raise Unreadable(BAD_ENTRY, "is not an object with the text consumer_group")
    if not group.strip():
        raise Unreadable(BAD_ENTRY, f"consumer_group is {group!r}; valid: the name of a group")
    if row.pop("cluster", cluster) != cluster:
        raise Unreadable(BAD_ENTRY, f"belongs to a cluster other than {cluster}")
    declared = {column.name: column for column in CONSUMER_GROUPS.columns}
    columns = {name: value for name, value in row.items() if value is not None}
    for name, value in columns.items():
        if name not in declared:
            raise Unreadable(BAD_ENTRY, f"unknown column {name}{did_you_mean(name, declared)}")
        kind = declared[name].type
        if not _fits(value, kind):
            raise Unreadable(BAD_ENTRY, f"{name} is {value!r}, which is not a {kind}")
        if valid := _valid_instead(declared[name], value):
            raise Unreadable(BAD_ENTRY, f"{name} is {value!r}; valid: {valid}")
        if name in INTERVALS and not (isinstance(value, int) and is_interval(value)):
            raise Unreadable("BAD_INTERVAL", f"{name} is {value!r}; {VALID_INTERVALS}")
        if name in _PARSED:
            code, parse = _PARSED[name]
            try:
                parse(str(value))
            except RebalanceError as error:
                raise Unreadable(code, f"{name}: {error}") from None
    return group, cast("ConsumerGroupsGiven", columns)


def _valid_instead(column: Column, value: object) -> str:
    """Return what is valid, in words, if a value of the column's type is not; empty if it is."""
    if column.allowed:
        return "" if value in column.allowed else ", ".join(column.allowed)
    if not isinstance(value, int):
        return ""
    good = TIME_RANGES.get(column.name)
    if good is not None and not good.first_ms <= value < good.end_ms:
        return f"{good.first_ms} to {good.end_ms - 1} (epoch ms)"
    if column.name.startswith("pull_threshold_") and not is_threshold(value):
        return VALID_THRESHOLDS
    return ""


def _fits(value: object, column_type: str) -> bool:
    """Return True if a column of this type can hold a value from JSON."""
    match value:
        case bool():
            return column_type == "BOOLEAN"
        case int():
            return value in _NUMBERS.get(column_type, ())
        case str():
            return column_type == "STRING" and value == value.encode("utf-8", "replace").decode()
        case list():
            return column_type == "ARRAY<STRING>" and all(_fits(text, "STRING") for text in value)
    return False
