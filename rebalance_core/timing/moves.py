"""The queues that members took and gave up, as observed or in many futures, and how long members
and queues waited.

`first_actions` and `gaps` measure observations and futures in the same way, so that they can be
compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from rebalance_core.timing.group_timeline import GroupTimeline
from rebalance_core.timing.options import MS_US
from rebalance_core.timing.ownership_log import GIVEN_UP, TAKEN, OwnershipLog

Times = NDArray[np.float64]
Queue = tuple[str, str, int]
"""The topic, broker and queue id."""

DROP: Final = "drop"
"""The first time at which a member gave up a queue."""
ADD: Final = "add"
"""The first time at which a member took a queue."""
LAST: Final = "last"
"""The time at which the last queue was given up or taken."""
GAP: Final = "gap"
"""The time for which a queue had no owner, less the time for which it had several."""
BEFORE_ALL_MS: Final = -np.inf
"""The time of a take if the owner held the queue from the beginning."""


class Change(Protocol):
    """A change of a group and the period of its effects."""

    @property
    def event_ms(self) -> int:
        """The logged time, from which latencies are measured."""

    @property
    def begin_ms(self) -> int:
        """The time at which its effects begin."""

    @property
    def until_ms(self) -> int:
        """The time at which its effects end, exclusive."""

    @property
    def clients(self) -> AbstractSet[str]:
        """The members that it concerns; empty for a change of a broker or a topic."""

    @property
    def ends_processes(self) -> bool:
        """Whether the members leave or are lost."""


@dataclass(frozen=True, eq=False)
class Moves:
    """Moves, as columns of equal length, ordered by seed, queue and time.

    Attributes:
        seeds: the number of futures; 1 for observed moves.
        clients: the names that `client` indexes.
        queues: the queues that `queue` indexes.
        seed: (N,) the number of the future.
        client: (N,) index of the client.
        queue: (N,) index of the queue.
        at_ms: (N,) epoch milliseconds; `BEFORE_ALL_MS` for queues held from the beginning.
        delta: (N,) `TAKEN` or `GIVEN_UP`.
    """

    seeds: int
    clients: tuple[str, ...]
    queues: tuple[Queue, ...]
    seed: NDArray[np.int64]
    client: NDArray[np.int64]
    queue: NDArray[np.int64]
    at_ms: Times
    delta: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class ObservedMove:
    """An observed take or release of a queue by a client.

    Attributes:
        at_ms: epoch milliseconds.
        client: the client's id.
        queue: the queue.
        added: whether the queue was taken rather than given up.
    """

    at_ms: float
    client: str
    queue: Queue
    added: bool


def observed_moves(actions: Sequence[ObservedMove]) -> Moves:
    """Return the observed moves of a group as a single future."""
    clients = sorted({action.client for action in actions})
    queues = sorted({action.queue for action in actions})
    client_of = {name: number for number, name in enumerate(clients)}
    queue_of = {queue: number for number, queue in enumerate(queues)}
    count = len(actions)
    return _ordered(
        1,
        tuple(clients),
        tuple(queues),
        np.zeros(count, np.int64),
        np.array([client_of[action.client] for action in actions], np.int64),
        np.array([queue_of[action.queue] for action in actions], np.int64),
        np.array([action.at_ms for action in actions], np.float64),
        np.array([TAKEN if action.added else GIVEN_UP for action in actions], np.int64),
    )


def simulated_moves(
    timeline: GroupTimeline, log: OwnershipLog, seeds: int, names: Sequence[str]
) -> Moves:
    """Return the moves of a group in its futures, including the queues held at the beginning.

    Args:
        timeline: the group's timeline.
        log: the log of its futures.
        seeds: the number of futures.
        names: the client of each lifetime.
    """
    clients = sorted(set(names))
    number = np.array([clients.index(name) for name in names], np.int64)
    held = [(lifetime, queue) for lifetime, its in enumerate(timeline.initial) for queue in its]
    first = np.array(held, np.int64).reshape(-1, 2)
    lifetime = np.concatenate([np.tile(first[:, 0], seeds), log.lifetime.astype(np.int64)])
    at_ms = np.concatenate([np.full(seeds * len(first), BEFORE_ALL_MS), log.at_us / MS_US])
    return _ordered(
        seeds,
        tuple(clients),
        tuple((queue.topic, queue.broker_name, queue.queue_id) for queue in timeline.queues),
        np.concatenate([np.repeat(np.arange(seeds), len(first)), log.seed.astype(np.int64)]),
        number[lifetime],
        np.concatenate([np.tile(first[:, 1], seeds), log.queue.astype(np.int64)]),
        at_ms,
        np.concatenate([np.full(seeds * len(first), TAKEN), log.delta.astype(np.int64)]),
    )


def _ordered(
    seeds: int,
    clients: tuple[str, ...],
    queues: tuple[Queue, ...],
    *columns: NDArray[np.int64] | Times,
) -> Moves:
    """Return the columns seed, client, queue, at_ms and delta in the order of `Moves`."""
    seed, client, queue, at_ms, delta = columns
    order = np.lexsort((delta, at_ms, queue, seed))
    return Moves(
        seeds,
        clients,
        queues,
        seed[order].astype(np.int64),
        client[order].astype(np.int64),
        queue[order].astype(np.int64),
        at_ms[order].astype(np.float64),
        delta[order].astype(np.int64),
    )


def first_actions(moves: Moves, changes: Sequence[Change]) -> dict[tuple[int, str, str], Times]:
    """Return, for each change, when each member first gave up and first took a queue.

    Args:
        moves: one group's moves.
        changes: that group's changes, in chronological order.

    Returns:
        For each (index of the change, client, `DROP` or `ADD`), (seeds,) milliseconds after the
        event; NaN in futures in which it did not happen. Queues that a process gives up because it
        ends are left out.
    """
    place, inside = _places(moves, changes)
    key = (place * len(moves.clients) + moves.client) * 2 + (moves.delta > 0)
    keys, row = np.unique(key[inside], return_inverse=True)
    first = np.full((len(keys), moves.seeds), np.inf)
    np.minimum.at(first, (row, moves.seed[inside]), moves.at_ms[inside])
    found = {}
    for index, of in enumerate(keys.tolist()):
        of_client, taken = divmod(of, 2)
        at, client = divmod(of_client, len(moves.clients))
        change, name = changes[at], moves.clients[client]
        if not taken and name in change.clients and change.ends_processes:
            continue
        found[at, name, ADD if taken else DROP] = _waited(first[index], change)
    return found


def last_actions(
    moves: Moves, changes: Sequence[Change], clients: AbstractSet[str]
) -> dict[tuple[int, str], Times]:
    """Return, for each change, when the last of the given members gave up or took a queue.

    Args:
        moves: one group's moves.
        changes: that group's changes, in chronological order.
        clients: the members to consider, except those that a change ends.

    Returns:
        For each (index of the change, `LAST`), (seeds,) milliseconds after the event; NaN in
        futures in which no member did.
    """
    place, inside = _places(moves, changes)
    number = {name: client for client, name in enumerate(moves.clients)}
    ended = [
        at * len(moves.clients) + number[name]
        for at, change in enumerate(changes)
        if change.ends_processes
        for name in change.clients & number.keys()
    ]
    counts = np.array([name in clients for name in moves.clients], np.bool_)
    inside &= counts[moves.client]
    inside &= ~np.isin(place * len(moves.clients) + moves.client, ended)
    last = np.full((len(changes), moves.seeds), -np.inf)
    np.maximum.at(last, (place[inside], moves.seed[inside]), moves.at_ms[inside])
    return {
        (at, LAST): _waited(last[at], changes[at])
        for at in np.flatnonzero(np.isfinite(last).any(axis=1)).tolist()
    }


def _waited(at_ms: Times, change: Change) -> Times:
    return np.where(np.isfinite(at_ms), at_ms - change.event_ms, np.nan)


def gaps(moves: Moves, changes: Sequence[Change]) -> dict[tuple[int, Queue], Times]:
    """Return, for each change, how long each queue that changed hands had no owner.

    Returns:
        For each (index of the change, queue), (seeds,) the milliseconds without an owner until the
        queue was taken again, minus those with more than one owner; NaN in futures in which it did
        not change hands.
    """
    times = queue_times(moves, changes)
    value = times.unowned_ms - times.several_ms
    return {
        (at, moves.queues[queue]): np.where(times.moved[at, queue], value[at, queue], np.nan)
        for at, queue in np.argwhere(times.moved.any(axis=2)).tolist()
    }


@dataclass(frozen=True, eq=False)
class QueueTimes:
    """Arrays of shape (changes, queues, seeds).

    Attributes:
        unowned_ms: time without an owner, from the first release until some client took the queue
            again; 0 if none did before the next change.
        several_ms: time with more than one owner.
        moved: whether the queue was released or taken.
    """

    unowned_ms: Times
    several_ms: Times
    moved: NDArray[np.bool_]


def queue_times(moves: Moves, changes: Sequence[Change]) -> QueueTimes:
    """Return, for each change, how long each queue had no owner, or several owners."""
    shape = len(changes), len(moves.queues), moves.seeds
    if not len(moves.at_ms):
        return QueueTimes(np.zeros(shape), np.zeros(shape), np.zeros(shape, bool))
    same = np.zeros(len(moves.at_ms), bool)
    same[:-1] = (moves.seed[1:] == moves.seed[:-1]) & (moves.queue[1:] == moves.queue[:-1])
    following = np.where(same, np.append(moves.at_ms[1:], np.inf), np.inf)
    total = np.cumsum(moves.delta)
    first = np.flatnonzero(np.append(True, ~same[:-1]))
    lengths = np.diff(np.append(first, len(moves.at_ms)))
    owners = total - np.repeat(total[first] - moves.delta[first], lengths)
    untils = np.array([change.until_ms for change in changes], float)
    place, inside = _places(moves, changes)
    until = untils[np.maximum(place, 0)]
    unowned = inside & (owners == 0) & (following < until)
    several = inside & (owners > 1)
    sums = []
    for which in (unowned, several):
        spans = np.zeros(shape)
        cell = place[which], moves.queue[which], moves.seed[which]
        end_ms = np.minimum(following[which], until[which])
        np.add.at(spans, cell, end_ms - moves.at_ms[which])
        sums.append(spans)
    moved = np.zeros(shape, bool)
    which = unowned | several
    moved[place[which], moves.queue[which], moves.seed[which]] = True
    return QueueTimes(sums[0], sums[1], moved)


def _places(moves: Moves, changes: Sequence[Change]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return the index of each row's change, and whether the row is an effect of that change."""
    begins = np.array([change.begin_ms for change in changes])
    untils = np.array([change.until_ms for change in changes])
    place = np.searchsorted(begins, moves.at_ms, side="right") - 1
    return place, (place >= 0) & (moves.at_ms < untils[place])
