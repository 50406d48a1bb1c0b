"""A whole simulation in this process: check the input, replay it, write the ledger, sum it up."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from rebalance_core.checks.conform import unknown_columns
from rebalance_core.checks.input_tables import InputTables
from rebalance_core.checks.row_checks import check_tables, complaints
from rebalance_core.checks.row_limits import refuse_bad_rows, with_unknown_members
from rebalance_core.contracts import LEDGER_TABLES
from rebalance_core.engine.facts import LedgerFacts
from rebalance_core.engine.interests import interests_of, refuse_no_group
from rebalance_core.engine.options import LedgerConfig, SimulationOptions, check_options
from rebalance_core.engine.table_writer import TableWriters
from rebalance_core.engine.written import LedgerWritten, ledger_written
from rebalance_core.kernels.codes.codes import EVENTS
from rebalance_core.process.simulate import ledger_rows
from rebalance_core.replay.group_replay import UNKNOWN_MEMBER
from rebalance_core.storage.locations import Location


def simulate_and_write(
    inputs: InputTables,
    output: Location,
    options: SimulationOptions | None = None,
    config: LedgerConfig | None = None,
    *,
    before_writing: Callable[[], object] | None = None,
    warn: Callable[[str], object] | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> LedgerWritten:
    """Simulate, and write the ledger. Memory: the input, and the rows of some groups at a time.

    Args:
        inputs: The input tables.
        output: A folder (`place_of`), which gets the tables of the ledger; none of them may be
            there.
        options: What to simulate.
        config: See `LedgerConfig`.
        before_writing: Called once few enough rows are bad, before the first table is written.
        warn: Gets a text for whatever was passed over.
        progress: Told how many groups are done, of how many.

    Raises:
        UsageError: An unknown engine, or a strategy text that does not parse.
        InputRefused: The input has no event or too many bad rows. Events that name a member who is
            not there count too, and are known only once all is written.
        OutputExists: A table is in the folder already.
    """
    options, config = options or SimulationOptions(), config or LedgerConfig()
    check_options(options)
    if warn is not None:
        for name, columns in inputs.unknown_columns.items():
            warn(unknown_columns(name, columns))
    checked = check_tables(inputs, max_queue_nums=options.max_queue_nums)

    refuse_bad_rows(checked.counts, config.bad_rows, lambda: complaints(checked.rejected))
    refuse_no_group(options.group, interests_of(EVENTS, checked.tables[EVENTS]))
    if before_writing is not None:
        before_writing()
    facts = LedgerFacts()
    rejected = []
    with TableWriters(output, tuple(LEDGER_TABLES)) as writers:
        for name, rows in ledger_rows(checked, options, progress, names_coded=True):
            facts.add(name, rows)
            if name in LEDGER_TABLES:
                writers.write(name, rows)
            if name == "rejected":
                rejected.append(rows)
    unknown = with_unknown_members(checked.counts, facts.rejected[UNKNOWN_MEMBER])
    schema = LEDGER_TABLES["rejected"].arrow_schema()
    written = pa.Table.from_batches(rejected, schema)
    refuse_bad_rows(unknown, config.bad_rows, lambda: complaints(written))
    return ledger_written(writers.written(), facts, checked.counts, config.worst_groups)
