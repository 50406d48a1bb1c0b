"""The state of a future at a moment: brokers, clients, and the log so far."""

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
"""Why a pass begins: the client's own wait is over, a notice woke it, or the application called
``resume()``.
"""


@dataclass(slots=True)
class OrderLock:
    """``RebalanceLockManager.LockEntry``: the holder of a queue's lock, and its last renewal."""

    client_id: str
    renewed_us: int


@dataclass(slots=True)
class ReferenceBroker:
    """A broker and its knowledge of the group.

    Attributes:
        number: its number in the timeline.
        lifetime: the number of its lifetime in the timeline.
        up: whether its process runs and can be reached.
        silent: whether it is down and every request to it times out.
        lockless: whether no process grants its order locks.
        entries: its member list, which maps lifetimes to the client behind each connection, or to
            None if nothing reads from it.
        topics: the group's topics as the broker knows them; None if unknown so far.
        told_us: when it last notified the group of a change.
        batch: a counter of batched notices; only the last of several changes is announced.
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
        """Return whether an entry belongs to this client."""
        return lifetime in self.entries or lifetime in self.entries.values()

    def forget_group(self) -> None:
        """Forget all members and locks, as a restarted broker does."""
        self.entries.clear()
        self.locks.clear()
        self.topics = None


@dataclass(slots=True)
class Client:
    """A process of the group.

    Attributes:
        lifetime: the lifetime of the timeline.
        member: its current subscriptions, and whether it is suspended.
        process: the state that its passes change.
        clock: the clock of its passes.
        versions: the number of the route version that it knows, by topic.
        held: queues that it holds according to the log; a pass takes effect after a delay.
        reachable: brokers that its requests reach.
        joining: brokers with which it is about to register while joining.
        in_pass: whether a pass has begun whose outcome is not yet known.
        leaving: whether its ``shutdown()`` has begun, after which it reads nothing although its
            passes continue.
        scheduler_free_us: the time until which its only scheduler thread is blocked.
        next_poll: the number of the first route poll that has not been applied.
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
        lifetime: the lifetime that runs it.
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
    """The state of a future at a moment.

    Attributes:
        timeline: what happens.
        future: times that no pass can change.
        agenda: scheduled events.
        brokers: the brokers, by number.
        begin_pass: begins a pass of a client when its clock is due.
        clients: live processes by the number of their lifetime.
        idle: whether this is the unsimulated time between two distant changes.
        stretch: counts the simulated stretches; the effects of older timers have been applied.
        rows: (lifetime, queue, at_us, delta) of the log so far.
        passes: the passes that have begun so far.
        together: for each lifetime, the (world, lifetime) of other groups in its instance, and a
            function that returns when a wake-up reaches it.
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
        """Return whether a timer scheduled in a stretch is still running."""
        return not self.idle and stretch == self.stretch and self.runs(client)

    def runs(self, client: Client) -> bool:
        """Return whether the process still runs passes, even if it is leaving."""
        return self.clients.get(client.index) is client

    def is_alive(self, client: Client) -> bool:
        """Return whether the process exists and reads its queues."""
        return self.runs(client) and not client.leaving

    @cached_property
    def topic_numbers(self) -> dict[str, int]:
        """The number of each topic, except for topics that never have a route."""
        return {topic: number for number, topic in enumerate(self.timeline.topics)}

    @cached_property
    def queue_numbers(self) -> dict[MessageQueue, int]:
        """The number of each queue."""
        return {queue: number for number, queue in enumerate(self.timeline.queues)}

    @cached_property
    def queue_answers(self) -> dict[MessageQueue, QueueAnswers]:
        """A committed offset for every queue, so that every added queue has a start offset."""
        return dict.fromkeys(self.timeline.queues, QueueAnswers(0, 0, 0))

    @cached_property
    def broker_version(self) -> Version:
        """The version of the group's brokers."""
        return parse_version(self.timeline.settings.broker_version)
