"""Differences between producer versions, and how long each avoids a broker.

Upstream: ``MQFaultStrategy`` (rocketmq.md §9).
"""

from bisect import bisect_right
from dataclasses import dataclass

from rebalance_core.model import times
from rebalance_core.model.versions import Version

# ResponseCode: SYSTEM_ERROR, SERVICE_NOT_AVAILABLE, NO_PERMISSION, TOPIC_NOT_EXIST, NO_BUYER_ID,
# NOT_IN_CURRENT_UNIT
RETRY_CODES = frozenset({1, 14, 16, 17, 204, 205})
SYSTEM_BUSY = 2
GO_AWAY = 1500


@dataclass(frozen=True, slots=True)
class ProducerProfile:
    """The rules of one version; created by `profile_of`."""

    latency_max_ms: tuple[int, ...]
    not_available_ms: tuple[int, ...]
    isolation_latency_ms: int
    """the latency as which a failure counts"""
    filters: bool
    """5.1.4+: filters, reachability, a detector, isolation only extended"""
    scan_avoids_last: bool
    """5.1.1 to 5.1.3: the scan for available brokers skips the last broker"""
    scan_wraps: bool
    """up to 5.0.0: the scan continues past the largest int; from 5.1.0 on, it fails there"""
    rewrites_list: bool
    """the picked broker is written into the publish list; 4.9.8 creates a separate queue"""
    pick_needs_write: bool
    """4.9.8: pickOneAtLeast's broker needs the WRITE bit in the route"""
    raw_seed: bool
    masked_counter: bool
    retry_codes: frozenset[int]
    caps_attempts: bool
    """5.3.3: sendMsgMaxTimeoutPerRequest"""


def profile_of(version: Version) -> ProducerProfile:
    """Return the rules of a version."""
    filters = version >= (5, 1, 4)
    codes = RETRY_CODES
    codes |= {SYSTEM_BUSY} if version >= (5, 3, 0) else set()
    codes |= {GO_AWAY} if version >= (5, 3, 1) else set()
    return ProducerProfile(
        latency_max_ms=times.PRODUCER_LATENCY_MAX_MS if filters else times.OLD_LATENCY_MAX_MS,
        not_available_ms=times.PRODUCER_NOT_AVAILABLE_MS if filters else times.OLD_NOT_AVAILABLE_MS,
        isolation_latency_ms=times.PRODUCER_ISOLATION_LATENCY_MS
        if filters
        else times.OLD_ISOLATION_LATENCY_MS,
        filters=filters,
        scan_avoids_last=version >= (5, 1, 1) and not filters,
        scan_wraps=version < (5, 1, 0),
        rewrites_list=not filters and version != (4, 9, 8),
        pick_needs_write=version == (4, 9, 8),
        raw_seed=version >= (5, 0, 0),
        masked_counter=version >= (4, 9, 4),
        retry_codes=codes,
        caps_attempts=version >= (5, 3, 3),
    )


def latency_level(latency_ms: int, profile: ProducerProfile) -> int:
    """Return the number of entries of latencyMax that the latency reaches; 0 means faster than
    all.
    """
    return bisect_right(profile.latency_max_ms, latency_ms)


def not_available_ms(latency_ms: int, profile: ProducerProfile) -> int:
    """Return ``computeNotAvailableDuration``: the ms for which a broker with this latency is
    avoided.

    >>> from rebalance_core.model.versions import parse_version
    >>> [not_available_ms(600, profile_of(parse_version(v))) for v in ("4.9.7", "5.3.3")]
    [30000, 2000]
    """
    level = latency_level(latency_ms, profile)
    return profile.not_available_ms[level - 1] if level else 0


def isolation_ms(latency_ms: int, isolation: bool, profile: ProducerProfile) -> int:
    """Return `not_available_ms` for a reported result; a failure counts as the isolation
    latency.
    """
    return not_available_ms(profile.isolation_latency_ms if isolation else latency_ms, profile)
