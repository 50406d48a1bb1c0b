"""Makes ``losses``: the effect of each loss on each group, worst first."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, cast

import pyarrow as pa
import pyarrow.compute as pc

from rebalance_core.contracts.planning import LOSSES, VARIANT_KEY
from rebalance_core.engine.table_writer import ReadWritten
from rebalance_core.planning.variants import RECORDED, Variants, scenarios_of
from rebalance_core.report.loss_table import LossRow

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import LossesRow

_OF_VARIANT = (*VARIANT_KEY, "of_rocketmq")
_FIGURES = {
    "orphaned": "orphaned_after",
    "left_unread": "left_unread",
    "no_owner_s": "orphan_queue_seconds",
    "read_again": "read_again",
    "moved": "moved",
    "members": "members_after",
    "peak_queues": "peak_queues_after",
    "idle": "idle_after",
    "orphaned_before": "orphaned_before",
}
"""The columns of ``losses``, with the ``plan_summary`` column of each."""


def loss_rows(variants: Variants, summary: pa.Table) -> pa.Table:
    """Return the rows of ``losses``, in the order of their key.

    The worst loss leaves the most queues without an owner in the end. Ties are broken by the
    messages that stay unread, the seconds without an owner, the load of the busiest member, and the
    moves.

    Args:
        variants: What was planned.
        summary: ``plan_summary``.
    """
    lost = {each.name: each.loss for each in scenarios_of(variants) if each.loss is not None}
    schema = LOSSES.arrow_schema()
    if not lost:
        return schema.empty_table()
    columns = [*_OF_VARIANT, *_FIGURES.values()]
    wanted = pc.is_in(summary["scenario"], value_set=pa.array(list(lost), pa.string()))
    found = [
        {name: row[name] for name in _OF_VARIANT}
        | {"each": lost[row["scenario"]].each, "object": lost[row["scenario"]].name}
        | {name: row[column] for name, column in _FIGURES.items()}
        for row in summary.filter(wanted).select(columns).to_pylist()
        if lost[row["scenario"]].cluster == row["cluster"]
    ]
    rows = cast("list[LossesRow]", found)
    rows.sort(key=lambda row: (*suffering(row), row["scenario"]))
    ranks: dict[tuple[object, ...], int] = {}
    for row in rows:
        of = row["cluster"], row["consumer_group"], row["strategy"], row["seed"]
        row["rank"] = ranks[of] = ranks.get(of, 0) + 1
    key = [(name, "ascending") for name in LOSSES.key]
    return pa.Table.from_pylist(rows, schema).sort_by(key)


def suffering(row: LossesRow) -> tuple[float, ...]:
    """Return the sort key that puts the worst rows of ``losses`` first.

    Queues that had no owner before, such as those of a group without members, do not count.
    """
    lose_owner = max(0, row["orphaned"] - row["orphaned_before"])
    return (
        -lose_owner,
        -(row["left_unread"] or 0),
        -(row["no_owner_s"] or 0),
        -(row["peak_queues"] or 0),
        -(row["moved"] or 0),
    )


def worst_losses(read: ReadWritten) -> tuple[LossRow, ...]:
    """Return the worst single loss of each group as recorded, the worst-affected group first.

    With several scenarios or seeds, the worst of these counts. Strategies that groups do not use
    are left out.

    Args:
        read: Reads the tables of a plan.
    """
    rows = read(LOSSES.name)
    own = pc.and_(pc.equal(rows["strategy"], RECORDED), pc.equal(rows["rank"], 1))
    recorded = rows.filter(own).to_pylist()
    return tuple(map(_shown, worst_of_groups(recorded)))


def worst_of_groups(rows: Iterable[LossesRow]) -> list[LossesRow]:
    """Return the worst row of each group and strategy, worst first."""
    worst: dict[tuple[object, ...], LossesRow] = {}
    for row in sorted(rows, key=lambda row: (*suffering(row), row["cluster"], row["object"])):
        worst.setdefault((row["cluster"], row["consumer_group"], row["strategy"]), row)
    return list(worst.values())


def _shown(row: LossesRow) -> LossRow:
    return LossRow(
        cluster=row["cluster"],
        consumer_group=row["consumer_group"],
        kind=row["each"],
        lost=row["object"],
        orphaned=row["orphaned"],
        orphaned_before=row["orphaned_before"],
        left_unread=row["left_unread"],
        no_owner_s=row["no_owner_s"],
        moved=row["moved"],
        peak_queues=row["peak_queues"],
        idle=row["idle"],
    )
