"""POP_IGNORED: the request mode of a topic is POP, and no member pops it."""

from __future__ import annotations

from collections.abc import Iterator

from rebalance_core.audit.case import Finding, GroupCase, Row, Rule, known_topics, listed
from rebalance_core.audit.dumps import subscribed_topics
from rebalance_core.audit.orphans import has_settled
from rebalance_core.audit.subscriptions import (
    gave_up_asking,
    is_popped,
    readers,
    request_mode,
    version_of,
)
from rebalance_core.model.group_settings import BROADCASTING, BROKER_REBALANCE, PUSH
from rebalance_core.model.verdicts import WARNING
from rebalance_core.model.versions import parse_version
from rebalance_core.protocol.languages import is_java
from rebalance_core.protocol.members import OWN_PASS_MS, QUERY_ASSIGNMENT


def find(case: GroupCase) -> Iterator[Finding]:
    """One finding a topic at the end; where others pop it, POP_MIXED_WITH_PULL says more."""
    last = case.last_epoch
    if last is None or not has_settled(case, last["epoch"]):
        return
    for topic in subscribed_topics(case):
        mode = request_mode(case, topic, case.run.end_ms)
        both = readers(case, topic)
        if mode is None or not is_popped(case, topic, case.run.end_ms) or both.sharers:
            continue
        if case.run.end_ms <= mode["event_ms"] + OWN_PASS_MS:
            continue
        members = [row for row in case.members if topic in known_topics(row)]
        reasons: dict[str, set[str]] = {}
        for row in members:
            reasons.setdefault(_reason(case, topic, row), set()).add(row["client_id"])
        why = listed(f"{reason} ({listed(sorted(ids), 3)})" for reason, ids in reasons.items())
        yield Finding(
            f"The request mode of {topic} is {mode['detail']}, and it has no effect: {why}. "
            "Members divide the queues as without it.",
            {"mode": mode["detail"]} | {reason: listed(sorted(ids)) for reason, ids
                                        in reasons.items()},
            topic=topic,
            first_ms=max(mode["event_ms"], min(row["from_ms"] for row in members)),
        )  # fmt: skip


def _reason(case: GroupCase, topic: str, member: Row) -> str:
    """Why the member does not ask a broker (rocketmq.md §2.8)."""
    if case.settings.get("ordered"):
        return "an orderly listener pulls"
    if member["message_model"] == BROADCASTING:
        return "broadcasting members read everything"
    if (case.settings.get("consumer_type") or PUSH) != PUSH:
        return "only push consumers can pop"
    if parse_version(version_of(member)) < QUERY_ASSIGNMENT:
        of = "" if is_java(member.get("language")) else f"{member['language']} "
        return f"{of}client version {member['version']} knows no POP"
    if member["client_id"] in gave_up_asking(case, topic):
        return "the member gave up asking"
    if member["rebalance_mode"] != BROKER_REBALANCE:
        return "clientRebalance = true, the default"
    return "the member does not ask"


RULE = Rule(
    "POP_IGNORED",
    WARNING,
    "The request mode of a topic is POP and no member pops it: an orderly listener, "
    "clientRebalance = true (the default of the client), or a client before 5.0. Nothing says so "
    "in any log.",
    "cluster_events (REQUEST_MODE), memberships (rebalance_mode), consumer_groups (ordered)",
    "Set clientRebalance = false in every member if POP is meant, which an orderly listener cannot "
    "have; else set the mode back to PULL (mqadmin setConsumeMode), so that nobody relies on it.",
    find,
)
