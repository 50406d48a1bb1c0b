"""The counts of a producer under one variant."""

from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

from rebalance_core.model.queue import MessageQueue
from rebalance_core.model.times import SLOW_SEND_MS
from rebalance_core.producers.send_record import SendRecord


class Choice(NamedTuple):
    """How often a queue was chosen in a period; times are in ms from the start."""

    broker_name: str
    queue_id: int
    from_ms: int
    to_ms: int
    sends: int


@dataclass(slots=True)
class Isolation:
    """A period in which a producer avoids a broker; times are in ms from the start."""

    broker_name: str
    from_ms: int
    to_ms: int
    latency_ms: int
    """the maximum latency of the results that caused it"""
    reason: str
    """`contracts.producers.BY_FAILURE` if one of these failed, otherwise ``BY_LATENCY``"""


@dataclass(slots=True)
class PhaseTally:
    """The counts for one phase."""

    sends: int = 0
    failed: int = 0
    """sends that failed after all retries"""
    held_back: int = 0
    """messages not sent because an earlier send blocked the thread"""
    waited_ms: int = 0
    """the time for which remarkable sends blocked the thread"""
    attempts: Counter[MessageQueue] = field(default_factory=Counter)
    stored: Counter[MessageQueue] = field(default_factory=Counter)
    slow: Counter[str] = field(default_factory=Counter)
    """attempts by broker that took `SLOW_SEND_MS` or longer, including failed ones"""
    errors: Counter[str] = field(default_factory=Counter)
    """attempts by broker that failed"""
    recovery_ms: dict[str, int] = field(default_factory=dict)
    """by broker, the time from the end of its disturbance until it was first chosen"""

    def add(self, record: SendRecord, topic: str, begin_ms: int) -> None:
        """Count one send: the message and its attempts.

        Args:
            record: The record of the send; a choice without a report was not sent.
            topic: The topic.
            begin_ms: When the send began.
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
    """The counts of a producer; ``choices`` only if requested."""

    phases: list[PhaseTally]
    choices: list[Choice] = field(default_factory=list)
    isolations: list[Isolation] = field(default_factory=list)
