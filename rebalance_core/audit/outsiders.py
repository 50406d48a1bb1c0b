"""Readers that are not members: groups behind proxies, and clients that no broker lists."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, TypeAlias

from rebalance_core.audit.dumps import OF_A_CLIENT, number, queue_of
from rebalance_core.audit.group_snapshot import PERSISTENT_MS, GroupSnapshot
from rebalance_core.audit.listings import is_empty, listed_members
from rebalance_core.ingest.events.unlogged_members import DUMP_MS
from rebalance_core.model.events import CONSUMER_JOIN, CONSUMER_LEAVE, CONSUMER_LOST
from rebalance_core.model.queue import POP_RETRY_MARKS, MessageQueue, is_system_topic, retry_topic
from rebalance_core.model.system_groups import is_system_group
from rebalance_core.model.times import HEARTBEAT_MS, MINUTE_MS
from rebalance_core.model.verdicts import EMPTY

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import (
        BroadcastRefusedFact,
        ConsumerEventsRow,
        FlowControlledFact,
        MessagesExpiredFact,
        NoMemberListFact,
        NothingCommittedFact,
        NotInMemberListFact,
        OffsetIllegalFact,
        PopTimedOutFact,
        PullExpiredFact,
        RequestFailedFact,
        StartRefusedFact,
        TopicMissingFact,
    )

    SignOfLife: TypeAlias = (
        NoMemberListFact
        | NotInMemberListFact
        | RequestFailedFact
        | BroadcastRefusedFact
        | NothingCommittedFact
        | PullExpiredFact
        | PopTimedOutFact
        | FlowControlledFact
        | StartRefusedFact
        | TopicMissingFact
        | OffsetIllegalFact
        | MessagesExpiredFact
    )


RETURN_MS = 3 * HEARTBEAT_MS
"""By then, a client that can reach the brokers that removed it has returned; if it ended, it is
silent."""


STEPS = 2
"""A single step forward may be an administrator's reset."""


@dataclass(frozen=True, slots=True)
class UnseenReading:
    """Offsets that advance without a known member.

    Attributes:
        queues: those whose offsets advanced; first_ms: when seen before that, last_ms: after.
        steps: the number of steps in which those of one queue advanced.
        denied_by: brokers that answered that no member is online.
        retry_topics: the group's pop retry topics that have offsets, which show that it pops.
    """

    queues: tuple[MessageQueue, ...]
    first_ms: int
    last_ms: int
    steps: int
    denied_by: tuple[str, ...]
    retry_topics: tuple[str, ...]

    @property
    def is_sure(self) -> bool:
        """True unless this may be a single change of offsets by an administrator."""
        return self.steps >= STEPS or bool(self.retry_topics)


def unseen_reading(group: GroupSnapshot) -> UnseenReading | None:
    """Return the queues that are read without a known member; None if there are none or members are
    known.
    """
    if group.tables["memberships"] or group.tables["observed_members"]:
        return None
    if is_system_group(group.consumer_group) or any(
        row["client_id"] is not None for row in group.tables["committed_offsets"]
    ):
        return None
    seen = offsets_over_time(group)
    steps = {
        queue: sum(after[1] > before[1] for before, after in pairwise(sorted(moments)))
        for queue, moments in seen.items()
    }
    advanced = sorted(queue for queue, count in steps.items() if count)
    if not advanced:
        return None
    moments = [ms for queue in advanced for ms, _ in seen[queue]]
    pop_retry = tuple(retry_topic(group.consumer_group) + mark for mark in POP_RETRY_MARKS)
    return UnseenReading(
        tuple(advanced),
        min(moments),
        max(moments),
        max(steps.values()),
        _denied_by(group),
        tuple(sorted({queue.topic for queue in seen if queue.topic.startswith(pop_retry)})),
    )


def last_reading(group: GroupSnapshot) -> tuple[int, int] | None:
    """Return the moments between which offsets last advanced without a known member, epoch ms.

    None if they did not advance after the last member left and its commits were stored, or if
    brokers say that no member is online.
    """
    if is_system_group(group.consumer_group) or _denied_by(group):
        return None
    since_ms = max((row["to_ms"] or 0 for row in group.tables["memberships"]), default=0)
    spans = [
        (before[0], after[0])
        for moments in offsets_over_time(group).values()
        for before, after in pairwise(sorted(moments))
        if after[1] > before[1] and before[0] > since_ms + MINUTE_MS
    ]
    return max(spans, key=lambda span: span[1], default=None)


def offsets_over_time(group: GroupSnapshot) -> dict[MessageQueue, set[tuple[int, int]]]:
    """Return (time, committed offset) of each queue, from stores and dumps."""
    seen: dict[MessageQueue, set[tuple[int, int]]] = {}
    for row in group.tables["committed_offsets"]:
        seen.setdefault(queue_of(row), set()).add((row["observed_ms"], row["committed_offset"]))
    for fact in group.facts["QUEUE_PROGRESS"]:
        offset = number(fact["details"].get("consumer_offset"), 0)
        if offset > 0:  # 0 may mean none
            seen.setdefault(queue_of(fact), set()).add((fact["first_ms"], offset))
    return {queue: moments for queue, moments in seen.items() if not is_system_topic(queue.topic)}


def is_denied(group: GroupSnapshot, since_ms: int) -> bool:
    """Return whether a broker, or mqadmin, states after that time that the group has no member.

    An answer is dated to the start of its command.
    """
    empty = (fact for fact in group.facts["GROUP_AT_BROKER"] if is_empty(fact))
    asked = (fact["first_ms"] for fact in (*empty, *group.facts["NOT_ONLINE"]))
    return any(asked_ms + DUMP_MS > since_ms for asked_ms in asked)


def last_listed(group: GroupSnapshot) -> tuple[str, int]:
    """Return the broker or proxy whose newest list has members, and when it was made; 0 if there is
    none.

    A broker does not list members behind a proxy.
    """
    newest: dict[str, tuple[int, bool]] = {}
    for fact in group.facts["DUMP"]:
        details = fact["details"]
        if details["command"] == "consumerConnection" and not details["error"]:
            place = fact["broker_name"] or details.get("proxy") or "consumerConnection"
            newest[place] = fact["first_ms"], number(details["rows"], 0) > 0
    listing = [(at_ms, place) for place, (at_ms, lists) in newest.items() if lists]
    at_ms, place = max(listing, default=(0, ""))
    return place, at_ms


def last_known(group: GroupSnapshot) -> tuple[str, int]:
    """Return the broker that last compared a pull with its members' subscriptions, and when.

    0 if none did.

    Source: PullMessageProcessor#processRequest (4.9.7, 5.3.3): it first looks up the group's
    members.
    """
    facts = group.facts["SUBSCRIPTION_NOT_LATEST"]
    at_ms, broker = max(((f["last_ms"], f["broker_name"]) for f in facts), default=(0, ""))
    return broker, at_ms


def _denied_by(group: GroupSnapshot) -> tuple[str, ...]:
    names = {fact["broker_name"] for fact in group.facts["GROUP_AT_BROKER"] if is_empty(fact)}
    names |= {fact["broker_name"] for fact in group.facts["NOT_ONLINE"]}
    return tuple(sorted(name for name in names if name))


@dataclass(frozen=True, slots=True)
class Unlisted:
    """Readers of a group that no broker lists.

    Attributes:
        clients: by client id, when brokers gave it up, and its last commit or line; epoch ms.
        refused: by broker, the group's first and last pull that it refused because it knows no
            member; epoch ms.
        logs: by folder of a client's log, if no other file names the client: the time since which
            the group has had no member, and the last line about the group; epoch ms.
        reasons: the servers' answers, or network errors, newest first.
        last_ms: the time of the last of these signs.
        goes_on: whether the signs last until the end of the collection.
    """

    clients: Mapping[str, tuple[int, int]]
    refused: Mapping[str, tuple[int, int]]
    logs: Mapping[str, tuple[int, int]]
    reasons: tuple[str, ...]
    last_ms: int
    goes_on: bool


def unlisted_readers(group: GroupSnapshot) -> Unlisted | None:
    """Return clients that continue after brokers lost them, and pulls and lines in clients' logs
    while the group has no member.

    Signs after a broker's log ended do not count: the broker may list the client again.
    """
    until_ms = group.run.coverage.logged_until or group.run.end_ms
    clients = {
        client_id: (lost_ms, last_ms)
        for client_id, lost_ms in _given_up(group).items()
        if (last_ms := _last_sign(group, client_id, until_ms)) > lost_ms + RETURN_MS
    }
    refused: dict[str, tuple[int, int]] = {}
    for fact in group.facts["GROUP_NOT_KNOWN"]:
        broker, first_ms, last_ms = fact["broker_name"], fact["first_ms"], fact["last_ms"]
        since_ms = _nobody_since(group, last_ms)
        if since_ms is not None and last_ms > max(since_ms, group.run.start_ms) + RETURN_MS:
            begin_ms = max(first_ms, since_ms)
            span = refused.get(broker, (begin_ms, last_ms))
            refused[broker] = (min(begin_ms, span[0]), max(last_ms, span[1]))
    logs = _logs_without_members(group, clients, until_ms)
    spans = (*clients.values(), *refused.values(), *logs.values())
    if not spans:
        return None
    last_ms = max(last for _, last in spans)
    goes_on = last_ms >= until_ms - PERSISTENT_MS
    reasons = _reasons(group, min(since for since, _ in spans))
    return Unlisted(clients, refused, logs, reasons, last_ms, goes_on)


def _logs_without_members(
    group: GroupSnapshot, clients: Container[str], until_ms: int
) -> dict[str, tuple[int, int]]:
    by_log: dict[str, tuple[int, int]] = {}
    if not _servers_show_members(group):
        return by_log
    for fact in signs_of_clients(group):
        last_ms = min(fact["last_ms"], until_ms)
        since_ms = _nobody_since(group, last_ms)
        if since_ms is None or fact["client_id"] in clients or fact["first_ms"] > until_ms:
            continue
        if last_ms > max(since_ms, group.run.start_ms) + RETURN_MS:
            log = fact["details"]["log"]
            by_log[log] = since_ms, max(last_ms, by_log.get(log, (0, 0))[1])
    return by_log


def _servers_show_members(group: GroupSnapshot) -> bool:
    """Return whether a broker's log or list was read; without one, no group has a known member."""
    coverage = group.run.coverage
    if not coverage.known or coverage.logged_until:
        return True
    lists = (*group.facts["GROUP_AT_BROKER"], *group.facts["NOT_ONLINE"])
    return bool(lists) or bool(group.tables["observed_members"])


def signs_of_clients(group: GroupSnapshot) -> list[SignOfLife]:
    """Return the facts about the group in the logs of running clients."""
    return [fact for kind in OF_A_CLIENT for fact in group.facts[kind]]


def _reasons(group: GroupSnapshot, since_ms: int) -> tuple[str, ...]:
    """Return the answers to clients' requests and heartbeats since then, newest first."""
    answers = [
        (fact["last_ms"], fact["details"]["address"], fact["details"]["reason"])
        for fact in group.facts["REQUEST_FAILED"]
    ]
    logs = {fact["details"]["log"] for fact in signs_of_clients(group)}
    for log in sorted(logs & group.run.heartbeats_refused.keys()):
        for refused in group.run.heartbeats_refused[log]:
            answers.append((refused.last_ms, refused.address, refused.reason))
    newest = sorted(
        (answer for answer in answers if answer[0] >= since_ms), key=lambda answer: -answer[0]
    )
    return tuple(
        dict.fromkeys(
            reason if not address or address in reason else f"{address}: {reason}"
            for _, address, reason in newest
        )
    )


def _given_up(group: GroupSnapshot) -> dict[str, int]:
    """Return the clients that brokers lost for good, with no later join or listing, and when."""
    last: dict[str, ConsumerEventsRow] = {}
    for row in group.consumer_events:
        if row["event_type"] in (CONSUMER_JOIN, CONSUMER_LEAVE, CONSUMER_LOST):
            last[row["client_id"]] = row
    current = {row["client_id"] for row in group.members}
    lost = {
        client_id: row["event_ms"]
        for client_id, row in last.items()
        if row["event_type"] == CONSUMER_LOST and client_id not in current
    }
    for listed in listed_members(group):
        if listed["observed_ms"] > lost.get(listed["client_id"], listed["observed_ms"]):
            del lost[listed["client_id"]]
    return lost


def _last_sign(group: GroupSnapshot, client_id: str, until_ms: int) -> int:
    """Return when the client last committed for the group or logged it; 0 means never."""
    signs = [
        row["observed_ms"]
        for row in group.tables["committed_offsets"]
        if row["client_id"] == client_id
    ]
    signs += [
        min(fact["last_ms"], until_ms)
        for fact in signs_of_clients(group)
        if fact["client_id"] == client_id and fact["first_ms"] <= until_ms
    ]
    return max((ms for ms in signs if ms <= until_ms), default=0)


def _nobody_since(group: GroupSnapshot, at_ms: int) -> int | None:
    """Return the time since which the group has had no member, or None if it has one at this
    time.
    """
    epoch = group.epoch_at(at_ms)
    if epoch is None:
        return group.run.start_ms
    return int(epoch["from_ms"]) if epoch["status"] == EMPTY else None
