"""What brokers and members know of a group with different subscriptions.

See rocketmq.md §6.1, §6.2.
"""

import numpy as np
from numpy.typing import NDArray

from rebalance_core.clockwork import draws
from rebalance_core.clockwork.batch.elements import Elements
from rebalance_core.clockwork.batch.futures import Futures, PlaySegment
from rebalance_core.clockwork.batch.known_routes import UNKNOWN, UNSUBSCRIBED, KnownRoutes, Polled
from rebalance_core.clockwork.batch.member_lists import MemberList, MemberLists
from rebalance_core.clockwork.batch.mixed_state import (
    NOTHING_HEARD,
    Calendar,
    EventKind,
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
from rebalance_core.model.clients import parse_version

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

    def of_pass(self, elements: Ints, at_us: Times) -> Ints:
        """Return the lists that a pass uses; `UNSUBSCRIBED` where it passes the topic by."""
        subscribed = self._mixed.subscriptions.has[self.subscriptions.codes_at(elements, at_us)]
        known = self.versions_at(elements, at_us)
        return np.where(subscribed[:, list(self._futures.topics)].T, known, UNSUBSCRIBED)

    def fetch(self, topic: int, elements: Ints, versions: Ints, end_us: Times) -> None:
        """Passes fetched versions, and know them from their end on."""
        got = versions != UNKNOWN
        self.fetched[topic][elements[got]] = versions[got]
        self._fetched_us[topic][elements[got]] = end_us[got]

    def reads(self, broker: int, elements: Ints, at_us: Times) -> NDArray[np.bool_]:
        """True where a broker is in a route that the element knows of a topic it subscribes."""
        codes = self.subscriptions.codes_at(elements, at_us)
        return np.asarray(self.read_with([broker], elements, at_us, codes)[0], bool)

    def read_with(
        self, brokers: list[int], elements: Ints, at_us: Times, codes: Ints
    ) -> NDArray[np.bool_]:
        """(brokers, n) the same, with sets of topics that are given by their numbers."""
        found = np.zeros((len(brokers), len(elements)), bool)
        for topic, has_broker in enumerate(self._has_broker):
            has_topic = has_broker[brokers]
            if has_topic.any():
                subscribed = self._mixed.subscriptions.has[codes, topic]
                found |= subscribed & has_topic[:, self.at(topic, elements, at_us)]
        return found

    def keep(self) -> None:
        """Hand over to the next segment what passes fetched."""
        super().keep()
        shape = len(self._versions), len(self._lives), len(self._futures.seeds)
        self._mixed.fetched_us[:, self._lives] = self._fetched_us.reshape(shape)

    def _blind(self, segment: PlaySegment) -> NDArray[np.bool_]:
        return np.ones(self.fetched.shape[1], bool)

    def _learn(self, topic: int, segment: PlaySegment) -> list[Polled]:
        """All versions, and when polls bring them."""
        ticks, lives = self._futures.ticks, self._lives
        created = ticks.created[lives]
        visible = [row + ticks.route_lag[lives] for row in ticks.route_visible_us[topic]]
        after = [*visible[1:], np.full(created.shape, NEVER, np.int64)]
        found: list[Polled] = []
        for number, version in enumerate(self._versions[topic]):
            at = np.full(created.shape, NEVER, np.int64)
            if not version.gone:
                current = (visible[number] <= created) & (created < after[number])
                current |= self._from_start(version)
                current &= self.subscriptions.state_has(0, topic)
                at = self._polled(topic, visible[number], after[number])
                at = np.where(current, BEFORE_ALL, at)
            never = np.full(created.size, NEVER, np.int64)
            found.append(Polled(number, visible[number].ravel(), at.ravel(), never))
        return found

    def _polled(self, topic: int, visible: Times, until: Times) -> Times:
        """(lives, S) when the first poll that is answered with a version has brought it."""
        subscriptions = self.subscriptions
        first = self._futures.ticks.timers_start[self._lives] + FIRST_POLL_US
        period = self._futures.ticks.periods.poll[self._lives]
        found = np.full(first.shape, NEVER, np.int64)
        for state, since in enumerate(subscriptions.since):
            subscribed = subscriptions.state_has(state, topic)
            if not subscribed.any():
                continue
            ends = subscriptions.since[state + 1] if state + 1 < len(subscriptions.since) else NEVER
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
"""By `EventKind`: what a broker tells if something is new."""
_AGAIN = 3
_IS_HEARTBEAT = np.isin(
    np.arange(len(EventKind)), (EventKind.SUBSCRIBES, EventKind.TICKS, EventKind.CHANGES)
)
"""By `EventKind`."""


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
        agenda: Calendar, wakes: Wakes, mixed: MixedState,
    ) -> None:  # fmt: skip
        self._elements, self._routes, self._lists = elements, routes, lists
        self._agenda, self._wakes, self._mixed = agenda, wakes, mixed
        futures, lives = elements.futures, elements.lives
        self._words = futures.ticks.words[lives]
        version = parse_version(futures.script.settings.broker_version)
        self._newest_wins = version >= NEWEST_NOTICE_WINS
        tells = [not futures.traits[life].broadcasting for life in lives.tolist()]
        self._tells = np.array(tells, bool) | (version < BROADCASTING_IS_SILENT)
        self._notified = futures.script.settings.notified
        self._lost = np.uint64(round(futures.options.lost_notices * (1 << draws.DRAW_BITS)))
        self._operations = np.array([self._operations_of(place) for place in lists], np.int64)
        self._notices_count = ~futures.deaf[lives][:, None]
        self._stack(lists)

    def _stack(self, lists: list[MemberList]) -> None:
        """All lists as one array each: (lists, lives x S), or (lists, S)."""
        self._numbers = np.array([place.number for place in lists], np.int64)
        self._brokers = [place.broker for place in lists]
        if not lists:
            return
        self._until, self._joining, self._joins, self._since, self._fed = (
            np.stack([getattr(place, name).reshape(-1) for place in lists])
            for name in ("until", "joining", "joins", "since", "fed")
        )
        for place, since, fed in zip(lists, self._since, self._fed, strict=True):
            place.since, place.fed = (x.reshape(place.since.shape) for x in (since, fed))
        self._up, self._down, self._end_notified = (
            np.stack([getattr(place, name) for place in lists])
            for name in ("up", "down", "notified")
        )

    def hear(self, seen: Seen) -> NDArray[np.bool_]:
        """Let brokers see one event in each of some futures; True where one told somebody."""
        if not self._lists:
            return np.zeros(len(seen.seed), bool)
        elements, seed, at, life = self._elements, seen.seed, seen.at_us, seen.life
        who = life * len(elements.futures.seeds) + seed
        codes = self._routes.subscriptions.codes_at(who, at)
        states = seen.kind == EventKind.SUBSCRIBES
        codes[states] = self._routes.subscriptions.codes[seen.number[states], life[states]]
        # who changes its topics and goes in one instant does so in this order
        beats = _IS_HEARTBEAT[seen.kind] & (at < elements.ended[who] + states)
        # from here on (lists, futures)
        since, until = self._since[:, who], self._until[:, who]
        connected = (self._up[:, seed] <= at) & (at < self._down[:, seed])
        hears = connected & (self._joining[:, who] <= at)
        reads = beats & hears & self._routes.read_with(self._brokers, who, at, codes)
        listed = (since <= at) & (at < until)
        new = reads & ~listed
        asks = seen.kind == EventKind.ASKS
        if asks.any():
            new |= self._asked(asks, seen) & hears & (at < elements.ended[who]) & ~listed
        joins = (seen.kind == EventKind.JOINS) & (since == at) & self._joins[:, who]
        if new.any():
            number, row = np.nonzero(new)
            self._since[number, who[row]], self._fed[number, who[row]] = at[row], True
        goes = (seen.kind == EventKind.GOES) & (until == at) & (since < until)
        goes &= connected & self._end_notified[:, life]
        before = self._mixed.heard[self._numbers[:, None], seed]
        number, row = np.nonzero(reads | new | joins)
        self._mixed.heard[self._numbers[number], seed[row]] = codes[row]
        differs = reads & listed & (before != codes) & (before != NOTHING_HEARD)
        tells = ((differs | new | joins) & self._notified | goes) & self._tells[life]
        if elements.futures.script.notices:
            tells &= [elements.futures.ticks.tells(broker, seed, at) for broker in self._brokers]
        number, row = np.nonzero(tells)
        if len(row):
            self._tell(number, seen.rows(row), new[number, row])
        return np.asarray(tells.any(axis=0), bool)

    def _asked(self, asks: NDArray[np.bool_], seen: Seen) -> NDArray[np.bool_]:
        """(lists, futures) the event is that a broker was asked; it is one no more."""
        asked = self._agenda.channel_us
        found: NDArray[np.bool_] = asks & (asked[:, seen.life, seen.seed] == seen.at_us)
        number, row = np.nonzero(found)
        asked[number, seen.life[row], seen.seed[row]] = NEVER
        return found

    def _tell(self, number: Ints, seen: Seen, again: NDArray[np.bool_]) -> None:
        """Send NOTIFY_CONSUMER_IDS_CHANGED to all in a list; ``number`` of each event's, rising."""
        seed, at = seen.seed, seen.at_us
        numbered = _IS_HEARTBEAT[seen.kind] & ~again
        ticks = self._operations[number, np.where(again, _AGAIN, seen.kind), seen.life]
        ticks = ticks + np.where(numbered, seen.number, 0)
        elements, words, shape = self._elements, self._words[:, seed], self._words.shape
        since, until = (
            times.reshape(-1, *shape)[number, :, seed].T for times in (self._since, self._until)
        )
        listed = (since <= at) & (at < until) & self._notices_count
        woken = at + draws.NOTICE.many(draws.draws_of(words, Timer.NOTICE, ticks))
        woken = elements.futures.woken((elements.lives[:, None], seed), woken)
        if self._lost:
            listed &= draws.draws_of(words, Timer.NOTICE_LOST, ticks) >= self._lost
        woken = np.where(listed, woken, NEVER)
        used = elements.used.reshape(shape)[:, seed]
        soonest = (elements.last_end + elements.min_interval).reshape(shape)[:, seed]
        # no clock comes to rest before that pass, and no newer notice keeps these back
        sure = (elements.last_end + elements.min_interval < elements.rest) & (
            elements.asks_us == NEVER
        )
        as_one = np.where(sure.reshape(shape)[:, seed], soonest, BEFORE_ALL)
        # of one instant, what the timers and passes send comes after notices
        from_us = at + (seen.kind >= EventKind.TICKS)
        if self._newest_wins:
            as_one = np.minimum(as_one, at)
        for each in np.flatnonzero(np.bincount(number)).tolist():
            part = slice(*np.searchsorted(number, (each, each + 1)))
            seeds, broker = seed[part], self._brokers[each]
            if self._newest_wins:
                told_us = self._mixed.told_us[broker]
                newer = told_us[seeds] < at[part]
                self._wakes.cancel(broker, seeds[newer], from_us[part][newer])
                told_us[seeds] = at[part]
            self._wakes.put(broker, seeds, woken[:, part], used[:, part], as_one[:, part])

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
