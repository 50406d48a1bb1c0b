"""Groups that share client instances: a notice to one group starts a pass for all
(rocketmq.md §3.1).

An MQClientInstance has one RebalanceService and one scheduler for all groups with its client id. As
long as brokers stay up, another group's notices and ``start()`` do not depend on any pass. They are
known before the group is played, so the vectorized engine plays the group alone. Where passes of
the other group matter (`wakes_by_passes`), the reference engine plays all groups of the instances
together.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import pairwise, takewhile

import numpy as np
from numpy.typing import NDArray

from rebalance_core.model.events import BATCHED
from rebalance_core.model.group_settings import BROADCASTING, PUSH
from rebalance_core.model.versions import parse_version
from rebalance_core.producers.concurrent_map import ConcurrentMapOrder, java_hash
from rebalance_core.replay.member import ProcessKey
from rebalance_core.timing import delays, draws, operations
from rebalance_core.timing.draws import Timer
from rebalance_core.timing.group_timeline import GroupTimeline, LoggedTime, ProcessLifetime
from rebalance_core.timing.operations import Operation
from rebalance_core.timing.options import SECOND_US
from rebalance_core.timing.reference.membership import BROADCASTING_IS_SILENT, NEWEST_NOTICE_WINS
from rebalance_core.timing.ticks import Ticks
from rebalance_core.timing.timer_periods import BEFORE_ALL, NEVER, Times

LONGEST_START_US = 600 * SECOND_US
"""The longest time from a client's creation to its logged join."""
CONSUMER_BUCKETS = 16
"""MQClientInstance.consumerTable, a ConcurrentHashMap over which each pass of the service
iterates.
"""


@dataclass(frozen=True, eq=False)
class _Sent:
    """The notices that a broker sends to the members of another group after an operation.

    Attributes:
        broker: the number of the broker in that group's timeline.
        at_us: (S,) when it sends them, or `NEVER`.
        newer_us: (S,) when it sends the next notice, which may suppress this one.
        tick: the tick number in its draws.
    """

    broker: int
    at_us: Times
    newer_us: Times
    tick: int


class SharedInstanceWakes:
    """How other groups of the same client instances wake a group's processes.

    Args:
        ticks: the group's ticks.
    """

    def __init__(self, ticks: Ticks) -> None:
        self._ticks, self._lifetimes = ticks, dict[ProcessKey, list[int]]()
        for lifetime in ticks.timeline.lifetimes:
            if not lifetime.stale_entry:
                self._lifetimes.setdefault(lifetime.instance, []).append(lifetime.index)
        observed = np.array([lifetime.observed for lifetime in ticks.timeline.lifetimes], bool)
        comes = np.minimum(ticks.created, ticks.registered.min(axis=1, initial=NEVER))
        comes[observed] = BEFORE_ALL
        self._comes = comes
        walk = ConcurrentMapOrder[str](java_hash, CONSUMER_BUCKETS)
        for timeline in sorted((ticks.timeline, *ticks.timeline.sharing_groups), key=_first_join):
            walk.add(timeline.consumer_group)
        before = set(takewhile(lambda name: name != ticks.timeline.consumer_group, walk))
        self._sharing = [
            _SharingGroup(sharing_group, sharing_group.timeline.consumer_group in before)
            for sharing_group in ticks.sharing_groups
        ]

    def between(self, since_us: int, until_us: int) -> Iterator[tuple[int, Times]]:
        """Yield (lifetime, (S,) wake-up times) for the events from ``since_us`` to ``until_us``."""
        for sharing_group in self._sharing:
            present_lifetimes = (
                lifetime
                for lifetime in sharing_group.ticks.timeline.lifetimes
                if not lifetime.stale_entry
            )
            for lifetime in (
                lifetime for lifetime in present_lifetimes if lifetime.instance in self._lifetimes
            ):
                for at_us in sharing_group.wakes(lifetime, since_us, until_us):
                    yield from self._woken(lifetime, sharing_group.passed_on(lifetime, at_us))

    def links(
        self, sharing_group: GroupTimeline
    ) -> Iterator[tuple[int, int, Callable[[int], int]]]:
        """Yield, for a single future, (sharing lifetime, lifetime, function that maps the time of a
        wake-up to that of its arrival).

        Args:
            sharing_group: one of the timelines in `GroupTimeline.together`.
        """
        (same_group,) = (
            each
            for each in self._sharing
            if each.ticks.timeline.consumer_group == sharing_group.consumer_group
        )
        for lifetime in sharing_group.lifetimes:
            for lifetime_index in (
                () if lifetime.stale_entry else self._lifetimes.get(lifetime.instance, ())
            ):
                yield lifetime.index, lifetime_index, partial(same_group.passed_on_in_one, lifetime)

    def _woken(self, lifetime: ProcessLifetime, at_us: Times) -> Iterator[tuple[int, Times]]:
        for lifetime_index in self._lifetimes[lifetime.instance]:
            present = (self._comes[lifetime_index] <= at_us) & (at_us < NEVER)
            if present.any():
                yield lifetime_index, np.where(present, at_us, NEVER)


@dataclass(eq=False)
class _SharingGroup:
    """Another group that uses the instances.

    Attributes:
        ticks: the group's ticks.
        goes_first: whether its passes precede those of the group in question.
    """

    ticks: Ticks
    goes_first: bool
    _busy: dict[int, tuple[Times, Times]] = field(default_factory=dict)

    @cached_property
    def sent(self) -> list[_Sent]:
        """The notices that the group's brokers send."""
        return notices_of(self.ticks)

    def wakes(self, lifetime: ProcessLifetime, since_us: int, until_us: int) -> Iterator[Times]:
        """Yield (S,) the times at which events of a period wake a member of this group."""
        started_us = self.ticks.joined[lifetime.index]
        push = self.ticks.timeline.settings.consumer_type == PUSH and not lifetime.observed
        if push and _any_between(started_us, since_us, until_us):
            yield started_us
        for notice in self.sent if lifetime.is_notified else ():
            if _any_between(notice.at_us, since_us, until_us):
                yield _delivered(self.ticks, lifetime, notice)

    def passed_on(self, lifetime: ProcessLifetime, at_us: Times) -> Times:
        """Return when a member's wake-up reaches the other group, which may be after a slow first
        pass.
        """
        if not self.goes_first or lifetime.observed:
            return at_us
        if lifetime.index not in self._busy:
            self._busy[lifetime.index] = self._first_pass(lifetime)
        begin, end = self._busy[lifetime.index]
        return np.where((begin <= at_us) & (at_us < end), end, at_us)

    def passed_on_in_one(self, lifetime: ProcessLifetime, at_us: int) -> int:
        """Return the result of `passed_on` for a time in a single future."""
        return int(self.passed_on(lifetime, np.array([at_us], np.int64))[0])

    def _first_pass(self, lifetime: ProcessLifetime) -> tuple[Times, Times]:
        ticks, number = self.ticks, lifetime.index
        since, until = ticks.created[number], ticks.joined[number] + SECOND_US
        begin = np.full(len(ticks.seeds), NEVER, np.int64)
        for at_us in self.wakes(lifetime, int(since.min()) - SECOND_US, int(until.max())):
            inside = (since <= at_us) & (at_us < until)
            begin = np.where(inside, np.minimum(begin, at_us), begin)
        parts = (
            delay.many(draws.uniforms(ticks.seeds, lifetime.entity, timer))
            for delay, timer in (
                (delays.COLD_DROP_AFTER, Timer.DROP_AFTER),
                (delays.COLD_ADD_AFTER, Timer.ADD_AFTER),
                (delays.PASS_TAIL, Timer.PASS_TAIL),
            )
        )
        return begin, begin + np.sum(list(parts), axis=0)


def _first_join(timeline: GroupTimeline) -> tuple[int, str]:
    return min(
        (lifetime.joined.event_us for lifetime in timeline.lifetimes), default=0
    ), timeline.consumer_group


_NEVER_THROW = ("AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH")
"""Strategies that can allocate any set of queues to any set of members without throwing."""


def wakes_by_passes(timeline: GroupTimeline) -> bool:
    """Return whether passes of the group may wake its client instances or change its notices.

    Passes request refused order locks anew. Members that pause, or whose strategy throws, run a
    pass every second. New brokers notify members once they learn of the client, and whenever a
    heartbeat changes the topics.
    """
    settings = timeline.settings
    return (
        settings.ordered
        or settings.consumer_type != PUSH
        or any(switch.mode == BATCHED for switch in timeline.notices)
        or _members_pass_again(timeline)
        or _lifetimes_are_known_in_part(timeline)
        or _routes_bring_brokers(timeline)
    )


def _members_pass_again(timeline: GroupTimeline) -> bool:
    """Return whether members have different subscriptions, pause, throw, or get no start offset
    from a lost broker.
    """
    states = [member for lifetime in timeline.lifetimes for _, member in lifetime.states]
    outage = timeline.lockless or any(
        lifetime.down is not None for lifetime in timeline.broker_lifetimes
    )
    return len({member.subscriptions for member in states}) > 1 or any(
        member.suspended
        or member.strategy.partition("(")[0] not in _NEVER_THROW
        or (outage and member.message_model == BROADCASTING)
        for member in states
    )


def _lifetimes_are_known_in_part(timeline: GroupTimeline) -> bool:
    """Return whether only some brokers saw a process, or some brokers learn of it later."""
    heard = {
        broker
        for versions in timeline.routes
        for each in versions
        for broker in each.heartbeat_targets
    }
    return any(
        lifetime.stale_entry
        or lifetime.sightings
        or lifetime.only_broker is not None
        or (lifetime.observed and not heard.issuperset(lifetime.first_brokers))
        for lifetime in timeline.lifetimes
    )


def _routes_bring_brokers(timeline: GroupTimeline) -> bool:
    """Return whether a broker returns, or a route arrives late, lacks queues, gains a broker, or
    loses one that a starting member's heartbeats may still reach.
    """
    first_us = min((lifetime.joined.event_us for lifetime in timeline.lifetimes), default=NEVER)
    if any(lifetime.up is not None for lifetime in timeline.broker_lifetimes):
        return True
    for versions in timeline.routes:
        begins = versions[0].moment
        if begins is not None and begins.event_us > first_us:
            return True
        if not all(version.queues for version in versions):
            return True
        for earlier, later in pairwise(versions):
            before, after = set(earlier.heartbeat_targets), set(later.heartbeat_targets)
            if after - before or (before - after and _may_start_at(timeline, later.moment)):
                return True
    return False


def _may_start_at(timeline: GroupTimeline, moment: LoggedTime | None) -> bool:
    """Return whether a process that joins later may have been created before this moment."""
    return moment is not None and any(
        0 <= lifetime.joined.event_us - moment.event_us < LONGEST_START_US
        for lifetime in timeline.lifetimes
        if not lifetime.observed
    )


def notices_of(ticks: Ticks) -> list[_Sent]:
    """Return, by broker, the notices sent to a group's members as others join and leave."""
    timeline, sent = ticks.timeline, list[_Sent]()
    version = parse_version(timeline.settings.broker_version)
    for broker, name in enumerate(timeline.brokers):
        rows: list[tuple[Times, int]] = []
        for lifetime in timeline.lifetimes:
            silent = lifetime.states[0][1].message_model == BROADCASTING
            if lifetime.stale_entry or (silent and version >= BROADCASTING_IS_SILENT):
                continue
            for operation, at_us in _operations(ticks, lifetime, broker):
                for number, (up, down) in enumerate(ticks.broker_lifetimes_us):
                    connected = (up <= at_us) & (at_us < down) & (at_us < NEVER)
                    connected &= ticks.notifies(broker, slice(None), at_us)
                    if timeline.broker_lifetimes[number].broker == broker and connected.any():
                        tick = operations.operation_id(lifetime.entity, name, number, operation)
                        rows.append((np.where(connected, at_us, NEVER), tick))
        if rows:
            times = np.stack([at_us for at_us, _ in rows])
            newer = _following(times) if version >= NEWEST_NOTICE_WINS else None
            for number, (at_us, tick) in enumerate(rows):
                newer_us = np.full_like(at_us, NEVER) if newer is None else newer[number]
                sent.append(_Sent(broker, at_us, newer_us, tick))
    return sent


def _operations(
    ticks: Ticks, lifetime: ProcessLifetime, broker: int
) -> Iterator[tuple[Operation, Times]]:
    since, until = (
        ticks.registered[lifetime.index, broker],
        ticks.unregistered[lifetime.index, broker],
    )
    notified = (
        ticks.timeline.settings.notified
    )  # the group's setting, which does not apply to a closed channel
    if notified and not lifetime.observed and broker in lifetime.first_brokers:
        yield Operation.JOINS, since
    if lifetime.ending is not None and lifetime.ending.notified:
        yield Operation.GOES, np.where(since < until, until, NEVER)


def _delivered(ticks: Ticks, lifetime: ProcessLifetime, notice: _Sent) -> Times:
    """Return (S,) when a notice wakes a member; `NEVER` if it does not arrive."""
    at_us, seeds = notice.at_us, ticks.seeds
    listed = ticks.registered[lifetime.index, notice.broker] <= at_us
    listed &= at_us < ticks.unregistered[lifetime.index, notice.broker]
    lost = np.uint64(round(ticks.options.lost_notices * (1 << draws.DRAW_BITS)))
    if lost:
        listed &= draws.uniforms(seeds, lifetime.entity, Timer.NOTICE_LOST, notice.tick) >= lost
    woken = at_us + delays.NOTICE.many(
        draws.uniforms(seeds, lifetime.entity, Timer.NOTICE, notice.tick)
    )
    woken = woken + ticks.options.one_way_us
    late = ticks.notice_late[lifetime.index]
    woken = np.where(woken < ticks.ended[lifetime.index], woken, np.minimum(woken, NEVER) + late)
    return np.where(listed & (woken < notice.newer_us), woken, NEVER)


def _following(times: Times) -> Times:
    """Return (K, S) the next later time in the same column, or `NEVER`, for each time."""
    order = np.argsort(times, axis=0, kind="stable")
    rising = np.take_along_axis(times, order, axis=0)
    following = np.full_like(rising, NEVER)
    for row in range(len(rising) - 2, -1, -1):
        later = rising[row + 1] > rising[row]
        following[row] = np.where(later, rising[row + 1], following[row + 1])
    in_place = np.empty_like(following)
    np.put_along_axis(in_place, order, following, axis=0)
    return in_place


def _any_between(at_us: Times, since_us: int, until_us: int) -> bool:
    inside: NDArray[np.bool_] = (since_us <= at_us) & (at_us < until_us)
    return bool(inside.any())
