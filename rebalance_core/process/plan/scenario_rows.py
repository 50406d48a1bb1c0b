"""What the summary of a plan shows of each scenario and strategy."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from rebalance_core.planning.sweep.plan_options import SUMS, VARIANT, with_ratio
from rebalance_core.process.plan.totals import Row, distinct, totals

_KEYS = (*VARIANT, "of_rocketmq")


def scenario_rows(summary: pa.Table) -> list[Row]:
    """One row for each scenario and strategy, over all groups and seeds, as plain values.

    What they mean is in `planning.sweep.scenario_figures`.

    Args:
        summary: ``plan_summary``.
    """
    seeds = distinct(summary, _KEYS, ["seed"])
    peaks = _peaks(summary)
    rows = []
    for total in totals(summary, _KEYS, SUMS):
        key = tuple(total[name] for name in _KEYS)
        row = {name: value for name, value in total.items() if name != "rows"}
        rows.append(with_ratio(row | peaks[key] | {"seeds": seeds[key]}))
    return rows


def _peaks(summary: pa.Table) -> dict[tuple[str, str, bool], Row]:
    """Peak ratios where they say something: not of BROADCASTING, not beside unowned queues."""
    table = summary.select([*_KEYS, "peak_messages_per_second"])
    for side in ("before", "after"):
        owned = pc.equal(summary[f"orphaned_{side}"], 0)
        sound = pc.and_(pc.is_null(summary["caveat"]), owned)
        ratio = summary[f"peak_ratio_{side}"]
        table = table.append_column(side, pc.if_else(sound, ratio, pa.scalar(None, pa.float64())))
    frozen = pc.cast(summary["frozen"], pa.int64())
    grouped = table.append_column("frozen", frozen).group_by(list(_KEYS), use_threads=False)
    found = grouped.aggregate(
        [("before", "mean"), ("after", "mean"), ("after", "max"), ("frozen", "sum"),
         ("peak_messages_per_second", "max")]
    )  # fmt: skip
    return {
        (row["scenario"], row["strategy"], row["of_rocketmq"]): {
            "mean_peak_ratio_before": row["before_mean"],
            "mean_peak_ratio": row["after_mean"],
            "worst_peak_ratio": row["after_max"],
            "peak_messages_per_second": row["peak_messages_per_second_max"],
            "frozen": row["frozen_sum"],
        }
        for row in found.to_pylist()
    }
