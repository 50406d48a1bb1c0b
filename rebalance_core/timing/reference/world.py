"""The state at a moment of a future: brokers, clients, and the log so far."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

from rebalance_core.client.broker_answers import QueueAnswers
from rebalance_core.client.process import ClientProcess
from rebalance_core.model.queue import MessageQueue
from rebalance_core.model.versions import Version, parse_version
from rebalance_core.replay.member import Member
from rebalance_core.timing.draws import uniform
from rebalance_core.timing.group_timeline import GroupTimeline, ProcessLifetime
from rebalance_core.timing.reference.event_queue import EventQueue
from rebalance_core.timing.reference.future import Future
from rebalance_core.timing.reference.pass_clock import PassClock

OWN, WOKEN, RESUMED = "own", "woken", "resumed"
"""Why a pass begins: the client's own wait is over, a notice woke it, the application resumed."""


@dataclass(slots=True)
class OrderLock:
    """``RebalanceLockManager.LockEntry``: the holder of a queue, and its last renewal."""

    client_id: str
    renewed_us: int


@dataclass(slots=True)
class ReferenceBroker:
    """A broker, and its knowledge of the group.

    Attributes:
        number: in the timeline.
        lifetime: number of its lifetime in the timeline.
        up: its process runs and can be reached.
        silent: it is not up, and every request to it has to time out.
        lockless: no process grants its order locks.
        entries: its member list: lifetimes, and the client that each entry's connection leads to,
            None for a connection without a reader.
        topics: the group's topics in its view; None: unknown so far.
        told_us: when it last notified the group of a change.
        batch: counts batched notices: of several changes the last is notified.
        locks: the locks, by queue.
    """

    number: int
    lifetime: int
    up: bool
    silent: bool = False
    lockless: bool = False
    entries: dict[int, int | None] = field(default_factory=dict)
    topics: frozenset[str] | None = None
    told_us: int = -1
    batch: int = 0
    locks: dict[int, OrderLock] = field(default_factory=dict)

    def lists(self, lifetime: int) -> bool:
        """Return whether some entry leads to this client."""
        return lifetime in self.entries or lifetime in self.entries.values()

    def forget_group(self) -> None:
        """Forget all members and locks, as a starting broker."""
        self.entries.clear()
        self.locks.clear()
        self.topics = None


@dataclass(slots=True)
class Client:
    """A process of the group.

    Attributes:
        lifetime: the lifetime of the timeline.
        member: what it subscribes now, and whether it is suspended.
        process: the state that its passes change.
        clock: the clock of its passes.
        versions: number of the route's version that it knows, by topic.
        held: queues that it holds, as the log has it: a pass's effects take a while.
        reachable: brokers that its requests reach.
        joining: brokers that it is about to register with as it joins.
        in_pass: a pass has begun and its outcome is not known yet.
        leaving: its ``shutdown()`` has begun: it reads nothing any more, but its passes continue.
        scheduler_free_us: until then its one scheduler thread is blocked.
        next_poll: number of the first route poll that has not been applied.
    """

    lifetime: ProcessLifetime
    member: Member
    process: ClientProcess
    clock: PassClock
    versions: dict[int, int] = field(default_factory=dict)
    held: set[int] = field(default_factory=set)
    reachable: set[int] = field(default_factory=set)
    joining: set[int] = field(default_factory=set)
    in_pass: bool = False
    leaving: bool = False
    scheduler_free_us: int = 0
    next_poll: int = 0

    @property
    def index(self) -> int:
        """The number of the process's lifetime."""
        return self.lifetime.index

    @property
    def version(self) -> Version:
        """The client's version."""
        return self.process.version


@dataclass(frozen=True, slots=True)
class PassBegun:
    """A pass, for observers of a simulation.

    Attributes:
        lifetime: whose pass it is.
        number: counted over all passes of the process.
        begin_us: when it began.
        trigger: `OWN`, `WOKEN` or `RESUMED`.
    """

    lifetime: int
    number: int
    begin_us: int
    trigger: str


@dataclass
class World:
    """A future at a moment.

    Attributes:
        timeline: what happens.
        future: times that no pass can change.
        agenda: scheduled events.
        brokers: the brokers, by number.
        begin_pass: begins a pass of a client when its clock is due.
        clients: live processes by the number of their lifetime.
        idle: nothing is followed between two distant changes.
        stretch: counts those that are followed; effects of older timers have been applied.
        rows: (lifetime, queue, at_us, delta) of the log so far.
        passes: that began so far.
        together: by lifetime: (world, lifetime) of other groups in its instance, and when a wake-up
            at a time comes to it.
    """

    timeline: GroupTimeline
    future: Future
    agenda: EventQueue
    brokers: list[ReferenceBroker]
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
        """Return a draw of this future."""
        return uniform(self.future.seed, entity, timer, tick)

    def ticks(self, client: Client, stretch: int) -> bool:
        """Return whether a timer that was scheduled in a stretch still runs."""
        return not self.idle and stretch == self.stretch and self.runs(client)

    def runs(self, client: Client) -> bool:
        """Return whether the process still exists, possibly only until its end."""
        return self.clients.get(client.index) is client

    def is_alive(self, client: Client) -> bool:
        """Return whether the process exists and reads its queues."""
        return self.runs(client) and not client.leaving

    @cached_property
    def topic_numbers(self) -> dict[str, int]:
        """The number of each topic; topics that never have a route have none."""
        return {topic: number for number, topic in enumerate(self.timeline.topics)}

    @cached_property
    def queue_numbers(self) -> dict[MessageQueue, int]:
        """The number of each queue."""
        return {queue: number for number, queue in enumerate(self.timeline.queues)}

    @cached_property
    def queue_answers(self) -> dict[MessageQueue, QueueAnswers]:
        """A committed offset for every queue, so that every addition knows where to begin."""
        return dict.fromkeys(self.timeline.queues, QueueAnswers(0, 0, 0))

    @cached_property
    def broker_version(self) -> Version:
        """The version of the group's brokers."""
        return parse_version(self.timeline.settings.broker_version)
