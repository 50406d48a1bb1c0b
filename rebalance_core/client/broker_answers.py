"""The brokers' answers to a client during a pass: offsets, order locks, and brokers that are
down.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from rebalance_core.model.errors import RebalanceError
from rebalance_core.model.queue import MessageQueue


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
        answers: per queue; offset requests for a queue without an entry fail, and a broker without
            any entry is a broker whose address no client knows.
        committed: commits that passes sent, newer than ``answers``.
        locks: order lock of each queue, by client id (``RebalanceLockManager``); expiry is the
            caller's business.
        brokers_down: no process of the broker answers.
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
        """Take a commit as it is, also a smaller one; return False when no broker received it."""
        if queue not in self.answers or queue.broker_name in self.brokers_down:
            return False
        self.committed[queue] = offset
        return True

    def max_offset(self, queue: MessageQueue) -> int | None:
        """Return the max offset; None when the look-up fails."""
        answer = self.answers.get(queue)
        return answer.max_offset if answer is not None and self._has_master(queue) else None

    def timestamp_offset(self, queue: MessageQueue) -> int | None:
        """Return the answer to the group's timestamp search, or None if the look-up fails."""
        answer = self.answers.get(queue)
        return answer.by_timestamp if answer is not None and self._has_master(queue) else None

    def lock(self, queue: MessageQueue, client_id: str) -> bool:
        """Grant the order lock unless another client id holds it (processes of one id share).

        The broker does not look whether the queue exists.
        """
        if not self._has_master(queue):
            return False
        return self.locks.setdefault(queue, client_id) == client_id

    def unlock(self, queue: MessageQueue, client_id: str) -> None:
        """Free the order lock if this client id holds it and the master is there to receive it."""
        if self._has_master(queue) and self.locks.get(queue) == client_id:
            del self.locks[queue]

    def _has_master(self, queue: MessageQueue) -> bool:
        return queue.broker_name in self._brokers - self.brokers_down - self.masters_down
