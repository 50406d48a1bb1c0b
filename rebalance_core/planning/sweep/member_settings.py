"""Settings that the members of a group state, and groups rewritten as if they had always popped."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from rebalance_core.contracts.planning import CANNOT_POP
from rebalance_core.engine.fan_out import GROUP
from rebalance_core.model import events
from rebalance_core.model.clients import rules_version
from rebalance_core.model.group_settings import (
    BROADCASTING,
    BROKER_REBALANCE,
    BROKER_STRATEGIES,
    PROXY_REBALANCE,
    PUSH,
    GroupSettings,
)
from rebalance_core.model.request_mode import RequestMode, can_be_popped
from rebalance_core.planning.scenario.cluster_life import FIRST_SEQUENCE, ROWS_AN_INSTANT, entity_of
from rebalance_core.planning.sweep.plan_edits import EVENTS, GROUPS
from rebalance_core.protocol.query_assignment import asks_broker

Group = tuple[str, str]
"""The cluster and name."""
_OF_GROUP = (
    "consumer_type", "message_model", "ordered", "client_version", "rebalance_mode",
)  # fmt: skip
_OF_MEMBER = {
    "version": "client_version",
    "message_model": "message_model",
    "rebalance_mode": "rebalance_mode",
}
"""Columns of a CONSUMER_JOIN event, each with the group's setting that replaces a null."""

PROXIED, _BROADCASTING, ORDERLY, PULLS, OLD = CANNOT_POP


@dataclass(frozen=True, slots=True)
class MemberSettings:
    """The settings of one kind of members; the group's settings where they state none."""

    consumer_type: str
    message_model: str
    ordered: bool
    client_version: str
    rebalance_mode: str
    language: str | None = None

    @property
    def rules_version(self) -> str:
        """The RocketMQ version whose rules they follow: clients in other languages never query
        brokers.
        """
        return rules_version(self.language, self.client_version)

    @property
    def asks_broker(self) -> bool:
        """Whether it pops what brokers serve by POP."""
        return asks_broker(
            self.rebalance_mode,
            self.consumer_type,
            self.message_model,
            self.ordered,
            self.rules_version,
        )

    def cannot_pop(self) -> str | None:
        """Return why it could not pop if configured to, or None if it could (rocketmq.md §2.8)."""
        if self.rebalance_mode == PROXY_REBALANCE:
            return PROXIED
        if self.message_model == BROADCASTING:
            return _BROADCASTING
        if self.ordered:
            return ORDERLY
        if self.consumer_type != PUSH:
            return PULLS
        could = asks_broker(
            BROKER_REBALANCE,
            PUSH,
            self.message_model,
            ordered=False,
            client_version=self.rules_version,
        )
        return None if could else OLD


def member_settings(tables: Mapping[str, pa.Table]) -> dict[Group, set[MemberSettings]]:
    """Return the kinds of members that each group ever has.

    Args:
        tables: Rows of cluster_events and, if there are any, consumer_groups, of whole groups.
    """
    rows = tables[EVENTS]
    joins = rows.filter(pc.equal(rows["event_type"], events.CONSUMER_JOIN))
    stated = [*GROUP, *_OF_MEMBER, "language"]
    kinds = joins.group_by(stated, use_threads=False).aggregate([])
    of_groups = _group_settings(tables.get(GROUPS))
    default = GroupSettings()
    kinds_by_group: dict[Group, set[MemberSettings]] = {}
    for row in kinds.to_pylist():
        group = (row["cluster"], row["consumer_group"])
        settings = of_groups.get(group, default)
        values = {name: getattr(settings, name) for name in _OF_GROUP}
        values |= {
            name: row[column] for column, name in _OF_MEMBER.items() if row[column] is not None
        }
        settings_of = MemberSettings(**values, language=row["language"])
        kinds_by_group.setdefault(group, set()).add(settings_of)
    return kinds_by_group


def broadcasting_groups(tables: Mapping[str, pa.Table]) -> frozenset[Group]:
    """Return the groups with a member that broadcasts."""
    return frozenset(
        group
        for group, kinds in member_settings(tables).items()
        if any(member.message_model == BROADCASTING for member in kinds)
    )


def cannot_pop(members: set[MemberSettings]) -> str | None:
    """Return why a group cannot pop, or None if all its members could."""
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


# Not a scenario edit, because it has no moment: the state before a scenario's first edit is popped
# as well. It replaces the request modes and rebalance modes of the history or a scenario.
_SEPARATOR = "\x1e"


@dataclass(frozen=True, eq=False)
class PoppedGroups:
    """Groups that pop.

    Attributes:
        tables: The groups' rows; tables without events and settings are unchanged.
        cannot_pop: The reason for each group whose rows are unchanged (`CANNOT_POP`).
    """

    tables: Mapping[str, pa.Table]
    cannot_pop: Mapping[Group, str]


def popped_groups(tables: Mapping[str, pa.Table], mode: RequestMode) -> PoppedGroups:
    """Return the groups with all members querying a broker, which serves all topics except retry
    topics in this mode.

    Brokers allocate by the member's own strategy if they know it, otherwise by AVG.

    Args:
        tables: Rows of whole groups by table, in any order, with any further columns.
        mode: A POP mode.
    """
    reasons = {group: cannot_pop(kinds) for group, kinds in member_settings(tables).items()}
    pop = {group for group, reason in reasons.items() if reason is None}
    rows = tables[EVENTS]
    popped = _of(rows, pop)
    is_mode = pc.equal(rows["event_type"], events.REQUEST_MODE)
    joins = pc.and_(popped, pc.equal(rows["event_type"], events.CONSUMER_JOIN))
    asking = _asking(rows, joins).filter(pc.invert(pc.and_(popped, is_mode)))
    topics = _topics(tables, rows.filter(popped), pop)
    modes = pa.Table.from_pylist(list(_mode_rows(rows.filter(popped), topics, mode)), asking.schema)
    changed = {EVENTS: pa.concat_tables([asking, modes])}
    if GROUPS in tables:
        settings = tables[GROUPS]
        changed[GROUPS] = _asking(settings, _of(settings, pop))
    kept = {group: reason for group, reason in reasons.items() if reason is not None}
    return PoppedGroups({**tables, **changed}, kept)


def _of(rows: pa.Table, groups: Iterable[Group]) -> pa.ChunkedArray:
    """Return whether each row belongs to one of these groups."""
    names = pa.array([_SEPARATOR.join(group) for group in groups], pa.string())
    pairs = pc.binary_join_element_wise(*(rows[name] for name in GROUP), _SEPARATOR)
    return pc.is_in(pairs, value_set=names)


def _asking(rows: pa.Table, mask: pa.ChunkedArray) -> pa.Table:
    """Return the rows, with those in the mask querying a broker, by a strategy that brokers
    know.
    """
    strategies = rows["strategy"]
    broker_strategy = pc.is_in(strategies, value_set=pa.array(BROKER_STRATEGIES, pa.string()))
    unknown = pc.and_(mask, pc.and_(pc.is_valid(strategies), pc.invert(broker_strategy)))
    for name, where, value in (
        ("rebalance_mode", mask, BROKER_REBALANCE),
        ("strategy", unknown, BROKER_STRATEGIES[0]),
    ):
        values = pc.if_else(where, pa.scalar(value, pa.string()), rows[name])
        rows = rows.set_column(rows.column_names.index(name), rows.schema.field(name), values)
    return rows


def _topics(
    tables: Mapping[str, pa.Table], rows: pa.Table, groups: Iterable[Group]
) -> dict[Group, set[str]]:
    """Return all topics to which the groups ever subscribe; other request modes have no effect."""
    topics_by_group: dict[Group, set[str]] = {group: set() for group in groups}
    kept = rows.filter(pc.is_in(rows["event_type"], value_set=pa.array(events.CONSUMER_EVENTS)))
    lists = [kept.select([*GROUP, "topic", "subscriptions"])]
    if GROUPS in tables:
        lists.append(tables[GROUPS].select([*GROUP, "subscriptions"]))
    for table in lists:
        for row in table.to_pylist():
            topics = topics_by_group.get((row["cluster"], row["consumer_group"]))
            if topics is not None:
                named = [*(row["subscriptions"] or ()), row.get("topic")]
                topics.update(topic for topic in named if topic and can_be_popped(topic))
    return topics_by_group


def _mode_rows(
    rows: pa.Table, topics: Mapping[Group, set[str]], mode: RequestMode
) -> Iterator[dict[str, Any]]:
    """Yield a REQUEST_MODE event for each topic, just before the first event of its group."""
    of_groups = rows.filter(pc.is_in(rows["event_type"], value_set=pa.array(events.GROUP_EVENTS)))
    firsts = of_groups.group_by(list(GROUP), use_threads=False).aggregate([("event_ms", "min")])
    for first in firsts.to_pylist():
        group = (first["cluster"], first["consumer_group"])
        sequence = FIRST_SEQUENCE + entity_of(group[1]) * ROWS_AN_INSTANT
        for number, topic in enumerate(sorted(topics[group])):
            yield {name: first[name] for name in GROUP} | {
                "event_ms": first["event_ms_min"] - 1,
                "sequence": sequence + number,
                "event_type": events.REQUEST_MODE,
                "topic": topic,
                "detail": str(mode),
                "source": str(mode),
            }
