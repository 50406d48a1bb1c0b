"""The simulated model: brokers, their disturbances, producers, and the versions and settings to
compare.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from rebalance_core.model.times import SEND_TIMEOUT_MS
from rebalance_core.model.versions import Version, parse_version
from rebalance_core.producers.latencies import Latency
from rebalance_core.producers.send_failures import CONNECT
from rebalance_core.producers.send_record import RETRY_TIMES
from rebalance_core.producers.topic_route import BrokerData, QueueData, TopicRoute

READ_WRITE = 6


@dataclass(frozen=True, slots=True)
class BrokerModel:
    """A broker: the queues that each topic has on it, and its latency in normal operation."""

    name: str
    queues: int
    latency: Latency


@dataclass(frozen=True, slots=True)
class BrownOut:
    """A period in which a broker answers slowly or with an error that is retried (SYSTEM_ERROR)."""

    broker: str
    from_ms: int
    to_ms: int
    latency: Latency
    errors: float = 0.0
    """the share of requests answered with an error"""

    @property
    def label(self) -> str:
        """Return the name of a phase with it."""
        return f"brown-out of {self.broker}"


@dataclass(frozen=True, slots=True)
class Outage:
    """A period in which a broker does not answer: the connection is refused, or requests time
    out.
    """

    broker: str
    from_ms: int
    to_ms: int
    answer: str = CONNECT
    stays_in_route: bool = False
    """whether the name server keeps it, so that producers continue to choose it"""

    @property
    def label(self) -> str:
        """Return the name of a phase with it."""
        return f"outage of {self.broker}"


@dataclass(frozen=True, slots=True)
class Variant:
    """The version and settings of a producer, which results compare."""

    version: Version
    fault_tolerance: bool
    """sendLatencyFaultEnable"""


@dataclass(frozen=True, slots=True)
class ProducerGroup:
    """Identical producers, each of which sends to one topic from one thread."""

    name: str
    topic: str
    clients: int
    sends_per_second: float
    variant: Variant
    detector: bool = False
    retries: int = RETRY_TIMES
    timeout_ms: int = SEND_TIMEOUT_MS

    def client_id(self, number: int) -> str:
        """Return the id of one producer."""
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
    """``publish_choices`` counts over slices of at most this length"""
    brokers: tuple[BrokerModel, ...]
    disturbances: tuple[BrownOut | Outage, ...]
    groups: tuple[ProducerGroup, ...]

    @property
    def producers(self) -> int:
        """The number of producers in all groups."""
        return sum(group.clients for group in self.groups)

    def producer(self, number: int) -> tuple[ProducerGroup, int]:
        """Return the group of the producer with a number below `producers`, and its number within
        the group.
        """
        for group in self.groups:
            if number < group.clients:
                return group, number
            number -= group.clients
        raise IndexError(f"there are {self.producers} producers")

    def route(self, without: frozenset[str]) -> TopicRoute:
        """Return a topic's route while these brokers are not registered."""
        registered = [broker for broker in self.brokers if broker.name not in without]
        return TopicRoute(
            tuple(QueueData(b.name, b.queues, b.queues, READ_WRITE) for b in registered),
            tuple(BrokerData(b.name, frozenset({0})) for b in registered),
        )


BOTH_GENERATIONS = (parse_version("4.9"), parse_version("5.3"))
"""The fault strategy was rewritten in 5.1.4; these versions represent the states before and
after.
"""


def variants_of(
    model: ProducerModel, versions: Sequence[Version] = BOTH_GENERATIONS
) -> dict[str, tuple[Variant, ...]]:
    """Return, by group, its own variant, then each version without and with fault tolerance.

    Args:
        model: What is simulated.
        versions: The versions to compare; a group's own is always among them.
    """
    compared: dict[str, tuple[Variant, ...]] = {}
    for group in model.groups:
        every = sorted({*versions, group.variant.version})
        both = [Variant(version, enabled) for version in every for enabled in (False, True)]
        compared[group.name] = tuple(dict.fromkeys([group.variant, *both]))
    return compared
