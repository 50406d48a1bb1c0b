"""Units of time, conversion of times to and from text, and RocketMQ's timers.

Each timer is defined once, with the property and class from which it comes (rocketmq.md §6.1):
first the timers of clients, then those of brokers, proxies, name servers and producers. All are
defaults in milliseconds. Values that add a margin to them are defined where they are used.
"""

import re
from datetime import UTC, date, datetime
from typing import Any, Final

SECOND_MS: Final = 1_000
MINUTE_MS: Final = 60 * SECOND_MS
HOUR_MS: Final = 60 * MINUTE_MS
DAY_MS: Final = 24 * HOUR_MS

YEAR_2000_MS: Final = 946_684_800_000
"""2000-01-01T00:00:00Z, before RocketMQ existed; a current time in seconds would fall in January
1970.
"""
YEAR_2201_MS: Final = 7_289_654_400_000
"""2201-01-01T00:00:00Z. A current time in microseconds would be 50,000 years away."""


def utc_time(time_ms: int) -> datetime | None:
    """Return the time to the second, or None if it is beyond the calendar (a broken clock, a wrong
    unit).
    """
    try:
        return datetime.fromtimestamp(time_ms // SECOND_MS, UTC)
    except (ValueError, OverflowError, OSError):
        return None


def utc(time_ms: int, pattern: str = "%Y-%m-%d %H:%M:%SZ") -> str:
    """Return the time as text, or the number itself if it is beyond the calendar.

    >>> utc(1795231709901)
    '2026-11-21 03:28:29Z'
    """
    moment = utc_time(time_ms)
    return f"{time_ms} ms" if moment is None else moment.strftime(pattern)


UTC_TEXT = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ")
"""What `utc` returns by default."""


def utc_ms(time_ms: int) -> str:
    """Return the time as text with milliseconds.

    >>> utc_ms(1795231709901)
    '2026-11-21 03:28:29.901Z'
    """
    return utc(time_ms, f"%Y-%m-%d %H:%M:%S.{time_ms % SECOND_MS:03}Z")


_UNIT_MS = {"ms": 1, "s": SECOND_MS, "m": MINUTE_MS, "h": HOUR_MS, "d": DAY_MS}
_PART = r"\d{1,18}(?:ms|s|m|h|d)"
_DURATION = re.compile(rf"(?:{_PART})+")
_PARTS = re.compile(r"(\d{1,18})(ms|s|m|h|d)")

MOST_DIGITS = 30
"""The maximum number of digits in a time; Python itself reads at most 4,300."""
DURATION_FORM = 'a duration such as "90s", "5m" or "1h30m"'
INSTANT_FORM = "epoch milliseconds or RFC 3339 such as 2026-11-21T03:30:00Z"


def read_duration(value: Any) -> int:
    """Return a duration in milliseconds; raise ValueError with the valid forms.

    >>> read_duration("1h30m")
    5400000
    """
    text = value.replace(" ", "") if isinstance(value, str) else ""
    if not _DURATION.fullmatch(text):
        raise ValueError(f"expected {DURATION_FORM}")
    return sum(int(number) * _UNIT_MS[unit] for number, unit in _PARTS.findall(text))


def read_instant(value: Any) -> int:
    """Return the epoch milliseconds for a number, its text, an RFC 3339 text or a TOML date-time.

    >>> read_instant("1970-01-01T01:00:00+01:00")
    0
    """
    if isinstance(value, bool) or (isinstance(value, date) and not isinstance(value, datetime)):
        raise ValueError(f"expected {INSTANT_FORM}")
    if isinstance(value, int):
        return _in_ms(value)
    if isinstance(value, str):
        digits = value.strip()
        if digits.isdecimal() and len(digits) <= MOST_DIGITS:
            return _in_ms(int(digits))
        try:
            value = datetime.fromisoformat(value.strip())
        except ValueError:
            raise ValueError(f"expected {INSTANT_FORM}") from None
    if not isinstance(value, datetime):
        raise ValueError(f"expected {INSTANT_FORM}")
    if value.tzinfo is None:
        raise ValueError("the time zone is missing: end it with Z or an offset such as +08:00")
    since = value.astimezone(UTC) - datetime(1970, 1, 1, tzinfo=UTC)
    return (since.days * 86_400 + since.seconds) * 1_000 + since.microseconds // 1_000


def _in_ms(number: int) -> int:
    if YEAR_2000_MS <= number * SECOND_MS < YEAR_2201_MS:
        raise ValueError(f"that is in seconds; expected {INSTANT_FORM}")
    return number


ROUTE_POLL_MS = 30_000
"""ClientConfig.pollNameServerInterval: a client asks for the routes of its topics."""
HEARTBEAT_MS = 30_000
"""ClientConfig.heartbeatBrokerInterval: the period of heartbeats to all brokers a client knows."""
OFFSET_PERSIST_MS = 5_000
"""ClientConfig.persistConsumerOffsetInterval: a client commits its progress."""
FIRST_OFFSET_PERSIST_MS = 10_000
"""MQClientInstance.startScheduledTask: the delay from the client's start to its first
persistAll.
"""
REBALANCE_WAIT_MS = 20_000
"""RebalanceService.waitInterval (rocketmq.client.rebalance.waitInterval): the client's own
passes."""
REBALANCE_MIN_INTERVAL_MS = 1_000
"""RebalanceService.minInterval (5.2+): between two passes, even if a client is woken more often."""
LOCK_RENEWAL_MS = 20_000
"""ProcessQueue.REBALANCE_LOCK_INTERVAL (rocketmq.client.rebalance.lockInterval): lockAll."""
PULL_MAX_IDLE_MS = 120_000
"""ProcessQueue.PULL_MAX_IDLE_TIME: a queue not pulled for this long counts as expired."""
STANDSTILL_MS = PULL_MAX_IDLE_MS
"""A commit that does not advance for this long while messages arrive has stalled: clients commit
every 5 s, and after this time drop a queue that they have not pulled.
"""
REBALANCE_LATER_MS = 500
"""RebalanceImpl.updateProcessQueueTableInRebalance (5.0+): rebalanceLater after a refused lock."""
FIRST_PULL_DELAY_MS = 500
"""The same method (5.0+): delay of the first pull of every queue just added; 4.9 pulls at once."""
UNLOCK_DELAY_MS = 20_000
"""RebalancePushImpl.UNLOCK_DELAY_TIME_MILLS (rocketmq.client.unlockDelayTimeMills).

Until 5.1.4 it delays the unlock while messages are cached; since 5.2 it is the age of the last lock
renewal after which a dropped queue is unlocked by force.
"""

POP_INVISIBLE_MS = 60_000
"""DefaultMQPushConsumer.popInvisibleTime, after which a popped message without acknowledgement is
redelivered.
"""
GRPC_HEARTBEAT_MS = 10_000
"""ClientManagerImpl.HEART_BEAT_PERIOD in rocketmq-clients: a gRPC client's heartbeats to its
proxy.
"""

CHANNEL_SCAN_MS = 10_000
"""ClientHousekeepingService: each broker scans for expired channels independently."""
CHANNEL_EXPIRY_MS = 120_000
"""BrokerConfig.channelExpiredTimeout (a constant in 4.9): after the last heartbeat."""
BROKER_LOCK_LIFE_MS = 60_000
"""RebalanceLockManager (rocketmq.broker.rebalance.lockMaxLiveTime): expiry of an order lock."""
SLAVE_COPY_MS = 63_000
"""BrokerController.handleSlaveSynchronize (5.x): a slave copies its master's offsets.

A tick of 3 s that acts when more than 60 s have passed.
"""
OLD_SLAVE_COPY_MS = 13_000
"""The same in 4.9 and with DLedger, which copy every 10 s (DLedgerRoleChangeHandler)."""
OFFSET_FLUSH_MS = 5_000
"""BrokerConfig.flushConsumerOffsetInterval: consumerOffset.json is up to this old."""
REGISTRATION_MS = 30_000
"""BrokerConfig.registerNameServerPeriod: a broker registers with every name server."""
POP_REVIVE_WAIT_MS = 2_000
"""PopReviveService: PopAckConstants.ackTimeInterval plus one second, after the invisible time."""
REVIVE_ROUND_MS = 2_000
"""Added to `POP_REVIVE_WAIT_MS`: recordings of an overloaded host show 2 to 4 s from the end of the
invisible time to the second delivery (rocketmq.md §14).
"""

NOTICE_BATCH_MS = 15_000
"""DefaultConsumerIdsChangeListener, realTimeNotifyConsumerChange=false (5.x): notices wait."""

PROXY_CHANNEL_EXPIRY_MS = 120_000
"""ProxyConfig.channelExpiredTimeout: after the last heartbeat, checked every CHANNEL_SCAN_MS."""

BROKER_EXPIRY_MS = 120_000
"""RouteInfoManager.DEFAULT_BROKER_CHANNEL_EXPIRED_TIME: after a broker's last registration."""

OLD_LATENCY_MAX_MS = (50, 100, 550, 1_000, 2_000, 3_000, 15_000)
"""MQFaultStrategy.latencyMax up to 5.1.3: thresholds for the latency of a send."""
OLD_NOT_AVAILABLE_MS = (0, 0, 30_000, 60_000, 120_000, 180_000, 600_000)
"""MQFaultStrategy.notAvailableDuration up to 5.1.3: how long the broker is then avoided."""
OLD_ISOLATION_LATENCY_MS = 30_000
"""MQFaultStrategy.updateFaultItem up to 5.1.3: the latency assumed for a failed send."""
PRODUCER_LATENCY_MAX_MS = (50, 100, 550, 1_800, 3_000, 5_000, 15_000)
"""MQFaultStrategy.latencyMax from 5.1.4."""
PRODUCER_NOT_AVAILABLE_MS = (0, 0, 2_000, 5_000, 6_000, 10_000, 30_000)
"""MQFaultStrategy.notAvailableDuration from 5.1.4."""
PRODUCER_ISOLATION_LATENCY_MS = 10_000
"""MQFaultStrategy.updateFaultItem from 5.1.4."""
DETECTOR_ROUND_MS = 3_000
"""LatencyFaultToleranceImpl.startDetector (5.1.4+): probes brokers, if enabled."""
DETECT_INTERVAL_MS = 2_000
"""ClientConfig.detectInterval (5.1.4+): between two probes of the same broker."""
SEND_TIMEOUT_MS = 3_000
"""DefaultMQProducer.sendMsgTimeout: for a send including all its retries."""
SLOW_SEND_MS = 550
"""MQFaultStrategy.latencyMax: the latency from which producers of all versions avoid a broker."""
