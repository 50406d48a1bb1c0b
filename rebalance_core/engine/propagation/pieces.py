"""A group looked over, and its futures played and measured."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from rebalance_core.clockwork.batch import play_seeds, reason_of
from rebalance_core.clockwork.batch.play import REGULAR
from rebalance_core.clockwork.measure.measured import Measured, broadcasts, measured
from rebalance_core.clockwork.options import MS_US
from rebalance_core.clockwork.script import Script, script_of
from rebalance_core.clockwork.ticks import NEVER, Ticks
from rebalance_core.contracts import REJECTED
from rebalance_core.engine.propagation.options import PropagationOptions
from rebalance_core.model.events import CONSUMER_JOIN
from rebalance_core.replay.group_replay import rejected_row
from rebalance_core.replay.history import GroupHistory

PIECE_STEPS = 500_000
"""Changes x members x seeds of a piece: some seconds of work."""
STEPS_ONE_BY_ONE = 30
"""What a step costs in futures that are played one after the other, in steps of others."""
SLICE_ROWS = 1_000_000
"""Rows of an ownership log, as estimated, that are measured at once: 200 MB with all arrays."""


@dataclass(frozen=True)
class Survey:
    """What there is to simulate of a group.

    Attributes:
        cluster: Its cluster.
        consumer_group: Its name.
        changes: Changes that are simulated; none where all queues are shared, or where what some
            member subscribes is not known.
        steps: Changes, each times the members at that time.
        shared_topics: Topics left out because members share their queues.
        broadcasts: No queue is handed over.
        unknown: What some member subscribes is not known.
        reason: Why its futures are played one by one; `REGULAR`: all at once.
        rejected: Rows of ``rejected``: events that name a process that is not there.
    """

    cluster: str
    consumer_group: str
    changes: int
    steps: int
    shared_topics: tuple[str, ...]
    broadcasts: bool
    unknown: bool
    reason: str
    rejected: tuple[dict[str, Any], ...] = field(default=(), repr=False)

    def parts(self, options: PropagationOptions) -> int:
        """In how many pieces its seeds are played."""
        cost = self.steps * (1 if self.reason == REGULAR else STEPS_ONE_BY_ONE)
        wanted = -(-cost * options.seeds // PIECE_STEPS)
        return max(1, min(wanted, options.seeds))


def is_unknown(history: GroupHistory) -> bool:
    """True if no row states what some member subscribes: who gets its queues is not known."""
    return history.settings.subscriptions is None and any(
        event.event_type == CONSUMER_JOIN and event.subscriptions is None
        for event in history.events
    )


def surveyed(history: GroupHistory, options: PropagationOptions) -> Survey:
    """Look a group over; cost of its events, no seed is played."""
    script = script_of(history, options.clock)
    return Survey(
        cluster=history.cluster,
        consumer_group=history.consumer_group,
        changes=len(script.changes) if script.queues and not is_unknown(history) else 0,
        steps=int(_members(script).sum()),
        shared_topics=script.popped,
        broadcasts=broadcasts(script),
        unknown=is_unknown(history),
        reason=reason_of(script),
        rejected=tuple(map(rejected_row, script.unknown_members)),
    )


def played(history: GroupHistory, options: PropagationOptions, seeds: range) -> Iterator[Measured]:
    """Play some futures of a group and measure them, a slice of seeds at a time.

    Args:
        history: Of the group.
        options: What is assumed, and which seeds' hand-overs are wanted.
        seeds: Which futures.
    """
    script = script_of(history, options.clock)
    if not script.changes or not script.queues or is_unknown(history):
        return
    rows_a_seed = len(script.changes) * len(script.queues)
    size = max(1, SLICE_ROWS // rows_a_seed)
    for begin in range(seeds.start, seeds.stop, size):
        numbers = np.arange(begin, min(begin + size, seeds.stop), dtype=np.int64)
        log = play_seeds(script, numbers, options.clock)
        ticks = Ticks(script, numbers, options.clock)
        yield measured(history, ticks, log, options.handovers_before_seed)


def rejected_rows(surveys: Iterable[Survey]) -> pa.Table:
    """The rows of ``rejected`` of some groups."""
    rows = [row for survey in surveys for row in survey.rejected]
    return pa.Table.from_pylist(rows, REJECTED.arrow_schema())


def _members(script: Script) -> np.ndarray:
    """(changes,) how many processes live at each change."""
    at_us = np.array([change.change_ms * MS_US for change in script.changes], np.int64)
    joins = np.sort([life.joined.event_us for life in script.lives])
    ends = np.sort(
        [NEVER if life.ending is None else life.ending.moment.event_us for life in script.lives]
    )
    return np.searchsorted(joins, at_us, side="right") - np.searchsorted(ends, at_us)
