"""A consumer process: its settings and the state it keeps between passes."""

from dataclasses import dataclass, field

from rebalance_core.client.offset_stores import LocalOffsetStore, OffsetStore, RemoteOffsetStore
from rebalance_core.model.group_settings import BROADCASTING, LITE_PULL, PUSH, GroupSettings
from rebalance_core.model.queue import MessageQueue
from rebalance_core.model.versions import Version, parse_version
from rebalance_core.protocol.order_locks import locks_on_addition
from rebalance_core.strategies import AllocationStrategy


@dataclass(slots=True)
class ProcessQueue:
    """A queue that the process has taken (``ProcessQueue``).

    Attributes:
        offset: how far consumption has got; right after the queue was added, the next offset to
            pull.
        dropped: whether it was given up. A dropped queue still in the table could not be removed
            yet.
        pull_expired: whether it has not been pulled for more than 120 s (``isPullExpired``).
        holds_messages: whether unconsumed messages are cached (``hasTempMessage``).
        listener_busy: whether the listener holds the consume lock throughout this pass.
        lock_age_ms: the time since the last renewal of the order lock.
    """

    offset: int
    dropped: bool = False
    pull_expired: bool = False
    holds_messages: bool = False
    listener_busy: bool = False
    lock_age_ms: int = 0


@dataclass(slots=True)
class ClientProcess:
    """A live process of a group: one entry in the member list, with its own process queue table.

    ``settings.strategy`` is not read, because the strategy is passed in resolved.
    """

    client_id: str
    settings: GroupSettings
    strategy: AllocationStrategy
    store: OffsetStore
    version: Version
    lets_go: bool = False
    """A strategy without queues for a member returns none (Go), whereas Java's throws."""
    by_bytes: bool = False
    """It sorts queues and members by UTF-8 bytes (Go, C++, Rust), unlike Java."""
    ends_pass: bool = False
    """A topic without an answer ends the pass, so later topics wait for the next one (C++)."""
    table: dict[MessageQueue, ProcessQueue] = field(default_factory=dict)
    threshold_for_queue: int = 0
    threshold_size_for_queue: int = 0

    def __post_init__(self) -> None:
        self.threshold_for_queue = self.settings.pull_threshold_for_queue
        self.threshold_size_for_queue = self.settings.pull_threshold_size_for_queue

    @property
    def is_push(self) -> bool:
        """Return True for a push consumer, the only type with heartbeats, thresholds and the
        pull-expiry check.
        """
        return self.settings.consumer_type == PUSH

    @property
    def is_lite_pull(self) -> bool:
        """Lite pull reads offsets from memory first."""
        return self.settings.consumer_type == LITE_PULL

    @property
    def is_broadcasting(self) -> bool:
        """Every member takes all queues and keeps offsets locally."""
        return self.settings.message_model == BROADCASTING

    @property
    def unlocks_on_removal(self) -> bool:
        """Orderly CLUSTERING push: removal waits for the listener and releases the order lock."""
        return self.is_push and self.settings.ordered and not self.is_broadcasting

    @property
    def locks_on_addition(self) -> bool:
        """Orderly: a queue is added only once its order lock is held (``needLockMq``)."""
        settings = self.settings
        return locks_on_addition(
            settings.consumer_type, settings.message_model, settings.ordered, self.version
        )

    def working(self, topic: str) -> set[MessageQueue]:
        """Return the live process queues of a topic (``getWorkingMessageQueue``)."""
        return {q for q, state in self.table.items() if q.topic == topic and not state.dropped}


def start_process(
    client_id: str,
    settings: GroupSettings,
    strategy: AllocationStrategy,
    local_file: dict[MessageQueue, int] | None = None,
) -> ClientProcess:
    """Return a process as ``start()`` leaves it: without queues, with its message model's store.

    Args:
        client_id: its id, as in the member list.
        settings: the settings of this process; ``client_version`` decides its rules.
        strategy: the strategy resolved from its strategy text.
        local_file: the content of the client's offset file, shared and written to (BROADCASTING).
    """
    version = parse_version(settings.client_version)
    store: OffsetStore
    if settings.message_model == BROADCASTING:
        store = LocalOffsetStore(version, {} if local_file is None else local_file)
    else:
        store = RemoteOffsetStore(version)
    return ClientProcess(client_id, settings, strategy, store, version)
