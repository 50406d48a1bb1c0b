"""What ``consumerProgress -s`` says by itself: queues of nobody, and whose queues it cannot show.

That nobody holds a queue in which messages wait is a fact, whatever strategy the group uses.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from rebalance_core.audit.case import GroupCase, Row
from rebalance_core.audit.comparison.observations import (
    COMMAND_MS,
    ClientObservation,
    Observation,
    QueueObservation,
    commit_moves,
    last_round,
    progress_dumps,
    unheard,
)
from rebalance_core.audit.comparison.prediction import Prediction, holds
from rebalance_core.audit.evidence.configurations import readable_queues
from rebalance_core.audit.evidence.dumps import SAME_ROUND_MS, libraries, number, queue_of
from rebalance_core.audit.evidence.formatting import listed, plural, queue_names
from rebalance_core.audit.evidence.orphans import Offsets
from rebalance_core.audit.evidence.persistence import is_broadcasting
from rebalance_core.audit.evidence.subscriptions import strategy_is_known
from rebalance_core.audit.finding import Finding, Rule
from rebalance_core.model.queue import MessageQueue, is_retry_topic
from rebalance_core.model.statuses import ERROR, INFO, WARNING
from rebalance_core.model.times import utc
from rebalance_core.protocol.windows import ORDER_LOCK_MS

NOT_READ = Rule(
    "QUEUES_NOT_READ",
    ERROR,
    "consumerProgress -s shows no holder of a queue in which messages wait, in the two newest "
    "dumps or in one while no commit moves: every listed member answered, and no change of the "
    "group is under way. It is a fact whatever the strategy, also where that is not known.",
    "QUEUE_PROGRESS (N/A), observed_members, DUMP and HELD_QUEUE of consumerStatus; epochs for the "
    "windows of changes; committed_offsets",
    "Restart the members one by one, and look for the cause in the group's other findings.",
)
NOT_TOLD = Rule(
    "QUEUES_NOT_TOLD",
    INFO,
    "Members that brokers list did not tell mqadmin which queues they hold, so nobody knows "
    "whether they hold those that nobody else does. mqadmin stops at the first member that does "
    "not answer: consumerProgress -s then shows N/A for queues of others, too, and is no evidence.",
    "observed_members, DUMP of consumerStatus, QUEUE_PROGRESS",
    "Nothing for clients whose language has no such answer (C++ before 1.2.5, ali-ons); else dump "
    "again, and look at a member that never answers.",
)


@dataclass(frozen=True, slots=True)
class Unheld:
    """A queue that nobody holds.

    Attributes:
        behind: messages in it that the group has not read.
        since_ms: the first of the looks without a holder; at_ms: the newest.
        source: of the newest.
    """

    queue: MessageQueue
    behind: int
    since_ms: int
    at_ms: int
    source: str


@dataclass(frozen=True, slots=True)
class Untold:
    """Members of the last round that did not tell their queues, and queues left open by it."""

    members: tuple[str, ...]
    listed: int
    queues: tuple[MessageQueue, ...]
    at_ms: int


def unheld(
    case: GroupCase, prediction: Prediction, observed: list[Observation]
) -> Iterator[Unheld]:
    """The queues that nobody holds, though messages wait in them and no change is under way.

    Args:
        case: the group.
        prediction: its ledger; of a strategy that is not known its queues and windows still count.
        observed: all observations, in order of time.
    """
    if is_broadcasting(case):
        return
    since_ms = case.run.end_ms - case.run.stale_ms
    held = _held_by_clients(observed)
    progress = {(queue_of(row), row["first_ms"]): row for row in case.facts("QUEUE_PROGRESS")}
    offsets = Offsets(case)
    looks: dict[MessageQueue, list[QueueObservation]] = {}
    for one in observed:
        if isinstance(one, QueueObservation):
            looks.setdefault(one.queue, []).append(one)
    for queue, seen in sorted(looks.items()):
        newest, before = seen[-1], seen[-2] if len(seen) > 1 else None
        row = progress.get((queue, newest.at_ms))
        if newest.address or newest.at_ms < since_ms or queue in held or row is None:
            continue
        behind = _behind(row, offsets)
        if not behind or not _should_be_read(case, prediction, queue, newest.at_ms):
            continue
        again = before is not None and not before.address
        if again or not commit_moves(case, row):
            first_ms = before.at_ms if before is not None and again else newest.at_ms
            yield Unheld(queue, behind, first_ms, newest.at_ms, newest.source)


def _held_by_clients(observed: list[Observation]) -> set[MessageQueue]:
    """Queues that a client of the last round says it holds or pops."""
    clients = [one for one in last_round(observed) if isinstance(one, ClientObservation)]
    return {queue for one in clients for queue in one.held | one.popped}


def _behind(row: Row, offsets: Offsets) -> int:
    """Messages that wait in the queue, by the dump itself; an offset below the minimum is none."""
    low, _ = offsets.ends.get(queue_of(row), (0, 0))
    return number(row, "broker_offset", 0) - max(number(row, "consumer_offset", 0), low)


def _should_be_read(
    case: GroupCase, prediction: Prediction, queue: MessageQueue, at_ms: int
) -> bool:
    """True if the group can read the queue at this time, and nothing that changes explains it."""
    configured = any(row["topic"] == queue.topic for row in case.rows("topics"))
    if configured and queue[1:] not in readable_queues(case, queue.topic):
        return False
    if not prediction.holdings(queue, at_ms) or prediction.takers(queue, at_ms):
        return False  # it is in no route, or who pops it is no holder
    if strategy_is_known(case) and not prediction.owners(queue, at_ms):
        return False  # nobody should have it: ORPHAN_QUEUES and the rules of the strategies say why
    # who is to have it may wait for the order lock of the one before
    wait_ms = ORDER_LOCK_MS if case.settings.get("ordered") else 0
    return prediction.changing(at_ms - wait_ms, at_ms + COMMAND_MS) is None


def untold(case: GroupCase, prediction: Prediction, observed: list[Observation]) -> Untold | None:
    """Who did not tell its queues in the last round of dumps; None: everybody did that matters."""
    dumps = list(progress_dumps(case))
    if not dumps or not observed:
        return None
    at_ms, round_ms = dumps[-1][0]["first_ms"], last_round(observed)[0].at_ms
    if at_ms < round_ms - SAME_ROUND_MS:
        return None
    members = unheard(case, dumps[-1])
    told = {one.client_id for one in observed if isinstance(one, ClientObservation)
            and one.at_ms >= round_ms}  # fmt: skip
    left = [
        queue
        for queue in (queue_of(row) for row in dumps[-1] if not row["details"].get("client_ip"))
        if (owners := prediction.owners(queue, at_ms)) and not owners <= told
    ]
    silent = members - told
    if not left or not silent:
        return None
    there = {row["client_id"] for row in case.rows("memberships") if holds(row, at_ms)}
    return Untold(tuple(sorted(silent)), len(there | silent), tuple(sorted(left)), at_ms)


def not_read(case: GroupCase, found: Iterable[Unheld]) -> Iterator[Finding]:
    """One finding a topic."""
    offsets = Offsets(case)
    topics: dict[str, list[Unheld]] = {}
    for one in found:
        topics.setdefault(one.queue.topic, []).append(one)
    for topic, unread in sorted(topics.items()):
        names = queue_names(one.queue[1:] for one in unread)
        behind, at_ms = sum(one.behind for one in unread), max(one.at_ms for one in unread)
        alone = unread[0].queue if len(unread) == 1 else None
        yield Finding(
            f"{names} of {topic}: no holder (dump of {utc(at_ms)}), "
            f"{behind:,} message{'' if behind == 1 else 's'} behind.",
            {
                "queues": names,
                "behind": str(behind),
                "committed": offsets.committed(one.queue for one in unread),
                "source": unread[0].source,
            },
            severity=WARNING if is_retry_topic(topic) else None,
            topic=topic,
            broker_name=alone.broker_name if alone else None,
            queue_id=alone.queue_id if alone else None,
            first_ms=min(one.since_ms for one in unread),
        )


def not_told(case: GroupCase, found: Untold) -> Finding:
    """The finding on members that did not answer."""
    named = libraries(case)
    kinds = {named[client_id] for client_id in found.members if client_id in named}
    names = f" ({', '.join(sorted(kinds))})" if kinds else ""
    do = "does" if len(found.members) == 1 else "do"
    return Finding(
        f"{len(found.members)} of {plural(found.listed, 'member')} {do} not tell their queues"
        f"{names}: {plural(len(found.queues), 'queue')} not verified.",
        {
            "members": listed(found.members),
            "queues": listed(f"{q.topic}/{q.broker_name}/{q.queue_id}" for q in found.queues),
        },
        first_ms=found.at_ms,
        last_ms=found.at_ms,
    )
