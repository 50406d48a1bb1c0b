"""Queues of a CLUSTERING group that two members hold."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from rebalance_core.audit.dumps import by_topic, fresh, queue_of, seen_ms
from rebalance_core.audit.evidence import newest_dump_ms
from rebalance_core.audit.group_snapshot import (
    Finding,
    GroupSnapshot,
    Rule,
    listed,
    plural,
    queue_names,
)
from rebalance_core.audit.known_shares import strategy_is_known
from rebalance_core.audit.stretches import (
    end_ms,
    is_long,
    is_persistent,
    mixed_spans,
    span_of,
)
from rebalance_core.audit.subjects import MEMBERS
from rebalance_core.audit.subscriptions import is_broadcasting, suspended_clients
from rebalance_core.audit.topic_readers import is_shared
from rebalance_core.model.queue import MessageQueue
from rebalance_core.model.times import MINUTE_MS
from rebalance_core.model.verdicts import ERROR

if TYPE_CHECKING:
    from rebalance_core.contracts.row_parts import Holding
    from rebalance_core.contracts.rows import ObservedOwnershipRow, OwnershipRow


TOGETHER_MS = MINUTE_MS
"""Two observations of a queue this close together count as one."""


def find_double_owner(group: GroupSnapshot) -> Iterator[Finding]:
    """Yield one finding per topic whose queues two members hold (rocketmq.md §8).

    The evidence is the ledger or, failing that, dumps.
    """
    names = {row["strategy"].partition("(")[0] for row in group.tables["memberships"]}
    if is_broadcasting(group) or names == {"CONFIG"}:
        return
    predicted = by_topic(_twice(group))
    for topic, rows in predicted.items():
        yield _finding(topic, rows, "")
    for topic, held in by_topic(_seen(group)).items():
        if topic not in predicted:
            shown_ms = max(row["from_ms"] for row in held)
            yield replace(_finding(topic, held, "as dumps show, "), seen_ms=shown_ms)


def _twice(group: GroupSnapshot) -> list[OwnershipRow]:
    """Return lasting holdings of queues that several processes hold, without suspended processes.

    None if the members' allocation is unknown.
    """
    if not strategy_is_known(group):
        return []
    idle = suspended_clients(group)
    held: dict[MessageQueue, list[OwnershipRow]] = {}
    for row in group.tables["ownership"]:
        if row["client_id"] is not None and row["client_id"] not in idle:
            held.setdefault(queue_of(row), []).append(row)
    doubled: list[OwnershipRow] = []
    for rows in held.values():
        if len(rows) == 1 and rows[0]["holders"] < 2:
            continue
        for row in rows:
            if row["holders"] > 1 and is_persistent(group, span_of(row)):
                doubled.append(row)
        for span in mixed_spans(rows, lambda row: row["client_id"]):
            if is_persistent(group, span):
                doubled += [
                    {**row, "to_ms": span.last_ms}
                    for row in rows
                    if row["from_ms"] <= span.first_ms < end_ms(group, row)
                ]
    open_now = [row for row in doubled if row["to_ms"] is None]
    return open_now or [row for row in doubled if is_long(group, span_of(row))]


def _seen(group: GroupSnapshot) -> list[Holding]:
    """Return queues that dumps show with two clients while nothing was changing.

    The holding is over once one of them left before the newest dump.
    """
    idle = suspended_clients(group)
    memberships = sorted(group.tables["memberships"], key=lambda row: end_ms(group, row))
    ends = {row["client_id"]: row["to_ms"] for row in memberships}
    newest_ms = newest_dump_ms(group) or 0
    observations: dict[MessageQueue, list[ObservedOwnershipRow]] = {}
    for row in fresh(group, group.tables["observed_ownership"], seen_ms):
        if row["client_id"] not in idle and not is_shared(group, row["topic"], row["observed_ms"]):
            observations.setdefault(queue_of(row), []).append(row)
    doubled: list[Holding] = []
    for rows in observations.values():
        rows.sort(key=lambda row: row["observed_ms"])
        for place, first in enumerate(rows):
            for second in _together(rows, place):
                if first["client_id"] != second["client_id"] and _at_rest(group, first, second):
                    went = [ends.get(row["client_id"]) for row in (first, second)]
                    over = min((ms for ms in went if ms and ms <= newest_ms), default=None)
                    doubled += [_as_held(row, over) for row in (first, second)]
    return [row for row in doubled if row["to_ms"] is None] or doubled


def _together(rows: list[ObservedOwnershipRow], place: int) -> Iterator[ObservedOwnershipRow]:
    """Return the observations that, together with this one, show two owners rather than a
    hand-over.

    Those of the same dump, and those after which the client of this observation is seen again.
    """
    first = rows[place]
    close = [r for r in rows[place + 1 :] if r["observed_ms"] - first["observed_ms"] <= TOGETHER_MS]
    again = [n for n, row in enumerate(close) if row["client_id"] == first["client_id"]]
    for number, row in enumerate(close):
        if row["observed_ms"] == first["observed_ms"] or (again and number < again[-1]):
            yield row


def _at_rest(
    group: GroupSnapshot, first: ObservedOwnershipRow, second: ObservedOwnershipRow
) -> bool:
    """Return whether no change is under way from the first observation to the second."""
    before, after = group.epoch_at(first["observed_ms"]), group.epoch_at(second["observed_ms"])
    if before is None or after is None or before["epoch"] != after["epoch"]:
        return False
    return bool(first["observed_ms"] > group.settled_by[before["epoch"]])


def _as_held(seen: ObservedOwnershipRow, to_ms: int | None) -> Holding:
    return {
        "topic": seen["topic"],
        "broker_name": seen["broker_name"],
        "queue_id": seen["queue_id"],
        "client_id": seen["client_id"],
        "holders": 1,
        "from_ms": seen["observed_ms"],
        "to_ms": to_ms,
    }


def _finding(topic: str, rows: Sequence[Holding | OwnershipRow], seen: str) -> Finding:
    who: dict[MessageQueue, set[str]] = {}
    for row in rows:
        times = f" ({row['holders']} processes)" if row["holders"] > 1 else ""
        who.setdefault(queue_of(row), set()).add(f"{row['client_id']}{times}")
    queues = queue_names((broker, number) for _, broker, number in who)
    clients = sorted(set[str]().union(*who.values()))
    ends = [row["to_ms"] for row in rows if row["to_ms"] is not None]
    over = max(ends) if len(ends) == len(rows) else None
    alone = next(iter(who)) if len(who) == 1 else None
    return Finding(
        f"{plural(len(who), 'queue')} of {topic} ({queues}) have several holders: {seen}by "
        f"{listed(clients, 4)}.",
        {"queues": queues, "clients": listed(clients)},
        topic=topic,
        broker_name=alone[1] if alone else None,
        queue_id=alone[2] if alone else None,
        first_ms=min(row["from_ms"] for row in rows),
        last_ms=over,
    )


DOUBLE_OWNER = Rule(
    "DOUBLE_OWNER",
    ERROR,
    "Two members of a CLUSTERING group hold one queue for longer than a rebalance takes. Both "
    "read the same messages, and their commits overwrite each other.",
    "ownership, observed_ownership",
    "Look for duplicate client ids, mixed strategies or differing member lists (the group's other "
    "findings); restart the member that should not hold the queue.",
    find_double_owner,
    reads=(MEMBERS,),
    state=True,
)
