"""Ownership as dumps and proxies show it: queues without a holder, and queues no command shows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

from rebalance_core.audit.dumps import first_stated, libraries, number, queue_of
from rebalance_core.audit.group_snapshot import (
    Finding,
    GroupSnapshot,
    Rule,
    grouped,
    known_topics,
    listed,
    plural,
    queue_names,
)
from rebalance_core.audit.listings import (
    SAME_ROUND_MS,
    Answer,
    answers_at,
    broker_answers,
    each_asked_once,
    member_rounds,
    proxy_answers,
)
from rebalance_core.audit.offsets import Offsets
from rebalance_core.audit.prediction import Prediction, holds
from rebalance_core.audit.refused_starts import RefusedStarts
from rebalance_core.audit.subjects import CAUSES
from rebalance_core.audit.subscriptions import (
    assigned_members,
    is_broadcasting,
    is_proxied,
    strategy_is_known,
    version_of,
)
from rebalance_core.audit.topic_settings import readable_queues
from rebalance_core.model.group_settings import PUSH
from rebalance_core.model.queue import MessageQueue, is_retry_topic, pop_retry_topics
from rebalance_core.model.times import MINUTE_MS, utc
from rebalance_core.model.verdicts import ERROR, INFO, WARNING
from rebalance_core.protocol.client_reports import tells_queues
from rebalance_core.protocol.order_locks import ORDER_LOCK_MS

if TYPE_CHECKING:
    from rebalance_core.contracts.row_parts import NamesQueue
    from rebalance_core.contracts.rows import (
        DumpFact,
        HeldQueueFact,
        ObservedOwnershipRow,
        PopQueueFact,
        QueueProgressFact,
    )

# Ownership as dumps show it: what one client holds and pops, and who holds one queue.
#
# ``consumerStatus`` asks a client, which answers with all that it holds and all that it pops;
# ``consumerProgress -s true`` lists a group's queues with the address of the holder, the text
# before the ``@`` of its client id. Of popped queues it shows no holder.

COMMAND_MS = 5_000
"""A command takes seconds, 3 s for a broker it cannot reach; its file has the time of its start."""
LONGEST_ROUND_MS = 600_000
"""A round of dumps of one group takes no longer."""


@dataclass(frozen=True, slots=True)
class ClientObservation:
    """All queues that a client id held when it was asked, and all that it popped.

    Dropped ones are left out. The queue id -1 is any queue of the broker.

    Attributes:
        listed: no client was asked: this is what a proxy's list of members shows. All that one
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
    """Who held a queue: the client id up to its first ``@``; empty: no owner."""

    queue: MessageQueue
    at_ms: int
    address: str
    source: str


Observation = ClientObservation | QueueObservation


def observations(
    group: GroupSnapshot, others: Iterable[ClientObservation] = ()
) -> list[Observation]:
    """Return every observation of the group, including these, in order of time."""
    observed: list[Observation] = [
        *_client_observations(group),
        *_queue_observations(group),
        *others,
    ]
    if not group.facts["DUMP"]:  # observed_ownership alone, from elsewhere
        observed += _bare_observations(group.tables["observed_ownership"])
    return sorted(observed, key=_order)


def _order(observation: Observation) -> tuple[Any, ...]:
    """Return a key that sorts by time and dump, clients before queues."""
    if isinstance(observation, ClientObservation):
        return observation.at_ms, observation.source, 0, observation.client_id
    return observation.at_ms, observation.source, 1, observation.queue, observation.address


def last_round(observed: list[Observation]) -> list[Observation]:
    """Return the last round of dumps: back to the dump that shows something later dumps show.

    A dump is taken as a whole: whom it alone shows may have gone since, and is not asked again.
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
    """Return True if the client could not be asked: mqadmin printed an exception or nothing."""
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
    answer (`omitted`), and a queue that a member reports to hold in that round is its own: then the
    row is no observation. A member that reads the queues that its application names
    (`assigned_members`) is no owner.
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
    """Yield the rows of each ``consumerProgress -s true``, in order of time."""
    rows = [r for r in group.facts["QUEUE_PROGRESS"] if r["details"].get("with_clients") == "true"]
    for _, dump in groupby(rows, key=lambda row: row["first_ms"]):
        yield list(dump)


def omitted(group: GroupSnapshot, progress: list[QueueProgressFact]) -> set[str]:
    """Return the members whose queues ``consumerProgress -s`` cannot show.

    mqadmin asks the members in turn, and stops at the first that does not answer: the queues of all
    that it has not asked by then are N/A. Who is named as a holder was asked. A member that brokers
    list and the dump does not name was so only if its own ``consumerStatus`` shows that it holds
    nothing.

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
    named = Counter(address_of(client_id) for client_id in asked)
    holders = {row["details"].get("client_ip", "") for row in progress}
    answers = _answers_near(group, at_ms)
    for client_id in asked - failed:
        address = address_of(client_id)
        answer = answers.get(client_id)
        if address in holders:
            heard = named[address] == 1 or answer is not None
        else:
            heard = answer is not None and not answer
        if not heard:
            failed.add(client_id)
    return failed


def commit_moves(group: GroupSnapshot, look: QueueProgressFact) -> bool:
    """Return True if the queue's commit moved around or after the observation."""
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

    Of popped queues there is none to name. What shows POP, where no file names the topic's mode:
    the pop retry topic, or commits that move.
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
    """Return the members that brokers list in the round of that time, without those that left."""
    answers = answers_at(broker_answers(group), at_ms, LONGEST_ROUND_MS)
    listed = (row["client_id"] for rows in answers.values() for row in rows)
    client_ids = {client_id for client_id in listed if client_id is not None}
    rows = group.tables["memberships"]
    present = {row["client_id"] for row in rows if holds(row, at_ms)}
    if not answers and group.run.coverage.known:  # no list that is whole
        return present
    return client_ids - ({row["client_id"] for row in rows} - present)


def _answers_near(group: GroupSnapshot, at_ms: int) -> dict[str, frozenset[MessageQueue]]:
    """Return clients' answers in the run of ``consumerStatus`` nearest to that time, in its
    round.
    """
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


# gRPC clients as proxies list them: the only dump that shows anything of their reach.
#
# ``consumerStatus`` fails for them, and their queues are in no table of the client. By rule each
# reaches every readable queue, whoever else is there (rocketmq.md §14), so what can be compared
# is who is there: a listed client is taken to pop all that the rules give it, one that no list
# has pops nothing.


def proxied_members(group: GroupSnapshot, prediction: Prediction) -> Iterator[ClientObservation]:
    """Yield an observation of each gRPC client, listed or expected, in every round of dumps.

    A round counts if a proxy was asked, or if a broker lists gRPC clients (proxies in LOCAL mode).
    It lists whom any of the answers lists. A client that only a list has counts where all members
    are gRPC clients: else it may be any other.
    """
    proxied = {row["client_id"] for row in group.tables["memberships"] if is_proxied(row)}
    answers = proxy_answers(group)
    answers += [row for row in broker_answers(group) if row["client_id"] in proxied]
    for together in member_rounds(answers) if proxied else ():
        yield from _of_round(group, prediction, together)


def _of_round(
    group: GroupSnapshot, prediction: Prediction, answers: Sequence[Answer]
) -> Iterator[ClientObservation]:
    last = max(answers, key=lambda row: row["observed_ms"])
    source = min(answers, key=lambda row: row["observed_ms"])["source"]
    listed = {row["client_id"]: row for row in reversed(answers) if row["client_id"] is not None}
    present = [row for row in group.tables["memberships"] if holds(row, last["observed_ms"])]
    expected = {row["client_id"] for row in present if is_proxied(row)}
    counted = listed.keys() if len(expected) == len({r["client_id"] for r in present}) else expected
    for client_id in sorted(expected | (listed.keys() & counted)):
        seen = listed.get(client_id)
        at_ms = (last if seen is None else seen)["observed_ms"]
        popped = frozenset[MessageQueue]()
        if seen is not None:
            reached = prediction.popped(client_id, at_ms)
            popped = reached if client_id in expected else _everything(group, at_ms)
        yield ClientObservation(client_id, at_ms, frozenset(), source, popped, listed=True)


def _everything(group: GroupSnapshot, at_ms: int) -> frozenset[MessageQueue]:
    """Return what gRPC clients of the group reach at this time, or reached last before it."""
    rows = [row for row in group.tables["pop_reach"] if row["from_ms"] <= at_ms]
    now = [row for row in rows if holds(row, at_ms)]
    last_ms = max((row["to_ms"] for row in rows if row["to_ms"] is not None), default=None)
    return _queues(now or [row for row in rows if row["to_ms"] == last_ms])


def _queues(rows: Iterable[NamesQueue]) -> frozenset[MessageQueue]:
    return frozenset(queue_of(row) for row in rows)


# What ``consumerProgress -s`` shows by itself: queues without a holder, and members whose queues
# it cannot show.
#
# A queue without a holder in which messages wait is a fact, whatever strategy the group uses.

NOT_READ = Rule(
    "QUEUES_NOT_READ",
    ERROR,
    "Messages wait in a queue that consumerProgress -s shows without a holder, in two dumps or "
    "while no commit moves. Every listed member answered and no change is under way, so this "
    "holds for any strategy.",
    "QUEUE_PROGRESS (N/A), observed_members, DUMP, HELD_QUEUE, epochs, committed_offsets",
    "Restart the members one by one, and check the group's other findings for the cause.",
    reads=(CAUSES,),
)
QUEUES_NOT_REPORTED = Rule(
    "QUEUES_NOT_TOLD",
    INFO,
    "Listed members did not report their queues to mqadmin. mqadmin stops at the first member "
    "that does not answer, so N/A in consumerProgress -s proves nothing.",
    "observed_members, DUMP, QUEUE_PROGRESS",
    "Nothing for clients that cannot answer (C++ before 1.2.5, ali-ons); otherwise dump again.",
)


@dataclass(frozen=True, slots=True)
class UnownedQueue:
    """A queue without a holder.

    Attributes:
        behind: messages in it that the group has not read.
        since_ms: the first of the looks without a holder; at_ms: the newest.
        source: of the newest.
    """

    queue: MessageQueue
    behind: int
    since_ms: int
    at_ms: int
    source: str


@dataclass(frozen=True, slots=True)
class UnansweredRound:
    """Members of the last round that did not tell their queues, and queues left open by it."""

    members: tuple[str, ...]
    listed: int
    queues: tuple[MessageQueue, ...]
    at_ms: int


def unowned_queues(
    group: GroupSnapshot, prediction: Prediction, observed: list[Observation]
) -> Iterator[UnownedQueue]:
    """Yield the queues without a holder in which messages wait while no change is under way.

    Args:
        group: its snapshot.
        prediction: its ledger; of a strategy that is not known its queues and windows still count.
        observed: all observations, in order of time.
    """
    if is_broadcasting(group):
        return
    since_ms = group.run.end_ms - group.run.stale_ms
    held = _held_by_clients(observed)
    progress = {(queue_of(row), row["first_ms"]): row for row in group.facts["QUEUE_PROGRESS"]}
    offsets = Offsets(group)
    by_queue: dict[MessageQueue, list[QueueObservation]] = {}
    for observation in observed:
        if isinstance(observation, QueueObservation):
            by_queue.setdefault(observation.queue, []).append(observation)
    for queue, seen in sorted(by_queue.items()):
        newest, before = seen[-1], seen[-2] if len(seen) > 1 else None
        row = progress.get((queue, newest.at_ms))
        if newest.address or newest.at_ms < since_ms or queue in held or row is None:
            continue
        behind = _behind(row, offsets)
        if not behind or not _should_be_read(group, prediction, queue, newest.at_ms):
            continue
        again = before is not None and not before.address
        if again or not commit_moves(group, row):
            first_ms = before.at_ms if before is not None and again else newest.at_ms
            yield UnownedQueue(queue, behind, first_ms, newest.at_ms, newest.source)


def _held_by_clients(observed: list[Observation]) -> set[MessageQueue]:
    """Return the queues that a client of the last round reports to hold or pop."""
    clients = [client for client in last_round(observed) if isinstance(client, ClientObservation)]
    return {queue for client in clients for queue in client.held | client.popped}


def _behind(row: QueueProgressFact, offsets: Offsets) -> int:
    """Return the messages waiting in the queue by the dump itself; 0 for one below the minimum."""
    low, _ = offsets.ends.get(queue_of(row), (0, 0))
    return number(row["details"].get("broker_offset"), 0) - max(
        number(row["details"].get("consumer_offset"), 0), low
    )


def _should_be_read(
    group: GroupSnapshot, prediction: Prediction, queue: MessageQueue, at_ms: int
) -> bool:
    """Return True if the group can read the queue at this time, and no change under way explains
    it.
    """
    if not group.epochs:
        return True  # no file shows a member's time: the answer alone shows that it has the queue
    configured = any(row["topic"] == queue.topic for row in group.tables["topics"])
    if configured and queue[1:] not in readable_queues(group, queue.topic):
        return False
    if not prediction.holdings(queue, at_ms) or prediction.takers(queue, at_ms):
        return False  # it is in no route, or who pops it is no holder
    if strategy_is_known(group) and not prediction.owners(queue, at_ms):
        return False  # no member should: ORPHAN_QUEUES and the strategies' rules explain it
    # who is to have it may wait for the order lock of the owner before
    wait_ms = ORDER_LOCK_MS if group.settings.get("ordered") else 0
    return prediction.changing(at_ms - wait_ms, at_ms + COMMAND_MS) is None


def unanswered_round(
    group: GroupSnapshot, prediction: Prediction, observed: list[Observation]
) -> UnansweredRound | None:
    """Return who did not report its queues in the last round of dumps; None: all did that
    matters.
    """
    dumps = list(progress_dumps(group))
    if not dumps or not observed:
        return None
    at_ms, round_ms = dumps[-1][0]["first_ms"], last_round(observed)[0].at_ms
    if at_ms < round_ms - SAME_ROUND_MS:
        return None
    members = omitted(group, dumps[-1])
    answered = {
        observation.client_id
        for observation in observed
        if isinstance(observation, ClientObservation) and observation.at_ms >= round_ms
    }
    left = [
        queue
        for queue in (queue_of(row) for row in dumps[-1] if not row["details"].get("client_ip"))
        if (owners := prediction.owners(queue, at_ms)) and not owners <= answered
    ]
    silent = members - answered
    if not left or not silent:
        return None
    present = {row["client_id"] for row in group.tables["memberships"] if holds(row, at_ms)}
    return UnansweredRound(tuple(sorted(silent)), len(present | silent), tuple(sorted(left)), at_ms)


def unread(group: GroupSnapshot, unowned: Iterable[UnownedQueue]) -> Iterator[Finding]:
    """Yield a finding for each topic."""
    offsets = Offsets(group)
    starts = RefusedStarts(group)
    topics = grouped(unowned, lambda queue: queue.queue.topic)
    for topic, unread in sorted(topics.items()):
        names = queue_names(queue.queue[1:] for queue in unread)
        behind, at_ms = sum(queue.behind for queue in unread), max(queue.at_ms for queue in unread)
        alone = unread[0].queue if len(unread) == 1 else None
        why = starts.why(((queue.queue, queue.since_ms) for queue in unread), "; ")
        yield Finding(
            f"{names} of {topic}: no holder (dump of {utc(at_ms)}), "
            f"{behind:,} message{'' if behind == 1 else 's'} behind{why}.",
            {
                "queues": names,
                "behind": str(behind),
                "committed": offsets.committed(queue.queue for queue in unread),
                "source": unread[0].source,
            },
            severity=WARNING if is_retry_topic(topic) else None,
            topic=topic,
            broker_name=alone.broker_name if alone else None,
            queue_id=alone.queue_id if alone else None,
            first_ms=min(queue.since_ms for queue in unread),
        )


def unanswered(group: GroupSnapshot, round_: UnansweredRound) -> Finding:
    """Return the finding on members that did not answer."""
    named = libraries(group)
    kinds = {named[client_id] for client_id in round_.members if client_id in named}
    names = f" ({', '.join(sorted(kinds))})" if kinds else ""
    their = "its" if len(round_.members) == 1 else "their"
    return Finding(
        f"{len(round_.members)} of {plural(round_.listed, 'member')} did not report {their} "
        f"queues{names}; {plural(len(round_.queues), 'queue')} could not be verified.",
        {
            "members": listed(round_.members),
            "queues": listed(f"{q.topic}/{q.broker_name}/{q.queue_id}" for q in round_.queues),
        },
        first_ms=round_.at_ms,
        last_ms=round_.at_ms,
    )
