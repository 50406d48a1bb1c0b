"""How a run in this process would end for the rows of its input; for dry runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pyarrow as pa

from rebalance_core.checks.row_checks import Checked, complaints
from rebalance_core.checks.row_limits import BadRowLimits, refuse_bad_rows, with_unknown_members
from rebalance_core.engine.interests import interests_of, refuse_no_group
from rebalance_core.engine.options import SimulationOptions
from rebalance_core.engine.row_forecast import RowForecast
from rebalance_core.kernels.codes.codes import EVENTS
from rebalance_core.model.errors import InputRefused
from rebalance_core.process.unknown_members import unknown_members
from rebalance_core.replay.group_replay import UNKNOWN_MEMBER


def row_forecast(
    checked: Checked,
    options: SimulationOptions,
    limits: BadRowLimits,
    simulated: Callable[[], Iterable[pa.RecordBatch]] | None = None,
) -> RowForecast:
    """Apply the limits as a run does, before the replay and with what the replay rejects.

    Args:
        checked: the input.
        options: what would be simulated.
        limits: how many rows may be bad.
        simulated: simulates, called once few enough rows are bad, and gives what the replay
            rejects; None: nothing but that is wanted.
    """
    counts, known = checked.counts, complaints(checked.rejected)
    try:
        refuse_bad_rows(counts, limits, lambda: known)
        refuse_no_group(options.group, interests_of(EVENTS, checked.tables[EVENTS]))
        more = unknown_members(checked.tables, options) if simulated is None else simulated()
        rejected = [*checked.rejected.to_batches(), *more]
        known = complaints(pa.Table.from_batches(rejected, checked.rejected.schema))
        unknown = sum(each.times for each in known if each.code == UNKNOWN_MEMBER)
        counts = with_unknown_members(counts, unknown)
        refuse_bad_rows(counts, limits, lambda: known)
    except InputRefused as refusal:
        return RowForecast(counts, known, refusal)
    return RowForecast(counts, known, None)
