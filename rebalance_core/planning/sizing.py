"""How many consumers for the given queues, and how many queues for the planned consumers.

All of this is about strategies that divide evenly per topic and give the surplus of every topic to
the same members: AVG and AVG_BY_CIRCLE, one client id a process. RocketMQ is even per topic and
skewed per group: each topic's surplus adds up on the members that sort first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import lcm
from types import MappingProxyType

from rebalance_core.model.errors import UsageError
from rebalance_core.planning.what_if.planned_group import MOST_QUEUES

EVEN, EFFICIENT, WASTEFUL, IDLE = "EVEN", "EFFICIENT", "WASTEFUL", "IDLE"
VERDICTS = MappingProxyType(
    {
        EVEN: "every consumer has as many queues of each topic as any other",
        EFFICIENT: "no smaller number has so low a peak",
        WASTEFUL: "a smaller number of consumers has the same peak",
        IDLE: "some consumers have no queue at all",
    }
)


@dataclass(frozen=True, slots=True)
class ConsumerCount:
    """How a number of consumers divides the topics.

    Attributes:
        consumers: The number.
        most: Topic -> most queues of it that one consumer has.
        fewest: Topic -> fewest.
        peak: Most queues of one consumer over all topics: the sum of ``most``.
        least: Fewest over all topics: the sum of ``fewest``.
        idle: Consumers without a queue: those beyond the largest topic's number of queues.
        peak_ratio: Peak x consumers / queues; 1.0 is even.
        next_lowers_peak: One consumer more has a lower peak; False is an uneven step: it costs a
            rebalance and buys nothing for the busiest consumer.
        verdict: EVEN, EFFICIENT, WASTEFUL or IDLE (`VERDICTS`); the first that holds of IDLE, EVEN,
            EFFICIENT, WASTEFUL.
    """

    consumers: int
    most: Mapping[str, int]
    fewest: Mapping[str, int]
    peak: int
    least: int
    idle: int
    peak_ratio: float
    next_lowers_peak: bool
    verdict: str

    @property
    def recommended(self) -> bool:
        """EVEN or EFFICIENT."""
        return self.verdict in (EVEN, EFFICIENT)


def consumer_counts(queues: Mapping[str, int], counts: Iterable[int]) -> list[ConsumerCount]:
    """How each number of consumers divides the topics, in the order of ``counts``.

    Args:
        queues: Topic -> its readable queues, 1 or more.
        counts: Numbers of consumers, 1 or more.

    Raises:
        UsageError: No topic, or a number below 1; every mistake is named.

    >>> for count in consumer_counts({"orders": 8}, range(3, 10)):
    ...     print(count.consumers, count.peak, count.least, count.idle, count.verdict)
    3 3 2 0 EFFICIENT
    4 2 2 0 EVEN
    5 2 1 0 WASTEFUL
    6 2 1 0 WASTEFUL
    7 2 1 0 WASTEFUL
    8 1 1 0 EVEN
    9 1 0 1 IDLE
    """
    wanted = list(counts)
    mistakes = [
        f"queues: {topic} has {n!r} queues; expected 1 or more"
        for topic, n in queues.items()
        if n < 1
    ] + [f"counts: {n!r} consumers; expected 1 or more" for n in wanted if n < 1]
    if not queues:
        mistakes.append('queues: no topic; expected topic -> number of queues, e.g. {"orders": 8}')
    if mistakes:
        raise UsageError("\n".join(mistakes))
    return [_count(queues, consumers) for consumers in wanted]


def peak_of(queues: Mapping[str, int], consumers: int) -> int:
    """Most queues of one consumer over all topics: that of the first in Java's order."""
    return sum(-(-n // consumers) for n in queues.values())


def _count(queues: Mapping[str, int], consumers: int) -> ConsumerCount:
    fewest = {topic: n // consumers for topic, n in queues.items()}
    most = {topic: -(-n // consumers) for topic, n in queues.items()}
    peak, idle = sum(most.values()), max(0, consumers - max(queues.values()))
    return ConsumerCount(
        consumers=consumers,
        most=MappingProxyType(most),
        fewest=MappingProxyType(fewest),
        peak=peak,
        least=sum(fewest.values()),
        idle=idle,
        peak_ratio=peak * consumers / sum(queues.values()),
        next_lowers_peak=peak_of(queues, consumers + 1) < peak,
        verdict=_verdict(queues, consumers, idle),
    )


def _verdict(queues: Mapping[str, int], consumers: int, idle: int) -> str:
    if idle:
        return IDLE
    if all(n % consumers == 0 for n in queues.values()):
        return EVEN
    fewer = consumers - 1  # the peak never rises with the number, so one comparison is enough
    lower = fewer == 0 or peak_of(queues, fewer) > peak_of(queues, consumers)
    return EFFICIENT if lower else WASTEFUL


def queues_needed(
    consumers: int,
    *,
    max_spread: int = 1,
    max_peak_ratio: float | None = None,
    brokers: int = 1,
    at_least: int = 1,
) -> int:
    """The fewest queues of a topic that leave no consumer idle and are even enough.

    Args:
        consumers: How many there will be, 1 or more.
        max_spread: Most queues between the busiest and the laziest: 0 for exactly even; RocketMQ's
            even strategies never have more than 1.
        max_peak_ratio: Most of the busiest over the average, e.g. 1.1; None: any.
        brokers: The topic has the same number of queues on each of so many.
        at_least: Queues there must be, e.g. those there are.

    Returns:
        The number of queues over all brokers.

    Raises:
        UsageError: A value out of its range, or more than 65,536 queues a broker would be needed.

    >>> queues_needed(5, max_spread=0, brokers=2, at_least=8), queues_needed(5, max_peak_ratio=1.1)
    (10, 5)
    >>> queues_needed(5, max_peak_ratio=1.1, at_least=8)  # 8: 2 against 1.6; 10: 2 against 2
    10
    """
    ranges = (
        ("consumers", consumers, 1), ("max_spread", max_spread, 0), ("brokers", brokers, 1),
        ("at_least", at_least, 0), ("max_peak_ratio", max_peak_ratio or 1.0, 1),
    )  # fmt: skip
    mistakes = [f"{name} = {n!r}: expected {low} or more" for name, n, low in ranges if n < low]
    if mistakes:
        raise UsageError("\n".join(mistakes))
    start = -(-max(consumers, at_least) // brokers) * brokers
    # A common multiple is even, so nothing beyond the next one needs to be tried.
    for queues in range(start, start + lcm(consumers, brokers) + 1, brokers):
        most, spread = -(-queues // consumers), int(queues % consumers > 0)
        near = max_peak_ratio is None or most * consumers <= max_peak_ratio * queues
        if spread <= max_spread and near:
            break
    if queues > MOST_QUEUES * brokers:
        raise UsageError(
            f"{queues:,} queues would be needed on {brokers} brokers; RocketMQ's queue numbers are"
            f" modelled up to {MOST_QUEUES:,} a broker"
        )
    return queues
