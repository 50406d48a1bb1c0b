"""MEMBER_LISTS_DIFFER, NOT_IN_MEMBER_LIST, NO_MEMBER_LIST: the members that brokers know."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from rebalance_core.audit.dumps import lasts
from rebalance_core.audit.group_snapshot import (
    BROKER,
    Finding,
    GroupSnapshot,
    Rule,
    known_topics,
    lasting,
    listed,
    plural,
)
from rebalance_core.audit.listings import Answer, whole_rounds
from rebalance_core.audit.logged_causes import cause_before, explained, window_around
from rebalance_core.audit.observations import COMMAND_MS
from rebalance_core.audit.recovery import recovery
from rebalance_core.audit.subjects import CAUSES
from rebalance_core.audit.topic_readers import is_proxied
from rebalance_core.audit.topic_settings import configs
from rebalance_core.model.events import CONSUMER_JOIN, CONSUMER_LEAVE, CONSUMER_LOST, EXPIRED
from rebalance_core.model.queue import is_retry_topic, retry_topic
from rebalance_core.model.times import CHANNEL_EXPIRY_MS, CHANNEL_SCAN_MS, HEARTBEAT_MS, utc
from rebalance_core.model.verdicts import ERROR, INFO, WARNING
from rebalance_core.protocol.settling_windows import ROUTE_MS, SCAN_AND_PASS_MS

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import Fact

FEW = 4
"""Short refusals after a logged event are not worth reporting up to this number."""
STALE_MS = CHANNEL_EXPIRY_MS + CHANNEL_SCAN_MS
"""A broker that did not see a connection close has removed it by then."""
BACK_MS = HEARTBEAT_MS + COMMAND_MS
"""A live client has reconnected by then."""
EXPIRED_REMEDY = (
    "Find out why its heartbeats do not reach this broker in time: the client's "
    "heartbeatBrokerInterval (default 30 s), long pauses of the process, or the network between "
    "them."
)
STALE_REMEDY = (
    "Dump the broker's list again after that. The named members have left and need no fix; find "
    "out what keeps the broker from handling its connections (load, GC)."
)


def find_differ(group: GroupSnapshot) -> Iterator[Finding]:
    """Yield a finding for each short list of a broker, and for each stale list.

    See rocketmq.md §8.
    """
    missing: dict[str, list[tuple[int, set[str]]]] = {}
    stale: dict[str, list[tuple[int, dict[str, int]]]] = {}
    whole: dict[str, int] = {}
    fresh_list: dict[str, int] = {}
    for together in whole_rounds(group):
        first_ms, last_ms = together[0]["observed_ms"], together[-1]["observed_ms"]
        lists = _lists(together)
        changing = _changing(group, first_ms, last_ms)
        gone = _gone(group, lists, first_ms)
        for broker, ids in lists.items():
            left = {client_id: gone[client_id] for client_id in ids & gone.keys()}
            if left:
                stale.setdefault(broker, []).append((first_ms, left))
            else:
                fresh_list[broker] = first_ms
        lacking = _lacks(group, {b: ids - gone.keys() for b, ids in lists.items()}, first_ms)
        for broker, lacks in lacking.items():
            if not lacks:
                whole[broker] = first_ms
            elif not changing:
                missing.setdefault(broker, []).append((first_ms, lacks))
    for broker, seen in sorted(missing.items()):
        again = whole.get(broker, 0)
        yield _finding(group, broker, seen, again if again > seen[-1][0] else None)
    for broker, rounds in sorted(stale.items()):
        again = fresh_list.get(broker, 0)
        yield _stale(group, broker, rounds, again if again > rounds[-1][0] else None)


def _lists(together: Iterable[Answer]) -> dict[str, set[str]]:
    """Return broker -> the members that it lists in this round."""
    lists: dict[str, set[str]] = {}
    for row in together:
        ids = lists.setdefault(row["asked_broker"], set())
        if row["client_id"] is not None:
            ids.add(row["client_id"])
    return lists


def _lacks(group: GroupSnapshot, lists: dict[str, set[str]], at_ms: int) -> dict[str, set[str]]:
    """Return broker -> members that it should list as others do; empty if one broker was asked."""
    if len(lists) < 2:
        return {}
    everybody = set[str]().union(*lists.values())
    return {
        broker: {
            client_id for client_id in everybody - ids if _belongs(group, client_id, broker, at_ms)
        }
        for broker, ids in lists.items()
    }


def _gone(group: GroupSnapshot, lists: dict[str, set[str]], at_ms: int) -> dict[str, int]:
    """Return the clients that a broker no longer lists and that are gone, and since when.

    They unregistered, or closed their connection to a broker that does not list them again: a
    live client is back within a heartbeat. Another broker removes within `STALE_MS` a client whose
    close it did not see; a client listed for longer is alive.
    """
    partly = {
        client_id
        for ids in lists.values()
        for client_id in ids
        if any(client_id not in ids for ids in lists.values())
    }
    present = {
        row["client_id"]
        for row in group.tables["memberships"]
        if row["from_ms"] <= at_ms and (row["to_ms"] is None or row["to_ms"] > at_ms)
    }
    gone: dict[str, int] = {}
    for row in group.tables["cluster_events"]:
        client_id = row["client_id"]
        left = row["event_type"] == CONSUMER_LEAVE and row["event_ms"] <= at_ms - COMMAND_MS
        if left and client_id in partly - present:
            gone[client_id] = max(row["event_ms"], gone.get(client_id, 0))
    signs = {
        row["client_id"]: row["observed_ms"]
        for row in sorted(group.tables["committed_offsets"], key=lambda row: row["observed_ms"])
    }
    for fact in group.facts["CONNECTION_CLOSED"]:
        client_id, closed_ms = fact["client_id"], fact["last_ms"]
        again = (
            client_id in lists.get(fact["broker_name"], {client_id})
            or signs.get(client_id, 0) > closed_ms
        )
        if client_id in partly & present and not again and BACK_MS < at_ms - closed_ms <= STALE_MS:
            gone[client_id] = closed_ms
    return gone


def _changing(group: GroupSnapshot, first_ms: int, last_ms: int) -> str | None:
    """Return the event that may make lists differ, as heartbeats and expiry reach brokers
    separately.
    """
    return window_around(group, first_ms, HEARTBEAT_MS, SCAN_AND_PASS_MS) or window_around(
        group, last_ms, HEARTBEAT_MS, SCAN_AND_PASS_MS
    )


def _belongs(group: GroupSnapshot, client_id: str, broker: str, at_ms: int) -> bool:
    """Return True if the client should send heartbeats to the broker, which has one of its topics.

    A gRPC client sends them to its proxy, and its queues do not depend on any member list.
    """
    client_rows = [
        row
        for row in group.tables["memberships"]
        if row["client_id"] == client_id
        and row["from_ms"] <= at_ms
        and (row["to_ms"] is None or row["to_ms"] > at_ms)
    ]
    if any(map(is_proxied, client_rows)):
        return False
    topics = {topic for row in client_rows for topic in known_topics(row)}
    topics.add(retry_topic(group.consumer_group))
    return any(
        row["broker_name"] == broker and row["event_ms"] <= at_ms
        for topic in topics
        for row in configs(group, topic)
    )


def _given_up(group: GroupSnapshot, broker: str, at_ms: int) -> set[str]:
    """Return the members that the broker's scan expired and that have not come back to it."""
    given_up: set[str] = set()
    for row in group.consumer_events:
        if row["broker_name"] == broker and row["event_ms"] <= at_ms:
            if row["event_type"] == CONSUMER_LOST and row["detail"] == EXPIRED:
                given_up.add(row["client_id"])
            elif row["event_type"] == CONSUMER_JOIN:
                given_up.discard(row["client_id"])
    return given_up


def _finding(
    group: GroupSnapshot, broker: str, seen: list[tuple[int, set[str]]], again_ms: int | None
) -> Finding:
    lacks = sorted(set[str]().union(*(ids for _, ids in seen)))
    first, last = seen[0][0], seen[-1][0]
    expired = set(lacks) <= _given_up(group, broker, last)
    members = f"{plural(len(lacks), 'member')} that other brokers"
    return Finding(
        (
            f"{broker} expired {members} still list, after {lasting(CHANNEL_EXPIRY_MS)} without a "
            "heartbeat: "
            if expired
            else f"{broker} does not list {members} list: "
        )
        + f"{listed(lacks, 5)} (dumps of {utc(last)}).",
        {"missing": listed(lacks), "rounds_of_dumps": str(len(seen))},
        broker_name=broker,
        client_id=lacks[0] if len(lacks) == 1 else None,
        first_ms=first,
        last_ms=again_ms,
        remedy=EXPIRED_REMEDY if expired else None,
        ended_by=f"{broker} lists all of them again",
    )


def _stale(
    group: GroupSnapshot,
    broker: str,
    rounds: list[tuple[int, dict[str, int]]],
    again_ms: int | None,
) -> Finding:
    left = {client_id: ms for _, gone in rounds for client_id, ms in gone.items()}
    first, last, seen_ms = min(left.values()), max(left.values()), rounds[-1][0]
    until = "" if first == last else f" to {utc(last)}"
    dropped = [
        span
        for span in group.run.overloads.get(broker, ())
        if span[0] <= seen_ms and span[1] >= first - STALE_MS
    ]
    overloaded = (
        f" It dropped connection events from {utc(dropped[0][0])} to {utc(dropped[-1][1])}: it is "
        "overloaded."
        if dropped
        else ""
    )
    return Finding(
        f"The list of {broker} is stale: it still has {plural(len(left), 'member')} that left at "
        f"{utc(first)}{until}, as other brokers know: {listed(sorted(left), 5)} (dumps of "
        f"{utc(seen_ms)}). It expires them by {utc(last + STALE_MS)}; until then, members that "
        f"query it leave the departed members' shares without an owner.{overloaded}",
        {"stale": listed(sorted(left)), "rounds_of_dumps": str(len(rounds))},
        broker_name=broker,
        client_id=min(left) if len(left) == 1 else None,
        first_ms=first,
        last_ms=again_ms,
        remedy=STALE_REMEDY,
        ended_by=f"{broker} lists none of them any more",
    )


def find_not_listed(group: GroupSnapshot) -> Iterator[Finding]:
    """Yield a finding for the clients that did not find themselves in the list they requested.

    Absences that an event explains count only if there are no others.
    """
    facts = group.facts["NOT_IN_MEMBER_LIST"]
    if not facts:
        return
    causes = [explained(group, fact["first_ms"], fact["last_ms"]) for fact in facts]
    unexplained = [fact for fact, cause in zip(facts, causes, strict=True) if cause is None]
    of = unexplained or facts
    clients = sorted({fact["client_id"] or "" for fact in of} - {""})
    who = listed(clients, 5) if clients else "A client"
    itself, drops = "itself", "It drops all its queues each time"
    if len(clients) > 1:
        itself, drops = "themselves", "They drop all their queues each time"
    first, last = min(fact["first_ms"] for fact in of), max(fact["last_ms"] for fact in of)
    explained_by = sorted({cause for cause in causes if cause}) if not unexplained else []
    because = f"; explained by {listed(explained_by, 3)}" if explained_by else ""
    times = plural(sum(fact["times"] for fact in of), "time")
    over = recovery(group, of, by_lists=True)
    yield Finding(
        f"{who} did not find {itself} in the member list that a broker returned, {times} from "
        f"{utc(first)} to {utc(last)}{because}. {drops}.",
        {
            "clients": listed(clients),
            "listed": listed(sorted({fact["details"].get("listed", "") for fact in of}), 3),
        },
        severity=WARNING if unexplained else INFO,
        client_id=clients[0] if len(clients) == 1 else None,
        first_ms=first,
        last_ms=over.at_ms if over else None,
        ended_by=over.shown_by if over else "",
    )


def _is_short(fact: Fact) -> bool:
    return bool(fact["last_ms"] - fact["first_ms"] <= ROUTE_MS)


def find_no_list(group: GroupSnapshot) -> Iterator[Finding]:
    """Yield a finding for all times at which clients received no member list.

    No member rebalances a retry topic that no broker has: behind a proxy nothing creates it.
    """
    refused = group.facts["NO_MEMBER_LIST"]
    facts = [fact for fact in refused if not is_retry_topic(fact["topic"] or "")]
    # the same refusals for the retry topic: they count where all are
    facts = facts or [fact for fact in refused if configs(group, fact["topic"])]
    if not facts:
        return
    long = [fact for fact in facts if lasts(fact)]
    shown = long or facts
    first = min(fact["first_ms"] for fact in shown)
    last = max(fact["last_ms"] for fact in shown)
    causes = [cause_before(group, fact["first_ms"]) for fact in shown]
    trivial = all(cause and _is_short(fact) for cause, fact in zip(causes, shown, strict=True))
    if not long and trivial and len(shown) <= FEW:
        return
    named = sorted({cause for cause in causes if cause})
    because = f"; explained by {listed(named, 3)}" if named else ""
    if not all(causes):
        unexplained = f"{causes.count(None)} of {len(causes)}" if any(causes) else "this"
        because += f"; no event in the files explains {unexplained}"
    over = recovery(group, shown)
    when = f"at {utc(first)}" if first == last else f"from {utc(first)} to {utc(last)}"
    ids = sorted({fact["client_id"] for fact in shown if fact["client_id"]})
    topics = sorted({fact["topic"] for fact in shown if fact["topic"]})
    yield Finding(
        f"{listed(ids, 3) or 'Clients'} received no member list for {listed(topics, 5)}, "
        f"{plural(sum(fact['times'] for fact in shown), 'time')} {when}{'' if long else because}. "
        "A pass without a list leaves the owners of the topic's queues unchanged.",
        {"clients": listed(ids), "topics": listed(topics)},
        severity=WARNING if long else INFO,
        topic=topics[0] if len(topics) == 1 else None,
        client_id=ids[0] if len(ids) == 1 else None,
        first_ms=first,
        last_ms=over.at_ms if over else None,
        ended_by=over.shown_by if over else "",
    )


DIFFER = Rule(
    "MEMBER_LISTS_DIFFER",
    ERROR,
    "Brokers list different members of the group. Members ask any broker, so some queues are read "
    "twice and some not at all. A list is short if it lacks a member, and stale if it keeps a "
    "member that left according to another broker.",
    "observed_members, GROUP_AT_BROKER, CONNECTION_CLOSED, CHANNEL_EVENTS_DROPPED, CONSUMER_LEAVE",
    "Check the network between the missing member and the named broker (HEARTBEAT_FAILED in its "
    "log); restart the member if it can reach the broker.",
    find_differ,
    about=BROKER,
    files=("consumerConnection",),
    reads=(CAUSES,),
    state=True,
)
NOT_LISTED = Rule(
    "NOT_IN_MEMBER_LIST",
    WARNING,
    "A member received a member list that does not contain it. It drops all queues of the topic "
    "and takes them back at a later pass.",
    "NOT_IN_MEMBER_LIST",
    "Normal for seconds after a broker restart. If it continues, the member's heartbeats do not "
    "reach some broker: check the network and each broker's consumerConnection.",
    find_not_listed,
    files=("client_log",),
    reads=(CAUSES,),
    state=True,
)
NO_LIST = Rule(
    "NO_MEMBER_LIST",
    WARNING,
    "A client received no member list because the broker that it queried is down or does not "
    "know the group. The pass leaves the topic unchanged.",
    "NO_MEMBER_LIST",
    "If this lasts, check that the topic's brokers run, and that the group is configured on them "
    "if automatic creation is off.",
    find_no_list,
    files=("client_log",),
    reads=(CAUSES,),
    state=True,
)
