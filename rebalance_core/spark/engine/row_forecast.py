"""How a run on Spark would end for the rows of its input; for dry runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from pyspark.sql import DataFrame

from rebalance_core.checks.row_counts import Complaint, RowCounts
from rebalance_core.checks.row_limits import BadRowLimits, refuse_bad_rows, with_unknown_members
from rebalance_core.engine.options import RowForecast
from rebalance_core.model.errors import InputRefused
from rebalance_core.replay.group_replay import UNKNOWN_MEMBER
from rebalance_core.spark.tables.check_rows import complaints
from rebalance_core.spark.tables.quarantine import Quarantined


def row_forecast(
    checked: Quarantined,
    counts: Mapping[str, RowCounts],
    limits: BadRowLimits,
    rejected: Callable[[], DataFrame],
    refuse: Callable[[], object] = lambda: None,
) -> RowForecast:
    """Apply the limits as a run does, before the replay and with what the replay rejects.

    Args:
        checked: the input.
        counts: its rows (`check_and_note`).
        limits: how many rows may be bad.
        rejected: gives the rows of ``rejected``, asked for once few enough rows are bad.
        refuse: raises `InputRefused` for what else a run would refuse.
    """
    known: list[Complaint] = []

    def read(rows: DataFrame) -> Sequence[Complaint]:
        known[:] = complaints(rows)
        return known

    try:
        refuse_bad_rows(counts, limits, lambda: read(checked.rejected))
        read(rejected())
        refuse()
        unknown = sum(each.times for each in known if each.code == UNKNOWN_MEMBER)
        counts = with_unknown_members(counts, unknown)
        refuse_bad_rows(counts, limits, lambda: known)
    except InputRefused as refusal:
        return RowForecast(counts, known, refusal)
    return RowForecast(counts, known, None)
