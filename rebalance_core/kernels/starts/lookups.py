"""Observations of queues and commits over time, looked up for many rows at once."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

import numpy as np

from rebalance_core.kernels import segments
from rebalance_core.kernels.encoded_events import type_code
from rebalance_core.kernels.encoded_offsets import Commits, Observations
from rebalance_core.kernels.ownership.prepared_groups import PreparedGroups
from rebalance_core.kernels.queues import Queues
from rebalance_core.kernels.routes import index_of
from rebalance_core.kernels.segments import Bools, Ints
from rebalance_core.kernels.starts.deletions import Deletions, emptied
from rebalance_core.model.events import BROKER_DOWN, BROKER_UP
from rebalance_core.protocol.commits import (
    COMMIT_TRANSIT_MS,
    FINAL_COMMIT_STORED_MS,
)


def may_lose(prepared: PreparedGroups, group: Ints, broker: Ints, sent_ms: Ints) -> Bools:
    """Return `replay.outages.Outages.may_lose` for many commits."""
    events = prepared.encoded.events
    down = events.type == type_code(BROKER_DOWN)
    turns = np.flatnonzero(down | (events.type == type_code(BROKER_UP)))
    turns = turns[np.lexsort((turns, events.broker[turns], events.group[turns]))]
    keys, at_ms = segments.pair(events.group[turns], events.broker[turns]), events.at_ms[turns]
    wanted = segments.pair(group, broker)
    first, end = segments.equal_range(keys, wanted)
    since = np.maximum(segments.bisect(at_ms, first, end, sent_ms, right=True) - 1, first)
    until = segments.bisect(at_ms, first, end, sent_ms + FINAL_COMMIT_STORED_MS, right=False)
    downs = segments.pointers(down[turns])
    return downs[np.maximum(until, since)] > downs[since]


def _places(prepared: PreparedGroups, group: Ints, topic: Ints, broker: Ints) -> Ints:
    """Return a number for each cluster, topic and broker, regardless of which of its groups is
    given.
    """
    names = prepared.encoded.names
    cluster = np.asarray(names.clusters.dictionary_encode().indices).astype(np.int64)[group]
    # a broker of -1 is missing
    return (cluster * (len(names.topics) + 1) + topic) * (len(names.brokers) + 1) + broker + 1


def _seen_alike(prepared: PreparedGroups, deletions: Deletions) -> Ints:
    """Return, for each topic broker, the first one to which the same observations apply.

    If the topic was deleted, a group has its own observations, which include the deletions that it
    saw.
    """
    brokers = prepared.grid.brokers
    own = np.full(len(brokers.group), segments.NONE, np.int64)
    own[deletions.topic_broker] = deletions.topic_broker
    zero = prepared.encoded.groups.empty_queue_is_zero[brokers.group]
    place = _places(prepared, brokers.group, brokers.topic, brokers.broker)
    keys = np.stack([place, zero, own])
    _, first, which = np.unique(keys, axis=1, return_index=True, return_inverse=True)
    like: Ints = first[which.reshape(-1)]
    return like


def _of_brokers(prepared: PreparedGroups, topic_broker: Ints, rows: Observations) -> Observations:
    """Return shared observations as those of the given topic brokers, in their order."""
    brokers = prepared.grid.brokers
    place = _places(prepared, rows.group, rows.topic, rows.broker)
    order = np.argsort(place, kind="stable")  # within a place, rows keep their order
    group = brokers.group[topic_broker]
    wanted = _places(prepared, group, brokers.topic[topic_broker], brokers.broker[topic_broker])
    asker, row = segments.matching(place[order], wanted)
    mine = rows.take(order[row])
    empty = mine.max_offset <= 0
    as_zero = prepared.encoded.groups.empty_queue_is_zero[group[asker]]
    from_start = mine.min_offset <= 0
    return replace(
        mine,
        group=group[asker],
        zero=np.where(empty, from_start & as_zero, mine.zero),
        never_zero=np.where(empty, ~from_start | ~as_zero, mine.never_zero),
    )


class SeenOffsets:
    """Observations of each queue, oldest first; a deletion is an observation of an empty queue.

    Groups in a cluster with equal observations share one copy of them.

    Args:
        prepared: the groups.
        queues: the queues to look up, by their index.
        rows: rows of queue_offsets.
        deletions: the deletions from `prepared`.
    """

    def __init__(
        self, prepared: PreparedGroups, queues: Queues, rows: Observations, deletions: Deletions
    ) -> None:
        like = np.arange(len(prepared.grid.brokers.group))
        if prepared.encoded.shared_observations:
            like = _seen_alike(prepared, deletions)
            rows = _of_brokers(prepared, segments.distinct(like), rows)
        rows = rows.with_emptied(emptied(prepared, queues, deletions))
        self.rows = rows
        self._topic_broker, self._deletions = queues.topic_broker, deletions
        self._forgetting = deletions.forgetting()
        keys = _queue_keys(prepared, rows)
        self._order = np.flatnonzero(keys >= 0)
        self._keys = keys[self._order]
        wanted = segments.pair(like[queues.topic_broker], queues.queue_id)
        self._first, self._end = segments.equal_range(self._keys, wanted)
        self._at_ms = rows.at_ms[self._order]
        self._zeros = segments.pointers(rows.zero[self._order])
        self._never_zeros = segments.pointers(rows.never_zero[self._order])

    def any(self, queue: Ints) -> Bools:
        """Return whether the queue was ever observed."""
        return self._end[queue] > self._first[queue]

    def newest(self, queue: Ints, at_ms: Ints) -> Ints:
        """Return the newest row up to a given moment, or `NONE`."""
        position = self._after(queue, at_ms) - 1
        return self._rows(position, position >= self._first[queue])

    def emptied_ms(self, queue: Ints, at_ms: Ints) -> Ints:
        """Return the last deletion up to a given moment, or `NONE`."""
        return self._deletions.last(self._topic_broker[queue], at_ms)

    def forgotten_ms(self, queue: Ints, at_ms: Ints) -> Ints:
        """Return the last deletion up to a given moment that removed the commits, or `NONE`."""
        return self._forgetting.last(self._topic_broker[queue], at_ms)

    def first_from(self, queue: Ints, at_ms: Ints, asked_ms: Ints) -> Ints:
        """Return the oldest row at or after a given moment, or `NONE`.

        Also return `NONE` if the queue is deleted before that row.
        """
        position = self._from(queue, at_ms)
        row = self._rows(position, position < self._end[queue])
        same = self.emptied_ms(queue, pick(self.rows.at_ms, row)) <= asked_ms
        return np.where(same, row, segments.NONE)

    def last_before(self, queue: Ints, before_ms: Ints, by_ms: Ints) -> Ints:
        """Return the newest row before one moment and no later than another, or `NONE`.

        The row describes the queue that exists at the second moment.
        """
        position = np.minimum(self._from(queue, before_ms), self._after(queue, by_ms)) - 1
        row = self._rows(position, position >= self._first[queue])
        same = pick(self.rows.at_ms, row) >= self.emptied_ms(queue, by_ms)
        return np.where(same, row, segments.NONE)

    def zeros_around(self, queue: Ints, from_ms: Ints, to_ms: Ints) -> tuple[Ints, Ints, Ints]:
        """Count rows in [from_ms, to_ms] plus the first row after them.

        Returns:
            The number of rows, the number for which the broker would answer 0, and the number for
            which it certainly would not.
        """
        row = self.first_from(queue, to_ms, from_ms)
        end_ms = np.where(row >= 0, pick(self.rows.at_ms, row), to_ms)
        first, end = self._from(queue, from_ms), self._after(queue, end_ms)
        zeros, never = self._zeros, self._never_zeros
        return end - first, zeros[end] - zeros[first], never[end] - never[first]

    def max_by(self, queue: Ints, at_ms: Ints, asked_ms: Ints) -> Ints:
        """Return an upper bound on the max offset at a given moment, or `NONE` after the last
        observation.
        """
        return pick(self.rows.max_offset, self.first_from(queue, at_ms, asked_ms))

    def most_by(self, queue: Ints, at_ms: Ints, asked_ms: Ints) -> Ints:
        """Return the highest max offset observed by one moment in the queue that exists at another.

        Deletions separate queues of the same name. Return `NONE` if there is no such observation.
        """
        born_ms = self.emptied_ms(queue, asked_ms)
        row = self.newest(queue, at_ms)
        while True:
            of_next = self.emptied_ms(queue, pick(self.rows.at_ms, row)) > born_ms
            left = np.flatnonzero((row >= 0) & of_next)
            if not len(left):
                break
            ended_ms = self.emptied_ms(queue[left], self.rows.at_ms[row[left]])
            row[left] = self.newest(queue[left], ended_ms - 1)
        same = self.emptied_ms(queue, pick(self.rows.at_ms, row)) == born_ms
        return np.where((row >= 0) & same, pick(self._most_so_far, row), segments.NONE)

    @cached_property
    def _most_so_far(self) -> Ints:
        """The highest max offset of the same queue so far, between two deletions."""
        born_ms = self._deletions.last(segments.halves(self._keys)[0], self._at_ms)
        life = np.cumsum(segments.first_of_run(self._keys, born_ms), dtype=np.int64)
        most = np.full(len(self.rows.at_ms), segments.NONE, np.int64)
        most[self._order] = -segments.running_min(-self.rows.max_offset[self._order], life)
        return most

    def _from(self, queue: Ints, at_ms: Ints) -> Ints:
        return segments.bisect(
            self._at_ms, self._first[queue], self._end[queue], at_ms, right=False
        )

    def _after(self, queue: Ints, at_ms: Ints) -> Ints:
        return segments.bisect(self._at_ms, self._first[queue], self._end[queue], at_ms, right=True)

    def _rows(self, position: Ints, exists: Bools) -> Ints:
        return np.where(
            exists,
            np.append(self._order, segments.NONE)[np.where(exists, position, -1)],
            segments.NONE,
        )


class SeenCommits:
    """Commits on each queue, oldest first, over all clients and per client.

    Args:
        prepared: the groups.
        queues: the queues to look up, by their index.
        rows: rows of committed_offsets.
    """

    def __init__(self, prepared: PreparedGroups, queues: Queues, rows: Commits) -> None:
        keys = _queue_keys(prepared, rows)
        commit = np.flatnonzero(keys >= 0)
        wanted = segments.pair(queues.topic_broker, queues.queue_id)
        order = np.argsort(wanted)
        place = np.minimum(np.searchsorted(wanted[order], keys[commit]), max(0, len(order) - 1))
        mine = (
            wanted[order][place] == keys[commit] if len(order) else np.zeros(len(commit), np.bool_)
        )
        commit, queue = commit[mine], order[place[mine]]
        self.at_ms, self.offset, self.client = (
            a[commit] for a in (rows.at_ms, rows.offset, rows.client)
        )
        self._first, self._end = segments.equal_range(keys[commit], wanted)
        lost = may_lose(prepared, rows.group[commit], rows.broker[commit], self.at_ms)
        self.kept = (self.client < 0) | ~lost
        """Whether the broker received the commit or was observed to have it."""
        self._newest_kept = segments.last_true(self.kept, segments.first_of_run(queue))
        self._by_client = np.lexsort((np.arange(len(commit)), self.client, queue))
        self._client_keys = segments.pair(queue, self.client + 1)[self._by_client]
        self._client_ms = self.at_ms[self._by_client]
        self._of_broker = self._of_client(
            np.arange(len(wanted)), np.full(len(wanted), segments.NONE)
        )
        self._newest_kept_of = segments.last_true(
            self.kept[self._by_client], segments.first_of_run(self._client_keys)
        )

    def newest(self, queue: Ints, at_ms: Ints) -> Ints:
        """Return the newest row up to a given moment, or `NONE`."""
        row = self.after(queue, at_ms) - 1
        return np.where(row >= self._first[queue], row, segments.NONE)

    def after(self, queue: Ints, at_ms: Ints) -> Ints:
        """Return the position of the queue's first row after a given moment."""
        return segments.bisect(self.at_ms, self._first[queue], self._end[queue], at_ms, right=True)

    def newest_of(self, queue: Ints, client: Ints, at_ms: Ints, *, kept: bool = False) -> Ints:
        """Return a client's newest row up to a given moment, or `NONE`.

        With ``kept``, only rows count that cannot have been lost in an outage of the broker.
        """
        first, end = self._of_client(queue, client)
        return self._newest_in(first, end, at_ms, kept=kept)

    def newest_of_broker(self, queue: Ints, at_ms: Ints) -> Ints:
        """Return the newest row up to a given moment that names no client, or `NONE`."""
        first, end = self._of_broker
        return self._newest_in(first[queue], end[queue], at_ms)

    def _newest_in(self, first: Ints, end: Ints, at_ms: Ints, *, kept: bool = False) -> Ints:
        """Return the newest row of each range of `_by_client`; ``kept`` as in `newest_of`."""
        position = segments.bisect(self._client_ms, first, end, at_ms, right=True) - 1
        exists = position >= first
        if kept:
            position = np.where(
                exists, np.append(self._newest_kept_of, segments.NONE)[position], segments.NONE
            )
            exists = position >= 0
        return np.where(
            exists,
            np.append(self._by_client, segments.NONE)[np.where(exists, position, -1)],
            segments.NONE,
        )

    def arrived(self, queue: Ints, at_ms: Ints) -> Ints:
        """Return the newest row that has certainly reached the broker by a given moment, or `NONE`.

        A commit reported by a client may still be in transit; a commit observed on the broker has
        arrived.
        """
        sent = pick(self._newest_kept, self.newest(queue, at_ms - COMMIT_TRANSIT_MS))
        return np.maximum(sent, self.newest_of_broker(queue, at_ms))

    def highest(self, queue: Ints, after_ms: Ints, to_ms: Ints) -> Ints:
        """Return the highest offset committed in (after_ms, to_ms], or `NONE`.

        Cost: all commits in that period.
        """
        first = self.after(queue, after_ms)
        count = np.maximum(self.after(queue, to_ms) - first, 0)
        return segments.extreme(
            np.maximum,
            self.offset[segments.ranges(first, count)],
            segments.pointers(count),
            segments.NONE,
        )

    def highest_of(self, queue: Ints, client: Ints, to_ms: Ints) -> Ints:
        """Return the highest offset that the client committed by a given moment, or `NONE`."""
        before_all = np.full(len(queue), segments.NONE, np.int64)
        asker, row = self.within_of(queue, client, before_all, to_ms)
        highest = before_all.copy()
        np.maximum.at(highest, asker, self.offset[row])
        return highest

    def within_of(
        self, queue: Ints, client: Ints, after_ms: Ints, to_ms: Ints
    ) -> tuple[Ints, Ints]:
        """Return (query index, row) for the client's rows in (after_ms, to_ms], oldest first."""
        first, end = self._of_client(queue, client)
        begin = segments.bisect(self._client_ms, first, end, after_ms, right=True)
        count = segments.bisect(self._client_ms, first, end, to_ms, right=True) - begin
        asker = np.repeat(np.arange(len(queue)), count)
        return asker, self._by_client[segments.ranges(begin, count)]

    def _of_client(self, queue: Ints, client: Ints) -> tuple[Ints, Ints]:
        return segments.equal_range(self._client_keys, segments.pair(queue, client + 1))


def pick(values: Ints, row: Ints) -> Ints:
    """Return the value of each row; `NONE` where there is no row."""
    return np.append(values, segments.NONE)[row]


def _queue_keys(prepared: PreparedGroups, rows: Observations | Commits) -> Ints:
    """Return (topic on broker, queue id) of each row; -1 for a queue that no group reads."""
    of = index_of(prepared.grid.brokers, rows.group, rows.topic, rows.broker)
    return np.where(of >= 0, segments.pair(of, rows.queue_id), -1)
