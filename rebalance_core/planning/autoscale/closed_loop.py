"""The closed loop of a scaler's decisions, the joins and leaves that follow, the resulting lag, and
the next decision.

All policies and futures of a group advance together, with one lane for each pair. Lag is modelled
as a fluid, in steps of a second. Lanes at rest whose members keep up need no such steps, because no
message waits. In futures with the same seed, every policy gets the same pods and timers.

The fluid does not resolve what happens within a second, such as single messages and pull requests.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import pairwise
from math import gcd
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rebalance_core.kernels.segments import Bools, Ints
from rebalance_core.planning.autoscale.arrivals import Rates
from rebalance_core.planning.autoscale.commits import age_behind_s, age_of_commit_s
from rebalance_core.planning.autoscale.hpa import Floats, HorizontalPodAutoscaler, Reading
from rebalance_core.planning.autoscale.keda import KedaScaler
from rebalance_core.planning.autoscale.policy import (
    FIXED,
    HPA,
    KEDA,
    RECORDED,
    Policy,
    Seen,
    Target,
)
from rebalance_core.planning.autoscale.service_time import Uncommitted
from rebalance_core.planning.autoscale.transitions import (
    VARIANTS,
    Change,
    Transition,
    Transitions,
)
from rebalance_core.planning.rollout.futures import DeployedGroup, draw_of
from rebalance_core.planning.scenario.pods import Start, Stop
from rebalance_core.timing.options import ClockOptions

BLOCK_S = 15
"""Maximum number of seconds that are simulated at once."""
MOST_KEPT = 64
"""Number of cached results of `_arrived`; policies rarely need more periods at a time."""
BINS_AN_OCTAVE = 32
"""The resolution of the lag histogram; with it, a percentile is at most 2.2 % too large."""
BINS = 40 * BINS_AN_OCTAVE
_SOME = 1e-6
"""A backlog below this is a rounding error."""
_UNKNOWN = -2
"""Neither a member nor `NO_MEMBER`."""
CLEARED = 1e-3
"""A queue with fewer waiting messages counts as read."""


@dataclass(frozen=True, slots=True)
class Reader:
    """The capabilities of a member.

    Attributes:
        capacity: messages per second that all its threads process.
        of_queue: messages per second of a single queue; inf, or a thread's rate with an orderly
            listener.
        work_s: seconds that a thread takes per message.
        cache: the number of messages from a queue that it caches before it stops pulling (flow
            control).
        uncommitted: the number of messages from a queue that it has read but cannot commit yet.
    """

    capacity: float
    of_queue: float
    work_s: float
    cache: int
    uncommitted: Uncommitted = Uncommitted(0.0)  # noqa: RUF009  # a value


@dataclass(frozen=True, slots=True)
class Question:
    """The measurements that a replay makes.

    Attributes:
        seeds: numbers of the futures.
        promise_s: a message that waits longer is late.
        series_seeds: the number of futures with series.
        series_s: the number of seconds between points of a series.
    """

    seeds: range
    promise_s: int = 30
    series_seeds: int = 1
    series_s: int = 60


@dataclass(frozen=True, slots=True)
class ScalingStep:
    """A decision that changes the replicas; ``at_s`` is after the start of the rates."""

    policy: int
    seed: int
    at_s: int
    before: int
    after: int
    lag: float | None
    rate: float | None


@dataclass(frozen=True, slots=True)
class Point:
    """A moment of a future."""

    policy: int
    seed: int
    at_s: int
    lag: float
    replicas: int
    members: int
    rate: float
    no_owner: float


@dataclass(frozen=True, eq=False)
class Replayed:
    """The results of the policies for a group: (policies, seeds) arrays, and lists.

    Attributes:
        figures: the sums and extremes of each future, by name.
        steps: the steps, in chronological order.
        points: the points, in chronological order.
        played: the number of transitions that simulated clients played.
    """

    figures: dict[str, Floats]
    steps: list[ScalingStep]
    points: list[Point]
    played: int


FIGURES = (
    "pod_hours",
    "steps",
    "reversals",
    "moves",
    "no_owner_queue_seconds",
    "read_again",
    "pulled_again",
    "lag_mean",
    "lag_p50",
    "lag_p99",
    "lag_max",
    "longest_wait_s",
    "late_queue_seconds",
    "late_messages",
)


def replay(
    group: DeployedGroup,
    policies: Sequence[Policy],
    rates: Rates,
    reader: Reader,
    question: Question,
) -> Replayed:
    """Let every policy scale a group in every future.

    Cost: linear in the seconds in which a lane changes or lags, plus about 10 ms for each new step.
    """
    return _Loop(group, policies, rates, reader, question).run()


@dataclass
class _Lane:
    """The position of a future between two numbers of members at rest.

    Attributes:
        transitions: the transitions for its draw.
        places: the positions of its seed's plays in a transition, by variant.
        members: the number of members at rest, or before the first change.
        begun: the number of times it has left rest.
        origin_s: when it last left rest.
        changes: the changes since it last left rest.
        transition: the transition that the changes cause; None at rest.
    """

    transitions: Transitions
    places: tuple[int, ...]
    members: int
    begun: int = 0
    origin_s: int = 0
    changes: tuple[Change, ...] = ()
    transition: Transition | None = None

    def change(self, at_s: int, by: int) -> None:
        """Add a change of the replicas."""
        self.rest(at_s)
        if self.transition is None:
            self.origin_s, self.changes = at_s, ()
            self.begun += 1
        self.changes = (*self.changes, (at_s - self.origin_s, by))
        self.transition = self.transitions.made(self.members, self.changes)

    @property
    def place(self) -> int:
        """The index of the play that the lane follows."""
        return self.places[self.begun % len(self.places)]

    def rest(self, at_s: int) -> None:
        """Return to rest if the transition is over."""
        if (
            self.transition is not None
            and at_s - self.origin_s >= self.transition.over_s[self.place]
        ):
            self.members, self.transition = self.transition.members, None


@dataclass(eq=False)
class _Deciders:
    """Policies that decide at the same times.

    Attributes:
        numbers: their indices among the policies.
        lanes: their futures, policy by policy.
        scaler: the scaler that decides; None: a function or a record decides.
        seconds: when the values that the policies saw last were sampled; None: they saw none.
        readings: what they then saw, by metric.
        lag: (policies,) arrays of the lag by future; None: no value.
        rate: the same for rates.
    """

    numbers: list[int]
    lanes: Ints
    scaler: HorizontalPodAutoscaler | KedaScaler | None
    seconds: tuple[int | None, ...] = ()
    readings: list[Reading] = field(default_factory=list)
    lag: list[Floats | None] = field(default_factory=list)
    rate: list[float | None] = field(default_factory=list)


class _Loop:
    def __init__(
        self,
        group: DeployedGroup,
        policies: Sequence[Policy],
        rates: Rates,
        reader: Reader,
        question: Question,
    ) -> None:
        self.policies, self.rates, self.reader, self.question = policies, rates, reader, question
        self.seeds = len(question.seeds)
        lanes = self.lanes = len(policies) * self.seeds
        self.known: dict[tuple[Start, Stop, int], Transitions] = {}
        clock = ClockOptions(exact_times=True, handler_ms=max(1, round(reader.work_s * 1_000)))
        self.at: list[_Lane] = []
        for policy in policies:
            for seed in question.seeds:
                self.at.append(self._lane(group, policy, seed, clock))
        self.queues = len(self.at[0].transitions.queues)
        self.replicas = np.repeat([policy.begin for policy in policies], self.seeds)
        self.members = self.replicas.copy()
        self.every = np.arange(lanes)
        self.busy = np.zeros(lanes, np.bool_)
        """Which lanes have unfinished changes."""
        self.backlog = np.zeros((lanes, self.queues))
        self.pace = np.zeros((lanes, self.queues))
        """The messages per second that each queue's last owner read, in lanes that lag or
        change.
        """
        self.owner = np.full((lanes, self.queues), _UNKNOWN)
        """The member that last read each queue, in lanes that lag or change."""
        self.ahead = np.zeros((lanes, self.queues))
        """The messages that were cached when it took the queue and that it has not yet read."""
        self.deciders = self._deciders()
        self.sizes = [np.array(policy.sizes, np.int64) for policy in policies]
        periods = [policy.sync_s for policy in policies if policy.kind != FIXED]
        periods += [policy.keda.polling_s for policy in policies if policy.keda is not None]
        self.block_s = reduce(gcd, periods, BLOCK_S)
        ages = [p.metrics.scrape_s + p.metrics.delay_s for p in policies]
        self.ring_s = max(ages) + 2 * BLOCK_S
        self.ring = np.zeros((self.ring_s, lanes))
        """Lag by second modulo its length."""
        self.quiet_s = self.ring_s
        """The number of seconds for which no lane has had any lag."""
        self.calm_s = np.zeros(lanes, np.int64)
        """The number of seconds that were not stepped through."""
        self.copied = self._copied()
        self.sums = {name: np.zeros(lanes) for name in FIGURES}
        self.histogram = np.zeros((lanes, BINS), np.int64)
        self.direction = np.zeros(lanes, np.int64)
        self.steps: list[ScalingStep] = []
        self.points: list[Point] = []
        self.pieces = (-1, -1)
        self.fitting = np.zeros(0, np.int8)
        """By number of members, whether they keep up during these pieces of the rates; -1:
        unknown.
        """
        self.fits: Bools | None = None
        """The lanes whose members keep up; None: their members have changed."""
        self.come: dict[tuple[float, float], Floats] = {}
        """The arrivals in each queue, cached by period."""
        self.worked_on: dict[int, float] = {}
        """Messages that cannot be committed yet, by the second at which a scaler sees them."""
        self.no_owner = np.zeros(lanes)
        """Queues without an owner in the last second."""

    def _lane(self, group: DeployedGroup, policy: Policy, seed: int, clock: ClockOptions) -> _Lane:
        draw = draw_of(seed)
        key = policy.start, policy.stop, draw
        same = [s for s in self.question.seeds if draw_of(s) == draw]
        if key not in self.known:
            plays = np.array([s * VARIANTS + v for s in same for v in range(VARIANTS)], np.int64)
            self.known[key] = Transitions(group, policy.start, draw, plays, clock, stop=policy.stop)
        first = same.index(seed) * VARIANTS
        places = tuple(range(first, first + VARIANTS))
        return _Lane(self.known[key], places, policy.begin)

    def _deciders(self) -> list[_Deciders]:
        """Return the policies that decide: HPAs grouped by sync period, all others separately."""
        together: dict[tuple[str, int], list[int]] = {}
        for number, policy in enumerate(self.policies):
            key = ("", policy.sync_s) if policy.kind == HPA else (policy.kind, -number)
            if policy.kind != FIXED:
                together.setdefault(key, []).append(number)
        deciders = []
        for numbers in together.values():
            policies = [self.policies[number] for number in numbers]
            scaler: HorizontalPodAutoscaler | KedaScaler | None = None
            if policies[0].kind == KEDA:
                scaler = KedaScaler(policies[0], self.seeds)
            elif policies[0].kind == HPA:
                scaler = HorizontalPodAutoscaler(policies, self.seeds)
            lanes = np.concatenate([np.arange(self.seeds) + n * self.seeds for n in numbers])
            deciders.append(_Deciders(numbers, lanes, scaler))
        return deciders

    def _copied(self) -> Ints:
        """Return (lanes,) the lane that each equals: futures with a fixed number of members differ
        only in the draw of addresses.
        """
        copied = np.arange(len(self.at))
        for number, policy in enumerate(self.policies):
            first: dict[int, int] = {}
            for place, seed in enumerate(self.question.seeds):
                lane = number * self.seeds + place
                if policy.kind == FIXED:
                    copied[lane] = first.setdefault(draw_of(seed), lane)
        return copied

    def run(self) -> Replayed:
        seconds = self.rates.seconds
        blocks = range(0, seconds, self.block_s)
        recorded = (at_s for policy in self.policies for at_s, _ in policy.changes)
        edges = {*blocks, *(at_s for at_s in recorded if at_s < seconds), seconds}
        for begin_s, end_s in pairwise(sorted(edges)):
            if begin_s:
                self._decide(begin_s)
            self._advance(begin_s, end_s)
            if begin_s in blocks and begin_s % self.question.series_s < self.block_s:
                self._note(begin_s)
        return Replayed(self._figures(), self.steps, self.points, self._played())

    def _played(self) -> int:
        return sum(each.played for each in self.known.values())

    def _decide(self, at_s: int) -> None:
        """Let the policies that are due decide."""
        decisions = list[tuple[int, int, list[float | None]]]()
        for each in self.deciders:
            policy = self.policies[each.numbers[0]]
            polls = policy.keda is not None and at_s % policy.keda.polling_s == 0
            if policy.kind == RECORDED or at_s % policy.sync_s == 0 or polls:
                decisions += self._decided(each, at_s)
        for lane, after, values in sorted(decisions, key=lambda decision: decision[0]):
            self._scale(lane, at_s, after, values)

    def _decided(self, of: _Deciders, at_s: int) -> Iterator[tuple[int, int, list[float | None]]]:
        """Yield the lanes whose replicas change, the new replicas, and the lag and rate that were
        seen.
        """
        current, policy = self.replicas[of.lanes], self.policies[of.numbers[0]]
        if policy.kind == RECORDED:
            of.lag, of.rate = [None], [None]
        else:
            self._look(of, at_s)
        if policy.kind == RECORDED:
            decided = np.full_like(current, policy.recorded(at_s))
        elif of.scaler is None:
            decided = self._asked(of, at_s)
        else:
            decided = of.scaler.decide(at_s, current, of.readings)
        if decided is current or np.array_equal(decided, current):
            return
        for place, number in enumerate(of.numbers):
            sizes, part = self.sizes[number], slice(place * self.seeds, (place + 1) * self.seeds)
            if len(sizes):
                wanted = decided[part]
                larger = np.minimum(np.searchsorted(sizes, wanted), len(sizes) - 1)
                moved = (wanted != current[part]) & (wanted > 0)
                decided[part] = np.where(moved, sizes[larger], wanted)
        for at in np.flatnonzero(decided != current).tolist():
            yield int(of.lanes[at]), int(decided[at]), self._saw(of, at)

    def _saw(self, of: _Deciders, at: int) -> list[float | None]:
        """Return the lag and rate that a decider saw in one of its lanes."""
        lag, rate = of.lag[at // self.seeds], of.rate[at // self.seeds]
        return [None if lag is None else float(lag[at % self.seeds]), rate]

    def _asked(self, of: _Deciders, at_s: int) -> Ints:
        """Return the replicas that a user's function requests."""
        policy = self.policies[of.numbers[0]]
        assert policy.decide is not None
        asked = [
            int(policy.decide(Seen(at_s, int(self.replicas[lane]), *self._saw(of, at))))
            for at, lane in enumerate(of.lanes.tolist())
        ]
        return np.clip(np.array(asked, np.int64), policy.least, policy.most)

    def _look(self, of: _Deciders, at_s: int) -> None:
        """Read lag and rate with the delay at which the scalers see them."""
        policies = [self.policies[number] for number in of.numbers]
        seconds = tuple(policy.metrics.sampled_s(at_s) for policy in policies)
        if seconds == of.seconds:
            return
        of.seconds, of.lag, of.rate = seconds, [], []
        for number, policy, second in zip(of.numbers, policies, seconds, strict=True):
            lag = rate = None
            if second is not None:
                lanes = slice(number * self.seeds, (number + 1) * self.seeds)
                lag = self.ring[second % self.ring_s, lanes] + self._worked_on(second)
                window_s = min(policy.metrics.rate_window_s, second)
                if policy.rate is not None and window_s:
                    rate = float(self._arrived(second - window_s, second).sum()) / window_s
            of.lag.append(lag)
            of.rate.append(rate)
        rates = [None if rate is None else np.full(self.seeds, rate) for rate in of.rate]
        metrics = (([p.lag for p in policies], of.lag), ([p.rate for p in policies], rates))
        of.readings = [
            self._reading(targets, values)
            for targets, values in metrics
            if any(target is not None for target in targets)
        ]

    def _reading(
        self, targets: Sequence[Target | None], values: Sequence[Floats | None]
    ) -> Reading:
        """Return the readings of a metric for the policies that have a target for it."""
        if all(value is None for value in values):
            return Reading(None, 1.0, self._lanes([t is not None for t in targets]))
        used = [target is not None for target in targets]
        failed = [value is None for value in values]
        return Reading(
            np.concatenate([np.zeros(self.seeds) if v is None else v for v in values]),
            self._lanes([1.0 if target is None else target.target for target in targets]),
            None if all(used) else self._lanes(used),
            self._lanes(failed) if any(failed) else None,
        )

    def _lanes(self, values: Sequence[float]) -> NDArray[Any]:
        return np.repeat(np.array(values), self.seeds)

    def _worked_on(self, second: int) -> float:
        """Return the messages that cannot be committed yet."""
        if second not in self.worked_on:
            come = self._arrived(second - 1, second)
            messages = self.reader.uncommitted.messages(come * self.reader.work_s)
            messages = messages + come * age_of_commit_s(come)
            self.worked_on = {second: float(messages.sum())}
        return self.worked_on[second]

    def _arrived(self, since_s: float, until_s: float) -> Floats:
        """Return (queues,) the messages that arrive within a period, which several policies
        request.
        """
        key = since_s, until_s
        if key not in self.come:
            if len(self.come) > MOST_KEPT:
                self.come.clear()
            come = self.rates.arrived(np.array(key, np.float64))
            self.come[key] = come[1] - come[0]
        return self.come[key]

    def _scale(self, lane: int, at_s: int, after: int, values: list[float | None]) -> None:
        policy, place = divmod(lane, self.seeds)
        before = int(self.replicas[lane])
        self.at[lane].change(at_s, after - before)
        self.busy[lane] = True
        self.replicas[lane] = after
        direction = 1 if after > before else -1
        self.sums["steps"][lane] += 1
        self.sums["reversals"][lane] += self.direction[lane] == -direction
        self.direction[lane] = direction
        seed = self.question.seeds[place]
        self.steps.append(ScalingStep(policy, seed, at_s, before, after, *values))

    def _advance(self, begin_s: int, end_s: int) -> None:
        """Let time pass with a constant number of replicas."""
        length = end_s - begin_s
        self.sums["pod_hours"] += self.replicas * (length / 3_600)
        first, last = self.rates.piece(np.array([begin_s, end_s - _SOME], np.float64)).tolist()
        waits = self.backlog.any(axis=1)
        stepped = self.busy | waits
        stepped |= ~self._fits(first, last)
        stepped &= self.copied == self.every
        calm = ~stepped
        self.pace[calm] = self.rates.rate[last]
        self.owner[calm] = _UNKNOWN
        self.calm_s += length * calm
        lanes = np.flatnonzero(stepped)
        self.quiet_s = 0 if len(lanes) else self.quiet_s + length
        if self.quiet_s >= self.ring_s + length:
            return
        self.ring[np.arange(begin_s + 1, end_s + 1) % self.ring_s] = 0.0
        self.no_owner[:] = 0.0
        if not len(lanes):
            return
        _Block(self, lanes, begin_s, end_s).step()
        for lane in lanes[self.busy[lanes]].tolist():
            self.at[lane].rest(end_s)
            if self.at[lane].transition is None:
                self.busy[lane] = False
                self.members[lane] = self.at[lane].members
                self.fits = None

    def _fits(self, first: int, last: int) -> Bools:
        """Return the lanes whose members at rest keep up during these pieces of the rates."""
        if self.pieces != (first, last):
            most = int(max(policy.largest for policy in self.policies))
            self.pieces, self.fits = (first, last), None
            self.fitting = np.full(most + 2, -1, np.int8)
        if self.fits is None:
            known = self.fitting
            for members in set(self.members.tolist()):
                if known[members] < 0:
                    known[members] = self._keeps_up(members, self.rates.rate[first : last + 1])
            self.fits = known[self.members] > 0
        return self.fits

    def _keeps_up(self, members: int, rate: Floats) -> bool:
        """Return whether this many members read at least as fast as messages arrive."""
        if not members:
            return not rate.any()
        owner = self.at[0].transitions.resting(members)
        if rate.max(initial=0.0) > self.reader.of_queue or (owner < 0).any():
            return False
        busiest = max(np.bincount(owner, each).max() for each in rate)
        return bool(busiest <= self.reader.capacity)

    def _note(self, at_s: int) -> None:
        """Record a point for each future that has series."""
        rate = float(self._arrived(max(0, at_s - 1), max(1, at_s)).sum())
        for policy in range(len(self.policies)):
            for place in range(min(self.question.series_seeds, self.seeds)):
                lane = int(self.copied[policy * self.seeds + place])
                self.points.append(
                    Point(
                        policy,
                        self.question.seeds[place],
                        at_s,
                        float(self.ring[at_s % self.ring_s, lane]),
                        int(self.replicas[lane]),
                        self._present(lane, at_s),
                        rate,
                        float(self.no_owner[lane]),
                    )
                )

    def _present(self, lane: int, at_s: int) -> int:
        """Return how many members have joined and not yet left."""
        at = self.at[lane]
        if at.transition is None:
            return at.members
        pods = at.transition.pods
        return int(pods[min(at_s - at.origin_s, len(pods) - 1)])

    def _figures(self) -> dict[str, Floats]:
        seconds, copied = self.rates.seconds, self.copied
        self.sums = {name: values[copied] for name, values in self.sums.items()}
        self.backlog, self.histogram = self.backlog[copied], self.histogram[copied]
        self.histogram[:, 0] += self.calm_s[copied]
        old = self.rates.arrived(np.array([float(seconds - self.question.promise_s)]))
        read = self.rates.arrived(np.array([float(seconds)])) - self.backlog
        self.sums["late_messages"] += np.maximum(old - read, 0.0).sum(axis=1)
        self.sums["lag_mean"] /= seconds
        counts = np.cumsum(self.histogram, axis=1)
        for name, share in (("lag_p50", 0.5), ("lag_p99", 0.99)):
            place = (counts < share * counts[:, -1:]).sum(axis=1)
            lag = np.where(place == 0, 0.0, np.exp2((place + 1) / BINS_AN_OCTAVE) - 1.0)
            self.sums[name] = np.minimum(lag, self.sums["lag_max"])
        return {
            name: values.reshape(len(self.policies), self.seeds)
            for name, values in self.sums.items()
        }


class _Block:
    """The lanes that are simulated second by second."""

    def __init__(self, loop: _Loop, lanes: Ints, begin_s: int, end_s: int) -> None:
        self.loop, self.lanes, self.begin_s = loop, lanes, begin_s
        self.seconds = end_s - begin_s
        shape = len(lanes), self.seconds, loop.queues
        self.owner = np.empty(shape, np.int64)
        self.held = np.empty(shape)
        self.moving = list[int]()
        """Which lanes are in a transition."""
        self.handed = list[int]()
        """The lanes that hand over queues in these seconds."""
        for place, lane in enumerate(lanes.tolist()):
            at = loop.at[lane]
            if at.transition is None:
                self.owner[place] = owner = at.transitions.resting(at.members)
                self.held[place] = owner >= 0
            else:
                self._follow(place, at, at.transition)
        self.members = int(self.owner.max()) + 2

    def _follow(self, place: int, at: _Lane, transition: Transition) -> None:
        """Copy which members read in each second of a lane's transition."""
        self.moving.append(place)
        begin = self.begin_s - at.origin_s
        if begin + self.seconds <= transition.length_s:
            seconds: Ints | slice = slice(begin, begin + self.seconds)
        else:
            seconds = np.minimum(np.arange(begin, begin + self.seconds), transition.length_s - 1)
        self.owner[place] = transition.owner[at.place, seconds]
        self.held[place] = transition.held[at.place, seconds]
        if transition.eventful[at.place, begin : begin + self.seconds].any():
            self.handed.append(place)

    def _handed(self, name: str) -> Floats:
        """Return (lanes, seconds, queues) one part of the transitions in lanes with hand-overs."""
        part = np.zeros((len(self.handed), self.seconds, self.loop.queues))
        for row, place in enumerate(self.handed):
            at = self.loop.at[self.lanes[place]]
            begin = self.begin_s - at.origin_s
            of = getattr(at.transition, name)[at.place, begin : begin + self.seconds]
            part[row, : len(of)] = of
        return part

    def step(self) -> None:
        """Let the seconds pass, adding to the sums of the loop."""
        loop, lanes = self.loop, self.lanes
        times = np.arange(self.begin_s, self.begin_s + self.seconds + 1, dtype=np.float64)
        promised = times[1:] - loop.question.promise_s
        arrived = loop.rates.arrived(np.concatenate([times, promised]))
        arrived, old = arrived[: len(times)], arrived[len(times) :]
        come = np.diff(arrived, axis=0)
        backlog, served = self._flow(come)
        read = arrived[1:] - backlog[:, 1:]
        lag = backlog[:, 1:].sum(axis=2)
        sums = loop.sums
        late = np.minimum(np.maximum(old - (read - served), 0.0), served)
        sums["late_messages"][lanes] += late.sum(axis=(1, 2))
        sums["late_queue_seconds"][lanes] += (old - read > CLEARED).sum(axis=(1, 2))
        # messages that arrive in a second before a queue is taken wait, on average, for half of
        # that time
        waited = np.where(self.held > 0, 1.0 - self.held, 0.0) ** 2 / 2
        sums["lag_mean"][lanes] += lag.sum(axis=1) + (come * waited).sum(axis=(1, 2))
        sums["lag_max"][lanes] = np.maximum(sums["lag_max"][lanes], lag.max(axis=1))
        missing = loop.queues - self.held.sum(axis=2)
        sums["no_owner_queue_seconds"][lanes] += missing.sum(axis=1)
        loop.no_owner[lanes] = missing[:, -1]
        pace = self._paces(served)
        if self.handed:
            rows = self.handed
            self._hand_over(come, backlog[rows, 1:] + served[rows], pace)
        self._longest(read, lag)
        seconds = np.arange(self.begin_s + 1, self.begin_s + self.seconds + 1) % loop.ring_s
        loop.ring[seconds[:, None], lanes] = lag.T
        bins = np.minimum((np.log2(1.0 + lag) * BINS_AN_OCTAVE).astype(np.int64), BINS - 1)
        np.add.at(loop.histogram, (lanes[:, None], bins), 1)
        loop.backlog[lanes] = backlog[:, -1]

    def _flow(self, come: Floats) -> tuple[Floats, Floats]:
        """Return waiting messages, (lanes, seconds + 1, queues), and read messages, (lanes,
        seconds, queues).

        A member's threads take messages in the order in which it pulled them. Messages waiting in a
        queue that it takes come after all that it has cached by then; otherwise, queues get shares
        of the threads in proportion to their cached messages, which flow control limits.
        """
        reader, lanes = self.loop.reader, len(self.lanes)
        backlog = np.empty((lanes, self.seconds + 1, self.loop.queues))
        served = np.empty((lanes, self.seconds, self.loop.queues))
        backlog[:, 0] = now = self.loop.backlog[self.lanes]
        first = np.arange(lanes)[:, None, None] * self.members + 1
        members = np.moveaxis(self.owner + first, 1, 0).reshape(self.seconds, -1)
        limits = np.where(self.held > 0, reader.of_queue, 0.0)
        shares = np.moveaxis(self.held, 1, 0).reshape(self.seconds, -1)
        new = self._new_owners()
        comes_new = np.asarray(new.any(axis=1))
        ahead = self.loop.ahead[self.lanes].ravel()
        waits_behind = bool(ahead.any())
        for second in range(self.seconds):
            waits = now + come[second]
            asked = np.minimum(waits, limits[:, second]).ravel()
            member, share = members[second], shares[second]
            if comes_new[second]:
                cached = np.minimum(waits, reader.cache).ravel()
                earlier = self._by_member(member, np.where(new[second], 0.0, cached))
                ahead = np.where(new[second], earlier[member], ahead)
                waits_behind = bool(ahead.any())
            if not waits_behind:
                taken = self._divided(asked, member, share, np.array(reader.capacity))
            else:
                behind = ahead > 0
                earlier = np.where(behind, 0.0, asked)
                taken = self._divided(earlier, member, share, np.array(reader.capacity))
                used = self._by_member(member, taken)
                left = np.maximum(reader.capacity - used, 0.0)[member]
                taken += self._divided(asked - earlier, member, share, left)
                # idle threads have reached the messages that wait behind
                ahead = np.where(left > _SOME, 0.0, np.maximum(ahead - used[member], 0.0))
                waits_behind = bool(ahead.any())
            served[:, second] = taken = taken.reshape(lanes, -1)
            now = waits - taken
            now[now < CLEARED] = 0.0
            backlog[:, second + 1] = now
        self.loop.ahead[self.lanes] = ahead.reshape(lanes, -1)
        self.loop.owner[self.lanes] = self.owner[:, -1]
        return backlog, served

    def _new_owners(self) -> Bools:
        """Return (seconds, lanes x queues) whether the queue had a different member a second
        earlier.
        """
        before = np.concatenate([self.loop.owner[self.lanes][:, None], self.owner[:, :-1]], axis=1)
        new = (self.owner != before) & (self.owner >= 0) & (before != _UNKNOWN)
        return np.asarray(np.moveaxis(new, 1, 0).reshape(self.seconds, -1))

    def _by_member(self, member: Ints, messages: Floats) -> Floats:
        """Return the sums over each member's queues, in each lane."""
        total = np.bincount(member, messages, len(self.lanes) * self.members)
        return np.asarray(total, np.float64)

    def _divided(self, asked: Floats, member: Ints, share: Floats, capacity: Floats) -> Floats:
        """Return (lanes x queues,) the messages that members read in a second.

        Args:
            asked: the messages that wait in each queue, up to what the queue allows.
            member: the member that has the queue.
            share: the part of the second during which it has the queue.
            capacity: the messages that it reads in a second, for all queues or by queue.
        """
        reader = self.loop.reader
        total = self._by_member(member, asked)
        weight = asked
        if total.max() > reader.cache:  # otherwise, no queue has as much
            cached = np.minimum(asked, reader.cache)
            in_cache = self._by_member(member, cached)
            full = in_cache >= reader.capacity
            total = np.where(full, in_cache, total)
            weight = np.where(full[member], cached, asked)
        factor = capacity / np.maximum(total, _SOME)[member]
        return np.asarray(np.minimum(asked, weight * factor * share))

    def _hand_over(self, come: Floats, waits: Floats, pace: Floats) -> None:
        """Count the messages that two members read, and those that the next member reads or pulls
        again.
        """
        sums, reader = self.loop.sums, self.loop.reader
        lanes, taken = self.lanes[self.handed], self._handed("taken")
        again = self._read_on(pace)
        if taken.any():
            in_work = reader.uncommitted.messages(pace * reader.work_s)
            again += (taken * in_work).sum(axis=(1, 2))
            age_s = np.where(waits > reader.cache, age_behind_s(pace), age_of_commit_s(come))
            again += (self._handed("lost") * pace * age_s).sum(axis=(1, 2))
            again += (self._handed("one_more") * come * age_of_commit_s(come)).sum(axis=(1, 2))
            pulled = taken * np.minimum(waits, reader.cache)
            sums["pulled_again"][lanes] += pulled.sum(axis=(1, 2))
            sums["moves"][lanes] += taken.sum(axis=(1, 2))
        sums["read_again"][lanes] += again

    def _read_on(self, pace: Floats) -> Floats:
        """Return (lanes,) the messages that previous owners read after the hand-over, at their
        earlier pace.
        """
        both = self._handed("both")
        messages = np.zeros(len(both))
        giver = pace[:, 0]
        for second in np.flatnonzero(both.any(axis=(0, 2))).tolist():
            goes_on = (both[:, second - 1] > 0) if second else np.zeros_like(giver, np.bool_)
            giver = np.where(goes_on, giver, pace[:, second])
            messages += (both[:, second] * giver).sum(axis=1)
        return messages

    def _paces(self, served: Floats) -> Floats:
        """Return (lanes with hand-overs, seconds, queues) the messages read in the last earlier
        second throughout which a member had the queue; keep those of all lanes.
        """
        loop, rows = self.loop, self.moving
        pace = np.empty((len(rows), self.seconds + 1, loop.queues))
        pace[:, 0] = loop.pace[self.lanes[rows]]
        loop.pace[self.lanes] = served[:, -1]
        pace[:, 1:] = served[rows]
        whole = np.where(self.held[rows] >= 1.0, np.arange(1, self.seconds + 1)[:, None], 0)
        last = np.maximum.accumulate(whole, axis=1)
        pace[:, 1:] = np.take_along_axis(pace, last, axis=1)
        loop.pace[self.lanes[rows]] = pace[:, -1]
        return pace[np.isin(rows, self.handed), :-1]

    def _longest(self, read: Floats, lag: Floats) -> None:
        """Raise the maximum waits to the age of the oldest waiting message in any second."""
        longest = self.loop.sums["longest_wait_s"]
        rows, seconds = np.nonzero(lag > 0)
        while len(rows):
            lanes = self.lanes[rows]
            at_s = self.begin_s + seconds + 1.0
            older = self.loop.rates.arrived(at_s - longest[lanes] - 1.0)
            more = (older - read[rows, seconds] > CLEARED).any(axis=1)
            rows, seconds = rows[more], seconds[more]
            longest[self.lanes[np.unique(rows)]] += 1.0
