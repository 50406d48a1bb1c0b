"""Clients of a broker whose master goes and comes back, with a slave beside it.

The slave has what it copied, commits of the outage stay with it, and the master that is back lists
members one by one: for some time clients take all queues (rocketmq.md §15).
"""

import random

from rebalance_core.model.events import Event
from tests.unit.replay.commit_truth import (
    FLUSH_MS,
    MODES,
    NOTIFIED_MS,
    ROUTE_MS,
    Client,
    Cluster,
    Queue,
)
from tests.unit.replay.histories import event

COPY_MS, POLL_MS, BACK_MS = 63_000, 30_000, 83_000
SLAVES = ("REFUSED", "SLAVE_READ", "ACTING")


class ReplicatedCluster(Cluster):
    """One random history with outages of masters.

    Args:
        rng: decides everything.
    """

    def __init__(self, rng: random.Random) -> None:
        super().__init__(rng)
        self.knows_cache = False  # two observations do not tell what was between them
        self.copied: dict[Queue, int] = {}
        self.away: dict[str, tuple[dict[Queue, int], str]] = {}
        """By broker without its master: what that has, and what the slaves do."""
        self.astray: dict[tuple[str, str], int] = {}
        """Until when a client sends commits of a broker's queues to who is not asked."""
        self.alone: dict[str, tuple[int, int]] = {}
        """From when until when a client believes that it is the only member."""
        self.unsettled_ms = 0

    def _happen(self) -> None:
        if self.rng.random() > 0.4:
            super()._happen()
        elif self.away and self.rng.random() < 0.7:
            self._master_comes(self.rng.choice(sorted(self.away)))
        else:
            broker = self.rng.choice(sorted(self.queue_nums))
            if broker not in self.away:
                self._master_goes(broker)

    def _master_goes(self, broker: str) -> None:
        mode = self.rng.choice(SLAVES)
        kept = self.offsets if self.rng.random() < 0.5 else self.flushed
        self.away[broker] = ({q: o for q, o in kept.items() if q[0] == broker}, mode)
        copied = {q: o for q, o in self.copied.items() if q[0] == broker}
        self._serve(broker, copied)
        self._turn("MASTER_DOWN", broker, ROUTE_MS, self.rng.choice((mode, mode, None)))

    def _master_comes(self, broker: str) -> None:
        kept, _ = self.away.pop(broker)
        self._serve(broker, kept)
        self._turn("MASTER_UP", broker, BACK_MS)
        for name in self.clients:
            if self.rng.random() < 0.6:
                first = self.now + self.rng.randrange(0, BACK_MS - 1_000)
                last = self.rng.randrange(first, self.now + BACK_MS - 500)
                self.alone[name] = (first, last)

    def _serve(self, broker: str, answers: dict[Queue, int]) -> None:
        for store in (self.offsets, self.flushed):
            for queue in [queue for queue in store if queue[0] == broker]:
                del store[queue]
            store.update(answers)

    def _turn(self, kind: str, broker: str, window_ms: int, detail: str | None = None) -> None:
        self.now += 1
        self.events.append(event(self.now, kind, broker_name=broker, detail=detail))
        self.unsettled_ms = max(self.unsettled_ms, self.now + window_ms)
        for name in self.clients:
            self.astray[name, broker] = self.now + self.rng.randrange(0, POLL_MS)

    def _say(self, said: Event, window_ms: int) -> None:
        told = window_ms == NOTIFIED_MS
        views = len(self.views)
        super()._say(said, max(window_ms, self.unsettled_ms - self.now))
        if len(self.views) > views:
            self.told[-1] = told

    def _arrive(self) -> None:
        if self.now % COPY_MS < FLUSH_MS:  # the slave's turn: some tick of it
            for queue, offset in self.offsets.items():
                if queue[0] not in self.away:
                    self.copied[queue] = offset
        super()._arrive()

    def _rebalance(self, client: Client) -> None:
        super()._rebalance(client)
        first, last = self.alone.get(client.name, (0, 0))
        if first <= self.now < last:
            every = [(b, i) for b in self.queue_nums for i in range(self.queue_nums[b])]
            for queue in every:
                client.waits.setdefault(queue, self._lock_ms())

    def _work(self, client: Client, before_ms: int) -> None:
        for turn_ms in self.alone.get(client.name, ()):
            if before_ms < turn_ms <= self.now:
                self._rebalance(client)
        super()._work(client, before_ms)

    def _start(self, client: Client, queue: Queue) -> None:
        _, mode = self.away.get(queue[0], (None, "ACTING"))
        if mode != "ACTING":
            asks_end = client.mode != MODES[1] and queue not in self.offsets
            if self.ordered or (asks_end and not self._replies_zero(self.logs[queue])):
                return
        super()._start(client, queue)

    def _consume(self, client: Client, queue: Queue) -> None:
        _, mode = self.away.get(queue[0], (None, "ACTING"))
        if mode != "REFUSED":
            super()._consume(client, queue)

    def _send(self, client: Client, queue: Queue) -> None:
        if self.now >= self.astray.get((client.name, queue[0]), 0):
            super()._send(client, queue)
