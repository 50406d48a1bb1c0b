"""A synthetic fleet made and written in this process."""

from collections import Counter
from collections.abc import Callable

from rebalance_core.engine.table_writer import TableWriters, Written
from rebalance_core.storage.place import Location
from rebalance_core.synthetic.fleet import FleetPlan
from rebalance_core.synthetic.table_parts import PARTS, fleet_batches


def generate_and_write(
    plan: FleetPlan, output: Location, *, before_writing: Callable[[], object] | None = None
) -> Written:
    """Make the fleet of a plan and write its tables. Memory: some entities' rows at a time.

    Args:
        plan: What to make.
        output: A folder (`place_of`), which gets the tables; none of them may be there.
        before_writing: Called before the first table is written.

    Raises:
        OutputExists: A table is in the folder already.
    """
    if before_writing is not None:
        before_writing()
    events: Counter[str] = Counter()
    with TableWriters(output, tuple(PARTS)) as writers:
        for name, batch in fleet_batches(plan):
            writers.write(name, batch)
            if name == "cluster_events":
                events.update(batch["event_type"].to_pylist())
    return Written(writers.written(), dict(sorted(events.items())))
