"""Groups that no broker has, or that came back after they were deleted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

from rebalance_core.audit import dumps, unknowns
from rebalance_core.audit.coverage import CLIENT_SILENT_MS
from rebalance_core.audit.evidence import end_of
from rebalance_core.audit.group_snapshot import (
    Finding,
    GroupSnapshot,
    Rule,
    listed,
)
from rebalance_core.audit.recovery import recovery
from rebalance_core.audit.subjects import EVENTS, MEMBERS, TOPICS
from rebalance_core.audit.topic_settings import (
    configs,
    configurations,
    lacks_configuration,
    subscribed_topics,
)
from rebalance_core.model.timeline import Unknown
from rebalance_core.model.times import utc
from rebalance_core.model.verdicts import ERROR, INFO, WARNING

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import (
        ClientTopicFact,
        NoMemberListFact,
        NotInMemberListFact,
    )

TROUBLES: tuple[Literal["NO_MEMBER_LIST", "NOT_IN_MEMBER_LIST"], ...] = (
    "NO_MEMBER_LIST",
    "NOT_IN_MEMBER_LIST",
)
"""Kinds of facts that a client logs at each pass if no broker has its group."""


ASKED: tuple[Literal["NO_MEMBER_LIST", "NOT_IN_MEMBER_LIST", "CLIENT_TOPIC"], ...] = (
    *TROUBLES,
    "CLIENT_TOPIC",
)
"""Kinds of facts that show a client of the group."""


STORED_MS = 30_000
"""A group that begins this shortly before its stores were copied may not be in them yet."""


def find_missing(group: GroupSnapshot) -> Iterator[Finding]:
    """Find clients of a group that none of their topics' brokers has (rocketmq.md §6.2)."""
    if dumps.is_system_group(group.consumer_group) or configurations(group):
        return
    asked = [fact for kind in ASKED for fact in group.facts[kind]]
    topics = set(subscribed_topics(group)) | {f["topic"] for f in asked if f["topic"]}
    brokers = sorted({row["broker_name"] for topic in topics for row in configs(group, topic)})
    lacking = [name for name in brokers if lacks_configuration(group, name)]
    if not brokers or len(lacking) < len(brokers) or not (group.members or asked):
        return
    begins = [row["from_ms"] for row in group.members] + [fact["first_ms"] for fact in asked]
    copied = max(group.run.store_ms.get(name, group.run.end_ms) for name in brokers)
    if copied - min(begins) < STORED_MS or not _is_present(group):
        return
    ids = sorted(
        {row["client_id"] for row in group.members}
        | {fact["client_id"] for fact in asked if fact["client_id"]}
    )
    troubles = [fact for kind in TROUBLES for fact in group.facts[kind]]
    over = recovery(group, troubles) if troubles and not group.members else None
    last = max(asked, key=lambda fact: fact["last_ms"], default=None)
    stopped = last is not None and last["last_ms"] < end_of(group) - CLIENT_SILENT_MS
    yield Finding(
        f"Clients of the group run ({listed(ids, 3) or 'unnamed'}), and none of "
        f"{listed(brokers, 5)}, which have its topics, has it in subscriptionGroup.json.",
        {"brokers": listed(brokers), "topics": listed(sorted(topics)), "clients": listed(ids)},
        first_ms=min(begins),
        last_ms=over.at_ms if over else None,
        ended_by=over.shown_by if over else "",
        unknown=_unseen_since(last) if last and stopped and not group.members else None,
    )


def _unseen_since(last: ClientTopicFact | NoMemberListFact | NotInMemberListFact) -> Unknown:
    """Return the gap after a client's last sign of the group: it may have stopped then."""
    log = last["details"]["log"] if last["kind"] == "NO_MEMBER_LIST" else ""
    return unknowns.client_unseen(last["client_id"] or log, last["last_ms"])


def _is_present(group: GroupSnapshot) -> bool:
    """Return True if members or clients existed near the end, not only long before."""
    if group.members:
        return True
    last = max(fact["last_ms"] for kind in ASKED for fact in group.facts[kind])
    left = group.emptied is not None and group.emptied["from_ms"] >= last
    return not left


def find_back(group: GroupSnapshot) -> Iterator[Finding]:
    """Find a group that exists again after its deletion (rocketmq.md §13 no. 7)."""
    deleted = {fact["broker_name"]: fact["last_ms"] for fact in group.facts["GROUP_DELETED"]}
    if not deleted:
        return
    by: dict[str, set[str]] = {}
    again: dict[str, int] = {}
    for fact in group.facts["GROUP_CREATED"]:
        broker = fact["broker_name"]
        if broker in deleted and fact["last_ms"] >= deleted[broker]:
            by.setdefault(fact["details"].get("by", ""), set()).add(broker)
            again[broker] = fact["last_ms"]
    created = set[str]().union(*by.values())
    stored = {
        broker
        for broker, fact in configurations(group).items()
        if broker in deleted and fact["last_ms"] > deleted[broker] and broker not in created
    }
    brokers = sorted(created | stored)
    if not brokers:
        return
    how = (
        "an administrator"
        if set(by) == {"admin"} and not stored
        else ("a broker on its own, for a client that was still running")
    )
    set_up = {
        fact["broker_name"]: fact["last_ms"]
        for fact in group.facts["GROUP_UPDATED"]
        if fact["last_ms"] > again.get(fact["broker_name"], deleted.get(fact["broker_name"], 0))
    }
    meant = all(broker in set_up for broker in brokers)
    yield Finding(
        f"The group was deleted at {utc(max(deleted.values()))} and is back on "
        f"{listed(brokers, 5)}, created by {how}.",
        {"brokers": listed(brokers), "created_by": listed(sorted(by)) or "unknown"},
        severity=INFO if set(by) == {"admin"} and not stored else WARNING,
        broker_name=brokers[0] if len(brokers) == 1 else None,
        first_ms=min(again.values(), default=max(deleted.values())),
        last_ms=max(set_up[broker] for broker in brokers) if meant else None,
        ended_by="an administrator set it up (updateSubGroup)" if meant else "",
    )


MISSING = Rule(
    "GROUP_NOT_CONFIGURED",
    ERROR,
    "Clients of the group run, and no broker of its topics has the group configured. Without "
    "automatic creation, brokers from 5.1.1 on ignore such consumers, so they receive no "
    "messages.",
    "memberships, facts of clients, GROUP_CONFIG, topics",
    "Create the group on every broker (updateSubGroup -c <cluster> -g <group>), or correct its "
    "name in the client.",
    find_missing,
    files=("subscription_group_json",),
    reads=(TOPICS, MEMBERS),
    state=True,
)


BACK = Rule(
    "GROUP_CAME_BACK",
    WARNING,
    "The group was deleted while clients still requested its messages, so a broker created it "
    "again with default settings.",
    "GROUP_DELETED, GROUP_CREATED, GROUP_UPDATED, GROUP_CONFIG",
    "Stop all consumers of the group and delete it again, or configure it (updateSubGroup) if you "
    "need it.",
    find_back,
    files=("subscription_group_json",),
    reads=(EVENTS,),
    state=True,
)
