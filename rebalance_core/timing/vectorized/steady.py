"""Finds the time from which no pass in a segment changes anything, whichever broker it queries.

Where no list is fresh, all answers that brokers may give in a segment are known in advance, and so
is each member's share under each answer. Once a member holds the share that it gets under all later
answers, its passes only take time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rebalance_core.timing.reference.rebalancing import SAMPLE_AFTER_US
from rebalance_core.timing.timer_periods import BEFORE_ALL, NEVER, Times
from rebalance_core.timing.vectorized.elements import Elements
from rebalance_core.timing.vectorized.known_routes import UNKNOWN, KnownRoutes
from rebalance_core.timing.vectorized.member_lists import MemberList, MemberLists
from rebalance_core.timing.vectorized.play_segments import PlaySegment
from rebalance_core.timing.vectorized.shares import UNCHANGED, Shares

Ints = NDArray[np.int64]
_CELLS = 1 << 22
"""The number of (element, answer) pairs that are processed together; limits memory."""


@dataclass(frozen=True, eq=False)
class _Answers:
    """The member lists that a broker may return in a segment: (S, K) arrays in chronological order.

    Attributes:
        since: when each answer becomes valid in each future.
        until: when it ceases to be valid.
        seen: whether a pass in the segment may receive it.
        hashes: the hashes of the members; 0 if there are none.
        distinct: (N,) the distinct hashes that a pass may see; 0 stands for no answer.
        first: (N,) the first index of each distinct hash in the flattened arrays.
        places: (S, K) the index of each answer in `distinct`.
    """

    place: MemberList
    since: Times
    until: Times
    seen: NDArray[np.bool_]
    hashes: NDArray[np.uint64]
    distinct: NDArray[np.uint64]
    first: Ints
    places: Ints

    @classmethod
    def of(
        cls,
        place: MemberList,
        since: Times,
        until: Times,
        seen: NDArray[np.bool_],
        hashes: NDArray[np.uint64],
    ) -> _Answers:
        """Return the answers with their distinct hashes computed."""
        visible = np.where(seen, hashes, np.uint64(0))
        distinct, first, places = np.unique(visible, return_index=True, return_inverse=True)
        return cls(place, since, until, seen, hashes, distinct, first, places.reshape(seen.shape))

    def last_alone(self) -> _Answers:
        """Return only the last answer that a pass in each future may receive."""
        last = _last(self.seen)[:, None]
        return _Answers.of(
            self.place,
            np.take_along_axis(self.since, last, axis=1),
            np.take_along_axis(self.until, last, axis=1),
            np.take_along_axis(self.seen, last, axis=1),
            np.take_along_axis(self.hashes, last, axis=1),
        )


class Steady:
    """The elements that are steady, and the times from which they are, in a segment without fresh
    lists or lost hosts.

    Args:
        elements: the elements of the segment.
        segment: the part of the timeline.
        routes: the routes that they know.
        lists: the lists of the brokers.
        shares: the shares of all topics.
    """

    def __init__(
        self,
        elements: Elements,
        segment: PlaySegment,
        routes: KnownRoutes,
        lists: MemberLists,
        shares: Shares,
    ) -> None:
        self._elements, self._segment, self._lists = elements, segment, lists
        self._shape = len(elements.lifetimes), len(elements.futures.seeds)
        answers = [self._answers_of(*each) for each in enumerate(lists.lists)]
        self._by_last = sum(len(each.distinct) for each in answers) > len(elements.ids)
        """Whether brokers give more answers than there are elements, as when many members join at
        many brokers. Computing every share would then cost more than the passes that it saves, so
        elements count as steady only from each broker's last answer on.
        """
        if self._by_last:
            answers = [each.last_alone() for each in answers]
        self._answers = answers
        last_us = np.full(len(elements.ids), segment.end_us - 1)
        everyone = np.arange(len(elements.ids))
        self._since = routes.last_lesson(last_us)
        self._since[elements.broadcasting | elements.asks_nobody] = NEVER
        self._final = np.full(elements.held.shape, UNCHANGED, np.int32)
        """(topics, elements): the sets that steady elements hold; `UNCHANGED` if they do not
        matter.
        """
        for topic in elements.futures.topics:
            versions = routes.at(topic, everyone, last_us)
            self._since[versions == UNKNOWN] = NEVER
            for version in set(versions[versions != UNKNOWN].tolist()):
                rows = versions == version
                final, since = self._settled(shares, topic, version)
                self._final[topic, rows] = final[rows]
                self._since[rows] = np.maximum(self._since[rows], since[rows])

    def is_steady(self, who: Ints, begin: Times) -> NDArray[np.bool_]:
        """Return whether passes that begin at these times, and all later passes, change nothing."""
        steady: NDArray[np.bool_] = self._since[who] <= begin
        for held, final in zip(self._elements.held, self._final, strict=True):
            wanted = final[who]
            steady &= (wanted == held[who]) | (wanted == UNCHANGED)
        return steady

    def _answers_of(self, number: int, place: MemberList) -> _Answers:
        times, hashes = (each[number] for each in self._lists.timeline)
        since = np.insert(times, 0, BEFORE_ALL, axis=1)
        until = np.append(times, np.full((len(times), 1), NEVER), axis=1)
        seen = (since < until) & (until > self._segment.begin_us)
        seen &= since < self._segment.end_us + SAMPLE_AFTER_US
        columns = np.flatnonzero(seen.any(axis=0))
        return _Answers.of(place, *(each[:, columns] for each in (since, until, seen, hashes)))

    def _settled(self, shares: Shares, topic: int, version: int) -> tuple[NDArray[np.int32], Times]:
        """Return (elements,) the share under the last possible answers for a version, and the time
        from which all answers give that share.
        """
        lifetimes, seeds = self._shape
        brokers = self._elements.futures.timeline.routes[topic][version].brokers or (0,)
        asked = [each for each in self._answers if each.place.broker in brokers]
        final = np.full((seeds, lifetimes), UNCHANGED, np.int32)
        since = np.full((seeds, lifetimes), BEFORE_ALL, np.int64)
        route = int(shares.first[topic]) + version
        tables = self._tables(shares, route, asked)
        step = max(
            1, _CELLS // (lifetimes * max((each.seen.shape[1] for each in asked), default=1))
        )
        for begin in range(0, seeds, step):
            part = slice(begin, begin + step)
            played = self._elements.futures.timeline_of[part, None]
            taken = [
                table[played, each.places[part]] for each, table in zip(asked, tables, strict=True)
            ]
            for each, share in zip(asked, taken, strict=True):
                last = _last(each.seen[part])[:, None, None]
                at_last = np.take_along_axis(share, last, axis=1)[:, 0]
                final[part] = np.where(final[part] == UNCHANGED, at_last, final[part])
            for each, share in zip(asked, taken, strict=True):
                other = (share != final[part, None]) & (share != UNCHANGED)
                other &= each.seen[part, :, None]
                until = np.take_along_axis(each.until[part], _last(other), axis=1)
                until = np.where(other.any(axis=1), until, BEFORE_ALL)
                since[part] = np.maximum(since[part], until)
                if self._by_last:
                    since[part] = np.maximum(since[part], each.since[part])
        since[final < UNCHANGED] = NEVER
        return final.T.reshape(-1), since.T.reshape(-1)

    def _tables(
        self, shares: Shares, route: int, asked: Sequence[_Answers]
    ) -> list[NDArray[np.int32]]:
        """Return, for each broker, the (timelines, distinct lists, lifetimes) table of shares."""
        if not asked:  # its brokers are away for the whole segment
            return []
        ends = np.cumsum([len(each.distinct) for each in asked])

        def members(place: int) -> Ints:
            number = int(np.searchsorted(ends, place, side="right"))
            answers = asked[number]
            own = place - int(ends[number]) + len(answers.distinct)
            if not answers.distinct[own]:
                return np.empty(0, np.int64)
            seed, column = divmod(int(answers.first[own]), answers.seen.shape[1])
            at_us = max(answers.since[seed, column], self._segment.begin_us)
            return self._lists.members_at(answers.place, seed, at_us)

        distinct = np.concatenate([np.empty(0, np.uint64), *(each.distinct for each in asked)])
        routes = np.full(len(distinct), route)
        timelines = range(len(self._elements.futures.timelines))
        rows = np.stack([shares.rows(distinct, routes, members, each) for each in timelines])
        taken = shares.table[rows[:, :, None], self._elements.lifetimes]
        taken[:, distinct == 0] = UNCHANGED
        return np.split(taken, ends[:-1], axis=1)


def _last(seen: NDArray[np.bool_]) -> Ints:
    """Return (S, ...) the last index along the second axis at which ``seen`` is True."""
    return np.asarray(seen.shape[1] - 1 - seen[:, ::-1].argmax(axis=1), np.int64)
