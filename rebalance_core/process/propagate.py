"""The propagate job: simulate time over a whole input, with the same rows in any process and
partition.

A task that has all rows of a group surveys it and plays its futures. The futures of a group with
many queues and changes are divided among several tasks, and one task adds up their parts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from rebalance_core.checks.input_tables import ArrowTables, input_tables_of
from rebalance_core.checks.rejections import Rejections
from rebalance_core.checks.row_limits import BadRowLimits
from rebalance_core.contracts import REJECTED
from rebalance_core.contracts.propagation import PROPAGATION_TABLES
from rebalance_core.engine.options import (
    RowForecast,
    engine_options,
    like_pattern,
    refuse_rejected,
    row_forecast,
)
from rebalance_core.engine.propagation import PropagationFacts, PropagationOptions, survey_facts
from rebalance_core.engine.routing import (
    UNDIVIDED,
    Interests,
    Routing,
    interests_of,
    refuse_no_group,
    routing_of,
)
from rebalance_core.engine.table_writer import Written
from rebalance_core.process.pool import Progress
from rebalance_core.process.propagation_pass import (
    BucketGroups,
    Futures,
    SurveyStats,
    SurveyTask,
    add_up,
    play_futures,
)
from rebalance_core.process.runtime import HERE, CheckedInput, LocalRuntime, Rows, Runtime
from rebalance_core.replay.history import GroupHistory
from rebalance_core.storage.place import Location

PLAYED = tuple(PROPAGATION_TABLES)
WRITTEN = (*PLAYED, REJECTED.name)

PIECE_CELLS = 2_000_000
"""Consumer events x queues x seeds that a task plays in a few seconds."""
TASKS_PER_CORE = 4
"""More than one, because tasks take different times."""


def propagate(
    inputs: ArrowTables | Mapping[str, pa.Table],
    options: PropagationOptions | None = None,
    *,
    processes: int = 1,
) -> dict[str, pa.Table]:
    """Return the tables of `PROPAGATION_TABLES` and ``rejected`` of an input, in memory.

    Cost: linear in changes, members and seeds. The rows depend only on the input and the options.

    Args:
        inputs: As in `process.simulate.simulate`.
        options: The assumptions and the number of futures.
        processes: More than 1 starts this many worker processes; a script then needs a main guard.

    Raises:
        InputRefused: There are no events, or an input lacks columns.
    """
    options, runtime = options or PropagationOptions(), LocalRuntime(processes)
    if not isinstance(inputs, ArrowTables):
        inputs = input_tables_of(inputs)
    parts: dict[str, list[pa.RecordBatch]] = {name: [] for name in WRITTEN}
    with dealt_groups(runtime, inputs, options) as dealt:
        dealt.refuse(BadRowLimits(max_bad_share=1.0))
        surveyed = SurveyStats()
        for name, batch in dealt.survey(dealt.rows, surveyed):
            parts[name].append(batch)
        for name, batch in add_up(dealt.played(surveyed), PropagationFacts()):
            parts[name].append(batch)
    tables = {**PROPAGATION_TABLES, REJECTED.name: REJECTED}
    return {
        name: pa.Table.from_batches(batches, tables[name].arrow_schema())
        for name, batches in parts.items()
    }


def propagate_and_write(
    inputs: Any,
    output: Location,
    options: PropagationOptions,
    limits: BadRowLimits,
    *,
    partitions: int | None = None,
    before_writing: Callable[[], object] | None = None,
    warn: Callable[[str], object] | None = None,
    progress: Progress | None = None,
    runtime: Runtime = HERE,
) -> Written[dict[str, object]]:
    """Simulate the futures of every group, and write their results.

    Memory: in-process, the input and some pieces of work.

    Args:
        inputs: The input tables, in the form of the runtime.
        output: The folder for the tables (`place_of`); none of them may exist in it.
        options: The assumptions and the number of futures.
        limits: The limits on bad rows; rows that name an unknown process count as bad.
        partitions: The number of tasks on a runtime with several; None for some per core.
        before_writing: Called before anything is simulated or written.
        warn: Receives a message about everything skipped.
        progress: Called with the number of finished pieces, the total, and the name of the piece
            being waited for; only in-process.
        runtime: Where the job runs.

    Raises:
        InputRefused: The input has no events or too many bad rows.
        OutputExists: A table already exists in the folder.
    """
    with dealt_groups(runtime, inputs, options, partitions, warn) as dealt:
        dealt.refuse(limits)
        with runtime.keep(dealt.rows, dealt.survey, SurveyStats) as kept:
            surveyed = kept.facts()
            refuse_rejected(dealt.checked.counts, surveyed.rejected, limits)
            if before_writing is not None:
                before_writing()
            with runtime.tables(output, WRITTEN) as tables:
                kept.write(tables, [REJECTED.name])
                played = dealt.played(surveyed, progress)
                facts = tables.write(played, add_up, PropagationFacts, PLAYED)
                written = tables.finish()
    return Written(
        tables=written,
        facts=survey_facts(surveyed.surveys) | facts.totals(),
        rejected=surveyed.rejected.codes,
        inputs=dealt.checked.counts,
    )


def propagation_forecast(
    inputs: Any,
    options: PropagationOptions,
    limits: BadRowLimits,
    *,
    warn: Callable[[str], object] | None = None,
    runtime: Runtime = HERE,
) -> tuple[RowForecast, dict[str, object]]:
    """Return how `propagate_and_write` would judge the rows of its input, and how much work there
    is.

    The function plays and writes nothing; `survey_facts` are empty if the rows are refused.
    """
    surveyed = SurveyStats()

    def rejected() -> Rejections:
        surveyed.merge(runtime.run(dealt.rows, dealt.survey, SurveyStats))
        return surveyed.rejected

    with dealt_groups(runtime, inputs, options, warn=warn) as dealt:
        counts, rejections = dealt.checked.counts, dealt.checked.rejections
        forecast = row_forecast(counts, rejections, limits, dealt.refuse_no_group, rejected)
    return forecast, {} if forecast.refusal is not None else survey_facts(surveyed.surveys)


@dataclass(frozen=True, eq=False)
class DealtGroups:
    """A checked input and the rows of each task, from which a search for a rollout also begins."""

    runtime: Runtime
    checked: CheckedInput
    routing: Routing
    groups: BucketGroups
    options: PropagationOptions

    @property
    def rows(self) -> Rows:
        """The rows of each task."""
        return self.runtime.deal(self.checked, self.routing)

    @property
    def survey(self) -> SurveyTask:
        """The work that surveys the groups and makes the rows of ``rejected``."""
        return SurveyTask(self.groups, self.options)

    def refuse(self, limits: BadRowLimits) -> None:
        """Raise `model.errors.InputRefused` if too many rows are bad or no group is selected."""
        self.checked.refuse(limits)
        self.refuse_no_group()

    def refuse_no_group(self) -> None:
        """Raise `model.errors.InputRefused` if no group is selected."""
        refuse_no_group(self.options.group, self.checked.stats(Interests))

    def played(self, surveyed: SurveyStats, progress: Progress | None = None) -> Rows:
        """Return the played futures of all surveyed groups, as `add_up` takes them."""
        pieces = surveyed.pieces(self.options)
        futures = Futures(self.groups, self.options, pieces)
        return self.runtime.exchange(
            self.rows,
            futures,
            play_futures,
            self.routing.buckets,
            count=sum(pieces.values()),
            progress=progress,
        )


@contextmanager
def dealt_groups(
    runtime: Runtime,
    inputs: Any,
    options: PropagationOptions,
    partitions: int | None = None,
    warn: Callable[[str], object] | None = None,
) -> Iterator[DealtGroups]:
    """Yield the input, with each group next to those that share its client instances."""
    tasks = runtime.task_count(0, per_core=TASKS_PER_CORE, wanted=partitions)
    with runtime.check(
        inputs, (interests_of,), max_queue_nums=options.max_queue_nums, warn=warn
    ) as checked:
        pattern = None if options.group is None else like_pattern(options.group)
        cells = UNDIVIDED if tasks == 1 else max(1, PIECE_CELLS // options.seeds)
        sharing_groups = checked.sharing_groups()
        routing = routing_of(checked.stats(Interests), tasks, pattern, cells, sharing_groups)
        engine = engine_options(checked.tables)
        groups = BucketGroups(engine, options.group, routing.giants, sharing_groups, routing.guests)
        yield DealtGroups(runtime, checked, routing, groups, options)


def group_histories(inputs: ArrowTables, group: str | None = None) -> list[GroupHistory]:
    """Return the histories of the selected groups that have consumer events, without bad rows."""
    with dealt_groups(HERE, inputs, PropagationOptions(group=group)) as dealt:
        return list(dealt.groups.whole(dealt.rows))
