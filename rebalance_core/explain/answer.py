"""What `explain` answers: plain values, for the text and for the JSON object."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from rebalance_core.explain.reason import Reason
from rebalance_core.explain.view import Row
from rebalance_core.model.queue import MessageQueue
from rebalance_core.replay.start_rule import (
    BROKER_ZERO,
    FIRST_ZERO,
    LOCAL_STORE,
    MAX_OFFSET,
    PULL_ALWAYS_ZERO,
    QUERY_FAILED,
    RETRY_MAX,
    RETRY_ZERO,
    STORED,
    TIMESTAMP_SEARCH,
)

# Where an owner began to read.

RULE_TEXTS = {
    STORED: "the group has committed on this queue, or somebody held it: it goes on from the "
    "stored offset",
    BROKER_ZERO: "nothing is committed and the broker answers 0: the queue's minimum is 0 and its "
    "first message still at hand",
    MAX_OFFSET: "nothing is committed: CONSUME_FROM_LAST_OFFSET starts at the end",
    FIRST_ZERO: "nothing is committed: CONSUME_FROM_FIRST_OFFSET starts at 0",
    TIMESTAMP_SEARCH: "nothing is committed: CONSUME_FROM_TIMESTAMP starts at the first message "
    "not older than the timestamp",
    RETRY_ZERO: "nothing is committed: a retry topic starts at 0",
    RETRY_MAX: "nothing is committed: a retry topic starts at its end under CONSUME_FROM_TIMESTAMP",
    LOCAL_STORE: "BROADCASTING: the client's own offset file counts",
    PULL_ALWAYS_ZERO: "a PULL consumer starts at 0: the application keeps the offsets",
    QUERY_FAILED: "the start fails: the queue does not exist, or the client rejects the mode",
    None: "no observation says where it starts",
}


@dataclass(frozen=True, slots=True)
class Start:
    """Where the owner began to pull; numbers are message offsets, None where nothing is known."""

    rule: str | None
    status: str
    text: str
    start_offset: int | None
    start_offset_low: int | None
    start_offset_high: int | None
    stored_offset: int | None
    min_offset: int | None
    max_offset: int | None
    corrected_offset: int | None
    skipped: int | None


def start_of(
    pull_starts: Sequence[Row], queue: MessageQueue, client_id: str, epoch: int
) -> Start | None:
    """The start of a client that added the queue in that epoch; None for what was so initially."""
    for row in pull_starts:
        if (
            row["epoch"] == epoch
            and row["client_id"] == client_id
            and (row["topic"], row["broker_name"], row["queue_id"]) == queue
        ):
            numbers = (row[name] for name in Start.__slots__[3:])
            return Start(row["rule"], row["status"], RULE_TEXTS[row["rule"]], *numbers)
    return None


# The whole answer.


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
    """False: a ledger of contract 2 leaves it open; mq_all is what may be in it, or empty."""


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
class Taker:
    """A client that may take messages from the queue, and why."""

    client_id: str
    processes: int
    index: int | None
    """Its first place in cidAll."""
    entries: tuple[str, ...]
    """The rows of pop_reach that say so: the queue, its whole broker (-1), or some of its queues.
    """
    reason: Reason
    pulls: bool
    """It pulls what others pop."""
    from_epoch: int
    from_ms: int
    """Since when it reaches the queue; of several rows the oldest."""


@dataclass(frozen=True, slots=True)
class Sharing:
    """How members share a topic, and who may take from one queue of it."""

    since_epoch: int
    since_ms: int
    """Since when members share the topic without a break."""
    pops: bool
    """Members ask a broker, whose mode for the topic is POP."""
    behind_proxy: bool
    """Members behind a proxy reach it."""
    share_queue_num: int | None
    """Of the request mode POP; None: nobody pops, or a ledger of contract 2."""
    share_queue_nums: str | None
    """The same as text."""
    strategies: tuple[str, ...]
    """Of the members."""
    figures: Mapping[str, int]
    """The row of pop_metrics, without its keys."""
    mq_all_known: bool
    """False: a ledger of contract 2 leaves it open, and mq_all is empty."""
    mode_known: bool
    """False: a ledger of contract 2 does not say how members share the topic."""
    takers_before: tuple[str, ...] | None
    """Who reached or held the queue in the epoch before; None: there is none."""
    takers: tuple[Taker, ...]
    differs: tuple[str, ...]
    """Clients of which the rows are not as worked out again."""


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
    None: a ledger of contract 2 leaves too much open to work it out."""
    expected: Mapping[str, tuple[int, int]]
    """Client id -> fewest and most processes of it that hold the queue, worked out again."""
    notes: tuple[str, ...] = field(default=())
    sharing: Sharing | None = None
    """How members share the queue; then it has no holder, and ``agrees`` is about its topic."""
