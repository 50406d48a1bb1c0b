"""What members do by their type and settings, and how long they need to do it.

Windows (rocketmq.md §6.4, §13) are upper bounds in ms from the event to the last member's pass.
Notifications that get lost are not in these bounds.
"""

from rebalance_core.model import events, times
from rebalance_core.model.clients import Version, parse_version
from rebalance_core.model.events import EXPIRED, Event
from rebalance_core.model.group_settings import (
    BROADCASTING,
    BROKER_REBALANCE,
    DEFAULT_INTERVALS,
    LITE_PULL,
    PULL,
    PUSH,
    Intervals,
)

# Who lets a broker divide the queues: QueryAssignment (rocketmq.md §2.8).

QUERY_ASSIGNMENT = (5, 0, 0)
"""The first client that knows the request."""


def asks_broker(
    rebalance_mode: str, consumer_type: str, message_model: str, ordered: bool, client_version: str
) -> bool:
    """True if a member asks a broker for its share; all others divide on the client.

    Upstream: ``RebalancePushImpl.clientRebalance``. Pull and lite pull consumers have no such
    setting.

    Args:
        rebalance_mode: of the group, as consumer_groups has it.
        consumer_type: of the group.
        message_model: the member's own.
        ordered: the group's listener is orderly.
        client_version: the member's own; text that does not parse raises `model.errors.UsageError`.

    >>> asks_broker("BROKER", "PUSH", "CLUSTERING", ordered=False, client_version="5.0.0")
    True
    >>> asks_broker("BROKER", "PUSH", "CLUSTERING", ordered=False, client_version="4.9")
    False
    """
    return (
        rebalance_mode == BROKER_REBALANCE
        and consumer_type == PUSH
        and message_model != BROADCASTING
        and not ordered
        and parse_version(client_version) >= QUERY_ASSIGNMENT
    )


# Who adds a queue only with its order lock (rocketmq.md §7).

BROADCASTING_WITHOUT_LOCKS = (5, 3, 2)
"""ConsumeOrderly of a BROADCASTING consumer takes no broker locks any more."""


def locks_on_addition(
    consumer_type: str, message_model: str, ordered: bool, client_version: Version
) -> bool:
    """True if a queue is added only once the master gave its lock (``needLockMq``).

    >>> locks_on_addition("PUSH", "CLUSTERING", ordered=True, client_version=(5, 3, 3))
    True
    >>> locks_on_addition("PUSH", "BROADCASTING", ordered=True, client_version=(5, 3, 3))
    False
    """
    if not (consumer_type == PUSH and ordered):
        return False
    return message_model != BROADCASTING or client_version < BROADCASTING_WITHOUT_LOCKS


# What a client tells of itself: its language and release in each heartbeat, and the queues it
# holds when it is asked (GET_CONSUMER_RUNNING_INFO, rocketmq.md §10.7).

LITE_PULL_SUFFIX = "@STREAM"  # ClientConfig.buildMQClientId: lite pull asks for the stream type
LITE_PULL_TELLS_SINCE = (5, 1, 1)
JAVA, GO = "JAVA", "GO"
ALI_ONS, ALI_ONS_VERSION = "ali-ons", "3.4.9"
"""The client for Node.js, and the version that it sends, always, with Java's language."""


def tells_queues(consumer_type: str, version: str) -> bool:
    """True if the client's answer has the queues that it holds.

    ``consumerStatus`` prints the answer, and ``consumerProgress -s true`` takes the holders of
    queues out of it: of a client that does not tell, both show nothing. Lite pull consumers tell
    from 5.1.1 on, DefaultMQPullConsumer never does.

    >>> tells_queues("LITE_PULL", "4.9.4"), tells_queues("LITE_PULL", "5.1.4")
    (False, True)
    """
    if consumer_type == LITE_PULL:
        return parse_version(version) >= LITE_PULL_TELLS_SINCE
    return consumer_type == PUSH


def library_of(language: str | None, version: str | None) -> str | None:
    """The client library of a language and version as brokers list them; None: neither is known.

    >>> library_of("JAVA", "5.3.3"), library_of("JAVA", "3.4.9"), library_of("GO", "4.5.2")
    ('JAVA', 'ali-ons', 'GO')
    """
    return ALI_ONS if (language, version) == (JAVA, ALI_ONS_VERSION) else language


def consumer_type_of(consume_type: str, client_id: str) -> str:
    """The type of a consumer by its heartbeat and its client id.

    >>> consumer_type_of("CONSUME_ACTIVELY", "10.0.0.1@1#1@STREAM")
    'LITE_PULL'
    """
    if consume_type == "CONSUME_PASSIVELY":
        return PUSH
    return LITE_PULL if client_id.endswith(LITE_PULL_SUFFIX) else PULL


def tells_start(client_id: str) -> bool:
    """True if the heartbeats of a client say where it starts without a commit.

    DefaultLitePullConsumerImpl sends CONSUME_FROM_LAST_OFFSET whatever the consumer is set to.

    >>> tells_start("10.0.0.1@1#1"), tells_start("10.0.0.1@1#1@STREAM")
    (True, False)
    """
    return not client_id.endswith(LITE_PULL_SUFFIX)


# How a topic's pull threshold is shared among a push consumer's queues (rocketmq.md §4.4).
#
# Upstream: ``RebalancePushImpl.messageQueueChanged``.

THRESHOLD_OFF = -1


def pull_threshold_per_queue(*, for_topic: int, current: int, process_queues: int) -> int:
    """The threshold of each queue after a change of assignment.

    Despite the name of the setting the topic's threshold is divided by all process queues of the
    consumer: every topic, the retry topic and dropped queues not yet removed included.

    Args:
        for_topic: the ForTopic setting (messages or MiB); -1: off.
        current: the threshold per queue in force; kept when off or without process queues.
        process_queues: size of the consumer's process queue table.

    >>> pull_threshold_per_queue(for_topic=1000, current=500, process_queues=3)
    333
    """
    if for_topic == THRESHOLD_OFF or process_queues == 0:
        return current
    return max(1, for_topic // process_queues)


# How long after an event the group needs to settle (rocketmq.md §6.4, §13).
#
# Upper bounds in milliseconds from the event to the last member's pass. Notifications that get
# lost are not in these bounds.

PASS_MS = 2_000  # a pass itself: margin for its requests to all brokers
NOTIFIED_MS = times.REBALANCE_MIN_INTERVAL_MS + PASS_MS  # CHANGE is delivered at once
OWN_PASS_MS = times.REBALANCE_WAIT_MS + NOTIFIED_MS  # nobody is told: the next pass of one's own
SCAN_AND_PASS_MS = (
    times.CHANNEL_SCAN_MS + OWN_PASS_MS
)  # each broker scans by itself, survivors follow
ROUTE_MS = times.ROUTE_POLL_MS + OWN_PASS_MS  # clients poll the route, then pass
MASTER_BACK_MS = ROUTE_MS + times.HEARTBEAT_MS  # and each client's first heartbeat to it
LOCK_EXPIRY_MARGIN_MS = 1_000
ORDER_LOCK_MS = times.BROKER_LOCK_LIFE_MS + LOCK_EXPIRY_MARGIN_MS  # the lock of a client that died

_TOLD = (events.CONSUMER_JOIN, events.CONSUMER_LEAVE, events.CONSUMER_LOST)
_OWN_PASS = (events.CONSUMER_RESUME, events.UNSUBSCRIBE, events.REQUEST_MODE)
"""No member is notified (of a mode: rocketmq.md §14)."""
_NO_WINDOW = (events.CONSUMER_SUSPEND, events.NOTICES)


def window_ms(
    event: Event, intervals: Intervals = DEFAULT_INTERVALS, notices: str = events.ON
) -> int:
    """Longest time from an event to a client's last pass that answers it, in milliseconds.

    Args:
        event: its type and detail count.
        intervals: the client's.
        notices: how brokers tell members then, one of `NOTICE_MODES`; see `notices_of`.
    """
    soon = intervals.min_interval_ms + PASS_MS
    by_itself = intervals.wait_interval_ms + soon
    expired = event.event_type == events.CONSUMER_LOST and event.detail == EXPIRED
    if expired:
        return times.CHANNEL_SCAN_MS + by_itself
    if event.event_type in _TOLD:
        late = {events.ON: 0, events.BATCHED: times.NOTICE_BATCH_MS}.get(notices)
        return by_itself if late is None else min(by_itself, late + soon) if late else soon
    if event.event_type in _NO_WINDOW:
        return 0
    if event.event_type in _OWN_PASS:
        return by_itself
    # until the route names the slaves alone
    routed = intervals.poll_name_server_interval_ms + by_itself
    back = event.event_type == events.MASTER_UP
    return routed + (intervals.heartbeat_broker_interval_ms if back else 0)


def notices_of(event: Event, brokers: str, *, notified: bool) -> str:
    """Tell how members hear of an event: one of `NOTICE_MODES`.

    The group's switch holds for joins and leaves alone; a channel that closes is told whatever it
    says (rocketmq.md §6.2).

    Args:
        event: a consumer event.
        brokers: the slowest way of the brokers that have queues of the group.
        notified: the group's switch.
    """
    closed = event.event_type == events.CONSUMER_LOST
    return brokers if notified or closed else events.OFF
