"""Cluster events: their types, and an event as the replay reads it."""

from dataclasses import dataclass

CONSUMER_JOIN = "CONSUMER_JOIN"
CONSUMER_LEAVE = "CONSUMER_LEAVE"
CONSUMER_LOST = "CONSUMER_LOST"
SUBSCRIBE = "SUBSCRIBE"
UNSUBSCRIBE = "UNSUBSCRIBE"
CONSUMER_SUSPEND = "CONSUMER_SUSPEND"
CONSUMER_RESUME = "CONSUMER_RESUME"
BROKER_UP = "BROKER_UP"
BROKER_DOWN = "BROKER_DOWN"
TOPIC_CONFIG = "TOPIC_CONFIG"
TOPIC_DELETED = "TOPIC_DELETED"
REQUEST_MODE = "REQUEST_MODE"
MASTER_DOWN = "MASTER_DOWN"
MASTER_UP = "MASTER_UP"
NOTICES = "NOTICES"

CONSUMER_EVENTS = (
    CONSUMER_JOIN,
    CONSUMER_LEAVE,
    CONSUMER_LOST,
    SUBSCRIBE,
    UNSUBSCRIBE,
    CONSUMER_SUSPEND,
    CONSUMER_RESUME,
)
GROUP_EVENTS = (*CONSUMER_EVENTS, REQUEST_MODE)
"""Event types that name a group; all others concern every group that reads the topic or broker."""
BROKER_EVENTS = (BROKER_UP, BROKER_DOWN)
TOPIC_EVENTS = (TOPIC_CONFIG, TOPIC_DELETED)
MASTER_EVENTS = (MASTER_DOWN, MASTER_UP)
EVENT_TYPES = (*GROUP_EVENTS, *BROKER_EVENTS, *TOPIC_EVENTS, *MASTER_EVENTS, NOTICES)

OBSERVED = "OBSERVED"  # detail: already true when the log began
EXPIRED = (
    "EXPIRED"  # detail of a loss that the scan detects, of which the broker notifies no member
)

REFUSED = "REFUSED"
"""Detail of a MASTER_DOWN: the slaves refuse reads (slaveReadEnable=false, the default)."""
SLAVE_READ = "SLAVE_READ"
"""Detail of a MASTER_DOWN: the slaves serve reads (slaveReadEnable=true)."""
ACTING = "ACTING"
"""Detail of a MASTER_DOWN: a slave acts as master (enableSlaveActingMaster), so locks still
work."""
MASTER_MODES = (REFUSED, SLAVE_READ, ACTING)

ON = "ON"
"""Detail of a NOTICES: the broker notifies members of changes at once (the default)."""
BATCHED = "BATCHED"
"""Detail of a NOTICES: it notifies them every 15 s (realTimeNotifyConsumerChange=false)."""
OFF = "OFF"
"""Detail of a NOTICES: it notifies no member (notifyConsumerIdsChangedEnable=false)."""
NOTICE_MODES = (ON, BATCHED, OFF)
"""In ascending order of delay."""


@dataclass(frozen=True, slots=True)
class Event:
    """A row of cluster_events; fields as in the contract, null as None."""

    event_ms: int
    sequence: int
    event_type: str
    client_id: str | None = None
    channel_id: str | None = None
    topic: str | None = None
    broker_name: str | None = None
    read_queue_nums: int | None = None
    write_queue_nums: int | None = None
    perm: int | None = None
    subscriptions: tuple[str, ...] | None = None
    strategy: str | None = None
    detail: str | None = None
    version: str | None = None
    message_model: str | None = None
    consume_from_where: str | None = None
    rebalance_mode: str | None = None
    language: str | None = None
    wait_interval_ms: int | None = None
    min_interval_ms: int | None = None
    poll_name_server_interval_ms: int | None = None
    heartbeat_broker_interval_ms: int | None = None
    persist_consumer_offset_interval_ms: int | None = None
    source: str | None = None
    raw: str | None = None
