"""POP_MIXED_WITH_PULL: some members pop a topic while others pull queues of it."""

from __future__ import annotations

from collections.abc import Iterator

from rebalance_core.audit.case import Finding, GroupCase, Row, Rule, lasting, listed, plural
from rebalance_core.audit.orphans import Span, is_persistent, mixed_spans
from rebalance_core.audit.subscriptions import Readers, readers
from rebalance_core.model.times import utc
from rebalance_core.model.verdicts import ERROR, WARNING


def find(case: GroupCase) -> Iterator[Finding]:
    """One finding a topic: both at the end, else the longest time before (rocketmq.md §14)."""
    for topic in sorted({row["topic"] for row in case.rows("pop_reach")}):
        spans = [
            span
            for span in mixed_spans(_takers(case, topic), lambda row: row["way"])
            if is_persistent(case, span)
        ]
        if spans:
            yield _finding(case, topic, max(spans, key=lambda span: _end_ms(case, span)))


def _takers(case: GroupCase, topic: str) -> list[Row]:
    """Who takes messages of the shared topic when, each with its way: pop or pull."""
    rows: list[Row] = []
    for row in case.rows("pop_reach"):
        if row["topic"] == topic:
            pulls = row["client_id"] in readers(case, topic, row["from_ms"]).pullers
            rows.append({**row, "way": "pull" if pulls else "pop"})
    return rows


def _end_ms(case: GroupCase, span: Span) -> tuple[int, int]:
    """Open stretches first, then the longest."""
    end = case.run.end_ms if span.last_ms is None else span.last_ms
    return int(span.last_ms is None), end - span.first_ms


def _finding(case: GroupCase, topic: str, span: Span) -> Finding:
    both = _sides_in(case, topic, span)
    over = span.last_ms is not None
    until = f" for {lasting(span.last_ms - span.first_ms)}" if span.last_ms is not None else ""
    verb = "popped" if over else "pop"
    return Finding(
        f"{plural(len(both.sharers), 'member')} ({listed(both.sharers, 3)}) {verb} {topic} while "
        f"{listed(both.pullers, 3)} {'pulled' if over else 'pull'} a share of its queues, since "
        f"{utc(span.first_ms)}{until}: both sides commit to the same offsets, so messages "
        f"{'were' if over else 'are'} consumed twice.",
        _sides(both),
        severity=WARNING if over else ERROR,
        topic=topic,
        client_id=both.pullers[0] if len(both.pullers) == 1 else None,
        first_ms=span.first_ms,
        last_ms=span.last_ms,
    )


def _sides_in(case: GroupCase, topic: str, span: Span) -> Readers:
    """Everybody who read the topic in the stretch."""
    end_ms = case.run.end_ms if span.last_ms is None else span.last_ms
    moments = {span.first_ms} | {
        row["from_ms"] for row in case.epochs if span.first_ms <= row["from_ms"] < end_ms
    }
    then = [readers(case, topic, at_ms) for at_ms in sorted(moments)]
    return Readers(
        *(
            tuple(sorted({client_id for one in then for client_id in getattr(one, name)}))
            for name in ("poppers", "proxied", "pullers")
        )
    )


def _sides(both: Readers) -> dict[str, str]:
    return {
        "pop": listed(both.poppers),
        "behind_a_proxy": listed(both.proxied),
        "pull": listed(both.pullers),
    }


RULE = Rule(
    "POP_MIXED_WITH_PULL",
    ERROR,
    "Some members pop a topic, by the request mode POP or behind a proxy, while others pull a "
    "share of its queues, computed over all members. Both commit to the same offsets: messages "
    "are consumed twice. clientRebalance = true, the default, ignores the mode without a word.",
    "pop_reach, memberships (rebalance_mode), cluster_events (REQUEST_MODE)",
    "Set clientRebalance = false in all members and restart those that gave up asking "
    "(GAVE_UP_ASKING), or set the mode back to PULL (mqadmin setConsumeMode) for all; give "
    "clients behind proxies and clients that pull groups of their own.",
    find,
)
