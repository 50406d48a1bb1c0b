"""TRANSIENT_OWNERSHIP: queues without or with two owners while a logged cause was being settled."""

from __future__ import annotations

from collections.abc import Iterator

from rebalance_core.audit.case import Finding, GroupCase, Row, Rule, lasting, listed, plural
from rebalance_core.audit.dumps import queue_of
from rebalance_core.audit.duplicate_ids import DuplicateId, logged_duplicates
from rebalance_core.audit.orphans import (
    cause_text,
    is_broadcasting,
    is_persistent,
    offline_ms,
    span_of,
)
from rebalance_core.model.verdicts import INFO


def find(case: GroupCase) -> Iterator[Finding]:
    """At most one finding a group: how many queues, the worst, the causes (rocketmq.md §8)."""
    if is_broadcasting(case):
        return
    duplicate = logged_duplicates(case)
    spans = [
        (row, span_ms)
        for row in case.rows("ownership")
        if (span_ms := _short(case, row)) and not any(_covers(one, row) for one in duplicate)
    ]
    if not spans:
        return
    unowned = {queue_of(row) for row, _ in spans if row["client_id"] is None}
    twice = {queue_of(row) for row, _ in spans if row["client_id"] is not None}
    worst, worst_ms = min(spans, key=lambda pair: (-pair[1], queue_of(pair[0]), pair[0]["from_ms"]))
    epochs = {row["epoch"]: row for row in case.epochs}
    causes = [
        cause_text(case, epochs[number])
        for number in sorted({row["from_epoch"] for row, _ in spans})
        if number in epochs
    ]
    parts = [f"{plural(len(unowned), 'queue')} without an owner" if unowned else "",
             f"{plural(len(twice), 'queue')} held twice" if twice else ""]  # fmt: skip
    yield Finding(
        f"{' and '.join(part for part in parts if part)} for a while, the longest "
        f"{worst['topic']} {worst['broker_name']}:{worst['queue_id']} for "
        f"{lasting(worst_ms)}; explained by {listed(causes, 3)}.",
        {"nobody": str(len(unowned)), "twice": str(len(twice)), "causes": listed(causes)},
        first_ms=min(row["from_ms"] for row, _ in spans),
        last_ms=max(row["to_ms"] or case.run.end_ms for row, _ in spans),
    )


def _covers(duplicate: DuplicateId, row: Row) -> bool:
    """True if the row lies in a time when an id stood twice: that has its own finding."""
    return duplicate.first_ms <= row["from_ms"] and (
        duplicate.last_ms is None or row["from_ms"] < duplicate.last_ms
    )


def _short(case: GroupCase, row: Row) -> int:
    """How long a queue was not held just once while the group was online; 0: it does not count."""
    if row["client_id"] is not None and row["holders"] < 2:
        return 0
    if is_persistent(case, span_of(row)):
        return 0
    until = case.run.end_ms if row["to_ms"] is None else row["to_ms"]
    span_ms = int(until - row["from_ms"])
    return span_ms - offline_ms(case, row["from_ms"], until)


RULE = Rule(
    "TRANSIENT_OWNERSHIP",
    INFO,
    "While a join, a loss or a change of topics was being settled, queues had no owner or were "
    "held twice. That is how rebalancing works; nothing is lost.",
    "ownership, epochs, diffs",
    "Nothing. If it happens often, look at what makes members come and go.",
    find,
    by_owners=True,
)
