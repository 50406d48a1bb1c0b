"""Finds queues without an owner at the end, when they lost it, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rebalance_core.audit.group_snapshot import GroupSnapshot
from rebalance_core.audit.known_shares import stated_strategies, strategy_is_known
from rebalance_core.audit.stretches import Span, has_settled, span_of
from rebalance_core.audit.subscriptions import is_broadcasting, subscribers
from rebalance_core.model.verdicts import FROZEN

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import OwnershipRow


def orphans(group: GroupSnapshot) -> list[OwnershipRow]:
    """Return the queues without an owner at the end, past their window, in topics to which a member
    subscribes; None if the members' allocation is unknown.
    """
    if is_broadcasting(group) or not strategy_is_known(group):
        return []
    asked = {topic: bool(subscribers(group, topic)) for topic in {r["topic"] for r in group.owned}}
    return [
        row
        for row in group.owned
        if row["client_id"] is None
        and asked[row["topic"]]
        and has_settled(group, came_online(group, span_of(row)), row["topic"])
    ]


def came_online(group: GroupSnapshot, span: Span) -> int:
    """Return the first epoch of the stretch since which the group has members without a break."""
    epoch = span.epoch
    for row in group.offline:
        epoch = max(epoch, row["epoch"] + 1)
    return epoch


def reason(group: GroupSnapshot, topic: str) -> str | None:
    """Return why the members' allocation leaves queues without an owner, if the members show it."""
    members = group.members
    ids = [row["client_id"] for row in members]
    if len({*map(stated_strategies(group), members)}) > 1:
        return "members use different strategies"
    if len({row["strategy"] for row in members}) > 1:
        return "clients in different languages divide queues differently"
    stating = [row for row in members if row["subscriptions"] is not None]
    if len(subscribers(group, topic)) < len(stating):
        return "a counted member does not subscribe to the topic"
    if len(ids) > len(set(ids)):
        return "a client id appears twice in the member list"
    if group.last_epoch is not None and group.last_epoch["status"] == FROZEN:
        return "the allocation failed (FROZEN)"
    if any(row["suspended"] for row in members):
        return "a suspended member does not take its share"
    return None
