"""One bucket of groups: its rows fanned out, and the rows of every ledger table made of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pyarrow as pa

from rebalance_core.contracts import INPUT_TABLES, LEDGER_TABLES
from rebalance_core.contracts.table import RAW, SOURCE
from rebalance_core.engine.fan_out import GroupedRows, fan_out
from rebalance_core.engine.ledger_pass import WHOLE, Rows, reference_pass, rows_of
from rebalance_core.engine.options import REFERENCE, SimulationOptions, group_pattern
from rebalance_core.engine.prepared import prepare_tables
from rebalance_core.engine.routing import Part
from rebalance_core.engine.time_range import within
from rebalance_core.engine.units import ROWS_PER_CHUNK
from rebalance_core.kernels.codes.coded_groups import EngineOptions
from rebalance_core.kernels.codes.codes import EVENTS

Giants = Mapping[tuple[str, str], list[Part]]
"""The parts of divided groups that a bucket makes, by cluster and group."""


def bucket_pass(
    tables: Mapping[str, pa.Table],
    giants: Giants,
    engine: EngineOptions,
    options: SimulationOptions,
) -> Rows:
    """Rows of every ledger table, some groups after the others.

    Those of the kernels have coded names (`rows_of`).

    Args:
        tables: The rows that `Routing.split` gave the bucket; a table without rows may be missing.
        giants: The groups that this bucket makes a part of; the replay divides none.
        engine: See `EngineOptions`.
        options: Of the simulation.
    """
    grouped = fan_out(with_events(tables), group_pattern(options))
    if options.engine == REFERENCE:
        for begin, end in grouped.chunks(1):
            yield from within(reference_pass(grouped.of(begin, end), engine), options)
        return
    for begin, end, part in _pieces(grouped, giants):
        rows = grouped.of(begin, end)
        made = prepare_tables(rows, engine, LEDGER_TABLES, part)
        yield from within(rows_of(made, names_coded=True), options)


def with_events(tables: Mapping[str, pa.Table]) -> Mapping[str, pa.Table]:
    """The tables of a bucket; one without an event has no row of cluster_events."""
    if EVENTS in tables:
        return tables
    schema = INPUT_TABLES[EVENTS].arrow_schema()
    empty = pa.schema([*schema, (SOURCE, pa.string()), (RAW, pa.string())]).empty_table()
    return {**tables, EVENTS: empty}


def _pieces(grouped: GroupedRows, giants: Giants) -> Iterator[tuple[int, int, Part]]:
    """Ranges of whole groups, and each part of a divided one."""
    names = zip(grouped.clusters.to_pylist(), grouped.groups.to_pylist(), strict=True)
    divided = {n: giants[name] for n, name in enumerate(names) if name in giants} if giants else {}
    for begin, end in grouped.chunks(ROWS_PER_CHUNK):
        for number in [n for n in divided if begin <= n < end]:
            if begin < number:
                yield begin, number, WHOLE
            for part in divided[number]:
                yield number, number + 1, part
            begin = number + 1
        if begin < end:
            yield begin, end, WHOLE
