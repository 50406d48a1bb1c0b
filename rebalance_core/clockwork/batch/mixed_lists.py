"""What brokers and members know of a group with different subscriptions.

See rocketmq.md §6.1, §6.2.
"""

import numpy as np
from numpy.typing import NDArray

from rebalance_core.clockwork import draws
from rebalance_core.clockwork.batch.elements import Elements
from rebalance_core.clockwork.batch.futures import Futures, PlaySegment
from rebalance_core.clockwork.batch.known_routes import UNKNOWN, UNSUBSCRIBED, KnownRoutes, Learned
from rebalance_core.clockwork.batch.member_lists import MemberList, MemberLists
from rebalance_core.clockwork.batch.mixed_state import (
    NOTHING_HEARD,
    Agenda,
    Kind,
    MixedState,
    Seen,
    Wakes,
)
from rebalance_core.clockwork.draws import Operation, Timer
from rebalance_core.clockwork.loop.membership import BROADCASTING_IS_SILENT, NEWEST_NOTICE_WINS
from rebalance_core.clockwork.ticks import (
    BEFORE_ALL,
    FIRST_HEARTBEAT_US,
    FIRST_POLL_US,
    NEVER,
    Times,
)
from rebalance_core.model.versions import parse_version

# What members know of the routes of topics that they subscribe now, or did (rocketmq.md §6.1).
#
# A poll asks for the topics that are subscribed at its tick, and heartbeats go to the brokers of
# their routes. What is known of a topic that is subscribed no more is not forgotten.

Ints = NDArray[np.int64]


class SubscribedRoutes(KnownRoutes):
    """`KnownRoutes` of members that subscribe differently.

    Args:
        futures: of the script.
        segment: which part of it.
        lives: numbers of the lives; elements are ordered by life, then by future.
        mixed: who subscribes what.
    """

    def __init__(
        self, futures: Futures, segment: PlaySegment, lives: Ints, mixed: MixedState
    ) -> None:
        self._mixed = mixed
        self.subscriptions = mixed.subscriptions.of(lives)
        self._fetched_us = mixed.fetched_us[:, lives].reshape(
            len(futures.script.routes), len(lives) * len(futures.seeds)
        )
        super().__init__(futures, segment, lives)

    def at(self, topic: int, elements: Ints, at_us: Times) -> Ints:
        """The version of a topic's route that each element knows; `UNKNOWN`."""
        fetched = self.fetched[topic][elements].astype(np.int64)
        known = np.where(self._fetched_us[topic][elements] <= at_us, fetched, UNKNOWN)
        return self._with_lessons(topic, elements, at_us, known)

    def of_pass(self, topic: int, elements: Ints, at_us: Times) -> Ints:
        """Return the lists that a pass uses; `UNSUBSCRIBED` where it passes the topic by."""
        subscribed = self.subscriptions.has(topic, elements, at_us)
        return np.where(subscribed, self.at(topic, elements, at_us), UNSUBSCRIBED)

    def fetch(self, topic: int, elements: Ints, versions: Ints, end_us: Times) -> None:
        """Passes fetched versions, and know them from their end on."""
        got = versions != UNKNOWN
        self.fetched[topic][elements[got]] = versions[got]
        self._fetched_us[topic][elements[got]] = end_us[got]

    def reads(self, broker: int, elements: Ints, at_us: Times) -> NDArray[np.bool_]:
        """True where a broker is in a route that the element knows of a topic it subscribes."""
        codes = self.subscriptions.codes_at(elements, at_us)
        return self.reads_with(broker, elements, at_us, codes)

    def reads_with(
        self, broker: int, elements: Ints, at_us: Times, codes: Ints
    ) -> NDArray[np.bool_]:
        """The same with sets of topics that are given by their numbers."""
        found = np.zeros(len(elements), bool)
        for topic, has_broker in enumerate(self._has_broker):
            if has_broker[broker].any():
                subscribed = self._mixed.subscriptions.has[codes, topic]
                found |= subscribed & has_broker[broker][self.at(topic, elements, at_us)]
        return found

    def keep(self) -> None:
        """Hand over to the next segment what passes fetched."""
        super().keep()
        shape = len(self._versions), len(self._lives), len(self._futures.seeds)
        self._mixed.fetched_us[:, self._lives] = self._fetched_us.reshape(shape)

    def _blind(self, segment: PlaySegment) -> NDArray[np.bool_]:
        return np.ones(self.fetched.shape[1], bool)

    def _learn(self, topic: int, segment: PlaySegment) -> list[Learned]:
        """All versions, and when polls bring them."""
        ticks, lives = self._futures.ticks, self._lives
        created = ticks.created[lives]
        visible = [row + ticks.route_lag[lives] for row in ticks.route_visible_us(topic)]
        after = [*visible[1:], np.full(created.shape, NEVER, np.int64)]
        found: list[Learned] = []
        for number, version in enumerate(self._versions[topic]):
            at = np.full(created.shape, NEVER, np.int64)
            if not version.gone:
                there = (visible[number] <= created) & (created < after[number])
                there |= self._from_start(version)
                there &= self.subscriptions.state_has(0, topic)
                at = self._polled(topic, visible[number], after[number])
                at = np.where(there, BEFORE_ALL, at)
            never = np.full(created.size, NEVER, np.int64)
            found.append(Learned(number, visible[number].ravel(), at.ravel(), never))
        return found

    def _polled(self, topic: int, visible: Times, until: Times) -> Times:
        """(lives, S) when the first poll that is answered with a version has brought it."""
        its = self.subscriptions
        first = self._futures.ticks.timers_start[self._lives] + FIRST_POLL_US
        period = self._futures.ticks.periods.poll[self._lives]
        found = np.full(first.shape, NEVER, np.int64)
        for state, since in enumerate(its.since):
            subscribed = its.state_has(state, topic)
            if not subscribed.any():
                continue
            ends = its.since[state + 1] if state + 1 < len(its.since) else NEVER
            number = np.maximum(-((first - np.maximum(visible, since)) // period), 0)
            tick = first + number * period
            asks = subscribed & (tick < np.minimum(until, ends)) & (since < NEVER)
            answered = self._answered(np.where(asks, number, 0))
            found = np.where(asks, np.minimum(found, answered), found)
        return found


# What brokers take a group to subscribe, and whom they tell that it changed (rocketmq.md §6.2).
#
# Upstream: ``ConsumerGroupInfo.updateSubscription``, as `loop.membership` has it: the topics that
# a heartbeat names become the group's, and a topic that is new, or missing, is told to everybody.

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
        self._notified = futures.script.settings.notified
        self._lost = np.uint64(round(futures.options.lost_notices * (1 << draws.DRAW_BITS)))
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
            tells = ((differs | new | joins) & self._notified | goes) & self._tells[seen.life]
            tells &= self._elements.futures.ticks.tells(place.broker, seen.seed, seen.at_us)
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
        its, words = self._elements, self._words[:, seed]
        listed = (place.since[:, seed] <= at) & (at < place.until[:, seed])
        listed &= ~its.futures.deaf[its.lives][:, None]
        woken = at + draws.NOTICE.many(draws.draws_of(words, Timer.NOTICE, ticks))
        woken = its.futures.woken((its.lives[:, None], seed), woken)
        if self._lost:
            listed &= draws.draws_of(words, Timer.NOTICE_LOST, ticks) >= self._lost
        shape = self._words.shape
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
                [draws.operation_id(entity, name, place.number, operation) for entity in entities]
                for operation in _OPERATIONS
            ],
            np.int64,
        )


# Member lists that heartbeats fill as they come.


class OpenLists(MemberLists):
    """`MemberLists` where a list is fresh as long as somebody may still register.

    Args:
        futures: of the script.
        segment: which part of it.
        lives: numbers of the lives.
        routes: what the lives know.
        mixed: who subscribes what.
    """

    def __init__(
        self, futures: Futures, segment: PlaySegment, lives: NDArray[np.int64], routes: KnownRoutes,
        mixed: MixedState,
    ) -> None:  # fmt: skip
        self._mixed = mixed
        super().__init__(futures, segment, lives, routes)

    def _again(
        self, broker: int, since: Times, open_us: Times, down: Times, ended: Times
    ) -> tuple[Times, Times | None]:
        """Registrations while nothing was followed, and who may register yet."""
        missing = since >= NEVER
        may_read = [self._mixed.may_read(life, broker) for life in self._lives.tolist()]
        missing &= np.array(may_read, bool)[:, None]
        if not missing.any():
            return since, None
        begin = self._segment.begin_us
        if self._segment.after_gap and not self._segment.is_first:
            beat = self._last_beat(begin)
            beats = missing & (beat > self._mixed.followed_us) & (ended > begin)
            beats &= (open_us <= begin) & (begin < down)
            everyone = np.arange(self._size)
            reads = self._routes.reads(broker, everyone, beat.ravel()).reshape(since.shape)
            since = np.where(beats & reads, np.maximum(beat, open_us), since)
            missing &= since >= NEVER
        open_ = missing & (down > begin) & (open_us < self._heard_us) & (ended > begin)
        return since, np.where(open_, BEFORE_ALL, NEVER) if open_.any() else None

    def _last_beat(self, at_us: int) -> Times:
        """(lives, S) the last tick of a heartbeat at or before a time; `BEFORE_ALL`: none."""
        first = self._futures.ticks.beats_start[self._lives] + FIRST_HEARTBEAT_US
        period = self._futures.ticks.periods.beat[self._lives]
        number = (at_us - first) // period
        return np.where(number < 0, BEFORE_ALL, first + number * period)
