"""Members whose heartbeats subscribe to topics that they do not rebalance.

``buildSubscriptionsForHeartbeat`` of lite pull (from 5.4.0 on, apache/rocketmq#9789) puts topics
into the heartbeat of a consumer that reads queues named by the application (``assign()``). It does
not take part in their rebalancing, but brokers cannot distinguish it from a member that does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Final

from rebalance_core.ingest.rows import Event, Finding, finding
from rebalance_core.model.events import CONSUMER_JOIN, SUBSCRIBE, UNSUBSCRIBE
from rebalance_core.model.group_settings import LITE_PULL
from rebalance_core.model.versions import parse_version

if TYPE_CHECKING:
    from rebalance_core.ingest.evidence_types import GroupEvidence

ASSIGNS_FROM = "5.4.0"
"""The first release with ``buildSubscriptionsForHeartbeat``."""
ACTIVELY = "CONSUME_ACTIVELY"
"""The type under which brokers list lite pull; a push consumer always rebalances its
subscriptions.
"""
DIVIDES: Final = ("allocated", "broker_allocated")
"""What a client logs when its share of a topic changes, including at the first pass with a
share.
"""
HEARTBEATS_ONLY, NOTHING = "subscriptionsForHeartbeat", "[]"
"""Topics to which only a member's heartbeats subscribe, according to its properties in
consumerStatus.
"""


def without_assigned(
    group: str, events: Iterable[Event], pieces: Iterable[GroupEvidence]
) -> tuple[list[Event], list[Finding]]:
    """Return events and findings; members that assign themselves queues have no subscriptions.

    Such a member states this in its properties. A log without a line on a share proves nothing,
    because it may begin late.

    Args:
        group: the consumer group.
        events: all events of its members.
        pieces: its evidence.
    """
    assigners = _assigners(pieces)
    kept: list[Event] = []
    topics: dict[str, set[str]] = {}
    for row in events:
        client = str(row.get("client_id"))
        if client in assigners and row["event_type"] in (SUBSCRIBE, UNSUBSCRIBE):
            continue
        if client in assigners and row["event_type"] == CONSUMER_JOIN and row.get("subscriptions"):
            topics.setdefault(client, set()).update(row["subscriptions"])
            row["subscriptions"] = []
        kept.append(row)
    if not topics:
        return kept, []
    names = sorted(topics)
    said = ", ".join(sorted(set().union(*topics.values())))
    what = finding(
        "INGEST_ASSIGNED_QUEUES",
        f"{len(names)} of the members of {group} ({names[0]}{' …' * (len(names) > 1)}) hold "
        f"queues that no rebalance assigned: their heartbeats subscribe to {said}, but they read "
        "what the application assigns (assign() of lite pull with "
        "buildSubscriptionsForHeartbeat).",
        "Nothing if all members do this. Other members of the group count them and leave a share "
        "for them.",
        consumer_group=group,
        evidence={"clients": ", ".join(names), "source": assigners[names[0]]},
    )
    return kept, [what]


def may_assign(
    group: str,
    events: Iterable[Event],
    pieces: Iterable[GroupEvidence],
    versions: Mapping[str, str],
) -> Iterator[Finding]:
    """Yield a finding on members for which no file shows whether they rebalance their
    subscriptions: neither a line on a share of theirs nor their properties.

    Args:
        group: the consumer group.
        events: all events of its members.
        pieces: its evidence.
        versions: client id -> the version whose rules it follows.
    """
    active, dividing = set[str](), set[str]()
    for piece in pieces:
        if piece.kind == "consumer_connected" and piece.values["consume_type"] == ACTIVELY:
            active.add(piece.values["client_id"])
        elif piece.kind == "client" and piece.values["consumer_type"] == LITE_PULL:
            active.add(str(piece.values.get("client_file")))
            if piece.values["properties"].get(HEARTBEATS_ONLY) == NOTHING:
                dividing.add(str(piece.values.get("client_file")))
        elif piece.kind in DIVIDES:
            dividing.add(piece.values["client_id"])
    least = parse_version(ASSIGNS_FROM)
    names = sorted(
        {
            row["client_id"]
            for row in events
            if row["event_type"] == CONSUMER_JOIN
            and row.get("subscriptions")
            and row["client_id"] in active - dividing
            and parse_version(versions.get(row["client_id"], ASSIGNS_FROM)) >= least
        }
    )
    if names:
        yield finding(
            "INGEST_MAY_ASSIGN",
            f"No file shows whether {len(names)} of the lite pull members of {group} "
            f"({names[0]}{' …' * (len(names) > 1)}) divide the topics that their heartbeats "
            f"subscribe to: from {ASSIGNS_FROM} on they may instead read what the application "
            "assigns.",
            f"Dump consumerStatus -g {group}, or collect rocketmq_client.log of these clients "
            "from their start.",
            consumer_group=group,
            evidence={"clients": ", ".join(names)},
        )


def _assigners(pieces: Iterable[GroupEvidence]) -> Mapping[str, str]:
    """Return, by client id, the answer to consumerStatus that shows self-assigned queues."""
    stated: dict[str, str] = {}
    divides = set[str]()
    for piece in pieces:
        if piece.kind in DIVIDES:
            divides.add(piece.values["client_id"])
        elif (
            piece.kind == "client"
            and piece.values["properties"].get(HEARTBEATS_ONLY, NOTHING) != NOTHING
        ):
            stated[str(piece.values.get("client_file"))] = piece.source
    return {client: source for client, source in stated.items() if client not in divides}
