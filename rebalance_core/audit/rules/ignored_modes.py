"""Topics whose request mode is POP and that no member pops."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from rebalance_core.audit import stretches
from rebalance_core.audit.group_snapshot import (
    Finding,
    GroupSnapshot,
    Rule,
    known_topics,
    listed,
)
from rebalance_core.audit.subjects import MEMBERS, TOPICS
from rebalance_core.audit.topic_readers import (
    gave_up_asking,
    is_popped,
    readers,
    request_mode,
    version_of,
)
from rebalance_core.audit.topic_settings import subscribed_topics
from rebalance_core.model.clients import is_java
from rebalance_core.model.group_settings import BROADCASTING, BROKER_REBALANCE, PUSH
from rebalance_core.model.verdicts import WARNING
from rebalance_core.model.versions import parse_version
from rebalance_core.protocol.query_assignment import QUERY_ASSIGNMENT
from rebalance_core.protocol.settling_windows import OWN_PASS_MS

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import (
        MembershipsRow,
    )


def find_ignored_mode(group: GroupSnapshot) -> Iterator[Finding]:
    """Yield a finding for each topic at the end; POP_MIXED_WITH_PULL covers popped topics."""
    last = group.last_epoch
    if last is None or not stretches.has_settled(group, last["epoch"]):
        return
    for topic in subscribed_topics(group):
        mode = request_mode(group, topic, group.run.end_ms)
        both = readers(group, topic)
        if mode is None or not is_popped(group, topic, group.run.end_ms) or both.sharers:
            continue
        if group.run.end_ms <= mode["event_ms"] + OWN_PASS_MS:
            continue
        members = [row for row in group.members if topic in known_topics(row)]
        reasons: dict[Reason, set[str]] = {}
        by_name: dict[str, set[str]] = {}
        for row in members:
            reason = _reason(group, topic, row)
            reasons.setdefault(reason, set()).add(row["client_id"])
            by_name.setdefault(reason.name, set()).add(row["client_id"])
        why = listed(f"{why.words} ({listed(sorted(ids), 3)})" for why, ids in reasons.items())
        yield Finding(
            f"The request mode of {topic} is {mode['detail']} but has no effect: {why}. Members "
            "divide the queues as if it were not set.",
            {
                "mode": mode["detail"],
                **{name: listed(sorted(ids)) for name, ids in by_name.items()},
            },
            topic=topic,
            first_ms=max(mode["event_ms"], min(row["from_ms"] for row in members)),
        )


class Reason(NamedTuple):
    """A reason why a member does not query a broker: its name in the evidence, and its wording in
    the summary.
    """

    name: str
    words: str


def _reason(group: GroupSnapshot, topic: str, member: MembershipsRow) -> Reason:
    """Return why the member does not ask a broker (rocketmq.md §2.8)."""
    if group.settings.get("ordered"):
        return Reason("orderly_listener", "an orderly listener pulls")
    if member["message_model"] == BROADCASTING:
        return Reason("broadcasting", "broadcasting members read everything")
    if (group.settings.get("consumer_type") or PUSH) != PUSH:
        return Reason("not_a_push_consumer", "only push consumers can pop")
    if parse_version(version_of(member)) < QUERY_ASSIGNMENT:
        of = "" if is_java(member.get("language")) else f"{member['language']} "
        words = f"{of}client version {member['version']} does not support POP"
        return Reason("version_without_pop", words)
    if member["client_id"] in gave_up_asking(group, topic):
        return Reason("gave_up_asking", "the member gave up asking")
    if member["rebalance_mode"] != BROKER_REBALANCE:
        return Reason("client_rebalance", "clientRebalance = true, the default")
    return Reason("does_not_ask", "the member does not ask")


IGNORED_MODE = Rule(
    "POP_IGNORED",
    WARNING,
    "A topic's request mode is POP, but no member pops it: members have an orderly listener, "
    "clientRebalance = true (the client's default), or a client before 5.0. No log records this.",
    "cluster_events (REQUEST_MODE), memberships, consumer_groups (ordered)",
    "If POP is intended, set clientRebalance = false in every member (orderly listeners cannot "
    "pop); otherwise set the mode back to PULL (mqadmin setConsumeMode).",
    find_ignored_mode,
    reads=(TOPICS, MEMBERS),
)
