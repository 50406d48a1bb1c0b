"""The generate job: make a synthetic fleet and write its tables."""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import ClassVar

from rebalance_core.engine.table_writer import Written
from rebalance_core.process.runtime import HERE, Part, Runtime, TableRows
from rebalance_core.storage.place import Location
from rebalance_core.synthetic.fleet import FleetPlan
from rebalance_core.synthetic.fleet_batches import fleet_batches
from rebalance_core.synthetic.table_parts import PARTS

_ENTITIES_PER_TASK = 2_000
"""Number of clusters, topics and groups per task; making them takes seconds."""


def generate_and_write(
    plan: FleetPlan,
    output: Location,
    *,
    before_writing: Callable[[], object] | None = None,
    runtime: Runtime = HERE,
) -> Written[dict[str, int]]:
    """Make the fleet of a plan and write its tables. Memory: the rows of some entities at a time.

    Args:
        plan: What to make.
        output: The folder for the tables (`place_of`); none of them may exist in it.
        before_writing: Called before the first table is written.
        runtime: Where the job runs.

    Raises:
        OutputExists: A table already exists in the folder.
    """
    if before_writing is not None:
        before_writing()
    entities = sum(part.entities(plan) for parts in PARTS.values() for part in parts)
    tasks = runtime.task_count(entities, _ENTITIES_PER_TASK)
    with runtime.tables(output, PARTS) as tables:
        rows, work = runtime.numbers(tasks, tasks), _GenerateTask(plan, tasks)
        events = tables.write(rows, work, _EventCounts, PARTS)
        return Written(tables.finish(), dict(sorted(events.items())))


class _EventCounts(Counter[str]):
    """The number of events by type."""

    merge = Counter.update


@dataclass(frozen=True, slots=True)
class _GenerateTask:
    """`Work` on the numbers of tasks; its facts are `_EventCounts`."""

    VERB: ClassVar[str] = "generate"
    plan: FleetPlan
    tasks: int

    def __call__(self, numbers: Iterable[Part], events: _EventCounts) -> TableRows:
        for task, _ in numbers:
            for name, batch in fleet_batches(self.plan, task, self.tasks):
                if name == "cluster_events":
                    events.update(batch["event_type"].to_pylist())
                yield name, batch
