"""A group's changes whose effects appear in client logs, and those logs as `Moves`."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from rebalance_core.contracts.observed import ADD
from rebalance_core.model.events import CONSUMER_LEAVE, CONSUMER_LOST
from rebalance_core.timing.group_timeline import GroupTimeline, LoggedTime, TimelineChange
from rebalance_core.timing.moves import BEFORE_ALL_MS, ObservedMove, Queue
from rebalance_core.timing.options import HALF_SECOND_MS, MS_US, SECOND_US
from rebalance_core.timing.propagation_parts import CAUSES_JOINED_BY
from rebalance_core.timing.timer_periods import NEVER

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import QueueMovesRow

TOGETHER_MS: Final = 600
"""Events of the same kind this close together form one change, such as a deployment or the creation
of a topic on two brokers.
"""


@dataclass(frozen=True)
class LoggedChange:
    """Events of the same kind and time that concern a group; implements `timing.moves.Change`.

    Attributes:
        kind: the event types, and whether the group's queues are locked.
        event_ms: the time of its last event.
        begin_ms: the time at which its effects begin.
        until_ms: the time before which its effects end, at which the group's next change begins.
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
    """Return the changes of a group in chronological order."""
    ordered, moments = ", orderly" if timeline.settings.ordered else "", _Moments(timeline)
    return [
        LoggedChange(
            kind=CAUSES_JOINED_BY.join(part[0].causes) + ordered,
            event_ms=part[-1].change_ms,
            begin_ms=part[0].begin_us // MS_US,
            until_ms=part[-1].end_us // MS_US,
            clients=moments.clients(part[0].change_ms, part[-1].change_ms),
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


class _Moments:
    """The logged times at which members joined and ended."""

    def __init__(self, timeline: GroupTimeline) -> None:
        lifetimes = timeline.lifetimes
        joined = [(each.joined, each.client_id) for each in lifetimes]
        ended = [(each.ending.moment, each.client_id) for each in lifetimes if each.ending]
        self._moments = sorted(
            (moment.event_us, moment.to_the_second, client) for moment, client in joined + ended
        )

    def clients(self, first_ms: int, last_ms: int) -> frozenset[str]:
        """Return the members that joined or ended between two times, allowing for logs with whole
        seconds.
        """
        first_us = first_ms * MS_US
        low = bisect_left(self._moments, (first_us - SECOND_US,))
        high = bisect_left(self._moments, (last_ms * MS_US + 1,))
        return frozenset(
            client
            for event_us, to_the_second, client in self._moments[low:high]
            if to_the_second or event_us >= first_us
        )


@dataclass(frozen=True, eq=False)
class ClientLogs:
    """The logs of a group's clients.

    Attributes:
        moves: queues taken and given up, including those of processes that end, in chronological
            order.
        since_ms: by client, the time of the first move in its log.
    """

    moves: tuple[ObservedMove, ...]
    since_ms: Mapping[str, int]

    def are_whole(self, timeline: GroupTimeline, changes: Sequence[LoggedChange]) -> list[bool]:
        """Return, for each change, whether the logs of all members at that time are present."""
        lifetimes = timeline.lifetimes
        joined_us = np.array([each.joined.event_us for each in lifetimes], np.int64)
        ends = [None if each.ending is None else each.ending.moment.event_us for each in lifetimes]
        ended_us = np.array([NEVER if end is None else end for end in ends], np.int64)
        since = [self.since_ms.get(each.client_id) for each in lifetimes]
        since_us = np.array([NEVER if ms is None else ms * MS_US for ms in since], np.int64)
        whole = []
        for change in changes:
            there = joined_us < change.until_ms * MS_US
            there &= ended_us >= change.begin_ms * MS_US
            whole.append(bool((since_us[there] < change.until_ms * MS_US).all()))
        return whole


def client_logs(timeline: GroupTimeline, rows: Iterable[QueueMovesRow]) -> ClientLogs:
    """Return what the logs of a group's clients show about the queues in its timeline.

    A process that ends releases what it holds. A client that takes a queue twice counts as taking
    it once, because it gave the queue up in between, outside any pass (OFFSET_ILLEGAL,
    rocketmq.md §5.5). Moves of clients that are not members in the timeline are ignored.

    Args:
        timeline: the group's timeline.
        rows: the group's rows of ``queue_moves``, in any order.
    """
    queues = {(queue.topic, queue.broker_name, queue.queue_id) for queue in timeline.queues}
    members = {lifetime.client_id for lifetime in timeline.lifetimes}
    since_ms: dict[str, int] = {}
    steps: list[tuple[float, int, str, Queue | None]] = [
        (_logged_ms(lifetime.ending.moment), 0, lifetime.client_id, None)
        for lifetime in timeline.lifetimes
        if lifetime.ending is not None and not lifetime.stale_entry
    ]
    for row in rows:
        client, queue = row["client_id"], (row["topic"], row["broker_name"], row["queue_id"])
        if client in members and queue in queues:
            since_ms[client] = min(row["at_ms"], since_ms.get(client, row["at_ms"]))
            steps.append((row["at_ms"], 2 if row["action"] == ADD else 1, client, queue))
    steps.sort(key=lambda step: step[:3])
    return ClientLogs(tuple(_moves(steps, _held_at_first(timeline))), since_ms)


def _logged_ms(moment: LoggedTime) -> float:
    """Return the logged time in ms, or the middle of the second for a log with whole seconds."""
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
    seen = {(client, queue) for client, queues in held.items() for queue in queues}
    for client, queues in held.items():
        for queue in queues:
            yield ObservedMove(BEFORE_ALL_MS, client, queue, True)
    ended: set[str] = set()
    for at_ms, order, client, moved in steps:
        its = held.setdefault(client, set())
        if moved is None:
            for queue in sorted(its):
                yield ObservedMove(at_ms, client, queue, False)
            its.clear()
            ended.add(client)
        elif order == 1:
            if (client, moved) not in seen and client not in ended:
                its.add(moved)  # before its log begins
                yield ObservedMove(BEFORE_ALL_MS, client, moved, True)
            if moved in its:
                yield ObservedMove(at_ms, client, moved, False)
            its.discard(moved)
        elif moved not in its:
            its.add(moved)
            yield ObservedMove(at_ms, client, moved, True)
        if moved is not None:
            seen.add((client, moved))
