"""`Ticks` of one seed as plain numbers."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cache, cached_property, partial
from typing import NamedTuple, TypeAlias

import numpy as np

from rebalance_core.client.process import ClientProcess, QueueAnswers
from rebalance_core.clockwork.draws import ROUTE_ANSWER, Timer, below, uniform
from rebalance_core.clockwork.options import ClockOptions
from rebalance_core.clockwork.script import Life, Script
from rebalance_core.clockwork.ticks import (
    FIRST_HEARTBEAT_US,
    FIRST_LOCK_RENEWAL_US,
    FIRST_POLL_US,
    LOCK_RENEWAL_US,
    MIN_INTERVAL,
    POLL_US,
    Ticks,
)
from rebalance_core.model.clients import Version, parse_version
from rebalance_core.model.events import ON
from rebalance_core.model.queue import MessageQueue
from rebalance_core.model.times import NOTICE_BATCH_MS, REBALANCE_WAIT_MS
from rebalance_core.replay.group_state import Member


class Future:
    """Times of one future that no pass can change; microseconds since the epoch."""

    def __init__(self, script: Script, seed: int, options: ClockOptions) -> None:
        self.script, self.seed, self.options = script, seed, options
        self.ticks = ticks = Ticks(script, np.array([seed], np.int64), options)
        self.created: list[int] = ticks.created[:, 0].tolist()
        self.timers_start: list[int] = ticks.timers_start[:, 0].tolist()
        self._beats_start: list[int] = ticks.beats_start[:, 0].tolist()
        self._own_start: list[int] = ticks.own_start[:, 0].tolist()
        self.joined: list[int] = ticks.joined[:, 0].tolist()
        self.ended: list[int] = ticks.ended[:, 0].tolist()
        self.unlocked: list[int] = ticks.unlocked[:, 0].tolist()
        self.notice_late: list[int] = ticks.notice_late[:, 0].tolist()
        self.stopped: list[int] = ticks.stopped[:, 0].tolist()
        self.registered: list[list[int]] = ticks.registered[:, :, 0].tolist()
        self.unregistered: list[list[int]] = ticks.unregistered[:, :, 0].tolist()
        self.first_pass_end: list[int] = ticks.first_pass_end[:, 0].tolist()
        self.pass_length: list[int] = ticks.pass_length[:, 0].tolist()
        self._poll: list[int] = ticks.periods.poll[:, 0].tolist()
        self._beat: list[int] = ticks.periods.beat[:, 0].tolist()
        self.wait: list[int] = ticks.periods.wait[:, 0].tolist()
        self.min_interval: list[int] = ticks.periods.least[:, 0].tolist()
        self._route_lag: list[int] = ticks.route_lag[:, 0].tolist()
        self._visible: list[list[int]] = [
            ticks.route_visible_us[topic][:, 0].tolist() for topic in range(len(script.topics))
        ]

    @cached_property
    def broker_lives(self) -> list[tuple[int, int]]:
        """By broker life: since when it is up, and until when."""
        return [(int(up[0]), int(down[0])) for up, down in self.ticks.broker_lives_us]

    @cached_property
    def lockless(self) -> list[tuple[int, int]]:
        """By stretch without order locks: since when, and until when."""
        return [(int(since[0]), int(until[0])) for since, until in self.ticks.lockless_us]

    def notices(self, broker: int, at_us: int) -> str:
        """Return how a broker tells members of changes at a time: one of `NOTICE_MODES`."""
        found = ON
        for switch, since in zip(self.script.notices, self.ticks.notices_us, strict=True):
            if switch.broker == broker and since[0] <= at_us:
                found = switch.mode
        return found

    def next_batch_us(self, broker: int, life: int, at_us: int) -> int:
        """Return when a broker that gathers its notices sends them next."""
        period = NOTICE_BATCH_MS * 1_000
        entity = self.script.broker_entities[broker]
        draw = uniform(self.seed, entity, Timer.NOTICE_BATCH, life)
        return at_us + (below(draw, period) - at_us) % period

    def sightings_us(self, life: Life) -> list[int]:
        """Return when each sighting of a life happened."""
        return [int(at[0]) for at in self.ticks.sightings_us(life)]

    def states_us(self, life: Life) -> list[int]:
        """Since when each state of a life holds."""
        return [int(since[0]) for since in self.ticks.states_us(life)]

    def visible_to_brokers_us(self, topic: int) -> list[int]:
        """Since when the name servers of brokers answer with each version of a route."""
        return self._visible[topic]

    def brokers_poll_us(self, broker: int, life: int, at_us: int) -> int | None:
        """A broker's last route poll until a time; None: its process had none yet.

        It polls as often as a client. Logs have when it registered, up to 10 s after its start, so
        the phase is not known.
        """
        draw = uniform(self.seed, self.script.broker_entities[broker], Timer.BROKER_POLL, life)
        polled_us = at_us - (at_us - below(draw, POLL_US)) % POLL_US
        return polled_us if polled_us >= self.broker_lives[life][0] else None

    @cache  # noqa: B019 - lives as long as the future
    def visible_us(self, life: int, topic: int) -> list[int]:
        """Since when the name server of one client answers with each version of a route."""
        return [at + self._route_lag[life] for at in self._visible[topic]]

    def poll_us(self, life: int, number: int) -> int:
        """Tick of a route poll."""
        return self.timers_start[life] + FIRST_POLL_US + number * self._poll[life]

    def poll_answered_us(self, life: int, number: int) -> int:
        """Return when the answer of a route poll is in use."""
        entity = self.script.lives[life].entity
        draw = uniform(self.seed, entity, Timer.ROUTE_ANSWER, number)
        return self.poll_us(life, number) + ROUTE_ANSWER.of(draw)

    def polls_before(self, life: int, at_us: int) -> int:
        """Return how many route polls have their tick before a time."""
        return _ticks_before(self.timers_start[life] + FIRST_POLL_US, self._poll[life], at_us)

    def heartbeat_us(self, life: int, number: int) -> int:
        """Tick of a heartbeat."""
        return self._beats_start[life] + FIRST_HEARTBEAT_US + number * self._beat[life]

    def heartbeats_before(self, life: int, at_us: int) -> int:
        """Return how many heartbeats have their tick before a time."""
        return _ticks_before(self._beats_start[life] + FIRST_HEARTBEAT_US, self._beat[life], at_us)

    def lock_renewal_us(self, life: int, number: int) -> int:
        """Tick of lockAll."""
        return self._own_start[life] + FIRST_LOCK_RENEWAL_US + number * LOCK_RENEWAL_US

    def lock_renewals_before(self, life: int, at_us: int) -> int:
        """Return how many rounds of lockAll have their tick before a time."""
        return _ticks_before(self._own_start[life] + FIRST_LOCK_RENEWAL_US, LOCK_RENEWAL_US, at_us)


def _ticks_before(first_us: int, period_us: int, at_us: int) -> int:
    return max(0, -((first_us - at_us) // period_us))


# What comes next: a heap whose order is total, so that every run of a seed is the same.


class Kind(IntEnum):
    """Kinds of happenings; those of one instant in this order."""

    STRETCH = -1
    SCRIPT = 0
    MEMBERSHIP = 1
    NOTICE = 2
    POLL = 3
    HEARTBEAT = 4
    RELEASE = 5
    RENEWAL = 6
    REQUEST = 7
    PASS = 8


Action: TypeAlias = Callable[[], object]
NOBODY = -1
"""Process or broker of an entry that concerns none."""


class _QueuedEvent(NamedTuple):
    at_us: int
    kind: Kind
    process: int
    broker: int
    sequence: int
    action: Action


class EventQueue:
    """Actions by time, kind, process, broker and the order in which they were put down."""

    def __init__(self) -> None:
        self._entries: list[_QueuedEvent] = []
        self._sequence = 0
        self.now_us = 0
        """When the last action was due."""

    def put(
        self, at_us: int, kind: Kind, action: Action, *, process: int = NOBODY, broker: int = NOBODY
    ) -> None:
        """Put an action down; what is due already is done next."""
        self._sequence += 1
        entry = _QueuedEvent(max(at_us, self.now_us), kind, process, broker, self._sequence, action)
        heapq.heappush(self._entries, entry)

    def run_until(self, end_us: int) -> None:
        """Do everything that is due before ``end_us``."""
        while self._entries and self._entries[0].at_us < end_us:
            entry = heapq.heappop(self._entries)
            self.now_us = entry.at_us
            entry.action()
        self.now_us = max(self.now_us, end_us)


# When a client's next pass begins (rocketmq.md §3.1).
#
# Upstream: ``RebalanceService.run`` and the latch of ``ServiceThread``.

WAIT_US = REBALANCE_WAIT_MS * 1_000


@dataclass(slots=True)
class PassClock:
    """The clock of one client's passes.

    Attributes:
        last_end_us: end of the last pass; of a new client, its creation.
        min_interval_us: of its version and settings.
        length_us: how long each of its passes takes.
        own_wait_us: from a balanced pass to the next one if nobody wakes it.
        number: of the next pass; idle ones count.
        wait_us: until the next pass if nobody wakes the client.
        woken_us: the first wake-up that no pass has used up.
        busy_until_us: no pass begins before: one that is not the clock's is under way.
    """

    last_end_us: int
    min_interval_us: int
    length_us: int
    own_wait_us: int
    number: int = 0
    wait_us: int = field(init=False)
    woken_us: int | None = None
    busy_until_us: int = 0

    def __post_init__(self) -> None:
        self.wait_us = self.own_wait_us

    @property
    def next_us(self) -> int:
        """Return when the next pass begins, as things stand."""
        due = self.last_end_us + self.wait_us
        if self.woken_us is not None:
            due = min(due, max(self.woken_us, self.last_end_us + self.min_interval_us))
        return max(due, self.busy_until_us)

    def wake(self, at_us: int) -> None:
        """``wakeup()``: a latch, so only the first counts until a pass begins."""
        if self.woken_us is None or at_us < self.woken_us:
            self.woken_us = at_us

    def begin(self, at_us: int) -> int:
        """A pass begins, and uses up every wake-up so far; returns its number."""
        number = self.number
        self.number += 1
        self.woken_us = None
        self.last_end_us = at_us + self.length_us
        self.wait_us = self.own_wait_us
        return number

    def begin_resumed(self) -> int:
        """The number of ``resume()``'s pass: it runs in its caller's thread, the clock goes on."""
        self.number += 1
        return self.number - 1

    def spin(self, last_end_us: int) -> None:
        """From 5.2 on passes of a suspended client are unbalanced, and so one a second."""
        self.last_end_us, self.wait_us, self.woken_us = last_end_us, self.min_interval_us, None

    def unbalanced(self) -> None:
        """The pass that began last was not balanced: from 5.2 on the next one comes soon."""
        if self.min_interval_us:
            self.wait_us = self.min_interval_us

    def skip_idle(self, until_us: int) -> None:
        """Passes that change nothing follow each other until a moment; wake-ups are forgotten."""
        self.woken_us = None
        period = self.wait_us + self.length_us
        passes = max(0, until_us - self.last_end_us) // period
        self.last_end_us += passes * period
        self.number += passes


# What there is at one moment of one future: brokers, clients, and the log so far.

OWN, WOKEN, RESUMED = "own", "woken", "resumed"
"""Why a pass begins: the client's own wait is over, somebody woke it, the application resumed."""


@dataclass(slots=True)
class OrderLock:
    """``RebalanceLockManager.LockEntry``: who has a queue, and since when it was not renewed."""

    client_id: str
    renewed_us: int


@dataclass(slots=True)
class LoopBroker:
    """One broker, and what it knows of the group.

    Attributes:
        number: in the script.
        life: number of its life in the script.
        up: its process runs and can be reached.
        silent: it is not up, and every request to it has to time out.
        lockless: nobody gives order locks for it.
        entries: its member list: lives, and the client that each entry's connection leads to,
            None for a connection nobody reads.
        topics: what it takes the group to subscribe; None: it has not heard yet.
        told_us: when it last told the group of a change.
        batch: counts what it gathered to tell at once: of several changes the last one is told.
        locks: by queue.
    """

    number: int
    life: int
    up: bool
    silent: bool = False
    lockless: bool = False
    entries: dict[int, int | None] = field(default_factory=dict)
    topics: frozenset[str] | None = None
    told_us: int = -1
    batch: int = 0
    locks: dict[int, OrderLock] = field(default_factory=dict)

    def lists(self, life: int) -> bool:
        """Some entry leads to this client."""
        return life in self.entries or life in self.entries.values()

    def forget_group(self) -> None:
        """A broker that starts knows nobody and no lock."""
        self.entries.clear()
        self.locks.clear()
        self.topics = None


@dataclass(slots=True)
class Client:
    """One process of the group.

    Attributes:
        life: of the script.
        member: what it subscribes now, and whether it is suspended.
        process: what its passes change.
        clock: of its passes.
        known: number of the route's version that it knows, by topic.
        held: queues that it holds, as the log has it: a pass's effects take a while.
        reachable: brokers that its requests reach.
        joining: brokers that it is about to register with as it joins.
        in_pass: a pass has begun and its outcome is not known yet.
        leaving: its ``shutdown()`` has begun: it reads nothing any more, but its passes go on.
        scheduler_free_us: until then its one scheduler thread is blocked.
        next_poll: number of the first route poll that has not been looked at.
    """

    life: Life
    member: Member
    process: ClientProcess
    clock: PassClock
    known: dict[int, int] = field(default_factory=dict)
    held: set[int] = field(default_factory=set)
    reachable: set[int] = field(default_factory=set)
    joining: set[int] = field(default_factory=set)
    in_pass: bool = False
    leaving: bool = False
    scheduler_free_us: int = 0
    next_poll: int = 0

    @property
    def index(self) -> int:
        """The number of its life."""
        return self.life.index

    @property
    def version(self) -> Version:
        """The client's version."""
        return self.process.version


@dataclass(frozen=True, slots=True)
class PassBegun:
    """One pass, for those who look for what went on.

    Attributes:
        life: whose.
        number: counted over all passes of the process.
        begin_us: when it began.
        trigger: `OWN`, `WOKEN` or `RESUMED`.
    """

    life: int
    number: int
    begin_us: int
    trigger: str


@dataclass
class World:
    """One future at one moment.

    Attributes:
        script: what happens.
        future: times that no pass can change.
        agenda: what comes next.
        brokers: by number.
        begin_pass: begins a pass of a client whose clock says so.
        clients: living processes by the number of their life.
        idle: nothing is followed between two changes that are far apart.
        stretch: counts those that are followed; timers of an older one have been made up for.
        rows: (life, queue, at_us, delta) of the log so far.
        passes: that began so far.
        together: by life: (world, life) of other groups in its instance, and when a wake-up at a
            time comes to it.
    """

    script: Script
    future: Future
    agenda: EventQueue
    brokers: list[LoopBroker]
    begin_pass: Callable[[World, Client, str], None]
    clients: dict[int, Client] = field(default_factory=dict)
    idle: bool = True
    stretch: int = 0
    rows: list[tuple[int, int, int, int]] = field(default_factory=list)
    passes: list[PassBegun] = field(default_factory=list)
    together: dict[int, list[tuple[World, int, Callable[[int], int]]]] = field(
        default_factory=dict, repr=False
    )

    @property
    def now_us(self) -> int:
        """The moment."""
        return self.agenda.now_us

    def draw(self, entity: int, timer: int, tick: int = 0) -> int:
        """A draw of this future."""
        return uniform(self.future.seed, entity, timer, tick)

    def ticks(self, client: Client, stretch: int) -> bool:
        """A timer that was put on the agenda in a stretch still runs."""
        return not self.idle and stretch == self.stretch and self.runs(client)

    def runs(self, client: Client) -> bool:
        """The process is still there, if only to come to its end."""
        return self.clients.get(client.index) is client

    def lives(self, client: Client) -> bool:
        """The process is there, and reads what it holds."""
        return self.runs(client) and not client.leaving

    @cached_property
    def topic_numbers(self) -> dict[str, int]:
        """Topic -> its number; topics that never have a route have none."""
        return {topic: number for number, topic in enumerate(self.script.topics)}

    @cached_property
    def queue_numbers(self) -> dict[MessageQueue, int]:
        """Queue -> its number."""
        return {queue: number for number, queue in enumerate(self.script.queues)}

    @cached_property
    def queue_answers(self) -> dict[MessageQueue, QueueAnswers]:
        """Every queue has a committed offset, so that every addition finds where to begin."""
        return dict.fromkeys(self.script.queues, QueueAnswers(0, 0, 0))

    @cached_property
    def broker_version(self) -> Version:
        """The version of the group's brokers."""
        return parse_version(self.script.settings.broker_version)


# When a client's next pass is put on the agenda (rocketmq.md §3.1).


def wake(world: World, client: Client) -> None:
    """``rebalanceImmediately``: the next pass begins as soon as the clock of passes allows."""
    client.clock.wake(world.now_us)
    schedule_pass(world, client)


def wake_instance(world: World, life: int) -> None:
    """A RebalanceService runs passes of all groups of its instance, whosever notice it is."""
    _wake_life(world, life)
    wake_others(world, life, world.now_us)


def wake_others(world: World, life: int, at_us: int) -> None:
    """Put a wake-up of the other groups in the instance of a life on the agenda."""
    for other, index, comes_to in world.together.get(life, ()):
        woken = partial(_wake_life, other, index)
        world.agenda.put(comes_to(at_us), Kind.NOTICE, woken, process=index)


def _wake_life(world: World, life: int) -> None:
    client = world.clients.get(life)
    if client is not None:
        wake(world, client)


def schedule_pass(world: World, client: Client) -> None:
    """Put the next pass on the agenda; what stood there before begins nothing any more."""
    if not client.in_pass and (not client.member.suspended or passes_while_suspended(client)):
        due, at_us = partial(_begin_if_due, world, client), client.clock.next_us
        if world.script.known is not None:
            at_us = world.script.known.due_us(client.index, at_us)
        world.agenda.put(at_us, Kind.PASS, due, process=client.index)


def passes_while_suspended(client: Client) -> bool:
    """Before 5.2 passes that do nothing keep a suspended client's clock (rocketmq.md §3.2)."""
    return client.version < MIN_INTERVAL


def _begin_if_due(world: World, client: Client) -> None:
    clock = client.clock
    if clock.next_us > world.now_us or client.in_pass or world.idle or not world.runs(client):
        return
    if not client.member.suspended:
        own_us = clock.last_end_us + clock.wait_us
        world.begin_pass(world, client, OWN if own_us <= world.now_us else WOKEN)
    elif passes_while_suspended(client):
        clock.begin(world.now_us)
        schedule_pass(world, client)
