"""The sizing job: read the load of all groups in tasks, and size the groups in the driver."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa

from rebalance_core.checks.row_limits import BadRowLimits
from rebalance_core.contracts import REJECTED
from rebalance_core.contracts.planning import SIZES
from rebalance_core.engine.options import refuse_rejected
from rebalance_core.engine.propagation import PropagationOptions
from rebalance_core.engine.table_writer import Written
from rebalance_core.planning.group_load import load_of
from rebalance_core.planning.group_sizes import Demand, Load, size_of
from rebalance_core.process.propagate import dealt_groups
from rebalance_core.process.propagation_pass import BucketGroups, SurveyStats
from rebalance_core.process.runtime import HERE, Made, Part, Runtime, TableRows
from rebalance_core.storage.place import Location

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import SizesRow


WRITTEN = (SIZES.name, REJECTED.name)
ROWS = "rows"
"""A fact about the written tables: the rows of ``sizes``."""


@dataclass(frozen=True, slots=True)
class LoadTask:
    """`Work` that measures the messages that the groups in buckets must read."""

    VERB: ClassVar[str] = "measure"
    groups: BucketGroups

    def __call__(self, parts: Iterable[Part], facts: Made[Load]) -> TableRows:
        """Return no rows."""
        facts.made += map(load_of, self.groups.whole(parts))
        return ()


def write_sizes(
    inputs: Any,
    output: Location,
    demand: Demand,
    limits: BadRowLimits,
    options: PropagationOptions,
    *,
    before_writing: Callable[[], object] | None = None,
    warn: Callable[[str], object] | None = None,
    runtime: Runtime = HERE,
) -> Written[dict[str, list[SizesRow]]]:
    """Write ``sizes``, a row for each group, and ``rejected``.

    Args:
        inputs: The input tables, in the form of the runtime.
        output: The folder for the tables (`place_of`); none of them may exist in it.
        demand: The demand to meet.
        limits: The limits on bad rows.
        options: The groups to process, and the maximum number of queues of a topic.
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
            loads = runtime.run(dealt.rows, LoadTask(dealt.groups), Made[Load]).made
            rows = [size_of(load, demand) for load in loads]
            rows.sort(key=lambda row: (row["cluster"], row["consumer_group"]))
            if before_writing is not None:
                before_writing()
            with runtime.tables(output, WRITTEN) as tables:
                kept.write(tables, [REJECTED.name])
                tables.add(SIZES.name, pa.Table.from_pylist(rows, SIZES.arrow_schema()))
                written = tables.finish()
    return Written(written, {ROWS: rows}, rejected.codes, dealt.checked.counts)
