"""Topics that a group pops at the end, and which members do not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rebalance_core.audit.case import GroupCase, Row
from rebalance_core.model.events import CONSUMER_JOIN, REQUEST_MODE
from rebalance_core.model.group_settings import GroupSettings
from rebalance_core.model.request_mode import can_be_popped, parse_request_mode
from rebalance_core.protocol.asks_broker import asks_broker


@dataclass(frozen=True, slots=True)
class Popped:
    """A topic whose mode is POP and which some member pops.

    Attributes:
        mode: the text of the mode; since_ms: when it was set.
        clients: ids of members that pop it; others: of those that divide it among all members.
    """

    mode: str
    since_ms: int
    clients: tuple[str, ...]
    others: tuple[str, ...]


def popped_topics(case: GroupCase) -> dict[str, Popped]:
    """The topics that are popped at the end, by name."""
    popped: dict[str, Popped] = {}
    own = _own_modes(case)
    for topic, row in sorted(_request_modes(case).items()):
        if not can_be_popped(topic) or not parse_request_mode(row["detail"]).is_pop:
            continue
        members = [member for member in case.members if topic in member["subscriptions"]]
        pops = {member["client_id"]: _pops(case, member, own) for member in members}
        clients = tuple(sorted(client_id for client_id, asks in pops.items() if asks))
        if clients:
            others = tuple(sorted(pops.keys() - set(clients)))
            popped[topic] = Popped(row["detail"], row["event_ms"], clients, others)
    return popped


def _request_modes(case: GroupCase) -> Mapping[str, Row]:
    """The last REQUEST_MODE of each topic."""
    return {row["topic"]: row for row in _in_order(case, REQUEST_MODE)}


def _own_modes(case: GroupCase) -> Mapping[tuple[str, str | None], str | None]:
    """What each process said of itself when it joined last."""
    joins = _in_order(case, CONSUMER_JOIN)
    return {(row["client_id"], row["channel_id"]): row.get("rebalance_mode") for row in joins}


def _in_order(case: GroupCase, event_type: str) -> list[Row]:
    rows = [row for row in case.rows("cluster_events") if row["event_type"] == event_type]
    return sorted(rows, key=lambda row: (row["event_ms"], row["sequence"]))


def _pops(case: GroupCase, member: Row, modes: Mapping[tuple[str, str | None], str | None]) -> bool:
    own = modes.get((member["client_id"], member["channel_id"]))
    defaults = GroupSettings()
    mode, kind, ordered = (
        case.settings.get(name) or getattr(defaults, name)
        for name in ("rebalance_mode", "consumer_type", "ordered")
    )
    return asks_broker(own or mode, kind, member["message_model"], ordered, member["version"])
