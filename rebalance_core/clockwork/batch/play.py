"""Many futures of a script at once, in slices that fit into memory; which groups are left to
the loop.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from rebalance_core.clockwork.batch.answers import Moves
from rebalance_core.clockwork.batch.beginnings import Beginnings, Standing
from rebalance_core.clockwork.batch.futures import Futures, segments_of
from rebalance_core.clockwork.batch.locks import OrderLocks
from rebalance_core.clockwork.batch.mixed_play import play_mixed_segment
from rebalance_core.clockwork.batch.mixed_state import MixedState, is_mixed
from rebalance_core.clockwork.batch.segment_play import play_segment
from rebalance_core.clockwork.batch.shares import (
    QueueSets,
    SetOf,
    Shares,
    UnlistedQueueError,
    added,
)
from rebalance_core.clockwork.loop import play as loop
from rebalance_core.clockwork.mates import wakes_by_passes
from rebalance_core.clockwork.options import SECOND_US, ClockOptions
from rebalance_core.clockwork.ownership_log import (
    GIVEN_UP,
    TAKEN,
    OwnershipLog,
    in_succession,
    ownership_log,
    stretches_of,
)
from rebalance_core.clockwork.script import Life, Script
from rebalance_core.clockwork.ticks import BEFORE_ALL, NEVER, Times
from rebalance_core.model.clients import DROP, KEPT
from rebalance_core.model.events import BATCHED
from rebalance_core.model.group_settings import (
    BROADCASTING,
    BROKER_STRATEGIES,
    DEFAULT_INTERVALS,
    PUSH,
    GroupSettings,
)
from rebalance_core.replay.group_state import Member
from rebalance_core.replay.settle import CONFIG_STRATEGY

# The log of ownership, made of the sets that were held one after the other.

Ints = NDArray[np.int64]


class Logbook:
    """Rows of one slice of futures."""

    def __init__(self, futures: Futures, sets: QueueSets) -> None:
        self._futures, self._sets = futures, sets
        self._columns: list[tuple[Ints, NDArray[np.int32], Times, int]] = []

    def log(self, moves: list[Moves]) -> OwnershipLog:
        """All moves, and what is given up at the end of each life.

        A process that is gone takes and gives up nothing more: what it had not come to, it held,
        or did not hold, at its end. What one that leaves locks after that, it does not read.
        """
        ended = self._futures.ticks.ended.reshape(-1)
        left = self._futures.held.reshape(len(self._futures.script.topics), len(ended)).copy()
        columns = ("topic", "elements", "before", "after", "drop_us", "add_us")
        if moves:
            whole = Moves(*(np.concatenate([getattr(m, name) for m in moves]) for name in columns))
            dropped, takes = (at < ended[whole.elements] for at in (whole.drop_us, whole.add_us))
            self._put(whole, dropped, whole.drop_us, frozenset.difference, GIVEN_UP)
            self._put(whole, takes, whole.add_us, added, TAKEN)
            cut = np.flatnonzero(~takes)[
                ::-1
            ]  # of several after an end the first has the last word
            held, wanted = whole.before[cut], whole.after[cut]
            kept = self._sets.combined(frozenset.intersection, held, wanted)
            left[whole.topic[cut], whole.elements[cut]] = np.where(dropped[cut], kept, held)
        gone = np.flatnonzero(ended < NEVER)
        for held in left:
            self._rows(gone, held[gone], ended[gone], GIVEN_UP)
        return self._log()

    def _put(
        self, move: Moves, rows: NDArray[np.bool_], at_us: Times, difference: SetOf, delta: int
    ) -> None:
        sets = self._sets.combined(difference, move.before[rows], move.after[rows])
        self._rows(move.elements[rows], sets, at_us[rows], delta)

    def _rows(self, elements: Ints, sets: NDArray[np.int32], at_us: Times, delta: int) -> None:
        """One row for each queue of a set."""
        rows, queues = self._sets.pairs(sets)
        if len(rows):
            self._columns.append((elements[rows], queues.astype(np.int32), at_us[rows], delta))

    def _log(self) -> OwnershipLog:
        columns = self._columns
        if not columns:
            nothing = np.empty(0, np.int64)
            columns = [(nothing, nothing.astype(np.int32), nothing, TAKEN)]
        elements = np.concatenate([each[0] for each in columns])
        seeds = len(self._futures.seeds)
        return OwnershipLog(
            seed=(elements % seeds).astype(np.int32),
            life=(elements // seeds).astype(np.int32),
            queue=np.concatenate([each[1] for each in columns]),
            at_us=np.concatenate([each[2] for each in columns]),
            delta=np.concatenate([np.full(len(each[0]), each[3], np.int8) for each in columns]),
        ).in_order()


# Which groups are left to the plain loop, and why.

REGULAR = "REGULAR"
"""The futures are played at once."""
MIXED_SUBSCRIPTIONS = "MIXED_SUBSCRIPTIONS"
"""A member of an orderly group changes its topics, or somebody or a route changes unseen."""
EDITED_MEMBER = "EDITED_MEMBER"
"""A process joins again in place, with other settings."""
SUSPENDED = "SUSPENDED"
"""A suspended client's clock of passes is another."""
PARTIAL_EVENTS = "PARTIAL_EVENTS"
"""One broker alone saw a process come or go."""
HOSTS_LOST = "HOSTS_LOST"
"""A heartbeat waits for so many lost hosts that other timers starve (rocketmq.md §6.1)."""
MOST_LOST = 9
"""Three seconds each: less than there are between a heartbeat and the next route poll."""
BROADCASTING_OUTAGE = "BROADCASTING_OUTAGE"
"""A BROADCASTING member finds no start offset on a broker that is down, so it is unbalanced."""
CONFIG = "CONFIG"
"""Shares that do not keep to the topic."""

SHARED_CLIENTS = "SHARED_CLIENTS"
"""Members share clients with groups whose passes wake these, or subscribe differently."""

BROKER_DIVIDES = "BROKER_DIVIDES"
"""Brokers divide for some member, by the routes that they poll themselves (rocketmq.md §2.8)."""
STOPPED = "STOPPED"
"""Somebody knows when processes stood still."""


NOTICES_BATCHED = "NOTICES_BATCHED"
"""A broker gathers its notices (realTimeNotifyConsumerChange=false)."""


LOCKS_KEPT = "LOCKS_KEPT"
"""A member keeps the order locks of what it gives up."""
ENDS_PASS = "ENDS_PASS"
"""A topic without an answer ends the pass of a member that has several."""
LETS_GO = "LETS_GO"
"""A broker that comes back knows nobody, and some member then lets go of what it holds."""


def _reason_of_languages(script: Script) -> str:
    """Return what only the plain loop plays of a member in another language; else `REGULAR`."""
    profiles = {member.profile for life in script.lives for _, member in life.states}
    restarts = any(life.up is not None for life in script.broker_lives)
    if restarts and any(profile.empty_list == DROP for profile in profiles):
        return LETS_GO
    if takes_locks(script) and any(profile.locks == KEPT for profile in profiles):
        return LOCKS_KEPT
    states = (member for life in script.lives for _, member in life.states)
    if any(member.profile.ends_pass and len(member.subscriptions) > 1 for member in states):
        return ENDS_PASS
    return REGULAR


def reason_of(script: Script) -> str:
    """`REGULAR`, or why every future of the script goes through the plain loop."""
    lives = script.lives
    members = [[member for _, member in life.states] for life in lives]
    changes = any(len({member.subscriptions for member in each}) > 1 for each in members)
    if is_mixed(script) and ((takes_locks(script) and changes) or _changes_unseen(script)):
        return MIXED_SUBSCRIPTIONS
    if script.mates and (is_mixed(script) or any(map(wakes_by_passes, script.mates))):
        return SHARED_CLIENTS
    if any(
        (a.strategy, a.version, a.message_model, a.profile)
        != (b.strategy, b.version, b.message_model, b.profile)
        for each in members
        for a, b in pairwise(each)
    ):
        return EDITED_MEMBER
    if any(_has_a_broker_divide(member, script.settings) for each in members for member in each):
        return BROKER_DIVIDES
    if any(switch.mode == BATCHED for switch in script.notices):
        return NOTICES_BATCHED
    if any(member.suspended for each in members for member in each):
        return SUSPENDED
    if any(life.sightings or life.only_broker is not None for life in lives):
        return PARTIAL_EVENTS
    broadcasts = any(member.message_model == BROADCASTING for each in members for member in each)
    if broadcasts and (script.lockless or any(life.down for life in script.broker_lives)):
        return BROADCASTING_OUTAGE
    if script.known is not None and script.known.stops:
        return STOPPED
    lost = {life.broker for life in script.broker_lives if life.host_lost}
    if len(lost) > (MOST_LOST if all(map(_ticks_as_usual, lives)) else 0):
        return HOSTS_LOST
    if any(member.strategy.startswith(CONFIG_STRATEGY) for each in members for member in each):
        return CONFIG
    return _reason_of_languages(script)


def _ticks_as_usual(life: Life) -> bool:
    """Its polls and heartbeats are those that `MOST_LOST` counts on."""
    usual, intervals = DEFAULT_INTERVALS, life.intervals
    return (intervals.poll_name_server_interval_ms, intervals.heartbeat_broker_interval_ms) == (
        usual.poll_name_server_interval_ms, usual.heartbeat_broker_interval_ms
    )  # fmt: skip


def takes_locks(script: Script) -> bool:
    """The group's members take order locks."""
    settings = script.settings
    return settings.ordered and settings.consumer_type == PUSH


def _has_a_broker_divide(member: Member, settings: GroupSettings) -> bool:
    """It asks brokers, and they know its strategy."""
    return member.asks_broker(settings) and member.strategy in BROKER_STRATEGIES


def _changes_unseen(script: Script) -> bool:
    """Somebody comes, or changes topics, or a route does, while nothing is followed.

    Who is only observed later, has come at a time that nobody knows.
    """
    observed_us = [life.joined.event_us for life in script.lives if life.observed]
    if len(set(observed_us)) > 1:
        return True
    stretches = list(stretches_of(script))
    moments = [life.joined for life in script.lives if not life.observed]
    moments += [moment for life in script.lives for moment, _ in life.states[1:]]
    moments += [each.moment for versions in script.routes for each in versions[1:] if each.moment]
    return not all(
        any(
            each.begin_us <= moment.event_us
            and moment.event_us + SECOND_US * moment.to_the_second < each.end_us
            for each in stretches
        )
        for moment in moments
    )


# Many futures of a script at once, in slices that fit into memory.

BYTES_OF_A_SLICE = 150_000_000


def play_seeds(
    script: Script,
    seeds: NDArray[np.int64] | Sequence[int],
    options: ClockOptions,
    beginnings: Beginnings | None = None,
) -> OwnershipLog:
    """`loop.play_seeds_one_by_one`, for many seeds in little time.

    Scripts that `reason_of` does not find regular go through the plain loop, and those in which an
    own strategy gives queues that it was not asked for. Cost: linear in seeds,
    and in what happens; memory: about `BYTES_OF_A_SLICE`, and the log.

    Args:
        script: what happens to the group.
        seeds: (S,) of the futures.
        options: what was asked for.
        beginnings: where the same futures of other scripts of the group stood; None: nothing of
            them is known.

    Returns:
        The log; its column ``seed`` is the place in ``seeds``.
    """
    wanted = np.asarray(seeds, np.int64)
    if reason_of(script) != REGULAR:
        return loop.play_seeds_one_by_one(script, wanted.tolist(), options)
    step = seeds_of_a_slice(script)
    logs = []
    for first in range(0, len(wanted), step):
        try:
            log = _play_slice(script, wanted[first : first + step], options, beginnings)
        except UnlistedQueueError:
            return loop.play_seeds_one_by_one(script, wanted.tolist(), options)
        logs.append(replace(log, seed=log.seed + np.int32(first)))
    return in_succession(logs)


def seeds_of_a_slice(script: Script) -> int:
    """Return how many futures are played at once."""
    lives, brokers = len(script.lives), len(script.broker_lives)
    times = lives * (40 + 12 * brokers) + (8 * len(script.queues) if takes_locks(script) else 0)
    return max(16, BYTES_OF_A_SLICE // (8 * max(times, 1)))


def _play_slice(
    script: Script, seeds: NDArray[np.int64], options: ClockOptions, beginnings: Beginnings | None
) -> OwnershipLog:
    if not (script.changes and script.lives):
        return ownership_log([])
    futures = Futures(script, seeds, options)
    sets = QueueSets() if beginnings is None else beginnings.sets_of(futures)
    shares = Shares(futures, sets)
    locks = OrderLocks(futures) if takes_locks(script) else None
    moves: list[Moves] = []
    come, gone = _stays(futures)
    mixed = MixedState.of(script, futures.ticks)
    standing = Standing(futures, sets, locks, mixed, moves, come)
    segments = list(segments_of(script))
    done = 0 if beginnings is None else beginnings.resume(standing, segments)
    stops = frozenset() if beginnings is None else beginnings.stops(standing, segments)
    if not done:
        _hold_at_first(futures, sets, locks)
    for number, segment in enumerate(segments[done:], done + 1):
        if locks is not None:
            locks.begin(segment)
        lives = np.flatnonzero((come < segment.end_us) & (gone > segment.since_us))
        if len(lives) and mixed is not None:
            play_mixed_segment(futures, mixed, segment, lives, shares, sets, moves, locks)
        elif len(lives):
            play_segment(futures, segment, lives, shares, sets, moves, locks)
        if beginnings is not None and number in stops:
            beginnings.keep(standing, segments[:number])
    return Logbook(futures, sets).log(moves)


def _hold_at_first(futures: Futures, sets: QueueSets, locks: OrderLocks | None) -> None:
    """Who was there before the log holds what the first epoch says."""
    script = futures.script
    present = futures.ticks.ended > script.begin_us
    for life, queues in enumerate(script.initial):
        if locks is not None:
            locks.hold_at_first(life, np.array(sorted(queues), np.int64), present[life])
        for topic in range(len(script.topics)):
            of_topic = [queue for queue in queues if script.topic_of_queue[queue] == topic]
            futures.held[topic, life] = np.where(present[life], sets.number(of_topic), 0)


def _stays(futures: Futures) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(lives,) when each is created at the earliest, and when the last broker loses it."""
    ticks = futures.ticks
    observed = np.array([life.observed for life in futures.script.lives])
    created = np.where(observed, BEFORE_ALL, ticks.created.min(axis=1))
    come = np.minimum(created, ticks.registered.min(axis=(1, 2), initial=NEVER))
    listed = ticks.unregistered.max(axis=(1, 2), initial=BEFORE_ALL)
    return come, np.maximum(ticks.ended.max(axis=1), listed)
