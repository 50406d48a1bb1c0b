"""Topics that some members pop while others pull from their queues."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypedDict

from rebalance_core.audit import stretches
from rebalance_core.audit.group_snapshot import (
    Finding,
    GroupSnapshot,
    Rule,
    lasting,
    listed,
    plural,
)
from rebalance_core.audit.stretches import Span
from rebalance_core.audit.subjects import MEMBERS, TOPICS
from rebalance_core.audit.topic_readers import (
    TopicReaders,
    readers,
)
from rebalance_core.model.times import utc
from rebalance_core.model.verdicts import ERROR


class Taker(TypedDict):
    """A period in which a client takes messages by pulling or popping."""

    pulls: bool
    from_epoch: int
    to_epoch: int | None
    from_ms: int
    to_ms: int | None


def find_popped_and_pulled(group: GroupSnapshot) -> Iterator[Finding]:
    """Yield a finding for each topic, at the end or for the longest time (rocketmq.md §14)."""
    for topic in sorted({row["topic"] for row in group.tables["pop_reach"]}):
        spans = [
            span
            for span in stretches.mixed_spans(_takers(group, topic), lambda row: row["pulls"])
            if stretches.is_persistent(group, span)
        ]
        if spans:
            yield _popped_and_pulled_finding(
                group, topic, max(spans, key=lambda span: _end_ms(group, span))
            )


def _takers(group: GroupSnapshot, topic: str) -> list[Taker]:
    """Return which clients take messages of the shared topic, and when."""
    rows: list[Taker] = []
    for row in group.tables["pop_reach"]:
        if row["topic"] == topic:
            pulls = row["client_id"] in readers(group, topic, row["from_ms"]).pullers
            rows.append(
                {
                    "pulls": pulls,
                    "from_epoch": row["from_epoch"],
                    "to_epoch": row["to_epoch"],
                    "from_ms": row["from_ms"],
                    "to_ms": row["to_ms"],
                }
            )
    return rows


def _end_ms(group: GroupSnapshot, span: Span) -> tuple[int, int]:
    """Open stretches first, then the longest."""
    end = group.run.end_ms if span.last_ms is None else span.last_ms
    return int(span.last_ms is None), end - span.first_ms


def _popped_and_pulled_finding(group: GroupSnapshot, topic: str, span: Span) -> Finding:
    both = _sides_in(group, topic, span)
    over = span.last_ms is not None
    until = f" for {lasting(span.last_ms - span.first_ms)}" if span.last_ms is not None else ""
    verb = "popped" if over else "pop"
    return Finding(
        f"{plural(len(both.sharers), 'member')} ({listed(both.sharers, 3)}) {verb} {topic} while "
        f"{listed(both.pullers, 3)} {'pulled' if over else 'pull'} a share of its queues, since "
        f"{utc(span.first_ms)}{until}: both sides commit to the same offsets, so messages "
        f"{'were' if over else 'are'} consumed twice.",
        _sides(both),
        topic=topic,
        client_id=both.pullers[0] if len(both.pullers) == 1 else None,
        first_ms=span.first_ms,
        last_ms=span.last_ms,
    )


def _sides_in(group: GroupSnapshot, topic: str, span: Span) -> TopicReaders:
    """Return all clients that read the topic in the stretch."""
    end_ms = group.run.end_ms if span.last_ms is None else span.last_ms
    moments = {span.first_ms} | {
        row["from_ms"] for row in group.epochs if span.first_ms <= row["from_ms"] < end_ms
    }
    then = [readers(group, topic, at_ms) for at_ms in sorted(moments)]
    return TopicReaders(
        *(
            tuple(
                sorted(
                    {client_id for readers_at in then for client_id in getattr(readers_at, name)}
                )
            )
            for name in ("poppers", "proxied", "pullers")
        )
    )


def _sides(both: TopicReaders) -> dict[str, str]:
    return {
        "pop": listed(both.poppers),
        "behind_a_proxy": listed(both.proxied),
        "pull": listed(both.pullers),
    }


POPPED_AND_PULLED = Rule(
    "POP_MIXED_WITH_PULL",
    ERROR,
    "Some members pop a topic (request mode POP, or behind a proxy) while others pull a share of "
    "its queues, so messages are consumed twice. clientRebalance = true, the default, silently "
    "ignores the mode.",
    "pop_reach, memberships, cluster_events (REQUEST_MODE)",
    "Set clientRebalance = false in all members and restart those that stopped asking "
    "(GAVE_UP_ASKING), or set the mode back to PULL (mqadmin setConsumeMode). Use separate groups "
    "for clients behind proxies and clients that pull.",
    find_popped_and_pulled,
    reads=(TOPICS, MEMBERS),
    state=True,
)
