"""Timeline and balance of a group, from its rows of the ledger."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import inf
from typing import Any

from rebalance_core.model.group_settings import BROADCASTING
from rebalance_core.model.ordering import sort_client_ids
from rebalance_core.model.queue import MessageQueue, queue_sort_key
from rebalance_core.report.audit_report import (
    Cause,
    GroupBalance,
    GroupTimeline,
    QueueHistory,
    Stretch,
)

ROWS_OF_A_TIMELINE = 50_000
"""Of each group and table: the newest."""
TABLES_OF_GROUPS = {
    "ownership": "from_ms",
    "epochs": "from_ms",
    "consumer_load": "from_ms",
    "group_metrics": "epoch",
    "memberships": "from_ms",
    "pop_reach": "from_ms",
}
"""Tables of the ledger that the page shows of some groups, each with the column of its time."""

SEVERAL = "several members"
"""Who holds a shared queue, in a picture."""

Row = Mapping[str, Any]
Rows = Sequence[Row]
GroupName = tuple[str, str]


def group_timelines(
    worst: Iterable[GroupName], tables: Mapping[str, Rows]
) -> tuple[GroupTimeline, ...]:
    """Who owned the queues of these groups; none of a group whose members read every queue.

    Args:
        worst: (cluster, group) of those wanted.
        tables: their rows of `TABLES_OF_GROUPS`.
    """
    ownership, epochs, memberships, reach = (
        _by_group(tables.get(name, ()))
        for name in ("ownership", "epochs", "memberships", "pop_reach")
    )
    return tuple(
        _timeline(
            name,
            [*ownership.get(name, []), *shared_holdings(reach.get(name, []))],
            epochs.get(name, []),
        )
        for name in worst
        if not _broadcasting(memberships.get(name, []))
    )


def group_balances(
    worst: Iterable[GroupName], tables: Mapping[str, Rows]
) -> tuple[GroupBalance, ...]:
    """How even these groups are; arguments as of `group_timelines`."""
    loads, metrics = (_by_group(tables[name]) for name in ("consumer_load", "group_metrics"))
    return tuple(_balance(name, loads.get(name, []), metrics.get(name, [])) for name in worst)


def _by_group(rows: Iterable[Row]) -> dict[GroupName, list[Row]]:
    groups: dict[GroupName, list[Row]] = {}
    for row in rows:
        groups.setdefault((row["cluster"], row["consumer_group"]), []).append(row)
    return groups


def _broadcasting(memberships: Rows) -> bool:
    """True if every member reads every queue: nothing to draw."""
    return any(row["message_model"] == BROADCASTING for row in memberships)


def shared_holdings(pop_reach: Rows) -> list[Row]:
    """Shared queues as rows of ownership: of the client that alone reaches one, else of `SEVERAL`.

    Args:
        pop_reach: rows of one group.
    """
    by_queue: dict[tuple[str, str, int], list[Row]] = {}
    for row in sorted(pop_reach, key=lambda row: row["from_ms"]):
        by_queue.setdefault((row["topic"], row["broker_name"], row["queue_id"]), []).append(row)
    return [
        {"topic": topic, "broker_name": broker, "queue_id": queue_id, "holders": 1, **stretch}
        for (topic, broker, queue_id), rows in by_queue.items()
        for stretch in _merged(rows)
    ]


def _merged(rows: Rows) -> Iterator[Row]:
    """The stretches, in order, that rows in order of time cover together."""
    together: list[Row] = []
    until: float = -inf
    for row in rows:
        if together and row["from_ms"] > until:
            yield _stretch(together, until)
            together, until = [], -inf
        together.append(row)
        until = max(until, inf if row["to_ms"] is None else row["to_ms"])
    if together:
        yield _stretch(together, until)


def _stretch(together: Rows, until: float) -> Row:
    clients = {row["client_id"] for row in together}
    return {
        "client_id": min(clients) if len(clients) == 1 else SEVERAL,
        "from_ms": together[0]["from_ms"],
        "to_ms": None if until == inf else int(until),
    }


def _timeline(name: GroupName, ownership: Rows, epochs: Rows) -> GroupTimeline:
    queues: dict[MessageQueue, list[Stretch]] = {}
    for row in sorted(ownership, key=lambda row: (row["from_ms"], row["client_id"] or "")):
        queue = MessageQueue(row["topic"], row["broker_name"], row["queue_id"])
        stretch = Stretch(row["from_ms"], row["to_ms"], row["client_id"], row["holders"])
        queues.setdefault(queue, []).append(stretch)
    in_order = sorted(epochs, key=lambda row: (row["from_ms"], row["epoch"]))
    return GroupTimeline(
        name[1],
        tuple(
            QueueHistory(*queue, tuple(queues[queue]))
            for queue in sorted(queues, key=queue_sort_key)
        ),
        tuple(Cause(row["from_ms"], ", ".join(row["causes"])) for row in in_order),
        name[0],
    )


def _balance(name: GroupName, loads: Rows, metrics: Rows) -> GroupBalance:
    now = {
        row["client_id"]: row["queues"] + (row["shared_queues"] or 0)
        for row in loads
        if row["to_ms"] is None
    }
    clients = sort_client_ids(now)
    whole = sorted((row for row in metrics if row["topic"] is None), key=lambda row: row["epoch"])
    last: Row = whole[-1] if whole else {"peak_ratio": None, "idle_members": 0}
    return GroupBalance(
        name[1],
        tuple(clients),
        tuple(now[client] for client in clients),
        tuple(row["moved"] for row in whole),
        last["peak_ratio"],
        last["idle_members"],
        name[0],
    )
