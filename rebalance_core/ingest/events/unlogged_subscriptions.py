"""Subscriptions missing from all brokers' lines: a join without any, or a held queue of another
topic.

A broker that drops INFO lines under load may drop the line with a member's subscriptions
(rocketmq.md §10.1). Other files may have it; if none does, it stays unknown, which is not the same
as "nothing".
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from rebalance_core.ingest.cluster_context import ClusterContext
from rebalance_core.ingest.events.connections import HEARTBEAT_SEEN_MS
from rebalance_core.ingest.events.presence import Presence
from rebalance_core.ingest.fact import file_of
from rebalance_core.ingest.observed_facts import ownership_rows
from rebalance_core.ingest.rows import ORDER, Event, Finding, event, event_order, finding
from rebalance_core.model.events import (
    CONSUMER_JOIN,
    CONSUMER_LEAVE,
    CONSUMER_LOST,
    SUBSCRIBE,
    UNSUBSCRIBE,
)
from rebalance_core.model.group_settings import LITE_PULL, PULL
from rebalance_core.model.queue import is_retry_topic
from rebalance_core.model.verdicts import INFO, WARNING

if TYPE_CHECKING:
    from rebalance_core.ingest.evidence_types import GroupConnectionPiece, GroupEvidence

Topics = frozenset[str]
EVER = 2**62
SHOWN = 20
"""Maximum number of clients that a finding names."""


class _Statement(NamedTuple):
    """All topics stated by a client itself."""

    at_ms: int
    topics: Topics
    source: str


class _Holding(NamedTuple):
    """A topic from which a client takes messages."""

    at_ms: int
    topic: str
    source: str


@dataclass(frozen=True, slots=True, eq=False)
class _Change:
    """A changed subscription.

    Attributes:
        row: its event.
        number: the event's number among the group's events; None if it is added here.
        by_silence: whether no line of the member itself has it.
    """

    row: Event
    number: int | None = None
    by_silence: bool = False


@dataclass
class _Membership:
    """A process of the group: its join, its end, and the changes in between."""

    join: Event
    until_ms: int = EVER
    changes: list[_Change] = field(default_factory=list)

    @property
    def client_id(self) -> str:
        """The client id of the process."""
        return str(self.join["client_id"])

    @property
    def topics(self) -> Topics | None:
        """The topics it subscribed to when it joined; None if no line has them."""
        topics = self.join.get("subscriptions")
        return None if topics is None else frozenset(topics)

    @property
    def ever(self) -> Topics:
        """All topics that it subscribed to at some time."""
        later = {
            change.row["topic"] for change in self.changes if change.row["event_type"] == SUBSCRIBE
        }
        return (self.topics or Topics()) | later

    def changed(self, kind: str, topic: str, at_ms: int, source: str) -> None:
        """Add a change that no broker's line has."""
        row = event(
            kind,
            at_ms,
            source,
            consumer_group=self.join["consumer_group"],
            client_id=self.client_id,
            channel_id=self.join.get("channel_id"),
            topic=topic,
        )
        self.changes.append(_Change(row))

    def covers(self, at_ms: int) -> bool:
        """Return True if the process was present at that time."""
        return bool(self.join["event_ms"] <= at_ms < self.until_ms)

    def meets(self, other: _Membership) -> bool:
        """Return True if both were present at some time."""
        begin = max(self.join["event_ms"], other.join["event_ms"])
        return bool(begin < min(self.until_ms, other.until_ms))


def unlogged_subscriptions(
    group: str,
    events: Iterable[Event],
    by_silence: Collection[int],
    presence: Presence,
    pieces: Sequence[GroupEvidence],
    context: ClusterContext,
) -> tuple[list[Event], list[Finding]]:
    """Return all events with the subscriptions shown by files other than brokers' logs, and the
    findings.

    Joins that no line completed get their topics in place: those that the client itself stated
    (``consumerStatus``, heartbeats in its own log), otherwise the group's (``consumerConnection``,
    its other members), plus the topics whose queues the client is seen to hold. If these do not
    agree on one set, the join stays without topics.

    A member that is shown holding a queue of a topic to which it is not subscribed by the lines did
    subscribe to it: along with the first other member that did, or when it was seen. A change shown
    only by the member's silence is withdrawn if the member itself shows later that there was none,
    because the line that would have shown this was dropped.

    Args:
        group: the consumer group.
        events: all events of its members.
        by_silence: the `ORDER` of those events that no line of the member itself shows.
        presence: the presence of members by these events.
        pieces: its evidence.
        context: the cluster's context.
    """
    events = sorted(events, key=event_order)
    memberships = _memberships(events, by_silence)
    logged = {change.number for membership in memberships for change in membership.changes}
    statements, held = _statements(pieces, context), _held(group, presence, pieces, context)
    connections = [piece for piece in pieces if piece.kind == "group_connection"]
    sources: dict[str, str] = {}
    unknown: dict[str, str] = {}
    by_topics: dict[Topics, list[int]] = {}
    for number, membership in enumerate(memberships):
        if membership.topics is not None:
            by_topics.setdefault(membership.topics, []).append(number)
    for number in [
        number for number, membership in enumerate(memberships) if membership.topics is None
    ]:
        membership = memberships[number]
        stated = [
            statement
            for statement in statements.get(membership.client_id, ())
            if membership.covers(statement.at_ms)
        ]
        seen = {
            holding.topic
            for holding in held.get(membership.client_id, ())
            if membership.covers(holding.at_ms)
        }
        others = (
            (topic_set, (memberships[n] for n in numbers))
            for topic_set, numbers in by_topics.items()
        )
        topics = (
            (stated[0].topics, stated[0].source)
            if stated
            else _of_group(membership, others, connections, Topics(seen), context)
        )
        if topics is not None:
            membership.join["subscriptions"] = sorted(topics[0])
            insort(by_topics.setdefault(topics[0], []), number)
            _change(membership, stated)
            sources[membership.client_id] = topics[1]
        elif context.group_rows.get(group, {}).get("subscriptions") is None:
            unknown[membership.client_id] = membership.join["source"]
    for membership in memberships:
        shown = held.get(membership.client_id, [])
        own = statements.get(membership.client_id, [])
        _withdraw(membership, own, shown, sources, context)
        _subscribe_held(membership, memberships, shown, own, sources)
    changes = [change for membership in memberships for change in membership.changes]
    withdrawn = logged - {change.number for change in changes}
    kept = [row for number, row in enumerate(events) if number not in withdrawn]
    added = [change.row for change in changes if change.number is None]
    return kept + added, [
        *_not_logged(group, sources, *_TOLD),
        *_not_logged(group, unknown, *_UNKNOWN),
    ]


def _memberships(events: Iterable[Event], by_silence: Collection[int]) -> list[_Membership]:
    memberships: list[_Membership] = []
    live: dict[tuple[str, str | None], _Membership] = {}
    for number, row in enumerate(events):
        member = (row["client_id"], row.get("channel_id"))
        if row["event_type"] == CONSUMER_JOIN:
            if member in live:
                live[member].until_ms = row["event_ms"]
            live[member] = _Membership(row)
            memberships.append(live[member])
        elif member in live and row["event_type"] in (CONSUMER_LEAVE, CONSUMER_LOST):
            live.pop(member).until_ms = row["event_ms"]
        elif member in live:
            live[member].changes.append(_Change(row, number, row.get(ORDER) in by_silence))
    return memberships


def _statements(
    pieces: Iterable[GroupEvidence], context: ClusterContext
) -> dict[str, list[_Statement]]:
    """Return each client's own statements about its topics, by time.

    A push consumer always subscribes to its retry topic or another topic, so an answer without any
    is incomplete.
    """
    dumps: dict[tuple[str, str], tuple[int, set[str]]] = {}
    statements: dict[str, list[_Statement]] = {}
    for piece in pieces:
        if piece.kind == "heartbeat":
            topics = Topics(t for t in piece.values["topics"] if not is_retry_topic(t))
            statement = _Statement(context.time_of(piece), topics, piece.source)
            statements.setdefault(piece.values["client_id"], []).append(statement)
        elif piece.kind in ("client", "client_subscription"):
            client_file = piece.values.get("client_file")
            if not client_file or piece.values.get("partial"):
                continue
            if piece.kind == "client_subscription":
                named = {piece.values["topic"]}
            elif piece.values["consumer_type"] in (LITE_PULL, PULL):
                named = set()
            else:
                continue
            place = (client_file, file_of(piece.source))
            dumps.setdefault(place, (context.time_of(piece), set()))[1].update(named)
    for (client_id, source), (at_ms, names) in dumps.items():
        topics = Topics(t for t in names if not is_retry_topic(t))
        statements.setdefault(client_id, []).append(_Statement(at_ms, topics, source))
    return {
        client_id: sorted(each, key=lambda statement: statement.at_ms)
        for client_id, each in statements.items()
    }


def _held(
    group: str, presence: Presence, pieces: Sequence[GroupEvidence], context: ClusterContext
) -> dict[str, list[_Holding]]:
    """Return the topics from which each client takes messages, by time.

    Dumps show its queues, and its own log shows the queues that it was given.
    """
    rows = [
        (row["client_id"], _Holding(row["observed_ms"], row["topic"], row["source"]))
        for row in ownership_rows(group, pieces, presence, context)
    ]
    for piece in pieces:
        if piece.kind in ("allocated", "broker_allocated"):
            client_id = piece.values["client_id"]
        elif piece.kind == "client_pop_queue" and not piece.values["dropped"]:
            client_id = piece.values.get("client_file", "")
        else:
            continue
        if client_id:
            holding = _Holding(context.time_of(piece), piece.values["topic"], piece.source)
            rows.append((client_id, holding))
    held: dict[str, list[_Holding]] = {}
    for client_id, holding in sorted(rows, key=lambda row: row[1].at_ms):
        if not is_retry_topic(holding.topic):
            held.setdefault(client_id, []).append(holding)
    return held


def _of_group(
    membership: _Membership,
    others: Iterable[tuple[Topics, Iterable[_Membership]]],
    connections: Iterable[GroupConnectionPiece],
    seen: Topics,
    context: ClusterContext,
) -> tuple[Topics, str] | None:
    """Return the group's only subscription while the member is present, and a source; None if
    several.

    Args:
        membership: the member's membership.
        others: memberships of members whose topics are known, in chronological order, by these
            topics.
        connections: the group's ``consumerConnection``.
        seen: topics whose queues the member holds.
        context: the cluster's context.
    """
    sets: dict[Topics, str] = {}
    for topics, members in others:
        met = next((other for other in members if membership.meets(other)), None)
        if met is not None:
            sets[topics] = met.join["source"]
    for piece in connections:
        if membership.covers(context.time_of(piece)):
            listed = piece.values["subscriptions"] or ()
            topics = Topics(t for t, _ in listed if not is_retry_topic(t))
            if topics:
                sets.setdefault(topics, piece.source)
    fitting = [pair for pair in sets.items() if seen <= pair[0]]
    if len(fitting) == 1:
        return fitting[0]
    return (seen, membership.join["source"]) if seen and not fitting else None


def _change(membership: _Membership, stated: list[_Statement]) -> None:
    """Add the changes of a member that later states other topics than before."""
    for before, after in pairwise(stated):
        for kind, topics in (
            (SUBSCRIBE, after.topics - before.topics),
            (UNSUBSCRIBE, before.topics - after.topics),
        ):
            for topic in sorted(topics):
                membership.changed(kind, topic, after.at_ms, after.source)


def _withdraw(
    membership: _Membership,
    statements: list[_Statement],
    held: list[_Holding],
    sources: dict[str, str],
    context: ClusterContext,
) -> None:
    """Withdraw changes inferred from silence that the member contradicts; add to ``sources``.

    This is done only while a log continues, because afterwards the contradiction may result from
    another, unseen change.
    """
    statements = [
        statement for statement in statements if not context.all_logs_had_ended(statement.at_ms)
    ]
    held = [holding for holding in held if not context.all_logs_had_ended(holding.at_ms)]
    for change in [change for change in membership.changes if change.by_silence]:
        if change not in membership.changes:
            continue
        of_topic = [
            other for other in membership.changes if other.row["topic"] == change.row["topic"]
        ]
        place = of_topic.index(change)
        source = _contradiction(change, membership, statements, held)
        if source is None:  # nor was a change that the member's own next line reverts
            own = (other.row for other in of_topic[place + 1 : place + 2] if not other.by_silence)
            logged = (r["source"] for r in own if not context.all_logs_had_ended(r["event_ms"]))
            source = next(logged, None)
        if source is not None:
            for withdrawn in of_topic[place : place + 2]:  # the next change would have no effect
                membership.changes.remove(withdrawn)
            sources[membership.client_id] = source


def _subscribe_held(
    membership: _Membership,
    memberships: list[_Membership],
    held: list[_Holding],
    statements: Iterable[_Statement],
    sources: dict[str, str],
) -> None:
    """Add subscriptions to topics whose queues the member holds; add to ``sources``.

    They ended if the member itself later states its topics without them. A member without
    subscriptions reads the queues that its application names.
    """
    statements = [statement for statement in statements if membership.covers(statement.at_ms)]
    held = [holding for holding in held if membership.covers(holding.at_ms)]
    for at_ms, topic, source in held if membership.topics else ():
        if topic not in membership.ever:
            since_ms = _since(membership, memberships, topic, at_ms)
            membership.changed(SUBSCRIBE, topic, since_ms, source)
            sources[membership.client_id] = source
            last_ms = max(holding.at_ms for holding in held if holding.topic == topic)
            later = (s for s in statements if s.at_ms > last_ms and topic not in s.topics)
            without = next(later, None)
            if without is not None:
                membership.changed(UNSUBSCRIBE, topic, without.at_ms, without.source)


def _contradiction(
    change: _Change,
    membership: _Membership,
    statements: Iterable[_Statement],
    held: Iterable[_Holding],
) -> str | None:
    """Return the source in which the member later contradicts the change, or None if no file
    does.
    """
    row = change.row
    topic, ended, changed_ms = row["topic"], row["event_type"] == UNSUBSCRIBE, row["event_ms"]
    others = (sibling.row for sibling in membership.changes if sibling is not change)
    after = [other["event_ms"] for other in others if other["topic"] == topic]
    until_ms = min([ms for ms in after if ms >= changed_ms] + [membership.until_ms])
    shown = [(at_ms, topic in topics, source) for at_ms, topics, source in statements]
    shown += [(at_ms, True, source) for at_ms, name, source in held if name == topic]
    return next(
        (
            source
            for at_ms, subscribed, source in shown
            if changed_ms + HEARTBEAT_SEEN_MS < at_ms < until_ms and subscribed == ended
        ),
        None,
    )


def _since(
    membership: _Membership, memberships: Iterable[_Membership], topic: str, seen_ms: int
) -> int:
    """Return the time since which a member has subscribed to a topic that it holds, like others in
    its group.
    """
    joined_ms = int(membership.join["event_ms"])
    moments = [max(joined_ms, seen_ms - HEARTBEAT_SEEN_MS)]
    for other in filter(membership.meets, memberships):
        rows = [other.join] if topic in (other.topics or ()) else []
        changes = (change.row for change in other.changes)
        rows += [r for r in changes if r["event_type"] == SUBSCRIBE and r["topic"] == topic]
        moments += [max(joined_ms, row["event_ms"]) for row in rows]
    return min(moments)


_TOLD: Final = (
    "No broker's log records what {} subscribes to; dumps, the client's own log or the group's "
    "other members show it.",
    "Collect broker.log of every broker; brokers drop INFO lines under load.",
    INFO,
)
_UNKNOWN: Final = (
    "No file shows what {} subscribes to. Its queues have owners, but which ones is unknown: the "
    "group is not compared.",
    "Collect consumerStatus of every member, and broker.log of every broker; or state "
    "subscriptions of the group in the collection's consumer_groups.jsonl.",
    WARNING,
)


def _not_logged(
    group: str,
    sources: dict[str, str],
    text: str,
    remedy: str,
    severity: Literal["INFO", "WARNING"],
) -> Iterator[Finding]:
    if sources:
        yield finding(
            "INGEST_SUBSCRIPTION_NOT_LOGGED",
            text.format(_some(sources)),
            remedy,
            severity,
            consumer_group=group,
            client_id=next(iter(sources)) if len(sources) == 1 else None,
            evidence=dict([*sources.items()][:SHOWN]),
        )


def _some(sources: dict[str, str]) -> str:
    if len(sources) == 1:
        return next(iter(sources))
    return f"each of {len(sources)} clients ({', '.join([*sources][:3])}, …)"
