"""GROUP_NOT_CONFIGURED and GROUP_CAME_BACK: the group in the brokers' stores."""

from __future__ import annotations

from collections.abc import Iterator

from rebalance_core.audit.case import Finding, GroupCase, Rule, listed
from rebalance_core.audit.dumps import (
    configs,
    configurations,
    is_system_group,
    lacks_configuration,
    subscribed_topics,
)
from rebalance_core.model.times import utc
from rebalance_core.model.verdicts import ERROR, INFO, WARNING

ASKED = ("NO_MEMBER_LIST", "NOT_IN_MEMBER_LIST", "CLIENT_TOPIC")
"""Kinds of facts that say that a client of the group is there."""
STORED_MS = 30_000
"""A group that begins so shortly before its stores were copied may not be in them yet."""


def find_missing(case: GroupCase) -> Iterator[Finding]:
    """Clients are there, and no broker that has their topics has the group
    (rocketmq.md §11 no. 30).
    """
    if is_system_group(case.consumer_group) or configurations(case):
        return
    asked = [fact for kind in ASKED for fact in case.facts(kind)]
    topics = set(subscribed_topics(case)) | {f["topic"] for f in asked if f["topic"]}
    brokers = sorted({row["broker_name"] for topic in topics for row in configs(case, topic)})
    lacking = [name for name in brokers if lacks_configuration(case, name)]
    if not brokers or len(lacking) < len(brokers) or not (case.members or asked):
        return
    begins = [row["from_ms"] for row in case.members] + [fact["first_ms"] for fact in asked]
    copied = max(case.run.store_ms.get(name, case.run.end_ms) for name in brokers)
    if copied - min(begins) < STORED_MS or not _is_there(case):
        return
    ids = sorted({row["client_id"] for row in case.members}
                 | {fact["client_id"] for fact in asked if fact["client_id"]})  # fmt: skip
    yield Finding(
        f"Clients of the group run ({listed(ids, 3) or 'unnamed'}), and none of "
        f"{listed(brokers, 5)}, which have its topics, has it in subscriptionGroup.json.",
        {"brokers": listed(brokers), "topics": listed(sorted(topics)), "clients": listed(ids)},
        first_ms=min(begins),
    )


def _is_there(case: GroupCase) -> bool:
    """True if members or clients were there near the end, not only long before."""
    if case.members:
        return True
    last = max(fact["last_ms"] for kind in ASKED for fact in case.facts(kind))
    left = case.last_epoch is not None and case.last_epoch["from_ms"] >= last
    return not left


def find_back(case: GroupCase) -> Iterator[Finding]:
    """A group that is there again after it was deleted (rocketmq.md §13 no. 7)."""
    deleted = {fact["broker_name"]: fact["last_ms"] for fact in case.facts("GROUP_DELETED")}
    if not deleted:
        return
    by: dict[str, set[str]] = {}
    again: list[int] = []
    for fact in case.facts("GROUP_CREATED"):
        broker = fact["broker_name"]
        if broker in deleted and fact["last_ms"] >= deleted[broker]:
            by.setdefault(fact["details"].get("by", ""), set()).add(broker)
            again.append(fact["last_ms"])
    created = set[str]().union(*by.values())
    stored = {
        broker
        for broker, fact in configurations(case).items()
        if broker in deleted and fact["last_ms"] > deleted[broker] and broker not in created
    }
    brokers = sorted(created | stored)
    if not brokers:
        return
    how = "an administrator" if set(by) == {"admin"} and not stored else (
        "a broker by itself, for a client that was still running"
    )  # fmt: skip
    yield Finding(
        f"The group was deleted at {utc(max(deleted.values()))} and is back on "
        f"{listed(brokers, 5)}, created by {how}.",
        {"brokers": listed(brokers), "created_by": listed(sorted(by)) or "unknown"},
        severity=INFO if set(by) == {"admin"} and not stored else WARNING,
        broker_name=brokers[0] if len(brokers) == 1 else None,
        first_ms=min(again, default=max(deleted.values())),
    )


MISSING = Rule(
    "GROUP_NOT_CONFIGURED",
    ERROR,
    "Clients of the group run, and no broker of its topics has the group configured. Where groups "
    "are not created automatically, brokers from 5.1.1 on ignore such consumers: they get nothing.",
    "memberships, facts of clients, facts GROUP_CONFIG, topics",
    "Create the group on every broker (updateSubGroup -c <cluster> -g <group>), or correct the "
    "group's name in the client.",
    find_missing,
    files=("subscription_group_json",),
)
BACK = Rule(
    "GROUP_CAME_BACK",
    WARNING,
    "The group was deleted while clients still asked for its messages, so a broker created it "
    "again with default settings.",
    "facts GROUP_DELETED, GROUP_CREATED, GROUP_CONFIG",
    "Stop all consumers of the group, then delete it again; or configure it as it should be "
    "(updateSubGroup) if it is needed.",
    find_back,
    files=("subscription_group_json",),
)
