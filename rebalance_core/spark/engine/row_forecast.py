"""How a run would end for the rows of its input; for dry runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self

from pyspark.sql import DataFrame

from rebalance_core.checks.row_counts import Complaint, RowCounts
from rebalance_core.checks.row_limits import (
    BadRowLimits,
    refuse_bad_rows,
    with_unknown_members,
)
from rebalance_core.model.errors import InputRefused
from rebalance_core.replay.group_replay import UNKNOWN_MEMBER
from rebalance_core.spark.engine.simulate import SimulationOptions, simulate_checked
from rebalance_core.spark.tables.quarantine import Quarantined
from rebalance_core.spark.tables.row_counts import complaints


@dataclass(frozen=True)
class RowForecast:
    """What a run would make of its rows.

    Attributes:
        counts: Rows of each input table; without a refusal those that the replay rejects count.
        complaints: What is wrong with them.
        refusal: What the run would raise; None: the rows let it go on.
    """

    counts: Mapping[str, RowCounts]
    complaints: Sequence[Complaint]
    refusal: InputRefused | None

    def without_rows(self) -> Self:
        """The same without any row's text: rows may name clients."""
        refusal = self.refusal and InputRefused(str(self.refusal).partition("\n")[0])
        return replace(self, complaints=(), refusal=refusal)


def row_forecast(
    checked: Quarantined,
    counts: Mapping[str, RowCounts],
    options: SimulationOptions,
    limits: BadRowLimits,
) -> RowForecast:
    """Apply the limits as a run does, before the replay and with what the replay rejects.

    Args:
        checked: the input.
        counts: its rows (`check_rows`).
        options: what would be simulated.
        limits: how many rows may be bad.
    """
    known: list[Complaint] = []

    def read(rejected: DataFrame) -> Sequence[Complaint]:
        known[:] = complaints(rejected)
        return known

    try:
        refuse_bad_rows(counts, limits, lambda: read(checked.rejected))
        with simulate_checked(checked, options) as ledger:
            read(ledger.rejected)
        unknown = sum(each.times for each in known if each.code == UNKNOWN_MEMBER)
        counts = with_unknown_members(counts, unknown)
        refuse_bad_rows(counts, limits, lambda: known)
    except InputRefused as refusal:
        return RowForecast(counts, known, refusal)
    return RowForecast(counts, known, None)
