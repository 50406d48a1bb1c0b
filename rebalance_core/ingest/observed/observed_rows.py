"""observed_members, observed_ownership and ``observed_facts`` of one group, as files show them."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from rebalance_core.ingest.cluster_context import ClusterContext
from rebalance_core.ingest.collection.collected_file import PROXIES
from rebalance_core.ingest.events.connections import ProcessNames
from rebalance_core.ingest.events.presence import Presence
from rebalance_core.ingest.evidence.evidence import Evidence
from rebalance_core.ingest.fact import file_of
from rebalance_core.ingest.observed.document_facts import DOCUMENT_READERS
from rebalance_core.ingest.observed.log_rows import Clients, FactRows, add_log_rows
from rebalance_core.ingest.parse.channels import GRPC
from rebalance_core.ingest.parse.text.java_text import plain_version
from rebalance_core.ingest.rows import Row
from rebalance_core.ingest.settings.request_modes import given_up
from rebalance_core.model.queue import is_retry_topic

# observed_members and observed_ownership: what mqadmin's dumps show of one group.


def member_rows(group: str, pieces: list[Evidence], context: ClusterContext) -> list[Row]:
    """Members as ``consumerConnection`` lists them at one broker, and as each one answers itself.

    Subscriptions are without the retry topic, as in cluster_events; those of
    ``consumerConnection`` are the group's at the broker asked, not the member's.
    """
    own: dict[str, list[str]] = {}
    of_grpc: set[str] = set()
    for piece in pieces:
        if piece.kind == "client_subscription":
            own.setdefault(file_of(piece.source), []).append(piece.values["topic"])
        elif piece.kind == "consumer_connected" and piece.values.get("protocol") == GRPC:
            of_grpc.add(piece.values["client_id"])
    rows = []
    for piece in pieces:
        v = piece.values
        if piece.kind == "member":
            topics = [pair[0] for pair in v["subscriptions"] or ()]
            client_id = v["client_id"]
        elif piece.kind == "client" and v.get("client_file"):
            topics = own.get(file_of(piece.source), [])
            client_id = v["client_file"]
        else:
            continue
        # a proxy is no broker; it, and a broker with one inside for its gRPC clients, answers its
        # own version for the member's (rocketmq.md §14)
        at_proxy = piece.place.startswith(PROXIES)
        own_version = v["version"] and not at_proxy and client_id not in of_grpc
        rows.append(
            {
                "consumer_group": group,
                "asked_broker": None if at_proxy else piece.place or None,
                "client_id": client_id,
                "client_addr": v.get("client_addr"),
                "language": v.get("language"),
                "version": plain_version(v["version"]) if own_version else None,
                "subscriptions": sorted(t for t in set(topics) if not is_retry_topic(t)),
                "message_model": v["message_model"],
                "consume_from_where": v["consume_from_where"],
                "observed_ms": context.time_of(piece),
                "source": piece.source,
            }
        )
    return rows


def ownership_rows(
    group: str, pieces: Iterable[Evidence], presence: Presence, context: ClusterContext
) -> list[Row]:
    """Queues that clients hold: of ``consumerStatus``, and of ``consumerProgress -s true``.

    The latter shows the text before the ``@`` of the client id alone: a row is made where just one
    member of then begins so.
    """
    rows = []
    for piece in pieces:
        v = piece.values
        at_ms = context.time_of(piece)
        if piece.kind == "client_queue" and not v["dropped"] and v.get("client_file"):
            client_id = v["client_file"]
        elif piece.kind == "queue_progress" and v["client_ip"] and not v["topic_truncated"]:
            there = presence.clients(at_ms, at_ms)
            alike = [one for one in there if one.partition("@")[0] == v["client_ip"]]
            if len(alike) != 1:
                continue
            client_id = alike[0]
        else:
            continue
        rows.append(
            {
                "consumer_group": group,
                "topic": v["topic"],
                "broker_name": v["broker_name"],
                "queue_id": v["queue_id"],
                "client_id": client_id,
                "observed_ms": at_ms,
                "source": piece.source,
            }
        )
    return rows


# ``observed_facts`` of one group: what dumps, stores and logs state of it.


def group_facts(
    group: str, pieces: Collection[Evidence], names: ProcessNames, context: ClusterContext
) -> list[Row]:
    """The rows of one group, also of one that never had a member.

    Args:
        group: its name.
        pieces: all evidence on it, in order of time.
        names: who the lines of a client's log are about.
        context: of the cluster.
    """
    clients = Clients(pieces, names, context.addresses)
    rows = FactRows(group)
    for piece in pieces:
        at_ms = context.time_of(piece)
        if piece.kind in DOCUMENT_READERS:
            DOCUMENT_READERS[piece.kind](rows, piece, at_ms)
        else:
            add_log_rows(rows, piece, at_ms, clients)
    for piece in given_up(pieces):
        v = piece.values
        where = {"topic": v["topic"], "client_id": v["client_id"]}
        rows.add("GAVE_UP_ASKING", context.time_of(piece), piece.source,
                 {"strategy": v["strategy"]}, **where)  # fmt: skip
    return rows.rows
