"""The brokers' answers to a client during a pass: offsets and order locks, and which brokers are
down.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from rebalance_core.model.errors import RebalanceError
from rebalance_core.model.queue import MessageQueue


class BrokerRefusedError(RebalanceError):
    """The broker answered with an error (``MQBrokerException``): busy, flow control or the
    group.
    """


class BrokerUnreachableError(RebalanceError):
    """The broker did not answer: unknown address, broken connection or timeout."""


@dataclass(frozen=True, slots=True)
class QueueAnswers:
    """The answers of the broker of one queue.

    ``committed`` is None for QUERY_NOT_FOUND. ``max_offset`` and ``by_timestamp`` are None if the
    lookup fails. ``query_failure`` is raised by the committed-offset query in place of an answer.
    """

    committed: int | None
    max_offset: int | None
    by_timestamp: int | None
    query_failure: Callable[[str], RebalanceError] | None = None


@dataclass(slots=True)
class BrokerAnswers:
    """The brokers as one group sees them; passes change ``committed`` and ``locks``.

    Attributes:
        answers: per queue; offset requests for a queue without an entry fail, and no client knows
            the address of a broker without any entry.
        committed: commits sent by passes, newer than ``answers``.
        locks: the client id that holds the order lock of each queue (``RebalanceLockManager``); the
            caller handles expiry.
        brokers_down: brokers of which no process answers.
        masters_down: brokers of which only a slave answers: offset reads and commits work, but
            whatever needs the master (locks, unlocks, max offset, timestamp search) fails.
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
        """Return the committed offset, or None.

        Raises:
            BrokerRefusedError: the broker answered with an error.
            BrokerUnreachableError: it did not answer.
        """
        answer = self.answers.get(queue)
        if answer is None or queue.broker_name in self.brokers_down:
            raise BrokerUnreachableError(f"no broker answers for {queue}")
        if answer.query_failure is not None:
            raise answer.query_failure(f"the offset query of {queue} fails")
        return self.committed.get(queue, answer.committed)

    def commit(self, queue: MessageQueue, offset: int) -> bool:
        """Accept any commit, even a smaller one; return False if no broker received it."""
        if queue not in self.answers or queue.broker_name in self.brokers_down:
            return False
        self.committed[queue] = offset
        return True

    def max_offset(self, queue: MessageQueue) -> int | None:
        """Return the max offset, or None if the lookup fails."""
        answer = self.answers.get(queue)
        return answer.max_offset if answer is not None and self._has_master(queue) else None

    def timestamp_offset(self, queue: MessageQueue) -> int | None:
        """Return the answer to the group's timestamp search, or None if the lookup fails."""
        answer = self.answers.get(queue)
        return answer.by_timestamp if answer is not None and self._has_master(queue) else None

    def lock(self, queue: MessageQueue, client_id: str) -> bool:
        """Grant the order lock unless another client id holds it (processes with the same id share
        it).

        The broker does not check whether the queue exists.
        """
        if not self._has_master(queue):
            return False
        return self.locks.setdefault(queue, client_id) == client_id

    def unlock(self, queue: MessageQueue, client_id: str) -> None:
        """Release the order lock if this client id holds it and the master is up to receive the
        request.
        """
        if self._has_master(queue) and self.locks.get(queue) == client_id:
            del self.locks[queue]

    def _has_master(self, queue: MessageQueue) -> bool:
        return queue.broker_name in self._brokers - self.brokers_down - self.masters_down
