"""Determines whether a group's allocation is known."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from rebalance_core.audit.group_snapshot import GroupSnapshot
from rebalance_core.audit.topic_readers import all_proxied, is_proxied
from rebalance_core.model.clients import is_java, profile_of_row
from rebalance_core.model.events import CONSUMER_JOIN
from rebalance_core.model.group_settings import BROADCASTING, GroupSettings

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import (
        MembershipsRow,
    )


def stated_strategies(group: GroupSnapshot) -> Callable[[MembershipsRow], str]:
    """Return a function that gives the configured strategy of a membership's client under its Java
    name.

    The row has the strategy as its client applies it: GO_CONSISTENT_HASH for CONSISTENT_HASH, and
    AVG for whatever strategy a group's C++ members are set to.
    """
    joins = [row for row in group.consumer_events if row["event_type"] == CONSUMER_JOIN]
    by_client = {row["client_id"]: row["strategy"] for row in joins}
    of_group = group.settings.get("strategy") or GroupSettings().strategy

    def stated(member: MembershipsRow) -> str:
        if is_java(member.get("language")):
            return str(member["strategy"])
        return str(by_client.get(member["client_id"]) or of_group).removeprefix("GO_")

    return stated


def strategy_is_known(group: GroupSnapshot) -> bool:
    """Return False if some member depends on a strategy or parameters that no file shows.

    The ledger's owners are then only an assumption.
    """
    unknown = any(row["rule_id"] == "INGEST_STRATEGY_UNKNOWN" for row in group.tables["findings"])
    return not reads_static_topic(group) and (not unknown or all_proxied(group.members))


def reads_static_topic(group: GroupSnapshot) -> bool:
    """Return True if clients allocate a topic's logical queues, which the ledger does not cover."""
    return any(row["rule_id"] == "INGEST_STATIC_TOPIC" for row in group.tables["findings"])


def lite_topics(group: GroupSnapshot) -> set[str | None]:
    """Return the topics of type LITE: the ledger does not cover the lite topics inside them."""
    found = group.tables["findings"]
    return {row["topic"] for row in found if row["rule_id"] == "INGEST_LITE_TOPIC"}


def shares_known(members: Iterable[MembershipsRow]) -> bool:
    """Return False if one of these rows belongs to a client whose queues are unknown."""
    return all(
        is_proxied(row)
        or row["message_model"] == BROADCASTING
        or profile_of_row(row).share_known(row["strategy"])
        for row in members
    )
