"""Load, backlog and catch-up, given the message rates of queues."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import inf, isfinite, lcm
from types import MappingProxyType
from typing import Any

from rebalance_core.model.errors import UsageError
from rebalance_core.model.queue import MessageQueue, sort_client_ids
from rebalance_core.planning.strategies import Owners
from rebalance_core.planning.table_keys import MOST_QUEUES

MS_PER_SECOND = 1000


@dataclass(frozen=True, slots=True)
class ConsumerRate:
    """The load of a member.

    Attributes:
        queues: The number of queues that it holds.
        messages_per_second: The sum over the queues with a known rate.
        without_rate: The number of queues with an unknown rate; above 0, the sum is too low.
    """

    queues: int
    messages_per_second: float
    without_rate: int


@dataclass(frozen=True, slots=True)
class Backlog:
    """The messages that wait in a queue after a window without an owner.

    Attributes:
        messages: The number of messages waiting at the end of the window.
        catch_up_seconds: The time from then until none waits; inf if the consumer is never fast
            enough.
    """

    messages: float
    catch_up_seconds: float


def rates_at(
    rows: Iterable[Mapping[str, Any]], at_ms: int, *, cluster: str | None = None
) -> dict[MessageQueue, float]:
    """Return the messages per second of each queue at an instant.

    Args:
        rows: Rows of ``queue_rates`` (`contracts.planning`), in any order.
        at_ms: The instant, epoch ms UTC; a row applies from from_ms up to, but excluding, to_ms.
        cluster: The cluster whose rows to use; None: there is only one.

    Raises:
        UsageError: A rate is negative or not finite, rows overlap at the instant, or the rows
            belong to several clusters and ``cluster`` is None; the message lists every mistake.
    """
    rates: dict[MessageQueue, float] = {}
    mistakes: list[str] = []
    clusters: set[str] = set()
    for row in rows:
        if cluster is not None and row["cluster"] != cluster:
            continue
        clusters.add(row["cluster"])
        to_ms = row.get("to_ms")
        if not row["from_ms"] <= at_ms < (inf if to_ms is None else to_ms):
            continue
        queue = MessageQueue(row["topic"], row["broker_name"], row["queue_id"])
        rate = row["messages_per_second"]
        if not (isfinite(rate) and rate >= 0):
            mistakes.append(f"{queue}: {rate!r} messages per second; expected 0 or more")
        if queue in rates:
            mistakes.append(
                f"{queue}: two rates at {at_ms}; the periods of a queue must not overlap"
            )
        rates[queue] = rate
    if len(clusters) > 1:
        mistakes = [f"the rates cover several clusters ({', '.join(sorted(clusters))}); name one"]
    if mistakes:
        raise UsageError("\n".join(mistakes))
    return rates


def load_per_consumer(
    owners: Owners, members: Iterable[str], rates: Mapping[MessageQueue, float]
) -> dict[str, ConsumerRate]:
    """Return the load of every member, in Java's order; equal numbers of queues may differ in load.

    Args:
        owners: Queue -> client ids, e.g. ``what_if(…).after.owners``. Each owner of a queue reads
            all of it.
        members: Client ids.
        rates: Messages per second.

    >>> a, b, c = (MessageQueue("T", "broker-a", i) for i in range(3))
    >>> load_per_consumer({a: ("x",), b: ("x",), c: ("y",)}, "xyz", {a: 10.0, c: 70.0})["x"]
    ConsumerRate(queues=2, messages_per_second=10.0, without_rate=1)
    """
    held: dict[str, list[MessageQueue]] = {c: [] for c in sort_client_ids(set(members))}
    for queue, clients in owners.items():
        for client_id in clients:
            held.setdefault(client_id, []).append(queue)
    return {
        client_id: ConsumerRate(
            len(queues),
            float(sum(rates.get(queue, 0.0) for queue in queues)),
            sum(queue not in rates for queue in queues),
        )
        for client_id, queues in held.items()
    }


def backlog(messages_per_second: float, window_ms: int, capacity: float) -> Backlog:
    """Return the lag that builds up while a queue has no owner, and how long it takes to catch up.

    backlog = rate x window; catch-up = backlog / (capacity - rate). Rate and capacity are assumed
    to be constant, and the new owner is assumed to start at its predecessor's last commit.

    Args:
        messages_per_second: The incoming rate, 0 or more.
        window_ms: How long the queue is not read: at most the event's window in
            `protocol.settling_windows`, e.g. 3,000 for a graceful leave, 33,000 for a consumer that
            the scan detects; at least as long as the owner is actually gone.
        capacity: Messages per second that the new owner can read from this queue.

    Returns:
        Catch-up is inf if the capacity does not exceed the rate, and 0 if nothing waits.

    Raises:
        UsageError: An argument is negative or not finite.

    >>> backlog(200, 33_000, 500)
    Backlog(messages=6600.0, catch_up_seconds=22.0)
    >>> backlog(200, 33_000, 200).catch_up_seconds
    inf
    """
    named = {
        "messages_per_second": messages_per_second, "window_ms": window_ms, "capacity": capacity
    }  # fmt: skip
    wrong = [f"{name} = {n!r}: expected 0 or more" for name, n in named.items() if not 0 <= n < inf]
    if wrong:
        raise UsageError("\n".join(wrong))
    waiting = messages_per_second * window_ms / MS_PER_SECOND
    if waiting == 0:
        return Backlog(0.0, 0.0)
    spare = capacity - messages_per_second
    return Backlog(waiting, waiting / spare if spare > 0 else inf)


# All of this concerns strategies that allocate evenly per topic and assign every topic's surplus to
# the same members: AVG and AVG_BY_CIRCLE, with one client id per process. RocketMQ is even per
# topic but skewed per group: the topics' surpluses add up on the members that sort first.
EVEN, EFFICIENT, WASTEFUL, IDLE = "EVEN", "EFFICIENT", "WASTEFUL", "IDLE"
VERDICTS = MappingProxyType(
    {
        EVEN: "every consumer has the same number of queues of each topic",
        EFFICIENT: "no smaller number has such a low peak",
        WASTEFUL: "a smaller number of consumers has the same peak",
        IDLE: "some consumers have no queue at all",
    }
)


@dataclass(frozen=True, slots=True)
class ConsumerCount:
    """The division of the topics among a number of consumers.

    Attributes:
        consumers: The number of consumers.
        most: Topic -> the maximum number of queues of a consumer.
        fewest: Topic -> the minimum number of queues of a consumer.
        peak: The maximum number of queues of a consumer over all topics: the sum of ``most``.
        least: The minimum over all topics: the sum of ``fewest``.
        idle: The number of consumers without a queue: those beyond the largest topic's number of
            queues.
        peak_ratio: Peak x consumers / queues; 1.0 is even.
        next_lowers_peak: Whether another consumer would lower the peak; otherwise, adding one costs
            a rebalance without relieving the busiest consumer.
        verdict: EVEN, EFFICIENT, WASTEFUL or IDLE (`VERDICTS`); the first that applies of IDLE,
            EVEN, EFFICIENT, WASTEFUL.
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


def consumer_counts(queues: Mapping[str, int], counts: Iterable[int]) -> list[ConsumerCount]:
    """Return how each number of consumers divides the topics, in the order of ``counts``.

    Args:
        queues: Topic -> its readable queues, 1 or more.
        counts: Numbers of consumers, 1 or more.

    Raises:
        UsageError: There is no topic, or a number is below 1; the message lists every mistake.

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
        mistakes.append(
            'queues: there is no topic; expected topic -> number of queues, e.g. {"orders": 8}'
        )
    if mistakes:
        raise UsageError("\n".join(mistakes))
    return [_count(queues, consumers) for consumers in wanted]


def peak_of(queues: Mapping[str, int], consumers: int) -> int:
    """Return the maximum number of queues of a consumer over all topics: that of the first in
    Java's order.
    """
    return sum(-(-n // consumers) for n in queues.values())


def fewest_consumers(queues: Mapping[str, int], limit: float) -> int | None:
    """Return the minimum number of consumers such that each stays within a limit while any other
    one is missing.

    Args:
        queues: Topic -> its readable queues, 1 or more.
        limit: The maximum number of queues that a consumer can carry.

    Returns:
        The number, including the one to spare; None: with any number, a consumer exceeds the limit.

    Raises:
        UsageError: As `consumer_counts`.

    >>> fewest_consumers({"orders": 8}, 2), fewest_consumers({"orders": 8}, 0.5)
    (5, None)
    """
    most = max(queues.values(), default=1)
    for count in consumer_counts(queues, range(1, most + 1)):
        if count.peak <= limit:
            return count.consumers + 1
    return None


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
    fewer = consumers - 1  # the peak never rises with the number, so one comparison is sufficient
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
    """Return the minimum number of queues in a topic that leaves no consumer idle and is even
    enough.

    Args:
        consumers: The resulting number of consumers, 1 or more.
        max_spread: The maximum difference in queues between the most and the least loaded consumer:
            0 for exactly even; with RocketMQ's even strategies, it never exceeds 1.
        max_peak_ratio: The maximum ratio of the busiest consumer to the average, e.g. 1.1; None:
            any.
        brokers: The topic has the same number of queues on each of this many.
        at_least: The minimum number of queues, e.g. the current one.

    Returns:
        The number of queues over all brokers.

    Raises:
        UsageError: A value is out of its range, or a broker would need more than 65,536 queues.

    >>> queues_needed(5, max_spread=0, brokers=2, at_least=8), queues_needed(5, max_peak_ratio=1.1)
    (10, 5)
    >>> queues_needed(5, max_peak_ratio=1.1, at_least=8)  # 8: 2 against 1.6; 10: 2 against 2
    10
    """
    ranges = (
        ("consumers", consumers, 1),
        ("max_spread", max_spread, 0),
        ("brokers", brokers, 1),
        ("at_least", at_least, 0),
        ("max_peak_ratio", max_peak_ratio or 1.0, 1),
    )
    mistakes = [f"{name} = {n!r}: expected {low} or more" for name, n, low in ranges if n < low]
    if mistakes:
        raise UsageError("\n".join(mistakes))
    start = -(-max(consumers, at_least) // brokers) * brokers
    # A common multiple is always even, so numbers beyond the next multiple need not be tried.
    for queues in range(start, start + lcm(consumers, brokers) + 1, brokers):
        most, spread = -(-queues // consumers), int(queues % consumers > 0)
        near = max_peak_ratio is None or most * consumers <= max_peak_ratio * queues
        if spread <= max_spread and near:
            break
    if queues > MOST_QUEUES * brokers:
        raise UsageError(
            f"{queues:,} queues on {brokers} brokers would be needed; RocketMQ's queue "
            f"numbers are modelled up to {MOST_QUEUES:,} per broker"
        )
    return queues
