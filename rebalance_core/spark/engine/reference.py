"""The ledger by the plain replay, one group at a time: slow, and what the kernels answer to."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from rebalance_core.contracts import LEDGER_TABLES
from rebalance_core.engine.group_history import by_table, history_of, ledger_table, strategy_for
from rebalance_core.engine.units import GROUP
from rebalance_core.kernels.codes.coded_groups import EngineOptions
from rebalance_core.replay.group_replay import replay_group


def replayed_tables(
    rows: DataFrame, options: EngineOptions
) -> tuple[DataFrame, dict[str, DataFrame]]:
    """The ledger tables of rows of `fan_out`, and the frame they are filtered from.

    That frame has all tables' rows, from one pass, and is kept once computed.
    """
    schema = ", ".join(f"{name} {table.struct_type()}" for name, table in LEDGER_TABLES.items())
    ledger = rows.groupBy(*GROUP).applyInArrow(_replay(options), schema).persist()
    return ledger, {
        name: ledger.where(sf.col(name).isNotNull()).select(f"{name}.*") for name in LEDGER_TABLES
    }


def _replay(options: EngineOptions) -> Callable[[pa.Table], pa.Table]:
    """The UDF's body; it captures plain values only, so that it can travel."""

    def replay(group: pa.Table) -> pa.Table:
        history = history_of(
            by_table(group),
            queue_offsets_given=options.queue_offsets_given,
            committed_offsets_given=options.committed_offsets_given,
        )
        return ledger_table(
            replay_group(
                history,
                strategy_for,
                include_retry_topics=options.include_retry_topics,
                strategy_override=options.strategy_override,
            )
        )

    return replay
