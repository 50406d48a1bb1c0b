"""What dumps say of a broker's members once its log has ended: whole tables, not changes.

Who operates the cluster may copy the logs and ask mqadmin later, or logs are cut at their end. Each
``consumerConnection`` of the broker is then all that is known of its connections at that time, and
each ``consumerStatus`` what its client subscribes. What differs from what was known before happened
between the two.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rebalance_core.contracts.fact_declaration import GROUP
from rebalance_core.ingest.cluster_context import ClusterContext
from rebalance_core.ingest.events.listings.listed_connections import (
    listed_values,
    of_logged_brokers,
    own_subscriptions,
)
from rebalance_core.ingest.evidence.evidence import Evidence
from rebalance_core.ingest.fact import file_of
from rebalance_core.model.queue import is_retry_topic
from rebalance_core.model.times import SECOND_MS

AFTER_ALL = 2**62
"""Position of what comes after all else of its time and place."""


def listed_tables(
    group: str, pieces: list[Evidence], context: ClusterContext
) -> Iterator[Evidence]:
    """Evidence of three kinds, beside the lines.

    ``log_ended`` of each broker, at the end of its log. ``members_listed`` of each dump after that:
    ``members`` has the `listed_values` of its connections by client id. A dump without a member
    says nothing, as a failure prints nothing either. ``topics_listed`` of each client that was
    asked when every broker's log had ended: its client_id and topics, without the retry topic.
    """
    for place, until_ms in context.logged.items():
        end_ms = until_ms + SECOND_MS - 1
        yield Evidence(GROUP, group, "log_ended", end_ms, place, AFTER_ALL, "", {})
    own = own_subscriptions(pieces, context)
    dumps: dict[tuple[str, int, str], list[Evidence]] = {}
    for piece in of_logged_brokers(pieces, context):
        at_ms = context.time_of(piece)
        if context.log_had_ended(piece.place, at_ms):
            dumps.setdefault((piece.place, at_ms, file_of(piece.source)), []).append(piece)
    for (place, at_ms, _), members in dumps.items():
        listed: dict[str, list[dict[str, object]]] = {}
        for piece in members:
            listed.setdefault(piece.values["client_id"], []).append(listed_values(piece, own))
        source, values = members[0].source, {"members": listed}
        yield Evidence(GROUP, group, "members_listed", at_ms, place, AFTER_ALL, source, values)
    yield from _own_topics(group, pieces, context)


def _own_topics(
    group: str, pieces: Iterable[Evidence], context: ClusterContext
) -> Iterator[Evidence]:
    asked: dict[tuple[int, str], list[Evidence]] = {}
    for piece in pieces:
        if piece.kind == "client_subscription" and piece.values.get("client_file"):
            key = (context.time_of(piece), piece.values["client_file"])
            asked.setdefault(key, []).append(piece)
    for (at_ms, client_id), topics in asked.items():
        if context.all_logs_had_ended(at_ms):
            names = frozenset(p.values["topic"] for p in topics)
            values = {
                "client_id": client_id,
                "topics": {topic for topic in names if not is_retry_topic(topic)},
            }
            source = topics[0].source
            yield Evidence(GROUP, group, "topics_listed", at_ms, "", AFTER_ALL, source, values)
