"""``consumer_groups.jsonl`` of a collection: what no file of RocketMQ shows, named by a person."""

from __future__ import annotations

import json
from typing import Any

from rebalance_core.contracts.inputs import CONSUMER_GROUPS
from rebalance_core.ingest.fact import Unread
from rebalance_core.ingest.refusal import BAD_ENTRY, UNPARSABLE_LINE, Unreadable, unread
from rebalance_core.model.errors import RebalanceError, did_you_mean
from rebalance_core.strategies import parse_strategy

_TYPES: dict[str, type | tuple[type, ...]] = {
    "STRING": str,
    "BIGINT": int,
    "INT": int,
    "BOOLEAN": bool,
    "ARRAY<STRING>": list,
}


def parse_given_groups(
    text: str, name: str, cluster: str
) -> tuple[dict[str, dict[str, Any]], list[Unread]]:
    """Rows by group, each with any of the table's columns; and the lines that are none.

    Rows of another cluster are refused; a group named twice keeps its first row.
    """
    rows: dict[str, dict[str, Any]] = {}
    refused: list[Unread] = []
    for number, line in enumerate(text.removeprefix("\ufeff").splitlines(), 1):
        if not line.strip():
            continue
        try:
            row = _row(line, cluster)
            if row["consumer_group"] in rows:
                raise Unreadable("DUPLICATE_KEY", f"{row['consumer_group']} has a row above")
            rows[row["consumer_group"]] = row
        except Unreadable as refusal:
            refused.append(unread(f"{name}:{number}", line, refusal))
    return rows, refused


def _row(line: str, cluster: str) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise Unreadable(UNPARSABLE_LINE, f"is not one JSON object: {error}") from None
    if not isinstance(row, dict) or not isinstance(row.get("consumer_group"), str):
        raise Unreadable(BAD_ENTRY, "is no object with the text consumer_group")
    if row.pop("cluster", cluster) != cluster:
        raise Unreadable(BAD_ENTRY, f"is of another cluster than {cluster}")
    types = {column.name: column.type for column in CONSUMER_GROUPS.columns}
    given = {name: value for name, value in row.items() if value is not None}
    for name, value in given.items():
        if name not in types:
            raise Unreadable(BAD_ENTRY, f"unknown column {name}{did_you_mean(name, types)}")
        right = isinstance(value, _TYPES[types[name]])
        if not right or (isinstance(value, bool) and types[name] != "BOOLEAN"):
            raise Unreadable(BAD_ENTRY, f"{name} is {value!r}, which is no {types[name]}")
    if "strategy" in given:
        try:
            parse_strategy(given["strategy"])
        except RebalanceError as error:
            raise Unreadable("BAD_STRATEGY", str(error)) from None
    return given
