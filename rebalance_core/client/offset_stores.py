"""The two offset stores of a client, to the extent that a pass uses them (rocketmq.md §5.2).

Upstream: ``RemoteBrokerOffsetStore`` (CLUSTERING) and ``LocalFileOffsetStore`` (BROADCASTING).
"""

from abc import ABC, abstractmethod
from collections.abc import Collection

from rebalance_core.client.broker_answers import (
    BrokerAnswers,
    BrokerRefusedError,
    BrokerUnreachableError,
)
from rebalance_core.model.queue import MessageQueue
from rebalance_core.model.versions import Version
from rebalance_core.protocol.start_offset import NO_STORED_OFFSET, STORED_OFFSET_ERROR

# LocalFileOffsetStore.removeOffset erases the entry and persist(mq) writes the file; except for
# 4.9.8, earlier versions do neither.
LOCAL_STORE_ERASES = (5, 2, 0)
LOCAL_STORE_ERASES_V4 = (4, 9, 8)


class OffsetStore(ABC):
    """``OffsetStore`` of one process. Offsets in memory take precedence only if ``memory_first`` is
    set.
    """

    def __init__(self) -> None:
        self._memory: dict[MessageQueue, int] = {}

    def read(self, queue: MessageQueue, brokers: BrokerAnswers, *, memory_first: bool) -> int:
        """READ_FROM_STORE or MEMORY_FIRST_THEN_STORE: the stored offset, -1 if there is none, -2 on
        error.

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
        """Return the offset in the store, -1 if there is none, -2 on error."""

    def update(self, queue: MessageQueue, offset: int) -> None:
        """Set the offset in memory, as when consumption advances."""
        self._memory[queue] = offset

    @abstractmethod
    def persist(self, queue: MessageQueue, brokers: BrokerAnswers) -> int | None:
        """Persist the offset held in memory; return it if it was sent to a broker, otherwise
        None.
        """

    @abstractmethod
    def remove(self, queue: MessageQueue) -> None:
        """Forget the offset in memory."""

    @abstractmethod
    def forget_unused(self, in_use: Collection[MessageQueue]) -> None:
        """Erase the entries of queues that are not in use without sending them, as persistAll
        does.
        """

    def in_memory(self) -> dict[MessageQueue, int]:
        """Return the offsets in memory."""
        return dict(self._memory)


class RemoteOffsetStore(OffsetStore):
    """Offsets stored by the brokers (CLUSTERING)."""

    def __init__(self, version: Version) -> None:
        super().__init__()
        self._version = version

    def _stored(self, queue: MessageQueue, brokers: BrokerAnswers) -> int:
        try:
            offset = brokers.query_committed(queue)
        except BrokerRefusedError:
            # 4.9 treats every MQBrokerException as "no offset", so a busy broker causes a start at
            # max.
            return NO_STORED_OFFSET if self._version.is_v4 else STORED_OFFSET_ERROR
        except BrokerUnreachableError:
            return STORED_OFFSET_ERROR
        return NO_STORED_OFFSET if offset is None else offset

    def persist(self, queue: MessageQueue, brokers: BrokerAnswers) -> int | None:
        """Commit one-way: a broker that is down never sees it, and the client gets no error."""
        offset = self._memory.get(queue)
        if offset is None or not brokers.commit(queue, offset):
            return None
        return offset

    def remove(self, queue: MessageQueue) -> None:
        """Forget the offset; see `OffsetStore.remove`."""
        self._memory.pop(queue, None)

    def forget_unused(self, in_use: Collection[MessageQueue]) -> None:
        """Erase nothing while the process holds no queue, because upstream returns early."""
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
        """Return the file's entry; no broker is queried, so there is no error."""
        return self.file.get(queue, NO_STORED_OFFSET)

    def persist(self, queue: MessageQueue, brokers: BrokerAnswers) -> int | None:
        """Write the file if the version does so; no broker receives anything."""
        if self._erases and queue in self._memory:
            self.file[queue] = self._memory[queue]
        return None

    def remove(self, queue: MessageQueue) -> None:
        """Do nothing in versions before `LOCAL_STORE_ERASES`."""
        if self._erases:
            self._memory.pop(queue, None)

    def forget_unused(self, in_use: Collection[MessageQueue]) -> None:
        """Keep everything in memory; the file's keeper determines what persistAll writes."""
