"""ORPHAN_QUEUES: readable queues of subscribed topics without an owner."""

from __future__ import annotations

from collections.abc import Iterator

from rebalance_core.audit.case import (
    PERSISTENT_MS,
    Finding,
    GroupCase,
    Row,
    Rule,
    lasting,
    plural,
    queue_names,
)
from rebalance_core.audit.dumps import by_topic, queue_of
from rebalance_core.audit.orphans import (
    Offsets,
    is_broadcasting,
    is_rolling,
    messages,
    offline_ms,
    orphans,
    reason,
    span_of,
    subscribers,
)
from rebalance_core.model.queue import is_retry_topic
from rebalance_core.model.times import utc
from rebalance_core.model.verdicts import ERROR, INFO, WARNING

OWN_RULES = ("CONFIG", "MACHINE_ROOM")
"""Strategies that leave queues out by design; CONFIG_GAP and MACHINE_ROOM_UNMATCHED tell which."""


def find(case: GroupCase) -> Iterator[Finding]:
    """One finding a topic, for queues orphaned at the end, else for long before (no. 8)."""
    if is_broadcasting(case) or _by_design(case):
        return
    at_end = by_topic(orphans(case))
    offsets = Offsets(case)
    for topic, rows in at_end.items():
        yield _persistent(case, topic, rows, offsets)
    for topic, rows in by_topic(_long_ago(case)).items():
        if topic not in at_end and not is_retry_topic(topic):
            yield _over(case, topic, rows)


def _by_design(case: GroupCase) -> bool:
    names = {row["strategy"].partition("(")[0] for row in case.members}
    return bool(names) and names <= set(OWN_RULES)


def _persistent(case: GroupCase, topic: str, rows: list[Row], offsets: Offsets) -> Finding:
    queues = queue_names((row["broker_name"], row["queue_id"]) for row in rows)
    behind = offsets.behind(queue_of(row) for row in rows)
    why = reason(case, topic)
    retry = is_retry_topic(topic)
    what = "retries stored there are not delivered" if retry else f"{messages(behind)} behind"
    one = rows[0] if len(rows) == 1 else None
    return Finding(
        f"Nobody reads {plural(len(rows), 'queue')} of {topic} ({queues}) although the group is "
        f"online: {what}{f'; {why}' if why else ''}.",
        {
            "queues": queues,
            "members": str(len({row["client_id"] for row in subscribers(case, topic)})),
            "behind": "unknown" if behind is None else str(behind),
            "reason": why or "unknown",
        },
        severity=WARNING if retry else ERROR,
        topic=topic,
        broker_name=one["broker_name"] if one else None,
        queue_id=one["queue_id"] if one else None,
        first_ms=max(min(row["from_ms"] for row in rows), _online_since(case)),
    )


def _online_since(case: GroupCase) -> int:
    """Since when the group has members without a break."""
    return max((row["to_ms"] or 0 for row in case.offline), default=0)


def _long_ago(case: GroupCase) -> list[Row]:
    """Times without an owner that ended, longer than any transient while the group was online."""
    rows_left = []
    for row in case.rows("ownership"):
        if row["client_id"] is None and row["to_ms"] is not None:
            first_ms = max(row["from_ms"], case.run.start_ms)
            span = row["to_ms"] - first_ms - offline_ms(case, first_ms, row["to_ms"])
            if span > PERSISTENT_MS:
                rows_left.append(row)
    return rows_left


def _over(case: GroupCase, topic: str, rows: list[Row]) -> Finding:
    queues = queue_names((row["broker_name"], row["queue_id"]) for row in rows)
    first, last = min(row["from_ms"] for row in rows), max(row["to_ms"] for row in rows)
    worst = max(row["to_ms"] - row["from_ms"] for row in rows)
    rolling = all(is_rolling(case, span_of(row)) for row in rows)
    why = " while members were replaced one after another" if rolling else ""
    return Finding(
        f"Nobody read {plural(len(rows), 'queue')} of {topic} ({queues}) for up to "
        f"{lasting(worst)} from {utc(first)}{why}; they are read again since {utc(last)}.",
        {"queues": queues},
        severity=INFO if rolling else WARNING,
        topic=topic,
        first_ms=first,
        last_ms=last,
    )


RULE = Rule(
    "ORPHAN_QUEUES",
    ERROR,
    "The group is online, but some queues of topics it subscribes have no owner: their messages "
    "wait. CONFIG and MACHINE_ROOM, which leave queues out by design, have rules of their own.",
    "ownership (rows without a client open at the end), memberships; offsets for the backlog",
    "Remove the reason named (see the other findings of the group). If there is none, restart the "
    "members one by one and compare consumerConnection of all brokers.",
    find,
    by_owners=True,
)
