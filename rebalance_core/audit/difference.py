"""One queue that live ownership shows otherwise than the ledger, and the likely why."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from rebalance_core.audit.case import PERSISTENT_MS, GroupCase, Row
from rebalance_core.audit.looks import ClientLook, Look, queue_of
from rebalance_core.audit.prediction import Prediction
from rebalance_core.model.errors import AllocationError
from rebalance_core.model.events import BROKER_UP
from rebalance_core.model.ordering import sort_client_ids
from rebalance_core.model.queue import MessageQueue, sort_queues
from rebalance_core.strategies import allocate_group, parse_strategy

TWIN, LOCK, FOREIGN, STALE, UNEXPLAINED = (
    "TWIN_CLIENT_ID",
    "LOCK_HELD",
    "FOREIGN_STRATEGY",
    "STALE_VIEW",
    "UNEXPLAINED",
)
CLASSES = {
    TWIN: "two processes with one client id answer in turns, or one was just lost",
    LOCK: "the order lock of the queue is still with another client, or not yet granted",
    FOREIGN: "the live owners are those of another strategy than the group's",
    STALE: "the client still holds what it should have had before a change, or by another "
    "broker's list of members",
    UNEXPLAINED: "none of these",
}
CANDIDATES = ("AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH")
"""Strategies without parameters that a foreign member may use."""
FOREIGN_CLIENTS = 2
"""One holder alone fits many strategies."""
LOCK_MS = 61_000
"""A lock that nobody renews lapses after 60 s (SEM §7)."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A queue at one moment: who should hold it, who does.

    Attributes:
        predicted: client ids of the ledger; none: nobody.
        live: the holder, a client id or the part before its ``@``; None: nobody, or not he.
        asked: the client whose answer this is, or the first that should hold the queue.
        why: one of `CLASSES`; told: a few words on it.
        cause: the logged event that explains it for now; empty: none.
    """

    queue: MessageQueue
    predicted: frozenset[str]
    live: str | None
    asked: str | None
    at_ms: int
    source: str
    why: str = UNEXPLAINED
    told: str = ""
    cause: str = ""


def classified(
    differences: Iterable[Difference], found: list[Look], case: GroupCase, prediction: Prediction
) -> Iterator[Difference]:
    """The differences with their class and a few words on it.

    Args:
        differences: of the group's looks.
        found: all looks.
        case: the group.
        prediction: its ledger.
    """
    for one in differences:
        reasons = _reasons(one, found, case, prediction)
        why, told = next(reasons, (UNEXPLAINED, ""))
        cause = _cause(case, one.at_ms) if why == STALE else ""
        yield replace(one, why=why, told=told, cause=cause)


def _cause(case: GroupCase, at_ms: int) -> str:
    """The return of a broker, after which it lists members wrongly for a while (SEM §13.5)."""
    for epoch in reversed(case.epochs):
        if at_ms - PERSISTENT_MS <= epoch["from_ms"] <= at_ms and BROKER_UP in epoch["causes"]:
            return f"{BROKER_UP} {(at_ms - epoch['from_ms']) // 1000} s before"
    return ""


def _reasons(
    one: Difference, found: list[Look], case: GroupCase, prediction: Prediction
) -> Iterator[tuple[str, str]]:
    twins = _twins(case, one.at_ms)
    if twins:  # every member's share depends on how often an id is listed
        yield TWIN, f"{min(twins)} is the id of two processes"
    lock = next((row for row in case.facts("LOCK_REFUSED") if _refused(row, one)), None)
    if lock is not None:
        yield LOCK, f"{lock['details'].get('owner', '')} has its order lock"
    if one.live is not None:
        before = prediction.earlier(one.queue, one.live, one.at_ms)
        if before is not None:
            yield STALE, f"{one.live} should have given it up at {before['to_ms']}"
    view = _other_members(one, case, prediction)
    if view:
        yield STALE, view
    name = _other_strategy(one, found, case, prediction)
    if name:
        yield FOREIGN, f"the live owners of {one.queue.topic} are those of {name}"


def _twins(case: GroupCase, at_ms: int) -> set[str]:
    """Client ids of two processes, now or within the life of a lost connection."""
    seen: dict[str, set[str | None]] = {}
    for row in case.rows("memberships"):
        ends = row["to_ms"]
        if row["from_ms"] <= at_ms and (ends is None or at_ms < ends + LOCK_MS):
            seen.setdefault(row["client_id"], set()).add(row.get("channel_id"))
    return {client for client, channels in seen.items() if len(channels) > 1}


def _refused(row: Row, one: Difference) -> bool:
    near = row["first_ms"] - LOCK_MS <= one.at_ms <= row["last_ms"] + LOCK_MS
    return near and queue_of(row) == one.queue


def _members(case: GroupCase, at_ms: int) -> list[str]:
    """Entries of cidAll at this moment; one who does not subscribe the topic counts too."""
    return [
        row["client_id"]
        for row in case.rows("memberships")
        if row["from_ms"] <= at_ms and (row["to_ms"] is None or at_ms < row["to_ms"])
    ]


def _owners_by(
    text: str, one: Difference, clients: list[str], prediction: Prediction
) -> dict[MessageQueue, tuple[str, ...]]:
    queues = sort_queues(q for q in prediction.queues(one.at_ms) if q.topic == one.queue.topic)
    if not queues or not clients:
        return {}
    try:
        return allocate_group(parse_strategy(text), queues, sort_client_ids(clients))
    except AllocationError:
        return {}


def _other_strategy(
    one: Difference, found: list[Look], case: GroupCase, prediction: Prediction
) -> str:
    """The strategy that explains every live holder of the topic, while the group uses another."""
    live = _live_holders(one, found)
    clients = _members(case, one.at_ms)
    used = {row["strategy"] for row in case.rows("memberships")}
    if len(set(live.values()) - {""}) < FOREIGN_CLIENTS:
        return ""
    for name in CANDIDATES:
        owners = {} if name in used else _owners_by(name, one, clients, prediction)
        if owners and all(
            any(_is(holder, owner) for owner in owners.get(queue, ()))
            if holder
            else not owners.get(queue)
            for queue, holder in live.items()
        ):
            return name
    return ""


def _live_holders(one: Difference, found: list[Look]) -> dict[MessageQueue, str]:
    """Holder of each queue of the topic that a look of then shows; empty: nobody."""
    live: dict[MessageQueue, str] = {}
    for look in found:
        if abs(look.at_ms - one.at_ms) > LOCK_MS:
            continue
        if isinstance(look, ClientLook):
            held = [queue for queue in look.held if queue.topic == one.queue.topic]
            live |= dict.fromkeys(held, look.client_id)
        elif look.queue.topic == one.queue.topic:
            live[look.queue] = look.address
    return live


def _is(holder: str, client_id: str) -> bool:
    return holder in (client_id, client_id.partition("@")[0])


def _other_members(one: Difference, case: GroupCase, prediction: Prediction) -> str:
    """The broker whose list of members explains the live holder."""
    lists: dict[str, list[str]] = {}
    for row in case.rows("observed_members"):
        if row["asked_broker"] and abs(row["observed_ms"] - one.at_ms) <= LOCK_MS:
            lists.setdefault(row["asked_broker"], []).append(row["client_id"])
    known = sorted(_members(case, one.at_ms))
    strategies = {row["strategy"] for row in case.members}
    for broker, clients in sorted(lists.items()):
        if sorted(clients) == known or len(strategies) != 1:
            continue
        owners = _owners_by(min(strategies), one, clients, prediction)
        holders = owners.get(one.queue, ())
        if (one.live is None and not holders) or any(
            one.live is not None and _is(one.live, holder) for holder in holders
        ):
            return f"{broker} lists other members: {', '.join(sorted(clients)[:5])}"
    return ""
