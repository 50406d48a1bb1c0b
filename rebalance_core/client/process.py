"""What the brokers answer to a client during a pass: offsets and order locks, and who is down."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from rebalance_core.model.clients import Version, parse_version
from rebalance_core.model.errors import RebalanceError
from rebalance_core.model.group_settings import BROADCASTING, LITE_PULL, PUSH, GroupSettings
from rebalance_core.model.queue import MessageQueue
from rebalance_core.protocol.members import locks_on_addition
from rebalance_core.protocol.start_offset import NO_STORED_OFFSET, STORED_OFFSET_ERROR
from rebalance_core.strategies import AllocationStrategy


class BrokerRefusedError(RebalanceError):
    """The broker answered with an error (``MQBrokerException``): busy, flow control, group."""


class BrokerUnreachableError(RebalanceError):
    """No answer: unknown address, broken connection or timeout."""


@dataclass(frozen=True, slots=True)
class QueueAnswers:
    """The answers of one queue's broker.

    ``committed`` None: QUERY_NOT_FOUND. ``max_offset`` and ``by_timestamp`` None: the look-up
    fails. ``query_failure``: raised by the committed-offset query instead of an answer.
    """

    committed: int | None
    max_offset: int | None
    by_timestamp: int | None
    query_failure: Callable[[str], RebalanceError] | None = None


@dataclass(slots=True)
class BrokerAnswers:
    """The brokers as one group sees them; passes change ``committed`` and ``locks``.

    Attributes:
        answers: per queue; offset requests for a queue without an entry fail, and a broker
            without any is one whose address no client knows.
        committed: commits that passes sent, newer than ``answers``.
        locks: order lock of each queue, by client id (``RebalanceLockManager``); expiry is the
            caller's business.
        brokers_down: nobody of the broker answers.
        masters_down: only a slave answers: offset reads and commits work, everything that needs
            the master (locks, unlocks, max offset, timestamp search) fails.
    """

    answers: dict[MessageQueue, QueueAnswers]
    locks: dict[MessageQueue, str] = field(default_factory=dict)
    brokers_down: frozenset[str] = frozenset()
    masters_down: frozenset[str] = frozenset()
    committed: dict[MessageQueue, int] = field(default_factory=dict)
    _brokers: frozenset[str] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._brokers = frozenset(queue.broker_name for queue in self.answers)

    def query_committed(self, queue: MessageQueue) -> int | None:
        """The committed offset, None when there is none.

        Raises:
            BrokerRefusedError: the broker answered with an error.
            BrokerUnreachableError: it did not answer.
        """
        known = self.answers.get(queue)
        if known is None or queue.broker_name in self.brokers_down:
            raise BrokerUnreachableError(f"no broker answers for {queue}")
        if known.query_failure is not None:
            raise known.query_failure(f"the offset query of {queue} fails")
        return self.committed.get(queue, known.committed)

    def commit(self, queue: MessageQueue, offset: int) -> bool:
        """Takes a commit as it is, also a smaller one; False when no broker received it."""
        if queue not in self.answers or queue.broker_name in self.brokers_down:
            return False
        self.committed[queue] = offset
        return True

    def max_offset(self, queue: MessageQueue) -> int | None:
        """The max offset; None when the look-up fails."""
        known = self.answers.get(queue)
        return known.max_offset if known is not None and self._has_master(queue) else None

    def timestamp_offset(self, queue: MessageQueue) -> int | None:
        """The answer to the group's timestamp search; None when the look-up fails."""
        known = self.answers.get(queue)
        return known.by_timestamp if known is not None and self._has_master(queue) else None

    def lock(self, queue: MessageQueue, client_id: str) -> bool:
        """Grants the order lock unless another client id holds it (processes of one id share).

        The broker does not look whether the queue exists.
        """
        if not self._has_master(queue):
            return False
        return self.locks.setdefault(queue, client_id) == client_id

    def unlock(self, queue: MessageQueue, client_id: str) -> None:
        """Frees the order lock if this client id holds it and the master is there to hear it."""
        if self._has_master(queue) and self.locks.get(queue) == client_id:
            del self.locks[queue]

    def _has_master(self, queue: MessageQueue) -> bool:
        return queue.broker_name in self._brokers - self.brokers_down - self.masters_down


# The two offset stores of a client, as far as a pass uses them (rocketmq.md §5.2).
#
# Upstream: ``RemoteBrokerOffsetStore`` (CLUSTERING) and ``LocalFileOffsetStore`` (BROADCASTING).

# LocalFileOffsetStore.removeOffset erases the entry and persist(mq) writes the file; before they
# do nothing. 4.9.8 has it too.
LOCAL_STORE_ERASES = (5, 2, 0)
LOCAL_STORE_ERASES_V4 = (4, 9, 8)


class OffsetStore(ABC):
    """``OffsetStore`` of one process. Offsets in memory win only where ``memory_first`` is set."""

    def __init__(self) -> None:
        self._memory: dict[MessageQueue, int] = {}

    def read(self, queue: MessageQueue, brokers: BrokerAnswers, *, memory_first: bool) -> int:
        """READ_FROM_STORE or MEMORY_FIRST_THEN_STORE: the stored offset, -1 none, -2 error.

        An offset from the store is remembered.
        """
        if memory_first and queue in self._memory:
            return self._memory[queue]
        offset = self._stored(queue, brokers)
        if offset >= 0:
            self._memory[queue] = offset
        return offset

    @abstractmethod
    def _stored(self, queue: MessageQueue, brokers: BrokerAnswers) -> int:
        """The offset in the store, -1 none, -2 error."""

    def update(self, queue: MessageQueue, offset: int) -> None:
        """Consumption went on: the offset in memory."""
        self._memory[queue] = offset

    @abstractmethod
    def persist(self, queue: MessageQueue, brokers: BrokerAnswers) -> int | None:
        """Stores the offset in memory; returns it if it was sent to a broker, else None."""

    @abstractmethod
    def remove(self, queue: MessageQueue) -> None:
        """Forgets the offset in memory."""

    @abstractmethod
    def forget_unused(self, in_use: Collection[MessageQueue]) -> None:
        """Erase, unsent, the entries of queues that are not in use, as persistAll does."""

    def in_memory(self) -> dict[MessageQueue, int]:
        """Return the offsets in memory."""
        return dict(self._memory)


class RemoteOffsetStore(OffsetStore):
    """Offsets kept by the brokers (CLUSTERING)."""

    def __init__(self, version: Version) -> None:
        super().__init__()
        self._version = version

    def _stored(self, queue: MessageQueue, brokers: BrokerAnswers) -> int:
        try:
            offset = brokers.query_committed(queue)
        except BrokerRefusedError:
            # 4.9 takes every MQBrokerException for "no offset": a busy broker makes a start at max.
            return NO_STORED_OFFSET if self._version.is_v4 else STORED_OFFSET_ERROR
        except BrokerUnreachableError:
            return STORED_OFFSET_ERROR
        return NO_STORED_OFFSET if offset is None else offset

    def persist(self, queue: MessageQueue, brokers: BrokerAnswers) -> int | None:
        """One-way commit: a broker that is down never sees it, and the client gets no error."""
        offset = self._memory.get(queue)
        if offset is None or not brokers.commit(queue, offset):
            return None
        return offset

    def remove(self, queue: MessageQueue) -> None:
        """See `OffsetStore.remove`."""
        self._memory.pop(queue, None)

    def forget_unused(self, in_use: Collection[MessageQueue]) -> None:
        """Nothing happens while the process holds no queue: upstream returns early."""
        if in_use:
            self._memory = {queue: n for queue, n in self._memory.items() if queue in in_use}


class LocalOffsetStore(OffsetStore):
    """Offsets in the client's own file (BROADCASTING).

    ``file`` is the content of the file; processes of one client id on one machine share it.
    """

    def __init__(self, version: Version, file: dict[MessageQueue, int]) -> None:
        super().__init__()
        self._erases = version >= LOCAL_STORE_ERASES or (
            version.is_v4 and version >= LOCAL_STORE_ERASES_V4
        )
        self.file = file

    def _stored(self, queue: MessageQueue, brokers: BrokerAnswers) -> int:
        """The file's entry; no broker is asked, so no answer is an error."""
        return self.file.get(queue, NO_STORED_OFFSET)

    def persist(self, queue: MessageQueue, brokers: BrokerAnswers) -> int | None:
        """Writes the file where the version does; no broker hears of it."""
        if self._erases and queue in self._memory:
            self.file[queue] = self._memory[queue]
        return None

    def remove(self, queue: MessageQueue) -> None:
        """Does nothing in the versions before `LOCAL_STORE_ERASES`."""
        if self._erases:
            self._memory.pop(queue, None)

    def forget_unused(self, in_use: Collection[MessageQueue]) -> None:
        """The memory keeps everything; what persistAll writes is the file's keeper's business."""


# One consumer process: its settings and what it remembers from one pass to the next.


@dataclass(slots=True)
class ProcessQueue:
    """A queue the process has taken (``ProcessQueue``).

    Attributes:
        offset: how far consumption is; the next offset to pull right after the queue was added.
        dropped: given up. A dropped queue that stays in the table could not be removed yet.
        pull_expired: no pull for more than 120 s (``isPullExpired``).
        holds_messages: unconsumed messages are cached (``hasTempMessage``).
        listener_busy: the listener holds the consume lock throughout this pass.
        lock_age_ms: time since the last renewal of the order lock.
    """

    offset: int
    dropped: bool = False
    pull_expired: bool = False
    holds_messages: bool = False
    listener_busy: bool = False
    lock_age_ms: int = 0


@dataclass(slots=True)
class ClientProcess:
    """A live process of a group: one entry of the members, with its own process queue table.

    ``settings.strategy`` is not read: the strategy comes resolved.
    """

    client_id: str
    settings: GroupSettings
    strategy: AllocationStrategy
    store: OffsetStore
    version: Version
    lets_go: bool = False
    """A strategy that is given nothing answers with nothing (Go), where Java's throws."""
    by_bytes: bool = False
    """It sorts queues and members by the bytes of UTF-8 (Go, C++, Rust), not as Java."""
    ends_pass: bool = False
    """A topic without an answer ends the pass: those after it wait for the next one (C++)."""
    table: dict[MessageQueue, ProcessQueue] = field(default_factory=dict)
    threshold_for_queue: int = 0
    threshold_size_for_queue: int = 0

    def __post_init__(self) -> None:
        self.threshold_for_queue = self.settings.pull_threshold_for_queue
        self.threshold_size_for_queue = self.settings.pull_threshold_size_for_queue

    @property
    def is_push(self) -> bool:
        """Push consumer: heartbeats, thresholds and the pull-expiry check are its alone."""
        return self.settings.consumer_type == PUSH

    @property
    def is_lite_pull(self) -> bool:
        """Lite pull reads offsets memory first."""
        return self.settings.consumer_type == LITE_PULL

    @property
    def is_broadcasting(self) -> bool:
        """Every member takes every queue and keeps offsets locally."""
        return self.settings.message_model == BROADCASTING

    @property
    def unlocks_on_removal(self) -> bool:
        """Orderly CLUSTERING push: removal waits for the listener and frees the order lock."""
        return self.is_push and self.settings.ordered and not self.is_broadcasting

    @property
    def locks_on_addition(self) -> bool:
        """Orderly: a queue is added only with its order lock (``needLockMq``)."""
        settings = self.settings
        return locks_on_addition(
            settings.consumer_type, settings.message_model, settings.ordered, self.version
        )

    def working(self, topic: str) -> set[MessageQueue]:
        """The live process queues of a topic (``getWorkingMessageQueue``)."""
        return {q for q, state in self.table.items() if q.topic == topic and not state.dropped}


def start_process(
    client_id: str,
    settings: GroupSettings,
    strategy: AllocationStrategy,
    local_file: dict[MessageQueue, int] | None = None,
) -> ClientProcess:
    """A process as ``start()`` leaves it: no queue yet, the store its message model asks for.

    Args:
        client_id: as the members list it.
        settings: of this process; ``client_version`` decides its rules.
        strategy: resolved from its strategy text.
        local_file: BROADCASTING: content of the client's offset file, shared and written to.
    """
    version = parse_version(settings.client_version)
    store: OffsetStore
    if settings.message_model == BROADCASTING:
        store = LocalOffsetStore(version, {} if local_file is None else local_file)
    else:
        store = RemoteOffsetStore(version)
    return ClientProcess(client_id, settings, strategy, store, version)
