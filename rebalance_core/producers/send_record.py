"""A producer's settings, and the record of a send."""

from dataclasses import dataclass, field
from typing import NamedTuple

from rebalance_core.model.queue import MessageQueue
from rebalance_core.producers.publish_info import PublishInfo
from rebalance_core.producers.send_failures import JavaFailure
from rebalance_core.producers.strategy import FaultStrategy

RETRY_TIMES = 2  # DefaultMQProducer.retryTimesWhenSendFailed


@dataclass(frozen=True, slots=True)
class ProducerSettings:
    """The settings of ``DefaultMQProducer`` that control retries, with upstream's defaults."""

    retry_times: int = RETRY_TIMES
    retry_another_broker_when_not_store_ok: bool = False
    extra_retry_codes: frozenset[int] = frozenset()
    max_timeout_per_request_ms: int = -1
    """sendMsgMaxTimeoutPerRequest (5.3.3); -1: off"""
    detector: bool = False
    """startDetectorEnable (5.1.4+)"""


class Pick(NamedTuple):
    """A chosen queue, the broker to avoid, and the counter after the choice."""

    broker_name: str
    queue_id: int
    last_broker: str | None
    counter: int | None


class Request(NamedTuple):
    """A request that reached the transport."""

    broker_name: str
    queue_id: int
    timeout_ms: int
    at_ms: int


class Report(NamedTuple):
    """A call of updateFaultItem."""

    broker_name: str
    latency_ms: int
    isolation: bool
    reachable: bool
    at_ms: int


@dataclass(slots=True)
class SendRecord:
    """Everything that happened in a send."""

    picks: list[Pick] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)
    reports: list[Report] = field(default_factory=list)
    status: str | None = None
    """the SendStatus, or SENT for a one-way send; None: it failed"""
    stored_by: str | None = None
    """the broker that answered with the status"""
    failure: JavaFailure | None = None
    end_ms: int = 0


@dataclass(slots=True)
class Producer:
    """One producer's thread for one topic, and its clock."""

    strategy: FaultStrategy
    info: PublishInfo
    settings: ProducerSettings
    now_ms: int = 0
    late_ms: int = 0
    """how long after its timeout a sync attempt ends; never 0 on a real clock"""

    def choose(self, record: SendRecord, last: str | None, reset: bool) -> MessageQueue:
        """Choose a queue and record the choice."""
        queue = self.strategy.select(self.info, last, reset, self.now_ms)
        counter = self.info.counter.value
        record.picks.append(Pick(queue.broker_name, queue.queue_id, last, counter))
        return queue

    def report(
        self, record: SendRecord, broker: str, latency_ms: int, isolation: bool, reachable: bool
    ) -> None:
        """Report a result and record the report."""
        record.reports.append(Report(broker, latency_ms, isolation, reachable, self.now_ms))
        self.strategy.report(broker, latency_ms, isolation, reachable, self.now_ms)
