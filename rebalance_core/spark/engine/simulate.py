"""From input tables to the ledger: check, fan out, assign to tasks, one pass for each table."""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from rebalance_core.contracts import LEDGER_TABLES, SIMULATED_TABLES
from rebalance_core.engine.options import (
    REFERENCE,
    SimulationOptions,
    check_options,
    engine_options,
    group_pattern,
)
from rebalance_core.engine.time_range import OF_EPOCHS
from rebalance_core.engine.units import GROUP
from rebalance_core.spark.engine.group_frames import fan_out, of_groups_with_events
from rebalance_core.spark.engine.ledger import Ledger
from rebalance_core.spark.engine.prepared_frames import prepared_rows
from rebalance_core.spark.engine.reference import replayed_tables
from rebalance_core.spark.engine.table_pass import replayed_groups, table_of
from rebalance_core.spark.engine.work_units import assign_to_tasks
from rebalance_core.spark.tables.quarantine import Quarantined, quarantine
from rebalance_core.spark.tables.read import InputTables


def simulate(inputs: InputTables, options: SimulationOptions | None = None) -> Ledger:
    """Replay every group of the input.

    Lazy; works in any session there is (notebook, Connect). The checked rows, and those rows
    assigned to tasks, are kept once computed, because every table is a pass over them;
    `Ledger.close` releases them, as does ``with simulate(...) as ledger:``.

    Raises:
        UsageError: an unknown engine, or a strategy text that does not parse.
        InputRefused: an input lacks columns.
    """
    options = options or SimulationOptions()
    checked = quarantine(inputs, max_queue_nums=options.max_queue_nums)
    ledger = simulate_checked(checked, options)
    return replace(ledger, kept=(*ledger.kept, checked.chunks))


def simulate_checked(checked: Quarantined, options: SimulationOptions) -> Ledger:
    """`simulate` of tables that `quarantine` checked; closing the ledger leaves those kept."""
    check_options(options)
    pattern, engine = group_pattern(options), engine_options(checked.tables, options)
    if options.engine == REFERENCE:
        fanned = of_groups_with_events(fan_out(checked.tables, pattern), checked.tables)
        kept, frames = replayed_tables(fanned, engine)
        replayed = fanned.select(*GROUP, sf.lit("REFERENCE").alias("reason")).distinct()
    else:
        assigned = assign_to_tasks(
            checked.tables,
            pattern,
            options.partitions,
            pack=lambda rows: prepared_rows(rows, engine),
        )
        kept = assigned.members
        frames = {name: table_of(name, assigned, engine) for name in LEDGER_TABLES}
        replayed = replayed_groups(assigned, engine)
    frames["rejected"] = checked.rejected.unionByName(frames["rejected"])
    return Ledger(**_within(frames, options), replayed=replayed, kept=(kept,))


def _within(frames: dict[str, DataFrame], options: SimulationOptions) -> dict[str, DataFrame]:
    """The rows that touch [from_ms, to_ms); a metric goes with its epoch."""
    if options.from_ms is None and options.to_ms is None:
        return frames
    within = dict(frames)
    for name, table in SIMULATED_TABLES.items():
        if "from_ms" in table.column_names:
            ends = sf.col("to_ms")
            within[name] = frames[name].where(_touches(options, sf.col("from_ms"), ends))
        elif "change_ms" in table.column_names:
            at = sf.col("change_ms")
            within[name] = frames[name].where(_touches(options, at, at + 1))
    epochs = within["epochs"].select(*GROUP, "epoch")
    for name in OF_EPOCHS:
        rows = frames[name].join(epochs, on=[*GROUP, "epoch"], how="left_semi")
        within[name] = rows.select(*SIMULATED_TABLES[name].column_names)
    return within


def _touches(options: SimulationOptions, start: Column, end: Column) -> Column:
    condition = sf.lit(True)
    if options.from_ms is not None:
        condition &= end.isNull() | (end > options.from_ms)
    if options.to_ms is not None:
        condition &= start < options.to_ms
    return condition
