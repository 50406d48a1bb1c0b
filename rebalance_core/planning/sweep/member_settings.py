"""What the members of a group state of themselves, over its whole history."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from rebalance_core.contracts.planning import CANNOT_POP
from rebalance_core.engine.units import GROUP
from rebalance_core.model import events
from rebalance_core.model.group_settings import (
    BROADCASTING,
    BROKER_REBALANCE,
    PROXY_REBALANCE,
    PUSH,
    GroupSettings,
)
from rebalance_core.planning.sweep.history_rows import EVENTS, GROUPS
from rebalance_core.protocol.members import asks_broker

Group = tuple[str, str]
"""Cluster and name."""
_OF_GROUP = (
    "consumer_type", "message_model", "ordered", "client_version", "rebalance_mode",
)  # fmt: skip
_OF_MEMBER = {
    "version": "client_version",
    "message_model": "message_model",
    "rebalance_mode": "rebalance_mode",
}
"""Columns of a CONSUMER_JOIN, and the settings of the group that stand for a null."""

PROXIED, _BROADCASTING, ORDERLY, PULLS, OLD = CANNOT_POP


@dataclass(frozen=True, slots=True)
class MemberSettings:
    """Of one kind of members; the group's where they state none."""

    consumer_type: str
    message_model: str
    ordered: bool
    client_version: str
    rebalance_mode: str

    @property
    def asks_broker(self) -> bool:
        """True if it pops what brokers serve by POP."""
        return asks_broker(
            self.rebalance_mode,
            self.consumer_type,
            self.message_model,
            self.ordered,
            self.client_version,
        )

    def cannot_pop(self) -> str | None:
        """Why it could not, asked to; None if it could (rocketmq.md §2.8)."""
        if self.rebalance_mode == PROXY_REBALANCE:
            return PROXIED
        if self.message_model == BROADCASTING:
            return _BROADCASTING
        if self.ordered:
            return ORDERLY
        if self.consumer_type != PUSH:
            return PULLS
        could = asks_broker(
            BROKER_REBALANCE, PUSH, self.message_model, ordered=False,
            client_version=self.client_version,
        )  # fmt: skip
        return None if could else OLD


def member_settings(tables: Mapping[str, pa.Table]) -> dict[Group, set[MemberSettings]]:
    """The kinds of members that each group ever has.

    Args:
        tables: Rows of cluster_events and, if there are any, consumer_groups, of whole groups.
    """
    rows = tables[EVENTS]
    joins = rows.filter(pc.equal(rows["event_type"], events.CONSUMER_JOIN))
    kinds = joins.group_by([*GROUP, *_OF_MEMBER], use_threads=False).aggregate([])
    of_groups = _group_settings(tables.get(GROUPS))
    default = GroupSettings()
    found: dict[Group, set[MemberSettings]] = {}
    for row in kinds.to_pylist():
        group = (row["cluster"], row["consumer_group"])
        settings = of_groups.get(group, default)
        values = {name: getattr(settings, name) for name in _OF_GROUP}
        values |= {
            name: row[column] for column, name in _OF_MEMBER.items() if row[column] is not None
        }
        found.setdefault(group, set()).add(MemberSettings(**values))
    return found


def cannot_pop(members: set[MemberSettings]) -> str | None:
    """Why a group cannot pop; None if all its members could."""
    reasons = {member.cannot_pop() for member in members}
    return next((reason for reason in CANNOT_POP if reason in reasons), None)


def _group_settings(rows: pa.Table | None) -> dict[Group, GroupSettings]:
    if rows is None:
        return {}
    return {
        (row["cluster"], row["consumer_group"]): GroupSettings(
            **{name: row[name] for name in _OF_GROUP if row[name] is not None}
        )
        for row in rows.select([*GROUP, *_OF_GROUP]).to_pylist()
    }
