"""Groups that change all the time, as input tables: what `rebalance propagate` is timed on.

No randomness: group number n always is the same. Each is in a cluster of its own, so that only its
own changes reach it.
"""

import json
from collections.abc import Iterator
from itertools import cycle, islice
from pathlib import Path
from typing import Any

from rebalance_core.model.events import (
    BROKER_DOWN,
    BROKER_UP,
    CONSUMER_JOIN,
    CONSUMER_LEAVE,
    OBSERVED,
    TOPIC_CONFIG,
)

Row = dict[str, Any]

START_MS = 1_795_000_000_123
GAP_MS, RESTART_MS = 300_000, 10_000
"""Between two changes; between the end and the new start of a member that is restarted."""
MEMBERS = (2, 3, 5, 8, 12)
BROKERS = ("broker-a", "broker-b", "broker-c")
QUEUES = 8
"""Of the topic on each broker."""
VERSIONS = ("4.9.7", "5.1.4", "5.3.2", "5.5.0")
ORDERLY = 21
"""One in so many groups has an orderly listener; they have all sizes and versions."""
KINDS = ("join", "restart", "queues", "broker", "leave")


def write_changing_groups(folder: Path, groups: int, changes: int) -> None:
    """Write ``cluster_events.jsonl`` and ``consumer_groups.jsonl``.

    Args:
        folder: Gets the files.
        groups: How many.
        changes: Of each: joins, leaves, restarts (two changes), new queues, a broker that ends and
            comes back (two changes).
    """
    folder.mkdir(parents=True)
    settings = map(_settings, range(groups))
    _write(folder / "consumer_groups.jsonl", settings)
    events = (row for group in range(groups) for row in _events(group, changes))
    _write(folder / "cluster_events.jsonl", events)


def _settings(group: int) -> Row:
    version = VERSIONS[group % len(VERSIONS)]
    return {
        "cluster": f"cluster-{group:04d}",
        "consumer_group": f"group-{group:04d}",
        "subscriptions": ["orders"],
        "ordered": group % ORDERLY == ORDERLY // 2,
        "client_version": version,
        "broker_version": version,
    }


def _events(group: int, changes: int) -> Iterator[Row]:
    members = MEMBERS[group % len(MEMBERS)]
    opening = [_topic(broker, QUEUES) for broker in BROKERS]
    opening += [_consumer(CONSUMER_JOIN, member, 0) for member in range(members)]
    rows = [(START_MS, row | {"detail": OBSERVED}) for row in opening]
    rows += islice(_changes(group, members), changes)
    for sequence, (event_ms, row) in enumerate(rows):
        named = {"cluster": f"cluster-{group:04d}", "event_ms": event_ms, "sequence": sequence}
        if "client_id" in row:
            named["consumer_group"] = f"group-{group:04d}"
        yield named | row


def _changes(group: int, members: int) -> Iterator[tuple[int, Row]]:
    """When, and what; without end."""
    at_ms, queues, lifetimes = START_MS, QUEUES, [0] * members
    turns = cycle(KINDS[group % len(KINDS) :] + KINDS[: group % len(KINDS)])
    guest, here = members, list[int]()
    for turn, kind in enumerate(turns):
        at_ms += GAP_MS
        member = turn % members
        if kind == "join":
            here.append(guest)
            yield at_ms, _consumer(CONSUMER_JOIN, guest, 0)
            guest += 1
        elif kind == "leave" and here:
            yield at_ms, _consumer(CONSUMER_LEAVE, here.pop(0), 0)
        elif kind == "restart":
            yield at_ms, _consumer(CONSUMER_LEAVE, member, lifetimes[member])
            lifetimes[member] += 1
            yield at_ms + RESTART_MS, _consumer(CONSUMER_JOIN, member, lifetimes[member])
        elif kind == "queues":
            queues += 1
            yield at_ms, _topic(BROKERS[0], queues)
        elif kind == "broker":
            yield at_ms, {"event_type": BROKER_DOWN, "broker_name": BROKERS[1]}
            at_ms += GAP_MS
            yield at_ms, {"event_type": BROKER_UP, "broker_name": BROKERS[1]}


def _consumer(kind: str, member: int, lifetime: int) -> Row:
    address = f"10.0.{member // 250}.{member % 250}"
    return {"event_type": kind, "client_id": f"{address}@{lifetime}", "channel_id": str(lifetime)}


def _topic(broker: str, queues: int) -> Row:
    return {
        "event_type": TOPIC_CONFIG, "topic": "orders", "broker_name": broker,
        "read_queue_nums": queues, "write_queue_nums": queues, "perm": 6,
    }  # fmt: skip


def _write(path: Path, rows: Iterator[Row]) -> None:
    with path.open("w") as opened:
        for row in rows:
            opened.write(json.dumps(row) + "\n")
