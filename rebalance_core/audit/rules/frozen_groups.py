"""Groups whose members cannot allocate a topic and keep what they hold."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import takewhile
from typing import TYPE_CHECKING

from rebalance_core.audit import dumps, stretches
from rebalance_core.audit.group_snapshot import (
    Finding,
    GroupSnapshot,
    Rule,
    known_topics,
    listed,
)
from rebalance_core.audit.known_shares import reads_static_topic, strategy_is_known
from rebalance_core.audit.subjects import MEMBERS, TOPICS
from rebalance_core.audit.topic_readers import version_of
from rebalance_core.audit.topic_settings import (
    READ,
    configs,
    is_deleted,
    perm_of,
    readable_queues,
    subscribed_topics,
    unreadable_topics,
)
from rebalance_core.audit.unknowns import topic_store
from rebalance_core.model.clients import JAVA_PROFILE, profile_of, profile_of_row
from rebalance_core.model.errors import AllocationError
from rebalance_core.model.group_settings import BROKER_STRATEGIES, GroupSettings
from rebalance_core.model.queue import MessageQueue, sort_client_ids, sort_queues
from rebalance_core.model.timeline import Unknown
from rebalance_core.model.times import utc
from rebalance_core.model.verdicts import ERROR, FROZEN
from rebalance_core.protocol.query_assignment import asks_broker
from rebalance_core.strategies import parse_strategy
from rebalance_core.strategies.custom import CustomStrategy
from rebalance_core.strategies.machine_room_nearby import MachineRoomNearby

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import MembershipsRow


def find_frozen_group(group: GroupSnapshot) -> Iterator[Finding]:
    """Yield at most one finding, for the FROZEN epochs at the end (rocketmq.md §6.3)."""
    if reads_static_topic(group):
        return
    since_ms = _frozen_since(group)
    if since_ms is None or not group.members:
        return
    why = [text for topic in subscribed_topics(group) for text in _why(group, topic)]
    if not why and not strategy_is_known(group):
        return
    ids = sorted({row["client_id"] for row in group.members})
    yield Finding(
        f"Allocation has failed on {listed(ids, 3)} since {utc(since_ms)}: "
        f"{listed(why, 5) or 'the strategy threw'}. {' '.join(_what_is_kept(group, ids))}",
        {"why": listed(why), "members": listed(ids)} | _logged(group),
        first_ms=since_ms,
        unknown=_may_be_elsewhere(group),
    )


def _frozen_since(group: GroupSnapshot) -> int | None:
    """Return the time since which members cannot allocate, or None if they can or it has not
    settled.

    If no member freezes, clients in other languages may drop a topic without a readable queue.
    """
    stretch = list(takewhile(lambda epoch: epoch["status"] == FROZEN, reversed(group.epochs)))
    first = stretch[-1] if stretch else None
    if first is None and any(map(_is_of_another, group.members)):
        topics = subscribed_topics(group)
        shut = [ms for topic, ms in unreadable_topics(group).items() if topic in topics]
        first = group.epoch_at(min(shut)) if shut else None
    settled = first is not None and stretches.has_settled(group, first["epoch"])
    return first["from_ms"] if first is not None and settled else None


def _is_of_another(member: MembershipsRow) -> bool:
    return profile_of_row(member) is not JAVA_PROFILE


def _what_is_kept(group: GroupSnapshot, ids: list[str]) -> Iterator[str]:
    """Describe what each member's client keeps of a topic without a readable queue."""
    of_client = dumps.languages(group)
    profiles = {client_id: profile_of(of_client.get(client_id)) for client_id in ids}
    shut = bool(unreadable_topics(group))
    unproven = [
        client_id for client_id, profile in profiles.items() if shut and "no_queue" in profile.read
    ]
    let_go = sorted(dumps.go_clients(group) & {*ids}) if shut else []
    if len(unproven) + len(let_go) < len(profiles):
        yield "Members keep the queues they held; new members get none."
    if let_go:
        yield f"Go clients dropped the queues that they held: {listed(let_go, 3)}."
    if unproven:
        yield f"It is untested which queues these other clients keep: {listed(unproven, 3)}."


def _may_be_elsewhere(group: GroupSnapshot) -> Unknown | None:
    """Return a broker that was not collected and may have a topic about which nothing is known."""
    topics = {row["topic"] for row in group.tables["topics"]}
    if not group.run.missing or topics.issuperset(subscribed_topics(group)):
        return None
    return topic_store(min(group.run.missing)).missing()


def _why(group: GroupSnapshot, topic: str) -> Iterator[str]:
    """Yield why no member can allocate this topic; nothing if its allocation works."""
    members = [row for row in group.members if topic in known_topics(row)]
    if not readable_queues(group, topic) and not _holds(group, topic):
        yield f"{topic} has no readable queue ({_state(group, topic)})"
        return
    for text in sorted({row["strategy"] for row in members}):
        name = text.partition("(")[0]
        asking = [row for row in members if row["strategy"] == text and _asks_broker(group, row)]
        if asking and name not in BROKER_STRATEGIES:
            yield f"brokers do not know the strategy {name}"
            continue
        strategy = parse_strategy(text)
        if isinstance(strategy, MachineRoomNearby) and strategy_is_known(group):
            rooms = strategy.rooms
            brokers = sorted({broker for broker, _ in readable_queues(group, topic)})
            for broker in brokers:
                if not rooms.known_room(MessageQueue(topic, broker, 0)):
                    yield f"machine room is null for broker {broker}"
            for client_id in sorted({row["client_id"] for row in group.members}):
                if not rooms.known_room(client_id):
                    yield f"machine room is null for {client_id}"
        elif isinstance(strategy, CustomStrategy):
            yield from _thrown(group, topic, strategy)


def _thrown(group: GroupSnapshot, topic: str, strategy: CustomStrategy) -> Iterator[str]:
    """Return the error that a custom strategy raises for this topic's queues and the members at the
    end.
    """
    queues = [MessageQueue(topic, *queue) for queue in readable_queues(group, topic)]
    try:
        strategy.allocate_all(
            sort_queues(queues), sort_client_ids(row["client_id"] for row in group.members)
        )
    except AllocationError as error:
        yield f"{strategy} throws {error}"


def _asks_broker(group: GroupSnapshot, member: MembershipsRow) -> bool:
    settings, default = group.settings, GroupSettings()
    ordered = settings["ordered"]
    return asks_broker(
        settings["rebalance_mode"] or default.rebalance_mode,
        settings["consumer_type"] or default.consumer_type,
        member["message_model"],
        default.ordered if ordered is None else ordered,
        version_of(member),
    )


def _holds(group: GroupSnapshot, topic: str) -> bool:
    """Return True if the ledger has queues of the topic although no configuration is known."""
    configured = any(row["topic"] == topic for row in group.tables["topics"])
    return not configured and any(row["topic"] == topic for row in group.owned)


def _state(group: GroupSnapshot, topic: str) -> str:
    rows = [row for row in group.tables["topics"] if row["topic"] == topic]
    gone = sorted(row["broker_name"] for row in rows if is_deleted(row))
    if not rows:
        return "no broker has the topic"
    if len(gone) == len(rows):
        return f"deleted from {listed(gone, 3)}"
    closed = [r["broker_name"] for r in configs(group, topic) if not perm_of(r) & READ]
    return f"no read permission on {listed(closed, 3)}" if closed else "its brokers are down"


def _logged(group: GroupSnapshot) -> dict[str, str]:
    said = {fact["details"].get("message", "") for fact in group.facts["ALLOCATION_FAILED"]}
    return {"logged": listed(sorted(said), 3)} if said else {}


FROZEN_GROUP = Rule(
    "FROZEN_GROUP",
    ERROR,
    "Members cannot allocate a topic: it has no readable queue, or the strategy throws. Members "
    "keep the queues they held, new members get none, and the queues of members that leave stay "
    "without an owner. Go clients drop a topic without a readable queue.",
    "epochs (FROZEN), memberships, topics, ALLOCATION_FAILED, observed_members",
    "Create the topic or restore its read permission; with machine rooms, name brokers and "
    "clients so that each has a room; or unsubscribe all members from the topic.",
    find_frozen_group,
    by_absence=True,
    reads=(TOPICS, MEMBERS),
)
