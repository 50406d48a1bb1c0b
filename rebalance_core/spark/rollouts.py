"""A search for a rollout on Spark: tasks play the plans of a round; rows as in a process."""

import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace

import pyarrow as pa
from pyspark.sql import SparkSession

from rebalance_core.checks.packed_rows import one_row
from rebalance_core.contracts import REJECTED
from rebalance_core.engine.options import refuse_rejected
from rebalance_core.engine.propagation import PropagationOptions
from rebalance_core.engine.table_writer import Written
from rebalance_core.planning.rollout import futures
from rebalance_core.planning.rollout.choice import search_plans
from rebalance_core.planning.rollout.futures import DeployedGroup, Figures, Rollouts, Slice
from rebalance_core.planning.rollout.search import Search
from rebalance_core.planning.sweep.plan_options import PlanConfig
from rebalance_core.process.rollouts import SEARCHED, WARNINGS, WRITTEN, rollouts_of, search_tables
from rebalance_core.spark.older_sparks import by_number
from rebalance_core.spark.own_pieces import in_tasks
from rebalance_core.spark.propagate import RoutedGroups, ready_groups
from rebalance_core.spark.read_tables import InputTables
from rebalance_core.spark.routed_rows import routed_tables
from rebalance_core.spark.sources import rows_of
from rebalance_core.spark.task_tables import task_tables

_DDL = "number INT, made BINARY"
_SCHEMA = pa.schema([("number", pa.int32()), ("made", pa.binary())])


def run_search(
    session: SparkSession,
    inputs: InputTables,
    search: Search,
    output: str,
    options: PlanConfig | None = None,
    *,
    before_writing: Callable[[Mapping[str, int]], object] | None = None,
    warn: Callable[[str], object] | None = None,
) -> Written:
    """As `process.rollouts.run_search`; the state of the groups to deploy comes to the driver.

    Args:
        session: Any session.
        inputs: The recorded history.
        search: What is asked.
        output: Path or URI of a folder.
        options: As there.
        before_writing: As there.
        warn: As there.
    """
    options = replace(options or PlanConfig(), group=search.groups)
    wanted = PropagationOptions(seeds=1, group=search.groups, max_queue_nums=options.max_queue_nums)
    with ready_groups(session, inputs, wanted, options.partitions, warn) as ready:
        ready.checked.refuse(options.bad_rows)
        ready.refuse_no_group()
        with closing(ready.looked_over()) as kept:
            rejected = kept.facts().rejected
            refuse_rejected(ready.checked.counts, rejected, options.bad_rows)
            rollouts, warnings = rollouts_of(search, _groups(ready), options)
            if before_writing is not None:
                before_writing({name: each.rows for name, each in ready.checked.counts.items()})
            with task_tables(session, output, WRITTEN) as tables:
                kept.write(tables, [REJECTED.name])
                searched = search_plans(
                    rollouts, lambda pieces: _played(session, rollouts, pieces, ready.tasks)
                )
                for name, rows in search_tables(searched).items():
                    tables.add(name, rows)
                written = tables.finish()
    facts = {SEARCHED: searched, WARNINGS: warnings}
    return Written(written, facts, rejected.codes, ready.checked.counts)


def _groups(ready: RoutedGroups) -> Iterator[DeployedGroup]:
    """The groups at rest, made where their rows are."""
    groups = ready.groups

    def rest(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for bucket, tables in routed_tables(batches):
            for history, parts in groups.groups(bucket, tables):
                if parts[0][0] == 0:
                    yield one_row(_SCHEMA, bucket, pickle.dumps(futures.deployed_group(history)))

    for row in rows_of(ready.routed.mapInArrow(in_tasks(rest), _DDL)):
        yield pickle.loads(row["made"])


def _played(
    session: SparkSession, rollouts: Rollouts, pieces: Sequence[Slice], tasks: int
) -> Iterator[Figures]:
    """Play pieces in their order; one Spark job a round."""
    if not pieces:
        return

    def play(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield one_row(_SCHEMA, number, pickle.dumps(rollouts.play(pieces[number])))

    numbers = session.createDataFrame([(number,) for number in range(len(pieces))], "number INT")
    spread = by_number(numbers, min(tasks, len(pieces)), "number")
    rows = rows_of(spread.mapInArrow(in_tasks(play), _DDL))
    made = {row["number"]: row["made"] for row in rows}
    yield from (pickle.loads(made[number]) for number in range(len(pieces)))
