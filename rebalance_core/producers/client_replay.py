"""Applies a producer's results to the fault table of its version."""

from collections import Counter as Counts
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from rebalance_core.contracts import producers
from rebalance_core.model.times import SLOW_SEND_MS
from rebalance_core.producers import send_failures
from rebalance_core.producers.counter import Counter
from rebalance_core.producers.isolation_log import IsolationLog
from rebalance_core.producers.model import Variant
from rebalance_core.producers.profile import profile_of
from rebalance_core.producers.send_failures import JavaFailure, failure_of, verdict
from rebalance_core.producers.send_record import Report
from rebalance_core.producers.strategy import new_strategy
from rebalance_core.producers.tally import Isolation

RECORDED = "recorded"
_FAILURES: dict[str, JavaFailure | None] = {
    **dict.fromkeys(producers.STORED),
    producers.CONNECT_FAILED: failure_of(send_failures.CONNECT),
    producers.SEND_FAILED: failure_of(send_failures.SEND_REQUEST),
    producers.TIMEOUT: failure_of(send_failures.TIMEOUT),
    producers.BROKER_ERROR: JavaFailure(send_failures.BROKER_EXCEPTION),
    producers.NO_ADDRESS: failure_of(send_failures.NO_ADDRESS),
    producers.INTERRUPTED: failure_of(send_failures.INTERRUPTED),
}


class Result(NamedTuple):
    """A row of a client's ``send_results``."""

    event_ms: int
    topic: str
    broker_name: str
    latency_ms: int
    status: str


@dataclass(slots=True)
class BrokerCounts:
    """The counts for one topic on one broker."""

    attempts: int = 0
    stored: int = 0
    slow: int = 0
    errors: int = 0
    avoided: int = 0


@dataclass(slots=True)
class ClientReplay:
    """The choices, counts and isolations that result from one client's results."""

    choices: Counts[tuple[str, str, int]] = field(default_factory=Counts)
    """attempts by topic, broker and number of the slice, counted from the epoch"""
    counts: dict[tuple[str, str], BrokerCounts] = field(default_factory=dict)
    """the counts by topic and broker"""
    isolations: list[Isolation] = field(default_factory=list)


def replay_client(
    results: Sequence[Result], variant: Variant, *, detector: bool, slice_ms: int
) -> ClientReplay:
    """Return the isolations caused by the results, and the attempts by broker.

    An attempt is *avoided* if the fault table, as it was when the attempt began, advised against
    its broker, and the client uses another broker for the topic. Many of them show that the client
    runs without sendLatencyFaultEnable. Sync sends are assumed (rocketmq.md §9.2). O(results).

    Args:
        results: The results of one client, in chronological order.
        variant: The version and setting to assume.
        detector: startDetectorEnable.
        slice_ms: The length of the slices of ``choices``.
    """
    profile = profile_of(variant.version)
    unused = Counter(0, int, profile.raw_seed)
    strategy = new_strategy(profile, variant.fault_tolerance, unused)
    made, log = ClientReplay(), IsolationLog()
    used: dict[str, set[str]] = {}
    for result in results:
        used.setdefault(result.topic, set()).add(result.broker_name)
    for result in results:
        began_ms = result.event_ms - result.latency_ms
        failure = _FAILURES[result.status]
        isolation, reachable = verdict(failure, profile, detector=detector)
        others = used[result.topic] - {result.broker_name}
        counts = made.counts.setdefault((result.topic, result.broker_name), BrokerCounts())
        counts.attempts += 1
        counts.stored += failure is None
        counts.errors += failure is not None
        counts.slow += result.latency_ms >= SLOW_SEND_MS
        counts.avoided += log.covers(result.broker_name, began_ms) and not all(
            log.covers(other, began_ms) for other in others
        )
        stretch = (result.topic, result.broker_name, began_ms // slice_ms)
        made.choices[stretch] += 1
        report = Report(
            result.broker_name, result.latency_ms, isolation, reachable, result.event_ms
        )
        strategy.report(*report)
        log.note(report, strategy.faults)
    made.isolations = list(log.all())
    return made
