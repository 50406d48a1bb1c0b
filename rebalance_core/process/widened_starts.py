"""Widens the bounds of starts where a setting or the time of an observation is unknown.

The bounds cover the starts under every setting that the files may omit, and for every time at which
a dump or a copy of a store may have been made.
"""

from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rebalance_core.audit.group_snapshot import AuditRun
from rebalance_core.audit.rules.start_offsets import assumes_start
from rebalance_core.engine.fan_out import GROUP, joining
from rebalance_core.engine.ledger_pass import LedgerRows, prepare_tables, rows_of
from rebalance_core.kernels.engine_options import EngineOptions
from rebalance_core.kernels.table_columns import COMMITS, GROUPS, OFFSETS
from rebalance_core.model.timeline import EVER_MS
from rebalance_core.model.verdicts import FAILED, UNKNOWN
from rebalance_core.protocol.start_offset import CURRENT_MODES

_QUEUE = (*GROUP, "epoch", "topic", "broker_name", "queue_id")
STARTS = {"pull_starts": (*_QUEUE, "client_id"), "pop_starts": _QUEUE}
"""Tables of starts, and the columns that identify their rows."""
_MODE, _TIMESTAMP, _OBSERVED = "consume_from_where", "consume_timestamp_ms", "observed_ms"
_LOW, _HIGH, _OPEN = "start_offset_low", "start_offset_high", "open"

Tables = Mapping[str, pa.Table]


class WidenedStarts:
    """Widens the bounds of starts that depend on ingest's assumptions or corrections.

    A group whose ConsumeFromWhere was assumed is simulated under each setting, because a start
    without a commit is also the lower bound for later owners. Where the clock that dates dumps or
    copies of stores was wrong, or may have been, each of their observations is placed as early and
    as late as possible. The estimate does not change.

    Args:
        findings: the findings of ingest about the groups of the rows.
        runs: the audit runs by cluster, with their coverage.
    """

    def __init__(self, findings: pa.Table | None, runs: Mapping[str, AuditRun]) -> None:
        columns = [*GROUP, "rule_id", "evidence"]
        rows = [] if findings is None else findings.select(columns).to_pylist()
        assumed = sorted({(r["cluster"], r["consumer_group"]) for r in rows if assumes_start(r)})
        self._groups = pa.table(
            [pa.array(names, pa.string()) for names in zip(*assumed, strict=True)] or [[], []],
            names=[*GROUP],
        )
        of_clusters = ((name, run.coverage) for name, run in runs.items())
        self._errors = {
            name: covered.named_error_ms
            for name, covered in of_clusters
            # no start has bounds without a log (`CoveredStarts`)
            if any(map(covered.ends, covered.brokers)) or not covered.known
        }

    def widened(self, made: LedgerRows, tables: Tables, engine: EngineOptions) -> LedgerRows:
        """Yield the rows of a `ledger_pass`, with starts whose bounds cover every possible state.

        Args:
            made: the pass's result for the tables.
            tables: rows of whole groups, by table.
            engine: the pass's engine.
        """
        starts: dict[str, list[pa.Table]] = {}
        for variant in self._variants(tables):
            for name, rows in _starts(*variant, engine):
                starts.setdefault(name, []).append(rows)
        bounds = {name: _bounds(name, pa.concat_tables(rows)) for name, rows in starts.items()}
        for name, rows in made:
            yield name, _widen(name, rows, bounds[name]) if name in bounds else rows

    def _variants(self, tables: Tables) -> Iterator[tuple[Tables, bool]]:
        """Yield the tables of the uncertain groups, for each state that they may have had.

        Each comes with whether observations are shifted in it.
        """
        off = [name for name, errors in self._errors.items() if errors]
        if off:
            plain = {name: _plain(rows, GROUP) for name, rows in tables.items()}
            in_doubt = {n: rows.filter(pc.field("cluster").isin(off)) for n, rows in plain.items()}
            yield from self._at_each_time(in_doubt)
        if self._groups.num_rows and GROUPS in tables:
            mine = {n: joining(_plain(rows, GROUP), self._groups) for n, rows in tables.items()}
            for variant in _under_each_setting(mine) if mine[GROUPS].num_rows else ():
                yield from self._at_each_time(variant) if off else [(variant, False)]

    def _at_each_time(self, tables: Tables) -> Iterator[tuple[Tables, bool]]:
        """Yield the tables as observed, and with observations as early and as late as possible."""
        errors = {ms: late for of in self._errors.values() for ms, late in of.items()}
        yield tables, False
        for sign in (-1, 1):
            moved = {n: _moved(tables[n], errors, sign) for n in (OFFSETS, COMMITS) if n in tables}
            yield {**tables, **moved}, True


def _moved(table: pa.Table, errors: Mapping[int, int], sign: int) -> pa.Table:
    """Return the table with the observations at the moments in ``errors`` shifted by their error.

    Events dated by a client's log stay unchanged.
    """
    at_ms = table[_OBSERVED].to_numpy()
    moments = np.array(sorted(errors), np.int64)
    place = np.minimum(np.searchsorted(moments, at_ms), len(moments) - 1)
    affected = moments[place] == at_ms
    if "client_id" in table.schema.names:
        affected &= table["client_id"].is_null().to_numpy()
    late_ms = np.array([errors[ms] for ms in moments.tolist()], np.int64)[place]
    moved = at_ms + sign * np.where(affected, late_ms, 0)
    number = table.schema.get_field_index(_OBSERVED)
    return table.set_column(number, table.schema.field(number), pa.array(moved))


def _plain(table: pa.Table, names: tuple[str, ...]) -> pa.Table:
    """Return the table with these columns decoded."""
    for name in names:
        place = table.schema.get_field_index(name)
        if pa.types.is_dictionary(table.schema.field(place).type):
            table = table.set_column(place, name, table[name].cast(pa.string()))
    return table


def _under_each_setting(tables: Tables) -> Iterator[Tables]:
    """Yield the tables under each ConsumeFromWhere, placing an unknown timestamp after every
    message.

    Starts for earlier timestamps lie between these and offset 0, which FIRST_OFFSET gives.
    """
    settings = tables[GROUPS]
    mode, timestamp = (settings.schema.get_field_index(name) for name in (_MODE, _TIMESTAMP))
    searched = pc.fill_null(settings[_TIMESTAMP], EVER_MS)
    settings = settings.set_column(timestamp, settings.schema.field(timestamp), searched)
    for setting in CURRENT_MODES:
        modes = pa.array([setting] * settings.num_rows, pa.string())
        field = pa.field(_MODE, pa.string())
        yield {**tables, GROUPS: settings.set_column(mode, field, modes)}


def _starts(tables: Tables, moved: bool, engine: EngineOptions) -> Iterator[tuple[str, pa.Table]]:
    """Yield the starts that the tables give; where shifted observations leave a start unknown, it
    may be anywhere.
    """
    for name, rows in rows_of(prepare_tables(tables, engine, [*STARTS]), [*STARTS]):
        if name in STARTS:
            starts = _plain(pa.Table.from_batches([rows]), ("status", *STARTS[name]))
            if moved:
                place = starts.schema.get_field_index(_LOW)
                lows = pc.fill_null(starts[_LOW], 0)
                starts = starts.set_column(place, starts.schema.field(place), lows)
            yield name, starts


def _bounds(name: str, starts: pa.Table) -> pa.Table:
    """Return the lowest and highest start of each row, over the variants that have a start."""
    starts = starts.filter(pc.field("status") != FAILED)
    starts = starts.append_column(_OPEN, starts[_HIGH].is_null())
    over_all = [(_LOW, "min"), (_HIGH, "max"), (_OPEN, "any")]
    return starts.group_by([*STARTS[name]], use_threads=False).aggregate(over_all)


def _widen(name: str, rows: pa.RecordBatch, bounds: pa.Table) -> pa.RecordBatch:
    """Return the rows with these bounds; others remain unchanged.

    A start that fails only under the assumed setting is UNKNOWN.
    """
    if not len(rows):
        return rows
    key = STARTS[name]
    starts = _plain(pa.Table.from_batches([rows]), key).select(key)
    numbered = starts.append_column("_row", pa.array(range(len(rows)), pa.int64()))
    joined = numbered.join(bounds, keys=[*key], use_threads=False).sort_by("_row")
    (bounded,) = joined.combine_chunks().to_batches()
    covered = bounded[f"{_OPEN}_any"].is_valid()
    columns = {column: rows[column] for column in rows.schema.names}
    columns[_LOW] = pc.if_else(covered, bounded[f"{_LOW}_min"], columns[_LOW])
    highest = pc.if_else(
        bounded[f"{_OPEN}_any"], pa.scalar(None, pa.int64()), bounded[f"{_HIGH}_max"]
    )
    columns[_HIGH] = pc.if_else(covered, highest, columns[_HIGH])
    unsure = pc.and_(covered, pc.equal(columns["status"].cast(pa.string()), FAILED))
    for column, word in (("status", UNKNOWN), ("rule", None)):
        text = columns[column].cast(pa.string())
        text = pc.if_else(unsure, pa.scalar(word, pa.string()), text)
        columns[column] = text.cast(rows.schema.field(column).type)
    return pa.RecordBatch.from_arrays([*columns.values()], schema=rows.schema)
