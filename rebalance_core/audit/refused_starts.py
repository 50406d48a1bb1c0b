"""Reasons in clients' logs why their passes did not take over their queues (rocketmq.md §13)."""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import TYPE_CHECKING, NamedTuple

from rebalance_core.audit.dumps import queue_of
from rebalance_core.audit.group_snapshot import GroupSnapshot, grouped, plural
from rebalance_core.model.queue import MessageQueue
from rebalance_core.model.refused_starts import LOCK_FAILED, NO_OFFSET, OFFSET_FAILED, TOPIC_MISSING
from rebalance_core.model.times import utc

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import StartRefusedFact, TopicMissingFact

REFUSED_STARTS = {
    LOCK_FAILED: "could not lock the queue at its broker",
    NO_OFFSET: "received no start offset",
    OFFSET_FAILED: "failed to query the start offset",
    TOPIC_MISSING: "found no route for the topic",
}


_REMEDIES = {
    LOCK_FAILED: "Find out which client keeps the order lock (STUCK_ORDER_LOCK) and restart it; a "
    "lock ends 60 s after its last renewal.",
    NO_OFFSET: "Check in the client's log why there is no start offset (ConsumeFromWhere, an "
    "offset store or a query that fails), and that the broker answers QUERY_CONSUMER_OFFSET.",
    OFFSET_FAILED: "Check that the client reaches the broker's master and may read the group's "
    "offsets; the exception is logged below the line in the client's log.",
    TOPIC_MISSING: "Create the topic, or correct its name, namespace or the name servers of the "
    "client; check that topicRoute of the topic answers.",
}


class RefusedStart(NamedTuple):
    """The reason why a client's passes did not take over a queue.

    Attributes:
        reason: One of `model.refused_starts`.
        words: The reason as a clause, with its log, count and last time.
        remedy: What to do.
    """

    reason: str
    words: str
    remedy: str


class RefusedStarts:
    """The refused starts of a group.

    Args:
        group: its snapshot.
    """

    def __init__(self, group: GroupSnapshot) -> None:
        self._of_queues = grouped(group.facts["START_REFUSED"], queue_of)
        self._of_topics = grouped(group.facts["TOPIC_MISSING"], lambda fact: fact["topic"])

    def newest(
        self,
        queue: MessageQueue,
        first_ms: int,
        last_ms: int | None = None,
        clients: Container[str] | None = None,
    ) -> RefusedStart | None:
        """Return the queue's last refused start within a period; None if there was none.

        Args:
            queue: the queue.
            first_ms: start of the period, epoch ms.
            last_ms: its end; None if it has none.
            clients: the clients that count, besides logs whose client is unknown; None for all.
        """
        facts: list[StartRefusedFact | TopicMissingFact] = [
            *self._of_queues.get(queue, ()),
            *self._of_topics.get(queue.topic, ()),
        ]
        within = [
            fact
            for fact in facts
            if fact["last_ms"] >= first_ms
            and (last_ms is None or fact["first_ms"] <= last_ms)
            and (clients is None or fact["client_id"] is None or fact["client_id"] in clients)
        ]
        return _refused(max(within, key=lambda fact: fact["last_ms"])) if within else None

    def why(self, queues: Iterable[tuple[MessageQueue, int]], before: str = "") -> str:
        """Return a description of the first of these queues whose start was refused; empty if none
        was.

        Args:
            queues: each with the time from which a refusal counts, epoch ms.
            before: the text that the description follows.
        """
        refused = next(filter(None, (self.newest(*queue) for queue in queues)), None)
        return f"{before}{refused.words}" if refused else ""


def _refused(fact: StartRefusedFact | TopicMissingFact) -> RefusedStart:
    reason = TOPIC_MISSING if fact["kind"] == "TOPIC_MISSING" else fact["details"]["reason"]
    who = fact["client_id"] or f"clients/{fact['details']['log']}"
    times = plural(fact["times"], "time")
    words = f"passes of {who} {REFUSED_STARTS[reason]} ({times} until {utc(fact['last_ms'])})"
    return RefusedStart(reason, words, _REMEDIES[reason])
