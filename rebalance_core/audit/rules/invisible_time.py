"""INVISIBLE_TIME_TOO_SHORT: popped messages time out before the listener gets to them."""

from __future__ import annotations

from collections.abc import Iterator

from rebalance_core.audit.case import GroupCase, Row
from rebalance_core.audit.evidence.backlog import Offsets, messages
from rebalance_core.audit.evidence.dumps import number
from rebalance_core.audit.evidence.formatting import listed, plural
from rebalance_core.audit.finding import Finding, Rule
from rebalance_core.model.queue import pop_retry_topics
from rebalance_core.model.severities import INFO, WARNING
from rebalance_core.model.time_text import utc
from rebalance_core.model.time_units import SECOND_MS

MANY_SECONDS = 10
"""In fewer seconds than these a pause of one client (GC, a frozen host) may have done it."""


def find(case: GroupCase) -> Iterator[Finding]:
    """One finding a topic (rocketmq.md §14)."""
    by_topic: dict[str, list[Row]] = {}
    for fact in case.facts("POP_TIMED_OUT"):
        by_topic.setdefault(fact["topic"], []).append(fact)
    for topic, facts in sorted(by_topic.items()):
        yield _finding(case, topic, facts)


def _finding(case: GroupCase, topic: str, facts: list[Row]) -> Finding:
    seconds = sum(fact["times"] for fact in facts)
    first, last = facts[0]["first_ms"], max(fact["last_ms"] for fact in facts)
    limits = sorted({number(fact, "invisible_ms", 0) for fact in facts})
    shown = listed(f"{limit / SECOND_MS:g} s" for limit in limits)
    logs = sorted({fact["client_id"] or fact["details"].get("log", "") for fact in facts} - {""})
    waiting = max(
        (number(f, "wait_ack_count", 0) for f in case.facts("POP_QUEUE") if f["topic"] == topic),
        default=0,
    )
    retries = _waiting_retries(case, topic)
    many = f"; up to {waiting} messages of one queue wait in a client" if waiting else ""
    return Finding(
        f"Popped messages of {topic} were let go unconsumed in {plural(seconds, 'second')} from "
        f"{utc(first)} to {utc(last)} ({listed(logs, 3)}): the invisible time of {shown} was over "
        f"before the listener got to them, so they come again{many}.",
        {
            "invisible_time": shown,
            "seconds": str(seconds),
            "seen_in": listed(logs),
            "waiting_in_a_client": str(waiting),
            "retries_waiting": messages(retries),
        },
        severity=WARNING if seconds >= MANY_SECONDS else INFO,
        topic=topic,
        first_ms=first,
        last_ms=last,
    )


def _waiting_retries(case: GroupCase, topic: str) -> int | None:
    """Messages of the topic that wait for another try."""
    names = pop_retry_topics(case.consumer_group, topic)
    offsets = Offsets(case)
    return offsets.behind(queue for queue in offsets.commits if queue.topic in names)


RULE = Rule(
    "INVISIBLE_TIME_TOO_SHORT",
    WARNING,
    "A client pops messages faster than its listener consumes them: their invisible time is over "
    "while they wait in the client, they are dropped unseen and delivered again, and again. The "
    "group does more work than it has messages and falls behind.",
    "facts POP_TIMED_OUT (client log), POP_QUEUE (consumerStatus)",
    "Raise popInvisibleTime in the clients above the time that a full batch takes in the listener "
    "(popBatchNums x listener time / threads), lower popBatchNums, or add threads or members.",
    find,
)
