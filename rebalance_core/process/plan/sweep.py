"""Every strategy over the groups of one history, some groups after the others."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from rebalance_core.contracts import LEDGER_TABLES
from rebalance_core.engine.fan_out import GroupedRows
from rebalance_core.engine.group_history import history_of
from rebalance_core.engine.ledger_pass import rows_of
from rebalance_core.engine.prepared import prepare_tables
from rebalance_core.engine.units import ROWS_PER_CHUNK
from rebalance_core.kernels.codes.coded_groups import EngineOptions
from rebalance_core.planning.hypothetical import OWNERSHIP, STEPS
from rebalance_core.planning.sweep.history_rows import EVENTS, GROUPS
from rebalance_core.planning.sweep.member_settings import Group, popped_groups
from rebalance_core.planning.sweep.passes import (
    LEDGER_OF,
    STARTS,
    Sweep,
    hypothetical_rows,
    pass_rows,
)
from rebalance_core.planning.sweep.transitions import TRANSITIONS, Row, transition_table
from rebalance_core.replay.history import GroupHistory


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
    grouped: GroupedRows, sweep: Sweep, *, rows_per_chunk: int = ROWS_PER_CHUNK
) -> Iterator[SweptGroups]:
    """The rows of all groups under all strategies.

    Args:
        grouped: The rows of one history.
        sweep: What is wanted; ``ownership_of`` also decides which intervals are made.
        rows_per_chunk: Input rows that are handled at once.
    """
    for begin, end in grouped.chunks(rows_per_chunk):
        passes = [STEPS]
        if _any_owned(grouped, begin, end, sweep.ownership_of):
            passes.append(OWNERSHIP)
        kernels = [*passes, STARTS] if sweep.options.committed_offsets_given else passes
        tables = grouped.of(begin, end)
        timed = _transitions(grouped, begin, end, sweep)
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
    grouped: GroupedRows, begin: int, end: int, sweep: Sweep
) -> dict[int, dict[str, pa.Table]]:
    """By strategy what changes cost until they settled; groups that are not simulated lack."""
    rows: dict[int, list[Row]] = {}
    names = (column.slice(begin, end - begin) for column in (grouped.clusters, grouped.groups))
    for group, pair in enumerate(zip(*(c.to_pylist() for c in names), strict=True), begin):
        if sweep.transitions.wants(*pair):
            history = _history(grouped.of(group, group + 1), sweep)
            for number, row in sweep.transitions.rows(history, sweep.strategies, sweep.first_ms):
                rows.setdefault(number, []).append(row)
    return {number: {TRANSITIONS: transition_table(made)} for number, made in rows.items()}


def _history(tables: Mapping[str, pa.Table], sweep: Sweep) -> GroupHistory:
    return history_of(
        tables,
        queue_offsets_given=sweep.options.queue_offsets_given,
        committed_offsets_given=sweep.options.committed_offsets_given,
    )


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
        history = _history(given, sweep)
        for number, rows in sweep.hypothetical.tables(passes, history):
            tables_of_group = {
                p: hypothetical_rows(p, rows[p], sweep.first_ms, given) for p in passes
            }
            made.setdefault(number, []).append(tables_of_group)
    for number, parts in made.items():
        joined = {p: pa.concat_tables([part[p] for part in parts]) for p in passes}
        yield SweptGroups(number, joined, end)
