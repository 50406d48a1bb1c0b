"""Times of a client's unsubscribe() calls from its own log; brokers learn of them with a later
heartbeat.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, TypeAlias

from rebalance_core.ingest.cluster_context import ClusterContext
from rebalance_core.ingest.events.connections import (
    ProcessNames,
)
from rebalance_core.model.times import HEARTBEAT_MS, REBALANCE_WAIT_MS

if TYPE_CHECKING:
    from rebalance_core.ingest.evidence_types import (
        GroupConnectionPiece,
        GroupEvidence,
        MemberPiece,
        NoMembersPiece,
    )

    Listed: TypeAlias = MemberPiece | GroupConnectionPiece | NoMembersPiece


UNSUBSCRIBE_MARGIN_MS = 10_000


UNSUBSCRIBE_KNOWN_MS = REBALANCE_WAIT_MS + HEARTBEAT_MS + UNSUBSCRIBE_MARGIN_MS
"""unsubscribe(): the client's own pass, after which a heartbeat informs brokers
(rocketmq.md §6.4).
"""


class Unsubscriptions:
    """Lines in which the clients of one group log that they unsubscribe from a topic."""

    def __init__(
        self, pieces: Iterable[GroupEvidence], names: ProcessNames, context: ClusterContext
    ) -> None:
        self._lines = sorted(
            (context.time_of(p), p.source, p.values["topic"], names.client_of(p))
            for p in pieces
            if p.kind == "unsubscribed"
        )

    def before(
        self, client_id: str, topic: str, since_ms: int, known_ms: int, *, unseen: bool
    ) -> tuple[int, str] | None:
        """Return the time and line of the unsubscription that brokers knew of at `known_ms`.

        Args:
            client_id: the member.
            topic: the topic that it gave up.
            since_ms: a time when it was still subscribed.
            known_ms: when a broker or the member itself first states it.
            unseen: whether a broker whose log had ended may have known of it long before.
        """
        usual_ms = max(since_ms, known_ms - UNSUBSCRIBE_KNOWN_MS)
        of_topic = [line for line in self._lines if line[2] == topic and line[0] <= known_ms]
        for at_ms, source, _, client in of_topic:
            if at_ms >= usual_ms and client in (None, client_id):
                return at_ms, source
        if unseen:
            for at_ms, source, _, client in reversed(of_topic):
                if at_ms >= since_ms and client == client_id:
                    return at_ms, source
        return None
