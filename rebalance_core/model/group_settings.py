"""Settings of a consumer group, with RocketMQ's defaults, and how it gets a topic's messages:
PULL or POP.
"""

import re
from dataclasses import dataclass
from typing import Literal, get_args

from rebalance_core.model import times
from rebalance_core.model.errors import UsageError
from rebalance_core.model.events import Event
from rebalance_core.model.queue import is_retry_topic

# How consumers that ask the broker get messages of a topic: PULL, or POP (rocketmq.md §2.8, §14).

DEFAULT_SHARE_QUEUE_NUM = -1  # BrokerConfig.defaultPopShareQueueNum
_POP = re.compile(r"POP\(share_queue_num=(-?[0-9]{1,10})\)")
_INT_MIN, _INT_MAX = -(2**31), 2**31 - 1


@dataclass(frozen=True, slots=True)
class RequestMode:
    """Mode of one (group, topic) as ``messageRequestMode.json`` has it.

    Attributes:
        share_queue_num: POP: shares of so many other members are each member's too; from 0 down,
            everything. None: PULL.
    """

    share_queue_num: int | None = None

    @property
    def is_pop(self) -> bool:
        """True for POP, False for PULL."""
        return self.share_queue_num is not None

    def __str__(self) -> str:
        """The text that `parse_request_mode` reads."""
        return f"POP(share_queue_num={self.share_queue_num})" if self.is_pop else "PULL"


PULL_MODE = RequestMode()


def parse_request_mode(text: str) -> RequestMode:
    """``PULL`` or ``POP(share_queue_num=N)``, the detail of a REQUEST_MODE.

    Raises:
        UsageError: neither of them, or N does not fit a Java int.

    >>> str(parse_request_mode("POP(share_queue_num=2)")), parse_request_mode("PULL").is_pop
    ('POP(share_queue_num=2)', False)
    """
    if text == "PULL":
        return PULL_MODE
    match = _POP.fullmatch(text)
    if match is None or not _INT_MIN <= int(match[1]) <= _INT_MAX:
        raise UsageError(f"{text!r} is no request mode; valid: PULL, POP(share_queue_num=N)")
    return RequestMode(int(match[1]))


def can_be_popped(topic: str) -> bool:
    """False for retry topics: they are always pulled, and brokers refuse another mode for them."""
    return not is_retry_topic(topic)


# Settings of a consumer group, with RocketMQ's defaults.

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
"""The enum of that name; the last three are deprecated."""
BROKER_STRATEGIES = ("AVG", "AVG_BY_CIRCLE")  # QueryAssignmentProcessor knows no other


# The language of a client: ``LanguageCode`` as brokers print it, and one that they do not know.

JAVA, CPP, DOTNET, PYTHON, GO, RUST = "JAVA", "CPP", "DOTNET", "PYTHON", "GO", "RUST"
NODE_JS, OTHER_LANGUAGE = "NODE_JS", "OTHER"
LANGUAGE_CODES = (
    JAVA, CPP, DOTNET, PYTHON, "DELPHI", "ERLANG", "RUBY", OTHER_LANGUAGE, "HTTP", GO, "PHP", "OMS",
    RUST, NODE_JS,
)  # fmt: skip
NODE = "NODE"
"""ali-ons, the remoting client for Node.js, of which brokers print JAVA and version 3.4.9."""
LANGUAGES = (*LANGUAGE_CODES, NODE)
"""What columns ``language`` of settings may say."""


@dataclass(frozen=True, slots=True)
class Intervals:
    """How often a client does what its timers do, in ms, named as the columns (rocketmq.md §6.1).

    Attributes:
        wait_interval_ms: ``rocketmq.client.rebalance.waitInterval``: passes of its own.
        min_interval_ms: ``rocketmq.client.rebalance.minInterval`` (5.2+): between two passes.
        poll_name_server_interval_ms: ``ClientConfig.pollNameServerInterval``.
        heartbeat_broker_interval_ms: ``ClientConfig.heartbeatBrokerInterval``.
        persist_consumer_offset_interval_ms: ``ClientConfig.persistConsumerOffsetInterval``.
    """

    wait_interval_ms: int = times.REBALANCE_WAIT_MS
    min_interval_ms: int = times.REBALANCE_MIN_INTERVAL_MS
    poll_name_server_interval_ms: int = times.ROUTE_POLL_MS
    heartbeat_broker_interval_ms: int = times.HEARTBEAT_MS
    persist_consumer_offset_interval_ms: int = times.OFFSET_PERSIST_MS


DEFAULT_INTERVALS = Intervals()
IntervalName = Literal[
    "wait_interval_ms",
    "min_interval_ms",
    "poll_name_server_interval_ms",
    "heartbeat_broker_interval_ms",
    "persist_consumer_offset_interval_ms",
]
INTERVALS: tuple[IntervalName, ...] = get_args(IntervalName)
"""The columns of consumer_groups and of a CONSUMER_JOIN."""
SHORTEST_INTERVAL_MS = 100
"""Of a client's timer; 20 or 30 are seconds."""
LONGEST_INTERVAL_MS = 3_600_000
"""Microseconds of 5 s are more."""


def is_interval(value: int) -> bool:
    """True for what a client's timer may be set to, in ms."""
    return SHORTEST_INTERVAL_MS <= value <= LONGEST_INTERVAL_MS


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
    notified: bool = True
    """False: brokers tell members neither of joins nor of leaves; a closed channel is told."""
    wait_interval_ms: int = DEFAULT_INTERVALS.wait_interval_ms
    min_interval_ms: int = DEFAULT_INTERVALS.min_interval_ms
    poll_name_server_interval_ms: int = DEFAULT_INTERVALS.poll_name_server_interval_ms
    heartbeat_broker_interval_ms: int = DEFAULT_INTERVALS.heartbeat_broker_interval_ms
    persist_consumer_offset_interval_ms: int = DEFAULT_INTERVALS.persist_consumer_offset_interval_ms

    @property
    def intervals(self) -> Intervals:
        """Return the intervals of its clients that state none of their own."""
        return Intervals(*(getattr(self, name) for name in INTERVALS))

    def intervals_of(self, join: Event) -> Intervals:
        """Return the intervals of the client that a CONSUMER_JOIN is about."""
        said = (getattr(join, name) for name in INTERVALS)
        return Intervals(
            *(getattr(self, name) if value is None else value
              for name, value in zip(INTERVALS, said, strict=True))
        )  # fmt: skip
