"""The table ``rejected`` of a plan: what is wrong with the history as it was recorded."""

from __future__ import annotations

import pyarrow as pa

from rebalance_core.checks.row_checks import Checked, complaints
from rebalance_core.checks.row_limits import refuse_bad_rows, with_unknown_members
from rebalance_core.contracts import REJECTED
from rebalance_core.engine.facts import LedgerFacts
from rebalance_core.engine.table_writer import TableWriters
from rebalance_core.planning.sweep.plan_options import PlanConfig, recorded_history
from rebalance_core.process.unknown_members import unknown_members
from rebalance_core.replay.group_replay import UNKNOWN_MEMBER


def write_rejected(writers: TableWriters, checked: Checked, options: PlanConfig) -> dict[str, int]:
    """Write bad rows, and events of the recorded history about a process that is not there.

    Returns:
        How often each issue code occurs.

    Raises:
        InputRefused: There are too many.
    """
    unknown = unknown_members(checked.tables, recorded_history(options))
    found = [*checked.rejected.to_batches(), *unknown]
    facts = LedgerFacts()
    for rows in found:
        writers.write(REJECTED.name, rows)
        facts.add(REJECTED.name, rows)
    counts = with_unknown_members(checked.counts, facts.rejected[UNKNOWN_MEMBER])
    rejected = pa.Table.from_batches(found, REJECTED.arrow_schema())
    refuse_bad_rows(counts, options.bad_rows, lambda: complaints(rejected))
    return {code: times for code, times in sorted(facts.rejected.items()) if times}
