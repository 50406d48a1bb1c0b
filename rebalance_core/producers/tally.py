"""Counts of a producer under one variant."""

from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

from rebalance_core.model.queue import MessageQueue
from rebalance_core.model.times import SLOW_SEND_MS
from rebalance_core.producers.send_record import SendRecord


class Choice(NamedTuple):
    """How often a queue was chosen in a period; times are ms from the start."""

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
    """`contracts.producers.BY_FAILURE` if one of these failed, else ``BY_LATENCY``"""


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
    attempts: Counter[MessageQueue] = field(default_factory=Counter)
    stored: Counter[MessageQueue] = field(default_factory=Counter)
    slow: Counter[str] = field(default_factory=Counter)
    """attempts by broker that took `SLOW_SEND_MS` and more, failed ones too"""
    errors: Counter[str] = field(default_factory=Counter)
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
            self.attempts[queue] += 1
            if report.latency_ms >= SLOW_SEND_MS:
                self.slow[pick.broker_name] += 1
            if stored and number == last:
                self.stored[queue] += 1
            else:
                self.errors[pick.broker_name] += 1


@dataclass(slots=True)
class Tally:
    """Counts of a producer; ``choices`` only if requested."""

    phases: list[PhaseTally]
    choices: list[Choice] = field(default_factory=list)
    isolations: list[Isolation] = field(default_factory=list)
