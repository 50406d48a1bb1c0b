"""A cluster in which clients really read, commit and hand over: what first offsets come of it.

Knows nothing of `rebalance_core` but the rows it writes. Times and rules are those of
rocketmq.md §5 and of the windows in docs/semantics.md: a client persists 10 s after its start and
every 5 s from then on, and each queue that it gives up; pull requests carry commits, too; every
commit is under way for up to a second. After each event every member runs a pass at a time of its
own inside the event's window. What is told at once it knows whenever it runs one; a route, or that
a member has expired, only when it has learned of it.
"""

import random
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Any

from rebalance_core.model.events import Event
from rebalance_core.model.group_settings import GroupSettings
from rebalance_core.model.queue import MessageQueue
from rebalance_core.replay.history import CommittedOffset, GroupHistory, QueueOffset
from tests.unit.replay.histories import GROUP, event, join, leave, numbered, topic

STEP_MS = 250
UNDER_WAY_MS = 999
FIRST_PERSIST_MS, PERSIST_MS, FLUSH_MS = 10_000, 5_000, 5_000
NOTIFIED_MS, EXPIRED_MS, ROUTE_MS, LOCK_MS = 3_000, 33_000, 53_000, 61_000
MODES = ("CONSUME_FROM_LAST_OFFSET", "CONSUME_FROM_FIRST_OFFSET", "CONSUME_FROM_TIMESTAMP")

Queue = tuple[str, int]
"""(broker name, queue id); there is one topic."""
View = dict[Queue, str]
"""Who is to have each queue."""


@dataclass
class Log:
    """One queue of a broker."""

    stored_ms: list[int] = field(default_factory=list)
    """When each message came."""
    min_offset: int = 0
    cached: bool = True

    @property
    def max_offset(self) -> int:
        return len(self.stored_ms)


@dataclass
class Client:
    """One consumer process."""

    name: str
    began_ms: int
    logged: float
    """The share of its commits that are in the collected logs."""
    speed: float
    """Messages a step."""
    mode: str
    view: int = -1
    """Up to which event it knows what is so."""
    positions: dict[Queue, float] = field(default_factory=dict)
    """Where it reads each queue that it holds."""
    memory: dict[Queue, int] = field(default_factory=dict)
    """Its offset store."""
    waits: dict[Queue, int] = field(default_factory=dict)
    """Orderly: from when it may lock a queue."""
    sent_ms: int = 0
    """When what it sent last arrives; one connection keeps the order."""


@dataclass
class Truth:
    """What an operator sees of the group, and where its clients really started."""

    history: GroupHistory
    starts: list[tuple[int, str, Queue, int]]
    """When, who, what, from where."""


class Cluster:
    """One random history, step by step.

    Args:
        rng: decides everything.
    """

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.version = rng.choice(("4.9.7", "5.1.0", "5.1.4", "5.3.3"))
        self.ordered = rng.random() < 0.2
        self.modes = rng.choice((MODES[:1], MODES[1:2], MODES[2:], MODES))
        self.logged = rng.choice((0.0, 0.5, 1.0))
        self.speed = rng.choice((0.02, 0.3, 1.0, 5.0))
        self.rate = rng.choice((0.0, 0.05, 0.3, 1.0))
        self.observed = rng.choice((0.002, 0.01, 0.05))
        self.knows_cache = rng.random() < 0.5
        self.now = 1_000_000
        self.timestamp_ms = self.now + rng.randrange(-60_000, 300_000)
        self.queue_nums: dict[str, int] = {}
        self.logs: dict[Queue, Log] = {}
        self.offsets: dict[Queue, int] = {}
        self.flushed: dict[Queue, int] = {}
        self.clients: dict[str, Client] = {}
        self.views: list[View] = []
        self.told: list[bool] = []
        """By view: everybody knows of it at once."""
        self.under_way: list[tuple[int, int, Queue, int]] = []
        self.learning: list[tuple[int, int, str]] = []
        self.events: list[Event] = []
        self.seen: dict[tuple[Queue, int], QueueOffset] = {}
        self.committed: dict[tuple[Queue, str | None, int], CommittedOffset] = {}
        self.starts: list[tuple[int, str, Queue, int]] = []
        self.serial = 0

    def run(self) -> Truth:
        """Tell a story of a dozen events, some of them within each other's windows."""
        rng = self.rng
        old = rng.random() < 0.3  # the log begins when the group is already at work
        self._create("a", rng.randint(1, 3))
        self._steps(rng.choice((0, 60_000)))
        for _ in range(rng.randint(1, 2)):
            self._come()
        if old:
            self._steps(80_000)
            self._begin_the_log()
        for _ in range(rng.randint(3, 9)):
            self._steps(rng.choice((rng.randrange(250, 3_000), rng.randrange(3_000, 100_000))))
            self._happen()
        self._steps(120_000)
        settings = GroupSettings(
            subscriptions=("T",),
            ordered=self.ordered,
            broker_version=self.version,
            client_version="4.9" if self.version.startswith("4") else "5.3",
            consume_timestamp_ms=self.timestamp_ms,
        )
        history = GroupHistory(
            "c",
            GROUP,
            settings,
            numbered(self.events),
            tuple(self.seen.values()),
            tuple(self.committed.values()),
        )
        return Truth(history, self.starts)

    def _happen(self) -> None:
        what = self.rng.random()
        if what < 0.35 or not self.clients:
            self._come()
        elif what < 0.75:
            self._go(self.rng.choice(sorted(self.clients)))
        elif what < 0.85:
            self._create("ab"[self.rng.random() < 0.5], self.rng.randint(1, 4))
        else:
            self._delete(self.rng.choice(sorted(self.queue_nums)))

    def _come(self) -> None:
        rng = self.rng
        names = [name for name in ("c1", "c2", "c3", "c4", "c5") if name not in self.clients]
        if not names:
            return
        client = Client(
            rng.choice(names),
            self.now,
            rng.choice((0.0, self.logged)),
            self.speed,
            rng.choice(self.modes),
        )
        self.clients[client.name] = client
        self._say(join(self.now, client.name, consume_from_where=client.mode), NOTIFIED_MS)

    def _go(self, name: str) -> None:
        client = self.clients.pop(name)
        how = self.rng.choice(("LEAVE", "CLOSED", "EXPIRED"))
        if how == "LEAVE":
            for queue in list(client.positions):
                self._persist(client, queue)
            self._say(leave(self.now, name), NOTIFIED_MS)
        else:
            if how == "EXPIRED":  # dead for a while before a broker's scan finds out
                self._steps(self.rng.randrange(STEP_MS, 90_000))
            lost = event(self.now, "CONSUMER_LOST", name, detail=how)
            self._say(lost, EXPIRED_MS if how == "EXPIRED" else NOTIFIED_MS)

    def _create(self, broker: str, queues: int) -> None:
        queues = max(queues, self.queue_nums.get(broker, 0))
        self.queue_nums[broker] = queues
        for queue_id in range(queues):
            self.logs.setdefault((broker, queue_id), Log())
        self._say(topic(self.now, queues, broker=broker), ROUTE_MS)

    def _delete(self, broker: str) -> None:
        """The topic goes from one broker, its commits with it from 5.0 on, and comes back."""
        for queue in [queue for queue in self.logs if queue[0] == broker]:
            del self.logs[queue]
            if not self.version.startswith("4"):
                self.offsets.pop(queue, None)
                self.flushed.pop(queue, None)
        del self.queue_nums[broker]
        self._say(event(self.now, "TOPIC_DELETED", topic="T", broker_name=broker), ROUTE_MS)
        self._steps(self.rng.choice((2_000, 20_000, 70_000)))
        self._create(broker, self.rng.randint(1, 3))

    def _say(self, said: Event, window_ms: int) -> None:
        """Every member learns of it at a time of its own."""
        self.now += 1  # no two events are of one instant
        moment = self.now
        fields = {name: getattr(said, name) for name in Event.__slots__}
        self.events.append(Event(**fields | {"event_ms": moment}))
        queues = [(b, i) for b in sorted(self.queue_nums) for i in range(self.queue_nums[b])]
        if queues:
            self.views.append(_averagely(queues, sorted(self.clients)))
            self.told.append(window_ms == NOTIFIED_MS)
            for name in self.clients:
                at_ms = moment + self.rng.randrange(0, window_ms)
                heappush(self.learning, (at_ms, len(self.views) - 1, name))

    def _begin_the_log(self) -> None:
        """What was before is only known to be so."""
        observed = []
        for name, queues in self.queue_nums.items():
            observed.append(topic(self.now, queues, broker=name, detail="OBSERVED"))
        for name, client in self.clients.items():
            mode = client.mode
            observed.append(join(self.now, name, consume_from_where=mode, detail="OBSERVED"))
        self.events = observed
        self.starts.clear()

    def _steps(self, ms: int) -> None:
        end_ms = self.now + ms
        while self.now < end_ms:
            before, self.now = self.now, self.now + STEP_MS
            self._arrive()
            for queue, log in self.logs.items():
                self._write(log)
                self._look(queue, log)
            self._learn()
            for client in list(self.clients.values()):
                self._work(client, before)
            if self.now // FLUSH_MS != before // FLUSH_MS:
                self.flushed = dict(self.offsets)

    def _arrive(self) -> None:
        while self.under_way and self.under_way[0][0] <= self.now:
            _, _, queue, offset = heappop(self.under_way)
            if queue in self.logs or self.version.startswith("4"):
                self.offsets[queue] = offset

    def _write(self, log: Log) -> None:
        rng = self.rng
        if rng.random() < self.rate:
            log.stored_ms += [self.now] * rng.randint(1, 3)
        if rng.random() < 0.0005:
            log.min_offset = rng.randint(log.min_offset, log.max_offset)
        if rng.random() < 0.0005:
            log.cached = not log.cached

    def _look(self, queue: Queue, log: Log) -> None:
        rng, mq = self.rng, MessageQueue("T", *queue)
        if rng.random() < self.observed:
            cached = log.cached if self.knows_cache else None
            look = QueueOffset(mq, self.now, log.min_offset, log.max_offset, cached)
            self.seen[queue, self.now] = look
        if rng.random() < self.observed / 2:
            store = rng.choice((self.offsets, self.flushed))
            if queue in store:
                row = CommittedOffset(mq, None, self.now, store[queue])
                self.committed[queue, None, self.now] = row

    def _learn(self) -> None:
        while self.learning and self.learning[0][0] <= self.now:
            at_ms, view, name = heappop(self.learning)
            client = self.clients.get(name)
            if client is not None and client.began_ms < at_ms:
                first = client.view < 0  # whoever comes asks for everything
                client.view = len(self.views) - 1 if first else max(client.view, view)
                self._rebalance(client)

    def _rebalance(self, client: Client) -> None:
        while client.view + 1 < len(self.views) and self.told[client.view + 1]:
            client.view += 1
        mine = {q for q, name in self.views[client.view].items() if name == client.name}
        for queue in set(client.positions) - mine:
            self._persist(client, queue)
            del client.positions[queue]
            client.memory.pop(queue, None)
        client.waits = {queue: client.waits.get(queue, self._lock_ms()) for queue in mine}

    def _lock_ms(self) -> int:
        return self.now + (self.rng.randrange(0, LOCK_MS - NOTIFIED_MS) if self.ordered else 0)

    def _work(self, client: Client, before_ms: int) -> None:
        due = [q for q, ms in client.waits.items() if ms <= self.now and q not in client.positions]
        if due and self.ordered:  # a lock is asked for by a pass
            self._rebalance(client)
        for queue in sorted(due):
            if queue in client.waits and queue in self.logs:
                self._start(client, queue)
        for queue in client.positions:
            self._consume(client, queue)
        age, last = self.now - client.began_ms, before_ms - client.began_ms
        periods = (age - FIRST_PERSIST_MS) // PERSIST_MS, (last - FIRST_PERSIST_MS) // PERSIST_MS
        if age >= FIRST_PERSIST_MS and periods[0] != periods[1]:
            for queue in client.positions:
                self._persist(client, queue, says=True)

    def _start(self, client: Client, queue: Queue) -> None:
        log, stored = self.logs[queue], self.offsets.get(queue)
        if stored is not None:
            offset = client.memory[queue] = stored
        elif self._replies_zero(log):
            offset = client.memory[queue] = 0
        elif client.mode == MODES[0]:
            offset = log.max_offset
        else:
            offset = 0 if client.mode == MODES[1] else self._search(log)
        self.starts.append((self.now, client.name, queue, offset))
        client.positions[queue] = offset

    def _replies_zero(self, log: Log) -> bool:
        if self.version.startswith("4"):
            return log.min_offset == 0 and (log.max_offset == 0 or log.cached)
        return log.min_offset == 0 and log.max_offset > 0 and log.cached

    def _search(self, log: Log) -> int:
        """From 5.1.1 the first message of that time or later; before, the nearest one."""
        kept = log.stored_ms[log.min_offset :]
        later = log.min_offset + bisect_left(kept, self.timestamp_ms)
        if not kept or self.version >= "5.1.1" or later == log.min_offset:
            return later
        if later == log.max_offset:
            return later - 1
        to_later = log.stored_ms[later] - self.timestamp_ms
        return later - (self.timestamp_ms - log.stored_ms[later - 1] <= to_later)

    def _consume(self, client: Client, queue: Queue) -> None:
        log = self.logs.get(queue)
        if log is None:
            return
        position = client.positions[queue]
        if position > log.max_offset or position < log.min_offset:  # OFFSET_ILLEGAL
            position = max(min(position, log.max_offset), log.min_offset)
            client.memory[queue] = int(position)
        read = min(position + client.speed, log.max_offset)
        client.positions[queue] = read
        if int(read) > int(position):
            client.memory[queue] = int(read)
        if self.rng.random() < 0.1 and client.memory.get(queue, 0) > 0:
            self._send(client, queue)

    def _persist(self, client: Client, queue: Queue, *, says: bool = False) -> None:
        if queue not in client.memory:
            return
        if says and self.rng.random() < client.logged:
            row = CommittedOffset(
                MessageQueue("T", *queue), client.name, self.now, client.memory[queue]
            )
            self.committed[queue, client.name, self.now] = row
        self._send(client, queue)

    def _send(self, client: Client, queue: Queue) -> None:
        delay = self.rng.choice((0, 5, self.rng.randrange(0, UNDER_WAY_MS)))
        client.sent_ms = max(client.sent_ms, self.now + delay)
        self.serial += 1
        heappush(self.under_way, (client.sent_ms, self.serial, queue, client.memory[queue]))


def _averagely(queues: list[Queue], names: list[str]) -> View:
    """AVG: consecutive slices, the first ones larger by one."""
    view: View = {}
    for index, name in enumerate(names):
        share, more = divmod(len(queues), len(names))
        first = index * share + min(index, more)
        for queue in queues[first : first + share + (index < more)]:
            view[queue] = name
    return view


def outside(truth: Truth, rows: list[dict[str, Any]]) -> Iterator[tuple[dict[str, Any], int, bool]]:
    """Each row with the first real start in its window, and whether its bounds do not cover it."""
    starts = defaultdict(list)
    for at_ms, name, queue, offset in truth.starts:
        starts[name, queue].append((at_ms, offset))
    for row in rows:
        real = starts[row["client_id"], (row["broker_name"], row["queue_id"])]
        inside = [s for s in real if row["earliest_ms"] <= s[0] <= row["latest_ms"]]
        if inside and row["start_offset_low"] is not None:
            offset, high = inside[0][1], row["start_offset_high"]
            wrong = offset < row["start_offset_low"] or (high is not None and offset > high)
            yield row, offset, wrong
