"""The phases of a simulation, in which no broker changes its behaviour."""

import math
from dataclasses import dataclass
from itertools import pairwise

from rebalance_core.model.times import BROKER_EXPIRY_MS, SLOW_SEND_MS
from rebalance_core.producers.draws import draw
from rebalance_core.producers.latencies import Latency
from rebalance_core.producers.model import BrownOut, Outage, ProducerModel
from rebalance_core.producers.send_failures import CODE_PREFIX, TIMEOUT, Reply

HEALTHY = "healthy"
SYSTEM_ERROR = f"{CODE_PREFIX}1"  # ResponseCode.SYSTEM_ERROR
NEVER = 2**62


@dataclass(frozen=True, slots=True)
class Behaviour:
    """A broker's answers: some requests are slow or fail, and the others take no time."""

    latency: Latency
    errors: float = 0.0
    outage: str | None = None
    """the answer to every request"""

    @property
    def remarkable_share(self) -> float:
        """The share of requests that are slow or fail."""
        if self.outage is not None:
            return 1.0
        return self.errors + (1 - self.errors) * self.latency.slow_share

    def gap(self, u: float) -> int:
        """Return the number of requests before the next remarkable one: a geometric draw from one
        random number.
        """
        share = self.remarkable_share
        if share <= 0:
            return NEVER
        return 0 if share >= 1 else min(math.floor(math.log(u) / math.log1p(-share)), NEVER)

    def remarkable(self, which: float, u: float) -> Reply:
        """Return a remarkable answer: an error or a latency.

        Args:
            which: The random number that decides between the two.
            u: The quantile of the latency.
        """
        if self.outage is not None:
            return Reply(self.outage, NEVER if self.outage == TIMEOUT else 0)
        if which * self.remarkable_share < self.errors:
            return Reply(SYSTEM_ERROR, 0)
        return Reply("ok", max(self.latency.slow_ms(u), SLOW_SEND_MS))


@dataclass(frozen=True, slots=True)
class Phase:
    """A phase; times are in ms from the start of the simulation."""

    label: str
    from_ms: int
    to_ms: int
    behaviours: dict[str, Behaviour]
    """by broker name"""
    recovering: frozenset[str]
    """brokers whose disturbance ended as the phase began"""


def phases_of(model: ProducerModel) -> tuple[Phase, ...]:
    """Return the phases, in order; they tile the simulation."""
    cuts = {0, model.length_ms}
    for disturbance in model.disturbances:
        cuts |= {disturbance.from_ms, min(disturbance.to_ms, model.length_ms)}
    times = sorted(cuts)
    return tuple(_phase(model, *pair) for pair in pairwise(times))


def _phase(model: ProducerModel, from_ms: int, to_ms: int) -> Phase:
    behaviours = {broker.name: Behaviour(broker.latency) for broker in model.brokers}
    active = [d for d in model.disturbances if d.from_ms < to_ms and d.to_ms > from_ms]
    for disturbance in active:
        if isinstance(disturbance, Outage):
            behaviours[disturbance.broker] = Behaviour(
                behaviours[disturbance.broker].latency, outage=disturbance.answer
            )
        elif isinstance(disturbance, BrownOut):
            behaviours[disturbance.broker] = Behaviour(disturbance.latency, disturbance.errors)
    labels = [disturbance.label for disturbance in active]
    recovering = {
        disturbance.broker for disturbance in model.disturbances if disturbance.to_ms == from_ms
    }
    recovering -= {disturbance.broker for disturbance in active}
    label = " and ".join(labels) or HEALTHY
    return Phase(label, from_ms, to_ms, behaviours, frozenset(recovering))


def route_changes(
    model: ProducerModel, client_id: str, poll_ms: int
) -> list[tuple[int, frozenset[str]]]:
    """Return when a client's route changes, and the brokers missing from then on.

    The name server drops a broker when its connection closes or, if it is silent, once its
    registration expires; the client learns of this at its next poll, whose phase is the client's
    own (rocketmq.md §6.1).
    """
    outages = [
        (
            outage.broker,
            outage.from_ms + (BROKER_EXPIRY_MS if outage.answer == TIMEOUT else 0),
            outage.to_ms,
        )
        for outage in model.disturbances
        if isinstance(outage, Outage) and not outage.stays_in_route
    ]
    outages = [(broker, begin, end) for broker, begin, end in outages if begin < end]
    first = math.floor(draw(model.seed, "poll", client_id) * poll_ms)
    polls = {
        first + max(0, -(-(time - first) // poll_ms)) * poll_ms
        for _, *times in outages
        for time in times
    }
    changes, missing = [], frozenset[str]()
    for poll in sorted(polls):
        gone = frozenset(broker for broker, begin, end in outages if begin <= poll < end)
        if gone != missing:
            changes.append((poll, gone))
            missing = gone
    return changes
