"""The fidelity job: compare simulated futures of a cluster's changes with what its clients
logged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypedDict

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from rebalance_core.checks.row_limits import BadRowLimits
from rebalance_core.contracts import FIDELITY_TABLES, REJECTED
from rebalance_core.contracts.fidelity import FIDELITY, FIDELITY_SAMPLES
from rebalance_core.contracts.observed import LATENCIES, QUEUE_MOVES
from rebalance_core.engine.options import refuse_rejected
from rebalance_core.engine.propagation import SLICE_ROWS, PropagationOptions, is_unknown
from rebalance_core.engine.table_writer import Written
from rebalance_core.process.propagate import dealt_groups
from rebalance_core.process.propagation_pass import BucketGroups, SurveyStats
from rebalance_core.process.runtime import HERE, Made, Part, Runtime, TableRows
from rebalance_core.replay.history import GroupHistory
from rebalance_core.storage.place import Location
from rebalance_core.timing.fidelity import GroupFidelity, GroupLogs, fidelity_rows, group_fidelity
from rebalance_core.timing.timeline_builder import build_timeline

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import (
        FidelityRow,
        FidelitySamplesRow,
        LatenciesRow,
        QueueMovesRow,
    )

WRITTEN = (*FIDELITY_TABLES, REJECTED.name)
LOGGED = (LATENCIES.name, QUEUE_MOVES.name)
"""The tables of what clients logged."""


class FidelityFacts(TypedDict):
    """Facts about the written tables: the rows of ``fidelity`` and of ``fidelity_samples``, and the
    numbers of groups and of what is in `COUNTED`.
    """

    rows: Sequence[FidelityRow]
    samples: Sequence[FidelitySamplesRow]
    counts: Mapping[str, int]


Group = tuple[str, str]
COUNTED: Final = ("changes", "unplayed", "unlogged", "partly_logged", "strangers")
"""Fields of `GroupFidelity` that are summed over all groups."""


@dataclass(frozen=True, eq=False)
class Logs:
    """What the clients of a cluster's groups logged."""

    of_group: Mapping[Group, GroupLogs]

    @classmethod
    def of_rows(cls, latencies: Iterable[LatenciesRow], moves: Iterable[QueueMovesRow]) -> Logs:
        """Return the rows of both tables, grouped by consumer group."""
        of_group: dict[Group, GroupLogs] = {}
        for latency in latencies:
            key = latency["cluster"], latency["consumer_group"]
            of_group.setdefault(key, GroupLogs()).latencies.append(latency)
        for move in moves:
            key = move["cluster"], move["consumer_group"]
            of_group.setdefault(key, GroupLogs()).moves.append(move)
        return cls(of_group)


@dataclass(frozen=True, slots=True)
class FidelityTask:
    """`Work` that compares the futures of groups with their logs, in the tasks that have the
    groups' rows.
    """

    VERB: ClassVar[str] = "compare"
    groups: BucketGroups
    options: PropagationOptions
    logs: Logs

    def __call__(self, parts: Iterable[Part], facts: Made[GroupFidelity]) -> TableRows:
        """Return no rows."""
        facts.made += map(self._compared, self.groups.whole(parts))
        return ()

    def _compared(self, history: GroupHistory) -> GroupFidelity:
        timeline = build_timeline(history, self.options.clock)
        logs = self.logs.of_group.get((history.cluster, history.consumer_group), GroupLogs())
        if is_unknown(history):  # requests in unknown groups take as long as in others
            logs, timeline = replace(logs, moves=[]), replace(timeline, queues=())
        rows_a_seed = max(1, len(timeline.changes) * len(timeline.queues))
        slices = _slices(self.options, max(1, SLICE_ROWS // rows_a_seed))
        return group_fidelity(timeline, logs, self.options.clock, slices)


def _slices(options: PropagationOptions, size: int) -> list[NDArray[np.int64]]:
    end = options.first_seed + options.seeds
    return [
        np.arange(begin, min(begin + size, end), dtype=np.int64)
        for begin in range(options.first_seed, end, size)
    ]


def write_fidelity(
    inputs: Any,
    output: Location,
    logs: Logs,
    options: PropagationOptions,
    limits: BadRowLimits,
    *,
    before_writing: Callable[[], object] | None = None,
    warn: Callable[[str], object] | None = None,
    runtime: Runtime = HERE,
) -> Written[FidelityFacts]:
    """Write ``fidelity``, ``fidelity_samples`` and ``rejected``.

    Memory: the logs, the futures of one group at a time, and 16 bytes per logged duration and
    future, and three times as much while they are summed.

    Args:
        inputs: The input tables, in the form of the runtime.
        output: The folder for the tables (`place_of`); none of them may exist in it.
        logs: What the clients logged.
        options: The groups to simulate, the number of futures, and the assumptions.
        limits: The limits on bad rows.
        before_writing: Called before the first table is written.
        warn: Receives a message about everything skipped.
        runtime: Where the job runs.

    Raises:
        InputRefused: The input has no events or too many bad rows.
        OutputExists: A table already exists in the folder.
    """
    with dealt_groups(runtime, inputs, options, warn=warn) as dealt:
        dealt.refuse(limits)
        with runtime.keep(dealt.rows, dealt.survey, SurveyStats) as kept:
            rejected = kept.facts().rejected
            refuse_rejected(dealt.checked.counts, rejected, limits)
            task = FidelityTask(dealt.groups, options, logs)
            made = runtime.run(dealt.rows, task, Made[GroupFidelity]).made
            samples = [sample for group in made for sample in group.samples]
            samples.sort(key=lambda sample: sample.key)
            clusters = sorted({cluster for cluster, _ in logs.of_group})
            rows = fidelity_rows(made, clusters, options.clock)
            listed = [sample.row() for sample in samples]
            if before_writing is not None:
                before_writing()
            with runtime.tables(output, WRITTEN) as tables:
                kept.write(tables, [REJECTED.name])
                for table, its in ((FIDELITY, rows), (FIDELITY_SAMPLES, listed)):
                    tables.add(table.name, pa.Table.from_pylist(its, table.arrow_schema()))
                written = tables.finish()
    numbers = {name: sum(getattr(group, name) for group in made) for name in COUNTED}
    facts: FidelityFacts = {
        "rows": rows,
        "samples": listed,
        "counts": {"groups": len(made), **numbers},
    }
    return Written(written, facts, rejected.codes, dealt.checked.counts)
