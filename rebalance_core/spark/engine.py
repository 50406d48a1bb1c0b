"""One task of the engine: whole groups to the kernels, groups of a rare shape to the replay."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from rebalance_core.contracts import LEDGER_TABLES
from rebalance_core.kernels.columns import EVENTS
from rebalance_core.kernels.fleet import FleetOptions, read_fleet
from rebalance_core.kernels.holdings import Holdings
from rebalance_core.kernels.ledger import ledger_rows
from rebalance_core.kernels.shapes import REASONS, REGULAR
from rebalance_core.kernels.world import World, build_world
from rebalance_core.replay.group_replay import GroupLedger, rejected_row
from rebalance_core.spark.fan_out import GROUP, TABLE
from rebalance_core.spark.group_rows import event_of, history_of, strategy_for
from rebalance_core.spark.packing import PART, PARTS, chunks, split_units, unpacked
from rebalance_core.spark.units import Dealt

Batches = Iterator[pa.RecordBatch]

ROWS_PER_BATCH = 1 << 16
"""Output rows that travel at once."""
BY_QUEUE = ("ownership", "diffs", "pull_starts")
"""Tables with rows of single queues: the parts of a giant group have their own."""

REPLAYED = "replayed"
REPLAYED_SCHEMA = pa.schema(
    [("cluster", pa.string()), ("consumer_group", pa.string()), ("reason", pa.string())]
)
REPLAYED_DDL = "cluster STRING, consumer_group STRING, reason STRING"


def table_of(table: str, dealt: Dealt, options: FleetOptions) -> DataFrame:
    """One ledger table, a pass over the dealt rows."""
    rows = needed_by(table, dealt)
    return rows.mapInArrow(_task(table, options), LEDGER_TABLES[table].plain_ddl)


def replayed_groups(dealt: Dealt, options: FleetOptions) -> DataFrame:
    """The groups that take the replay path (cluster, consumer_group), and the reason."""
    return needed_by(REPLAYED, dealt).mapInArrow(_task(REPLAYED, options), REPLAYED_DDL)


def needed_by(table: str, dealt: Dealt) -> DataFrame:
    """What the pass for a table reads: offsets are most of the rows, and only one table's."""
    return dealt.everything if table == "pull_starts" else dealt.members


def _task(table: str, options: FleetOptions) -> Callable[[Iterable[pa.RecordBatch]], Batches]:
    """The function for `mapInArrow`: Spark wants a plain one."""
    body = Task(table, options)

    def run(batches: Iterable[pa.RecordBatch]) -> Batches:
        yield from body(batches)

    return run


@dataclass(frozen=True, slots=True)
class Task:
    """What a task makes of its rows; small, so that it travels.

    ``table`` is a ledger table, or `REPLAYED`: the groups that take the replay path, and why.
    """

    table: str
    options: FleetOptions

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Batches:
        """The table's rows of all units of the task; units come whole and in order."""
        for chunk in chunks(batches) if self.table == "pull_starts" else unpacked(batches):
            for rows in self.rows(chunk):
                for start in range(0, rows.num_rows, ROWS_PER_BATCH):
                    yield rows.slice(start, ROWS_PER_BATCH)

    def rows(self, chunk: pa.Table) -> Batches:
        """The rows of some units: groups in one part together, parts of a giant group alone."""
        alone = pc.greater(chunk[PARTS], 1)
        yield from self._unit_rows(chunk.filter(pc.invert(alone)), (0, 1))
        giants = chunk.filter(alone)
        for unit in split_units(giants):
            part = (unit[PART][0].as_py(), unit[PARTS][0].as_py())
            if self.table in BY_QUEUE:
                yield from self._unit_rows(unit, part)
            elif part[0] == 0:
                yield from self._unit_rows(unit, (0, 1))

    def _unit_rows(self, rows: pa.Table, part: tuple[int, int]) -> Batches:
        if not rows.num_rows:
            return
        world = build_world(read_fleet(rows, self.options, strategy_for, table_column=TABLE))
        if self.table == REPLAYED:
            yield _replayed(world)
            return
        if self.table == "rejected":
            yield _unknown_members(world, rows)
        else:
            yield from ledger_rows(self.table, world, Holdings(world, part))
        if part[0] == 0:
            yield from self._replay(world, rows)

    def _replay(self, world: World, rows: pa.Table) -> Batches:
        """The groups the kernels do not take, one after the other."""
        left = np.flatnonzero(world.reason != REGULAR)
        if not len(left):
            return
        names = world.fleet.names
        wanted = {(names.clusters[g].as_py(), names.groups[g].as_py()) for g in left.tolist()}
        schema = LEDGER_TABLES[self.table].arrow_schema()
        for unit in split_units(rows):
            if (unit[GROUP[0]][0].as_py(), unit[GROUP[1]][0].as_py()) not in wanted:
                continue
            ledger = GroupLedger(
                history_of(
                    unit,
                    queue_offsets_given=self.options.queue_offsets_given,
                    committed_offsets_given=self.options.committed_offsets_given,
                ),
                strategy_for,
                include_retry_topics=self.options.include_retry_topics,
                strategy_override=self.options.strategy_override,
            )
            yield pa.RecordBatch.from_pylist(ledger.rows(self.table), schema)


def _replayed(world: World) -> pa.RecordBatch:
    left = pa.array(np.flatnonzero(world.reason != REGULAR))
    names = world.fleet.names
    codes = list(REASONS)
    reasons = [codes[reason] for reason in world.reason[left.to_numpy()].tolist()]
    return pa.RecordBatch.from_arrays(
        [names.clusters.take(left), names.groups.take(left), pa.array(reasons, pa.string())],
        schema=REPLAYED_SCHEMA,
    )


def _unknown_members(world: World, rows: pa.Table) -> pa.RecordBatch:
    """The events of regular groups that name a process which is not there."""
    events = world.fleet.events
    unknown = world.membership.unknown
    unknown = unknown[world.reason[events.group[unknown]] == REGULAR]
    given = rows.filter(pc.equal(rows[TABLE], EVENTS)).take(pa.array(events.row[unknown]))
    rejected = [rejected_row(event_of(row)) for row in given.to_pylist()]
    return pa.RecordBatch.from_pylist(rejected, LEDGER_TABLES["rejected"].arrow_schema())
