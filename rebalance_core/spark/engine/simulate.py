"""From input tables to the ledger as DataFrames, for notebooks and applications."""

from __future__ import annotations

from contextlib import ExitStack

from rebalance_core.contracts import LEDGER_TABLES
from rebalance_core.engine.ledger_pass import REPLAYED
from rebalance_core.engine.options import SimulationOptions, check_options
from rebalance_core.engine.routing import interests_of
from rebalance_core.spark.engine.ledger import Ledger
from rebalance_core.spark.engine.write_ledger import ledger_tasks
from rebalance_core.spark.tables.check_rows import check_and_note
from rebalance_core.spark.tables.read import InputTables
from rebalance_core.spark.tables.task_tables import kept_tables

_TABLES = {**LEDGER_TABLES, REPLAYED.name: REPLAYED}


def simulate(inputs: InputTables, options: SimulationOptions | None = None) -> Ledger:
    """Replay every group of the input, in any session there is (notebook, Connect).

    The call checks the rows, which is one job; the first use of a table makes all tables, which is
    another. Checked rows and the rows of all tables are kept, packed, until `Ledger.close`, or the
    end of ``with simulate(...) as ledger:``. However many rows are bad, the others are used.

    Raises:
        UsageError: An unknown engine, or a strategy text that does not parse.
        InputRefused: An input lacks columns.
    """
    options = options or SimulationOptions()
    check_options(options)
    with ExitStack() as released:
        checked, counted = check_and_note(inputs, options.max_queue_nums, (interests_of,))
        released.callback(checked.close)
        session = checked.chunks.sparkSession
        rows, work = ledger_tasks(session, checked, counted, options, _TABLES)
        made = kept_tables(rows, work, _TABLES)
        released.pop_all()
    return Ledger(
        **{name: made.rows(name) for name in LEDGER_TABLES},
        replayed=made.rows(REPLAYED.name),
        kept=(made.chunks, checked.chunks),
    )
