"""How the members of a group receive the messages of a topic, and which topics they share."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rebalance_core.audit.group_snapshot import GroupSnapshot, known_topics
from rebalance_core.model.clients import rules_version
from rebalance_core.model.group_settings import PROXY_REBALANCE, GroupSettings
from rebalance_core.model.request_mode import PULL_MODE, can_be_popped, parse_request_mode
from rebalance_core.protocol.query_assignment import asks_broker

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import (
        MembershipsRow,
        PopMetricsRow,
        PopReachRow,
        RequestModesRow,
    )


@dataclass(frozen=True, slots=True)
class TopicReaders:
    """The members that subscribe to a topic, as client ids in order, by how they get its messages.

    Attributes:
        poppers: they ask a broker, and the topic's request mode is POP.
        proxied: gRPC clients; their proxy pops for them, whatever the mode.
        pullers: all others, each of which pulls a share of its own.
    """

    poppers: tuple[str, ...]
    proxied: tuple[str, ...]
    pullers: tuple[str, ...]

    @property
    def sharers(self) -> tuple[str, ...]:
        """Return the members that may take messages of a queue from which others take
        messages, too.
        """
        return self.poppers + self.proxied


def readers(group: GroupSnapshot, topic: str, at_ms: int | None = None) -> TopicReaders:
    """Return who reads the topic, and how; ``at_ms`` None: at the end."""
    poppers, proxied, pullers = set[str](), set[str](), set[str]()
    popped = is_popped(group, topic, group.run.end_ms if at_ms is None else at_ms)
    for row in group.tables["memberships"]:
        if topic not in known_topics(row) or not _there(row, at_ms):
            continue
        if is_proxied(row):
            proxied.add(row["client_id"])
        elif popped and asks(group, row):
            poppers.add(row["client_id"])
        else:
            pullers.add(row["client_id"])
    return TopicReaders(*(tuple(sorted(clients)) for clients in (poppers, proxied, pullers)))


def gave_up_asking(group: GroupSnapshot, topic: str) -> set[str]:
    """Return members that are configured to ask a broker, but allocate the topic themselves at the
    end.
    """
    members = {row["client_id"] for row in group.members}
    facts = (fact for fact in group.facts["GAVE_UP_ASKING"] if fact["topic"] == topic)
    return {fact["client_id"] for fact in facts if "over_ms" not in fact["details"]} & members


def _there(row: MembershipsRow, at_ms: int | None) -> bool:
    if at_ms is None:
        return row["to_ms"] is None
    return bool(row["from_ms"] <= at_ms and (row["to_ms"] is None or at_ms < row["to_ms"]))


def is_proxied(member: MembershipsRow) -> bool:
    """Return True for the membership of a gRPC client, whose queues do not depend on any member
    list.

    See rocketmq.md §14.
    """
    return bool(member["rebalance_mode"] == PROXY_REBALANCE)


def all_proxied(members: Iterable[MembershipsRow]) -> bool:
    """Return True if there are members and each is behind a proxy."""
    rows = list(members)
    return bool(rows) and all(map(is_proxied, rows))


def asks(group: GroupSnapshot, member: MembershipsRow) -> bool:
    """Return True if the membership's client queries a broker for its queues."""
    defaults = GroupSettings()
    kind = group.settings["consumer_type"] or defaults.consumer_type
    ordered = group.settings["ordered"] or defaults.ordered
    return asks_broker(
        member["rebalance_mode"], kind, member["message_model"], ordered, version_of(member)
    )


def version_of(member: MembershipsRow) -> str:
    """Return the RocketMQ version whose rules the membership's client follows."""
    return rules_version(member.get("language"), str(member["version"]))


def request_mode(group: GroupSnapshot, topic: str, at_ms: int) -> RequestModesRow | None:
    """Return the topic's REQUEST_MODE at this time, or None if it was never set, which means
    PULL.
    """
    set_before = [
        row for row in group.request_modes if row["topic"] == topic and row["event_ms"] <= at_ms
    ]
    return set_before[-1] if set_before else None


def is_popped(group: GroupSnapshot, topic: str, at_ms: int) -> bool:
    """Return True if the topic's request mode is POP, whether or not members follow it."""
    row = request_mode(group, topic, at_ms)
    mode = PULL_MODE if row is None else parse_request_mode(row["detail"])
    return can_be_popped(topic) and mode.is_pop


def shared_topics(group: GroupSnapshot) -> dict[str, PopMetricsRow]:
    """Return the topics whose queues members share at the end, each with its row of pop_metrics."""
    last = group.last_epoch
    if last is None:
        return {}
    return {
        row["topic"]: row for row in group.tables["pop_metrics"] if row["epoch"] == last["epoch"]
    }


def is_shared(group: GroupSnapshot, topic: str, at_ms: int) -> bool:
    """Return True if members shared the topic's queues at this time."""
    epoch = group.epoch_at(at_ms)
    return epoch is not None and any(
        row["topic"] == topic and row["epoch"] == epoch["epoch"]
        for row in group.tables["pop_metrics"]
    )


def reach(group: GroupSnapshot) -> list[PopReachRow]:
    """Return the clients that may take messages from each shared queue at the end: open rows of
    pop_reach.
    """
    return [row for row in group.tables["pop_reach"] if row["to_ms"] is None]
