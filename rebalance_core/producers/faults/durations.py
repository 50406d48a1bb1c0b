"""How long a broker is avoided after a latency (``MQFaultStrategy``)."""

from bisect import bisect_right

from rebalance_core.producers.profile import ProducerProfile


def latency_level(latency_ms: int, profile: ProducerProfile) -> int:
    """How many entries of latencyMax the latency reaches: 0 is faster than all."""
    return bisect_right(profile.latency_max_ms, latency_ms)


def not_available_ms(latency_ms: int, profile: ProducerProfile) -> int:
    """``computeNotAvailableDuration``: ms for which a broker of this latency is avoided.

    >>> from rebalance_core.model.versions import parse_version
    >>> from rebalance_core.producers.profile import profile_of
    >>> [not_available_ms(600, profile_of(parse_version(v))) for v in ("4.9.7", "5.3.3")]
    [30000, 2000]
    """
    level = latency_level(latency_ms, profile)
    return profile.not_available_ms[level - 1] if level else 0


def isolation_ms(latency_ms: int, isolation: bool, profile: ProducerProfile) -> int:
    """The same for a reported result: a failure counts as the version's isolation latency."""
    return not_available_ms(profile.isolation_latency_ms if isolation else latency_ms, profile)
