"""The columns of a variant, beside those of rows that were made under it."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from rebalance_core.contracts.table import Table
from rebalance_core.planning.variants import Variants


def of_variant(rows: pa.Table, variants: Variants, history: int, strategy: int) -> pa.Table:
    """The rows with scenario, strategy, of_rocketmq and seed."""
    chosen, swept = variants.histories[history], variants.strategies[strategy]
    values = {
        "scenario": pa.scalar(chosen.name, pa.string()),
        "strategy": pa.scalar(swept.text, pa.string()),
        "of_rocketmq": pa.scalar(swept.of_rocketmq),
        "seed": pa.scalar(chosen.seed, pa.int64()),
    }
    for name, value in values.items():
        rows = rows.append_column(name, pa.repeat(value, rows.num_rows))
    return rows


def as_table(rows: pa.Table, table: Table) -> pa.Table:
    """The columns of a contract, in its order and types, in buffers of their size.

    Arrow's aggregates have buffers for 32,768 rows, whatever they hold; many small results that
    wait to be written would take gigabytes.
    """
    typed = rows.select(table.column_names).cast(table.arrow_schema())
    return typed.take(pa.array(np.arange(typed.num_rows)))
