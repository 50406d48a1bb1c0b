"""What brokers take a group to subscribe, and whom they tell that it changed (rocketmq.md §6.2).

Upstream: ``ConsumerGroupInfo.updateSubscription``, as `loop.membership` has it: the topics that a
heartbeat names become the group's, and a topic that is new, or missing, is told to everybody.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rebalance_core.clockwork.batch.elements import Elements
from rebalance_core.clockwork.batch.member_lists import MemberList
from rebalance_core.clockwork.batch.mixed.agenda import Agenda, Kind, Seen
from rebalance_core.clockwork.batch.mixed.known_routes import SubscribedRoutes
from rebalance_core.clockwork.batch.mixed.state import NOTHING_HEARD, MixedState
from rebalance_core.clockwork.batch.mixed.wakes import Wakes
from rebalance_core.clockwork.draws import (
    DRAW_BITS,
    NOTICE,
    Operation,
    Timer,
    draws_of,
    operation_id,
)
from rebalance_core.clockwork.loop.membership import BROADCASTING_IS_SILENT, NEWEST_NOTICE_WINS
from rebalance_core.clockwork.ticks import BEFORE_ALL, NEVER
from rebalance_core.model.versions import parse_version

Ints = NDArray[np.int64]
_OPERATIONS = (
    Operation.SUBSCRIBES, Operation.JOINS, Operation.GOES, Operation.AGAIN, Operation.TICKS,
    Operation.CHANGES,
)  # fmt: skip
"""By `Kind`: what a broker tells if something is new."""
_AGAIN = 3
_IS_HEARTBEAT = np.isin(np.arange(len(Kind)), (Kind.SUBSCRIBES, Kind.TICKS, Kind.CHANGES))
"""By `Kind`."""


class TopicTables:
    """The tables of topics of all brokers, over a segment.

    Args:
        elements: of the segment.
        routes: what they know.
        lists: of the brokers.
        agenda: of the segment.
        wakes: where notices are put down.
        mixed: what brokers heard before.
    """

    def __init__(
        self, elements: Elements, routes: SubscribedRoutes, lists: list[MemberList],
        agenda: Agenda, wakes: Wakes, mixed: MixedState,
    ) -> None:  # fmt: skip
        self._elements, self._routes, self._lists = elements, routes, lists
        self._agenda, self._wakes, self._mixed = agenda, wakes, mixed
        futures, lives = elements.futures, elements.lives
        self._words = futures.words[lives]
        version = parse_version(futures.script.settings.broker_version)
        self._newest_wins = version >= NEWEST_NOTICE_WINS
        tells = [not futures.traits[life].broadcasting for life in lives.tolist()]
        self._tells = np.array(tells, bool) | (version < BROADCASTING_IS_SILENT)
        self._lost = np.uint64(round(futures.options.lost_notices * (1 << DRAW_BITS)))
        self._operations = [self._operations_of(place) for place in lists]

    def hear(self, seen: Seen) -> NDArray[np.bool_]:
        """Let brokers see one event in each of some futures; True where one told somebody."""
        told = np.zeros(len(seen.seed), bool)
        its, seeds = self._elements, len(self._elements.futures.seeds)
        who = seen.life * seeds + seen.seed
        codes = self._routes.subscriptions.codes_at(who, seen.at_us)
        states = seen.kind == Kind.SUBSCRIBES
        codes[states] = self._routes.subscriptions.codes[seen.number[states], seen.life[states]]
        # who changes its topics and goes in one instant does so in this order
        beats = _IS_HEARTBEAT[seen.kind] & (seen.at_us < its.ended[who] + states)
        for number, place in enumerate(self._lists):
            since, until = place.since.reshape(-1)[who], place.until.reshape(-1)[who]
            there = (place.up[seen.seed] <= seen.at_us) & (seen.at_us < place.down[seen.seed])
            hears = there & (place.joining.reshape(-1)[who] <= seen.at_us)
            rows = np.flatnonzero(beats & hears)
            reads = np.zeros(len(who), bool)
            reads[rows] = self._routes.reads_with(
                place.broker, who[rows], seen.at_us[rows], codes[rows]
            )
            listed = (since <= seen.at_us) & (seen.at_us < until)
            asks = (seen.kind == Kind.ASKS) & self._asked(number, seen)
            asks &= hears & (seen.at_us < its.ended[who])
            new = (reads | asks) & ~listed
            if new.any():
                place.since.reshape(-1)[who[new]] = seen.at_us[new]
                place.fed.reshape(-1)[who[new]] = True
            joins = (seen.kind == Kind.JOINS) & (since == seen.at_us)
            joins &= place.joins.reshape(-1)[who]
            goes = (seen.kind == Kind.GOES) & (until == seen.at_us) & (since < until)
            goes &= there & place.told[seen.life]
            names = reads | new | joins
            heard = self._mixed.heard[place.number]
            before = heard[seen.seed]
            heard[seen.seed[names]] = codes[names]
            differs = reads & listed & (before != codes) & (before != NOTHING_HEARD)
            tells = (differs | new | joins | goes) & self._tells[seen.life]
            told |= tells
            rows = np.flatnonzero(tells)
            if len(rows):
                self._tell(number, seen.rows(rows), new[rows])
        return told

    def _asked(self, number: int, seen: Seen) -> NDArray[np.bool_]:
        """True where the event is that a broker was asked; it is one no more."""
        asked = self._agenda.channel_us[number]
        found: NDArray[np.bool_] = asked[seen.life, seen.seed] == seen.at_us
        found &= seen.kind == Kind.ASKS
        asked[seen.life[found], seen.seed[found]] = NEVER
        return found

    def _tell(self, number: int, seen: Seen, again: NDArray[np.bool_]) -> None:
        """NOTIFY_CONSUMER_IDS_CHANGED to everybody in a list."""
        place, seed, at = self._lists[number], seen.seed, seen.at_us
        if self._newest_wins:
            # of one instant, what the timers and passes send comes after notices
            from_us = at + (seen.kind >= Kind.TICKS)
            told_us = self._mixed.told_us[place.broker]
            newer = told_us[seed] < at
            self._wakes.cancel(place.broker, seed[newer], from_us[newer])
            told_us[seed] = at
        numbered = _IS_HEARTBEAT[seen.kind] & ~again
        ticks = self._operations[number][np.where(again, _AGAIN, seen.kind), seen.life]
        ticks = ticks + np.where(numbered, seen.number, 0)
        words = self._words[:, seed]
        listed = (place.since[:, seed] <= at) & (at < place.until[:, seed])
        woken = at + NOTICE.many(draws_of(words, Timer.NOTICE, ticks))
        if self._lost:
            listed &= draws_of(words, Timer.NOTICE_LOST, ticks) >= self._lost
        its, shape = self._elements, self._words.shape
        used = its.used.reshape(shape)[:, seed]
        soonest = (its.last_end + its.min_interval).reshape(shape)[:, seed]
        # no clock comes to rest before that pass, and no newer notice keeps these back
        sure = (its.last_end + its.min_interval < its.rest) & (its.asks_us == NEVER)
        as_one = np.where(sure.reshape(shape)[:, seed], soonest, BEFORE_ALL)
        if self._newest_wins:
            as_one = np.minimum(as_one, at)
        self._wakes.put(place.broker, seed, np.where(listed, woken, NEVER), used, as_one)

    def _operations_of(self, place: MemberList) -> Ints:
        """(kinds, lives) the ticks of draws of what a broker tells."""
        script = self._elements.futures.script
        name = script.brokers[place.broker]
        entities = [script.lives[life].entity for life in self._elements.lives.tolist()]
        return np.array(
            [
                [operation_id(entity, name, place.number, operation) for entity in entities]
                for operation in _OPERATIONS
            ],
            np.int64,
        )
