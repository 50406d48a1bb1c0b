"""Readable queues of subscribed topics without an owner."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rebalance_core.audit.dumps import by_topic, queue_of
from rebalance_core.audit.group_snapshot import (
    PERSISTENT_MS,
    Finding,
    GroupSnapshot,
    Rule,
    lasting,
    plural,
    queue_names,
)
from rebalance_core.audit.offsets import Offsets, messages
from rebalance_core.audit.orphans import orphans, reason
from rebalance_core.audit.refused_starts import RefusedStarts
from rebalance_core.audit.stretches import (
    is_rolling,
    offline_ms,
    span_of,
)
from rebalance_core.audit.subjects import MASTERS, MEMBERS, TOPICS
from rebalance_core.audit.subscriptions import (
    is_broadcasting,
    subscribers,
)
from rebalance_core.model.queue import is_retry_topic
from rebalance_core.model.times import utc
from rebalance_core.model.verdicts import ERROR, WARNING

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import OwnershipRow
from rebalance_core.audit.stretches import end_ms

OWN_RULES = ("CONFIG", "MACHINE_ROOM")
"""Strategies that leave queues out by design; see CONFIG_GAP and MACHINE_ROOM_UNMATCHED."""


def find_orphan_queues(group: GroupSnapshot) -> Iterator[Finding]:
    """Yield one finding per topic: queues without an owner at the end, or otherwise long before
    (no. 8).
    """
    if is_broadcasting(group) or _by_design(group):
        return
    at_end = by_topic(orphans(group))
    offsets = Offsets(group)
    for topic, rows in at_end.items():
        yield _persistent(group, topic, rows, offsets)
    for topic, rows in by_topic(_long_ago(group)).items():
        if topic not in at_end:
            yield _over(group, topic, rows)


def _by_design(group: GroupSnapshot) -> bool:
    names = {row["strategy"].partition("(")[0] for row in group.members}
    return bool(names) and names <= set(OWN_RULES)


def _persistent(
    group: GroupSnapshot, topic: str, rows: list[OwnershipRow], offsets: Offsets
) -> Finding:
    queues = queue_names((row["broker_name"], row["queue_id"]) for row in rows)
    behind = offsets.behind(queue_of(row) for row in rows)
    started = ((queue_of(row), row["from_ms"]) for row in rows)
    why = reason(group, topic) or RefusedStarts(group).why(started)
    retry = is_retry_topic(topic)
    what = "retries stored there are not delivered" if retry else f"{messages(behind)} behind"
    alone = rows[0] if len(rows) == 1 else None
    return Finding(
        f"No member reads {plural(len(rows), 'queue')} of {topic} ({queues}) although the group is "
        f"online: {what}{f'; {why}' if why else ''}.",
        {
            "queues": queues,
            "members": str(len({row["client_id"] for row in subscribers(group, topic)})),
            "behind": "unknown" if behind is None else str(behind),
            "reason": why or "unknown",
        },
        severity=WARNING if retry else ERROR,
        topic=topic,
        broker_name=alone["broker_name"] if alone else None,
        queue_id=alone["queue_id"] if alone else None,
        first_ms=max(min(row["from_ms"] for row in rows), _online_since(group)),
    )


def _online_since(group: GroupSnapshot) -> int:
    """Return the time since which the group has had members without a break, epoch ms."""
    return max((row["to_ms"] or 0 for row in group.offline), default=0)


def _long_ago(group: GroupSnapshot) -> list[OwnershipRow]:
    """Return ended times without an owner, longer than any transient while the group was online."""
    rows_left = []
    for row in group.tables["ownership"]:
        if row["client_id"] is None and row["to_ms"] is not None:
            first_ms = max(row["from_ms"], group.run.start_ms)
            span = row["to_ms"] - first_ms - offline_ms(group, first_ms, row["to_ms"])
            if span > PERSISTENT_MS:
                rows_left.append(row)
    return rows_left


def _over(group: GroupSnapshot, topic: str, rows: list[OwnershipRow]) -> Finding:
    queues = queue_names((row["broker_name"], row["queue_id"]) for row in rows)
    spans = [(row["from_ms"], end_ms(group, row)) for row in rows]
    first, last = min(begin for begin, _ in spans), max(end for _, end in spans)
    worst = max(end - begin for begin, end in spans)
    rolling = all(is_rolling(group, span_of(row)) for row in rows)
    why = " while members were replaced one after another" if rolling else ""
    return Finding(
        f"No member read {plural(len(rows), 'queue')} of {topic} ({queues}) for up to "
        f"{lasting(worst)} from {utc(first)}{why}.",
        {"queues": queues},
        severity=WARNING if is_retry_topic(topic) else None,
        topic=topic,
        first_ms=first,
        last_ms=last,
    )


ORPHAN_QUEUES = Rule(
    "ORPHAN_QUEUES",
    ERROR,
    "The group is online, but queues of its topics have no owner, so their messages wait. "
    "Separate rules cover the queues that CONFIG and MACHINE_ROOM leave out.",
    "ownership, memberships, START_REFUSED, TOPIC_MISSING",
    "Remove the reason named (see the group's other findings). If there is none, restart the "
    "members one by one and compare consumerConnection of all brokers.",
    find_orphan_queues,
    by_owners=True,
    reads=(TOPICS, MEMBERS, MASTERS),
    state=True,
)
