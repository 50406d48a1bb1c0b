"""Messages left unread in the queues that a history takes away from its groups."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from rebalance_core.engine.fan_out import GROUP, joining
from rebalance_core.kernels.table_columns import COMMITS, EVENTS, GROUPS, OFFSETS
from rebalance_core.model import events
from rebalance_core.model.queue import is_retry_topic
from rebalance_core.planning.group_load import FALLS_BEHIND, READ_APART_MS
from rebalance_core.planning.sweep.member_settings import Group, broadcasting_groups
from rebalance_core.protocol.routes import DEFAULT_PERM, PERM_READ

PERM_WRITE = 2
"""PermName.PERM_WRITE."""

_QUEUE = ("cluster", "topic", "broker_name", "queue_id")
_LOST = pa.schema(
    [
        *((name, pa.string()) for name in _QUEUE[:3]),
        ("queue_id", pa.int32()),
        ("drained_ms", pa.int64()),
    ]
)


@dataclass(slots=True)
class _Place:
    """A topic on a broker: the number of readable and writable queues, step by step."""

    steps: list[tuple[int, int, int]] = field(default_factory=list)
    """(epoch ms, readable, writable)."""

    def set(self, at_ms: int, readable: int, writable: int) -> None:
        """Add a step unless nothing changes."""
        if not self.steps or self.steps[-1][1:] != (readable, writable):
            self.steps.append((at_ms, readable, writable))

    def readable_before(self, at_ms: int | None) -> int:
        """Return the number of queues readable at the last instant before a time, or the maximum
        ever if it is None.
        """
        if at_ms is None:
            return max((readable for _, readable, _ in self.steps), default=0)
        earlier = [readable for ms, readable, _ in self.steps if ms < at_ms]
        return earlier[-1] if earlier else 0

    def drained_ms(self, queue_id: int) -> int:
        """Return how long a lost queue remained readable between the last write and its loss."""
        lost_ms = off_ms = None
        for ms, readable, writable in self.steps:
            if readable > queue_id:
                lost_ms = None
                if writable > queue_id:
                    off_ms = None
                elif off_ms is None:
                    off_ms = ms
            elif lost_ms is None:
                lost_ms = ms
        return 0 if lost_ms is None or off_ms is None else lost_ms - off_ms


class _ClusterRoutes:
    """The topics of a cluster on its brokers, event by event."""

    def __init__(self) -> None:
        self.places: dict[tuple[str, str], _Place] = {}
        self._configs: dict[tuple[str, str], tuple[int, int]] = {}
        self._away: set[str] = set()
        self._refused: set[str] = set()

    def apply(self, row: Mapping[str, Any]) -> None:
        """Apply an event about a broker, master or topic."""
        topic, broker, kind = row["topic"], row["broker_name"], row["event_type"]
        if kind == events.TOPIC_CONFIG:
            perm = DEFAULT_PERM if row["perm"] is None else row["perm"]
            read, write = row["read_queue_nums"] or 0, row["write_queue_nums"]
            write = read if write is None else write
            self._configs[topic, broker] = (
                read if perm & PERM_READ else 0,
                write if perm & PERM_WRITE else 0,
            )
            changed: Iterable[tuple[str, str]] = [(topic, broker)]
        elif kind == events.TOPIC_DELETED:
            changed = [key for key in self._configs if key[0] == topic and broker in (None, key[1])]
            for key in changed:
                self._configs[key] = (0, 0)
        else:
            if kind == events.MASTER_DOWN:
                if row["detail"] == events.REFUSED:
                    self._refused.add(broker)
            elif kind == events.MASTER_UP:
                self._refused.discard(broker)
            elif kind == events.BROKER_DOWN:
                self._away.add(broker)
            elif kind == events.BROKER_UP:
                self._away.discard(broker)
                self._refused.discard(broker)
            changed = [key for key in self._configs if key[1] == broker]
        for key in changed:
            gone = key[1] in self._away or key[1] in self._refused
            counts = (0, 0) if gone else self._configs[key]
            self.places.setdefault(key, _Place()).set(row["event_ms"], *counts)


_SHARED_EVENTS = (*events.BROKER_EVENTS, *events.MASTER_EVENTS, *events.TOPIC_EVENTS)
_ROUTE_COLUMNS = (
    "cluster",
    "event_ms",
    "sequence",
    "event_type",
    "topic",
    "broker_name",
    "read_queue_nums",
    "write_queue_nums",
    "perm",
    "detail",
)


def lost_queues(event_rows: pa.Table, first_ms: Mapping[str, int]) -> pa.Table:
    """Return the queues that are readable before the first edit but not at the end.

    Retry topics are left out. A queue whose master is lost and whose slaves refuse reads is not
    readable.

    Args:
        event_rows: cluster_events of a history.
        first_ms: By cluster, the first edit; in a cluster without one, every queue that was ever
            readable counts.

    Returns:
        cluster, topic, broker_name, queue_id, and ``drained_ms``: how long it was still read after
        the last write.
    """
    wanted = pc.is_in(event_rows["event_type"], value_set=pa.array(_SHARED_EVENTS))
    rows = event_rows.filter(wanted).select(_ROUTE_COLUMNS)
    rows = rows.sort_by([(name, "ascending") for name in _ROUTE_COLUMNS[:3]])
    clusters: dict[str, _ClusterRoutes] = {}
    for row in rows.to_pylist():
        clusters.setdefault(row["cluster"], _ClusterRoutes()).apply(row)
    lost = [
        dict(zip(_LOST.names, (cluster, *key, queue_id, place.drained_ms(queue_id)), strict=True))
        for cluster, routes in clusters.items()
        for key, place in routes.places.items()
        if not is_retry_topic(key[0])
        for queue_id in range(place.steps[-1][1], place.readable_before(first_ms.get(cluster)))
    ]
    return pa.Table.from_pylist(lost, _LOST)


class WaitingMessages:
    """The messages waiting in each queue for the groups of a task, from the last observations.

    Args:
        tables: The recorded input tables of whole groups.
    """

    def __init__(self, tables: Mapping[str, pa.Table]) -> None:
        self._tables = tables

    def left_unread(self, lost: pa.Table) -> pa.Table:
        """Return the messages that groups leave unread in lost queues, by group; null: unknown.

        The messages that a queue holds at the last observation (an end and a commit within a
        minute) wait there. A group that keeps up continues to read at its pace while no messages
        arrive; a group that falls behind makes no further progress. Groups that lose no queue are
        left out.

        Args:
            lost: As in `lost_queues`.
        """
        sums: dict[Group, int | None] = {}
        if lost.num_rows:
            waiting = self._waiting(lost)
            by_topic: dict[tuple[str, str], list[tuple[str, int]]] = {}
            for row in lost.to_pylist():
                topic = row["cluster"], row["topic"]
                by_topic.setdefault(topic, []).append((row["broker_name"], row["queue_id"]))
            for group, topics in self._subscribed.items():
                queues = [
                    (topic, *queue)
                    for topic in topics
                    for queue in by_topic.get((group[0], topic), ())
                ]
                if queues:
                    known = waiting.get(group, {})
                    left = [known.get(queue) for queue in queues]
                    total = sum(number for number in left if number is not None)
                    unknown = None in left or group in self._broadcasting
                    sums[group] = None if unknown else total
        schema = pa.schema([*((name, pa.string()) for name in GROUP), ("left_unread", pa.int64())])
        rows = [
            dict(zip(schema.names, (*group, left), strict=True)) for group, left in sums.items()
        ]
        return pa.Table.from_pylist(rows, schema)

    def _waiting(self, lost: pa.Table) -> dict[Group, dict[tuple[str, str, int], int]]:
        """Return the messages waiting in lost queues, by group and queue, if observations show
        them.
        """
        if OFFSETS not in self._tables or COMMITS not in self._tables:
            return {}
        keys = lost.select(_QUEUE)
        drained = {
            tuple(row[name] for name in _QUEUE): row["drained_ms"] for row in lost.to_pylist()
        }
        ends = _ends_of(joining(self._tables[OFFSETS], keys), "max_offset", _QUEUE)
        commits = joining(self._tables[COMMITS], keys)
        commits = commits.filter(pc.greater_equal(commits["committed_offset"], 0))
        by_queue = {tuple(row[name] for name in _QUEUE): row for row in ends.to_pylist()}
        found: dict[Group, dict[tuple[str, str, int], int]] = {}
        of_group = ("cluster", "consumer_group", *_QUEUE[1:])
        for commit in _ends_of(commits, "committed_offset", of_group).to_pylist():
            queue = tuple(commit[name] for name in _QUEUE)
            end = by_queue.get(queue)
            if end is None or abs(end["last_ms"] - commit["last_ms"]) > READ_APART_MS:
                continue
            waits = max(0, end["last"] - max(commit["last"], end["least"]))
            pace = _pace(commit)
            if pace is not None and pace >= FALLS_BEHIND * (_pace(end) or 0.0):
                waits = max(0, round(waits - pace * drained[queue]))
            group = commit["cluster"], commit["consumer_group"]
            found.setdefault(group, {})[queue[1], queue[2], queue[3]] = waits
        return found

    @cached_property
    def _subscribed(self) -> dict[Group, set[str]]:
        """Return, by group, the topics of the members at the end or, if there are none, of all
        members that it ever had.
        """
        there: dict[Group, dict[tuple[str, str | None], set[str] | None]] = {}
        ever: dict[Group, set[str]] = {}
        settings = {
            (row["cluster"], row["consumer_group"]): row["subscriptions"] or ()
            for row in (self._tables[GROUPS].to_pylist() if GROUPS in self._tables else ())
        }
        for row in _in_order(self._tables[EVENTS]):
            group, process = (
                (row["cluster"], row["consumer_group"]),
                (row["client_id"], row["channel_id"]),
            )
            members, topics = there.setdefault(group, {}), ever.setdefault(group, set())
            kind = row["event_type"]
            if kind == events.CONSUMER_JOIN:
                stated = row["subscriptions"]
                named = set(settings.get(group, ()) if stated is None else stated)
                members[process] = named
                topics |= named
            elif kind in (events.CONSUMER_LEAVE, events.CONSUMER_LOST):
                if row["broker_name"] is None:
                    members.pop(process, None)
            elif process in members:
                its = members[process] or set()
                names = row["subscriptions"] or filter(None, [row["topic"]])
                its = its.union(names) if kind == events.SUBSCRIBE else its.difference(names)
                members[process] = its
                topics |= its
        return {
            group: set().union(*(its or () for its in members.values())) or ever[group]
            for group, members in there.items()
        }

    @cached_property
    def _broadcasting(self) -> Collection[Group]:
        return broadcasting_groups(self._tables)


_MEMBER_EVENTS = (
    events.CONSUMER_JOIN,
    events.CONSUMER_LEAVE,
    events.CONSUMER_LOST,
    events.SUBSCRIBE,
    events.UNSUBSCRIBE,
)
_MEMBER_COLUMNS = (
    "event_ms",
    "sequence",
    "event_type",
    "cluster",
    "consumer_group",
    "client_id",
    "channel_id",
    "broker_name",
    "topic",
    "subscriptions",
)


def _in_order(event_rows: pa.Table) -> Iterator[dict[str, Any]]:
    wanted = pc.is_in(event_rows["event_type"], value_set=pa.array(_MEMBER_EVENTS))
    rows = event_rows.filter(wanted).select(_MEMBER_COLUMNS)
    yield from rows.sort_by([(name, "ascending") for name in _MEMBER_COLUMNS[:2]]).to_pylist()


def _ends_of(rows: pa.Table, value: str, keys: Iterable[str]) -> pa.Table:
    """Return the first and last look for each key; ``least`` is the last min_offset, or 0."""
    least = rows["min_offset"] if "min_offset" in rows.column_names else pa.repeat(0, rows.num_rows)
    table = rows.select([*keys, "observed_ms", value]).append_column("least", least)
    grouped = table.sort_by("observed_ms").group_by(list(keys), use_threads=False)
    looks = grouped.aggregate(
        [
            ("observed_ms", "first"),
            ("observed_ms", "last"),
            (value, "first"),
            (value, "last"),
            ("least", "last"),
        ]
    )
    names = {
        "observed_ms_first": "first_ms",
        "observed_ms_last": "last_ms",
        f"{value}_first": "first",
        f"{value}_last": "last",
        "least_last": "least",
    }
    return looks.rename_columns([names.get(name, name) for name in looks.column_names])


def _pace(look: Mapping[str, Any]) -> float | None:
    """Return messages per ms between the first and the last observation, or None if there is only
    one.
    """
    if look["last_ms"] == look["first_ms"]:
        return None
    return float(max(0, look["last"] - look["first"]) / (look["last_ms"] - look["first_ms"]))
