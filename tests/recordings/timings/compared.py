"""What was observed beside what is simulated, for each change's members and queues."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from rebalance_core.model.group_settings import BROADCASTING
from rebalance_core.timing.group_timeline import GroupTimeline
from rebalance_core.timing.options import ClockOptions
from rebalance_core.timing.ownership_log import OwnershipLog
from rebalance_core.timing.timeline_builder import build_timeline
from rebalance_core.timing.vectorized import play_seeds
from tests.recordings.recorded_events import REPLICATED
from tests.recordings.tables import (
    DATA,
    RECORDINGS,
    Tables,
    histories,
    ingested_recording,
    with_sharing,
)
from tests.recordings.timings.actions import observed_actions, observed_runs
from tests.recordings.timings.changes import Change, changes_of
from tests.recordings.timings.client_logs import marks_of
from tests.recordings.timings.corrections import corrected_tables
from tests.recordings.timings.recorder import known_of, recorder_tables
from tests.recordings.timings.timeline import (
    GAP,
    Timeline,
    first_actions,
    gaps,
    observed_timeline,
    simulated_timeline,
)
from tests.recordings.truth import Truth, read_truth

Play = Callable[[GroupTimeline, Sequence[int], ClockOptions], OwnershipLog]

TIMED = (*RECORDINGS, *REPLICATED)
OVERLOADED = ("join-leave-5.5", *REPLICATED)
"""Their hosts were (README of the recordings): delays are no evidence."""


class Given(StrEnum):
    """What is simulated."""

    TABLES = "tables"
    """The derived tables of a recording."""
    FILES = "files"
    """What `ingest` makes of the operators' files."""
    RECORDER = "tables and the recorder"
    """The derived tables, and what the recorder knew beside them."""


@dataclass(frozen=True, eq=False)
class Compared:
    """One latency or gap.

    Attributes:
        change: after which.
        version: of the recording, as ``5.3.3``.
        who: the client, or the queue in words.
        what: ``drop``, ``add`` or ``gap``.
        observed_ms: from the change; a gap is negative while several owned the queue.
        futures_ms: (S,) the same by future; NaN where it does not happen.
    """

    change: Change
    version: str
    who: str
    what: str
    observed_ms: float
    futures_ms: NDArray[np.float64]

    @cached_property
    def simulated_ms(self) -> NDArray[np.float64]:
        """The futures in which it happens, ascending."""
        return np.sort(self.futures_ms[~np.isnan(self.futures_ms)])

    @property
    def share(self) -> float:
        """Of the futures in which it happens."""
        return len(self.simulated_ms) / len(self.futures_ms)

    @cached_property
    def middle_ms(self) -> tuple[float, float]:
        """1st and 99th percentile of what is simulated."""
        low, high = np.quantile(self.simulated_ms, [0.01, 0.99]) if self.share else (np.nan, np.nan)
        return float(low), float(high)

    @property
    def is_inside(self) -> bool:
        """The observed value lies between the least and the most that is simulated."""
        its = self.simulated_ms
        return bool(self.share) and bool(its[0] <= self.observed_ms <= its[-1])

    @property
    def is_in_the_middle(self) -> bool:
        """It lies between the 1st and the 99th percentile."""
        low, high = self.middle_ms
        return low <= self.observed_ms <= high


def compared(
    name: str,
    seeds: int,
    *,
    play: Play = play_seeds,
    given: Given = Given.TABLES,
    groups: Sequence[str] = (),
) -> list[Compared]:
    """Everything that can be compared of one recording.

    Args:
        name: of the recording.
        seeds: how many futures, numbered from 0.
        play: the engine; the default leaves irregular groups to the plain loop.
        given: what is simulated.
        groups: these only; none: all.
    """
    truth, derived = read_truth(name), corrected_tables(name)
    cluster = json.loads((DATA / name / "cluster.json").read_text())
    actions = observed_actions(truth, marks_of(name), derived["cluster_events"])
    changes = changes_of(name, derived, cluster["end_ms"])
    tables = _given_tables(name, derived, given)
    found: list[Compared] = []
    for history in with_sharing(list(histories(tables))):
        group = history.consumer_group
        its_changes = [one for one in changes if one.group == group]
        its_actions = [one for one in actions if one.group == group]
        if not its_actions or not its_changes or (groups and group not in groups):
            continue
        timeline = build_timeline(history, ClockOptions())
        names = client_names(truth, derived, timeline)
        if given == Given.RECORDER and name not in REPLICATED:  # of whom that is in no file
            timeline = replace(timeline, watched=known_of(name, timeline, names))
        log = play(timeline, range(seeds), ClockOptions())
        simulated = simulated_timeline(timeline, log, seeds, names)
        observed = observed_timeline(its_actions)
        found += _latencies(observed, simulated, its_changes, cluster["version"])
        if history.settings.message_model != BROADCASTING:  # where everybody owns every queue
            found += _gaps(observed, simulated, its_changes, cluster["version"])
    return found


def _given_tables(name: str, derived: Tables, given: Given) -> Tables:
    if given == Given.FILES:
        return ingested_recording(name).tables
    return recorder_tables(name, derived) if given == Given.RECORDER else derived


def _latencies(
    observed: Timeline, simulated: Timeline, changes: list[Change], version: str
) -> Iterator[Compared]:
    by_number = {change.number: change for change in changes}
    futures = first_actions(simulated, changes)
    for (number, client, what), seen in first_actions(observed, changes).items():
        values = futures.get((number, client, what), np.full(simulated.seeds, np.nan))
        yield Compared(by_number[number], version, client, what, float(seen[0]), values)


def _gaps(
    observed: Timeline, simulated: Timeline, changes: list[Change], version: str
) -> Iterator[Compared]:
    by_number = {change.number: change for change in changes}
    futures = gaps(simulated, changes)
    for (number, queue), seen in gaps(observed, changes).items():
        who = f"{queue[0]} {queue[1]}:{queue[2]}"
        values = futures.get((number, queue), np.full(simulated.seeds, np.nan))
        yield Compared(by_number[number], version, who, GAP, float(seen[0]), values)


def client_names(
    truth: Truth, derived: Tables, timeline: GroupTimeline
) -> dict[tuple[str, str | None], str]:
    """Names of the clients by (client_id, channel_id), whatever the channels are called.

    Of several processes with one client_id, those that started nearest to the joins.
    """
    runs = observed_runs(truth, derived["cluster_events"])
    names: dict[tuple[str, str | None], str] = {}
    for lifetime in sorted(timeline.lifetimes, key=lambda one: one.stale_entry):
        at_ms = lifetime.joined.event_us // 1_000
        same = [run for run in runs if run.client_id == lifetime.client_id]
        free = [run for run in same if run.client not in names.values()] or same
        nearest = min(free, key=lambda run: abs(run.started_ms - at_ms))
        names.setdefault((lifetime.client_id, lifetime.channel_id), nearest.client)
    return names
