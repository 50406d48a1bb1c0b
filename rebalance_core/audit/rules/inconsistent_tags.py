"""INCONSISTENT_TAGS: members filter one topic by different expressions."""

from __future__ import annotations

from collections.abc import Iterator

from rebalance_core.audit.case import PERSISTENT_MS, Finding, GroupCase, Row, Rule, listed
from rebalance_core.audit.dumps import fresh
from rebalance_core.audit.orphans import cause_before, window_around
from rebalance_core.model.queue import is_retry_topic
from rebalance_core.model.times import HEARTBEAT_MS, utc
from rebalance_core.model.verdicts import ERROR, INFO


def find(case: GroupCase) -> Iterator[Finding]:
    """One finding a topic: differing expressions of clients, else an expression that flips."""
    differing = _differing(case)
    for topic in sorted(differing):
        yield _by_clients(case, topic, differing[topic])
    changes: dict[str, list[Row]] = {}
    for fact in case.facts("TAGS_CHANGED"):
        changes.setdefault(fact["topic"], []).append(fact)
    for topic in sorted(changes.keys() - differing.keys()):
        yield from _by_flips(case, topic, changes[topic])


def _differing(case: GroupCase) -> dict[str, list[Row]]:
    """What clients that are still members said last, of topics on which they differ."""
    there = {row["client_id"] for row in case.members}
    last: dict[tuple[str, str], Row] = {}
    for fact in sorted(fresh(case, case.facts("CLIENT_TOPIC")), key=lambda one: one["last_ms"]):
        if not is_retry_topic(fact["topic"]) and (not there or fact["client_id"] in there):
            last[fact["topic"], fact["client_id"]] = fact
    facts_of: dict[str, list[Row]] = {}
    for (topic, _), fact in last.items():
        facts_of.setdefault(topic, []).append(fact)
    return {t: facts for t, facts in facts_of.items() if len({_expression(f) for f in facts}) > 1}


def _expression(fact: Row) -> str:
    """Tags in any order are the same filter."""
    parts = str(fact["details"].get("expression") or "*").split("||")
    return " || ".join(sorted(part.strip() for part in parts))


def _by_clients(case: GroupCase, topic: str, facts: list[Row]) -> Finding:
    who: dict[str, set[str]] = {}
    for fact in facts:
        who.setdefault(_expression(fact), set()).add(fact["client_id"])
    parts = [f"'{text}' of {listed(sorted(ids), 3)}" for text, ids in sorted(who.items())]
    began = {_expression(f): f["first_ms"] for f in sorted(facts, key=_begun, reverse=True)}
    first = max(began.values())
    cause = window_around(case, case.run.end_ms, after_ms=HEARTBEAT_MS)
    because = f" ({cause}, just before the end)" if cause else ""
    return Finding(
        f"Members filter {topic} differently: {'; '.join(parts[:5])}{because}. The broker uses "
        "the expression of the last heartbeat for all.",
        {text: listed(sorted(ids)) for text, ids in sorted(who.items())[:20]},
        severity=INFO if cause else ERROR,
        topic=topic,
        first_ms=first,
    )


def _begun(fact: Row) -> int:
    return int(fact["first_ms"])


def _by_flips(case: GroupCase, topic: str, facts: list[Row]) -> Iterator[Finding]:
    pairs = {(f["details"].get("old"), f["details"].get("new")) for f in facts}
    if not any((new, old) in pairs for old, new in pairs if old != new):
        return
    first = min(fact["first_ms"] for fact in facts)
    last = max(fact["last_ms"] for fact in facts)
    times = sum(fact["times"] for fact in facts)
    settling = last - first <= PERSISTENT_MS and window_around(case, last, HEARTBEAT_MS)
    cause = cause_before(case, last) if settling else None
    ends = last < case.run.end_ms - 3 * HEARTBEAT_MS
    because = f"; {cause} explains it" if cause else ""
    yield Finding(
        f"The broker saw the expression of {topic} change back and forth {times} times from "
        f"{utc(first)} to {utc(last)}{because}.",
        {"expressions": listed(sorted({str(new) for _, new in pairs})), "changes": str(times)},
        severity=INFO if cause else ERROR,
        topic=topic,
        first_ms=first,
        last_ms=last if ends else None,
    )


RULE = Rule(
    "INCONSISTENT_TAGS",
    ERROR,
    "Members of one group subscribe a topic with different tag or SQL expressions. The broker "
    "keeps one expression for the group, that of the last heartbeat, so messages that only some "
    "members want are skipped without a trace.",
    "facts CLIENT_TOPIC (consumerStatus) and TAGS_CHANGED (broker.log)",
    "Deploy the same expression to all members named, or use one group per expression. Messages "
    "already filtered out are read again only after a reset of the offsets by time.",
    find,
    files=("consumerStatus", "broker_log"),
)
