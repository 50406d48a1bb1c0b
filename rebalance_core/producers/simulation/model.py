"""What is simulated: brokers, what disturbs them, and who sends."""

from dataclasses import dataclass

from rebalance_core.model.times import SEND_TIMEOUT_MS
from rebalance_core.model.versions import Version
from rebalance_core.producers.routes.topic_route import BrokerData, QueueData, TopicRoute
from rebalance_core.producers.sending.answers import CONNECT
from rebalance_core.producers.sending.producer import RETRY_TIMES
from rebalance_core.producers.simulation.latency import Latency

READ_WRITE = 6


@dataclass(frozen=True, slots=True)
class BrokerModel:
    """A broker: the queues that each topic has on it, and its latency while all is well."""

    name: str
    queues: int
    latency: Latency


@dataclass(frozen=True, slots=True)
class BrownOut:
    """A broker answers, but slowly, or with an error that is tried again (SYSTEM_ERROR)."""

    broker: str
    from_ms: int
    to_ms: int
    latency: Latency
    errors: float = 0.0
    """share of requests answered with an error"""

    @property
    def label(self) -> str:
        """What a phase with it is called."""
        return f"brown-out of {self.broker}"


@dataclass(frozen=True, slots=True)
class Outage:
    """A broker does not answer: the connection is refused, or requests run into the timeout."""

    broker: str
    from_ms: int
    to_ms: int
    answer: str = CONNECT
    stays_in_route: bool = False
    """the name server keeps it, so producers go on choosing it"""

    @property
    def label(self) -> str:
        """What a phase with it is called."""
        return f"outage of {self.broker}"


@dataclass(frozen=True, slots=True)
class Variant:
    """How a producer is built and set: what the answers compare."""

    version: Version
    fault_tolerance: bool
    """sendLatencyFaultEnable"""


@dataclass(frozen=True, slots=True)
class ProducerGroup:
    """Producers that do the same: each sends to one topic from one thread."""

    name: str
    topic: str
    clients: int
    sends_per_second: float
    variant: Variant
    detector: bool = False
    retries: int = RETRY_TIMES
    timeout_ms: int = SEND_TIMEOUT_MS

    def client_id(self, number: int) -> str:
        """The id of one producer."""
        return f"{self.name}@{number}"


@dataclass(frozen=True, slots=True)
class ProducerModel:
    """A whole simulation; times are ms from its start."""

    name: str
    description: str
    cluster: str
    seed: int
    start_ms: int
    """epoch ms"""
    length_ms: int
    slice_ms: int
    """``publish_choices`` counts over stretches of at most this length"""
    brokers: tuple[BrokerModel, ...]
    disturbances: tuple[BrownOut | Outage, ...]
    groups: tuple[ProducerGroup, ...]

    @property
    def producers(self) -> int:
        """Of all groups."""
        return sum(group.clients for group in self.groups)

    def producer(self, number: int) -> tuple[ProducerGroup, int]:
        """The producer of a number below `producers`: its group, its number there."""
        for group in self.groups:
            if number < group.clients:
                return group, number
            number -= group.clients
        raise IndexError(f"there are {self.producers} producers")

    def route(self, without: frozenset[str]) -> TopicRoute:
        """A topic's route while these brokers are not registered."""
        here = [broker for broker in self.brokers if broker.name not in without]
        return TopicRoute(
            tuple(QueueData(b.name, b.queues, b.queues, READ_WRITE) for b in here),
            tuple(BrokerData(b.name, frozenset({0})) for b in here),
        )
