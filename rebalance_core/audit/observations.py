"""Ownership as dumps show it: the queues that each client holds and pops, and the holders of each
queue.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

from rebalance_core.audit.dumps import first_stated, number, queue_of
from rebalance_core.audit.group_snapshot import (
    GroupSnapshot,
    known_topics,
)
from rebalance_core.audit.listings import (
    answers_at,
    broker_answers,
    each_asked_once,
    proxy_answers,
)
from rebalance_core.audit.prediction import holds
from rebalance_core.audit.subscriptions import assigned_members
from rebalance_core.audit.topic_readers import version_of
from rebalance_core.ingest.hashed_addresses import looks_masked, stands_for
from rebalance_core.model.group_settings import PUSH
from rebalance_core.model.queue import MessageQueue, pop_retry_topics
from rebalance_core.model.times import MINUTE_MS
from rebalance_core.protocol.client_reports import tells_queues

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import (
        DumpFact,
        HeldQueueFact,
        ObservedOwnershipRow,
        PopQueueFact,
        QueueProgressFact,
    )


COMMAND_MS = 5_000
"""A command takes seconds, plus 3 s per broker that it cannot reach; its file is dated to its
start.
"""
LONGEST_ROUND_MS = 600_000
"""A round of dumps of one group takes at most this long."""


@dataclass(frozen=True, slots=True)
class ClientObservation:
    """All queues that a client id held and popped when it was queried.

    Dropped queues are left out. The queue id -1 means any queue on the broker.

    Attributes:
        listed: no client was queried; a proxy's member list shows this. All that one
            round of lists shows has one source.
    """

    client_id: str
    at_ms: int
    held: frozenset[MessageQueue]
    source: str
    popped: frozenset[MessageQueue] = frozenset()
    listed: bool = False


@dataclass(frozen=True, slots=True)
class QueueObservation:
    """The holder of a queue: its client id up to the first ``@``; empty: no owner."""

    queue: MessageQueue
    at_ms: int
    address: str
    source: str


Observation = ClientObservation | QueueObservation


def observations(
    group: GroupSnapshot, others: Iterable[ClientObservation] = ()
) -> list[Observation]:
    """Return every observation of the group, including these, in chronological order."""
    observed: list[Observation] = [
        *_client_observations(group),
        *_queue_observations(group),
        *others,
    ]
    if not group.facts["DUMP"]:  # only observed_ownership, from another source
        observed += _bare_observations(group.tables["observed_ownership"])
    return sorted(observed, key=_order)


def _order(observation: Observation) -> tuple[Any, ...]:
    """Return a key that sorts by time and dump, clients before queues."""
    if isinstance(observation, ClientObservation):
        return observation.at_ms, observation.source, 0, observation.client_id
    return observation.at_ms, observation.source, 1, observation.queue, observation.address


def last_round(observed: list[Observation]) -> list[Observation]:
    """Return the last round of dumps, back to the dump that shows something that later dumps show
    again.

    A dump counts as a whole: a member that no other dump shows may have left since and was not
    queried again.
    """
    seen: dict[str | MessageQueue, str] = {}
    begin = len(observed)
    for at_ms, dump in groupby(reversed(observed), key=lambda observation: observation.at_ms):
        of_dump = list(dump)
        again = any(
            seen.get(_asked(observation), observation.source) != observation.source
            for observation in of_dump
        )
        if again or observed[-1].at_ms - at_ms > LONGEST_ROUND_MS:
            break
        seen |= {_asked(observation): observation.source for observation in of_dump}
        begin -= len(of_dump)
    return observed[begin:]


def _asked(observation: Observation) -> str | MessageQueue:
    """Return the client or queue that was asked for; lists of members count as one client."""
    if isinstance(observation, QueueObservation):
        return observation.queue
    return "" if observation.listed else observation.client_id


def address_of(client_id: str) -> str:
    """Return a client id as ``consumerProgress`` shows it."""
    return client_id.partition("@")[0]


def _client_observations(group: GroupSnapshot) -> Iterable[ClientObservation]:
    held, popped = (
        _tables_of_clients(group, group.facts["HELD_QUEUE"]),
        _tables_of_clients(group, group.facts["POP_QUEUE"]),
    )
    silent, assigned = silent_members(group), assigned_members(group)
    for row in group.facts["DUMP"]:
        if row["client_id"] in assigned:
            continue
        if row["details"]["command"] == "consumerStatus" and row["client_id"]:
            asked = row["client_id"], row["first_ms"]
            queues = frozenset(held.get(asked, ()))
            if not queues and (row["client_id"] in silent or _is_unanswered(row)):
                continue
            if _is_cut(row):
                continue
            yield ClientObservation(*asked, queues, row["source"], frozenset(popped.get(asked, ())))


def _is_unanswered(dump: DumpFact) -> bool:
    """Return True if the client could not be queried: mqadmin printed an exception or nothing."""
    return bool(dump["details"].get("error")) or dump["details"].get("rows") == "0"


def _is_cut(dump: DumpFact) -> bool:
    """Return True if the answer ends before or among the client's queues, so it may hold others."""
    return bool(dump["details"].get("queues_told") == "false")


def silent_members(group: GroupSnapshot) -> set[str]:
    """Return the members whose answers leave out the queues that they hold."""
    consumer_type = group.settings.get("consumer_type") or PUSH
    return {
        row["client_id"]
        for row in group.tables["memberships"]
        if not tells_queues(consumer_type, version_of(row))
    }


def _tables_of_clients(
    group: GroupSnapshot, facts: Iterable[HeldQueueFact | PopQueueFact]
) -> dict[tuple[str, int], set[MessageQueue]]:
    """Return the queues of these facts by client and time."""
    queues: dict[tuple[str, int], set[MessageQueue]] = {}
    not_ours = _pop_retries(group)
    for row in facts:
        if row["details"].get("dropped") != "true" and row["topic"] not in not_ours:
            queues.setdefault((row["client_id"], row["first_ms"]), set()).add(queue_of(row))
    return queues


def _queue_observations(group: GroupSnapshot) -> Iterable[QueueObservation]:
    """Yield rows of ``consumerProgress -s``; a full-width name that no queue has was cut off.

    A queue without a holder may belong to a member that does not report its queues or did not
    answer (`omitted`), and a queue that a member reports holding in that round is its own; then the
    row is not an observation. A member that reads queues named by its application
    (`assigned_members`) is not an owner.
    """
    not_ours, silent = _pop_retries(group), silent_members(group)
    ledger_queues = {queue_of(row) for row in group.tables["ownership"]}
    assigned = {address_of(client_id) for client_id in assigned_members(group)}
    for rows in progress_dumps(group):
        unsure, elsewhere = silent or omitted(group, rows), _read_otherwise(group, rows)
        answered = set[MessageQueue]().union(*_answers_near(group, rows[0]["first_ms"]).values())
        for row in rows:
            details = row["details"]
            if details.get("names_cut") == "true" and queue_of(row) not in ledger_queues:
                continue
            address = details.get("client_ip", "")
            if row["topic"] in not_ours or address in assigned:
                continue
            if not address and (unsure or row["topic"] in elsewhere or queue_of(row) in answered):
                continue
            yield QueueObservation(queue_of(row), row["first_ms"], address, row["source"])


def progress_dumps(group: GroupSnapshot) -> Iterator[list[QueueProgressFact]]:
    """Yield the rows of each ``consumerProgress -s true``, in chronological order."""
    rows = [r for r in group.facts["QUEUE_PROGRESS"] if r["details"].get("with_clients") == "true"]
    for _, dump in groupby(rows, key=lambda row: row["first_ms"]):
        yield list(dump)


def omitted(group: GroupSnapshot, progress: list[QueueProgressFact]) -> set[str]:
    """Return the members whose queues ``consumerProgress -s`` cannot show.

    mqadmin queries the members in turn and stops at the first that does not answer; the queues of
    all later members are N/A. A member named as a holder was queried, and so were all members whose
    addresses a tool masked alike, if as many holders have an address of this form. One that brokers
    list but the dump does not name was queried only if its own ``consumerStatus`` shows that it
    holds nothing.

    Args:
        group: its snapshot.
        progress: the rows of the dump.
    """
    at_ms = progress[0]["first_ms"]
    failed = {
        row["client_id"]
        for row in group.facts["DUMP"]
        if row["details"]["command"] == "consumerStatus"
        and row["client_id"] is not None
        and _is_unanswered(row)
        and abs(row["first_ms"] - at_ms) <= LONGEST_ROUND_MS
    }
    failed |= {
        row["client_id"]
        for row in proxy_answers(group)
        if row["client_id"] and abs(row["observed_ms"] - at_ms) <= LONGEST_ROUND_MS
    }
    asked = _listed_at(group, at_ms)
    masked = set(filter(looks_masked, asked))
    named = Counter(address_of(client_id) for client_id in asked)
    holders = {row["details"].get("client_ip", "") for row in progress}
    answers = _answers_near(group, at_ms)
    for client_id in asked - failed:
        address = address_of(client_id)
        answer = answers.get(client_id)
        shown = {address} & holders
        if client_id in masked:
            shown = {holder for holder in holders if stands_for(address, holder)}
        if shown:
            heard = named[address] <= len(shown) or answer is not None
        else:
            heard = answer is not None and not answer
        if not heard:
            failed.add(client_id)
    return failed


def commit_moves(group: GroupSnapshot, look: QueueProgressFact) -> bool:
    """Return True if the queue's commit advanced around or after the observation."""
    queue, at_ms = queue_of(look), look["first_ms"]
    committed = number(look["details"].get("consumer_offset"), 0)
    readings = [
        (row["observed_ms"], row["committed_offset"])
        for row in group.tables["committed_offsets"]
        if queue_of(row) == queue
    ]
    readings += [
        (row["first_ms"], number(row["details"].get("consumer_offset"), 0))
        for row in group.facts["QUEUE_PROGRESS"]
        if queue_of(row) == queue
    ]
    return any(
        offset > committed if ms > at_ms else offset < committed and ms >= at_ms - MINUTE_MS
        for ms, offset in readings
    )


def _read_otherwise(group: GroupSnapshot, progress: list[QueueProgressFact]) -> set[str]:
    """Return the topics that are read although the dump names no holder.

    Popped queues have no holder. If no file states the topic's mode, the pop retry topic or moving
    commits show POP.
    """
    held = {row["topic"] for row in progress if row["details"].get("client_ip")}
    shown = {row["topic"] for row in progress}
    topics = set()
    for topic in shown - held:
        popped = shown & set(pop_retry_topics(group.consumer_group, topic))
        if popped or any(commit_moves(group, row) for row in progress if row["topic"] == topic):
            topics.add(topic)
    return topics


def _listed_at(group: GroupSnapshot, at_ms: int) -> set[str]:
    """Return the members that brokers list in the round at that time, except those that left."""
    answers = answers_at(broker_answers(group), at_ms, LONGEST_ROUND_MS)
    listed = (row["client_id"] for rows in answers.values() for row in rows)
    client_ids = {client_id for client_id in listed if client_id is not None}
    rows = group.tables["memberships"]
    present = {row["client_id"] for row in rows if holds(row, at_ms)}
    if not answers and group.run.coverage.known:  # no complete list
        return present
    return client_ids - ({row["client_id"] for row in rows} - present)


def _answers_near(group: GroupSnapshot, at_ms: int) -> dict[str, frozenset[MessageQueue]]:
    """Return clients' answers to the ``consumerStatus`` run nearest to that time, in its round."""
    dumps = [
        row
        for row in group.facts["DUMP"]
        if row["details"]["command"] == "consumerStatus"
        and row["client_id"]
        and not (_is_unanswered(row) or _is_cut(row))
        and abs(row["first_ms"] - at_ms) <= LONGEST_ROUND_MS
    ]
    runs = each_asked_once(dumps, lambda row: row["client_id"], first_stated)
    run = min(runs, key=lambda rows: abs(rows[0]["first_ms"] - at_ms), default=[])
    held = _tables_of_clients(group, group.facts["HELD_QUEUE"])
    asked = [(row["client_id"], row["first_ms"]) for row in run]
    return {
        client_id: frozenset(held.get((client_id, at_ms), ()))
        for client_id, at_ms in asked
        if client_id
    }


def _pop_retries(group: GroupSnapshot) -> set[str]:
    """Return the POP retry topics, which members that ask the broker also read in PULL mode."""
    topics = {topic for row in group.tables["memberships"] for topic in known_topics(row)}
    return {name for topic in topics for name in pop_retry_topics(group.consumer_group, topic)}


def _bare_observations(rows: Iterable[ObservedOwnershipRow]) -> Iterable[QueueObservation]:
    for row in rows:
        address = address_of(row["client_id"])
        yield QueueObservation(queue_of(row), row["observed_ms"], address, row["source"])
