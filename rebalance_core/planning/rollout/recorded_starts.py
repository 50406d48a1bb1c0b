"""Start times of pods, estimated from the joins in a group's last deploys."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import median, stdev

from rebalance_core.model import events
from rebalance_core.model.events import OBSERVED, Event
from rebalance_core.model.times import MINUTE_MS
from rebalance_core.planning.rollout.search import Search
from rebalance_core.planning.scenario.member_edits import DOWN_MS
from rebalance_core.planning.scenario.pods import Start

DEPLOY_PAUSE_MS = 10 * MINUTE_MS
"""A deploy is over when no member has joined or stopped for this long, after which Kubernetes
considers a deploy failed (``progressDeadlineSeconds``)."""
LAST_DEPLOYS = 3
FEWEST_STARTS = 3
"""With fewer starts than this, no spread is estimated."""


def recorded_starts(recorded: Iterable[Event]) -> tuple[int, ...]:
    """Return how long pods took to join, in ms, in the last deploys of a group.

    A deploy replaces every member. Its controller creates a pod whenever it stops another, in
    addition to surge pods. For the first surge pods the tables have no time: they are left out
    unless a member stopped at the same time. Since pods are matched in the order of their joins,
    the true starts are spread at least as widely as the result.

    Args:
        recorded: the group's events, in any order.
    """
    found: list[Sequence[int]] = []
    present: set[tuple[str | None, str | None]] = set()
    deploy: list[tuple[int, int]] = []
    before = 0
    for event in sorted(recorded, key=lambda event: (event.event_ms, event.sequence)):
        key = event.client_id, event.channel_id
        joins = event.event_type == events.CONSUMER_JOIN and key not in present
        ends = event.event_type in (events.CONSUMER_LEAVE, events.CONSUMER_LOST) and key in present
        if not (joins or ends) or event.broker_name is not None:
            continue
        if deploy and event.event_ms - deploy[-1][0] > DEPLOY_PAUSE_MS:
            found.append(_starts(deploy, before))
            deploy = []
        if not deploy:
            before = len(present)
        present ^= {key}
        if event.detail != OBSERVED:
            deploy.append((event.event_ms, 1 if joins else -1))
    found.append(_starts(deploy, before))
    last = [starts for starts in found if starts][-LAST_DEPLOYS:]
    return tuple(ms for starts in last for ms in starts)


def _starts(deploy: Sequence[tuple[int, int]], members: int) -> Sequence[int]:
    """Return the starts in a deploy of this many members; none if it did not replace all of
    them.
    """
    stops = [at_ms for at_ms, change in deploy if change < 0]
    joins = [at_ms for at_ms, change in deploy if change > 0]
    if not members or len(stops) != members or len(joins) != members:
        return ()
    surplus = most = fewest = 0
    # a pod joins and, at the same time, another stops for it
    for _, change in sorted(deploy, key=lambda at: (at[0], -at[1])):
        surplus += change
        most, fewest = max(most, surplus), min(fewest, surplus)
    untimed = 0 if fewest < 0 else most
    starts = (joins[n] - stops[max(n - most, 0)] for n in range(untimed, members))
    return [ms for ms in starts if ms > 0]


@dataclass(frozen=True, slots=True)
class StartBasis:
    """The pods' start times that a search assumes, and their basis in words."""

    start: Start
    words: str

    def of(self, search: Search) -> Search:
        """Return the search with this start."""
        return replace(search, start=self.start, down=None)


def start_basis(search: Search, starts: Sequence[int]) -> StartBasis:
    """Return the start in the search file or, failing that, from the recorded deploys or by
    default.

    Args:
        search: the request.
        starts: the starts of the deployed groups, as `recorded_starts` returns them.
    """
    stated = search.start
    if stated is not None and stated.spread_ms is not None:
        return StartBasis(stated, "start, as [plans] states it")
    median_ms = search.down if stated is None else stated.median_ms
    if len(starts) >= FEWEST_STARTS:
        sigma = stdev(map(math.log, starts))
        middle_ms = round(median(starts)) if median_ms is None else median_ms
        start = Start(middle_ms, round(middle_ms * math.expm1(sigma)))
        what = "the spread" if median_ms is not None else "the start"
        return StartBasis(
            start, f"{what} of {len(starts)} pods in the last deploys of these groups"
        )
    start = Start(DOWN_MS if median_ms is None else median_ms)
    start = replace(start, spread_ms=start.stated_spread_ms)
    return StartBasis(start, "a default: the tables record no deploy, and [plans] has no start")
