"""MISSING_POP_RETRY_TOPIC: members that ask the broker pass once a second for ever."""

from __future__ import annotations

from collections.abc import Iterator

from rebalance_core.audit.case import (
    PERSISTENT_MS,
    Finding,
    GroupCase,
    Row,
    Rule,
    known_topics,
    lasting,
    listed,
)
from rebalance_core.audit.dumps import configs, said_steadily
from rebalance_core.audit.orphans import subscribers
from rebalance_core.audit.subscriptions import version_of
from rebalance_core.clockwork.ticks import MIN_INTERVAL
from rebalance_core.model.queue import pop_retry_topics
from rebalance_core.model.times import utc
from rebalance_core.model.verdicts import INFO, WARNING
from rebalance_core.model.versions import parse_version


def find(case: GroupCase) -> Iterator[Finding]:
    """One finding a topic whose pop retry topic was missing for long (rocketmq.md §14).

    Members before 5.2 go on with a pass every 20 s.
    """
    restless = [
        row for row in case.rows("memberships") if parse_version(version_of(row)) >= MIN_INTERVAL
    ]
    topics = {topic for row in restless for topic in known_topics(row)}
    for topic in sorted(topics):
        names = pop_retry_topics(case.consumer_group, topic)
        facts = [fact for fact in case.facts("MISSING_ROUTE") if fact["topic"] in names]
        if any(_lasts(fact) for fact in facts):
            yield _finding(case, topic, facts)


def _lasts(fact: Row) -> bool:
    return said_steadily(fact) and bool(fact["last_ms"] - fact["first_ms"] > PERSISTENT_MS)


def _finding(case: GroupCase, topic: str, facts: list[Row]) -> Finding:
    name = facts[0]["topic"]
    first, last = facts[0]["first_ms"], max(fact["last_ms"] for fact in facts)
    over = _is_over(case, topic, name)
    logs = sorted({fact["details"].get("log", "") for fact in facts} - {""})
    times = sum(fact["times"] for fact in facts)
    return Finding(
        f"{name} did not exist from {utc(first)} for {lasting(last - first)}: members that ask "
        f"the broker for {topic} never balance and pass once a second (seen {times} times in the "
        f"log of {listed(logs, 3) or 'a client'}){'; it is there now' if over else ''}.",
        {"missing": name, "seen_in": listed(logs), "times": str(times)},
        severity=INFO if over else None,
        topic=topic,
        first_ms=first,
        last_ms=last if over else None,
    )


def _is_over(case: GroupCase, topic: str, name: str) -> bool:
    """True if the topic is there at the end, or nobody is left to ask for it."""
    read = any(row["topic"] == name for row in case.rows("committed_offsets"))
    return read or bool(configs(case, name)) or not subscribers(case, topic)


RULE = Rule(
    "MISSING_POP_RETRY_TOPIC",
    WARNING,
    "A member with clientRebalance = false whose topic is in PULL mode also reads the pop retry "
    "topic. While that does not exist, its pass never succeeds and is repeated every second (from "
    "5.2 on), with a request to a broker for each topic.",
    "facts MISSING_ROUTE (client log), memberships",
    "Create the topic named (mqadmin updateTopic, one queue a broker), set the mode to POP, or set "
    "clientRebalance = true in clients that do not pop.",
    find,
    files=("client_log",),
)
