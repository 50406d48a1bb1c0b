"""Messages per second of the busiest member, by group."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from rebalance_core.engine.units import GROUP
from rebalance_core.process.plan.plan_ownership import QUEUE

_QUEUE = ["cluster", *QUEUE]
_RATE = "messages_per_second"


def last_rates(queue_rates: pa.Table) -> pa.Table:
    """The rate of each queue in the last stretch of ``queue_rates``."""
    ordered = queue_rates.select([*_QUEUE, "from_ms", _RATE]).sort_by("from_ms")
    last = ordered.group_by(_QUEUE, use_threads=False).aggregate([(_RATE, "last")])
    return last.rename_columns([*_QUEUE, _RATE])


def peak_rates(intervals: pa.Table, rates: pa.Table) -> pa.Table:
    """cluster, consumer_group and peak_messages_per_second, at the end.

    A queue without a rate is not counted. Hypothetical strategies are counted like the others.

    Args:
        intervals: Rows of the ledger's ``ownership``, of whole groups.
        rates: `last_rates`.
    """
    now = pc.and_(pc.is_null(intervals["to_ms"]), pc.is_valid(intervals["client_id"]))
    held = intervals.filter(now).select([*GROUP, *QUEUE, "client_id"])
    known = held.join(rates, keys=_QUEUE, join_type="inner", use_threads=False)
    member = [*GROUP, "client_id"]
    loads = known.group_by(member, use_threads=False).aggregate([(_RATE, "sum")])
    peaks = loads.group_by(list(GROUP), use_threads=False).aggregate([(f"{_RATE}_sum", "max")])
    peaks = peaks.select([*GROUP, f"{_RATE}_sum_max"])
    return peaks.rename_columns([*GROUP, "peak_messages_per_second"])
