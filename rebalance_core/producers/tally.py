"""What is counted of one producer: phases in which brokers behave alike, sends, avoided brokers."""

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import pairwise
from typing import NamedTuple

from rebalance_core.contracts.producers import BY_FAILURE, BY_LATENCY
from rebalance_core.model.queue import MessageQueue
from rebalance_core.model.times import BROKER_EXPIRY_MS, SLOW_SEND_MS
from rebalance_core.producers.model import BrownOut, Latency, Outage, ProducerModel
from rebalance_core.producers.sending import CODE_PREFIX, TIMEOUT, Reply, Report, SendRecord
from rebalance_core.producers.strategy import FaultTable

# Random numbers as a function of what they are for: partitioning changes none of them.

_BYTES = 8
_SCALE = 2.0**-53


def draw_bits(seed: int, *ids: str | int) -> int:
    """64 random bits of an event; events that differ in anything have unrelated ones."""
    text = "\x1f".join([str(seed), *map(str, ids)])
    return int.from_bytes(blake2b(text.encode(), digest_size=_BYTES).digest(), "big")


def draw(seed: int, *ids: str | int) -> float:
    """A number above 0 and below 1.

    >>> draw(1, "gap", 2) == draw(1, "gap", 2) != draw(1, "gap", 3)
    True
    """
    return ((draw_bits(seed, *ids) >> 11) + 0.5) * _SCALE


# The stretches of a simulation in which every broker behaves alike throughout.

HEALTHY = "healthy"
SYSTEM_ERROR = f"{CODE_PREFIX}1"  # ResponseCode.SYSTEM_ERROR
NEVER = 2**62


@dataclass(frozen=True, slots=True)
class Behaviour:
    """How a broker answers: some requests are slow or fail, the others take no time."""

    latency: Latency
    errors: float = 0.0
    outage: str | None = None
    """the answer to every request"""

    @property
    def remarkable_share(self) -> float:
        """Share of requests that are slow or fail."""
        if self.outage is not None:
            return 1.0
        return self.errors + (1 - self.errors) * self.latency.slow_share

    def gap(self, u: float) -> int:
        """Count the requests that pass before a remarkable one: geometric, from one number."""
        share = self.remarkable_share
        if share <= 0:
            return NEVER
        return 0 if share >= 1 else min(math.floor(math.log(u) / math.log1p(-share)), NEVER)

    def remarkable(self, which: float, u: float) -> Reply:
        """A remarkable answer: an error or a latency.

        Args:
            which: Decides between them.
            u: The quantile of the latency.
        """
        if self.outage is not None:
            return Reply(self.outage, NEVER if self.outage == TIMEOUT else 0)
        if which * self.remarkable_share < self.errors:
            return Reply(SYSTEM_ERROR, 0)
        return Reply("ok", max(self.latency.slow_ms(u), SLOW_SEND_MS))


@dataclass(frozen=True, slots=True)
class Phase:
    """One stretch; times are ms from the start of the simulation."""

    label: str
    from_ms: int
    to_ms: int
    behaviours: dict[str, Behaviour]
    """by broker name"""
    recovering: frozenset[str]
    """brokers whose disturbance ended as the phase began"""


def phases_of(model: ProducerModel) -> tuple[Phase, ...]:
    """The phases, in order; they tile the simulation."""
    cuts = {0, model.length_ms}
    for one in model.disturbances:
        cuts |= {one.from_ms, min(one.to_ms, model.length_ms)}
    times = sorted(cuts)
    return tuple(_phase(model, *pair) for pair in pairwise(times))


def _phase(model: ProducerModel, from_ms: int, to_ms: int) -> Phase:
    behaviours = {broker.name: Behaviour(broker.latency) for broker in model.brokers}
    active = [d for d in model.disturbances if d.from_ms < to_ms and d.to_ms > from_ms]
    for one in active:
        if isinstance(one, Outage):
            behaviours[one.broker] = Behaviour(behaviours[one.broker].latency, outage=one.answer)
        elif isinstance(one, BrownOut):
            behaviours[one.broker] = Behaviour(one.latency, one.errors)
    labels = [one.label for one in active]
    recovering = {one.broker for one in model.disturbances if one.to_ms == from_ms}
    recovering -= {one.broker for one in active}
    label = " and ".join(labels) or HEALTHY
    return Phase(label, from_ms, to_ms, behaviours, frozenset(recovering))


def route_changes(
    model: ProducerModel, client_id: str, poll_ms: int
) -> list[tuple[int, frozenset[str]]]:
    """Return when a client's route changes, and the brokers that are missing from then on.

    The name server drops a broker as its connection closes, or, if it is silent, once its
    registration expires; the client hears of it at its next poll, whose place in the period is the
    client's own (rocketmq.md §6.1).
    """
    outages = [
        (one.broker, one.from_ms + (BROKER_EXPIRY_MS if one.answer == TIMEOUT else 0), one.to_ms)
        for one in model.disturbances
        if isinstance(one, Outage) and not one.stays_in_route
    ]
    outages = [(broker, begin, end) for broker, begin, end in outages if begin < end]
    first = math.floor(draw(model.seed, "poll", client_id) * poll_ms)
    polls = {
        first + max(0, -(-(time - first) // poll_ms)) * poll_ms
        for _, *times in outages
        for time in times
    }
    changes, missing = [], frozenset[str]()
    for poll in sorted(polls):
        gone = frozenset(broker for broker, begin, end in outages if begin <= poll < end)
        if gone != missing:
            changes.append((poll, gone))
            missing = gone
    return changes


# What is counted of one producer under one variant.


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
    """Counts of one producer; ``choices`` only where they are asked for."""

    phases: list[PhaseTally]
    choices: list[Choice] = field(default_factory=list)
    isolations: list[Isolation] = field(default_factory=list)


# Stretches in which a producer avoids brokers, from its reports.


class IsolationLog:
    """Follows one fault table; ``done`` has the stretches that a later result cannot change."""

    def __init__(self) -> None:
        self.done: list[Isolation] = []
        self._open: dict[str, Isolation] = {}
        self._closed: dict[str, Isolation] = {}
        """the last one that is done, by broker"""

    def note(self, report: Report, faults: FaultTable) -> None:
        """Look at what a report, just made, did to its broker."""
        name, at_ms = report.broker_name, report.at_ms
        item = faults.items.get(name)
        if item is None:
            return  # the strategy is off
        current = self._open.get(name)
        if current is not None and current.to_ms < at_ms:
            self._close(name)
            current = None
        if item.start_ms <= at_ms:
            if current is not None:  # a fast result opens the broker, to 5.1.3
                current.to_ms = at_ms
                self._close(name)
            return
        reason = BY_FAILURE if report.isolation else BY_LATENCY
        if current is None:
            stretch = Isolation(name, at_ms, item.start_ms, report.latency_ms, reason)
            self._open[name] = stretch
            return
        current.to_ms = item.start_ms
        current.latency_ms = max(current.latency_ms, report.latency_ms)
        current.reason = BY_FAILURE if BY_FAILURE in (reason, current.reason) else BY_LATENCY

    def forget_removed(self, faults: FaultTable, now_ms: int) -> None:
        """End the stretches of brokers that the table lost: to 5.1.3 a choice may remove one."""
        for name in [name for name in self._open if name not in faults.items]:
            self._open[name].to_ms = min(self._open[name].to_ms, now_ms)
            self._close(name)

    def covers(self, broker_name: str, time_ms: int) -> bool:
        """True if the broker was avoided at a time not later than the last report."""
        stretches = (self._open.get(broker_name), self._closed.get(broker_name))
        return any(one is not None and one.from_ms < time_ms < one.to_ms for one in stretches)

    def all(self) -> Iterable[Isolation]:
        """Every stretch, in order of their beginning and broker."""
        stretches = [*self.done, *self._open.values()]
        return sorted(
            (s for s in stretches if s.to_ms > s.from_ms), key=lambda s: (s.from_ms, s.broker_name)
        )

    def _close(self, broker_name: str) -> None:
        self._closed[broker_name] = self._open.pop(broker_name)
        self.done.append(self._closed[broker_name])
