"""Members of one group that subscribe different topics or tags."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rebalance_core.audit.dumps import by_topic, fresh, last_stated, number, queue_of
from rebalance_core.audit.evidence import end_of
from rebalance_core.audit.group_snapshot import (
    PERSISTENT_MS,
    Finding,
    GroupSnapshot,
    Rule,
    grouped,
    known_topics,
    lasting,
    listed,
    plural,
    queue_names,
)
from rebalance_core.audit.logged_causes import cause_before, window_around
from rebalance_core.audit.observations import progress_dumps
from rebalance_core.audit.offsets import Offsets, messages
from rebalance_core.audit.orphans import orphans
from rebalance_core.audit.recovery import went_after
from rebalance_core.audit.stretches import (
    Span,
    has_settled,
    is_persistent,
    is_rolling,
    rows_in_epoch,
    spans_where,
)
from rebalance_core.audit.subjects import CAUSES, MEMBERS, logs_gap
from rebalance_core.audit.subscriptions import (
    Unsubscribed,
    differ,
    is_broadcasting,
    shared_topics,
    stated_subscriptions,
    subscribers,
    unsubscribed,
)
from rebalance_core.model.events import CONSUMER_JOIN, OBSERVED
from rebalance_core.model.queue import is_retry_topic
from rebalance_core.model.times import HEARTBEAT_MS, utc
from rebalance_core.model.verdicts import ERROR, INFO, WARNING

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import (
        ClientTopicFact,
        MembershipsRow,
        QueueProgressFact,
        TagsChangedFact,
    )

# INCONSISTENT_SUBSCRIPTION: members of one group subscribe different topics.


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

    The remaining queues of each have no holder.

    Members that subscribe the same get their share of each topic.
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
    """Return True if a member that lacks a topic came while logs had gaps."""
    if not group.run.coverage.known:
        return False
    all_topics = frozenset[str]().union(*map(known_topics, members))
    lacking = {row["client_id"] for row in members if known_topics(row) != all_topics}
    joins = [row for row in group.consumer_events if row["event_type"] == CONSUMER_JOIN]
    joins = [row for row in joins if row["client_id"] in lacking]
    unlogged = any(
        row["rule_id"] == "INGEST_SUBSCRIPTION_NOT_LOGGED" for row in group.tables["findings"]
    )
    # what a dump lists a member with it may have come to have since it joined
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


# INCONSISTENT_TAGS: members filter one topic by different expressions.


def find_inconsistent_tags(group: GroupSnapshot) -> Iterator[Finding]:
    """Yield a finding for each topic whose clients' expressions differ, or whose expression
    flips.
    """
    differing = _differing(group)
    for topic in sorted(differing):
        yield _by_clients(group, topic, differing[topic])
    changes = grouped(group.facts["TAGS_CHANGED"], lambda fact: fact["topic"])
    for topic in sorted(changes.keys() - differing.keys()):
        yield from _by_flips(group, topic, changes[topic])


def _differing(group: GroupSnapshot) -> dict[str, list[ClientTopicFact]]:
    """Return the last statements of clients that are still members, on topics where they differ."""
    alive = {row["client_id"] for row in group.members}
    last: dict[tuple[str, str], ClientTopicFact] = {}
    for fact in sorted(
        fresh(group, group.facts["CLIENT_TOPIC"], last_stated), key=lambda fact: fact["last_ms"]
    ):
        if not is_retry_topic(fact["topic"]) and (not alive or fact["client_id"] in alive):
            last[fact["topic"], fact["client_id"]] = fact
    facts_of: dict[str, list[ClientTopicFact]] = {}
    for (topic, _), fact in last.items():
        facts_of.setdefault(topic, []).append(fact)
    return {t: facts for t, facts in facts_of.items() if len({_expression(f) for f in facts}) > 1}


def _expression(fact: ClientTopicFact) -> str:
    """Return the expression with its tags in order, as any order is the same filter."""
    parts = str(fact["details"].get("expression") or "*").split("||")
    return " || ".join(sorted(part.strip() for part in parts))


def _by_clients(group: GroupSnapshot, topic: str, facts: list[ClientTopicFact]) -> Finding:
    who: dict[str, set[str]] = {}
    for fact in facts:
        who.setdefault(_expression(fact), set()).add(fact["client_id"])
    parts = [f"'{text}' of {listed(sorted(ids), 3)}" for text, ids in sorted(who.items())]
    began = {_expression(f): f["first_ms"] for f in sorted(facts, key=_begun, reverse=True)}
    first = max(began.values())
    cause = window_around(group, group.run.end_ms, after_ms=HEARTBEAT_MS)
    because = f" ({cause}, just before the end)" if cause else ""
    went_ms = went_after(group, None, max(fact["last_ms"] for fact in facts))
    return Finding(
        f"Members filter {topic} differently: {'; '.join(parts[:5])}{because}. The broker applies "
        "the last heartbeat's expression to all of them.",
        {text: listed(sorted(ids)) for text, ids in sorted(who.items())[:20]},
        severity=INFO if cause else ERROR,
        topic=topic,
        first_ms=first,
        last_ms=went_ms,
        ended_by="" if went_ms is None else "all members left",
    )


def _begun(fact: ClientTopicFact) -> int:
    return int(fact["first_ms"])


def _by_flips(group: GroupSnapshot, topic: str, facts: list[TagsChangedFact]) -> Iterator[Finding]:
    pairs = {(f["details"].get("old"), f["details"].get("new")) for f in facts}
    if not any((new, old) in pairs for old, new in pairs if old != new):
        return
    first = min(fact["first_ms"] for fact in facts)
    last = max(fact["last_ms"] for fact in facts)
    times = sum(fact["times"] for fact in facts)
    settling = last - first <= PERSISTENT_MS and window_around(group, last, HEARTBEAT_MS)
    cause = cause_before(group, last) if settling else None
    silent = last < (end_of(group) or group.run.end_ms) - 3 * HEARTBEAT_MS
    ends = silent and logs_gap(group, last, None) is None
    because = f"; {cause} explains it" if cause else ""
    yield Finding(
        f"The broker saw the expression of {topic} change back and forth {times} times from "
        f"{utc(first)} to {utc(last)}{because}.",
        {"expressions": listed(sorted({str(new) for _, new in pairs})), "changes": str(times)},
        severity=INFO if cause else ERROR,
        topic=topic,
        first_ms=first,
        last_ms=last if ends else None,
        ended_by="the brokers' logs continue without another change",
    )


INCONSISTENT_TAGS = Rule(
    "INCONSISTENT_TAGS",
    ERROR,
    "Members subscribe to a topic with different tag or SQL expressions. The broker keeps only "
    "the last heartbeat's expression, so it silently skips messages that only some members want.",
    "CLIENT_TOPIC, TAGS_CHANGED",
    "Deploy the same expression to all named members, or use one group per expression. To read "
    "messages that were already skipped, reset the offsets by time.",
    find_inconsistent_tags,
    files=("consumerStatus", "broker_log"),
    reads=(CAUSES,),
    state=True,
)


# UNSUBSCRIBED_SHARE: a member unsubscribed at runtime, no client reads its computed share.


def find_unsubscribed_share(group: GroupSnapshot) -> Iterator[Finding]:
    """Yield a finding for each topic that others still subscribe to (rocketmq.md §6.4)."""
    if is_broadcasting(group):
        return
    shared = shared_topics(group)  # what no member may pop of them is POP_UNREACHED_QUEUE
    by_topic: dict[str, list[Unsubscribed]] = {}
    for member in unsubscribed(group):
        if member.topic in shared:
            continue
        if subscribers(group, member.topic) and has_settled(group, member.epoch):
            by_topic.setdefault(member.topic, []).append(member)
    for topic, members in by_topic.items():
        yield _unsubscribed_share_finding(group, topic, members)


def _unsubscribed_share_finding(
    group: GroupSnapshot, topic: str, members: list[Unsubscribed]
) -> Finding:
    unread = [r for r in group.owned if r["topic"] == topic and r["client_id"] is None]
    queues = queue_names((row["broker_name"], row["queue_id"]) for row in unread)
    behind = Offsets(group).behind(queue_of(row) for row in unread)
    ids = sorted({member.client_id for member in members})
    others = sorted({row["client_id"] for row in subscribers(group, topic)})
    share = (
        f"its share of {plural(len(unread), 'queue')} has no reader: {queues}"
        if unread
        else "every queue in it has a reader at the moment"
    )
    return Finding(
        f"{listed(ids, 3)} unsubscribed {topic} at {utc(members[0].since_ms)} and still counts as "
        f"its member; {share} ({messages(behind)} behind).",
        {"unsubscribed_by": listed(ids), "still_subscribed_by": listed(others), "queues": queues},
        severity=ERROR if unread else WARNING,
        topic=topic,
        client_id=ids[0] if len(ids) == 1 else None,
        first_ms=min(member.since_ms for member in members),
    )


UNSUBSCRIBED_SHARE = Rule(
    "UNSUBSCRIBED_SHARE",
    ERROR,
    "A member called unsubscribe() on a topic that other members of its group still subscribe to. "
    "It still gets a share of that topic, and no client reads that share.",
    "memberships and epochs (UNSUBSCRIBE), ownership",
    "Restart or stop the named member. As a lasting fix, remove the topic from all members "
    "together, or move it into its own group.",
    find_unsubscribed_share,
    by_owners=True,
    reads=(MEMBERS,),
)
