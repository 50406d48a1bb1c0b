"""What was observed beside what is simulated, for each change's members and queues."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property

from rebalance_core.model.group_settings import BROADCASTING
from rebalance_core.timing.comparison import Observation, latencies, queue_gaps
from rebalance_core.timing.group_timeline import GroupTimeline
from rebalance_core.timing.moves import Moves, ObservedMove, observed_moves, simulated_moves
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
from tests.recordings.timings.actions import Action, observed_actions, observed_runs
from tests.recordings.timings.changes import Change, changes_of
from tests.recordings.timings.client_logs import marks_of
from tests.recordings.timings.corrections import corrected_tables
from tests.recordings.timings.recorder import known_of, recorder_tables
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
class Compared(Observation):
    """One latency or gap.

    Attributes:
        change: after which.
        version: of the recording, as ``5.3.3``.
    """

    change: Change
    version: str

    @cached_property
    def middle_ms(self) -> tuple[float, float]:
        """1st and 99th percentile of what is simulated."""
        return self.quantile_ms(0.01), self.quantile_ms(0.99)

    @property
    def is_in_the_middle(self) -> bool:
        """It lies between the 1st and the 99th percentile."""
        return self.is_between(0.01, 0.99)


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
        simulated = simulated_moves(timeline, log, seeds, lifetime_names(timeline, names))
        observed = observed_timeline(its_actions)
        its = list(latencies(observed, simulated, its_changes))
        if history.settings.message_model != BROADCASTING:  # where everybody owns every queue
            its += queue_gaps(observed, simulated, its_changes)
        found += [_compared(its_changes[at], cluster["version"], one) for at, one in its]
    return found


def _compared(change: Change, version: str, one: Observation) -> Compared:
    who = one.who
    text = f"{who[0]} {who[1]}:{who[2]}" if isinstance(who, tuple) else who
    return Compared(one.what, text, one.observed_ms, one.futures_ms, change, version)


def _given_tables(name: str, derived: Tables, given: Given) -> Tables:
    if given == Given.FILES:
        return ingested_recording(name).tables
    return recorder_tables(name, derived) if given == Given.RECORDER else derived


def observed_timeline(actions: list[Action]) -> Moves:
    """What one group was seen to do."""
    return observed_moves(
        [ObservedMove(one.at_ms, one.client, one.queue, one.added) for one in actions]
    )


def lifetime_names(timeline: GroupTimeline, names: dict[tuple[str, str | None], str]) -> list[str]:
    """The recording's name of each lifetime's client, of `client_names`."""
    return [names[lifetime.client_id, lifetime.channel_id] for lifetime in timeline.lifetimes]


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
