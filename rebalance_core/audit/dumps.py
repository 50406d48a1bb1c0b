"""Evidence about a group, from dumps and facts."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Literal, TypeAlias, TypeVar, get_args

from rebalance_core.audit.group_snapshot import (
    PERSISTENT_MS,
    ExpiredMessages,
    GroupSnapshot,
    grouped,
)
from rebalance_core.model.languages import NODE
from rebalance_core.model.queue import MessageQueue
from rebalance_core.model.system_groups import is_system_group as is_system_group
from rebalance_core.model.times import REBALANCE_WAIT_MS
from rebalance_core.protocol.client_libraries import ALI_ONS, GO, library_of

if TYPE_CHECKING:
    from rebalance_core.contracts.row_parts import Dumped, NamesQueue
    from rebalance_core.contracts.rows import (
        Fact,
        FlowControlledFact,
        HeldQueueFact,
        MessagesExpiredFact,
        MessagesOfAnyExpiredFact,
        OffsetIllegalFact,
        QueueProgressFact,
        StuckQueueFact,
    )


def may_assign(group: GroupSnapshot) -> bool:
    """Return True if there is a member for which no file shows whether it rebalances its
    subscriptions.
    """
    return any(row["rule_id"] == "INGEST_MAY_ASSIGN" for row in group.tables["findings"])


AnyRow = TypeVar("AnyRow")
OfQueue = TypeVar("OfQueue", bound="NamesQueue")


def queue_of(row: NamesQueue) -> MessageQueue:
    """Return the queue that a row names."""
    return MessageQueue(row["topic"], row["broker_name"], row["queue_id"])


def by_topic(rows: list[OfQueue]) -> dict[str, list[OfQueue]]:
    """Return the rows of each topic, in the order of topics."""
    return grouped(sorted(rows, key=queue_of), lambda row: row["topic"])


def seen_ms(row: Dumped) -> int:
    """Return when a dump showed the row."""
    return row["observed_ms"]


def first_stated(fact: Fact) -> int:
    """Return when the fact was first stated."""
    return fact["first_ms"]


def last_stated(fact: Fact) -> int:
    """Return when the fact was last stated."""
    return fact["last_ms"]


OnQueue = TypeVar(
    "OnQueue", "StuckQueueFact", "FlowControlledFact", "OffsetIllegalFact", "QueueProgressFact"
)


def newest_of_queues(facts: Iterable[OnQueue]) -> dict[MessageQueue, OnQueue]:
    """Return the newest fact of each queue."""
    return {queue_of(fact): fact for fact in sorted(facts, key=last_stated)}


def newest_answers(group: GroupSnapshot) -> dict[MessageQueue, QueueProgressFact]:
    """Return the newest row of consumerProgress about each queue."""
    return newest_of_queues(group.facts["QUEUE_PROGRESS"])


def holder_address(answer: QueueProgressFact) -> str:
    """Return the holder's address; empty if there is no holder, or the answer has no column for
    it.
    """
    return answer["details"].get("client_ip") or ""


def holders_at_end(group: GroupSnapshot) -> dict[MessageQueue, set[str]]:
    """Return the members that hold each queue at the end: the owner according to the ledger, and
    the members in the queue's newest dump if it is no older than the owner's holding.
    """
    held: dict[MessageQueue, set[str]] = {}
    since_ms: dict[MessageQueue, int] = {}
    for row in group.owned:
        if row["client_id"] is not None:
            queue = queue_of(row)
            held.setdefault(queue, set()).add(row["client_id"])
            since_ms[queue] = max(row["from_ms"], since_ms.get(queue, 0))
    members = {row["client_id"] for row in group.members}
    for queue, rows in grouped(group.tables["observed_ownership"], queue_of).items():
        newest_ms = max(map(seen_ms, rows))
        shown = {row["client_id"] for row in rows if seen_ms(row) == newest_ms} & members
        if shown and newest_ms >= since_ms.get(queue, 0):
            held.setdefault(queue, set()).update(shown)
    return held


def fresh(
    group: GroupSnapshot, rows: Iterable[AnyRow], time_of: Callable[[AnyRow], int]
) -> list[AnyRow]:
    """Return the rows that are not stale, going by ``time_of``."""
    since = group.run.end_ms - group.run.stale_ms
    return [row for row in rows if time_of(row) >= since]


def held_over_time(group: GroupSnapshot) -> dict[tuple[str, MessageQueue], list[HeldQueueFact]]:
    """Return the states of each queue in clients' own dumps, in chronological order, by client and
    queue.
    """
    return grouped(
        fresh(group, group.facts["HELD_QUEUE"], last_stated),
        lambda fact: (fact["client_id"], queue_of(fact)),
    )


def whole_answers(group: GroupSnapshot) -> dict[str, list[int]]:
    """Return when each client gave an answer with all of its queues, epoch ms."""
    answers: dict[str, list[int]] = {}
    for row in group.facts["DUMP"]:
        details = row["details"]
        if (
            details["command"] == "consumerStatus"
            and row["client_id"]
            and not details.get("error")
            and details.get("rows") != "0"
            and details.get("queues_told") != "false"
            and not flag(details.get("partial"))
        ):
            answers.setdefault(row["client_id"], []).append(row["first_ms"])
    return answers


def libraries(group: GroupSnapshot) -> dict[str, str]:
    """Return, by client id, the library of each client whose language a broker's list shows."""
    rows = sorted(group.tables["observed_members"], key=lambda row: row["observed_ms"])
    named = [
        (row["client_id"], library_of(row.get("language"), row.get("version"))) for row in rows
    ]
    return {client_id: library for client_id, library in named if library is not None}


def languages(group: GroupSnapshot) -> dict[str, str]:
    """Return, by id, the language of each client for which a broker's list or its membership shows
    it.
    """
    listed = {
        client_id: NODE if name == ALI_ONS else name for client_id, name in libraries(group).items()
    }
    rows = ((row["client_id"], row["language"]) for row in group.tables["memberships"])
    return listed | {client_id: language for client_id, language in rows if language is not None}


def go_clients(group: GroupSnapshot) -> set[str]:
    """Return the Go clients, which drop all queues of an unreadable topic; Java clients keep
    them.
    """
    return {client_id for client_id, language in languages(group).items() if language == GO}


def is_steady(fact: Fact) -> bool:
    """Return True if every pass from the first to the last time stated the fact."""
    return bool(fact["times"] * 2 * REBALANCE_WAIT_MS >= fact["last_ms"] - fact["first_ms"])


def lasts(fact: Fact) -> bool:
    """Return True if every pass stated the fact for longer than any transient lasts."""
    return is_steady(fact) and bool(fact["last_ms"] - fact["first_ms"] > PERSISTENT_MS)


def number(text: str | None, default: int = -1) -> int:
    """Return a numeric field of a fact's details, or the default if it is missing or unknown."""
    try:
        return default if text is None else int(text)
    except ValueError:
        return default


def expired_messages(fact: MessagesExpiredFact | MessagesOfAnyExpiredFact) -> ExpiredMessages:
    """Return the messages of a queue that a listener kept for too long."""
    details = fact["details"]
    return ExpiredMessages(
        topic=fact["topic"],
        queue_id=fact["queue_id"],
        address=details["address"],
        log=details["log"],
        client_id=fact["client_id"],
        highest=number(details["highest"], 0),
        last_ms=fact["last_ms"],
        of_group=fact["kind"] == "MESSAGES_EXPIRED",
    )


def flag(text: str | None) -> bool:
    """Return a boolean field of a fact's details, or False if it is missing or unknown."""
    return text is not None and text.lower() == "true"


OfAClient: TypeAlias = Literal[
    "NO_MEMBER_LIST",
    "NOT_IN_MEMBER_LIST",
    "REQUEST_FAILED",
    "BROADCAST_REFUSED",
    "NOTHING_COMMITTED",
    "PULL_EXPIRED",
    "POP_TIMED_OUT",
    "FLOW_CONTROLLED",
    "START_REFUSED",
    "TOPIC_MISSING",
    "OFFSET_ILLEGAL",
    "MESSAGES_EXPIRED",
]
OF_A_CLIENT: tuple[OfAClient, ...] = get_args(OfAClient)
"""Kinds of facts about the group that only the log of a running client states."""
