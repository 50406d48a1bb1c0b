"""Members that come and go, that no broker lists, or that only some see."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING

from rebalance_core.audit import dumps, listings, outsiders
from rebalance_core.audit.evidence import unlogged_group
from rebalance_core.audit.group_snapshot import (
    PERSISTENT_MS,
    Finding,
    GroupSnapshot,
    Rule,
    lasting,
    listed,
    plural,
)
from rebalance_core.audit.listings import Answer
from rebalance_core.audit.logged_causes import servers_near
from rebalance_core.audit.offsets import backlog, messages
from rebalance_core.audit.outsiders import Unlisted
from rebalance_core.audit.recovery import Recovery, went_after
from rebalance_core.audit.subjects import EVENTS, EVENTS_OR_DENIED, MEMBERS, ROUTES
from rebalance_core.audit.subscriptions import is_broadcasting, is_proxied
from rebalance_core.audit.topic_settings import is_configured_nowhere
from rebalance_core.model.events import CONSUMER_JOIN, CONSUMER_LOST, EXPIRED
from rebalance_core.model.times import CHANNEL_EXPIRY_MS, HOUR_MS, utc
from rebalance_core.model.verdicts import ERROR, INFO, WARNING

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import ConsumerEventsRow

# MEMBER_FLAPS: a member comes and goes again and again, and all members rebalance each time.

FLAPS = 5
"""So many short stays in a row are no deployment that was repeated."""


@dataclass(frozen=True, slots=True)
class Membership:
    """One process of a client id, from its join until it left or was lost."""

    client_id: str
    from_ms: int
    to_ms: int


def find_flapping_members(group: GroupSnapshot) -> Iterator[Finding]:
    """Yield a finding for each host with many short stays in quick succession.

    A short stay ended before the group had surely settled after its begin.
    """
    for host, memberships in sorted(_short_memberships(group).items()):
        run: list[Membership] = []
        for membership in memberships:
            if run and membership.from_ms - run[-1].to_ms > HOUR_MS:
                yield from _finding(group, host, run)
                run = []
            run.append(membership)
        yield from _finding(group, host, run)


def _short_memberships(group: GroupSnapshot) -> dict[str, list[Membership]]:
    """Return host (the part of a client id before @) -> its short stays in order.

    Lives of one client id that overlap are one: connections that no line of its join ties together.
    """
    lives: dict[tuple[str, str], list[int | None]] = {}
    for row in sorted(group.tables["memberships"], key=lambda row: row["from_ms"]):
        life = lives.setdefault((row["client_id"], row["channel_id"] or ""), [row["from_ms"], None])
        life[1] = row["to_ms"]
    merged: dict[str, list[list[int | None]]] = {}
    for (client_id, _), (from_ms, to_ms) in lives.items():
        of_id = merged.setdefault(client_id, [])
        before = of_id[-1][1] if of_id else 0
        if of_id and (before is None or (from_ms or 0) < before):
            of_id[-1][1] = None if before is None or to_ms is None else max(before, to_ms)
        else:
            of_id.append([from_ms, to_ms])
    memberships: dict[str, list[Membership]] = {}
    for client_id, spans in merged.items():
        for from_ms, to_ms in spans:
            if from_ms is not None and to_ms is not None and to_ms - from_ms <= PERSISTENT_MS:
                host = client_id.partition("@")[0]
                memberships.setdefault(host, []).append(Membership(client_id, from_ms, to_ms))
    return {
        host: sorted(of_host, key=lambda membership: membership.from_ms)
        for host, of_host in memberships.items()
    }


def _finding(group: GroupSnapshot, host: str, memberships: list[Membership]) -> Iterator[Finding]:
    if len(memberships) < FLAPS:
        return
    first_ms, last_ms = memberships[0].from_ms, memberships[-1].to_ms
    over = group.run.end_ms - last_ms > HOUR_MS
    ids = sorted({membership.client_id for membership in memberships})
    times = plural(len(memberships), "time")
    what = (
        f"{ids[0]} reconnected and left again {times}"
        if len(ids) == 1
        else f"{plural(len(ids), 'process')} of {host} joined and left {times}"
    )
    longest = max(membership.to_ms - membership.from_ms for membership in memberships)
    yield Finding(
        f"{what} from {utc(first_ms)} to {utc(last_ms)}, each for {lasting(longest)} at most: "
        "each change makes all members rebalance.",
        {"host": host, "stays": str(len(memberships)), "client_ids": listed(ids)},
        client_id=ids[0] if len(ids) == 1 else None,
        first_ms=first_ms,
        last_ms=last_ms,
        ended_by="no process stayed so briefly in the hour after it" if over else "",
    )


FLAPPING_MEMBERS = Rule(
    "MEMBER_FLAPS",
    WARNING,
    "Processes on one host join and leave repeatedly within minutes: a crash loop, or a "
    "connection that keeps breaking. Each change moves queues of the whole group, and consumers "
    "read uncommitted messages again.",
    "memberships",
    "Check the named host's log for why the process ends or its connection breaks. Keep it "
    "stopped until that is fixed.",
    find_flapping_members,
    reads=(EVENTS, ROUTES),
)


# EXPIRED_WHILE_ALIVE: a broker gave a member up that lived on.

RARE_BEATS = (
    "Set the client's heartbeatBrokerInterval below 120 s (the broker's channelExpiredTimeout); "
    "the default is 30 s."
)
_OF_ONE_PROCESS = re.compile(r"@\d+#-?\d+(?:@|$)")
"""The instance name that clients make: process id and nanoseconds (ClientConfig)."""
OFTEN = 2
"""Once may be a pause of the process or of the network; again is not chance."""


def find_expired_alive(group: GroupSnapshot) -> Iterator[Finding]:
    """Yield a finding for each client id that expired and came back."""
    intervals = _intervals(group)
    for client_id, pauses in sorted(pauses_of(group).items()):
        longest = max(back - lost for lost, back, _ in pauses)
        ends = accumulate((back for _, back, _ in pauses), max)  # at several brokers it is one
        often = 1 + sum(lost > end for (lost, _, _), end in zip(pauses[1:], ends, strict=False))
        brokers = sorted({broker for _, _, broker in pauses if broker})
        where = f" by {listed(brokers, 3)}" if brokers else ""
        beat_ms = intervals.get(client_id, 0)
        rare = beat_ms > CHANNEL_EXPIRY_MS
        # its interval went with the process
        went_ms = went_after(group, client_id, pauses[-1][1]) if rare else None
        why = (
            f"It sends a heartbeat every {lasting(beat_ms)} (heartbeatBrokerInterval)."
            if rare
            else "The process paused, lost its connection, or had blocked timers."
        )
        yield Finding(
            f"{client_id} was expired {plural(len(pauses), 'time')}{where} although it was "
            f"alive: no heartbeat arrived for {lasting(CHANNEL_EXPIRY_MS)}, and it was back up "
            f"to {lasting(longest)} later ({listed([utc(lost) for lost, _, _ in pauses], 3)}). "
            f"{why}",
            {"times": str(len(pauses))} | ({"interval_ms": str(beat_ms)} if rare else {}),
            severity=WARNING if rare or often >= OFTEN else INFO,
            remedy=RARE_BEATS if rare else None,
            broker_name=brokers[0] if len(brokers) == 1 else None,
            client_id=client_id,
            first_ms=pauses[0][0],
            last_ms=pauses[-1][1] if went_ms is None else went_ms,
            ended_by="" if went_ms is None else f"{client_id} went",
        )


def _intervals(group: GroupSnapshot) -> dict[str, int]:
    """Return the heartbeatBrokerInterval in ms of each client that sets it."""
    stated = {
        row["client_id"]: row["heartbeat_broker_interval_ms"]
        for row in group.consumer_events
        if row["heartbeat_broker_interval_ms"]
    }
    return stated | {
        fact["client_id"]: dumps.number(fact["details"].get("interval_ms"))
        for fact in group.facts["HEARTBEAT_INTERVAL"]
    }


def pauses_of(group: GroupSnapshot) -> dict[str, list[tuple[int, int, str | None]]]:
    """Return client id -> (expired, back, the only broker that expired it) in order, epoch ms.

    An id that is not unique to a process, as with a fixed instance name, proves nothing: a new
    process has it too.
    """
    given_up: dict[tuple[str, str | None], ConsumerEventsRow] = {}
    pauses: dict[str, list[tuple[int, int, str | None]]] = {}
    for row in group.consumer_events:
        client_id = row["client_id"]
        if not _OF_ONE_PROCESS.search(client_id):
            continue
        where = (client_id, row["broker_name"])
        if row["event_type"] == CONSUMER_LOST and row["detail"] == EXPIRED:
            given_up[where] = row
        elif row["event_type"] == CONSUMER_JOIN and where in given_up:
            lost_ms = given_up.pop(where)["event_ms"]
            pauses.setdefault(client_id, []).append((lost_ms, row["event_ms"], where[1]))
    return pauses


EXPIRED_ALIVE = Rule(
    "EXPIRED_WHILE_ALIVE",
    WARNING,
    "A broker received no heartbeat from a member for two minutes and expired it, then the same "
    "process came back. Meanwhile other members read its queues. INFO if it happened once.",
    "CONSUMER_LOST, CONSUMER_JOIN, HEARTBEAT_INTERVAL",
    "Look for long pauses of the process (GC, a frozen container), packet loss between it and the "
    "broker, and STARVED_TIMERS.",
    find_expired_alive,
    reads=(EVENTS, ROUTES),
)


# MEMBERS_APART: some members are known to brokers alone, others to proxies alone.


@dataclass(frozen=True, slots=True)
class _Sides:
    """Members that divide queues and stand on one side's lists alone, in one round of dumps."""

    at_ms: int
    at_brokers: tuple[str, ...]
    behind_proxies: tuple[str, ...]

    @property
    def apart(self) -> bool:
        return bool(self.at_brokers and self.behind_proxies)


def find_members_apart(group: GroupSnapshot) -> Iterator[Finding]:
    """Yield a finding for the group's last round that shows it (rocketmq.md §14).

    A proxy with a broker around it (LOCAL) has that broker's list, so no member is apart there. Who
    speaks gRPC divides nothing, and a BROADCASTING member reads everything anyway.
    """
    rounds = [] if is_broadcasting(group) else list(_rounds(group))
    shown = [round_ for round_ in rounds if round_.apart]
    if not shown:
        return
    last = shown[-1]
    again = next((round_.at_ms for round_ in rounds if round_.at_ms > last.at_ms), None)
    over = None
    if again is not None:
        over = Recovery(again, "a later round of dumps lists each of them on both sides")
    for side in (last.at_brokers, last.behind_proxies):
        went = [went_after(group, client_id, last.at_ms) for client_id in side]
        gone = [ms for ms in went if ms is not None]
        if over is None and len(gone) == len(went):
            over = Recovery(max(gone), f"{listed(side, 3)} went")
    yield Finding(
        f"{plural(len(last.at_brokers), 'member')} at brokers ({listed(last.at_brokers, 3)}) and "
        f"{len(last.behind_proxies)} behind proxies ({listed(last.behind_proxies, 3)}) do not see "
        f"each other (dumps of {utc(last.at_ms)}): each side divides all queues among its own, so "
        "messages are consumed twice.",
        {"at_brokers": listed(last.at_brokers), "behind_proxies": listed(last.behind_proxies)},
        first_ms=shown[0].at_ms,
        last_ms=over.at_ms if over else None,
        ended_by=over.shown_by if over else "",
    )


def _rounds(group: GroupSnapshot) -> Iterator[_Sides]:
    """Yield every round of dumps in which brokers and proxies were asked."""
    answers = [(answer, False) for answer in listings.broker_answers(group)]
    answers += [(answer, True) for answer in listings.proxy_answers(group)]
    grpc = {row["client_id"] for row in group.tables["memberships"] if is_proxied(row)}
    for together in listings.each_asked_once(
        dumps.fresh(group, answers, _answered_ms), lambda row: row[0]["asked_broker"], _answered_ms
    ):
        sides = [
            [answer for answer, of_proxy in together if of_proxy == proxied]
            for proxied in (False, True)
        ]
        brokers, proxies = (_listed(side) - grpc for side in sides)
        if all(sides):
            yield _Sides(
                _answered_ms(together[0]),
                tuple(sorted(brokers - proxies)),
                tuple(sorted(proxies - brokers)),
            )


def _answered_ms(row: tuple[Answer, bool]) -> int:
    return dumps.seen_ms(row[0])


def _listed(rows: Iterable[Answer]) -> set[str]:
    return {row["client_id"] for row in rows if row["client_id"] is not None}


MEMBERS_APART = Rule(
    "MEMBERS_APART",
    ERROR,
    "Some members connect to brokers, others to proxies in CLUSTER mode. Each side divides all "
    "queues among its own members, so messages are consumed twice.",
    "observed_members, GROUP_AT_BROKER, GROUP_AT_PROXY, CONNECTION, memberships",
    "Connect all members the same way, or give the members behind proxies their own group.",
    find_members_apart,
    files=("consumerConnection",),
    reads=(MEMBERS,),
    state=True,
)


# PROXY_GROUP_UNSEEN and RUNNING_NOT_LISTED: a client reads that no broker lists as a member.


def find_unseen_members(group: GroupSnapshot) -> Iterator[Finding]:
    """Yield a finding for the group (rocketmq.md §14)."""
    reading = outsiders.unseen_reading(group)
    if reading is None:
        return
    topics = sorted({queue.topic for queue in reading.queues})
    denied = reading.denied_by
    offline = f"; {listed(denied, 3)} answered that no member is online" if denied else ""
    pops = (
        f"; it pops: {listed(reading.retry_topics, 3)} has offsets"
        if (reading.retry_topics)
        else ""
    )
    yield Finding(
        f"Offsets of {plural(len(reading.queues), 'queue')} of {listed(topics, 5)} advanced from "
        f"{utc(reading.first_ms)} to {utc(reading.last_ms)}, and no log or dump names a member of "
        f"{group.consumer_group}{offline}{pops}. Its members are most likely behind proxies.",
        {
            "topics": listed(topics),
            "not_online_at": listed(denied) or "unknown",
            "pop_retry_topics": listed(reading.retry_topics) or "none",
        },
        severity=WARNING if reading.is_sure else INFO,
        topic=topics[0] if len(topics) == 1 else None,
        first_ms=reading.first_ms,
        last_ms=reading.last_ms,
    )


def find_unlisted(group: GroupSnapshot) -> Iterator[Finding]:
    """Yield at most one finding for clients that run without being members."""
    unlisted = outsiders.unlisted_readers(group)
    if unlisted is None or dumps.is_system_group(group.consumer_group):
        return
    if not unlisted.clients and not unlisted.refused and is_configured_nowhere(group):
        return  # GROUP_NOT_CONFIGURED
    behind = sum(backlog(group).values())
    waits = unlisted.goes_on and not group.members and behind > 0
    left = f"; {messages(behind)} not read" if waits else ""
    ids = sorted(unlisted.clients)
    signs = [*unlisted.clients.values(), *unlisted.refused.values(), *unlisted.logs.values()]
    since_ms = min(first for first, _ in signs)
    near = servers_near(group, since_ms)
    fails = f"; requests fail: {listed(unlisted.reasons, 2)}" if unlisted.reasons else ""
    logged = f"; within 30 s of that: {near}" if near else ""
    yield Finding(
        f"{_who(group, unlisted)}{logged}{_refusals(unlisted)}{fails}: its heartbeats do not "
        f"arrive{left}.",
        {
            "clients": listed(ids) or "unknown",
            "refused_by": listed(sorted(unlisted.refused)),
            "logs": listed(sorted(unlisted.logs)),
            "reasons": listed(unlisted.reasons),
            "servers": near,
        },
        remedy=_asks_old_address(unlisted, near),
        severity=ERROR if waits else WARNING,
        client_id=ids[0] if len(ids) == 1 else None,
        first_ms=since_ms,
        last_ms=None if unlisted.goes_on else unlisted.last_ms,
        unknown=None if unlisted.clients else unlogged_group(group),
        ended_by="" if unlisted.goes_on else "no file shows activity after that",
    )


def _asks_old_address(unlisted: Unlisted, near: str) -> str | None:
    """Return the remedy for failed requests to an address that a broker no longer uses."""
    left = [words.partition(" → ")[0] for words in near.split("with another address (")[1:]]
    if not any(address in reason for address in left for reason in unlisted.reasons):
        return None
    return (
        f"Restart the client: it keeps asking {listed(left, 3)}, which no broker uses any more. "
        "Give brokers addresses that survive a restart (a DNS name, or a Service per broker). Do "
        "not delete the group: it is in use."
    )


def _who(group: GroupSnapshot, unlisted: Unlisted) -> str:
    if not unlisted.clients and not unlisted.logs:
        return f"Clients pull for {group.consumer_group}, of which no broker lists a member"
    names = [
        f"the client whose log is clients/{log} {'goes on' if unlisted.goes_on else 'went on'} "
        f"(its log mentions the group until {utc(last_ms)}) and no broker lists a member since "
        f"{utc(since_ms)}"
        for log, (since_ms, last_ms) in sorted(unlisted.logs.items())
    ]
    names += [
        f"{client_id} {'goes on' if unlisted.goes_on else 'went on'} (commits or log until "
        f"{utc(last_ms)}) and no broker lists it since {utc(lost_ms)}"
        for client_id, (lost_ms, last_ms) in sorted(unlisted.clients.items())
    ]
    return listed(names, 3)


def _refusals(unlisted: Unlisted) -> str:
    if not unlisted.refused:
        return ""
    spans = [
        f"{broker} from {utc(first)} to {utc(last)}"
        for broker, (first, last) in sorted(unlisted.refused.items())
    ]
    return f"; pulls of the group are refused (CODE 24): {listed(spans, 3)}"


UNSEEN_MEMBERS = Rule(
    "PROXY_GROUP_UNSEEN",
    WARNING,
    "Some client reads for the group, and no collected file names a member. Brokers never see "
    "clients of proxies (CODE 206, not online). INFO if offsets moved only once, as in an "
    "administrator's reset.",
    "committed_offsets, QUEUE_PROGRESS, GROUP_AT_BROKER, NOT_ONLINE; no memberships",
    "Collect the proxies too (their logs, and consumerConnection -b <proxy's remoting address>). "
    "Nothing is wrong if an administrator reset the offsets.",
    find_unseen_members,
    by_absence=True,
    reads=(EVENTS_OR_DENIED,),
)
UNLISTED = Rule(
    "RUNNING_NOT_LISTED",
    WARNING,
    "A client of the group runs without being a member: brokers lost it or never listed it, but "
    "it commits or keeps logging, or brokers refuse pulls because no member is registered (CODE "
    "24). ERROR if no member reads and messages wait.",
    "CONSUMER_LOST and epochs (EMPTY); later committed_offsets, NO_MEMBER_LIST, REQUEST_FAILED and "
    "other lines of clients' logs; GROUP_NOT_KNOWN",
    "Fix the reason that the servers give. If they give none, restart the client "
    "(HEARTBEAT_FAILED in its log names a broker that it cannot reach) and check the network to "
    "the brokers. Do not delete the group: it is in use.",
    find_unlisted,
    reads=(EVENTS,),
)
