"""Times that no pass can change, of many futures at once: joins, endings, registrations, ticks.

Arrays have the seeds as their last axis and hold microseconds since the epoch. Begin with `Ticks`.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from rebalance_core.clockwork.draws import (
    BROKER_BACK,
    BROKER_BACK_4,
    BROKER_GONE,
    BROKER_GONE_4,
    CHANNEL_CLOSE,
    CLOSE_STEP,
    DRAW_BITS,
    LAST_LEAD,
    LEAVE_BEGIN,
    LEAVE_BEGIN_TOGETHER,
    LEAVES_TOGETHER_US,
    LONGEST_LEAD_MS,
    NOTICE_TOGETHER,
    PASS_LENGTH,
    REGISTRATION_STEP,
    ROUTE_ANSWER,
    SHORTEST_SILENCE_US,
    SILENCE_SPREAD_US,
    START_UP,
    START_UP_ALIKE,
    STARTED_TOGETHER_US,
    STOP_AFTER,
    TIMERS_AFTER,
    TOPIC_VISIBLE,
    UNLOCK_TOGETHER,
    UNREGISTRATION_NEXT,
    UNREGISTRATION_STEP,
    Delay,
    Timer,
    all_below,
    draws_of,
    uniforms,
    words_of,
)
from rebalance_core.clockwork.options import MS_US, RANDOM_PHASES, SECOND_US, ClockOptions
from rebalance_core.clockwork.script import Life, LoggedTime, RouteVersion, Script, came_first
from rebalance_core.model.clients import parse_version
from rebalance_core.model.events import OFF
from rebalance_core.model.group_settings import LITE_PULL, PULL
from rebalance_core.model.times import CHANNEL_SCAN_MS, LOCK_RENEWAL_MS, ROUTE_POLL_MS
from rebalance_core.producers.routes import ConcurrentMapOrder, java_hash

# Arrays of times, and the periods of the timers of a client.

Times = NDArray[np.int64]

NEVER = np.iinfo(np.int64).max // 2
"""Later than everything."""
BEFORE_ALL = -NEVER
"""From before the log."""

POLL_US = ROUTE_POLL_MS * MS_US
"""Of brokers; clients may have other intervals, as `TimerPeriods` has them."""
LOCK_RENEWAL_US = LOCK_RENEWAL_MS * MS_US
MIN_INTERVAL = (5, 2, 0)  # ISSUE #7644
"""From here on a pass that is not balanced is repeated after a second (rocketmq.md §3.1)."""
FIRST_POLL_US = 10 * MS_US
"""MQClientInstance.startScheduledTask: initial delay of the route poll."""
FIRST_HEARTBEAT_US = 1 * SECOND_US
"""MQClientInstance.startScheduledTask: initial delay of the heartbeat."""
FIRST_COMMIT_US = 10 * SECOND_US
"""MQClientInstance.startScheduledTask: initial delay of persistAllConsumerOffset."""
FIRST_LOCK_RENEWAL_US = 1 * SECOND_US
"""ConsumeMessageOrderlyService.start: initial delay of lockMQPeriodically."""


@dataclass(frozen=True, eq=False)
class TimerPeriods:
    """(lives, 1) from tick to tick of each client's timers, microseconds.

    Attributes:
        poll: of routes.
        beat: heartbeats.
        wait: from pass to pass of a client whom nobody wakes.
        least: between two passes (5.2+).
    """

    poll: Times
    beat: Times
    wait: Times
    least: Times

    @classmethod
    def of(cls, lives: Sequence[Life]) -> TimerPeriods:
        """As their intervals are. A wait is no shorter than the least interval allows."""
        rows = []
        for life in lives:
            intervals, version = life.intervals, parse_version(life.states[0][1].rules_version)
            least = intervals.min_interval_ms if version >= MIN_INTERVAL else 0
            wait = max(intervals.wait_interval_ms, least)
            rows.append((intervals.poll_name_server_interval_ms,
                         intervals.heartbeat_broker_interval_ms, wait, least))  # fmt: skip
        columns = np.array(rows, np.int64).reshape(-1, 4) * MS_US
        return cls(*(columns[:, place : place + 1] for place in range(4)))


# When what the log tells of happened: events are known to the millisecond, or to the second.


@dataclass(frozen=True)
class EventTimes:
    """Times of events.

    Attributes:
        script: what happens.
        seeds: (S,) of the futures.
        options: what was asked for.
    """

    script: Script
    seeds: NDArray[np.int64]
    options: ClockOptions

    @cached_property
    def periods(self) -> TimerPeriods:
        """Return the periods of the timers of each life."""
        return TimerPeriods.of(self.script.lives)

    def true_us(self, moment: LoggedTime) -> Times:
        """(S,) when an event happened."""
        if not moment.to_the_second:
            return np.full(len(self.seeds), moment.event_us, np.int64)
        draws = uniforms(self.seeds, moment.entity, Timer.EVENT_CLOCK)
        return moment.event_us + all_below(draws, SECOND_US)

    def states_us(self, life: Life) -> list[Times]:
        """(S,) by state of a life: since when it holds; never before the one before it."""
        since = [self.joined[life.index]]
        for moment, _ in life.states[1:]:
            since.append(np.maximum(since[-1], self.true_us(moment)))
        return since

    @cached_property
    def joined(self) -> Times:
        """(lives, S): the joins."""
        return self._by_life([self.true_us(life.joined) for life in self.script.lives])

    @cached_property
    def ended(self) -> Times:
        """(lives, S): the ends, `NEVER` for a process that stays; not before the last state.

        Of a graceful leave, when ``shutdown()`` begins: nothing is read from then on. Those that
        the log has at the same time begin one after the other, in an order that is drawn.
        """
        rows = []
        for life in self.script.lives:
            if life.ending is None:
                rows.append(np.full(len(self.seeds), NEVER, np.int64))
                continue
            at = np.maximum(self.states_us(life)[-1], self.true_us(life.ending.moment))
            if self._others_leaving(life, within_us=0):
                at += STOP_AFTER.many(draws_of(self.words[life.index], Timer.STOP_AFTER))
            rows.append(at)
        return self._by_life(rows)

    @cached_property
    def unlocked(self) -> Times:
        """(lives, S): when a process that leaves gracefully gives its order locks back."""
        rows = list(self.ended)
        for life in self.script.lives:
            others = self._others_leaving(life)
            if others:
                draws = draws_of(self.words[life.index], Timer.UNLOCK)
                rows[life.index] = rows[life.index] + others * UNLOCK_TOGETHER.many(draws)
        return self._by_life(rows)

    @cached_property
    def stopped(self) -> Times:
        """(lives, S): until when the passes of a process begin: to the end of its ``shutdown()``.

        A graceful leave is an interval: passes go on until the process unregisters.
        """
        rows = list(self.unlocked)
        for life in self.script.lives:
            if life.ending is None or not life.ending.graceful:
                continue
            draws = draws_of(self.words[life.index], Timer.LEAVE_BEGIN)
            others = self._others_leaving(life)
            length = others * LEAVE_BEGIN_TOGETHER.many(draws)
            rows[life.index] = rows[life.index] + (length if others else LEAVE_BEGIN.many(draws))
        return self._by_life(rows)

    @cached_property
    def notice_late(self) -> Times:
        """(lives, S): how much later a notice wakes a process once its ``shutdown()`` has begun."""
        shape = len(self.script.lives), len(self.seeds)
        late = np.zeros(shape, np.int64)
        for life in self.script.lives:
            if self._others_leaving(life):
                draws = draws_of(self.words[life.index], Timer.SLOW_NOTICE)
                late[life.index] = NOTICE_TOGETHER.many(draws)
        return late

    def _others_leaving(self, life: Life, within_us: int = LEAVES_TOGETHER_US) -> int:
        """How many others leave gracefully about when a life does, as the log has them."""
        if life.ending is None or not life.ending.graceful:
            return 0
        at_us = life.ending.moment.event_us
        low = bisect_left(self._leaves_us, at_us - within_us)
        return bisect_right(self._leaves_us, at_us + within_us) - low - 1

    @cached_property
    def _leaves_us(self) -> list[int]:
        """The graceful leaves of the log, in order."""
        endings = [life.ending for life in self.script.lives]
        return sorted(e.moment.event_us for e in endings if e is not None and e.graceful)

    def sightings_us(self, life: Life) -> list[Times]:
        """(S,) by sighting of a life; never before its join, nor before the one before it."""
        at = self.joined[life.index]
        found = []
        for sighting in life.sightings:
            at = np.maximum(at, self.true_us(sighting.moment))
            found.append(at)
        return found

    @cached_property
    def broker_lives_us(self) -> list[tuple[Times, Times]]:
        """By broker life: (S,) since when and until when; one after the other, as in the log.

        A lost host's ends before name servers notice it.
        """
        ended: dict[int, Times] = {}
        found = []
        for number, life in enumerate(self.script.broker_lives):
            up = ended.get(life.broker, np.full(len(self.seeds), BEFORE_ALL, np.int64))
            if life.up is not None:
                up = np.maximum(up, self.true_us(life.up))
            down = np.full(len(self.seeds), NEVER, np.int64)
            if life.down is not None:
                down = ended[life.broker] = np.maximum(up, self.true_us(life.down))
                if life.host_lost:
                    down = np.maximum(up, down - self._silence_us(number))
            found.append((up, down))
        return found

    @cached_property
    def lockless_us(self) -> list[tuple[Times, Times]]:
        """By stretch without order locks: (S,) since when and until when, as in the log."""
        ended: dict[int, Times] = {}
        found = []
        for stretch in self.script.lockless:
            since = self.true_us(stretch.since)
            since = np.maximum(since, ended.get(stretch.broker, since))
            until = np.full(len(self.seeds), NEVER, np.int64)
            if stretch.until is not None:
                until = ended[stretch.broker] = np.maximum(since, self.true_us(stretch.until))
            found.append((since, until))
        return found

    @cached_property
    def notices_us(self) -> list[Times]:
        """By switch of how a broker tells members: (S,) since when, as in the log."""
        since: dict[int, Times] = {}
        found = []
        for switch in self.script.notices:
            at = self.true_us(switch.since)
            at = since[switch.broker] = np.maximum(at, since.get(switch.broker, at))
            found.append(at)
        return found

    def tells(
        self, broker: int, seeds: NDArray[np.int64] | slice, at_us: Times
    ) -> NDArray[np.bool_]:
        """Return whether a broker tells members of what happens at times in futures at all."""
        found = np.ones(at_us.shape, bool)
        for switch, since in zip(self.script.notices, self.notices_us, strict=True):
            if switch.broker == broker:
                found = np.where(at_us >= since[seeds], switch.mode != OFF, found)
        return found

    def _silence_us(self, number: int) -> Times:
        entity = self.script.broker_entities[self.script.broker_lives[number].broker]
        draws = uniforms(self.seeds, entity, Timer.SILENCE, number)
        return SHORTEST_SILENCE_US + all_below(draws, SILENCE_SPREAD_US)

    @cached_property
    def words(self) -> NDArray[np.uint64]:
        """(lives, S) what the draws of a life begin with."""
        entities = np.array([life.entity for life in self.script.lives], np.uint64)
        return words_of(self.seeds, entities[:, None])

    def _by_life(self, rows: list[Times]) -> Times:
        return np.stack(rows) if rows else np.empty((0, len(self.seeds)), np.int64)


# When the timers of a client tick.

_SHARE_ALIKE = np.uint64(round(START_UP_ALIKE * (1 << DRAW_BITS)))


class ClientTimes(EventTimes):
    """Times of clients' timers.

    Groups of one client id share an instance, and with it the scheduler of the first of them.
    """

    @cached_property
    def mates(self) -> tuple[Ticks, ...]:
        """The times of the other groups of its client instances."""
        return tuple(Ticks(mate, self.seeds, self.options) for mate in self.script.together[1:])

    @cached_property
    def shared(self) -> NDArray[np.bool_]:
        """(lives,): other groups are in its instance at some time."""
        return np.array([bool(mates) for mates in self.script.sharing], bool)

    @cached_property
    def _leaders(self) -> dict[int, tuple[Ticks, Life]]:
        """By life whose instance was there before it: who created that."""
        found = {}
        for life, shared in zip(self.script.lives, self.script.sharing, strict=True):
            before = [(n, each) for n, each in shared if came_first(each) < came_first(life)]
            if before:
                number, first = min(before, key=lambda one: came_first(one[1]))
                found[life.index] = self.mates[number], first
        return found

    @cached_property
    def created(self) -> Times:
        """(lives, S): when the client was created."""
        start_up = START_UP.many(self._start_up_draws())
        if self.options.start_up_ms is not None:
            start_up = np.full_like(start_up, self.options.start_up_ms * MS_US)
        longest = np.maximum(self.periods.poll, self.periods.beat)
        phase = all_below(draws_of(self.words, Timer.PHASE), longest)
        unknown = np.where(self.unknown_phase[:, None], phase, 0)
        created: Times = self.joined - start_up - unknown
        return created

    def _start_up_draws(self) -> NDArray[np.uint64]:
        """(lives, S): in some futures those that started together are as slow as their first."""
        drawn = draws_of(self.words, Timer.START_UP)
        first = self._first_of_start()
        alike = draws_of(self.words[first], Timer.START_TOGETHER) < _SHARE_ALIKE
        return np.where(alike, drawn[first], drawn)

    def _first_of_start(self) -> NDArray[np.int64]:
        """(lives,): the first of those with whom a process was started, by their joins."""
        first: list[int] = []
        latest_us = None
        for life in self.script.lives:
            joined_us = life.joined.event_us
            together = latest_us is not None and joined_us - latest_us <= STARTED_TOGETHER_US
            first.append(first[-1] if together and not life.observed else life.index)
            latest_us = None if life.observed else joined_us
        return np.array(first, np.int64)

    @cached_property
    def unknown_phase(self) -> NDArray[np.bool_]:
        """(lives,): nothing is known of when its timers started."""
        everybody = self.options.phases == RANDOM_PHASES
        return np.array([everybody or life.observed for life in self.script.lives], bool)

    @cached_property
    def own_start(self) -> Times:
        """(lives, S): when the timers that a client has by itself start: ``lockAll``."""
        draws = draws_of(self.words, Timer.TIMERS_AFTER)
        started: Times = self.created + TIMERS_AFTER.many(draws)
        return started

    @cached_property
    def instance_start(self) -> Times:
        """(lives, S): when the scheduler of its instance started: polls, heartbeats, commits."""
        started = self.own_start.copy()
        for number, (mate, first) in self._leaders.items():
            started[number] = mate.own_start[first.index]
        return started

    @cached_property
    def timers_start(self) -> Times:
        """(lives, S): from when route polls are counted."""
        return self._counted_from(self.periods.poll)

    @cached_property
    def beats_start(self) -> Times:
        """(lives, S): from when heartbeats are counted."""
        return self._counted_from(self.periods.beat)

    def _counted_from(self, period: Times) -> Times:
        """In step with the scheduler of the instance; none ticks before the group is there."""
        late = np.maximum(self.created - self.instance_start, 0)
        late[[life.index not in self._leaders for life in self.script.lives]] = 0
        started: Times = self.instance_start - (-late // period) * period
        return started

    def commit_age_us(
        self, lives: NDArray[np.int64], seeds: NDArray[np.int64], at_us: Times
    ) -> Times:
        """(n,) the time since the last tick that committed the offsets of all groups of a client.

        Args:
            lives: numbers of clients, (n,).
            seeds: places of futures, (n,).
            at_us: (n,) when each is asked about.
        """
        persists = [
            life.intervals.persist_consumer_offset_interval_ms for life in self.script.lives
        ]
        period = np.array(persists, np.int64)[lives] * MS_US
        age: Times = (at_us - self.instance_start[lives, seeds] - FIRST_COMMIT_US) % period
        return age

    @cached_property
    def first_pass_end(self) -> Times:
        """(lives, S): where the clock of passes stands at first; of who joins, at its creation."""
        if not self.script.changes:
            return self.created
        phase = all_below(draws_of(self.words, Timer.PASS_PHASE), self.periods.wait)
        observed = np.array([life.observed for life in self.script.lives], bool)[:, None]
        before = self.script.begin_us - phase
        # of an instance that runs already, the clock goes on: it is not known when it passed last
        late = np.array([life.index in self._leaders for life in self.script.lives], bool)[:, None]
        created = np.where(late, self.created - self.periods.least, self.created)
        times: Times = np.where(observed, before, created)
        return times

    @cached_property
    def pass_length(self) -> Times:
        """(lives, S): of each pass of the process, through all groups of its instance."""
        length = PASS_LENGTH.many(draws_of(self.words, Timer.PASS_LENGTH))
        for life, shared in zip(self.script.lives, self.script.sharing, strict=True):
            for _, each in shared:
                draws = uniforms(self.seeds, each.entity, Timer.PASS_LENGTH)
                length[life.index] += PASS_LENGTH.many(draws)
        return length

    def poll_us(self, life: int, number: NDArray[np.int64]) -> Times:
        """Tick of a route poll; the route is that of the tick. ``number``: (..., S)."""
        tick: Times = self.timers_start[life] + FIRST_POLL_US + number * self.periods.poll[life]
        return tick

    def poll_answered_us(self, life: int, number: NDArray[np.int64]) -> Times:
        """Return when the answer of a route poll is in use. ``number``: (..., S)."""
        draws = draws_of(self.words[life], Timer.ROUTE_ANSWER, number)
        return self.poll_us(life, number) + ROUTE_ANSWER.many(draws)

    def heartbeat_us(self, life: int, number: NDArray[np.int64]) -> Times:
        """Tick of a heartbeat."""
        first = self.beats_start[life] + FIRST_HEARTBEAT_US
        tick: Times = first + number * self.periods.beat[life]
        return tick


# When clients register with brokers as they join, and when brokers lose them as they go.

_ADDRESS_BUCKETS = 16
"""MQClientInstance.brokerAddrTable, a ConcurrentHashMap: heartbeats and unregistrations walk it."""
_HEARTBEAT_ONLY_BY_TIMER = (LITE_PULL, PULL)
"""Their ``start()`` sends none."""
_APART_US = 100 * MS_US
"""Earliest registrations of many members are spread over so much."""
_LEAVING = 1_000  # ticks of BROKER_STEP at the end of a life; below: at its join


class ListTimes(ClientTimes):
    """Times of registrations that no pass can change."""

    @cached_property
    def broker_rank(self) -> NDArray[np.int64]:
        """(brokers,): the order in which every client goes through them: that of its Java map."""
        names, masters = self.script.broker_names, self.script.masters
        walk = ConcurrentMapOrder[str](java_hash, _ADDRESS_BUCKETS)
        for name in names:
            walk.add(name)
        # A broker's own addresses are walked by id; the master's is 0.
        order = [
            number
            for broker in map(names.index, walk)
            for number in (masters.get(broker), broker)
            if number is not None
        ]
        return np.argsort(order)

    @cached_property
    def registered(self) -> Times:
        """(lives, brokers, S): first registrations; `NEVER` where the join reaches no broker.

        Counted back from the join: the last broker's is just before it.
        """
        shape = len(self.script.lives), len(self.script.brokers), len(self.seeds)
        times = np.full(shape, NEVER, np.int64)
        alike: dict[tuple[int, ...], list[int]] = {}
        for life in self.script.lives:
            if life.observed:
                times[life.index, list(life.first_brokers)] = BEFORE_ALL
            else:
                alike.setdefault(life.first_brokers, []).append(life.index)
        for given, lives in alike.items():
            at = self._at_join(np.array(lives), np.array(given, np.int64))
            times[np.ix_(lives, given)] = at
        return times

    def _at_join(self, lives: NDArray[np.int64], given: NDArray[np.int64]) -> Times:
        """(lives, given, S) of lives that register with the same brokers."""
        rank = np.argsort(np.argsort(self.broker_rank[given]))
        joined = self.joined[lives, None]
        earliest = np.maximum(self.created[lives, None], joined - LONGEST_LEAD_MS * MS_US)
        if self.script.settings.consumer_type in _HEARTBEAT_ONLY_BY_TIMER:
            # A slow start() waits for the route, and so does the first heartbeat.
            first = self.beats_start[lives, None] + FIRST_HEARTBEAT_US
            at = first + self._steps(lives, rank + 1, 0, REGISTRATION_STEP)
        else:
            lead = LAST_LEAD.many(draws_of(self.words[lives, None], Timer.REGISTRATION_LEAD))
            at = joined - lead - self._steps(lives, len(given) - 1 - rank, 0, REGISTRATION_STEP)
        # At one time it would matter which of two came first.
        offset = rank + lives[:, None] * len(given) % _APART_US
        times: Times = np.maximum(at, earliest + offset[:, :, None])
        return times

    @cached_property
    def unregistered(self) -> Times:
        """(lives, brokers, S): when a broker's list loses it at its end; `NEVER` if it stays.

        Whether it is registered there is not asked.
        """
        shape = len(self.script.lives), len(self.script.brokers), len(self.seeds)
        times = np.full(shape, NEVER, np.int64)
        kinds: tuple[list[int], ...] = [], [], []
        for life in self.script.lives:
            if life.ending is not None and self.script.brokers:
                kinds[0 if life.ending.graceful else 1 if life.ending.notified else 2].append(
                    life.index
                )
        graceful, closed, silent = (np.array(lives, np.int64) for lives in kinds)
        words = self.words[graceful, None]
        steps = UNREGISTRATION_STEP.many(draws_of(words, Timer.BROKER_STEP, _LEAVING))
        steps = steps + self._steps(graceful, self.broker_rank, _LEAVING + 1, UNREGISTRATION_NEXT)
        times[graceful] = self.stopped[graceful, None] + steps
        brokers = np.arange(shape[1])[:, None]
        words = self.words[closed, None]
        close = CHANNEL_CLOSE.many(draws_of(words, Timer.CHANNEL_CLOSE))
        step = CLOSE_STEP.many(draws_of(words, Timer.CLOSE_STEP, brokers))
        times[closed] = self.ended[closed, None] + close + step
        for number in silent.tolist():
            draws = draws_of(self.words[number], Timer.SCAN_PHASE, brokers)
            scan = all_below(draws, CHANNEL_SCAN_MS * MS_US)
            seen = list(self.script.lives[number].first_brokers) or slice(None)
            late = np.maximum(scan - scan[seen].min(axis=0), 0)
            times[number] = self.ended[number] + late
        return times

    def _steps(
        self, lives: NDArray[np.int64], rank: NDArray[np.int64], tick: int, step: Delay
    ) -> Times:
        """(lives, rank, S) how long requests to ``rank`` brokers take, one after the other."""
        ticks = tick + np.arange(int(rank.max(initial=0)))[:, None]
        draws = draws_of(self.words[lives, None], Timer.BROKER_STEP, ticks)
        total = np.zeros((len(lives), len(ticks) + 1, len(self.seeds)), np.int64)
        np.cumsum(step.many(draws), axis=1, out=total[:, 1:])
        return total[:, rank]


# Since when name servers answer with a version of a route, and when clients hear of it.


class RouteTimes(EventTimes):
    """Times of routes."""

    @cached_property
    def route_visible_us(self) -> tuple[Times, ...]:
        """(versions, S) by topic: since when the name server answers with each of its versions."""
        shape = -1, len(self.seeds)
        rows = [[self._visible_us(each) for each in versions] for versions in self.script.routes]
        each_us = [np.array(times, np.int64).reshape(shape) for times in rows]
        return tuple(np.maximum.accumulate(times, axis=0) for times in each_us)

    def _visible_us(self, version: RouteVersion) -> Times:
        if version.moment is None:
            return np.full(len(self.seeds), BEFORE_ALL, np.int64)
        delay = self._way_to_name_servers(version.moment)
        if delay is None:
            return self.true_us(version.moment)
        broker = delay is not TOPIC_VISIBLE  # which tells of all its topics at once
        entity = version.moment.entity if broker else version.entity
        draws = uniforms(self.seeds, entity, Timer.ROUTE_VISIBLE)
        return self.true_us(version.moment) + delay.many(draws)

    def _way_to_name_servers(self, moment: LoggedTime) -> Delay | None:
        """By what happened then; None: it is when a name server heard of it."""
        lives = self.script.broker_lives
        old = parse_version(self.script.settings.broker_version) < (5,)
        ups, downs = ([life.up for life in lives], [life.down for life in lives])
        if moment not in ups and moment not in downs:
            return TOPIC_VISIBLE
        if moment.to_the_second:
            return None
        if moment in ups and self.script.known is not None:
            return None
        if moment in ups:
            return BROKER_BACK_4 if old else BROKER_BACK
        return BROKER_GONE_4 if old else BROKER_GONE

    @cached_property
    def route_lag(self) -> Times:
        """(lives, S): how much later a client's name server learns of routes."""
        shape = len(self.script.lives), len(self.seeds)
        if not self.options.late_share:
            return np.zeros(shape, np.int64)
        draws = draws_of(self.words, Timer.NAME_SERVER)
        late = draws < np.uint64(round(self.options.late_share * (1 << 32)))
        return np.where(late, self.options.late_ms * MS_US, 0)


# All times of one script that no pass can change.


class Ticks(ListTimes, RouteTimes):
    """Times of one script in some futures.

    Attributes:
        script: what happens.
        seeds: (S,) of the futures.
        options: what was asked for.
    """
