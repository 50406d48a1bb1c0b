"""INCONSISTENT_SUBSCRIPTION: members of one group subscribe different topics."""

from __future__ import annotations

from collections.abc import Iterator

from rebalance_core.audit.case import Finding, GroupCase, Rule, lasting, listed, plural, queue_names
from rebalance_core.audit.dumps import by_topic
from rebalance_core.audit.orphans import (
    Span,
    is_persistent,
    is_rolling,
    orphans,
    spans_where,
    there_in,
)
from rebalance_core.audit.subscriptions import differ, stated_subscriptions
from rebalance_core.model.times import utc
from rebalance_core.model.verdicts import ERROR, INFO, WARNING


def find(case: GroupCase) -> Iterator[Finding]:
    """One finding for each persistent stretch in which subscriptions differ
    (rocketmq.md §11 no. 1).
    """
    stretches = stated_subscriptions(case)
    said = {id(row): what for row, what in stretches}
    rows = [row for row, _ in stretches]
    for span in spans_where(rows, lambda row: said[id(row)], differ):
        if is_persistent(case, span):
            yield _finding(case, span)


def _finding(case: GroupCase, span: Span) -> Finding:
    there = there_in(case.rows("memberships"), None if span.last_ms is None else span.epoch)
    who: dict[str, set[str]] = {}
    for row in there:
        topics = row["subscriptions"]
        said = "not known" if topics is None else listed(topics) or "nothing"
        who.setdefault(said, set()).add(row["client_id"])
    parts = [f"{listed(sorted(ids), 3)}: {topics}" for topics, ids in sorted(who.items())]
    evidence = {"who_subscribes_what": "; ".join(parts[:20])}
    lost = ""
    if span.last_ms is None:
        orphaned = by_topic(orphans(case))
        named = {
            topic: queue_names((r["broker_name"], r["queue_id"]) for r in rows)
            for topic, rows in orphaned.items()
        }
        count = sum(len(rows) for rows in orphaned.values())
        if count:
            lost = f"; {plural(count, 'queue')} nobody reads: " + "; ".join(
                f"{topic} {queues}" for topic, queues in named.items()
            )
        evidence["orphan_queues"] = str(count)
    evidence |= _broker_words(case)
    rolling = is_rolling(case, span)
    why = ", while members were replaced one after another" if rolling else ""
    return Finding(
        f"Members of the group subscribe different topics since {utc(span.first_ms)}"
        f"{_until(span)}{why} ({'; '.join(parts[:5])}){lost}.",
        evidence,
        severity=ERROR if span.last_ms is None else INFO if rolling else WARNING,
        first_ms=span.first_ms,
        last_ms=span.last_ms,
    )


def _until(span: Span) -> str:
    return "" if span.last_ms is None else f", for {lasting(span.last_ms - span.first_ms)}"


def _broker_words(case: GroupCase) -> dict[str, str]:
    """What brokers said of it: refused pulls, topics dropped out of the table."""
    words = {}
    for kind in ("NO_SUBSCRIPTION", "TOPIC_DROPPED"):
        facts = case.facts(kind)
        if facts:
            topics = sorted({fact["topic"] for fact in facts if fact["topic"]})
            words[kind.lower()] = f"{sum(f['times'] for f in facts)} times: {listed(topics)}"
    return words


RULE = Rule(
    "INCONSISTENT_SUBSCRIPTION",
    ERROR,
    "Members of one group subscribe different topics. Each topic is divided among all members, so "
    "the share of those that do not subscribe it is read by nobody, and every heartbeat overwrites "
    "the subscription the broker keeps for the group.",
    "memberships, ownership; facts NO_SUBSCRIPTION and TOPIC_DROPPED",
    "Give every member of the group the same topics (compare the versions deployed on the hosts "
    "named), or use one group per set of topics. The queues are read again within a minute.",
    find,
)
