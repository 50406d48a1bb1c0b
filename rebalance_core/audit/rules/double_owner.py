"""DOUBLE_OWNER: a queue of a CLUSTERING group that two members hold."""

from __future__ import annotations

from collections.abc import Iterator

from rebalance_core.audit.case import Finding, GroupCase, Row, Rule, listed, plural, queue_names
from rebalance_core.audit.dumps import by_topic, fresh, queue_of
from rebalance_core.audit.orphans import (
    is_broadcasting,
    is_long,
    is_persistent,
    span_of,
    spans_where,
    suspended_clients,
)
from rebalance_core.audit.subscriptions import is_shared, strategy_is_known
from rebalance_core.model.queue import MessageQueue
from rebalance_core.model.times import MINUTE_MS, utc
from rebalance_core.model.verdicts import ERROR, WARNING

TOGETHER_MS = MINUTE_MS
"""Two observations of a queue so close together count as one."""


def find(case: GroupCase) -> Iterator[Finding]:
    """One finding a topic: held twice by the ledger, else as dumps show it
    (rocketmq.md §11 no. 9).
    """
    names = {row["strategy"].partition("(")[0] for row in case.rows("memberships")}
    if is_broadcasting(case) or names == {"CONFIG"}:
        return
    predicted = by_topic(_twice(case))
    for topic, rows in predicted.items():
        yield _finding(topic, rows, "")
    for topic, rows in by_topic(_seen(case)).items():
        if topic not in predicted:
            yield _finding(topic, rows, "as dumps show, ")


def _twice(case: GroupCase) -> list[Row]:
    """Persistent holdings of queues that several processes hold, suspended ones not counted.

    None where it is not known how the members divide.
    """
    if not strategy_is_known(case):
        return []
    idle = suspended_clients(case)
    held: dict[MessageQueue, list[Row]] = {}
    for row in case.rows("ownership"):
        if row["client_id"] is not None and row["client_id"] not in idle:
            held.setdefault(queue_of(row), []).append(row)
    doubled = []
    for rows in held.values():
        if len(rows) == 1 and rows[0]["holders"] < 2:
            continue
        for row in rows:
            if row["holders"] > 1 and is_persistent(case, span_of(row)):
                doubled.append(row)
        for span in spans_where(rows, lambda row: row["client_id"], lambda there: len(there) > 1):
            if is_persistent(case, span):
                doubled += [
                    {**row, "to_ms": span.last_ms}
                    for row in rows
                    if row["from_ms"] <= span.first_ms < _end(case, row)
                ]
    open_now = [row for row in doubled if row["to_ms"] is None]
    return open_now or [row for row in doubled if is_long(case, span_of(row))]


def _end(case: GroupCase, row: Row) -> int:
    return case.run.end_ms + 1 if row["to_ms"] is None else int(row["to_ms"])


def _seen(case: GroupCase) -> list[Row]:
    """Queues that dumps show with two clients at a time when nothing was changing."""
    idle = suspended_clients(case)
    observations: dict[MessageQueue, list[Row]] = {}
    for row in fresh(case, case.rows("observed_ownership"), "observed_ms"):
        if row["client_id"] not in idle and not is_shared(case, row["topic"], row["observed_ms"]):
            observations.setdefault(queue_of(row), []).append(row)
    doubled = []
    for rows in observations.values():
        rows.sort(key=lambda row: row["observed_ms"])
        for place, one in enumerate(rows):
            for other in _together(rows, place):
                if one["client_id"] != other["client_id"] and _at_rest(case, one, other):
                    doubled += [_as_held(one), _as_held(other)]
    return doubled


def _together(rows: list[Row], place: int) -> Iterator[Row]:
    """Observations that together with this one show two owners, not a hand-over.

    Those of the same dump, and those after which this one's client is seen again.
    """
    one = rows[place]
    close = [r for r in rows[place + 1 :] if r["observed_ms"] - one["observed_ms"] <= TOGETHER_MS]
    again = [n for n, row in enumerate(close) if row["client_id"] == one["client_id"]]
    for number, row in enumerate(close):
        if row["observed_ms"] == one["observed_ms"] or (again and number < again[-1]):
            yield row


def _at_rest(case: GroupCase, one: Row, other: Row) -> bool:
    """No change is under way from the first observation to the second."""
    before, after = case.epoch_at(one["observed_ms"]), case.epoch_at(other["observed_ms"])
    if before is None or after is None or before["epoch"] != after["epoch"]:
        return False
    return bool(one["observed_ms"] > case.settled_by[before["epoch"]])


def _as_held(observation: Row) -> Row:
    return {**observation, "holders": 1, "from_ms": observation["observed_ms"], "to_ms": None}


def _finding(topic: str, rows: list[Row], seen: str) -> Finding:
    who: dict[MessageQueue, set[str]] = {}
    for row in rows:
        times = f" ({row['holders']} processes)" if row["holders"] > 1 else ""
        who.setdefault(queue_of(row), set()).add(f"{row['client_id']}{times}")
    queues = queue_names((broker, number) for _, broker, number in who)
    clients = sorted(set[str]().union(*who.values()))
    ends = [row["to_ms"] for row in rows]
    over = None if None in ends else max(ends)
    one = next(iter(who)) if len(who) == 1 else None
    until = "" if over is None else f" until {utc(over)}"
    return Finding(
        f"{plural(len(who), 'queue')} of {topic} ({queues}) held more than once{until}: "
        f"{seen}by {listed(clients, 4)}.",
        {"queues": queues, "clients": listed(clients)},
        severity=ERROR if over is None else WARNING,
        topic=topic,
        broker_name=one[1] if one else None,
        queue_id=one[2] if one else None,
        first_ms=min(row["from_ms"] for row in rows),
        last_ms=over,
    )


RULE = Rule(
    "DOUBLE_OWNER",
    ERROR,
    "Two members of a CLUSTERING group hold one queue for longer than a rebalance takes. Both read "
    "the same messages, and their commits overwrite each other.",
    "ownership (holders), observed_ownership",
    "Look for duplicate client ids, mixed strategies or member lists that differ between brokers "
    "(other findings of the group); restart the member that should not hold the queue.",
    find,
)
