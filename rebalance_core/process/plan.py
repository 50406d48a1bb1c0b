"""A plan in this process: the input of every history, one at a time, its ledger, and the tables."""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rebalance_core.checks.input_tables import ArrowTables, read_table
from rebalance_core.checks.row_checks import Checked, Rejections, check_table, check_tables
from rebalance_core.checks.row_limits import refuse_bad_rows
from rebalance_core.clockwork.options import MS_US
from rebalance_core.contracts import (
    INPUT_TABLES,
    LEDGER_TABLES,
    PLAN_OUTPUT_TABLES,
    REJECTED,
    planning,
)
from rebalance_core.contracts.table import RAW, SOURCE, TABLE, Table
from rebalance_core.engine.fan_out import (
    GROUP,
    ROWS_PER_CHUNK,
    GroupedRows,
    chunks,
    fan_out,
    joining,
)
from rebalance_core.engine.ledger_pass import (
    HistoriesWithMates,
    LedgerRows,
    history_of,
    prepare_tables,
    rows_of,
)
from rebalance_core.engine.mates import joins_of, mates_of
from rebalance_core.engine.options import RowForecast, engine_options, like_pattern, refuse_rejected
from rebalance_core.engine.table_writer import TableWriters
from rebalance_core.kernels.coded_groups import EngineOptions
from rebalance_core.model import events
from rebalance_core.planning.known_strategies import OWNERSHIP, STEPS
from rebalance_core.planning.sweep.member_settings import Group, popped_groups
from rebalance_core.planning.sweep.passes import (
    LEDGER_OF,
    STARTS,
    Sweep,
    hypothetical_rows,
    pass_rows,
    sweep_of,
)
from rebalance_core.planning.sweep.plan_edits import (
    EVENT_KEY,
    EVENTS,
    GROUPS,
    WARNING,
    ClusterEventChanges,
    EditPlan,
    EventFacts,
    HistoryRows,
    is_type,
    plan_edits,
)
from rebalance_core.planning.sweep.plan_options import (
    MOST_REASONS,
    PlanConfig,
    PlanResult,
    SweepOptions,
    recorded_history,
    refuse_bad_rates,
)
from rebalance_core.planning.sweep.transitions import (
    TRANSITIONS,
    SharedBeginnings,
    transition_table,
)
from rebalance_core.planning.sweep.transitions import Row as StepRow
from rebalance_core.planning.variants import Variants, first_edits
from rebalance_core.process.plan_summary import (
    SoundSteps,
    as_table,
    last_rates,
    of_variant,
    owners,
    peak_rates,
    plan_league,
    plan_summary,
    scenario_rows,
)
from rebalance_core.process.simulate import checked_forecast, refuse_no_group_of, unknown_members
from rebalance_core.replay.history import GroupHistory
from rebalance_core.storage.place import Location

# The input tables of every history of a plan, made one history at a time.

COMMITS = "committed_offsets"
_COLUMNS = INPUT_TABLES[EVENTS].column_names


@dataclass(frozen=True, eq=False)
class HistoryTables:
    """One history.

    Attributes:
        tables: Its input tables. Of the commits before the first edit only the last one of each
            queue is there: no counted step needs the others.
        first_ms: By cluster: its first edit.
        warnings: What edits of groups could not do, in words.
    """

    tables: Mapping[str, pa.Table]
    first_ms: Mapping[str, int]
    warnings: frozenset[str]


class Histories:
    """All histories of some groups. Memory: the events twice, and those of the history in use.

    Args:
        tables: The used rows by table name, with ``_source`` and ``_raw``: all that concerns the
            groups in any history.
        edits: What histories change.
        group_pattern: SQL LIKE pattern of the groups that are edited; None: all.
    """

    def __init__(
        self, tables: Mapping[str, pa.Table], edits: EditPlan, group_pattern: str | None = None
    ) -> None:
        self._given = tables
        self._edits = edits
        changed = any(history.scenario is not None for history in edits.edits.histories)
        self._rows = _by_group(tables, group_pattern) if changed else None
        of_group = is_type(tables[EVENTS], events.GROUP_EVENTS)
        self._shared = tables[EVENTS].filter(pc.invert(of_group)).select(_COLUMNS)

    def __len__(self) -> int:
        return len(self._edits.shared)

    def shared_beginnings(self, numbers: range) -> SharedBeginnings | None:
        """Keep what futures of these histories have in common; None for one alone."""
        if len(numbers) < 2:
            return None
        edits, cuts = self._edits.edits, dict[str, set[int]]()
        for number in numbers:
            for cluster, first_ms in first_edits(edits.histories[number], edits.ends).items():
                cuts.setdefault(cluster, set()).add(first_ms * MS_US)
        return SharedBeginnings({cluster: sorted(times) for cluster, times in cuts.items()})

    def warnings(self) -> set[str]:
        """List what the edits of groups could not do, in all histories."""
        found: set[str] = set()
        for number in range(len(self)):
            found |= self.of(number).warnings
        return found

    def of(self, number: int) -> HistoryTables:
        """One history; without a scenario the rows as they are given.

        Raises:
            InputRefused: As `EditsByHistory.edited`.
        """
        edits = self._edits.edits
        history = edits.histories[number]
        if history.scenario is None or self._rows is None:
            return HistoryTables(self._given, {}, frozenset())
        first_ms = first_edits(history, edits.ends)
        batches = self._rows.to_batches()
        parts = [HistoryRows(chunk, edits).of(number) for chunk in chunks(batches)]
        edited = pa.concat_tables(parts or [self._rows])
        tables = dict(self._given)
        tables[EVENTS] = pa.concat_tables(
            [_of_table(edited, EVENTS), _unread(_shared(self._shared, self._edits.shared[number]))]
        )
        if GROUPS in tables:
            tables[GROUPS] = _of_table(edited, GROUPS)
        if COMMITS in tables:
            tables[COMMITS] = _needed(tables[COMMITS], first_ms)
        warnings = edited.filter(pc.equal(edited[TABLE], WARNING))["source"].to_pylist()
        return HistoryTables(tables, first_ms, frozenset(warnings))


def first_groups(rows: pa.Table, count: int) -> frozenset[tuple[str, str]]:
    """The first groups by name; rows that name one each."""
    groups = rows.select(GROUP).group_by(list(GROUP), use_threads=False).aggregate([])
    first = groups.sort_by([(name, "ascending") for name in GROUP]).slice(0, count)
    return frozenset(zip(*(first[name].to_pylist() for name in GROUP), strict=True))


def _by_group(tables: Mapping[str, pa.Table], pattern: str | None) -> pa.Table:
    """Events and settings of groups as `HistoryRows` wants them, in the order of units."""
    given = tables[EVENTS]
    of_groups = given.filter(is_type(given, events.GROUP_EVENTS))
    parts = [_tagged(of_groups.select(_COLUMNS), EVENTS)]
    if GROUPS in tables:
        columns = INPUT_TABLES[GROUPS].column_names
        parts.append(_tagged(tables[GROUPS].select(columns), GROUPS))
    rows = pa.concat_tables(parts, promote_options="default")
    if pattern is not None:
        fits = pc.match_like(rows["consumer_group"], pattern)
        mates = chain.from_iterable(mates_of(joins_of(given)).values())
        names = pa.array(sorted({name for _, name in mates}), pa.string())
        rows = rows.filter(pc.or_(fits, pc.is_in(rows["consumer_group"], value_set=names)))
    return rows.sort_by([(name, "ascending") for name in GROUP])


def _shared(recorded: pa.Table, edits: ClusterEventChanges) -> pa.Table:
    """Events of brokers and topics as a history has them."""
    if edits.lacking.num_rows:
        recorded = joining(recorded, edits.lacking.select(EVENT_KEY), "left anti")
    return pa.concat_tables([recorded, edits.added.select(_COLUMNS)])


def _tagged(rows: pa.Table, table: str) -> pa.Table:
    return rows.append_column(TABLE, pa.repeat(table, rows.num_rows))


def _of_table(edited: pa.Table, name: str) -> pa.Table:
    rows = edited.filter(pc.equal(edited[TABLE], name))
    return _unread(rows.select(INPUT_TABLES[name].column_names))


def _unread(rows: pa.Table) -> pa.Table:
    """The rows; nobody asks where those of an edited history were read."""
    for column in (SOURCE, RAW):
        rows = rows.append_column(column, pa.nulls(rows.num_rows, pa.string()))
    return rows


def _needed(commits: pa.Table, first_ms: Mapping[str, int]) -> pa.Table:
    """Commits, without those that a later one replaces before the first counted step.

    Queues' offsets are all needed: CONSUME_FROM_TIMESTAMP looks far back.
    """
    clusters = pa.array(list(first_ms), pa.string())
    firsts = pa.array(list(first_ms.values()), pa.int64())
    first = firsts.take(pc.index_in(commits["cluster"].combine_chunks(), value_set=clusters))
    old = pc.fill_null(pc.less(commits["observed_ms"], first), False)
    before = commits.append_column("_row", pa.array(np.arange(commits.num_rows))).filter(old)
    queue = [name for name in INPUT_TABLES[COMMITS].key if name != "observed_ms"]
    last = before.sort_by("observed_ms").group_by(queue, use_threads=False)
    kept = np.asarray(pc.invert(old)).astype(np.bool_)
    kept[last.aggregate([("_row", "last")])["_row_last"].to_numpy()] = True
    return commits.filter(pa.array(kept))


# Every strategy over the groups of one history, some groups after the others.


@dataclass(frozen=True, eq=False)
class SweptGroups:
    """The rows of some groups, each complete, under one strategy.

    Attributes:
        strategy: Its number.
        passes: Rows of the passes as `schema_of` has them; what was not wanted or is not known is
            not there.
        done: Groups that are done once the rows of all strategies are there.
    """

    strategy: int
    passes: Mapping[str, pa.Table]
    done: int


def swept_groups(
    grouped: GroupedRows,
    sweep: Sweep,
    *,
    rows_per_chunk: int = ROWS_PER_CHUNK,
    timed_next: Callable[[str], object] | None = None,
    histories: HistoriesWithMates | None = None,
    shared: SharedBeginnings | None = None,
) -> Iterator[SweptGroups]:
    """The rows of all groups under all strategies.

    Args:
        grouped: The rows of one history.
        sweep: What is wanted; ``ownership_of`` also decides which intervals are made.
        rows_per_chunk: Input rows that are handled at once.
        timed_next: Told which group is simulated over time next.
        histories: Of the groups and their mates; None: nothing is simulated over time.
        shared: With the other histories of the plan; None: there is none.
    """
    for begin, end in grouped.chunks(rows_per_chunk):
        passes = [STEPS]
        if _any_owned(grouped, begin, end, sweep.ownership_of):
            passes.append(OWNERSHIP)
        kernels = [*passes, STARTS] if sweep.options.committed_offsets_given else passes
        tables = grouped.of(begin, end)
        timed = _transitions(grouped, begin, end, sweep, timed_next, histories, shared)
        for number, text in sweep.strategies:
            options = replace(sweep.options, strategy_override=text)
            made = _engine_passes(kernels, tables, options, sweep)
            yield SweptGroups(number, made | timed.get(number, {}), end)
        for number, mode in sweep.popped:
            popped = popped_groups(tables, mode)
            options = replace(sweep.options, strategy_override=None)
            made = _engine_passes(passes, popped.tables, options, sweep, popped.cannot_pop)
            yield SweptGroups(number, made, end)
        if sweep.hypothetical.strategies:
            yield from _hypothetical(grouped, begin, end, passes, sweep)


def _any_owned(
    grouped: GroupedRows, begin: int, end: int, groups: Collection[tuple[str, str]] | None
) -> bool:
    if groups is None:
        return True
    columns = (names.slice(begin, end - begin) for names in (grouped.clusters, grouped.groups))
    return any(pair in groups for pair in zip(*(c.to_pylist() for c in columns), strict=True))


def _transitions(
    grouped: GroupedRows,
    begin: int,
    end: int,
    sweep: Sweep,
    timed_next: Callable[[str], object] | None,
    histories: HistoriesWithMates | None,
    shared: SharedBeginnings | None,
) -> dict[int, dict[str, pa.Table]]:
    """By strategy what changes cost until they settled; groups that are not simulated lack."""
    rows: dict[int, list[StepRow]] = {}
    names = (column.slice(begin, end - begin) for column in (grouped.clusters, grouped.groups))
    for pair in zip(*(c.to_pylist() for c in names), strict=True):
        if histories is not None and sweep.transitions.wants(*pair):
            if timed_next is not None:
                timed_next("/".join(pair))
            costs = sweep.transitions.rows(
                histories.of(pair), sweep.strategies, sweep.first_ms, shared
            )
            for number, row in costs:
                rows.setdefault(number, []).append(row)
    return {number: {TRANSITIONS: transition_table(made)} for number, made in rows.items()}


def _engine_passes(
    passes: Collection[str],
    tables: Mapping[str, pa.Table],
    options: EngineOptions,
    sweep: Sweep,
    cannot_pop: Mapping[Group, str] | None = None,
) -> dict[str, pa.Table]:
    wanted = [name for made in passes for name in LEDGER_OF[made]]
    found: dict[str, list[pa.RecordBatch]] = {name: [] for name in wanted}
    for name, rows in rows_of(prepare_tables(tables, options, wanted), wanted):
        if name in found:
            found[name].append(rows)
    ledger = {
        name: pa.Table.from_batches(batches, LEDGER_TABLES[name].arrow_schema())
        for name, batches in found.items()
    }
    return {made: pass_rows(made, ledger, sweep.first_ms, tables, cannot_pop) for made in passes}


def _hypothetical(
    grouped: GroupedRows, begin: int, end: int, passes: Sequence[str], sweep: Sweep
) -> Iterator[SweptGroups]:
    """The groups one by one: each is replayed once for all strategies and passes."""
    made: dict[int, list[dict[str, pa.Table]]] = {}
    for group in range(begin, end):
        tables = grouped.of(group, group + 1)
        given = {name: rows for name, rows in tables.items() if name in (EVENTS, GROUPS)}
        history = history_of(given, sweep.options)
        for number, rows in sweep.hypothetical.tables(passes, history):
            tables_of_group = {
                p: hypothetical_rows(p, rows[p], sweep.first_ms, given) for p in passes
            }
            made.setdefault(number, []).append(tables_of_group)
    for number, parts in made.items():
        joined = {p: pa.concat_tables([part[p] for part in parts]) for p in passes}
        yield SweptGroups(number, joined, end)


# One pass over some groups: the rows of the tables of a plan, history by history.

Progress = Callable[[int, int, str | None], object]
OF_GROUPS = (planning.PLAN_STEPS.name, planning.PLAN_SUMMARY.name, planning.PLAN_OWNERSHIP.name)
"""The tables of a plan whose rows are of single groups."""


class PlanFacts:
    """Facts of a plan beside its tables; those of its parts are merged."""

    def __init__(self) -> None:
        self.sound = SoundSteps()
        self.warnings: set[str] = set()
        """What the edits of groups could not do."""

    def merge(self, other: PlanFacts) -> None:
        """Add the facts of other groups, or of other histories of the same."""
        self.sound.merge(other.sound)
        self.warnings |= other.warnings


@dataclass(frozen=True, eq=False)
class PlanPass:
    """Plan of some variants; small enough to be sent to every task.

    Attributes:
        variants: What is computed.
        edits: What the histories change.
        sweep: Of all histories; its ``first_ms`` is not used.
        group_pattern: SQL LIKE pattern of the groups wanted; None: all.
        shown: (cluster, group) that ``plan_ownership`` has; None: all.
        rates: `last_rates` of queues; None: they are not known.
    """

    variants: Variants
    edits: EditPlan
    sweep: Sweep
    group_pattern: str | None
    shown: Collection[tuple[str, str]] | None
    rates: pa.Table | None

    def histories(self, tables: Mapping[str, pa.Table]) -> Histories:
        """The histories of some rows."""
        return Histories(tables, self.edits, self.group_pattern)

    def rows(
        self,
        tables: Mapping[str, pa.Table],
        facts: PlanFacts,
        numbers: range,
        *,
        progress: Progress | None = None,
    ) -> LedgerRows:
        """Rows of the tables `OF_GROUPS`. Memory: the events of one history, rows of some groups.

        Args:
            tables: The used rows: all that concerns the groups in any history.
            facts: Gets those of the groups; complete once all rows are made.
            numbers: Of the histories wanted.
            progress: Told how many groups are done, of how many, and which is simulated over
                time; one counts in every history.

        Raises:
            InputRefused: An edit makes too many events at one instant.
        """
        histories, done, all_done = self.histories(tables), 0, 0
        shared = histories.shared_beginnings(numbers)

        def tell(group: str | None = None) -> None:
            if progress is not None:
                progress(all_done, total, group)

        for left, number in zip(range(len(numbers), 0, -1), numbers, strict=True):
            history = histories.of(number)
            facts.warnings |= history.warnings
            grouped = fan_out(history.tables, self.group_pattern)
            total = done + left * len(grouped)
            sweep = replace(self.sweep, first_ms=history.first_ms)
            timed = None
            if sweep.transitions.futures:
                timed = HistoriesWithMates.of_tables(
                    history.tables, sweep.options, self.group_pattern
                )
            for swept in swept_groups(
                grouped, sweep, timed_next=tell, histories=timed, shared=shared
            ):
                for table, rows in self._tables(number, history, swept, facts.sound):
                    yield from ((table.name, batch) for batch in rows.to_batches())
                all_done = done + swept.done
                tell()
            done += len(grouped)

    def _tables(
        self, number: int, history: HistoryTables, swept: SweptGroups, sound: SoundSteps
    ) -> Iterator[tuple[Table, pa.Table]]:
        """The rows of some groups of one history under one strategy."""

        def named(made: pa.Table) -> pa.Table:
            return of_variant(made, self.variants, number, swept.strategy)

        steps = as_table(named(swept.passes[STEPS]), planning.PLAN_STEPS)
        yield planning.PLAN_STEPS, steps
        sound.add(steps)
        intervals = swept.passes.get(OWNERSHIP)
        starts, timed = swept.passes.get(STARTS), swept.passes.get(TRANSITIONS)
        loads = None
        if intervals is not None:
            held = owners(intervals, history.first_ms, self.shown)
            yield planning.PLAN_OWNERSHIP, as_table(named(held), planning.PLAN_OWNERSHIP)
            if self.rates is not None:
                loads = named(peak_rates(intervals, self.rates))
        yield (
            planning.PLAN_SUMMARY,
            plan_summary(
                steps,
                None if starts is None else named(starts),
                loads,
                None if timed is None else named(timed),
            ),
        )


def plan_pass(
    variants: Variants,
    edits: EditPlan,
    members: pa.Table,
    given: Container[str],
    options: SweepOptions,
    rates: pa.Table | None,
) -> PlanPass:
    """The pass that makes a plan.

    Args:
        variants: What to compute.
        edits: What its histories change.
        members: Rows, each naming a group that has consumer events.
        given: Names of the input tables there are.
        options: See `SweepOptions`.
        rates: `last_rates` of queues; None: they are not known.
    """
    shown = None if options.group else first_groups(members, options.ownership_groups)
    # with rates the holders of every queue are wanted
    sweep = sweep_of(variants, options, given, {}, shown if rates is None else None, shown)
    pattern = None if options.group is None else like_pattern(options.group)
    return PlanPass(variants, edits, sweep, pattern, shown, rates)


# A whole plan in this process: check the input, compute every variant, write the tables.

# The table ``rejected`` of a plan: what is wrong with the history as it was recorded.


def write_rejected(writers: TableWriters, checked: Checked, options: PlanConfig) -> dict[str, int]:
    """Write bad rows, and events of the recorded history about a process that is not there.

    Returns:
        How often each issue code occurs.

    Raises:
        InputRefused: There are too many.
    """
    unknown = unknown_members(checked.tables, recorded_history(options))
    rejected = Rejections()
    for rows in (*checked.rejected.to_batches(), *unknown):
        writers.write(REJECTED.name, rows)
        rejected.add(rows)
    refuse_rejected(checked.counts, rejected, options.bad_rows)
    return rejected.codes


# The optional input ``queue_rates``: messages per second of each queue.

_RATE = "messages_per_second"


def read_queue_rates(location: str, input_format: str | None = None, *, name: str = "") -> pa.Table:
    """The rows of the table.

    Args:
        location: A local path.
        input_format: Of the files; None: by their names.
        name: What the message calls the table; the location if it is empty.

    Raises:
        InputRefused: Any row is bad; rates are few, and one left out would go unnoticed.
    """
    rows, _ = read_table(planning.QUEUE_RATES, location, input_format)
    checked = check_table(planning.QUEUE_RATES.name, rows)
    return good_rates(checked.tables[planning.QUEUE_RATES.name], checked.rejected, name or location)


def good_rates(good: pa.Table, rejected: pa.Table, name: str) -> pa.Table:
    """The used rows; `InputRefused` if any row is rejected, or a rate is none."""
    wrong = pc.or_(pc.is_nan(good[_RATE]), pc.less(good[_RATE], 0))
    negative = good[_RATE].filter(wrong).slice(0, MOST_REASONS).to_pylist()
    bad = rejected["issues"].slice(0, MOST_REASONS).to_pylist()
    refuse_bad_rates(name, [issues[0]["message"] for issues in bad], negative)
    return good


def run_plan(
    inputs: ArrowTables,
    variants: Variants,
    output: Location,
    options: PlanConfig | None = None,
    *,
    queue_rates: pa.Table | None = None,
    before_writing: Callable[[Mapping[str, int]], object] | None = None,
    warn: Callable[[str], object] | None = None,
    progress: Progress | None = None,
) -> PlanResult:
    """Compute and write a plan.

    Memory: the input, the events of one history, the rows of some groups, and ``plan_summary``.

    Args:
        inputs: The recorded history.
        variants: What to compute (`variants_of`).
        output: A folder (`place_of`), which gets ``rejected`` and the tables of a plan; none of
            them may be there.
        options: See `PlanConfig`.
        queue_rates: Rows of ``queue_rates`` (`read_queue_rates`); None: they are not known.
        before_writing: Called with the input's rows by table, once few enough are known to be bad,
            before the first table is written.
        warn: Gets a text for each input table with unknown columns, which are not read.
        progress: As of `PlanPass.rows`.

    Raises:
        InputRefused: The input has no event or too many bad rows, or an edit makes too many events
            at one instant. Events that name a member who is not there count too, and are known only
            once writing has begun.
        OutputExists: A table is in the folder already.
    """
    options = options or PlanConfig()
    checked = check_tables(inputs, max_queue_nums=options.max_queue_nums, warn=warn)
    refuse_bad_rows(checked.counts, options.bad_rows, checked.complaints)
    refuse_no_group_of(checked, options.group)
    if before_writing is not None:
        before_writing({name: count.rows for name, count in checked.counts.items()})
    rates = None if queue_rates is None else last_rates(queue_rates)
    planned = _plan_pass(checked, variants, options, rates)
    with TableWriters(output, (*PLAN_OUTPUT_TABLES, REJECTED.name)) as writers:
        rejected = write_rejected(writers, checked, options)
        facts, summary = PlanFacts(), list[pa.RecordBatch]()
        numbers = range(len(variants.histories))
        for table, batch in planned.rows(checked.tables, facts, numbers, progress=progress):
            writers.write(table, batch)
            if table == planning.PLAN_SUMMARY.name:
                summary.append(batch)
        whole = pa.Table.from_batches(summary, planning.PLAN_SUMMARY.arrow_schema())
        league = plan_league(whole, facts.sound)
        for batch in league.to_batches():
            writers.write(planning.PLAN_LEAGUE.name, batch)
    return PlanResult(
        tables=writers.written(),
        inputs=checked.counts,
        rejected=rejected,
        scenarios=scenario_rows(whole),
        league=league.to_pylist(),
        warnings=planned.edits.told(facts.warnings),
    )


def plan_forecast(
    inputs: ArrowTables,
    variants: Variants,
    options: PlanConfig | None = None,
    *,
    warn: Callable[[str], object] | None = None,
) -> tuple[RowForecast, tuple[str, ...]]:
    """How `run_plan` would end for the rows of its input, and its warnings; writes nothing."""
    options = options or PlanConfig()
    checked = check_tables(inputs, max_queue_nums=options.max_queue_nums, warn=warn)
    forecast = checked_forecast(checked, recorded_history(options), options.bad_rows)
    if forecast.refusal is not None:
        return forecast, ()
    planned = _plan_pass(checked, variants, options, None)
    return forecast, planned.edits.told(planned.histories(checked.tables).warnings())


def _plan_pass(
    checked: Checked, variants: Variants, options: PlanConfig, rates: pa.Table | None
) -> PlanPass:
    tables = checked.tables
    edits = plan_edits(EventFacts.of_tables(tables), variants)
    members = tables[EVENTS].filter(is_type(tables[EVENTS], events.CONSUMER_EVENTS))
    return plan_pass(variants, edits, members, tables, options, rates)


# The histories of a plan as the replay has them, to look into one group.


def planned_histories(
    inputs: ArrowTables, variants: Variants, group: str
) -> Iterator[tuple[str, int, GroupHistory]]:
    """(scenario, first edit in epoch ms, history) of the groups wanted in each history of a plan.

    Bad rows are left out. Without a scenario the first edit is -1.

    Args:
        inputs: the recorded history.
        variants: what to compute; strategies do not matter.
        group: a name, or a glob.
    """
    tables = check_tables(inputs).tables
    edits = plan_edits(EventFacts.of_tables(tables), variants)
    histories = Histories(tables, edits, like_pattern(group))
    for number, named in enumerate(variants.histories):
        edited = histories.of(number)
        grouped = fan_out(edited.tables, like_pattern(group))
        for place in range(len(grouped)):
            history = history_of(grouped.of(place, place + 1), engine_options(edited.tables))
            yield named.name, edited.first_ms.get(history.cluster, -1), history
