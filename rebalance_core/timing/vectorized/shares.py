"""Computes the share of each pass: every distinct view is allocated once, for all members."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rebalance_core.client.rebalance_pass import EMPTY_IS_UNKNOWN
from rebalance_core.kernels import segments
from rebalance_core.model.client_profile import BYTES, DROP
from rebalance_core.model.errors import AllocationError
from rebalance_core.model.queue import MessageQueue
from rebalance_core.replay.member import Member
from rebalance_core.strategies import AllocationStrategy, parse_strategy
from rebalance_core.strategies.spi import EMPTY_ARGUMENT, is_java_blank
from rebalance_core.timing.draws import entity_of
from rebalance_core.timing.group_timeline import GroupTimeline
from rebalance_core.timing.vectorized.futures import Futures

NO_QUEUE = 0
"""The number of the empty set."""
UNCHANGED = -1
"""The topic's pass ends without an answer; the member keeps what it holds."""
REFUSED = -2
"""The strategy throws: the member keeps what it holds and, since 5.2, the next pass follows
soon.
"""
_NOT_YET = -3
_SET_BITS = 32
_SECOND = (1 << _SET_BITS) - 1


MembersAt = Callable[[int], NDArray[np.int64]]
"""Maps an index to the lifetimes in that member list, in the order in which clients sort them."""
SetOf = Callable[[frozenset[int], frozenset[int]], frozenset[int]]


def added(before: frozenset[int], after: frozenset[int]) -> frozenset[int]:
    """Return the queues of the second set that the first lacks."""
    return after - before


@dataclass(eq=False)
class QueueSets:
    """Assigns numbers to sets of queues; the empty set is 0.

    The result for two sets is computed once and then looked up.
    """

    sets: list[frozenset[int]] = field(default_factory=lambda: [frozenset()])
    _numbers: dict[frozenset[int], int] = field(default_factory=lambda: {frozenset(): 0})
    _queues: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    _ends: NDArray[np.int64] = field(default_factory=lambda: np.zeros(1, np.int64))
    _known: dict[SetOf, tuple[NDArray[np.int64], NDArray[np.int32]]] = field(default_factory=dict)

    def number(self, queues: Iterable[int]) -> int:
        """Return the number of a set; equal sets have equal numbers."""
        key = frozenset(queues)
        if key not in self._numbers:
            self._numbers[key] = len(self.sets)
            self.sets.append(key)
        return self._numbers[key]

    def sizes(self, numbers: NDArray[np.int32]) -> NDArray[np.int64]:
        """Return the number of queues in each set."""
        made, which = np.unique(numbers, return_inverse=True)
        sizes = np.array([len(self.sets[number]) for number in made.tolist()], np.int64)
        return sizes[which.reshape(numbers.shape)]

    def pairs(self, numbers: NDArray[np.int32]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return (index, queue) for every queue of each set, by ascending index."""
        new = self.sets[len(self._ends) :]
        if new:
            queues = [queue for each in new for queue in sorted(each)]
            sizes = np.array([len(each) for each in new], np.int64)
            self._queues = np.concatenate([self._queues, np.array(queues, np.int64)])
            self._ends = np.concatenate([self._ends, self._ends[-1] + np.cumsum(sizes)])
        ends = self._ends[numbers]
        size = ends - np.where(numbers == NO_QUEUE, ends, self._ends[numbers - 1])
        rows = np.repeat(np.arange(len(numbers)), size)
        return rows, self._queues[(ends - np.cumsum(size))[rows] + np.arange(len(rows))]

    def combined(
        self, of: SetOf, first: NDArray[np.int32], second: NDArray[np.int32]
    ) -> NDArray[np.int32]:
        """Return the number of the set that ``of`` computes from each pair of sets."""
        wanted = first.astype(np.int64) << _SET_BITS | second
        codes, made = self._known.get(of, (np.empty(0, np.int64), np.empty(0, np.int32)))
        position = np.searchsorted(codes, wanted)
        missing = np.append(codes, -1)[position] != wanted
        if missing.any():
            new = segments.distinct(wanted[missing])
            firsts, seconds = (new >> _SET_BITS).tolist(), (new & _SECOND).tolist()
            sets = [
                self.number(of(self.sets[a], self.sets[b]))
                for a, b in zip(firsts, seconds, strict=True)
            ]
            at = np.searchsorted(codes, new)
            codes, made = np.insert(codes, at, new), np.insert(made, at, sets)
            self._known[of] = codes, made
            position = np.searchsorted(codes, wanted)
        return made[position]

    def granted(
        self,
        wanted: NDArray[np.int32],
        places: NDArray[np.int64],
        queues: NDArray[np.int64],
        got: NDArray[np.bool_],
    ) -> NDArray[np.int32]:
        """Return the sets reduced to the (index, queue) pairs that were granted."""
        size = np.bincount(places, minlength=len(wanted))
        many = np.bincount(places[got], minlength=len(wanted))
        sets = np.where(many == 0, np.int32(NO_QUEUE), wanted)
        for place in np.flatnonzero((many > 0) & (many < size)).tolist():
            begin, end = np.searchsorted(places, (place, place + 1))
            sets[place] = self.number(queues[begin:end][got[begin:end]].tolist())
        return sets


class UnlistedQueueError(Exception):
    """A custom strategy returned a queue that is not in any route, so the reference engine must
    play the group.
    """


class Rules(NamedTuple):
    """The rules that determine a member's share, given the queues and members of a view.

    Attributes:
        strategy: the strategy, as spelled in the input.
        version: the version whose rules apply.
        by_bytes: whether it sorts by bytes rather than as Java does.
    """

    strategy: str
    version: str
    by_bytes: bool


def rules_of(member: Member) -> Rules:
    """Return the rules of a member."""
    return Rules(member.strategy, member.rules_version, member.profile.order == BYTES)


@dataclass(frozen=True, eq=False)
class _Followed:
    """The rules that the members of a timeline follow.

    Attributes:
        rules: (lifetimes,) each lifetime's rules.
        alike: for each set of rules, the lifetimes that follow them, by client id.
        named: for each set of rules, the lifetimes with a client id that follow them.
    """

    rules: list[Rules]
    alike: dict[Rules, dict[str, list[int]]]
    named: dict[Rules, NDArray[np.int64]]

    @classmethod
    def of(cls, timeline: GroupTimeline) -> _Followed:
        """Return the rules of a timeline."""
        rules = [rules_of(lifetime.states[0][1]) for lifetime in timeline.lifetimes]
        alike: dict[Rules, dict[str, list[int]]] = {}
        for number, (lifetime, key) in enumerate(zip(timeline.lifetimes, rules, strict=True)):
            alike.setdefault(key, {}).setdefault(lifetime.client_id, []).append(number)
        named = {
            key: np.array([n for name in names if name for n in names[name]], np.int64)
            for key, names in alike.items()
        }
        return cls(rules, alike, named)


class _View(NamedTuple):
    """The view of a pass.

    Attributes:
        route: the route.
        lifetimes: the members, in the order in which clients sort them.
        followed: the rules of its timeline.
    """

    route: int
    lifetimes: NDArray[np.int64]
    followed: _Followed


class Shares:
    """The shares for all topics.

    Args:
        futures: the futures of the timelines, which may have different strategies.
        sets: sets of queues.

    Attributes:
        first: (topics,) the numbers of their first routes; a topic's versions are numbered
            consecutively.
    """

    def __init__(self, futures: Futures, sets: QueueSets) -> None:
        timeline = futures.timeline
        self._timeline, self._sets, self._traits = timeline, sets, futures.traits
        self.first = np.cumsum([0, *map(len, timeline.routes)])[:-1]
        routes = [version for versions in timeline.routes for version in versions]
        words = [
            [n] if not t else [n, t]
            for t in range(len(futures.timelines))
            for n in range(len(routes))
        ]
        self._words = np.array(
            [entity_of("route", *map(str, each)) for each in words], np.uint64
        ).reshape(len(futures.timelines), len(routes))
        """(timelines, routes)."""
        self._queues = [[timeline.queues[n] for n in each.queues] for each in routes]
        self._queues_by_bytes = [sorted(each) for each in self._queues]
        self._numbers: list[dict[MessageQueue, int]] = []
        """For each route, the numbers of its topic's queues."""
        for name, versions in zip(timeline.topics, timeline.routes, strict=True):
            numbers = {queue: i for i, queue in enumerate(timeline.queues) if queue.topic == name}
            self._numbers += [numbers] * len(versions)
        self._keys = np.empty(0, np.uint64)  # sorted
        self._rows = np.empty(0, np.int64)  # the table row for each key
        self._views: list[_View] = []
        """The view of each row."""
        self.table = np.empty((0, len(self._traits)), np.int32)
        """(rows, lifetimes): the set of each lifetime in each view, as far as computed; some rows
        are spare.
        """
        self._whole: set[int] = set()
        """Rows in which the shares of all members are computed."""
        self._strategies: dict[Rules, AllocationStrategy] = {}
        self._of_places: dict[tuple[Rules, int, int], NDArray[np.int32]] = {}
        self._followed = [_Followed.of(each) for each in futures.timelines]
        self._ids = [lifetime.client_id for lifetime in self._timeline.lifetimes]
        last = {client_id: number for number, client_id in enumerate(self._ids)}
        self._client = np.array([last[client_id] for client_id in self._ids], np.int64)
        self._nameless = {number for number, client_id in enumerate(self._ids) if not client_id}
        self._all = np.array([sets.number(each.queues) for each in routes], np.int32)

    def everything(self, routes: NDArray[np.int64]) -> NDArray[np.int32]:
        """Return the share of a BROADCASTING member: every queue of its route."""
        return self._all[routes]

    def shares_of(
        self,
        lifetimes: NDArray[np.int64],
        routes: NDArray[np.int64],
        hashes: NDArray[np.uint64],
        members: MembersAt,
        timeline_of: NDArray[np.int64],
    ) -> NDArray[np.int32]:
        """Return the share of each pass as the number of a set, or `UNCHANGED` or `REFUSED`.

        Args:
            lifetimes: numbers of lifetimes.
            routes: the routes that they know.
            hashes: the hashes of the member lists that they received; 0 if none.
            members: returns the lifetimes in the list that the pass at an index received, in the
                order in which clients sort them.
            timeline_of: the timelines of the passes, by `Futures.timeline_of`.
        """
        places = self._places(hashes, routes, members, timeline_of)
        rows = self._rows[places]
        shares = self.table[rows, lifetimes]
        asked = np.flatnonzero(shares == _NOT_YET)
        if len(asked):
            pairs = segments.distinct(rows[asked] * self.table.shape[1] + lifetimes[asked])
            for row, lifetime in zip(*divmod(pairs, self.table.shape[1]), strict=True):
                if self.table[row, lifetime] == _NOT_YET:
                    self._share(int(row), int(lifetime))
            shares = self.table[rows, lifetimes]
        return np.where(hashes == 0, UNCHANGED, shares).astype(np.int32)

    def rows(
        self,
        hashes: NDArray[np.uint64],
        routes: NDArray[np.int64],
        members: MembersAt,
        timeline: int,
    ) -> NDArray[np.int64]:
        """Return the row of each view in `table`, with the shares of all its members filled in.

        Args:
            hashes: the hashes of the member lists.
            routes: the routes of the views.
            members: returns the lifetimes in the list at an index, in the order in which clients
                sort them.
            timeline: the index of the timeline whose strategies apply.
        """
        places = self._places(hashes, routes, members, np.full(len(hashes), timeline))
        rows = self._rows[places]
        for row in set(rows.tolist()) - self._whole:
            for lifetime in self._one_of_each(row):
                if self.table[row, lifetime] == _NOT_YET:
                    self._share(row, lifetime)
            self._whole.add(row)
        return rows

    def _one_of_each(self, row: int) -> list[int]:
        """Return one lifetime for each strategy used by members of a view."""
        _, lifetimes, followed = self._views[row]
        if len(followed.alike) == 1:
            return [int(lifetime) for lifetime in lifetimes[:1]]
        names = [self._ids[lifetime] for lifetime in lifetimes.tolist()]
        lifetime_each = (
            next((strategies[m][0] for m in names if m in strategies), None)
            for strategies in followed.alike.values()
        )
        return [lifetime for lifetime in lifetime_each if lifetime is not None]

    def _places(
        self,
        hashes: NDArray[np.uint64],
        routes: NDArray[np.int64],
        members: MembersAt,
        timeline_of: NDArray[np.int64],
    ) -> NDArray[np.int64]:
        """Return the index of each view's key among the known keys, adding new keys."""
        keys = hashes + self._words[timeline_of, routes]
        if len(self._keys):
            places = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
            missing = self._keys[places] != keys
            if not missing.any():
                return places
        else:
            missing = np.ones(len(keys), bool)
        new_places = np.flatnonzero(missing)
        new, first = np.unique(keys[new_places], return_index=True)
        rows = len(self._views) + np.arange(len(new))
        for place in new_places[first].tolist():
            followed = self._followed[timeline_of[place]]
            self._views.append(_View(int(routes[place]), members(place), followed))
        if len(self._views) > len(self.table):
            more = np.full((len(self._views), self.table.shape[1]), _NOT_YET, np.int32)
            self.table = np.concatenate([self.table, more])
        at = np.searchsorted(self._keys, new)
        self._keys, self._rows = np.insert(self._keys, at, new), np.insert(self._rows, at, rows)
        return np.searchsorted(self._keys, keys)

    def _share(self, row: int, lifetime: int) -> None:
        """Compute the share of a lifetime in a view, and of all others with its strategy."""
        trait, (route, lifetimes, followed) = self._traits[lifetime], self._views[row]
        if not len(lifetimes) or (not self._queues[route] and trait.version >= EMPTY_IS_UNKNOWN):
            self.table[row, lifetime] = UNCHANGED
            return
        key = followed.rules[lifetime]
        if key not in self._strategies:
            self._strategies[key] = parse_strategy(key.strategy, version=key.version)
        queues, lifetimes = self._mq_all(key, route), self._cid_all(key, lifetimes)
        try:
            of_places = self._by_place(key, route, lifetimes)
            if of_places is not None:
                alike = followed.named[key]
                self.table[row, alike] = of_places[self._places_of(lifetimes)[alike]]
                if self._ids[lifetime]:
                    return
            client_id, members = (
                self._ids[lifetime],
                [self._ids[each] for each in lifetimes.tolist()],
            )
            shares = self._shares(key, route, members)
            if client_id not in shares:
                share = self._strategies[key].allocate(client_id, queues, members)
                shares = {client_id: self._number(route, share)}
        except AllocationError as error:
            for each in self._refused_alike(followed, route, lifetime, lifetimes):
                profile = self._traits[each].member.profile
                lets_go = profile.no_queue == DROP and error.java_class == EMPTY_ARGUMENT
                self.table[row, each] = 0 if lets_go else REFUSED
            return
        lifetimes_of = followed.alike[key]
        sets = [
            (each, set_) for name, set_ in shares.items() for each in lifetimes_of.get(name, ())
        ]
        self.table[row, [each for each, _ in sets]] = [set_ for _, set_ in sets]

    def _refused_alike(
        self, followed: _Followed, route: int, lifetime: int, lifetimes: NDArray[np.int64]
    ) -> Sequence[int]:
        """Return the lifetimes for which the strategy also throws, given that it throws for
        ``lifetime``.
        """
        key, members = followed.rules[lifetime], [self._ids[each] for each in lifetimes.tolist()]
        all_alike = self._strategies[key].throws_for_all and self._queues[route]
        if not all_alike or any(map(is_java_blank, members)) or self._ids[lifetime] not in members:
            return [lifetime]
        alike = followed.alike[key]
        return [each for name in dict.fromkeys(members) for each in alike.get(name, ())]

    def _mq_all(self, key: Rules, route: int) -> list[MessageQueue]:
        """Return the queues as clients with these rules sort them."""
        return (self._queues_by_bytes if key.by_bytes else self._queues)[route]

    def _cid_all(self, key: Rules, lifetimes: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the lifetimes, given in Java order, in the order in which clients with these rules
        sort their ids.
        """
        if not key.by_bytes:
            return lifetimes
        return np.array(sorted(lifetimes.tolist(), key=self._ids.__getitem__), np.int64)

    def _shares(self, key: Rules, route: int, members: list[str]) -> dict[str, int]:
        """Return the number of each member's set by client id; empty if a strategy throws.

        ``members`` are ids in the order of `_cid_all`.
        """
        try:
            allocation = self._strategies[key].allocate_all(self._mq_all(key, route), members)
        except AllocationError:
            return {}
        return {client_id: self._number(route, share) for client_id, share in allocation.items()}

    def _places_of(self, lifetimes: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return (lifetimes,) the index of each client id in a member list, or -1 if it is not
        listed.

        For a repeated id, the first index counts.
        """
        places = np.full(len(self._client), -1, np.int64)
        places[self._client[lifetimes[::-1]]] = np.arange(len(lifetimes))[::-1]
        return places[self._client]

    def _by_place(
        self, key: Rules, route: int, lifetimes: NDArray[np.int64]
    ) -> NDArray[np.int32] | None:
        """Return the set numbers in the order of the member list, followed by the set of all other
        lifetimes.

        Return None if names matter to the strategy, or if it throws for a member.
        """
        strategy = self._strategies[key]
        if not strategy.by_place or (self._nameless and self._nameless & set(lifetimes.tolist())):
            return None
        sets = self._of_places.get((key, route, len(lifetimes)))
        if sets is None:
            names, queues = [str(n) for n in range(len(lifetimes))], self._mq_all(key, route)
            try:
                shares = [*strategy.allocate_all(queues, names).values()]
                shares.append(strategy.allocate("nobody", queues, names))
            except AllocationError:
                return None
            sets = np.array([self._number(route, share) for share in shares], np.int32)
            self._of_places[key, route, len(lifetimes)] = sets
        return sets

    def _number(self, route: int, queues: list[MessageQueue]) -> int:
        numbers = self._numbers[route]
        if not numbers.keys() >= set(queues):
            raise UnlistedQueueError
        return self._sets.number(map(numbers.__getitem__, queues))
