"""Which parts each input table is made of, and their rows as Arrow batches."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from operator import attrgetter

import pyarrow as pa

from rebalance_core.contracts import INPUT_TABLES, Table
from rebalance_core.contracts.table import batch_of_columns, batch_of_rows
from rebalance_core.model.group_settings import INTERVALS
from rebalance_core.synthetic import offsets
from rebalance_core.synthetic.clusters import broker_events
from rebalance_core.synthetic.days import group_events
from rebalance_core.synthetic.draws import Row
from rebalance_core.synthetic.fleet import FleetPlan
from rebalance_core.synthetic.groups import group_of
from rebalance_core.synthetic.offsets import OffsetColumns
from rebalance_core.synthetic.topics import topic_events

# Which parts each input table is made of: an entity kind, how many there are, and its rows.

PartRows = list[Row] | OffsetColumns
"""Some rows of a table: as dicts, or as columns."""


@dataclass(frozen=True, slots=True)
class Part:
    """Rows of one table that come from one kind of entity, each entity by itself.

    ``entities`` counts them in a plan; ``rows(plan, number)`` are the rows of one, in pieces.
    """

    entities: Callable[[FleetPlan], int]
    rows: Callable[[FleetPlan, int], Iterator[PartRows]]


_clusters, _topics, _groups = map(attrgetter, ("clusters", "topics", "groups"))


def group_row(plan: FleetPlan, number: int) -> Iterator[list[Row]]:
    """The row of consumer_groups of one group; none if nobody exported it."""
    group = group_of(plan, number)
    if group.has_row:
        place = {"cluster": group.cluster.name, "consumer_group": group.name}
        stated = asdict(group.settings)
        usual = dict.fromkeys(
            ("notified", *INTERVALS)
        )  # null: as RocketMQ's brokers and clients do
        yield [place | stated | usual]


PARTS: dict[str, tuple[Part, ...]] = {
    "cluster_events": (
        Part(_clusters, broker_events),
        Part(_topics, topic_events),
        Part(_groups, group_events),
    ),
    "consumer_groups": (Part(_groups, group_row),),
    "queue_offsets": (Part(_topics, offsets.topic_offsets), Part(_groups, offsets.retry_offsets)),
    "committed_offsets": (Part(_groups, offsets.committed_offsets),),
}
"""By input table; what an entity's rows are depends on the plan and its number only."""


# The rows of a table's entities as Arrow batches.

ROWS_PER_BATCH = 20_000  # a piece stays together, so a batch may be larger


def fleet_batches(
    plan: FleetPlan, task: int = 0, tasks: int = 1
) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Rows of every table, with its name; one of several tasks makes every n-th entity.

    Args:
        plan: What to make.
        task: The number of the task, from 0 on.
        tasks: How many there are.
    """
    for name, parts in PARTS.items():
        for part in parts:
            numbers = range(task, part.entities(plan), tasks)
            for batch in arrow_batches(plan, INPUT_TABLES[name], part, numbers):
                yield name, batch


def arrow_batches(
    plan: FleetPlan, table: Table, part: Part, numbers: Iterable[int]
) -> Iterator[pa.RecordBatch]:
    """The rows of these entities as batches with the table's columns."""
    waiting: list[pa.RecordBatch] = []
    rows = 0
    for piece in (piece for number in numbers for piece in part.rows(plan, number)):
        batch = arrow_batch(table, piece)
        if batch.num_rows:
            waiting.append(batch)
            rows += batch.num_rows
        if rows >= ROWS_PER_BATCH:
            yield _joined(waiting)
            waiting, rows = [], 0
    if waiting:
        yield _joined(waiting)


def arrow_batch(table: Table, rows: PartRows) -> pa.RecordBatch:
    """A piece as one batch with all the table's columns; missing ones are null."""
    return batch_of_rows(table, rows) if isinstance(rows, list) else batch_of_columns(table, rows)


def _joined(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    return pa.Table.from_batches(batches).combine_chunks().to_batches()[0]
