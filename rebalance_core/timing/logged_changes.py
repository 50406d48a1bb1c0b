"""Changes of a group with the effects that clients' logs show, and those logs as `Moves`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rebalance_core.contracts.observed import ADD
from rebalance_core.model.events import CONSUMER_LEAVE, CONSUMER_LOST
from rebalance_core.timing.group_timeline import GroupTimeline, LoggedTime, TimelineChange
from rebalance_core.timing.moves import BEFORE_ALL_MS, ObservedMove, Queue
from rebalance_core.timing.options import HALF_SECOND_MS, MS_US, SECOND_US
from rebalance_core.timing.propagation_parts import CAUSES_JOINED_BY

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import QueueMovesRow

TOGETHER_MS: Final = 600
"""Events of one kind this close to each other are one change: a deployment, two brokers' topics."""


@dataclass(frozen=True)
class LoggedChange:
    """Events of one kind, at one time, that concern a group: a `timing.moves.Change`.

    Attributes:
        kind: the event types, and whether the group's queues are locked.
        event_ms: the time of its last event.
        begin_ms: actions from here on are its own.
        until_ms: and before this, where the group's next change begins.
        clients: ids of the members that joined or ended.
        ends_processes: whether members left or were lost.
    """

    kind: str
    event_ms: int
    begin_ms: int
    until_ms: int
    clients: frozenset[str]
    ends_processes: bool


def logged_changes(timeline: GroupTimeline) -> list[LoggedChange]:
    """Return the changes of a group in order of time."""
    ordered = ", orderly" if timeline.settings.ordered else ""
    return [
        LoggedChange(
            kind=CAUSES_JOINED_BY.join(part[0].causes) + ordered,
            event_ms=part[-1].change_ms,
            begin_ms=part[0].begin_us // MS_US,
            until_ms=part[-1].end_us // MS_US,
            clients=_clients(timeline, part[0].change_ms, part[-1].change_ms),
            ends_processes=not {CONSUMER_LEAVE, CONSUMER_LOST}.isdisjoint(part[0].causes),
        )
        for part in _together(timeline.changes)
    ]


def _together(changes: Iterable[TimelineChange]) -> Iterator[list[TimelineChange]]:
    part: list[TimelineChange] = []
    for change in changes:
        if part and (
            change.causes != part[-1].causes or change.change_ms - part[-1].change_ms > TOGETHER_MS
        ):
            yield part
            part = []
        part.append(change)
    if part:
        yield part


def _clients(timeline: GroupTimeline, first_ms: int, last_ms: int) -> frozenset[str]:
    def happened(moment: LoggedTime) -> bool:
        early_us = first_ms * MS_US - (SECOND_US if moment.to_the_second else 0)
        return early_us <= moment.event_us <= last_ms * MS_US

    return frozenset(
        lifetime.client_id
        for lifetime in timeline.lifetimes
        if happened(lifetime.joined)
        or (lifetime.ending is not None and happened(lifetime.ending.moment))
    )


@dataclass(frozen=True, eq=False)
class ClientLogs:
    """What the clients of a group logged.

    Attributes:
        moves: queues taken and given up, those of processes that end among them, in order of time.
        since_ms: by client, the first time at which its log shows a move.
    """

    moves: tuple[ObservedMove, ...]
    since_ms: Mapping[str, int]

    def are_whole(self, timeline: GroupTimeline, change: LoggedChange) -> bool:
        """Return whether the log of every member at a change is there."""
        return all(
            self.since_ms.get(lifetime.client_id, change.until_ms) < change.until_ms
            for lifetime in timeline.lifetimes
            if lifetime.joined.event_us < change.until_ms * MS_US
            and (
                lifetime.ending is None
                or lifetime.ending.moment.event_us >= change.begin_ms * MS_US
            )
        )


def client_logs(timeline: GroupTimeline, rows: Iterable[QueueMovesRow]) -> ClientLogs:
    """Return what the logs of a group's clients show of the queues of its timeline.

    A process that ends gives up what it holds then. A queue that a client takes twice is taken
    once: it was given up in between, outside of any pass (OFFSET_ILLEGAL, rocketmq.md §5.5).

    Args:
        timeline: the group's timeline.
        rows: the rows of ``queue_moves`` of the group, in any order.
    """
    queues = {(queue.topic, queue.broker_name, queue.queue_id) for queue in timeline.queues}
    since_ms: dict[str, int] = {}
    steps: list[tuple[float, int, str, Queue | None]] = [
        (_logged_ms(lifetime.ending.moment), 0, lifetime.client_id, None)
        for lifetime in timeline.lifetimes
        if lifetime.ending is not None and not lifetime.stale_entry
    ]
    for row in rows:
        client, queue = row["client_id"], (row["topic"], row["broker_name"], row["queue_id"])
        if client is not None and queue in queues:
            since_ms[client] = min(row["at_ms"], since_ms.get(client, row["at_ms"]))
            steps.append((row["at_ms"], 2 if row["action"] == ADD else 1, client, queue))
    steps.sort(key=lambda step: step[:3])
    return ClientLogs(tuple(_moves(steps, _held_at_first(timeline))), since_ms)


def _logged_ms(moment: LoggedTime) -> float:
    """Return when, in the middle of the second if the log has no more."""
    return moment.event_us / MS_US + (HALF_SECOND_MS if moment.to_the_second else 0)


def _held_at_first(timeline: GroupTimeline) -> dict[str, set[Queue]]:
    names = [(queue.topic, queue.broker_name, queue.queue_id) for queue in timeline.queues]
    held: dict[str, set[Queue]] = {}
    for lifetime, its in zip(timeline.lifetimes, timeline.initial, strict=True):
        if its:
            held.setdefault(lifetime.client_id, set()).update(names[queue] for queue in its)
    return held


def _moves(
    steps: Sequence[tuple[float, int, str, Queue | None]], held: dict[str, set[Queue]]
) -> Iterator[ObservedMove]:
    for client, queues in held.items():
        for queue in queues:
            yield ObservedMove(BEFORE_ALL_MS, client, queue, True)
    for at_ms, order, client, moved in steps:
        its = held.setdefault(client, set())
        if moved is None:
            for queue in sorted(its):
                yield ObservedMove(at_ms, client, queue, False)
            its.clear()
        elif order == 1:
            if moved not in its:  # it had the queue before its log begins
                yield ObservedMove(BEFORE_ALL_MS, client, moved, True)
            its.discard(moved)
            yield ObservedMove(at_ms, client, moved, False)
        elif moved not in its:
            its.add(moved)
            yield ObservedMove(at_ms, client, moved, True)
