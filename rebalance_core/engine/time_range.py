"""The rows of a ledger that touch [from_ms, to_ms); a metric goes with its epoch."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from rebalance_core.contracts import SIMULATED_TABLES
from rebalance_core.engine.ledger_pass import Rows
from rebalance_core.engine.options import SimulationOptions
from rebalance_core.engine.units import GROUP

_OF_EPOCHS = ("group_metrics", "pop_metrics")
"""Tables whose rows go with their epoch."""
_EPOCH = (*GROUP, "epoch")


def within(rows: Rows, options: SimulationOptions) -> Iterator[tuple[str, pa.RecordBatch]]:
    """The rows of one `ledger_pass` that lie in the range, in their order.

    Args:
        rows: the epochs of a group come before its metrics.
        options: its ``from_ms`` and ``to_ms``; None: no bound.
    """
    if options.from_ms is None and options.to_ms is None:
        yield from rows
        return
    epochs: list[pa.Table] = []
    for name, batch in rows:
        table = pa.Table.from_batches([batch])
        if name in _OF_EPOCHS:
            table = _of_epochs(table, epochs)
        elif name in SIMULATED_TABLES:
            table = table.filter(_touches(name, options))
        if name == "epochs":
            epochs.append(table.select(_EPOCH))
        for kept in table.to_batches():
            yield name, kept


def _of_epochs(metrics: pa.Table, epochs: list[pa.Table]) -> pa.Table:
    """The metrics of these epochs."""
    shown = pa.concat_tables(epochs)
    numbers = pa.array(range(metrics.num_rows), pa.int64())  # of no rows it has no type by itself
    numbered = metrics.select(_EPOCH).append_column("_row", numbers)
    kept = numbered.join(shown, keys=list(_EPOCH), join_type="left semi")
    return metrics.take(kept["_row"].combine_chunks().sort())


def _touches(name: str, options: SimulationOptions) -> pc.Expression:
    columns = SIMULATED_TABLES[name].column_names
    if "from_ms" in columns:
        start, end = pc.field("from_ms"), pc.field("to_ms")
    else:
        start, end = pc.field("change_ms"), pc.field("change_ms") + 1
    touches = pc.scalar(True)
    if options.from_ms is not None:
        touches &= end.is_null() | (end > options.from_ms)
    if options.to_ms is not None:
        touches &= start < options.to_ms
    return touches
