"""Members that filter one topic by different expressions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rebalance_core.audit.dumps import fresh, last_stated
from rebalance_core.audit.evidence import end_of
from rebalance_core.audit.group_snapshot import (
    PERSISTENT_MS,
    Finding,
    GroupSnapshot,
    Rule,
    grouped,
    listed,
)
from rebalance_core.audit.logged_causes import MEMBERS_CHANGE, window_around
from rebalance_core.audit.recovery import went_after
from rebalance_core.audit.subjects import CAUSES, logs_gap
from rebalance_core.model.events import SUBSCRIBE, UNSUBSCRIBE
from rebalance_core.model.queue import is_retry_topic
from rebalance_core.model.times import HEARTBEAT_MS, utc
from rebalance_core.model.verdicts import ERROR, INFO

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import (
        ClientTopicFact,
        TagsChangedFact,
    )

DEPLOYING = MEMBERS_CHANGE | {SUBSCRIBE, UNSUBSCRIBE}
"""Events of a deploy, which replaces members or their subscriptions. Brokers that come and go
change neither."""


def find_inconsistent_tags(group: GroupSnapshot) -> Iterator[Finding]:
    """Yield a finding for each topic whose clients' expressions differ, or whose expression
    flips.
    """
    differing = _differing(group)
    for topic in sorted(differing):
        yield _by_clients(group, topic, differing[topic])
    changes = grouped(group.facts["TAGS_CHANGED"], lambda fact: fact["topic"])
    for topic in sorted(changes.keys() - differing.keys()):
        yield from _by_flips(group, topic, changes[topic])


def _differing(group: GroupSnapshot) -> dict[str, list[ClientTopicFact]]:
    """Return the last statements by clients that are still members about topics on which they
    differ.
    """
    alive = {row["client_id"] for row in group.members}
    last: dict[tuple[str, str], ClientTopicFact] = {}
    for fact in sorted(
        fresh(group, group.facts["CLIENT_TOPIC"], last_stated), key=lambda fact: fact["last_ms"]
    ):
        if not is_retry_topic(fact["topic"]) and (not alive or fact["client_id"] in alive):
            last[fact["topic"], fact["client_id"]] = fact
    facts_of: dict[str, list[ClientTopicFact]] = {}
    for (topic, _), fact in last.items():
        facts_of.setdefault(topic, []).append(fact)
    return {t: facts for t, facts in facts_of.items() if len({_expression(f) for f in facts}) > 1}


def _expression(fact: ClientTopicFact) -> str:
    """Return the expression with its tags in order, as any order is the same filter."""
    parts = str(fact["details"].get("expression") or "*").split("||")
    return " || ".join(sorted(part.strip() for part in parts))


def _by_clients(group: GroupSnapshot, topic: str, facts: list[ClientTopicFact]) -> Finding:
    who: dict[str, set[str]] = {}
    for fact in facts:
        who.setdefault(_expression(fact), set()).add(fact["client_id"])
    parts = [f"'{text}' of {listed(sorted(ids), 3)}" for text, ids in sorted(who.items())]
    began = {_expression(f): f["first_ms"] for f in sorted(facts, key=_begun, reverse=True)}
    first = max(began.values())
    cause = window_around(group, group.run.end_ms, after_ms=HEARTBEAT_MS, causes=DEPLOYING)
    because = f" ({cause}, just before the end)" if cause else ""
    went_ms = went_after(group, None, max(fact["last_ms"] for fact in facts))
    return Finding(
        f"Members filter {topic} differently: {'; '.join(parts[:5])}{because}. The broker applies "
        "the last heartbeat's expression to all of them.",
        {text: listed(sorted(ids)) for text, ids in sorted(who.items())[:20]},
        severity=INFO if cause else ERROR,
        topic=topic,
        first_ms=first,
        last_ms=went_ms,
        ended_by="" if went_ms is None else "all members left",
    )


def _begun(fact: ClientTopicFact) -> int:
    return int(fact["first_ms"])


def _by_flips(group: GroupSnapshot, topic: str, facts: list[TagsChangedFact]) -> Iterator[Finding]:
    pairs = {(f["details"].get("old"), f["details"].get("new")) for f in facts}
    if not any((new, old) in pairs for old, new in pairs if old != new):
        return
    first = min(fact["first_ms"] for fact in facts)
    last = max(fact["last_ms"] for fact in facts)
    times = sum(fact["times"] for fact in facts)
    cause = None
    if last - first <= PERSISTENT_MS:
        cause = window_around(group, last, HEARTBEAT_MS, causes=DEPLOYING)
    silent = last < (end_of(group) or group.run.end_ms) - 3 * HEARTBEAT_MS
    ends = silent and logs_gap(group, last, None) is None
    because = f"; {cause} explains this" if cause else ""
    yield Finding(
        f"The broker saw the expression of {topic} change back and forth {times} times from "
        f"{utc(first)} to {utc(last)}{because}.",
        {"expressions": listed(sorted({str(new) for _, new in pairs})), "changes": str(times)},
        severity=INFO if cause else ERROR,
        topic=topic,
        first_ms=first,
        last_ms=last if ends else None,
        ended_by="the brokers' logs continue without another change",
    )


INCONSISTENT_TAGS = Rule(
    "INCONSISTENT_TAGS",
    ERROR,
    "Members subscribe to a topic with different tag or SQL expressions. The broker keeps only "
    "the last heartbeat's expression, so it silently skips messages that only some members want.",
    "CLIENT_TOPIC, TAGS_CHANGED",
    "Deploy the same expression to all named members, or use one group per expression. To read "
    "messages that were already skipped, reset the offsets by time.",
    find_inconsistent_tags,
    files=("consumerStatus", "broker_log"),
    reads=(CAUSES,),
    state=True,
)
