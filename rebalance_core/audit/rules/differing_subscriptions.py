"""Members of one group that subscribe to different topics."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rebalance_core.audit.dumps import by_topic, number, queue_of
from rebalance_core.audit.group_snapshot import (
    Finding,
    GroupSnapshot,
    Rule,
    known_topics,
    lasting,
    listed,
    plural,
    queue_names,
)
from rebalance_core.audit.observations import progress_dumps
from rebalance_core.audit.orphans import orphans
from rebalance_core.audit.stretches import (
    Span,
    is_persistent,
    is_rolling,
    rows_in_epoch,
    spans_where,
)
from rebalance_core.audit.subjects import MEMBERS, logs_gap
from rebalance_core.audit.subscriptions import (
    differ,
    is_broadcasting,
    stated_subscriptions,
)
from rebalance_core.model.events import CONSUMER_JOIN, OBSERVED
from rebalance_core.model.queue import is_retry_topic
from rebalance_core.model.times import utc
from rebalance_core.model.verdicts import ERROR, WARNING

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import (
        MembershipsRow,
        QueueProgressFact,
    )


def find_inconsistent_subscription(group: GroupSnapshot) -> Iterator[Finding]:
    """Yield a finding for each long stretch of differing subscriptions (rocketmq.md §3.3)."""
    spans = [
        span
        for span in spans_where(stated_subscriptions(group), differ)
        if is_persistent(group, span)
    ]
    for span in spans:
        yield _inconsistent_subscription_finding(group, span)
    if not spans:
        yield from _by_holders(group)


def _by_holders(group: GroupSnapshot) -> Iterator[Finding]:
    """Yield at most one finding: holders of one topic hold none of another.

    The remaining queues of both topics have no holder.

    Members that subscribe to the same topics each get their share of every topic.
    """
    dumps = list(progress_dumps(group))
    holders: dict[str, set[str]] = {}
    without: dict[str, list[QueueProgressFact]] = {}
    for row in dumps[-1] if dumps else ():
        holder = row["client_id"] or row["details"].get("client_ip")
        if is_retry_topic(row["topic"]):
            continue
        if holder:
            holders.setdefault(row["topic"], set()).add(holder)
        elif number(row["details"]["broker_offset"]) > number(row["details"]["consumer_offset"]):
            without.setdefault(row["topic"], []).append(row)
    topics = sorted(holders.keys() & without.keys())
    ids = [holder for topic in topics for holder in holders[topic]]
    if len(topics) < 2 or len(set(ids)) < len(ids) or is_broadcasting(group):
        return
    parts = [f"{listed(sorted(holders[topic]), 3)}: {topic}" for topic in topics]
    names = [
        f"{topic} {queue_names(queue_of(row)[1:] for row in without[topic])}" for topic in topics
    ]
    yield Finding(
        "Members likely subscribe to different topics: those that hold queues of one topic hold "
        f"none of another ({'; '.join(parts[:5])}), and the remaining queues have no holder: "
        f"{listed(names, 5)}.",
        {"who_holds_what": "; ".join(parts[:20]), "source": dumps[-1][0]["source"]},
        severity=WARNING,
        first_ms=dumps[-1][0]["first_ms"],
        seen_ms=dumps[-1][0]["first_ms"],
    )


def _inconsistent_subscription_finding(group: GroupSnapshot, span: Span) -> Finding:
    members = rows_in_epoch(
        group.tables["memberships"], None if span.last_ms is None else span.epoch
    )
    who: dict[str, set[str]] = {}
    for row in members:
        topics = row["subscriptions"]
        said = "not known" if topics is None else listed(topics) or "nothing"
        who.setdefault(said, set()).add(row["client_id"])
    parts = [f"{listed(sorted(ids), 3)}: {topics}" for topics, ids in sorted(who.items())]
    evidence = {"who_subscribes_what": "; ".join(parts[:20])}
    lost = ""
    if span.last_ms is None:
        orphaned = by_topic(orphans(group))
        named = {
            topic: queue_names((r["broker_name"], r["queue_id"]) for r in rows)
            for topic, rows in orphaned.items()
        }
        count = sum(len(rows) for rows in orphaned.values())
        if count:
            lost = f"; {plural(count, 'queue')} without a reader: " + "; ".join(
                f"{topic} {queues}" for topic, queues in named.items()
            )
        evidence["orphan_queues"] = str(count)
    evidence |= _broker_words(group)
    rolling = is_rolling(group, span)
    why = ", while members were replaced one after another" if rolling else ""
    unseen = span.last_ms is None and _may_have_unsubscribed(group, members)
    since = "; no log shows since when, or whether a member unsubscribed" if unseen else ""
    return Finding(
        f"Members of the group subscribe to different topics{'' if unseen else _since(span)}{why} "
        f"({'; '.join(parts[:5])}){lost}{since}.",
        evidence,
        first_ms=None if unseen else span.first_ms,
        last_ms=span.last_ms,
    )


def _since(span: Span) -> str:
    last = "" if span.last_ms is None else f", for {lasting(span.last_ms - span.first_ms)}"
    return f" since {utc(span.first_ms)}{last}"


def _may_have_unsubscribed(group: GroupSnapshot, members: list[MembershipsRow]) -> bool:
    """Return True if a member that lacks a topic joined while logs had gaps."""
    if not group.run.coverage.known:
        return False
    all_topics = frozenset[str]().union(*map(known_topics, members))
    lacking = {row["client_id"] for row in members if known_topics(row) != all_topics}
    joins = [row for row in group.consumer_events if row["event_type"] == CONSUMER_JOIN]
    joins = [row for row in joins if row["client_id"] in lacking]
    unlogged = any(
        row["rule_id"] == "INGEST_SUBSCRIPTION_NOT_LOGGED" for row in group.tables["findings"]
    )
    # a member in a dump may have subscribed since it joined
    later = any(
        row["detail"] == OBSERVED or (row.get("source") or "").startswith("mqadmin/")
        for row in joins
    )
    since_ms = min((row["event_ms"] for row in joins), default=group.run.start_ms)
    return unlogged or later or logs_gap(group, since_ms, None) is not None


def _broker_words(group: GroupSnapshot) -> dict[str, str]:
    """Quote brokers on it: refused pulls, topics dropped out of the table."""
    words = {}
    for kind in ("NO_SUBSCRIPTION", "TOPIC_DROPPED"):
        facts = group.facts[kind]
        if facts:
            topics = sorted({fact["topic"] for fact in facts if fact["topic"]})
            words[kind.lower()] = f"{sum(f['times'] for f in facts)} times: {listed(topics)}"
    return words


INCONSISTENT_SUBSCRIPTION = Rule(
    "INCONSISTENT_SUBSCRIPTION",
    ERROR,
    "Members of one group subscribe to different topics. Each topic is divided among all members, "
    "so no client reads the share of members that do not subscribe to it. WARNING if only "
    "consumerProgress shows it, by which members hold which queues.",
    "memberships, ownership, NO_SUBSCRIPTION, TOPIC_DROPPED, QUEUE_PROGRESS",
    "Subscribe every member to the same topics (compare the versions deployed on the named "
    "hosts), or use one group per set of topics.",
    find_inconsistent_subscription,
    reads=(MEMBERS,),
    state=True,
)
