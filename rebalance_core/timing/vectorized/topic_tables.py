"""What brokers know about a group's subscriptions, and which members they notify of changes
(rocketmq.md §6.2).

Upstream: ``ConsumerGroupInfo.updateSubscription``, as in `reference.membership`: the topics that a
heartbeat names become the group's, and the broker notifies every member of a new or missing topic.
"""

import numpy as np
from numpy.typing import NDArray

from rebalance_core.kernels.segments import Ints
from rebalance_core.model.versions import parse_version
from rebalance_core.timing import delays, draws, operations
from rebalance_core.timing.draws import Timer
from rebalance_core.timing.operations import Operation
from rebalance_core.timing.reference.membership import BROADCASTING_IS_SILENT, NEWEST_NOTICE_WINS
from rebalance_core.timing.timer_periods import (
    BEFORE_ALL,
    NEVER,
)
from rebalance_core.timing.vectorized.elements import Elements
from rebalance_core.timing.vectorized.event_calendar import Calendar, EventKind, Seen
from rebalance_core.timing.vectorized.member_lists import MemberList
from rebalance_core.timing.vectorized.mixed_state import NO_SUBSCRIPTION_YET, MixedState
from rebalance_core.timing.vectorized.mixed_wakes import Wakes
from rebalance_core.timing.vectorized.subscribed_routes import SubscribedRoutes

_OPERATIONS = (
    Operation.SUBSCRIBES,
    Operation.JOINS,
    Operation.GOES,
    Operation.AGAIN,
    Operation.TICKS,
    Operation.CHANGES,
)
"""For each `EventKind`, the operation to which notices belong if the event brings a change."""
_AGAIN = 3
_IS_HEARTBEAT = np.isin(
    np.arange(len(EventKind)), (EventKind.SUBSCRIBES, EventKind.TICKS, EventKind.CHANGES)
)
"""By `EventKind`."""


class TopicTables:
    """The topic tables of all brokers over a segment.

    Args:
        elements: the elements of the segment.
        routes: the routes that they know.
        lists: the lists of the brokers.
        agenda: the calendar of the segment.
        wakes: receives notices.
        mixed: what brokers knew before the segment.
    """

    def __init__(
        self,
        elements: Elements,
        routes: SubscribedRoutes,
        lists: list[MemberList],
        agenda: Calendar,
        wakes: Wakes,
        mixed: MixedState,
    ) -> None:
        self._elements, self._routes, self._lists = elements, routes, lists
        self._agenda, self._wakes, self._mixed = agenda, wakes, mixed
        futures, lifetimes = elements.futures, elements.lifetimes
        self._words = futures.ticks.words[lifetimes]
        version = parse_version(futures.timeline.settings.broker_version)
        self._newest_wins = version >= NEWEST_NOTICE_WINS
        notifies = [not futures.traits[lifetime].broadcasting for lifetime in lifetimes.tolist()]
        self._notifies = np.array(notifies, bool) | (version < BROADCASTING_IS_SILENT)
        self._notified = futures.timeline.settings.notified
        self._lost = np.uint64(round(futures.options.lost_notices * (1 << draws.DRAW_BITS)))
        self._operations = np.array([self._operations_of(place) for place in lists], np.int64)
        self._notices_count = ~futures.unnotified[lifetimes][:, None]
        self._stack(lists)

    def _stack(self, lists: list[MemberList]) -> None:
        """Stack the arrays of all lists, as (lists, lifetimes x S) or (lists, S)."""
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

    def on_heartbeats(self, seen: Seen) -> NDArray[np.bool_]:
        """Let brokers see one event in each given future; return whether a member was notified."""
        if not self._lists:
            return np.zeros(len(seen.seed), bool)
        elements, seed, seen_us, lifetime = self._elements, seen.seed, seen.at_us, seen.lifetime
        who = lifetime * len(elements.futures.seeds) + seed
        codes = self._routes.subscriptions.codes_at(who, seen_us)
        states = seen.kind == EventKind.SUBSCRIBES
        codes[states] = self._routes.subscriptions.codes[seen.number[states], lifetime[states]]
        # a client that changes its topics and leaves at the same instant does so in this order
        beats = _IS_HEARTBEAT[seen.kind] & (seen_us < elements.ended[who] + states)
        # arrays below are (lists, futures)
        since, until = self._since[:, who], self._until[:, who]
        connected = (self._up[:, seed] <= seen_us) & (seen_us < self._down[:, seed])
        reached = connected & (self._joining[:, who] <= seen_us)
        reads = beats & reached & self._routes.read_with(self._brokers, who, seen_us, codes)
        listed = (since <= seen_us) & (seen_us < until)
        new = reads & ~listed
        asks = seen.kind == EventKind.ASKS
        if asks.any():
            new |= self._asked(asks, seen) & reached & (seen_us < elements.ended[who]) & ~listed
        joins = (seen.kind == EventKind.JOINS) & (since == seen_us) & self._joins[:, who]
        if new.any():
            number, row = np.nonzero(new)
            self._since[number, who[row]], self._fed[number, who[row]] = seen_us[row], True
        goes = (seen.kind == EventKind.GOES) & (until == seen_us) & (since < until)
        goes &= connected & self._end_notified[:, lifetime]
        before = self._mixed.heard[self._numbers[:, None], seed]
        number, row = np.nonzero(reads | new | joins)
        self._mixed.heard[self._numbers[number], seed[row]] = codes[row]
        differs = reads & listed & (before != codes) & (before != NO_SUBSCRIPTION_YET)
        notifies = ((differs | new | joins) & self._notified | goes) & self._notifies[lifetime]
        if elements.futures.timeline.notices:
            notifies &= [
                elements.futures.ticks.notifies(broker, seed, seen_us) for broker in self._brokers
            ]
        number, row = np.nonzero(notifies)
        if len(row):
            self._tell(number, seen.rows(row), new[number, row])
        return np.asarray(notifies.any(axis=0), bool)

    def _asked(self, asks: NDArray[np.bool_], seen: Seen) -> NDArray[np.bool_]:
        """Return (lists, futures) whether the event is a request to the broker; clear it."""
        asked = self._agenda.channel_us
        questions: NDArray[np.bool_] = asks & (asked[:, seen.lifetime, seen.seed] == seen.at_us)
        number, row = np.nonzero(questions)
        asked[number, seen.lifetime[row], seen.seed[row]] = NEVER
        return questions

    def _tell(self, number: Ints, seen: Seen, again: NDArray[np.bool_]) -> None:
        """Send NOTIFY_CONSUMER_IDS_CHANGED to all members in a list; the events' ``number``
        ascends.
        """
        seed, seen_us = seen.seed, seen.at_us
        numbered = _IS_HEARTBEAT[seen.kind] & ~again
        ticks = self._operations[number, np.where(again, _AGAIN, seen.kind), seen.lifetime]
        ticks = ticks + np.where(numbered, seen.number, 0)
        elements, words, shape = self._elements, self._words[:, seed], self._words.shape
        since, until = (
            times.reshape(-1, *shape)[number, :, seed].T for times in (self._since, self._until)
        )
        listed = (since <= seen_us) & (seen_us < until) & self._notices_count
        woken = seen_us + delays.NOTICE.many(draws.draws_of(words, Timer.NOTICE, ticks))
        woken += elements.futures.options.one_way_us
        woken = elements.futures.woken((elements.lifetimes[:, None], seed), woken)
        if self._lost:
            listed &= draws.draws_of(words, Timer.NOTICE_LOST, ticks) >= self._lost
        woken = np.where(listed, woken, NEVER)
        used = elements.used.reshape(shape)[:, seed]
        soonest = (elements.last_end + elements.min_interval).reshape(shape)[:, seed]
        # no pass clock rests before that pass, and no newer notice suppresses these
        sure = (elements.last_end + elements.min_interval < elements.rest) & (
            elements.asks_us == NEVER
        )
        as_one = np.where(sure.reshape(shape)[:, seed], soonest, BEFORE_ALL)
        # within an instant, messages of timers and passes come after notices
        from_us = seen_us + (seen.kind >= EventKind.TICKS)
        if self._newest_wins:
            as_one = np.minimum(as_one, seen_us)
        for each in np.flatnonzero(np.bincount(number)).tolist():
            part = slice(*np.searchsorted(number, (each, each + 1)))
            seeds, broker = seed[part], self._brokers[each]
            if self._newest_wins:
                told_us = self._mixed.told_us[broker]
                newer = told_us[seeds] < seen_us[part]
                self._wakes.cancel(broker, seeds[newer], from_us[part][newer])
                told_us[seeds] = seen_us[part]
            self._wakes.put(broker, seeds, woken[:, part], used[:, part], as_one[:, part])

    def _operations_of(self, place: MemberList) -> Ints:
        """Return (kinds, lifetimes) the ticks for the draws of a broker's notices."""
        timeline = self._elements.futures.timeline
        name = timeline.brokers[place.broker]
        entities = [
            timeline.lifetimes[lifetime].entity for lifetime in self._elements.lifetimes.tolist()
        ]
        return np.array(
            [
                [
                    operations.operation_id(entity, name, place.number, operation)
                    for entity in entities
                ]
                for operation in _OPERATIONS
            ],
            np.int64,
        )
