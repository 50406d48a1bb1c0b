"""The offset rule of a new owner in words: what a row of pull_starts says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rebalance_core.explain.view import Row
from rebalance_core.model.queue import MessageQueue
from rebalance_core.replay.start_rule import (
    BROKER_ZERO,
    FIRST_ZERO,
    LOCAL_STORE,
    MAX_OFFSET,
    PULL_ALWAYS_ZERO,
    QUERY_FAILED,
    RETRY_MAX,
    RETRY_ZERO,
    STORED,
    TIMESTAMP_SEARCH,
)

RULE_TEXTS = {
    STORED: "the group has committed on this queue, or somebody held it: it goes on from the "
    "stored offset",
    BROKER_ZERO: "nothing is committed and the broker answers 0: the queue's minimum is 0 and its "
    "first message still at hand",
    MAX_OFFSET: "nothing is committed: CONSUME_FROM_LAST_OFFSET starts at the end",
    FIRST_ZERO: "nothing is committed: CONSUME_FROM_FIRST_OFFSET starts at 0",
    TIMESTAMP_SEARCH: "nothing is committed: CONSUME_FROM_TIMESTAMP starts at the first message "
    "not older than the timestamp",
    RETRY_ZERO: "nothing is committed: a retry topic starts at 0",
    RETRY_MAX: "nothing is committed: a retry topic starts at its end under CONSUME_FROM_TIMESTAMP",
    LOCAL_STORE: "BROADCASTING: the client's own offset file counts",
    PULL_ALWAYS_ZERO: "a PULL consumer starts at 0: the application keeps the offsets",
    QUERY_FAILED: "the start fails: the queue does not exist, or the client rejects the mode",
    None: "no observation says where it starts",
}


@dataclass(frozen=True, slots=True)
class Start:
    """Where the owner began to pull; numbers are message offsets, None where nothing is known."""

    rule: str | None
    status: str
    text: str
    start_offset: int | None
    start_offset_low: int | None
    start_offset_high: int | None
    stored_offset: int | None
    min_offset: int | None
    max_offset: int | None
    corrected_offset: int | None
    skipped: int | None


def start_of(
    pull_starts: Sequence[Row], queue: MessageQueue, client_id: str, epoch: int
) -> Start | None:
    """The start of a client that added the queue in that epoch; None for what was so initially."""
    for row in pull_starts:
        if (
            row["epoch"] == epoch
            and row["client_id"] == client_id
            and (row["topic"], row["broker_name"], row["queue_id"]) == queue
        ):
            numbers = (row[name] for name in Start.__slots__[3:])
            return Start(row["rule"], row["status"], RULE_TEXTS[row["rule"]], *numbers)
    return None


def start_lines(start: Start) -> list[str]:
    """The start as sentences for a person."""
    lines = [f"{start.rule or start.status}: {start.text}"]
    seen = [
        f"{name} {value:,}"
        for name, value in (
            ("stored", start.stored_offset),
            ("minimum", start.min_offset),
            ("maximum", start.max_offset),
        )
        if value is not None
    ]
    lines.append(f"last seen before the change: {', '.join(seen) or 'nothing'}")
    if start.start_offset is not None:
        lines.append(f"starts at {start.start_offset:,}, {_bounds(start)}")
    elif start.start_offset_low is not None or start.start_offset_high is not None:
        lines.append(f"starts somewhere, {_bounds(start)}")
    if start.corrected_offset is not None:
        lines.append(
            f"OFFSET_ILLEGAL moves the first pull to {start.corrected_offset:,}: the start is "
            "outside what the queue holds"
        )
    if start.skipped is not None:
        lines.append(_skipped(start, start.skipped))
    return lines


def _skipped(start: Start, messages: int) -> str:
    if not messages:
        return "skips nothing"
    if start.rule == STORED:
        return (
            f"skips nothing: the {messages:,} messages since the newest commit seen before the "
            "change were read by the owner before"
        )
    return f"skips {messages:,} messages that were not committed"


def _bounds(start: Start) -> str:
    low, high = start.start_offset_low, start.start_offset_high
    if low is not None and low == high:
        return "for sure"
    floor = "0" if low is None else f"{low:,}"
    return f"from {floor} up" if high is None else f"between {floor} and {high:,}"
