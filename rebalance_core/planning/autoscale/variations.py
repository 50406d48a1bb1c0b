"""Variations of the given policies, for ``rebalance autoscale --search``."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import product

from rebalance_core.planning.autoscale.policy import (
    DOWN_LIMITS,
    FIXED,
    PODS,
    UP_LIMITS,
    Direction,
    Policy,
    StepLimit,
    Target,
)

FACTORS = (0.5, 1.0, 2.0)
"""The factors by which each target varies."""
DOWN_WINDOWS_S = (60, 300, 600)
ONE_A_MINUTE = (StepLimit(PODS, 1, 60),)


def with_variations(policies: Iterable[Policy]) -> tuple[Policy, ...]:
    """Return the policies, each followed by its variations.

    Variations have half, one or two times each target, a scale-down window of 1, 5 or 10 minutes,
    and stop all pods at once or one per minute. A fixed number has no variations. An HPA without a
    ``behavior`` gets one, and with it Kubernetes' default scale-up limits.
    """
    return tuple(each for policy in policies for each in (policy, *_variations(policy)))


def _variations(policy: Policy) -> Iterator[Policy]:
    if policy.kind == FIXED:
        return
    up = policy.up or Direction(limits=UP_LIMITS)
    for factor, window_s, limits in product(FACTORS, DOWN_WINDOWS_S, (DOWN_LIMITS, ONE_A_MINUTE)):
        pace = "all at once" if limits is DOWN_LIMITS else "one a minute"
        yield replace(
            policy,
            name=f"{policy.name}, target x {factor:g}, down after {window_s} s, {pace}",
            lag=_scaled(policy.lag, factor),
            rate=_scaled(policy.rate, factor),
            up=up,
            down=Direction(window_s, limits=limits),
            varies=policy.name,
        )


def _scaled(target: Target | None, factor: float) -> Target | None:
    return None if target is None else Target(target.target * factor)
