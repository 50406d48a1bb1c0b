"""POP retry topics that are missing, so that members pass once a second for ever."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rebalance_core.audit import subscriptions
from rebalance_core.audit.dumps import lasts
from rebalance_core.audit.group_snapshot import (
    Finding,
    GroupSnapshot,
    Rule,
    known_topics,
    lasting,
    listed,
)
from rebalance_core.audit.recovery import Recovery, recovery
from rebalance_core.audit.topic_readers import (
    version_of,
)
from rebalance_core.audit.topic_settings import configs
from rebalance_core.model.queue import pop_retry_topics
from rebalance_core.model.times import utc
from rebalance_core.model.verdicts import WARNING
from rebalance_core.model.versions import parse_version
from rebalance_core.timing.timer_periods import MIN_INTERVAL

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import (
        MissingRouteFact,
    )


def find_missing_pop_retry_topic(group: GroupSnapshot) -> Iterator[Finding]:
    """Yield a finding for each topic whose pop retry topic was missing for long (rocketmq.md §14).

    Members before 5.2 still run a pass only every 20 s.
    """
    restless = [
        row for row in group.tables["memberships"] if parse_version(version_of(row)) >= MIN_INTERVAL
    ]
    topics = {topic for row in restless for topic in known_topics(row)}
    for topic in sorted(topics):
        names = pop_retry_topics(group.consumer_group, topic)
        facts = [fact for fact in group.facts["MISSING_ROUTE"] if fact["topic"] in names]
        if any(lasts(fact) for fact in facts):
            yield _missing_pop_retry_topic_finding(group, topic, facts)


def _missing_pop_retry_topic_finding(
    group: GroupSnapshot, topic: str, facts: list[MissingRouteFact]
) -> Finding:
    name = facts[0]["topic"]
    first, last = facts[0]["first_ms"], max(fact["last_ms"] for fact in facts)
    over = _now_there(group, topic, name, last) or recovery(group, facts)
    logs = sorted({fact["details"].get("log", "") for fact in facts} - {""})
    times = sum(fact["times"] for fact in facts)
    return Finding(
        f"{name} did not exist from {utc(first)} for {lasting(last - first)}: members that query "
        f"the broker for {topic} never balance and run a pass every second (seen {times} times in "
        f"the log of {listed(logs, 3) or 'a client'}).",
        {"missing": name, "seen_in": listed(logs), "times": str(times)},
        topic=topic,
        first_ms=first,
        last_ms=over.at_ms if over else None,
        ended_by=over.shown_by if over else "",
    )


def _now_there(group: GroupSnapshot, topic: str, name: str, last_ms: int) -> Recovery | None:
    """Return the evidence that the topic exists at the end, or that no member needs it any more."""
    read = any(row["topic"] == name for row in group.tables["committed_offsets"])
    if read or configs(group, name):
        return Recovery(last_ms, f"{name} exists now")
    if not subscriptions.subscribers(group, topic):
        return Recovery(last_ms, f"no member subscribes to {topic} any more")
    return None


MISSING_POP_RETRY_TOPIC = Rule(
    "MISSING_POP_RETRY_TOPIC",
    WARNING,
    "A member with clientRebalance = false whose topic is in PULL mode also reads the pop retry "
    "topic. While that topic is missing, its pass fails and repeats every second (from 5.2 on).",
    "MISSING_ROUTE, memberships",
    "Create the named topic (mqadmin updateTopic, one queue per broker), set the mode to POP, or "
    "set clientRebalance = true in clients that do not pop.",
    find_missing_pop_retry_topic,
    files=("client_log",),
    state=True,
)
