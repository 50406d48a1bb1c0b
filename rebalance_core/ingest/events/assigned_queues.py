"""Members that subscribe in their heartbeat what they do not divide.

``buildSubscriptionsForHeartbeat`` of lite pull (5.4.0 on, apache/rocketmq#9789) puts topics into
the heartbeat of a consumer that reads the queues which the application names (``assign()``). It
takes part in no rebalancing of them, and brokers cannot tell it from one that does.
"""

from collections.abc import Iterable, Iterator, Mapping

from rebalance_core.ingest.cluster_context import ClusterContext
from rebalance_core.ingest.evidence import Evidence
from rebalance_core.ingest.rows import Row, finding
from rebalance_core.model.clients import parse_version
from rebalance_core.model.events import CONSUMER_JOIN, SUBSCRIBE, UNSUBSCRIBE
from rebalance_core.model.group_settings import LITE_PULL
from rebalance_core.model.queue import is_retry_topic

ASSIGNS_FROM = "5.4.0"
"""The first release with ``buildSubscriptionsForHeartbeat``."""
ACTIVELY = "CONSUME_ACTIVELY"
"""How brokers see lite pull; a push consumer always divides what it subscribes."""
DIVIDES = ("allocated", "broker_allocated")
"""What a client logs when its share of a topic changes, so at its first pass that gives it one."""


def without_assigned(
    group: str, events: Iterable[Row], pieces: Iterable[Evidence], context: ClusterContext
) -> tuple[list[Row], list[Row]]:
    """All events, members that assign themselves queues without subscriptions; findings.

    Such a member is proven by what it holds while its own log, which reaches back to a heartbeat
    before, has no line on a share of it.

    Args:
        group: the consumer group.
        events: all of its members.
        pieces: its evidence.
        context: of the cluster.
    """
    assigners = _assigners(pieces, context)
    kept: list[Row] = []
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
        f"{len(names)} of the members of {group} ({names[0]}{' …' * (len(names) > 1)}) hold queues "
        f"that no rebalancing gave them: their heartbeats subscribe {said}, and they read what the "
        "application assigns (assign() of lite pull with buildSubscriptionsForHeartbeat).",
        "Nothing if all members do. Others of the group count them and leave them a share.",
        consumer_group=group,
        evidence={"clients": ", ".join(names), "log": assigners[names[0]]},
    )
    return kept, [what]


def may_assign(
    group: str, events: Iterable[Row], pieces: Iterable[Evidence], versions: Mapping[str, str]
) -> Iterator[Row]:
    """A finding on members of which no log tells whether they divide what they subscribe.

    Args:
        group: the consumer group.
        events: all of its members.
        pieces: its evidence.
        versions: client id -> the version whose rules it has.
    """
    active, dividing = set[str](), set[str]()
    for piece in pieces:
        v = piece.values
        if piece.kind == "consumer_connected" and v["consume_type"] == ACTIVELY:
            active.add(v["client_id"])
        elif piece.kind == "client" and v["consumer_type"] == LITE_PULL:
            active.add(str(v.get("client_file")))
        elif piece.kind in (*DIVIDES, "heartbeat"):
            dividing.add(v["client_id"])
    least = parse_version(ASSIGNS_FROM)
    names = sorted({
        row["client_id"]
        for row in events
        if row["event_type"] == CONSUMER_JOIN and row.get("subscriptions")
        and row["client_id"] in active - dividing
        and row["client_id"] in versions and parse_version(versions[row["client_id"]]) >= least
    })  # fmt: skip
    if names:
        yield finding(
            "INGEST_MAY_ASSIGN",
            f"No log tells whether {len(names)} of the lite pull members of {group} ({names[0]}"
            f"{' …' * (len(names) > 1)}) divide what their heartbeats subscribe: from "
            f"{ASSIGNS_FROM} on they may read what the application assigns instead.",
            "Collect rocketmq_client.log of the clients named, from their start.",
            consumer_group=group,
            evidence={"clients": ", ".join(names)},
        )


def _assigners(pieces: Iterable[Evidence], context: ClusterContext) -> Mapping[str, str]:
    """Client id -> where its own log begins to tell."""
    lite, divides = set[str](), set[str]()
    logged: dict[str, tuple[int, str]] = {}
    held: dict[str, int] = {}
    for piece in pieces:
        v, at_ms = piece.values, context.time_of(piece)
        if piece.kind in DIVIDES:
            divides.add(v["client_id"])
        elif piece.kind == "heartbeat":
            logged.setdefault(v["client_id"], (at_ms, piece.source))
        elif piece.kind == "client" and v["consumer_type"] == LITE_PULL and v.get("client_file"):
            lite.add(v["client_file"])
        elif piece.kind == "client_queue" and not v["dropped"] and not is_retry_topic(v["topic"]):
            client = str(v.get("client_file"))
            held[client] = max(at_ms, held.get(client, at_ms))
    return {
        client: logged[client][1]
        for client in lite - divides
        if client in logged and held.get(client, -1) >= logged[client][0]
    }
