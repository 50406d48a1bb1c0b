"""What `explain` answers: plain values, for the text and for the JSON object."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from rebalance_core.explain.reason import Reason
from rebalance_core.explain.shared.answer import Sharing
from rebalance_core.explain.start import Start
from rebalance_core.model.queue import MessageQueue


@dataclass(frozen=True, slots=True)
class Event:
    """The epoch at the time, and the events that began it."""

    epoch: int
    from_ms: int
    to_ms: int | None
    causes: tuple[str, ...]
    status: str
    transient: bool
    members: int
    distinct_members: int
    latest_ms: int | None
    """By when all its changes of queues have happened; None: it changed none."""


@dataclass(frozen=True, slots=True)
class Lists:
    """What the clients of an epoch sort before they allocate."""

    epoch: int
    mq_all: tuple[str, ...]
    cid_all: tuple[str, ...]
    queue_index: int | None
    client_indexes: tuple[int, ...]
    """Indexes in cidAll of the holders, now and before; without a holder, of who should hold it."""
    mq_all_known: bool = True
    """False: mq_all is one of several lists that give the rows, or empty."""


@dataclass(frozen=True, slots=True)
class Acquisition:
    """How the holder came to the queue: its last ADD."""

    epoch: int
    change_ms: int
    earliest_ms: int
    latest_ms: int
    kind: str
    cause: str
    from_client: str | None


@dataclass(frozen=True, slots=True)
class Holder:
    """A client that holds the queue, and why."""

    client_id: str
    processes: int
    index: int | None
    """Its first place in cidAll."""
    reason: Reason
    taken: Acquisition | None
    start: Start | None


@dataclass(frozen=True, slots=True)
class Explanation:
    """The answer to `explain`."""

    cluster: str
    consumer_group: str
    queue: MessageQueue
    at_ms: int
    event: Event
    before: Lists | None
    after: Lists
    holders_before: tuple[str, ...] | None
    """None: this is the first epoch."""
    holders: tuple[Holder, ...]
    nobody: Reason | None
    """Why no client holds it; None if one does."""
    agrees: bool | None
    """False: the owner worked out again is not the ledger's, which is a bug of one of the two.
    None, of a shared topic only: the rows leave too much open to work it out."""
    expected: Mapping[str, tuple[int, int]]
    """Client id -> fewest and most processes of it that hold the queue, worked out again."""
    notes: tuple[str, ...] = field(default=())
    sharing: Sharing | None = None
    """How members share the queue; then it has no holder, and ``agrees`` is about its topic."""
