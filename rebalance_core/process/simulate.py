"""A whole simulation in this process: Arrow tables in, the tables of the ledger out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import pyarrow as pa

from rebalance_core.checks.input_tables import InputTables, input_tables_of
from rebalance_core.checks.row_checks import Checked, check_tables
from rebalance_core.contracts import LEDGER_TABLES
from rebalance_core.engine.fan_out import fan_out
from rebalance_core.engine.ledger_pass import Rows, ledger_pass, reference_pass
from rebalance_core.engine.options import (
    REFERENCE,
    SimulationOptions,
    check_options,
    engine_options,
    group_pattern,
)
from rebalance_core.engine.time_range import within
from rebalance_core.engine.units import ROWS_PER_CHUNK


@dataclass(frozen=True, eq=False)
class Ledger:
    """One Arrow table per ledger table, with the contract's columns; the order of rows is free."""

    epochs: pa.Table
    ownership: pa.Table
    diffs: pa.Table
    pull_starts: pa.Table
    memberships: pa.Table
    consumer_load: pa.Table
    group_metrics: pa.Table
    pop_reach: pa.Table
    pop_metrics: pa.Table
    rejected: pa.Table

    def tables(self) -> dict[str, pa.Table]:
        """The tables by name, in the contract's order."""
        return {name: getattr(self, name) for name in LEDGER_TABLES}


def simulate(
    inputs: InputTables | Mapping[str, pa.Table], options: SimulationOptions | None = None
) -> Ledger:
    """Replay every group of the input, in this process.

    Cost: memory for the input and for the whole ledger; `write_ledger.simulate_and_write` holds
    only some groups' rows.

    Args:
        inputs: `read_input_tables`, or Arrow tables by name: ``cluster_events`` and, if known,
            ``consumer_groups``, ``queue_offsets`` and ``committed_offsets``, with the columns of
            `contracts.INPUT_TABLES`.
        options: see `SimulationOptions`.

    Raises:
        UsageError: an unknown engine, or a strategy text that does not parse.
        InputRefused: an input lacks columns.
    """
    options = options or SimulationOptions()
    check_options(options)
    if not isinstance(inputs, InputTables):
        inputs = input_tables_of(inputs)
    checked = check_tables(inputs, max_queue_nums=options.max_queue_nums)
    found: dict[str, list[pa.RecordBatch]] = {name: [] for name in LEDGER_TABLES}
    for name, rows in ledger_rows(checked, options):
        if name in found:
            found[name].append(rows)
    tables = {
        name: pa.Table.from_batches(batches, LEDGER_TABLES[name].arrow_schema())
        for name, batches in found.items()
    }
    return Ledger(**tables)


def ledger_rows(
    checked: Checked,
    options: SimulationOptions,
    progress: Callable[[int, int], object] | None = None,
    *,
    names_coded: bool = False,
) -> Rows:
    """Rows of every table of the ledger, some groups after the others.

    Args:
        checked: the input.
        options: as `check_options` wants them.
        progress: told how many groups are done, of how many.
        names_coded: see `engine.ledger_pass.rows_of`; what a `TableWriter` takes.
    """
    for rows in checked.rejected.to_batches():
        yield "rejected", rows
    engine = engine_options(checked.tables, options)
    grouped = fan_out(checked.tables, group_pattern(options))
    alone = options.engine == REFERENCE
    make = reference_pass if alone else partial(ledger_pass, names_coded=names_coded)
    for begin, end in grouped.chunks(1 if alone else ROWS_PER_CHUNK):
        yield from within(make(grouped.of(begin, end), engine), options)
        if progress is not None:
            progress(end, len(grouped))
