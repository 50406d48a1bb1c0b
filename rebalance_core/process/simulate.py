"""A whole simulation in this process: Arrow tables in, the tables of the ledger out, written
and summed up.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

import pyarrow as pa

from rebalance_core.checks.input_tables import ArrowTables, input_tables_of
from rebalance_core.checks.row_checks import Checked, Rejections, check_tables
from rebalance_core.checks.row_limits import BadRowLimits, refuse_bad_rows
from rebalance_core.contracts import LEDGER_TABLES, REJECTED
from rebalance_core.engine.fan_out import ROWS_PER_CHUNK, fan_out
from rebalance_core.engine.ledger_pass import (
    LedgerRows,
    ledger_pass,
    prepare_tables,
    reference_pass,
    within,
)
from rebalance_core.engine.options import (
    REFERENCE,
    LedgerConfig,
    RowForecast,
    SimulationOptions,
    check_options,
    engine_options,
    group_pattern,
    refuse_rejected,
    row_forecast,
)
from rebalance_core.engine.routing import (
    Interests,
    interests_of,
    refuse_no_consumer,
    refuse_no_group,
    refuse_no_member,
)
from rebalance_core.engine.table_writer import LedgerFacts, TableWriters, Written, ledger_written
from rebalance_core.storage.place import Location

# A whole simulation in this process: Arrow tables in, the tables of the ledger out.


@dataclass(frozen=True, eq=False)
class ArrowLedger:
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
    queue_states: pa.Table
    rejected: pa.Table

    def tables(self) -> dict[str, pa.Table]:
        """The tables by name, in the contract's order."""
        return {name: getattr(self, name) for name in LEDGER_TABLES}


def simulate(
    inputs: ArrowTables | Mapping[str, pa.Table],
    options: SimulationOptions | None = None,
    limits: BadRowLimits | None = None,
) -> ArrowLedger:
    """Replay every group of the input, in this process.

    Cost: memory for the input and for the whole ledger; `simulate_and_write` holds
    only some groups' rows.

    Args:
        inputs: `read_input_tables`, or Arrow tables by name: ``cluster_events`` and, if known,
            ``consumer_groups``, ``queue_offsets`` and ``committed_offsets``, with the columns of
            `contracts.INPUT_TABLES`.
        options: see `SimulationOptions`.
        limits: refuse what `rebalance simulate` refuses with these; None: however many rows are
            bad, the others are used.

    Raises:
        UsageError: an unknown engine, or a strategy text that does not parse.
        InputRefused: an input lacks columns; with limits, it has no event or group, too many bad
            rows or lacks its beginning.
    """
    options = options or SimulationOptions()
    check_options(options)
    if not isinstance(inputs, ArrowTables):
        inputs = input_tables_of(inputs)
    checked = check_tables(inputs, max_queue_nums=options.max_queue_nums)
    if limits is not None:
        refuse_bad_rows(checked.counts, limits, checked.complaints)
        _refuse_nothing(checked)
        refuse_no_group_of(checked, options.group)
    found: dict[str, list[pa.RecordBatch]] = {name: [] for name in LEDGER_TABLES}
    for name, rows in ledger_rows(checked, options):
        if name in found:
            found[name].append(rows)
    tables = {
        name: pa.Table.from_batches(batches, LEDGER_TABLES[name].arrow_schema())
        for name, batches in found.items()
    }
    if limits is not None:
        rejected = Rejections.of(tables["rejected"])
        refuse_rejected(checked.counts, rejected, limits)
        refuse_no_member(options.group, _interests(checked), rejected)
    return ArrowLedger(**tables)


def ledger_rows(
    checked: Checked,
    options: SimulationOptions,
    progress: Callable[[int, int], object] | None = None,
    *,
    names_coded: bool = False,
) -> LedgerRows:
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


# Events about a process that is not there: what the replay rejects, without the ledger.


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


def refuse_no_group_of(checked: Checked, wanted: str | None) -> None:
    """Raise `model.errors.InputRefused` unless a group with consumer events is wanted."""
    refuse_no_group(wanted, _interests(checked))


def _refuse_nothing(checked: Checked) -> None:
    refuse_no_consumer(_interests(checked), checked.complaints)


def _interests(checked: Checked) -> Interests:
    found = (interests_of(name, rows) for name, rows in checked.tables.items())
    return Interests.merged(filter(None, found))


def checked_forecast(
    checked: Checked, options: SimulationOptions, limits: BadRowLimits
) -> RowForecast:
    """Return how a run would end for checked rows, if it simulates their groups as they are."""
    return row_forecast(
        checked.counts,
        checked.rejections,
        limits,
        lambda: refuse_no_group_of(checked, options.group),
        lambda: Rejections.of(checked.rejected, *unknown_members(checked.tables, options)),
    )


def simulation_forecast(
    tables: ArrowTables,
    options: SimulationOptions,
    limits: BadRowLimits,
    *,
    warn: Callable[[str], object],
) -> RowForecast:
    """Return how `simulate_and_write` would end for the rows of its input; `warn` hears of
    columns.
    """
    checked = check_tables(tables, max_queue_nums=options.max_queue_nums, warn=warn)

    def refuse() -> None:
        _refuse_nothing(checked)
        refuse_no_group_of(checked, options.group)

    def rejections() -> Rejections:
        found = Rejections.of(checked.rejected, *unknown_members(checked.tables, options))
        refuse_no_member(options.group, _interests(checked), found)
        return found

    return row_forecast(checked.counts, checked.rejections, limits, refuse, rejections)


# A whole simulation in this process: check the input, replay it, write the ledger, sum it up.


def simulate_and_write(
    inputs: ArrowTables,
    output: Location,
    options: SimulationOptions | None = None,
    config: LedgerConfig | None = None,
    *,
    before_writing: Callable[[], object] | None = None,
    warn: Callable[[str], object] | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> Written:
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
    checked = check_tables(inputs, max_queue_nums=options.max_queue_nums, warn=warn)
    refuse_bad_rows(checked.counts, config.bad_rows, checked.complaints)
    _refuse_nothing(checked)
    refuse_no_group_of(checked, options.group)
    if before_writing is not None:
        before_writing()
    facts = LedgerFacts()
    with TableWriters(output, tuple(LEDGER_TABLES)) as writers:
        for name, rows in ledger_rows(checked, options, progress, names_coded=True):
            facts.add(name, rows)
            if name in LEDGER_TABLES:
                writers.write(name, rows)
    refuse_rejected(checked.counts, facts.rejected, config.bad_rows)
    refuse_no_member(options.group, _interests(checked), facts.rejected)
    return ledger_written(writers.written(), facts, checked.counts, config.worst_groups)
