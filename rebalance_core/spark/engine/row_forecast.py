"""How a run on Spark would end for the rows of its input; for dry runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext

from pyspark.sql import DataFrame

from rebalance_core.checks.row_counts import Complaint, RowCounts
from rebalance_core.checks.row_limits import BadRowLimits, refuse_bad_rows, with_unknown_members
from rebalance_core.engine.options import SimulationOptions
from rebalance_core.engine.row_forecast import RowForecast
from rebalance_core.model.errors import InputRefused
from rebalance_core.replay.group_replay import UNKNOWN_MEMBER
from rebalance_core.spark.engine.ledger import Ledger
from rebalance_core.spark.engine.simulate import simulate_checked
from rebalance_core.spark.tables.check_rows import complaints
from rebalance_core.spark.tables.quarantine import Quarantined


def row_forecast(
    checked: Quarantined,
    counts: Mapping[str, RowCounts],
    options: SimulationOptions,
    limits: BadRowLimits,
    ledger: Ledger | None = None,
) -> RowForecast:
    """Apply the limits as a run does, before the replay and with what the replay rejects.

    Args:
        checked: the input.
        counts: its rows (`check_rows`).
        options: what would be simulated.
        limits: how many rows may be bad.
        ledger: of the input, where it is used for more; it stays open.
    """
    known: list[Complaint] = []

    def read(rejected: DataFrame) -> Sequence[Complaint]:
        known[:] = complaints(rejected)
        return known

    try:
        refuse_bad_rows(counts, limits, lambda: read(checked.rejected))
        simulated = simulate_checked(checked, options) if ledger is None else nullcontext(ledger)
        with simulated as rejecting:
            read(rejecting.rejected)
        unknown = sum(each.times for each in known if each.code == UNKNOWN_MEMBER)
        counts = with_unknown_members(counts, unknown)
        refuse_bad_rows(counts, limits, lambda: known)
    except InputRefused as refusal:
        return RowForecast(counts, known, refusal)
    return RowForecast(counts, known, None)
