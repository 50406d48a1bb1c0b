"""What the result of an attempt says of its broker: the catch blocks of ``sendDefaultImpl``."""

from typing import NamedTuple

from rebalance_core.producers.profile import ProducerProfile
from rebalance_core.producers.sending.answers import (
    CLIENT_EXCEPTION,
    INTERRUPTED_EXCEPTION,
    JavaFailure,
)


class Verdict(NamedTuple):
    """What is reported to the fault table."""

    isolation: bool
    """it counts as the version's isolation latency, whatever it took"""
    reachable: bool


def verdict(failed: JavaFailure | None, profile: ProducerProfile, *, detector: bool) -> Verdict:
    """The verdict of a sync attempt. rocketmq.md §9.2.

    Args:
        failed: Its exception; null: the broker answered with a status.
        profile: Of the client's version.
        detector: startDetectorEnable.
    """
    if failed is None or failed.java_class == INTERRUPTED_EXCEPTION:
        return Verdict(False, True)
    if not profile.filters:
        return Verdict(True, True)
    if failed.is_remoting:
        return Verdict(True, not detector)
    if failed.java_class == CLIENT_EXCEPTION:
        return Verdict(False, True)
    return Verdict(True, False)
