"""Bounds of ``pull_starts`` where no file states ConsumeFromWhere: they cover every setting."""

from collections.abc import Iterator, Mapping

import pyarrow as pa
import pyarrow.compute as pc

from rebalance_core.audit.coverage import FAR_MS
from rebalance_core.audit.rules.start_offsets import assumes_start
from rebalance_core.engine.fan_out import GROUP, joining
from rebalance_core.engine.ledger_pass import LedgerRows, prepare_tables, rows_of
from rebalance_core.kernels.coded_groups import EngineOptions
from rebalance_core.kernels.codes import GROUPS
from rebalance_core.model.verdicts import FAILED, UNKNOWN
from rebalance_core.protocol.start_offset import CURRENT_MODES

_STARTS = "pull_starts"
_START = (*GROUP, "epoch", "topic", "broker_name", "queue_id", "client_id")
_MODE, _TIMESTAMP = "consume_from_where", "consume_timestamp_ms"
_LOW, _HIGH, _OPEN = "start_offset_low", "start_offset_high", "open"


class AssumedStarts:
    """Widens the bounds of groups whose ConsumeFromWhere ingest had to assume.

    Such a group is simulated under each setting, as a start without a commit is also the lower
    bound of the owners that follow. The estimate stays what it is under the assumed setting.

    Args:
        findings: of ingest, on the groups of the rows.
    """

    def __init__(self, findings: pa.Table | None) -> None:
        columns = [*GROUP, "rule_id", "evidence"]
        rows = [] if findings is None else findings.select(columns).to_pylist()
        assumed = sorted({(r["cluster"], r["consumer_group"]) for r in rows if assumes_start(r)})
        self._groups = pa.table(
            [pa.array(names, pa.string()) for names in zip(*assumed, strict=True)] or [[], []],
            names=[*GROUP],
        )

    def widened(
        self, made: LedgerRows, tables: Mapping[str, pa.Table], engine: EngineOptions
    ) -> LedgerRows:
        """The rows of one `ledger_pass`, its starts with bounds over all settings.

        Args:
            made: what the pass made of the tables.
            tables: rows of whole groups, by table.
            engine: of the pass.
        """
        mine: dict[str, pa.Table] = {}
        if self._groups.num_rows and GROUPS in tables:
            mine = {n: joining(_plain(rows, GROUP), self._groups) for n, rows in tables.items()}
        assumed = bool(mine) and mine[GROUPS].num_rows
        starts = [*_under_each_setting(mine, engine)] if assumed else []
        if not starts:
            yield from made
            return
        bounds = _bounds(pa.concat_tables(starts))
        for name, rows in made:
            yield name, _widen(rows, bounds) if name == _STARTS else rows


def _plain(table: pa.Table, names: tuple[str, ...]) -> pa.Table:
    """The table with these columns as texts."""
    for name in names:
        place = table.schema.get_field_index(name)
        if pa.types.is_dictionary(table.schema.field(place).type):
            table = table.set_column(place, name, table[name].cast(pa.string()))
    return table


def _under_each_setting(
    tables: Mapping[str, pa.Table], engine: EngineOptions
) -> Iterator[pa.Table]:
    """The starts under each ConsumeFromWhere; an unknown timestamp is later than every message.

    The starts of earlier timestamps lie between those and offset 0, which FIRST_OFFSET gives.
    """
    settings = tables[GROUPS]
    mode, timestamp = (settings.schema.get_field_index(name) for name in (_MODE, _TIMESTAMP))
    searched = pc.fill_null(settings[_TIMESTAMP], FAR_MS)
    settings = settings.set_column(timestamp, settings.schema.field(timestamp), searched)
    for setting in CURRENT_MODES:
        modes = pa.array([setting] * settings.num_rows, pa.string())
        field = pa.field(_MODE, pa.string())
        given = {**tables, GROUPS: settings.set_column(mode, field, modes)}
        for name, rows in rows_of(prepare_tables(given, engine, [_STARTS]), [_STARTS]):
            if name == _STARTS:
                yield _plain(pa.Table.from_batches([rows]), ("status", *_START))


def _bounds(starts: pa.Table) -> pa.Table:
    """Lowest and highest start by `_START`, of the settings that give one."""
    starts = starts.filter(pc.field("status") != FAILED)
    starts = starts.append_column(_OPEN, starts[_HIGH].is_null())
    over_all = [(_LOW, "min"), (_HIGH, "max"), (_OPEN, "any")]
    return starts.group_by([*_START], use_threads=False).aggregate(over_all)


def _widen(rows: pa.RecordBatch, bounds: pa.Table) -> pa.RecordBatch:
    """The starts with these bounds, others as they are.

    A start that fails under the assumed setting alone is UNKNOWN.
    """
    if not len(rows):
        return rows
    starts = _plain(pa.Table.from_batches([rows]), _START).select(_START)
    numbered = starts.append_column("_row", pa.array(range(len(rows)), pa.int64()))
    joined = numbered.join(bounds, keys=[*_START], use_threads=False).sort_by("_row")
    (found,) = joined.combine_chunks().to_batches()
    covered = found[f"{_OPEN}_any"].is_valid()
    columns = {name: rows[name] for name in rows.schema.names}
    columns[_LOW] = pc.if_else(covered, found[f"{_LOW}_min"], columns[_LOW])
    highest = pc.if_else(found[f"{_OPEN}_any"], pa.scalar(None, pa.int64()), found[f"{_HIGH}_max"])
    columns[_HIGH] = pc.if_else(covered, highest, columns[_HIGH])
    unsure = pc.and_(covered, pc.equal(columns["status"].cast(pa.string()), FAILED))
    for name, word in (("status", UNKNOWN), ("rule", None)):
        text = columns[name].cast(pa.string())
        text = pc.if_else(unsure, pa.scalar(word, pa.string()), text)
        columns[name] = text.cast(rows.schema.field(name).type)
    return pa.RecordBatch.from_arrays([*columns.values()], schema=rows.schema)
