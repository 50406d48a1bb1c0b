"""Compares the logs of a cluster's clients with the simulated futures of its changes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from rebalance_core.contracts import fidelity as contract
from rebalance_core.contracts.observed import LATENCY_KINDS
from rebalance_core.model.group_settings import BROADCASTING
from rebalance_core.timing import comparison, moves
from rebalance_core.timing.comparison import Observation
from rebalance_core.timing.extent import delays_basis
from rebalance_core.timing.fit import FEWEST
from rebalance_core.timing.group_timeline import GroupTimeline
from rebalance_core.timing.logged_changes import (
    ClientLogs,
    LoggedChange,
    client_logs,
    logged_changes,
)
from rebalance_core.timing.logged_latencies import SimulatedLatencies
from rebalance_core.timing.options import ClockOptions
from rebalance_core.timing.ticks import Ticks
from rebalance_core.timing.vectorized import play_seeds

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import (
        FidelityRow,
        FidelitySamplesRow,
        LatenciesRow,
        QueueMovesRow,
    )

AGREES_SHARE: Final = 0.95
"""The minimum share of a kind's samples that must lie between the fastest and the slowest
future.
"""
_MEASURES: Final[Mapping[str, contract.Measure]] = {
    moves.LAST: contract.LAST,
    moves.ADD: contract.FIRST_ADD,
    moves.DROP: contract.FIRST_DROP,
    moves.GAP: contract.GAP,
}
_CUT_OFF_MS: Final = 1
"""Both ends of a logged duration are rounded down to whole milliseconds."""
_SHARES: Final = (0.0, 0.05, 0.5, 0.95, 1.0)


@dataclass(frozen=True, eq=False)
class GroupLogs:
    """The contents of a group's client logs, as rows."""

    latencies: list[LatenciesRow] = field(default_factory=list)
    moves: list[QueueMovesRow] = field(default_factory=list)


@dataclass(frozen=True, eq=False)
class Sample:
    """An observation of one kind, with its change and client."""

    cluster: str
    consumer_group: str
    kind: str
    measure: contract.Measure
    at_ms: int
    observation: Observation

    @property
    def key(self) -> tuple[object, ...]:
        """The sort key of samples."""
        who = self.observation.who
        names = who if isinstance(who, tuple) else (who or "",)
        group = self.cluster, self.consumer_group
        return *group, self.at_ms, self.kind, self.measure, tuple(map(str, names)), self.observed_ms

    @property
    def observed_ms(self) -> float:
        """The observed duration in milliseconds."""
        return self.observation.observed_ms

    @cached_property
    def quantiles_ms(self) -> Sequence[float | None]:
        """The quantiles of the futures at `_SHARES`; None if it occurs in no future."""
        its = self.observation.simulated_ms
        return np.quantile(its, _SHARES).tolist() if len(its) else [None] * len(_SHARES)

    def place(self) -> contract.Place:
        """Return where the observed duration lies among the futures, one of `contract.PLACES`."""
        low, p5, _, p95, high = self.quantiles_ms
        if low is None or p5 is None or p95 is None or high is None:
            return contract.NEVER
        if p5 - _CUT_OFF_MS < self.observed_ms < p95 + _CUT_OFF_MS:
            return contract.INSIDE
        if low - _CUT_OFF_MS < self.observed_ms < high + _CUT_OFF_MS:
            return contract.IN_RANGE
        return contract.ABOVE if self.observed_ms > high else contract.BELOW

    def row(self) -> FidelitySamplesRow:
        """Return a row of ``fidelity_samples``."""
        who = self.observation.who
        queue = who if isinstance(who, tuple) else (None, None, None)
        low, p5, p50, p95, high = self.quantiles_ms
        return {
            "cluster": self.cluster,
            "consumer_group": self.consumer_group,
            "kind": self.kind,
            "measure": self.measure,
            "at_ms": self.at_ms,
            "client_id": who if isinstance(who, str) else None,
            "topic": queue[0],
            "broker_name": queue[1],
            "queue_id": queue[2],
            "observed_ms": self.observation.observed_ms,
            "share": self.observation.share,
            "simulated_ms_min": low,
            "simulated_ms_p5": p5,
            "simulated_ms_p50": p50,
            "simulated_ms_p95": p95,
            "simulated_ms_max": high,
            "place": self.place(),
        }


@dataclass
class GroupFidelity:
    """The comparable observations of a group.

    Attributes:
        samples: observations.
        changes: the number of simulated changes.
        unplayed: 1 if no change is simulated because the members own no queue exclusively.
        unlogged: changes after which no client log shows a move.
        partly_logged: changes for which at least one member's log is missing.
        strangers: rows of ``latencies`` whose clients neither joined nor left in the tables.
        kinds: the kinds of the changes.
    """

    samples: list[Sample] = field(default_factory=list)
    changes: int = 0
    unplayed: int = 0
    unlogged: int = 0
    partly_logged: int = 0
    strangers: int = 0
    kinds: frozenset[tuple[str, str]] = frozenset()


def group_fidelity(
    timeline: GroupTimeline,
    logs: GroupLogs,
    options: ClockOptions,
    slices: Sequence[NDArray[np.int64]],
) -> GroupFidelity:
    """Compare the logs of a group with its simulated futures.

    Cost: that of the futures. Memory: that of the largest slice, plus about 300 bytes per logged
    duration and slice.

    Args:
        timeline: the group's timeline, built with the options; without a queue, only latencies
            count.
        logs: the logs of its clients.
        options: the assumptions of the simulation.
        slices: the seeds, in groups that are played together.
    """
    changes = logged_changes(timeline) if timeline.queues else []
    logged = client_logs(timeline, logs.moves) if timeline.queues else ClientLogs((), {})
    whole = logged.are_whole(timeline, changes)
    parts: list[list[tuple[LoggedChange | LatenciesRow, Observation]]] = []
    for seeds in slices:
        ticks = Ticks(timeline, seeds, options)
        simulated_latencies = SimulatedLatencies(ticks).compared(logs.latencies)
        parts.append(list(simulated_latencies))
        if changes and logged.since_ms:
            of_moves = _of_moves(timeline, logged, changes, whole, seeds, options)
            parts[-1] += [(changes[at], one) for at, one in of_moves]
    samples = [_sample(timeline, of_slices) for of_slices in zip(*parts, strict=True)]
    after = {sample.at_ms for sample in samples if sample.measure == contract.LAST}
    compared = sum(sample.measure == contract.LATENCY for sample in samples)
    return GroupFidelity(
        samples=samples,
        changes=len(changes),
        unplayed=int(not timeline.queues),
        unlogged=sum(change.event_ms not in after for change in changes),
        partly_logged=len(whole) - sum(whole),
        strangers=len(logs.latencies) - compared,
        kinds=frozenset((timeline.cluster, change.kind) for change in changes),
    )


def _of_moves(
    timeline: GroupTimeline,
    logged: ClientLogs,
    changes: Sequence[LoggedChange],
    whole: Sequence[bool],
    seeds: NDArray[np.int64],
    options: ClockOptions,
) -> Iterator[comparison.Compared]:
    log = play_seeds(timeline, seeds, options)
    names = [lifetime.client_id for lifetime in timeline.lifetimes]
    simulated = moves.simulated_moves(timeline, log, len(seeds), names)
    observed = moves.observed_moves(logged.moves)
    members = frozenset(logged.since_ms)
    yield from comparison.settled(observed, simulated, changes, members)
    for at, one in comparison.latencies(observed, simulated, changes):
        if one.who in members:
            yield at, one
    if timeline.settings.message_model != BROADCASTING:  # in which every client owns every queue
        for at, one in comparison.queue_gaps(observed, simulated, changes):
            if whole[at]:
                yield at, one


def _sample(
    timeline: GroupTimeline, of_slices: Sequence[tuple[LoggedChange | LatenciesRow, Observation]]
) -> Sample:
    """Return the sample of an observation, over the futures of all slices."""
    of, first = of_slices[0]
    futures_ms = np.concatenate([one.futures_ms for _, one in of_slices])
    one = Observation(first.what, first.who, first.observed_ms, futures_ms)
    if isinstance(of, LoggedChange):
        kind, measure, at_ms = of.kind, _MEASURES[first.what], of.event_ms
    else:
        kind, measure, at_ms = of["kind"], contract.LATENCY, of["at_ms"]
    return Sample(timeline.cluster, timeline.consumer_group, kind, measure, at_ms, one)


def fidelity_rows(
    groups: Iterable[GroupFidelity], clusters: Iterable[str], options: ClockOptions
) -> list[FidelityRow]:
    """Return the rows of ``fidelity``, changes first, including kinds without samples.

    Args:
        groups: the groups of all clusters.
        clusters: the clusters whose logs were read.
        options: the assumptions of the simulation.
    """
    by_kind: dict[tuple[str, str, contract.Measure], list[Sample]] = {}
    for group in groups:
        for cluster, kind in group.kinds:
            by_kind.setdefault((cluster, kind, contract.LAST), [])
        for sample in group.samples:
            key = sample.cluster, sample.kind, sample.measure
            by_kind.setdefault(key, []).append(sample)
    for cluster in clusters:
        for kind in LATENCY_KINDS:
            by_kind.setdefault((cluster, kind, contract.LATENCY), [])
    ordered = sorted(
        by_kind.items(),
        key=lambda item: (
            item[0][0],
            item[0][2] == contract.LATENCY,
            item[0][1],
            contract.MEASURES.index(item[0][2]),
        ),
    )
    return [_row(*key, samples, options) for key, samples in ordered]


def _row(
    cluster: str,
    kind: str,
    measure: contract.Measure,
    samples: Sequence[Sample],
    options: ClockOptions,
) -> FidelityRow:
    places = Counter(sample.place() for sample in samples)
    inside, in_range = places[contract.INSIDE], places[contract.INSIDE] + places[contract.IN_RANGE]
    observed = [sample.observation.observed_ms for sample in samples]
    simulated = _pooled([sample.observation for sample in samples])
    verdict, reason = _verdict(len(samples), in_range, places, measure)
    return {
        "cluster": cluster,
        "kind": kind,
        "measure": measure,
        "samples": len(samples),
        "inside": inside,
        "in_range": in_range,
        "observed_ms_p50": _quantile(observed, 0.5),
        "observed_ms_p95": _quantile(observed, 0.95),
        "simulated_ms_p50": simulated[0],
        "simulated_ms_p95": simulated[1],
        "delays": _basis(kind, measure, options),
        "verdict": verdict,
        "reason": reason,
    }


def _verdict(
    samples: int, in_range: int, places: Counter[contract.Place], measure: contract.Measure
) -> tuple[contract.Verdict, str | None]:
    if not samples:
        source = "latencies" if measure == contract.LATENCY else "queue_moves"
        return contract.UNKNOWN, f"no row of {source} shows it: collect more clients' logs"
    if samples < FEWEST:
        return contract.UNKNOWN, f"fewer than {FEWEST} samples"
    if in_range >= AGREES_SHARE * samples:
        return contract.AGREES, None
    words = (
        (contract.ABOVE, "longer than in any future"),
        (contract.BELOW, "shorter than in any future"),
        (contract.NEVER, "in no future"),
    )
    counts = ", ".join(f"{places[place]:,} {text}" for place, text in words if places[place])
    return contract.DIFFERS, f"of {samples:,}: {counts}"


def _quantile(values: Sequence[float], share: float) -> float | None:
    return float(np.quantile(values, share)) if len(values) else None


def _pooled(observations: Sequence[Observation]) -> tuple[float | None, float | None]:
    """Return p50 and p95 over all futures, weighting each sample by the share of its futures in
    which it happens.
    """
    its = [one for one in observations if len(one.simulated_ms)]
    if not its:
        return None, None
    values = np.concatenate([one.simulated_ms for one in its])
    weights = np.concatenate(
        [np.full(len(one.simulated_ms), one.share / len(one.simulated_ms)) for one in its]
    )
    order = np.argsort(values, kind="stable")
    total = np.cumsum(weights[order])
    p50, p95 = (
        float(values[order][np.searchsorted(total, share * total[-1])]) for share in (0.5, 0.95)
    )
    return p50, p95


def _basis(kind: str, measure: contract.Measure, options: ClockOptions) -> str:
    if measure != contract.LATENCY or options.fit is None:
        return delays_basis(options)
    fit = options.fit.of_kind(kind)
    return delays_basis(replace(options, fit=None)) if fit.delay is None else fit.text
