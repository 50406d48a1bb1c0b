"""FROZEN_GROUP: the members cannot allocate a topic and keep what they have."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict

from rebalance_core.audit.case import Finding, GroupCase, Row, Rule, known_topics, listed
from rebalance_core.audit.dumps import (
    READ,
    configs,
    is_deleted,
    letting_go,
    perm_of,
    readable_queues,
    subscribed_topics,
    unreadable_topics,
)
from rebalance_core.audit.orphans import has_settled
from rebalance_core.audit.subscriptions import reads_static_topic, strategy_is_known, version_of
from rebalance_core.model.group_settings import BROKER_STRATEGIES, GroupSettings
from rebalance_core.model.queue import MessageQueue
from rebalance_core.model.times import utc
from rebalance_core.model.verdicts import ERROR, FROZEN, INFO
from rebalance_core.protocol.members import asks_broker
from rebalance_core.strategies import parse_strategy
from rebalance_core.strategies.machine_room import MachineRoomNearby


def find(case: GroupCase) -> Iterator[Finding]:
    """At most one finding, for the stretch of FROZEN epochs at the end
    (rocketmq.md §6.3, §11 no. 27).
    """
    if reads_static_topic(case):
        return
    stretch = []
    for epoch in reversed(case.epochs):
        if epoch["status"] != FROZEN:
            break
        stretch.append(epoch)
    if not stretch or not case.members or not has_settled(case, stretch[-1]["epoch"]):
        return
    why = [text for topic in subscribed_topics(case) for text in _why(case, topic)]
    if not why and not strategy_is_known(case):
        return
    ids = sorted({row["client_id"] for row in case.members})
    let_go = sorted(letting_go(case) & set(ids)) if unreadable_topics(case) else []
    kept = (
        [] if len(let_go) == len(ids) else ["Members keep what they held; who joins gets nothing."]
    )
    if let_go:
        kept.append(f"Go clients gave up what they held: {listed(let_go, 3)}.")
    yield Finding(
        f"{listed(ids, 3)} cannot allocate since {utc(stretch[-1]['from_ms'])}: "
        f"{listed(why, 5) or 'the strategy threw'}. {' '.join(kept)}",
        {"why": listed(why), "members": listed(ids)} | _logged(case),
        severity=INFO if _may_be_elsewhere(case) else ERROR,
        first_ms=stretch[-1]["from_ms"],
    )


def _may_be_elsewhere(case: GroupCase) -> bool:
    """True if a topic is unknown and brokers that may have it were not collected."""
    known = {row["topic"] for row in case.rows("topics")}
    return bool(case.run.missing) and not known.issuperset(subscribed_topics(case))


def _why(case: GroupCase, topic: str) -> Iterator[str]:
    """Why nobody can allocate this topic; nothing if its allocation works."""
    members = [row for row in case.members if topic in known_topics(row)]
    if not readable_queues(case, topic) and not _holds(case, topic):
        yield f"{topic} has no readable queue ({_state(case, topic)})"
        return
    for text in sorted({row["strategy"] for row in members}):
        name = text.partition("(")[0]
        asking = [row for row in members if row["strategy"] == text and _asks_broker(case, row)]
        if asking and name not in BROKER_STRATEGIES:
            yield f"brokers do not know the strategy {name}"
            continue
        strategy = parse_strategy(text)
        if isinstance(strategy, MachineRoomNearby) and strategy_is_known(case):
            rooms = strategy.rooms
            brokers = sorted({broker for broker, _ in readable_queues(case, topic)})
            for broker in brokers:
                if not rooms.broker_room(MessageQueue(topic, broker, 0)):
                    yield f"machine room is null for broker {broker}"
            for client_id in sorted({row["client_id"] for row in case.members}):
                if not rooms.client_room(client_id):
                    yield f"machine room is null for {client_id}"


def _asks_broker(case: GroupCase, member: Row) -> bool:
    stated = {name: value for name, value in case.settings.items() if value is not None}
    settings = asdict(GroupSettings()) | stated
    return asks_broker(
        settings["rebalance_mode"],
        settings["consumer_type"],
        member["message_model"],
        settings["ordered"],
        version_of(member),
    )


def _holds(case: GroupCase, topic: str) -> bool:
    """True if the ledger has queues of the topic although no configuration is known."""
    known = any(row["topic"] == topic for row in case.rows("topics"))
    return not known and any(row["topic"] == topic for row in case.owned)


def _state(case: GroupCase, topic: str) -> str:
    rows = [row for row in case.rows("topics") if row["topic"] == topic]
    gone = sorted(row["broker_name"] for row in rows if is_deleted(row))
    if not rows:
        return "no broker has the topic"
    if len(gone) == len(rows):
        return f"deleted from {listed(gone, 3)}"
    closed = [r["broker_name"] for r in configs(case, topic) if not perm_of(r) & READ]
    return f"no read permission on {listed(closed, 3)}" if closed else "its brokers are down"


def _logged(case: GroupCase) -> dict[str, str]:
    said = {fact["details"].get("message", "") for fact in case.facts("ALLOCATION_FAILED")}
    return {"logged": listed(sorted(said), 3)} if said else {}


RULE = Rule(
    "FROZEN_GROUP",
    ERROR,
    "Members cannot allocate a topic: it has no readable queue, or the strategy throws. Each keeps "
    "the queues it held, members that join get none, and nobody takes those of members that go. Go "
    "clients give up the queues of a topic that has no readable queue.",
    "epochs (FROZEN), memberships, topics; facts ALLOCATION_FAILED; observed_members (language)",
    "Create the topic or give it back its read permission; for rooms, name brokers and clients so "
    "that each has a room; or unsubscribe the topic in all members. Passes succeed again within a "
    "minute.",
    find,
)
