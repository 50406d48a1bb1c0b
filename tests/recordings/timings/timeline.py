"""Takings of one group in one or many futures, and what a change's members and queues waited."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rebalance_core.timing.group_timeline import GroupTimeline
from rebalance_core.timing.ownership_log import OwnershipLog
from tests.recordings.timings.actions import Action
from tests.recordings.timings.changes import Change
from tests.recordings.truth import Queue

Times = NDArray[np.float64]

DROP, ADD, GAP = "drop", "add", "gap"


@dataclass(frozen=True, eq=False)
class Timeline:
    """Equally long columns, by seed, queue and time.

    Attributes:
        seeds: how many futures; 1 of what was observed.
        clients: names that `client` counts.
        queues: those that `queue` counts.
        seed: (N,) number of the future.
        client: (N,) who.
        queue: (N,) which queue.
        at_ms: (N,) when, epoch milliseconds.
        delta: (N,) 1 taken, -1 given up.
    """

    seeds: int
    clients: tuple[str, ...]
    queues: tuple[Queue, ...]
    seed: NDArray[np.int64]
    client: NDArray[np.int64]
    queue: NDArray[np.int64]
    at_ms: Times
    delta: NDArray[np.int64]


def timeline(
    seeds: int,
    clients: list[str],
    queues: list[Queue],
    columns: tuple[
        NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], Times, NDArray[np.int64]
    ],
) -> Timeline:
    """A timeline of columns (seed, client, queue, at_ms, delta) in any order."""
    seed, client, queue, at_ms, delta = columns
    order = np.lexsort((delta, at_ms, queue, seed))
    return Timeline(
        seeds,
        tuple(clients),
        tuple(queues),
        seed[order],
        client[order],
        queue[order],
        at_ms[order],
        delta[order],
    )


def observed_timeline(actions: list[Action]) -> Timeline:
    """Of what one group was seen to do."""
    clients = sorted({one.client for one in actions})
    queues = sorted({one.queue for one in actions})
    table = np.array(
        [(0, clients.index(one.client), queues.index(one.queue), 1 if one.added else -1)
         for one in actions], np.int64,
    ).reshape(-1, 4)  # fmt: skip
    at_ms = np.array([one.at_ms for one in actions], float)
    return timeline(1, clients, queues, (table[:, 0], table[:, 1], table[:, 2], at_ms, table[:, 3]))


def simulated_timeline(
    simulated: GroupTimeline,
    log: OwnershipLog,
    seeds: int,
    names: dict[tuple[str, str | None], str],
) -> Timeline:
    """Of what a group is simulated to do.

    Args:
        simulated: the group's timeline.
        log: of its futures.
        seeds: how many there are.
        names: the recording's names of clients by (client_id, channel_id).
    """
    of_lifetime = [
        names[lifetime.client_id, lifetime.channel_id] for lifetime in simulated.lifetimes
    ]
    clients = sorted(set(of_lifetime))
    number = np.array([clients.index(name) for name in of_lifetime], np.int64)
    queues = [(queue.topic, queue.broker_name, queue.queue_id) for queue in simulated.queues]
    return timeline(
        seeds,
        clients,
        queues,
        (
            log.seed.astype(np.int64),
            number[log.lifetime],
            log.queue.astype(np.int64),
            log.at_us / 1_000,
            log.delta.astype(np.int64),
        ),
    )


def first_actions(line: Timeline, changes: list[Change]) -> dict[tuple[int, str, str], Times]:
    """When each member first gave up and took a queue after each change.

    Args:
        line: of one group.
        changes: of that group, in order of time.

    Returns:
        By (number of the change, client, `DROP` or `ADD`): (seeds,) milliseconds from the event;
        NaN in futures in which it did not. What a process gives up by its own end is left out.
    """
    begins = np.array([change.begin_ms for change in changes])
    place = np.searchsorted(begins, line.at_ms, side="right") - 1
    untils = np.array([change.until_ms for change in changes])
    events = np.array([change.event_ms for change in changes], float)
    inside = (place >= 0) & (line.at_ms < untils[place])
    key = (place * len(line.clients) + line.client) * 2 + (line.delta > 0)
    first = np.full((len(changes) * len(line.clients) * 2, line.seeds), np.inf)
    np.minimum.at(first, (key[inside], line.seed[inside]), line.at_ms[inside])
    found = {}
    for index in np.flatnonzero(np.isfinite(first).any(axis=1)):
        row, taken = divmod(int(index), 2)
        at, client = divmod(row, len(line.clients))
        change, name = changes[at], line.clients[client]
        if not taken and name in change.clients and change.ends_processes:
            continue
        waited = first[index] - events[at]
        waited[np.isinf(waited)] = np.nan
        found[change.number, name, ADD if taken else DROP] = waited
    return found


def gaps(line: Timeline, changes: list[Change]) -> dict[tuple[int, Queue], Times]:
    """How long each queue that changed hands had no owner after each change; negative: several.

    Returns:
        By (number of the change, queue): (seeds,) milliseconds without an owner until it was taken
        again, less those with more than one; NaN in futures in which it did not change hands.
    """
    times = owner_times(line, changes)
    value = times.nobody_ms - times.several_ms
    return {
        (changes[at].number, line.queues[queue]): np.where(
            times.moved[at, queue], value[at, queue], np.nan
        )
        for at, queue in np.argwhere(times.moved.any(axis=2)).tolist()
    }


@dataclass(frozen=True, eq=False)
class OwnerTimes:
    """Arrays of shape (changes, queues, seeds).

    Attributes:
        nobody_ms: without an owner, from the first giving up until somebody took the queue again;
            0 if nobody did before the next change.
        several_ms: with more than one.
        moved: either of both happened.
    """

    nobody_ms: Times
    several_ms: Times
    moved: NDArray[np.bool_]


def owner_times(line: Timeline, changes: list[Change]) -> OwnerTimes:
    """How long each queue had no owner, or several, after each change."""
    same = np.zeros(len(line.at_ms), bool)
    same[:-1] = (line.seed[1:] == line.seed[:-1]) & (line.queue[1:] == line.queue[:-1])
    following = np.where(same, np.append(line.at_ms[1:], np.inf), np.inf)
    total = np.cumsum(line.delta)
    first = np.flatnonzero(np.append(True, ~same[:-1]))
    lengths = np.diff(np.append(first, len(line.at_ms)))
    owners = total - np.repeat(total[first] - line.delta[first], lengths)
    begins = np.array([change.begin_ms for change in changes])
    untils = np.array([change.until_ms for change in changes], float)
    place = np.searchsorted(begins, line.at_ms, side="right") - 1
    until = untils[np.maximum(place, 0)]
    inside = (place >= 0) & (line.at_ms < until)
    nobody = inside & (owners == 0) & (following < until)
    several = inside & (owners > 1)
    shape = len(changes), len(line.queues), line.seeds
    sums = []
    for which in (nobody, several):
        spans = np.zeros(shape)
        cell = place[which], line.queue[which], line.seed[which]
        np.add.at(spans, cell, (np.minimum(following, until) - line.at_ms)[which])
        sums.append(spans)
    moved = np.zeros(shape, bool)
    which = nobody | several
    moved[place[which], line.queue[which], line.seed[which]] = True
    return OwnerTimes(sums[0], sums[1], moved)
