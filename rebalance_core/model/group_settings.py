"""Settings of a consumer group, with RocketMQ's defaults."""

from dataclasses import dataclass

from rebalance_core.model.events import Event
from rebalance_core.model.intervals import DEFAULT_INTERVALS, INTERVALS, Intervals

PUSH, LITE_PULL, PULL = "PUSH", "LITE_PULL", "PULL"
CONSUMER_TYPES = (PUSH, LITE_PULL, PULL)
CLUSTERING, BROADCASTING = "CLUSTERING", "BROADCASTING"
MESSAGE_MODELS = (CLUSTERING, BROADCASTING)
CLIENT_REBALANCE, BROKER_REBALANCE, PROXY_REBALANCE = "CLIENT", "BROKER", "PROXY"
REBALANCE_MODES = (CLIENT_REBALANCE, BROKER_REBALANCE, PROXY_REBALANCE)
LAST_OFFSET = "CONSUME_FROM_LAST_OFFSET"
CONSUME_FROM_WHERE = (
    LAST_OFFSET,
    "CONSUME_FROM_FIRST_OFFSET",
    "CONSUME_FROM_TIMESTAMP",
    "CONSUME_FROM_LAST_OFFSET_AND_FROM_MIN_WHEN_BOOT_FIRST",
    "CONSUME_FROM_MIN_OFFSET",
    "CONSUME_FROM_MAX_OFFSET",
)
"""The values of RocketMQ's enum; the last three are deprecated."""
BROKER_STRATEGIES = ("AVG", "AVG_BY_CIRCLE")  # the only ones that QueryAssignmentProcessor knows


def without_suspend(consumer_type: str, rebalance_mode: str) -> str | None:
    """Return a description of a consumer without ``suspend()``, or None if it has one.

    Only push consumers have it, and the gRPC clients behind a proxy have another interface.
    """
    if consumer_type != PUSH:
        return f"{consumer_type} consumers"
    return "members behind a proxy" if rebalance_mode == PROXY_REBALANCE else None


VALID_THRESHOLDS = "-1 (off), 1 and more"
"""The valid values of the columns ``pull_threshold_…``, in words."""


def is_threshold(value: int) -> bool:
    """Return True for a valid value of a column ``pull_threshold_…``."""
    return value > 0 or value == -1


@dataclass(frozen=True, slots=True)
class GroupSettings:
    """A row of consumer_groups; the defaults below apply to a group without a row."""

    consumer_type: str = PUSH
    message_model: str = CLUSTERING
    strategy: str = "AVG"
    subscriptions: tuple[str, ...] | None = None
    """For members without subscriptions of their own; None means unknown, unlike an empty tuple."""
    consume_from_where: str = "CONSUME_FROM_LAST_OFFSET"
    consume_timestamp_ms: int | None = None
    ordered: bool = False
    client_version: str = "5.3"
    broker_version: str = "5.3"
    rebalance_mode: str = CLIENT_REBALANCE
    pull_threshold_for_queue: int = 1000
    pull_threshold_size_for_queue: int = 100
    pull_threshold_for_topic: int = -1
    pull_threshold_size_for_topic: int = -1
    notified: bool = True
    """If False, brokers notify members of closed channels but not of joins and leaves."""
    wait_interval_ms: int = DEFAULT_INTERVALS.wait_interval_ms
    min_interval_ms: int = DEFAULT_INTERVALS.min_interval_ms
    poll_name_server_interval_ms: int = DEFAULT_INTERVALS.poll_name_server_interval_ms
    heartbeat_broker_interval_ms: int = DEFAULT_INTERVALS.heartbeat_broker_interval_ms
    persist_consumer_offset_interval_ms: int = DEFAULT_INTERVALS.persist_consumer_offset_interval_ms

    @property
    def intervals(self) -> Intervals:
        """Return the intervals of clients that report none of their own."""
        return Intervals(*(getattr(self, name) for name in INTERVALS))

    def intervals_of(self, join: Event) -> Intervals:
        """Return the intervals of the client in a CONSUMER_JOIN."""
        said = (getattr(join, name) for name in INTERVALS)
        return Intervals(
            *(
                getattr(self, name) if value is None else value
                for name, value in zip(INTERVALS, said, strict=True)
            )
        )
