"""Decides why a group's ledger cannot be compared with the observations."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from rebalance_core.audit import evidence
from rebalance_core.audit.group_snapshot import GroupSnapshot
from rebalance_core.audit.known_shares import (
    lite_topics,
    reads_static_topic,
    shares_known,
    strategy_is_known,
)
from rebalance_core.audit.observations import omitted, progress_dumps, silent_members
from rebalance_core.audit.prediction import holds
from rebalance_core.audit.subscriptions import all_known
from rebalance_core.audit.topic_settings import unreadable_topics
from rebalance_core.model import verdicts
from rebalance_core.model.clients import profile_of_row
from rebalance_core.model.group_settings import BROADCASTING
from rebalance_core.model.verdicts import NOT_TOLD as OWNERS_NOT_REPORTED

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import MembershipsRow


NOT_MODELLED = (verdicts.STATIC_TOPIC, verdicts.LITE_TOPIC)
"""Reasons why the ledger's queues differ from those that members read."""


def unpredictable(group: GroupSnapshot) -> str | None:
    """Return the reason why the expected owners are unknown, or None if the ledger has them."""
    if reads_static_topic(group):
        return verdicts.STATIC_TOPIC
    if lite_topics(group):
        return verdicts.LITE_TOPIC
    if not strategy_is_known(group):
        return verdicts.STRATEGY
    if not all_known(group.members):
        return verdicts.SUBSCRIPTION
    if not shares_known(group.members) or _doubtful(group.members, unreadable_topics(group)):
        return verdicts.LANGUAGE
    missing = depends_on_missing(group) and not evidence.listed_now(group)
    return verdicts.INCOMPLETE if missing else None


def why_unobserved(group: GroupSnapshot) -> str:
    """Return the reason why no observation of the group can be compared."""
    if all(row["message_model"] == BROADCASTING for row in group.members):
        return verdicts.BROADCASTING
    return OWNERS_NOT_REPORTED if _none_answered(group) else verdicts.NO_DUMP


def predictable_times(group: GroupSnapshot, times_ms: Iterable[int]) -> set[int]:
    """Return the times at which the topics and the share of every member are known.

    Cost: linear in the number of members, plus the uncertain members at each time.
    """
    unreadable = unreadable_topics(group)
    doubted = [
        row
        for row in group.tables["memberships"]
        if not all_known([row]) or not shares_known([row]) or _doubtful([row], unreadable)
    ]

    def is_predictable(at_ms: int) -> bool:
        present = [row for row in doubted if holds(row, at_ms)]
        shut = (topic for topic, since in unreadable.items() if since <= at_ms)
        return all_known(present) and shares_known(present) and not _doubtful(present, shut)

    return {at_ms for at_ms in set(times_ms) if is_predictable(at_ms)}


def _doubtful(members: Iterable[MembershipsRow], unreadable: Iterable[str]) -> bool:
    """Return True if one of these members' clients was never tested on one of these topics, which
    have no readable queue.
    """
    topics = {*unreadable}
    return any(
        not topics.isdisjoint(row["subscriptions"] or ()) and "no_queue" in profile_of_row(row).read
        for row in members
    )


def _none_answered(group: GroupSnapshot) -> bool:
    """Return whether the group was dumped but no member reported its queues."""
    return bool(silent_members(group)) or any(
        omitted(group, progress) for progress in progress_dumps(group)
    )


def depends_on_missing(group: GroupSnapshot) -> bool:
    """Return whether a broker of the group was not collected."""
    return bool(known_brokers(group) & group.run.missing)


def known_brokers(group: GroupSnapshot) -> set[str]:
    """Return the brokers named by the group's queues, topics or dumps."""
    owned = {row["broker_name"] for row in group.owned}
    return (
        owned
        | {row["broker_name"] for row in group.tables["topics"]}
        | evidence.shown_brokers(group)
    )
