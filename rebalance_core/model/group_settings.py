"""Settings of a consumer group, with RocketMQ's defaults."""

from dataclasses import dataclass

PUSH, LITE_PULL, PULL = "PUSH", "LITE_PULL", "PULL"
CONSUMER_TYPES = (PUSH, LITE_PULL, PULL)
CLUSTERING, BROADCASTING = "CLUSTERING", "BROADCASTING"
MESSAGE_MODELS = (CLUSTERING, BROADCASTING)
CLIENT_REBALANCE, BROKER_REBALANCE, PROXY_REBALANCE = "CLIENT", "BROKER", "PROXY"
REBALANCE_MODES = (CLIENT_REBALANCE, BROKER_REBALANCE, PROXY_REBALANCE)
CONSUME_FROM_WHERE = (
    "CONSUME_FROM_LAST_OFFSET",
    "CONSUME_FROM_FIRST_OFFSET",
    "CONSUME_FROM_TIMESTAMP",
    "CONSUME_FROM_LAST_OFFSET_AND_FROM_MIN_WHEN_BOOT_FIRST",
    "CONSUME_FROM_MIN_OFFSET",
    "CONSUME_FROM_MAX_OFFSET",
)
"""The enum of that name; the last three are deprecated."""
BROKER_STRATEGIES = ("AVG", "AVG_BY_CIRCLE")  # QueryAssignmentProcessor knows no other


@dataclass(frozen=True, slots=True)
class GroupSettings:
    """One row of consumer_groups; a group without a row has the defaults below."""

    consumer_type: str = PUSH
    message_model: str = CLUSTERING
    strategy: str = "AVG"
    subscriptions: tuple[str, ...] | None = None
    """Of members that state none; None: not known, which is not nothing."""
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
