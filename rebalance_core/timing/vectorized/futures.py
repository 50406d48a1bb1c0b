"""The constants of a timeline over many futures: lifetimes, their settings and their state.

Arrays of (lifetimes, S) have the seeds as their last axis; an *element* is a lifetime in a future.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rebalance_core.model.group_settings import BROADCASTING, BROKER_STRATEGIES, PUSH
from rebalance_core.model.versions import Version, parse_version
from rebalance_core.protocol.order_locks import locks_on_addition
from rebalance_core.replay.member import Member
from rebalance_core.strategies import parse_strategy
from rebalance_core.timing import delays, draws
from rebalance_core.timing.group_timeline import GroupTimeline
from rebalance_core.timing.options import ClockOptions
from rebalance_core.timing.pass_costs import longest_requests_us
from rebalance_core.timing.reference.heartbeats import REQUEST_TIMEOUT_US
from rebalance_core.timing.shared_instances import SharedInstanceWakes
from rebalance_core.timing.ticks import Ticks
from rebalance_core.timing.timer_periods import BEFORE_ALL, NEVER, Times

LONGEST_PASS_US = max(
    delays.PASS_LENGTH.longest,
    delays.COLD_DROP_AFTER.longest + delays.COLD_ADD_AFTER.longest + delays.PASS_TAIL.longest,
)
"""The maximum duration of a pass while all hosts answer."""


@dataclass(frozen=True, slots=True)
class Trait:
    """Properties of a lifetime that hold from its first state on.

    Attributes:
        member: its settings.
        version: its client's version.
        broadcasting: it takes every queue.
        asks_nobody: brokers allocate for it but do not know its strategy.
        heartbeats: a pass that changes something sends a heartbeat.
        takes_locks: it takes a queue only with its order lock.
        leaves_in_time: its leave takes time, in which passes continue and locks are taken.
        beats_at_once: it sends a heartbeat to all brokers at the same time.
        hash: its contribution to the hash of a member list.
    """

    member: Member
    version: Version
    broadcasting: bool
    asks_nobody: bool
    heartbeats: bool
    takes_locks: bool
    leaves_in_time: bool
    beats_at_once: bool
    hash: int


_STATE = {
    "last_end": 0, "used": 0, "number": 0, "wait": 0, "held": 1, "asks_us": 0, "asked": 1,
    "masterless": 1, "ends_us": 0, "balances": 0, "beats": 0, "later_us": 1, "fetched": 1,
}  # fmt: skip
"""The arrays of `Futures`, each with the index of its lifetime axis."""


def state_of(source: object, names: Iterable[str]) -> dict[str, Any]:
    """Return copies of the named arrays."""
    return {name: getattr(source, name).copy() for name in names}


def take_over(
    target: object, state: dict[str, Any], axes: Mapping[str, int], lifetimes: int
) -> None:
    """Copy the first lifetimes of another object's arrays.

    Args:
        target: the object with the arrays.
        state: the arrays to copy, from `state_of`.
        axes: the lifetime axis of each array by name, 0 or 1. Before axis 1, axis 0 may be longer
            than it was at the start.
        lifetimes: the number of lifetimes to copy.
    """
    for name, axis in axes.items():
        array, kept = getattr(target, name), state[name]
        if axis == 0:
            array[:lifetimes] = kept[:lifetimes]
            continue
        if len(array) < len(kept):
            nothing = BEFORE_ALL if array.dtype == np.int64 else 0
            array = np.full((len(kept), *array.shape[1:]), nothing, array.dtype)
            setattr(target, name, array)
        array[: len(kept), :lifetimes] = kept[:, :lifetimes]


@dataclass(eq=False)
class Futures:
    """The state of a timeline's processes in many futures, between two segments.

    Attributes:
        timeline: what happens.
        seeds: (S,) the seeds, repeated for each timeline.
        options: the simulation's options.
        others: further timelines, which differ from the first only in strategies.
        ticks: times that no pass can change.
        last_end: (lifetimes, S) the end of the last pass.
        used: (lifetimes, S) the time up to which wake-ups are used up.
        number: (lifetimes, S) the number of the next pass.
        wait: (lifetimes, S) the wait until the next pass if no notice wakes the client.
        held: (topics, lifetimes, S) the number of the queue set that each holds.
        asks_us: (lifetimes, S) when a running pass requests order locks; `NEVER`.
        asked: (topics, lifetimes, S) the share that it then requests.
        masterless: (masters, lifetimes, S) whether it lacks the address of the master, in the order
            of `GroupTimeline.masters`.
        ends_us: (lifetimes, S) when the running pass ends.
        balances: (lifetimes, S) whether it is balanced once it gets all locks.
        beats: (lifetimes, S) whether it sends a heartbeat even if it gets no lock.
        later_us: (maximum at once, lifetimes, S) wake-ups that passes scheduled for themselves.
        fetched: (topics, lifetimes, S) the version of the route that a pass fetched, or -1.
        registered: for each broker lifetime, (lifetimes, S) the time at which its member list
            gained the lifetime.
    """

    timeline: GroupTimeline
    seeds: NDArray[np.int64]
    options: ClockOptions
    others: tuple[GroupTimeline, ...] = ()
    ticks: Ticks = field(init=False)
    last_end: Times = field(init=False)
    used: Times = field(init=False)
    number: NDArray[np.int64] = field(init=False)
    wait: Times = field(init=False)
    held: NDArray[np.int32] = field(init=False)
    fetched: NDArray[np.int16] = field(init=False)
    asks_us: Times = field(init=False)
    asked: NDArray[np.int32] = field(init=False)
    masterless: NDArray[np.bool_] = field(init=False)
    ends_us: Times = field(init=False)
    balances: NDArray[np.bool_] = field(init=False)
    beats: NDArray[np.bool_] = field(init=False)
    later_us: Times = field(init=False)
    registered: dict[int, Times] = field(default_factory=dict)
    _words_for: dict[int, NDArray[np.uint64]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.ticks = Ticks(self.timeline, self.seeds, self.options)
        shape = len(self.timeline.lifetimes), len(self.seeds)
        self.last_end = self.ticks.first_pass_end.copy()
        self.used = np.full(shape, BEFORE_ALL, np.int64)
        self.number = np.zeros(shape, np.int64)
        self.wait = np.broadcast_to(self.ticks.periods.wait, shape).copy()
        self.held = np.zeros((len(self.timeline.topics), *shape), np.int32)
        self.asks_us = np.full(shape, NEVER, np.int64)
        self.asked = np.zeros(self.held.shape, np.int32)
        self.masterless = np.zeros((len(self.timeline.masters), *shape), bool)
        self.ends_us = np.full(shape, BEFORE_ALL, np.int64)
        self.balances = np.ones(shape, bool)
        self.beats = np.zeros(shape, bool)
        self.later_us = np.empty((0, *shape), np.int64)
        self.fetched = np.full((len(self.timeline.topics), *shape), -1, np.int16)

    def state(self) -> dict[str, Any]:
        """Return a copy of the state that one segment hands to the next."""
        registered = {number: since.copy() for number, since in self.registered.items()}
        return state_of(self, _STATE) | {"registered": registered}

    def resume(self, state: dict[str, Any], lifetimes: int) -> None:
        """Restore the first lifetimes' state, saved from the same futures of another timeline."""
        take_over(self, state, _STATE, lifetimes)
        shape = len(self.timeline.lifetimes), len(self.seeds)
        for number, since in state["registered"].items():
            self.registered[number] = np.full(shape, NEVER)
            self.registered[number][:lifetimes] = since[:lifetimes]

    @property
    def timelines(self) -> tuple[GroupTimeline, ...]:
        """The timeline and the others, each with the same number of futures."""
        return self.timeline, *self.others

    @cached_property
    def timeline_of(self) -> NDArray[np.int64]:
        """(S,): the index of each future's timeline in `timelines`."""
        return np.arange(len(self.seeds)) * len(self.timelines) // max(1, len(self.seeds))

    @cached_property
    def unnotified(self) -> NDArray[np.bool_]:
        """(lifetimes,): whether the lifetime ignores brokers' notices."""
        return np.array([not lifetime.is_notified for lifetime in self.timeline.lifetimes], bool)

    @cached_property
    def traits(self) -> tuple[Trait, ...]:
        """The `Trait` of each lifetime."""
        settings = self.timeline.settings
        traits = []
        for lifetime in self.timeline.lifetimes:
            member = lifetime.states[0][1]
            version = parse_version(member.rules_version)
            takes_locks = locks_on_addition(
                settings.consumer_type, member.message_model, settings.ordered, version
            )
            traits.append(
                Trait(
                    member=member,
                    version=version,
                    broadcasting=member.message_model == BROADCASTING,
                    asks_nobody=member.asks_broker(settings)
                    and parse_strategy(member.strategy, version=member.rules_version).name
                    not in BROKER_STRATEGIES,
                    heartbeats=settings.consumer_type == PUSH,
                    takes_locks=takes_locks,
                    leaves_in_time=takes_locks
                    and lifetime.ending is not None
                    and lifetime.ending.graceful,
                    beats_at_once=self.ticks.beats_at_once(lifetime),
                    hash=draws.entity_of("member", lifetime.client_id),
                )
            )
        return tuple(traits)

    def woken(self, elements: tuple[Any, ...], at_us: Times) -> Times:
        """Return when notices due at these times wake the elements, given as indices of (lifetimes,
        S).
        """
        ended, late = self.ticks.ended[elements], self.ticks.notice_late[elements]
        return np.where(at_us < ended, at_us, np.minimum(at_us, NEVER) + late)

    @cached_property
    def shared_instance_wakes(self) -> SharedInstanceWakes:
        """The wake-ups of the group's processes by other groups in their client instances."""
        return SharedInstanceWakes(self.ticks)

    @cached_property
    def topics(self) -> tuple[int, ...]:
        """The numbers of the topics to which any lifetime ever subscribes."""
        subscribed = {
            topic
            for lifetime in self.timeline.lifetimes
            for _, member in lifetime.states
            for topic in member.subscriptions
        }
        return tuple(n for n, topic in enumerate(self.timeline.topics) if topic in subscribed)

    def words_for(self, timer: int) -> NDArray[np.uint64]:
        """Return (lifetimes, S) `Ticks.words`, `draws.hashed_with` a timer."""
        if timer not in self._words_for:
            self._words_for[timer] = draws.hashed_with(self.ticks.words, timer)
        return self._words_for[timer]

    @property
    def broker_lifetimes(self) -> list[tuple[Times, Times]]:
        """(since, until) of each broker lifetime, as arrays of shape (S,)."""
        return self.ticks.broker_lifetimes_us

    @cached_property
    def silences(self) -> list[tuple[int, Times, Times]]:
        """(broker, since, until) of each lost host: (S,) the times between which requests to it
        time out.
        """
        lifetimes = self.timeline.broker_lifetimes
        silences = []
        for number, lifetime in enumerate(lifetimes):
            if lifetime.host_lost:
                until = np.full(len(self.seeds), NEVER)
                for later, (up, _) in zip(lifetimes, self.broker_lifetimes, strict=True):
                    if later.broker == lifetime.broker:
                        after = up > self.broker_lifetimes[number][0]
                        until = np.where(after, np.minimum(until, up), until)
                silences.append((lifetime.broker, self.broker_lifetimes[number][1], until))
        return silences


def longest_pass_us(timeline: GroupTimeline, options: ClockOptions) -> int:
    """Return the maximum duration of a pass."""
    others_us = len(timeline.sharing_groups) * delays.PASS_LENGTH.longest
    waits_us = longest_timeouts_us(timeline) + longest_requests_us(timeline, options)
    return LONGEST_PASS_US + others_us + waits_us


def longest_timeouts_us(timeline: GroupTimeline) -> int:
    """Return an upper bound on a pass's wait for lost hosts: one timeout per topic, and one per
    host for its heartbeat.
    """
    lost = sum(lifetime.host_lost for lifetime in timeline.broker_lifetimes)
    return REQUEST_TIMEOUT_US * (len(timeline.topics) + lost if lost else 0)
