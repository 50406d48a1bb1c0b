"""MEMBER_SUSPENDED: a member is suspended and keeps its share."""

from __future__ import annotations

from collections.abc import Iterator

from rebalance_core.audit.case import (
    Finding,
    GroupCase,
    Row,
    Rule,
    lasting,
    listed,
    plural,
    queue_names,
)
from rebalance_core.audit.dumps import queue_of
from rebalance_core.audit.orphans import there_in
from rebalance_core.model.times import MINUTE_MS, utc
from rebalance_core.model.verdicts import INFO, WARNING

SHORT_MS = MINUTE_MS
"""A pause shorter than this delays messages and harms no more."""


def find(case: GroupCase) -> Iterator[Finding]:
    """One finding for each stretch in which one process is suspended (rocketmq.md §11 no. 19)."""
    for first, last in _stretches(case):
        until = case.run.end_ms if last["to_ms"] is None else last["to_ms"]
        if until < case.run.start_ms:
            continue
        yield _finding(case, first, last, until - first["from_ms"])


def _stretches(case: GroupCase) -> Iterator[tuple[Row, Row]]:
    """First and last row of each unbroken suspension."""
    rows = [row for row in case.rows("memberships") if row["suspended"]]
    rows.sort(key=lambda row: (row["client_id"], row["channel_id"] or "", row["from_epoch"]))
    first = last = None
    for row in rows:
        same = last is not None and (
            (last["client_id"], last["channel_id"]) == (row["client_id"], row["channel_id"])
            and last["to_epoch"] == row["from_epoch"]
        )
        if not same and first is not None and last is not None:
            yield first, last
        first, last = (first if same else row), row
    if first is not None and last is not None:
        yield first, last


def _finding(case: GroupCase, first: Row, last: Row, span_ms: int) -> Finding:
    epoch = last["to_epoch"] - 1 if last["to_epoch"] is not None else None
    there = there_in([*case.rows("ownership"), *case.rows("pop_reach")], epoch)
    kept = {queue_of(row) for row in there if row["client_id"] == last["client_id"]}
    others = {
        row["client_id"]
        for row in there
        if queue_of(row) in kept and row["client_id"] not in (None, last["client_id"])
    }
    topics = sorted({topic for topic, _, _ in kept})
    names = [
        f"{topic} {queue_names((broker, number) for t, broker, number in kept if t == topic)}"
        for topic in topics
    ]
    still = last["to_ms"] is None
    until = "" if still else f", until {utc(last['to_ms'])}"
    also = f"; also held by {listed(sorted(others), 3)}" if others else ""
    return Finding(
        f"{last['client_id']} is suspended since {utc(first['from_ms'])}"
        f"{until} ({lasting(span_ms)}): it keeps "
        f"{plural(len(kept), 'queue')} and reads nothing ({'; '.join(names)}){also}.",
        {"queues": "; ".join(names), "also_held_by": listed(sorted(others))},
        severity=WARNING if still or span_ms >= SHORT_MS else INFO,
        client_id=last["client_id"],
        first_ms=first["from_ms"],
        last_ms=last["to_ms"],
    )


RULE = Rule(
    "MEMBER_SUSPENDED",
    WARNING,
    "A member called suspend(). It reads nothing, keeps the queues it holds and stays in everybody "
    "else's computation, so its share waits until resume().",
    "memberships (suspended), ownership",
    "Call resume() in the client named, or stop it so that the others take its queues. If it was "
    "suspended on purpose, accept this finding.",
    find,
)
