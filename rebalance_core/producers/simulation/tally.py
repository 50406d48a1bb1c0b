"""What is counted of one producer under one variant."""

from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from rebalance_core.model.queue import MessageQueue
from rebalance_core.model.times import SLOW_SEND_MS
from rebalance_core.producers.sending.producer import SendRecord

Key = TypeVar("Key")


class Choice(NamedTuple):
    """How often a queue was chosen in one stretch; times are ms from the start."""

    broker_name: str
    queue_id: int
    from_ms: int
    to_ms: int
    sends: int


@dataclass(slots=True)
class Isolation:
    """A stretch in which a producer avoids a broker; times are ms from the start."""

    broker_name: str
    from_ms: int
    to_ms: int
    latency_ms: int
    """the largest of the results that brought it about"""
    reason: str
    """`BY_FAILURE` if one of these failed, else `BY_LATENCY`"""


@dataclass(slots=True)
class PhaseTally:
    """Counts of one phase."""

    sends: int = 0
    failed: int = 0
    """sends that failed after all retries"""
    held_back: int = 0
    """messages not sent, as a send before them held the thread"""
    waited_ms: int = 0
    """time that remarkable sends held the thread"""
    attempts: dict[MessageQueue, int] = field(default_factory=dict)
    stored: dict[MessageQueue, int] = field(default_factory=dict)
    slow: dict[str, int] = field(default_factory=dict)
    """attempts by broker that took `SLOW_SEND_MS` and more, failed ones too"""
    errors: dict[str, int] = field(default_factory=dict)
    """attempts by broker that failed"""
    recovery_ms: dict[str, int] = field(default_factory=dict)
    """by broker: from the end of its disturbance to the first choice of it"""

    def add(self, record: SendRecord, topic: str, begin_ms: int) -> None:
        """Count one send: the message and its attempts.

        Args:
            record: What it did; a choice without a report was not sent.
            topic: The topic.
            begin_ms: When it began.
        """
        self.sends += 1
        self.failed += record.failure is not None
        self.waited_ms += record.end_ms - begin_ms
        stored = record.failure is None
        last = len(record.reports) - 1
        for number, (pick, report) in enumerate(zip(record.picks, record.reports, strict=False)):
            queue = MessageQueue(topic, pick.broker_name, pick.queue_id)
            _one_more(self.attempts, queue)
            if report.latency_ms >= SLOW_SEND_MS:
                _one_more(self.slow, pick.broker_name)
            if stored and number == last:
                _one_more(self.stored, queue)
            else:
                _one_more(self.errors, pick.broker_name)


def _one_more(counts: dict[Key, int], key: Key) -> None:
    counts[key] = counts.get(key, 0) + 1


@dataclass(slots=True)
class Tally:
    """Counts of one producer; ``choices`` only where they are asked for."""

    phases: list[PhaseTally]
    choices: list[Choice] = field(default_factory=list)
    isolations: list[Isolation] = field(default_factory=list)
