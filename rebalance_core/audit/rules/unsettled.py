"""Groups that did not come to rest: frozen, with suspended members, or with owners for a moment."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from itertools import takewhile
from typing import TYPE_CHECKING

from rebalance_core.audit import dumps, logged_causes, stretches, subscriptions
from rebalance_core.audit.duplicate_ids import DuplicateId, logged_duplicates
from rebalance_core.audit.group_snapshot import (
    Finding,
    GroupSnapshot,
    Rule,
    known_topics,
    lasting,
    listed,
    plural,
    queue_names,
)
from rebalance_core.audit.subjects import EVENTS, MEMBERS, SUSPENSIONS, TOPICS
from rebalance_core.audit.subscriptions import reads_static_topic, strategy_is_known, version_of
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
from rebalance_core.model.times import MINUTE_MS, utc
from rebalance_core.model.verdicts import ERROR, FROZEN, INFO, WARNING
from rebalance_core.protocol.query_assignment import asks_broker
from rebalance_core.strategies import parse_strategy
from rebalance_core.strategies.custom import CustomStrategy
from rebalance_core.strategies.machine_room_nearby import MachineRoomNearby

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import MembershipsRow, OwnershipRow

# FROZEN_GROUP: the members cannot allocate a topic and keep what they have.


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
        f"{listed(ids, 3)} cannot allocate since {utc(since_ms)}: "
        f"{listed(why, 5) or 'the strategy threw'}. {' '.join(_what_is_kept(group, ids))}",
        {"why": listed(why), "members": listed(ids)} | _logged(group),
        first_ms=since_ms,
        unknown=_may_be_elsewhere(group),
    )


def _frozen_since(group: GroupSnapshot) -> int | None:
    """Return since when members cannot allocate, or None if they can or it has not settled.

    Where no member freezes, clients in other languages may drop a topic without a readable
    queue.
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
    """Yield in words what each member's client keeps of a topic without a readable queue."""
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
        yield f"Go clients dropped the queues they held: {listed(let_go, 3)}."
    if unproven:
        yield f"Which queues other clients keep is untested: {listed(unproven, 3)}."


def _may_be_elsewhere(group: GroupSnapshot) -> Unknown | None:
    """Return a broker that was not collected and may have a topic of which nothing is known."""
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
    """Return what an own strategy raises for this topic's queues and the members at the end."""
    queues = [MessageQueue(topic, *queue) for queue in readable_queues(group, topic)]
    try:
        strategy.allocate_all(
            sort_queues(queues), sort_client_ids(row["client_id"] for row in group.members)
        )
    except AllocationError as error:
        yield f"{strategy} throws {error}"


def _asks_broker(group: GroupSnapshot, member: MembershipsRow) -> bool:
    stated = {name: value for name, value in group.settings.items() if value is not None}
    settings = asdict(GroupSettings()) | stated
    return asks_broker(
        settings["rebalance_mode"],
        settings["consumer_type"],
        member["message_model"],
        settings["ordered"],
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
    "Create the topic or restore its read permission; for rooms, name brokers and clients so that "
    "each has a room; or unsubscribe the topic in all members.",
    find_frozen_group,
    by_absence=True,
    reads=(TOPICS, MEMBERS),
)


# MEMBER_SUSPENDED: a member is suspended and keeps its share.

SHORT_MS = MINUTE_MS
"""A pause shorter than this delays messages and harms no more."""


def find_suspended(group: GroupSnapshot) -> Iterator[Finding]:
    """Yield a finding for each stretch in which a process is suspended (rocketmq.md §3.2)."""
    for first, last in _stretches(group):
        until = group.run.end_ms if last["to_ms"] is None else last["to_ms"]
        if until < group.run.start_ms:
            continue
        yield _finding(group, first, last, until - first["from_ms"])


def _stretches(group: GroupSnapshot) -> Iterator[tuple[MembershipsRow, MembershipsRow]]:
    """Yield the first and last row of each unbroken suspension."""
    rows = [row for row in group.tables["memberships"] if row["suspended"]]
    rows.sort(key=lambda row: (row["client_id"], row["channel_id"] or "", row["from_epoch"]))
    first = last = None
    for row in rows:
        same = last is not None and (
            (last["client_id"], last["channel_id"]) == (row["client_id"], row["channel_id"])
            and last["to_epoch"] == row["from_epoch"]
        )
        if not same and first is not None and last is not None:
            yield first, last
        first, last = (first if same else row), row
    if first is not None and last is not None:
        yield first, last


def _finding(
    group: GroupSnapshot, first: MembershipsRow, last: MembershipsRow, span_ms: int
) -> Finding:
    epoch = last["to_epoch"] - 1 if last["to_epoch"] is not None else None
    shares = stretches.rows_in_epoch(
        [*group.tables["ownership"], *group.tables["pop_reach"]], epoch
    )
    kept = {dumps.queue_of(row) for row in shares if row["client_id"] == last["client_id"]}
    others = {
        row["client_id"]
        for row in shares
        if dumps.queue_of(row) in kept and row["client_id"] not in (None, last["client_id"])
    }
    topics = sorted({topic for topic, _, _ in kept})
    names = [
        f"{topic} {queue_names((broker, number) for t, broker, number in kept if t == topic)}"
        for topic in topics
    ]
    also = f"; also held by {listed(sorted(others), 3)}" if others else ""
    return Finding(
        f"{last['client_id']} is suspended since {utc(first['from_ms'])} ({lasting(span_ms)}): it "
        f"keeps {plural(len(kept), 'queue')} without reading them ({'; '.join(names)}){also}.",
        {"queues": "; ".join(names), "also_held_by": listed(sorted(others))},
        client_id=last["client_id"],
        first_ms=first["from_ms"],
        last_ms=last["to_ms"],
    )


SUSPENDED = Rule(
    "MEMBER_SUSPENDED",
    WARNING,
    "A member called suspend(). It keeps its share without reading it, and the messages wait "
    "until resume().",
    "memberships, ownership",
    "Call resume() in the named client, or stop it so that other members take its queues. Accept "
    "the finding if the suspension is intended.",
    find_suspended,
    reads=(MEMBERS, SUSPENSIONS),
    state=True,
)


# TRANSIENT_OWNERSHIP: queues without or with two owners while a logged cause was being settled.


def find_transient_ownership(group: GroupSnapshot) -> Iterator[Finding]:
    """Yield at most one finding: how many queues, the worst, the causes (rocketmq.md §8)."""
    if subscriptions.is_broadcasting(group):
        return
    duplicate = logged_duplicates(group)
    spans = [
        (row, span_ms)
        for row in group.tables["ownership"]
        if (span_ms := _short(group, row))
        and not any(_covers(overlap, row) for overlap in duplicate)
    ]
    if not spans:
        return
    unowned = {dumps.queue_of(row) for row, _ in spans if row["client_id"] is None}
    twice = {dumps.queue_of(row) for row, _ in spans if row["client_id"] is not None}
    worst, worst_ms = min(
        spans, key=lambda pair: (-pair[1], dumps.queue_of(pair[0]), pair[0]["from_ms"])
    )
    epochs = {row["epoch"]: row for row in group.epochs}
    causes = [
        logged_causes.cause_text(group, epochs[number])
        for number in sorted({row["from_epoch"] for row, _ in spans})
        if number in epochs
    ]
    parts = [f"{plural(len(unowned), 'queue')} without an owner" if unowned else "",
             f"{plural(len(twice), 'queue')} held twice" if twice else ""]  # fmt: skip
    yield Finding(
        f"{' and '.join(part for part in parts if part)} for a while, the longest "
        f"{worst['topic']} {worst['broker_name']}:{worst['queue_id']} for "
        f"{lasting(worst_ms)}; explained by {listed(causes, 3)}.",
        {"no_owner": str(len(unowned)), "twice": str(len(twice)), "causes": listed(causes)},
        first_ms=min(row["from_ms"] for row, _ in spans),
        last_ms=max(row["to_ms"] or group.run.end_ms for row, _ in spans),
    )


def _covers(duplicate: DuplicateId, row: OwnershipRow) -> bool:
    """Return True if the row lies in a time of a duplicate id, which has its own finding."""
    return duplicate.first_ms <= row["from_ms"] and (
        duplicate.last_ms is None or row["from_ms"] < duplicate.last_ms
    )


def _short(group: GroupSnapshot, row: OwnershipRow) -> int:
    """Return how long a queue did not have exactly one holder while the group was online, or 0."""
    if row["client_id"] is not None and row["holders"] < 2:
        return 0
    if stretches.is_persistent(group, stretches.span_of(row)):
        return 0
    until = group.run.end_ms if row["to_ms"] is None else row["to_ms"]
    span_ms = int(until - row["from_ms"])
    return span_ms - stretches.offline_ms(group, row["from_ms"], until)


TRANSIENT_OWNERSHIP = Rule(
    "TRANSIENT_OWNERSHIP",
    INFO,
    "Queues had no owner or two owners while a join, a loss or a topic change settled. This is "
    "normal during a rebalance; no message is lost.",
    "ownership, epochs, diffs",
    "Nothing. If it happens often, find out why members come and go.",
    find_transient_ownership,
    by_owners=True,
    reads=(EVENTS,),
)
