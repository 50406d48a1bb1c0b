"""Events about a process that is not there: what the replay rejects, without the ledger."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pyarrow as pa

from rebalance_core.contracts import REJECTED
from rebalance_core.engine.fan_out import fan_out
from rebalance_core.engine.options import SimulationOptions, engine_options, group_pattern
from rebalance_core.engine.prepared import prepare_tables
from rebalance_core.engine.units import ROWS_PER_CHUNK


def unknown_members(
    tables: Mapping[str, pa.Table], options: SimulationOptions
) -> Iterator[pa.RecordBatch]:
    """Rows of ``rejected`` that a simulation adds to those of the checks; either engine's.

    Args:
        tables: the used rows of whole groups.
        options: what would be simulated.
    """
    grouped = fan_out(tables, group_pattern(options))
    engine = engine_options(tables, options)
    for begin, end in grouped.chunks(ROWS_PER_CHUNK):
        made = prepare_tables(grouped.of(begin, end), engine, (REJECTED.name,))
        yield from made.rows[REJECTED.name]
