"""Finds queues without a holder in ``consumerProgress -s``, and members whose queues it cannot
show.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rebalance_core.audit.dumps import libraries, number, queue_of
from rebalance_core.audit.group_snapshot import (
    Finding,
    GroupSnapshot,
    Rule,
    grouped,
    listed,
    plural,
    queue_names,
)
from rebalance_core.audit.known_shares import strategy_is_known
from rebalance_core.audit.listings import (
    SAME_ROUND_MS,
)
from rebalance_core.audit.offsets import Offsets
from rebalance_core.audit.prediction import Prediction, holds
from rebalance_core.audit.refused_starts import RefusedStarts
from rebalance_core.audit.subjects import CAUSES
from rebalance_core.audit.subscriptions import is_broadcasting
from rebalance_core.audit.topic_settings import readable_queues
from rebalance_core.model.queue import MessageQueue, is_retry_topic
from rebalance_core.model.times import utc
from rebalance_core.model.verdicts import ERROR, INFO, WARNING
from rebalance_core.protocol.order_locks import ORDER_LOCK_MS

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import (
        QueueProgressFact,
    )
from rebalance_core.audit.observations import (
    COMMAND_MS,
    ClientObservation,
    Observation,
    QueueObservation,
    commit_moves,
    last_round,
    omitted,
    progress_dumps,
)

NOT_READ = Rule(
    "QUEUES_NOT_READ",
    ERROR,
    "Messages wait in a queue that consumerProgress -s shows without a holder, in two dumps or "
    "while no commit moves. Every listed member answered and no change is under way, so this "
    "holds for any strategy.",
    "QUEUE_PROGRESS (N/A), observed_members, DUMP, HELD_QUEUE, epochs, committed_offsets",
    "Restart the members one by one, and check the group's other findings for the cause.",
    reads=(CAUSES,),
)


QUEUES_NOT_REPORTED = Rule(
    "QUEUES_NOT_TOLD",
    INFO,
    "Listed members did not report their queues to mqadmin. mqadmin stops at the first member "
    "that does not answer, so N/A in consumerProgress -s proves nothing.",
    "observed_members, DUMP, QUEUE_PROGRESS",
    "Nothing for clients that cannot answer (C++ before 1.2.5, ali-ons); otherwise dump again.",
)


@dataclass(frozen=True, slots=True)
class UnownedQueue:
    """A queue without a holder.

    Attributes:
        behind: messages in it that the group has not read.
        since_ms: the first observation without a holder; at_ms: the newest.
        source: the source of the newest observation.
    """

    queue: MessageQueue
    behind: int
    since_ms: int
    at_ms: int
    source: str


@dataclass(frozen=True, slots=True)
class UnansweredRound:
    """Members of the last round that did not report their queues, and the queues left open by
    this.
    """

    members: tuple[str, ...]
    listed: int
    queues: tuple[MessageQueue, ...]
    at_ms: int


def unowned_queues(
    group: GroupSnapshot, prediction: Prediction, observed: list[Observation]
) -> Iterator[UnownedQueue]:
    """Yield the queues without a holder in which messages wait while no change is under way.

    Args:
        group: its snapshot.
        prediction: its ledger; if its strategy is unknown, the queues and windows still count.
        observed: all observations, in order of time.
    """
    if is_broadcasting(group):
        return
    since_ms = group.run.end_ms - group.run.stale_ms
    held = _held_by_clients(observed)
    progress = {(queue_of(row), row["first_ms"]): row for row in group.facts["QUEUE_PROGRESS"]}
    offsets = Offsets(group)
    by_queue: dict[MessageQueue, list[QueueObservation]] = {}
    for observation in observed:
        if isinstance(observation, QueueObservation):
            by_queue.setdefault(observation.queue, []).append(observation)
    for queue, seen in sorted(by_queue.items()):
        newest, before = seen[-1], seen[-2] if len(seen) > 1 else None
        row = progress.get((queue, newest.at_ms))
        if newest.address or newest.at_ms < since_ms or queue in held or row is None:
            continue
        behind = _behind(row, offsets)
        if not behind or not _should_be_read(group, prediction, queue, newest.at_ms):
            continue
        again = before is not None and not before.address
        if again or not commit_moves(group, row):
            first_ms = before.at_ms if before is not None and again else newest.at_ms
            yield UnownedQueue(queue, behind, first_ms, newest.at_ms, newest.source)


def _held_by_clients(observed: list[Observation]) -> set[MessageQueue]:
    """Return the queues that a client of the last round reports to hold or pop."""
    clients = [client for client in last_round(observed) if isinstance(client, ClientObservation)]
    return {queue for client in clients for queue in client.held | client.popped}


def _behind(row: QueueProgressFact, offsets: Offsets) -> int:
    """Return the number of messages waiting in the queue according to the dump itself; 0 for a
    commit below the minimum.
    """
    low, _ = offsets.ends.get(queue_of(row), (0, 0))
    return number(row["details"].get("broker_offset"), 0) - max(
        number(row["details"].get("consumer_offset"), 0), low
    )


def _should_be_read(
    group: GroupSnapshot, prediction: Prediction, queue: MessageQueue, at_ms: int
) -> bool:
    """Return True if the group can read the queue at this time, and no change under way explains
    it.
    """
    if not group.epochs:
        return True  # no file dates a member: only the answer shows that it has the queue
    configured = any(row["topic"] == queue.topic for row in group.tables["topics"])
    if configured and queue[1:] not in readable_queues(group, queue.topic):
        return False
    if not prediction.holdings(queue, at_ms) or prediction.takers(queue, at_ms):
        return False  # it is in no route, or members pop it, which does not make them holders
    if strategy_is_known(group) and not prediction.owners(queue, at_ms):
        return False  # no member should: ORPHAN_QUEUES and the strategies' rules explain it
    # its owner may be waiting for the previous owner's order lock
    wait_ms = ORDER_LOCK_MS if group.settings.get("ordered") else 0
    return prediction.changing(at_ms - wait_ms, at_ms + COMMAND_MS) is None


def unanswered_round(
    group: GroupSnapshot, prediction: Prediction, observed: list[Observation]
) -> UnansweredRound | None:
    """Return who did not report their queues in the last round of dumps; None if all that matter
    did.
    """
    dumps = list(progress_dumps(group))
    if not dumps or not observed:
        return None
    at_ms, round_ms = dumps[-1][0]["first_ms"], last_round(observed)[0].at_ms
    if at_ms < round_ms - SAME_ROUND_MS:
        return None
    members = omitted(group, dumps[-1])
    answered = {
        observation.client_id
        for observation in observed
        if isinstance(observation, ClientObservation) and observation.at_ms >= round_ms
    }
    left = [
        queue
        for queue in (queue_of(row) for row in dumps[-1] if not row["details"].get("client_ip"))
        if (owners := prediction.owners(queue, at_ms)) and not owners <= answered
    ]
    silent = members - answered
    if not left or not silent:
        return None
    present = {row["client_id"] for row in group.tables["memberships"] if holds(row, at_ms)}
    return UnansweredRound(tuple(sorted(silent)), len(present | silent), tuple(sorted(left)), at_ms)


def unread(group: GroupSnapshot, unowned: Iterable[UnownedQueue]) -> Iterator[Finding]:
    """Yield a finding for each topic."""
    offsets = Offsets(group)
    starts = RefusedStarts(group)
    topics = grouped(unowned, lambda queue: queue.queue.topic)
    for topic, unread in sorted(topics.items()):
        names = queue_names(queue.queue[1:] for queue in unread)
        behind, at_ms = sum(queue.behind for queue in unread), max(queue.at_ms for queue in unread)
        alone = unread[0].queue if len(unread) == 1 else None
        why = starts.why(((queue.queue, queue.since_ms) for queue in unread), "; ")
        yield Finding(
            f"{names} of {topic}: no holder (dump of {utc(at_ms)}), "
            f"{behind:,} message{'' if behind == 1 else 's'} behind{why}.",
            {
                "queues": names,
                "behind": str(behind),
                "committed": offsets.committed(queue.queue for queue in unread),
                "source": unread[0].source,
            },
            severity=WARNING if is_retry_topic(topic) else None,
            topic=topic,
            broker_name=alone.broker_name if alone else None,
            queue_id=alone.queue_id if alone else None,
            first_ms=min(queue.since_ms for queue in unread),
        )


def unanswered(group: GroupSnapshot, round_: UnansweredRound) -> Finding:
    """Return the finding about members that did not answer."""
    named = libraries(group)
    kinds = {named[client_id] for client_id in round_.members if client_id in named}
    names = f" ({', '.join(sorted(kinds))})" if kinds else ""
    their = "its" if len(round_.members) == 1 else "their"
    return Finding(
        f"{len(round_.members)} of {plural(round_.listed, 'member')} did not report {their} "
        f"queues{names}; {plural(len(round_.queues), 'queue')} could not be verified.",
        {
            "members": listed(round_.members),
            "queues": listed(f"{q.topic}/{q.broker_name}/{q.queue_id}" for q in round_.queues),
        },
        first_ms=round_.at_ms,
        last_ms=round_.at_ms,
    )
