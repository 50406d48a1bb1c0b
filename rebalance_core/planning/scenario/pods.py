"""Pods in a deploy: how long they take to start, when they are ready, and how their controller
reacts.
"""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from heapq import heappop, heappush
from statistics import NormalDist
from typing import Any

from rebalance_core.model.times import DURATION_FORM, SECOND_MS, read_duration
from rebalance_core.planning import table_keys
from rebalance_core.planning.table_keys import MOST_CONSUMERS, read_values
from rebalance_core.synthetic.draws import Draws

Amount = int | str
"""A number, or a share of the members as text, such as ``25%``."""
NOTHING: tuple[Amount, ...] = (0, "0%")
_PERCENT = re.compile(r"(\d{1,3})%")


def amount(value: Any) -> Amount:
    """Return a number of members, or a percentage as text."""
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST_CONSUMERS:
        return value
    percent = _PERCENT.fullmatch(value) if isinstance(value, str) else None
    if percent is None or int(percent[1]) > 100:
        raise ValueError(f'expected a whole number from 0 to {MOST_CONSUMERS:,} or "0%" to "100%"')
    return f"{int(percent[1])}%"


def at_once(surge: Amount, unavailable: Amount, members: int) -> tuple[int, int]:
    """Return how many of `members` members may be surplus and how many may be missing.

    Percentages for surge are rounded up, those for unavailable down; if both are 0, one member may
    be missing (``ResolveFenceposts`` in Kubernetes).

    >>> at_once("25%", "25%", 10), at_once(0, "5%", 10)
    ((3, 2), (0, 1))
    """

    def resolved(value: Amount, rounded: Callable[[float], int]) -> int:
        if isinstance(value, int):
            return value
        return rounded(int(value.removesuffix("%")) * members / 100)

    more, fewer = resolved(surge, math.ceil), resolved(unavailable, math.floor)
    return more, min(fewer, members) if more or fewer else 1


DEFAULT_SIGMA = 0.25
"""With this standard deviation of the logarithm, starts with a median of 15 s take 10 to 25 s."""
_STANDARD = NormalDist()


@dataclass(frozen=True, slots=True)
class Start:
    """The time from a pod's creation to its join: log-normal, drawn for each pod.

    Attributes:
        median_ms: the time that half of the pods exceed.
        spread_ms: the time by which one pod in six exceeds the median; None: not stated.
    """

    median_ms: int = table_keys.needed(read_duration)
    spread_ms: int | None = table_keys.key(read_duration)

    @property
    def stated_spread_ms(self) -> int:
        """The spread; by default, that of `DEFAULT_SIGMA`."""
        if self.spread_ms is not None:
            return self.spread_ms
        return round(self.median_ms * math.expm1(DEFAULT_SIGMA))

    def drawn_ms(self, draws: Draws | None) -> int:
        """Return how long the next pod takes; without draws, the median."""
        if draws is None or not self.median_ms or not self.stated_spread_ms:
            return self.median_ms
        sigma = math.log1p(self.stated_spread_ms / self.median_ms)
        # never 0 or 1, where the inverse normal distribution is undefined
        deviation = _STANDARD.inv_cdf((draws.between(0, 2**30 - 1) + 0.5) / 2**30)
        return round(self.median_ms * math.exp(sigma * deviation))


_START_KEYS = {
    "median": Start.__dataclass_fields__["median_ms"].metadata["key"],
    "spread": Start.__dataclass_fields__["spread_ms"].metadata["key"],
}
START_FORM = '{median = "15s", spread = "3s"}'


def read_start(value: Any) -> Start:
    """Read ``start``."""
    if not isinstance(value, Mapping):
        raise ValueError(f"expected a table such as {START_FORM}")
    values, wrong = read_values(value, _START_KEYS, " of start")
    if wrong:
        raise ValueError("; ".join(text for _, text in wrong))
    if "median" not in values:
        raise ValueError(f"median is missing; expected a table such as {START_FORM}")
    start = Start(values["median"], values.get("spread"))
    if not start.median_ms and start.spread_ms:
        raise ValueError("a spread requires a median greater than 0")
    return start


GRACE_MS = 30_000
"""Kubernetes' default ``terminationGracePeriodSeconds``."""


@dataclass(frozen=True, slots=True)
class Stop:
    """How a pod ends.

    Attributes:
        pre_stop_ms: how long its preStop hook takes, after which it gets SIGTERM.
        grace_ms: the time after which it gets SIGKILL.
        graceful: whether it calls ``shutdown()`` on SIGTERM.
        suspend_ms: how long the hook then suspends the consumer.
    """

    pre_stop_ms: int = 0
    grace_ms: int = GRACE_MS
    graceful: bool = True
    suspend_ms: int = 0

    @property
    def killed(self) -> bool:
        """Whether it ends before it unregisters."""
        return not self.graceful or bool(self._hook_ms and self._hook_ms >= self.grace_ms)

    @property
    def killed_in_hook(self) -> str | None:
        """Why a pod that would unregister is killed, or None if it is not."""
        if not (self.graceful and self.killed):
            return None
        hook = "pre_stop and suspend" if self.suspend_ms else "pre_stop"
        return (
            f"{hook} of {self._hook_ms / SECOND_MS:.10g} s is not over when the grace period of "
            f"{self.grace_ms / SECOND_MS:.10g} s ends, so every pod is killed before it unregisters"
        )

    @property
    def end_ms(self) -> int:
        """How long it remains after the decision to stop it."""
        return min(self._hook_ms, self.grace_ms)

    @property
    def suspended_ms(self) -> int:
        """How long it is suspended before it ends."""
        return max(0, self.end_ms - self.pre_stop_ms)

    @property
    def _hook_ms(self) -> int:
        return self.pre_stop_ms + self.suspend_ms


JOIN, CONTAINER = "join", "container"
CONTAINER_MS = 1_000
"""The time from a pod's creation until its container runs, which counts as Ready without a
readinessProbe.
"""
READY_FORM = f'"{JOIN}", "{CONTAINER}", or {DURATION_FORM} after the join, "-5s" before it'

Ready = int | str
"""`CONTAINER`, or ms after the join; negative before it."""


def read_ready(value: Any) -> Ready:
    """Read ``ready``; ``join`` is 0 ms after the join.

    >>> read_ready("join"), read_ready("-5s"), read_ready("container")
    (0, -5000, 'container')
    """
    if value == JOIN:
        return 0
    if value == CONTAINER:
        return CONTAINER
    text = value.strip() if isinstance(value, str) else ""
    try:
        distance_ms = read_duration(text.removeprefix("-").removeprefix("+"))
    except ValueError:
        raise ValueError(f"expected {READY_FORM}") from None
    return -distance_ms if text.startswith("-") else distance_ms


@dataclass(frozen=True, slots=True)
class Turn:
    """The times at which a member is replaced, in ms after the start of the deploy.

    Attributes:
        begin_ms: when its successor's pod is created and, unless it stays, the member stops.
        join_ms: when the successor joins.
        stays_ms: how long the member stays after its successor joins; negative: it stops that long
            before; None: it does not stay.
    """

    begin_ms: int
    join_ms: int
    stays_ms: int | None = None

    @property
    def stop_ms(self) -> int:
        """Return when the member stops."""
        return self.begin_ms if self.stays_ms is None else self.join_ms + self.stays_ms

    @property
    def joins_first(self) -> bool:
        """Return True if the successor joins before the member stops."""
        return self.stays_ms is not None and self.stays_ms >= 0


@dataclass(frozen=True, slots=True)
class Pace:
    """The pace of a deploy, which a controller sets by reacting to each pod.

    It stops ``unavailable`` members and creates the same number of pods plus ``surge``. For each
    pod that becomes available, it stops a member and creates a pod, as the Deployment controller
    does; a pause delays the creation and, if no surge replaces the member, also the stop. A pod is
    available when it has been ready for ``min_ready_ms``.
    """

    surge: int
    unavailable: int
    down_ms: int
    ready: Ready = 0
    pause_ms: int = 0
    spread_ms: int = 0
    min_ready_ms: int = 0
    end_ms: int = 0
    """How long a stopped member remains."""
    in_place: bool = False
    """Whether a pod is created only after a member has ended, as in a StatefulSet."""

    def turns(self, members: int, draws: Draws | None = None) -> tuple[Turn, ...]:
        """Return the turn of each member, in order.

        Args:
            members: the number of members.
            draws: the draws for the starts; None: all pods take ``down_ms``.
        """
        start = Start(self.down_ms, self.spread_ms)
        later_ms = self.end_ms if self.in_place else 0
        available: list[int] = []
        pods: list[tuple[int, int]] = []
        """When each pod joins, and when it was created."""

        def create(at_ms: int) -> None:
            if len(pods) < members:
                join_ms = at_ms + start.drawn_ms(draws)
                pods.append((join_ms, at_ms))
                ready_ms = (
                    at_ms + CONTAINER_MS
                    if isinstance(self.ready, str)
                    else (max(at_ms, join_ms + self.ready))
                )
                heappush(available, ready_ms + self.min_ready_ms)

        stops = [0] * self.unavailable
        for _ in range(self.surge + self.unavailable):
            create(later_ms)
        place = 0
        while available:
            at_ms = heappop(available)
            replaced = place % (self.surge + self.unavailable) < self.surge
            stop_ms = at_ms if replaced else at_ms + self.pause_ms
            stops.append(stop_ms)
            create(at_ms + self.pause_ms + later_ms)
            place += 1
        return tuple(
            self._turn(stop_ms + self.end_ms, *pod)
            for stop_ms, pod in zip(sorted(stops)[:members], sorted(pods), strict=True)
        )

    @staticmethod
    def _turn(stop_ms: int, join_ms: int, created_ms: int) -> Turn:
        if stop_ms <= created_ms:
            return Turn(stop_ms, join_ms)
        return Turn(created_ms, join_ms, stop_ms - join_ms)
