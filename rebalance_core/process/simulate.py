"""The simulate job: check input tables, replay groups, write and summarise the ledger."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import pyarrow as pa

from rebalance_core.checks.digest import TableWritten, hash_sum
from rebalance_core.checks.input_tables import ArrowTables, input_tables_of
from rebalance_core.checks.rejections import Rejections
from rebalance_core.checks.row_limits import BadRowLimits
from rebalance_core.contracts import INPUT_TABLES, LEDGER_TABLES, REJECTED
from rebalance_core.engine.fan_out import ROWS_PER_CHUNK, fan_out, with_empty_events_if_missing
from rebalance_core.engine.ledger_pass import (
    Giants,
    LedgerRows,
    bucket_pass,
    prepare_tables,
    within,
)
from rebalance_core.engine.options import (
    REFERENCE,
    LedgerConfig,
    RowForecast,
    SimulationOptions,
    check_options,
    chosen_tables,
    engine_options,
    group_pattern,
    refuse_rejected,
    row_forecast,
)
from rebalance_core.engine.routing import (
    GIANT_CELLS,
    UNDIVIDED,
    Interests,
    interests_of,
    refuse_no_consumer,
    refuse_no_group,
    refuse_no_member,
    routing_of,
)
from rebalance_core.engine.table_writer import LedgerFacts, LedgerTotals, Written, ledger_written
from rebalance_core.kernels.engine_options import EngineOptions
from rebalance_core.model.errors import UsageError
from rebalance_core.process.runtime import HERE, CheckedInput, NoFacts, Part, Rows, Runtime
from rebalance_core.storage.place import Location


@dataclass(frozen=True, eq=False)
class ArrowLedger:
    """An Arrow table per ledger table, with the contract's columns and rows in any order."""

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
    pop_starts: pa.Table
    rejected: pa.Table

    def tables(self) -> dict[str, pa.Table]:
        """Return the tables by name, in the contract's order."""
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
        limits: refuse what `rebalance simulate` refuses with these limits; None accepts any number
            of bad rows and uses the others.

    Raises:
        UsageError: an unknown engine, or a strategy text that does not parse.
        InputRefused: an input lacks columns or, with limits, has no events or groups, too many bad
            rows or no beginning.
    """
    options = options or SimulationOptions()
    if options.tables is not None:
        raise UsageError(
            "tables: an ArrowLedger has all tables; use simulated_tables for some of them"
        )
    return ArrowLedger(**simulated_tables(inputs, options, limits))


def simulated_tables(
    inputs: ArrowTables | Mapping[str, pa.Table],
    options: SimulationOptions,
    limits: BadRowLimits | None = None,
) -> dict[str, pa.Table]:
    """Run `simulate` and return, by name, only the tables that the options select."""
    check_options(options)
    if not isinstance(inputs, ArrowTables):
        inputs = input_tables_of(inputs)
    with HERE.check(inputs, (interests_of,), max_queue_nums=options.max_queue_nums) as checked:
        if limits is not None:
            _refuse(checked, options, limits)
        names = chosen_tables(options)
        rows, work = ledger_tasks(HERE, checked, options, names, names_encoded=False)
        parts: dict[str, list[pa.RecordBatch]] = {name: [] for name in names}
        facts = LedgerFacts()
        for name, batch in work(rows, facts):
            parts[name].append(batch)
        if limits is not None:
            refuse_rejected(checked.counts, facts.rejected, limits)
            refuse_no_member(options.group, checked.stats(Interests), facts.rejected)
    return {
        name: pa.Table.from_batches(batches, LEDGER_TABLES[name].arrow_schema())
        for name, batches in parts.items()
    }


Progress = Callable[[int, int], object]
EPOCHS = "epochs"
_NO_ROWS = REJECTED.arrow_schema().empty_table()


@dataclass(frozen=True, slots=True)
class LedgerTask:
    """`Work` that makes the ledger of some buckets; its facts are `LedgerFacts`.

    Attributes:
        giants: The parts of divided groups, by bucket.
        engine: See `EngineOptions`.
        options: The simulation's options.
        wanted: The tables to yield, from the ledger and `engine.replayed.REPLAYED`; besides these,
            only ``epochs`` and ``rejected`` are made, for the facts.
        names_encoded: As in `bucket_pass`.
        state_end_ms: As in `bucket_pass`.
        progress: Called with the number of finished groups and the total.
    """

    VERB: ClassVar[str] = "simulate"
    giants: Mapping[int, Giants]
    engine: EngineOptions
    options: SimulationOptions
    wanted: Sequence[str]
    names_encoded: bool = True
    state_end_ms: int | None = None
    progress: Progress | None = None

    def __call__(self, parts: Iterable[Part], facts: LedgerFacts) -> LedgerRows:
        """Yield the rows of the requested tables."""
        for name, batch in self._rows(parts):
            facts.add(name, batch)
            if name in self.wanted:
                yield name, batch

    def _rows(self, parts: Iterable[Part]) -> LedgerRows:
        needed = {EPOCHS, REJECTED.name, *self.wanted}
        made = tuple(name for name in LEDGER_TABLES if name in needed)
        for bucket, tables in parts:
            for rejected in tables.pop(REJECTED.name, _NO_ROWS).to_batches():
                yield REJECTED.name, rejected
            if tables:
                giants = self.giants.get(bucket, {})
                yield from bucket_pass(
                    tables,
                    giants,
                    self.engine,
                    self.options,
                    names_encoded=self.names_encoded,
                    state_end_ms=self.state_end_ms,
                    progress=self.progress,
                    wanted=made,
                )


def ledger_tasks(
    runtime: Runtime,
    checked: CheckedInput,
    options: SimulationOptions,
    wanted: Iterable[str] = LEDGER_TABLES,
    *,
    names_encoded: bool = True,
    progress: Progress | None = None,
) -> tuple[Rows, LedgerTask]:
    """Return the checked rows, distributed to the tasks of their groups, and the work of the tasks.

    Args:
        runtime: Where the job runs.
        checked: The input, with its `Interests`.
        options: The simulation's options.
        wanted: As in `LedgerTask`.
        names_encoded: As in `LedgerTask`.
        progress: As in `LedgerTask`.
    """
    tasks = _tasks(runtime, checked, options)
    whole = UNDIVIDED if options.engine == REFERENCE or tasks == 1 else GIANT_CELLS
    pattern = group_pattern(options)
    routing = routing_of(checked.stats(Interests), tasks, pattern, giant_cells=whole, by_queue=True)
    engine = engine_options(checked.tables, options)
    work = LedgerTask(
        routing.giants,
        engine,
        options,
        tuple(wanted),
        names_encoded=names_encoded,
        state_end_ms=checked.state_end_ms,
        progress=progress,
    )
    return runtime.deal(checked, routing), work


def _tasks(runtime: Runtime, checked: CheckedInput, options: SimulationOptions) -> int:
    rows = sum(count.rows for count in checked.counts.values())
    return runtime.task_count(rows, wanted=options.partitions)


def unknown_members(
    tables: Mapping[str, pa.Table], options: SimulationOptions
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of ``rejected`` that a simulation by either engine adds to those of the
    checks.

    Args:
        tables: the used rows of whole groups.
        options: the simulation's options.
    """
    grouped = fan_out(tables, group_pattern(options))
    engine = engine_options(tables, options)
    for begin, end in grouped.chunks(ROWS_PER_CHUNK):
        made = prepare_tables(grouped.tables_of(begin, end), engine, (REJECTED.name,))
        yield from made.rows[REJECTED.name]


@dataclass(frozen=True, slots=True)
class RejectedTask:
    """`Work` on the rows of whole groups; its facts are the `Rejections` of the rows.

    Attributes:
        options: The simulation's options.
        state_end_ms: As in `bucket_pass`.
    """

    VERB: ClassVar[str] = "reject"
    options: SimulationOptions
    state_end_ms: int | None = None

    def __call__(self, parts: Iterable[Part], rejections: Rejections) -> LedgerRows:
        """Yield the rows of a task."""
        for _, tables in parts:
            bad = tables.pop(REJECTED.name, _NO_ROWS).to_batches()
            unknown = unknown_members(with_empty_events_if_missing(tables), self.options)
            made = ((REJECTED.name, rows) for rows in unknown)
            new = (rows for _, rows in within(made, self.options, self.state_end_ms))
            for rows in (*bad, *new):
                rejections.add(rows)
                yield REJECTED.name, rows


def _refuse(checked: CheckedInput, options: SimulationOptions, limits: BadRowLimits) -> None:
    checked.refuse(limits)
    _refuse_nothing(checked, options)


def _refuse_nothing(checked: CheckedInput, options: SimulationOptions) -> None:
    interests = checked.stats(Interests)
    refuse_no_consumer(interests, checked.rejections.complaints)
    refuse_no_group(options.group, interests)


def simulation_forecast(
    tables: Any,
    options: SimulationOptions,
    limits: BadRowLimits,
    *,
    warn: Callable[[str], object],
    runtime: Runtime = HERE,
) -> RowForecast:
    """Return how `simulate_and_write` would judge the rows of its input; ``warn`` receives messages
    about unknown columns.
    """
    with runtime.check(
        tables, (interests_of,), max_queue_nums=options.max_queue_nums, warn=warn
    ) as checked:
        interests, tasks = checked.stats(Interests), _tasks(runtime, checked, options)
        rows = runtime.deal(
            checked, routing_of(interests, tasks, group_pattern(options), UNDIVIDED)
        )

        def rejections() -> Rejections:
            task = RejectedTask(options, checked.state_end_ms)
            rejected = runtime.run(rows, task, Rejections)
            refuse_no_member(options.group, interests, rejected)
            return rejected

        return row_forecast(
            checked.counts,
            checked.rejections,
            limits,
            lambda: _refuse_nothing(checked, options),
            rejections,
        )


@dataclass(frozen=True, slots=True)
class AnyBucket:
    """`RowRouting` for rows that no group needs together; the rows of a table go to a single
    bucket.
    """

    buckets: int

    @property
    def units(self) -> int:
        """Return 0, because a group's rows need not be in one task."""
        return 0

    def split(self, table: str, rows: pa.Table) -> Iterator[tuple[int, pa.Table]]:
        """Yield all rows with the bucket of the first one."""
        yield hash_sum(INPUT_TABLES[table].columns, rows.slice(0, 1)) % self.buckets, rows


def used_rows(parts: Iterable[Part], facts: NoFacts) -> LedgerRows:
    """Yield the used rows by table, unchanged, as `Work` without facts."""
    for _, tables in parts:
        for name, rows in tables.items():
            if name in INPUT_TABLES:
                for batch in rows.select(INPUT_TABLES[name].column_names).to_batches():
                    yield name, batch


def write_state(
    runtime: Runtime, checked: CheckedInput, output: Location
) -> Mapping[str, TableWritten]:
    """Write the used rows of every input table, including those of the opening state."""
    names = tuple(checked.tables)
    rows = sum(count.rows + count.of_state for count in checked.counts.values())
    dealt = runtime.deal(checked, AnyBucket(runtime.task_count(rows)))
    with runtime.tables(output, names) as tables:
        tables.write(dealt, used_rows, NoFacts, names)
        return tables.finish()


def simulate_and_write(
    inputs: Any,
    output: Location,
    options: SimulationOptions | None = None,
    config: LedgerConfig | None = None,
    *,
    state_output: Location | None = None,
    before_writing: Callable[[], object] | None = None,
    warn: Callable[[str], object] | None = None,
    progress: Progress | None = None,
    runtime: Runtime = HERE,
) -> Written[LedgerTotals]:
    """Simulate and write the ledger. Memory: the input, and the rows of some groups at a time.

    Args:
        inputs: The input tables, in the form of the runtime.
        output: The folder for the tables of the ledger (`place_of`); none of them may exist in it.
        options: What to simulate; if ``partitions`` is None, there are as many tasks as the rows
            need.
        config: See `LedgerConfig`.
        state_output: The folder for the final state, from which a later run may begin; None writes
            none.
        before_writing: Called before the first table is written, once the bad rows are known to be
            within the limits.
        warn: Receives a message about everything skipped.
        progress: Called with the number of finished groups and the total; only in-process.
        runtime: Where the job runs.

    Raises:
        UsageError: An unknown engine, or a strategy text that does not parse.
        InputRefused: The input has no events or too many bad rows. Events of missing members count
            as bad but are only known once all tables are written.
        OutputExists: The folder already has one of the tables.
    """
    options, config = options or SimulationOptions(), config or LedgerConfig()
    check_options(options)
    with runtime.check(
        inputs, (interests_of,), max_queue_nums=options.max_queue_nums, warn=warn
    ) as checked:
        _refuse(checked, options, config.bad_rows)
        if before_writing is not None:
            before_writing()
        state = {} if state_output is None else write_state(runtime, checked, state_output)
        names = chosen_tables(options)
        rows, work = ledger_tasks(runtime, checked, options, names, progress=progress)
        with runtime.tables(output, names) as tables:
            facts = tables.write(rows, work, LedgerFacts, names)
            written = tables.finish()
    refuse_rejected(checked.counts, facts.rejected, config.bad_rows)
    refuse_no_member(options.group, checked.stats(Interests), facts.rejected)
    made = ledger_written(written, facts, checked.counts, config.worst_groups)
    return replace(made, state=state)
