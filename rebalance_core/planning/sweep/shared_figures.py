"""What steps say of shared queues beside the ledger's figures: what a death costs, who cannot."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import pyarrow as pa
import pyarrow.compute as pc

from rebalance_core.engine.units import GROUP
from rebalance_core.model.group_settings import BROKER_REBALANCE, PROXY_REBALANCE
from rebalance_core.planning.sweep.member_settings import Group, MemberSettings, member_settings
from rebalance_core.planning.what_if.redelivery import Redelivery, redelivery_after_death

REDELIVERY = ("min_redelivery_s", "max_redelivery_s")


def with_shared_figures(
    steps: pa.Table, given: Mapping[str, pa.Table], cannot_pop: Mapping[Group, str]
) -> pa.Table:
    """The rows with `REDELIVERY` and ``cannot_pop``.

    The seconds are those of all kinds of members that the group ever has: no step has more or less.

    Args:
        steps: Rows of ``plan_steps``; these columns are replaced if they are there.
        given: Events and settings of their groups.
        cannot_pop: As of `PoppedGroups`.
    """
    shared = pc.fill_null(pc.greater(steps["pop_queues"], 0), False)
    members = member_settings(given) if pc.any(shared).as_py() else {}
    groups = list(zip(*(steps[name].to_pylist() for name in GROUP), strict=True))
    costs = {group: redelivery_of(kinds) for group, kinds in members.items()}
    found = [costs.get(group) for group in groups]
    for name, seconds in zip(
        REDELIVERY,
        ([of and of[0] for of in found], [of and of[1] for of in found]),
        strict=True,
    ):
        values = pa.array(seconds, pa.float64())
        steps = _with(steps, name, pc.if_else(shared, values, pa.scalar(None, pa.float64())))
    reasons = [cannot_pop.get(group) for group in groups]
    return _with(steps, "cannot_pop", pa.array(reasons, pa.string()))


def redelivery_of(members: Collection[MemberSettings]) -> tuple[float, float] | None:
    """Fewest and most seconds until what a member had taken comes again; None: none shares."""
    costs: list[Redelivery] = []
    if any(member.rebalance_mode == PROXY_REBALANCE for member in members):
        costs.append(redelivery_after_death(PROXY_REBALANCE))
    if any(member.asks_broker for member in members):
        costs.append(redelivery_after_death(BROKER_REBALANCE))
    if not costs:
        return None
    return min(cost.from_s for cost in costs), max(cost.to_s for cost in costs)


def _with(rows: pa.Table, name: str, values: pa.Array | pa.ChunkedArray) -> pa.Table:
    if name in rows.column_names:
        rows = rows.drop_columns([name])
    return rows.append_column(name, values)
