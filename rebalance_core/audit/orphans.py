"""Queues without an owner at the end, since when, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rebalance_core.audit.case import GroupCase
from rebalance_core.audit.stretches import Span, has_settled, span_of
from rebalance_core.audit.subscriptions import (
    is_broadcasting,
    stated_strategies,
    strategy_is_known,
    subscribers,
)
from rebalance_core.model.verdicts import FROZEN

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import OwnershipRow


def orphans(case: GroupCase) -> list[OwnershipRow]:
    """Queues without an owner at the end, past their window, of topics that a member subscribes.

    None where it is not known how the members divide.
    """
    if is_broadcasting(case) or not strategy_is_known(case):
        return []
    asked = {topic: bool(subscribers(case, topic)) for topic in {r["topic"] for r in case.owned}}
    return [
        row
        for row in case.owned
        if row["client_id"] is None
        and asked[row["topic"]]
        and has_settled(case, came_online(case, span_of(row)), row["topic"])
    ]


def came_online(case: GroupCase, span: Span) -> int:
    """The first epoch of the stretch from which on the group has members without a break."""
    epoch = span.epoch
    for row in case.offline:
        epoch = max(epoch, row["epoch"] + 1)
    return epoch


def reason(case: GroupCase, topic: str) -> str | None:
    """Return why the members' allocation leaves queues without an owner, where the members show
    it.
    """
    members = case.members
    ids = [row["client_id"] for row in members]
    if len({*map(stated_strategies(case), members)}) > 1:
        return "members use different strategies"
    if len({row["strategy"] for row in members}) > 1:
        return "clients of different languages do not divide alike"
    known = [row for row in members if row["subscriptions"] is not None]
    if len(subscribers(case, topic)) < len(known):
        return "a member that counts does not subscribe the topic"
    if len(ids) > len(set(ids)):
        return "a client id stands twice in the member list"
    if case.last_epoch is not None and case.last_epoch["status"] == FROZEN:
        return "the allocation failed (FROZEN)"
    if any(row["suspended"] for row in members):
        return "a suspended member does not take its share"
    return None
