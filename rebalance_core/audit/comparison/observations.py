"""Ownership as dumps and proxies show it: what one client holds and pops, and who holds one
queue.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from rebalance_core.audit.case import GroupCase, Row, known_topics
from rebalance_core.audit.comparison.prediction import Prediction, holds
from rebalance_core.audit.evidence.dumps import (
    answers_at,
    broker_answers,
    each_asked_once,
    member_rounds,
    number,
    proxy_answers,
    queue_of,
)
from rebalance_core.audit.evidence.subscriptions import assigned_members, is_proxied
from rebalance_core.model.group_settings import PUSH
from rebalance_core.model.queue import MessageQueue, pop_retry_topics
from rebalance_core.model.times import MINUTE_MS
from rebalance_core.protocol.members import tells_queues

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
        listed: no client was asked: this is what a proxy's list of members says of it. All that one
            round of lists says has one source.
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


def observations(case: GroupCase, others: Iterable[ClientObservation] = ()) -> list[Observation]:
    """Every observation of the group, these others included, in order of time."""
    observed: list[Observation] = [
        *_client_observations(case),
        *_queue_observations(case),
        *others,
    ]
    if not case.facts("DUMP"):  # observed_ownership alone, from elsewhere
        observed += _bare_observations(case.rows("observed_ownership"))
    return sorted(observed, key=_order)


def _order(observation: Observation) -> tuple[Any, ...]:
    """By time and dump, then clients before queues, each in the order of what was asked."""
    if isinstance(observation, ClientObservation):
        return observation.at_ms, observation.source, 0, observation.client_id
    return observation.at_ms, observation.source, 1, observation.queue, observation.address


def last_round(observed: list[Observation]) -> list[Observation]:
    """Those of the last round of dumps: back to the dump that shows something the later ones show.

    A dump is taken as a whole: whom it alone shows may have gone since, and is not asked again.
    """
    seen: dict[str | MessageQueue, str] = {}
    begin = len(observed)
    for at_ms, dump in groupby(reversed(observed), key=lambda one: one.at_ms):
        of_dump = list(dump)
        again = any(seen.get(_asked(one), one.source) != one.source for one in of_dump)
        if again or observed[-1].at_ms - at_ms > LONGEST_ROUND_MS:
            break
        seen |= {_asked(one): one.source for one in of_dump}
        begin -= len(of_dump)
    return observed[begin:]


def _asked(observation: Observation) -> str | MessageQueue:
    """The client or queue that was asked for; of lists of members all clients are one."""
    if isinstance(observation, QueueObservation):
        return observation.queue
    return "" if observation.listed else observation.client_id


def address_of(client_id: str) -> str:
    """What ``consumerProgress`` shows of a client id."""
    return client_id.partition("@")[0]


def _client_observations(case: GroupCase) -> Iterable[ClientObservation]:
    held, popped = _tables_of_clients(case, "HELD_QUEUE"), _tables_of_clients(case, "POP_QUEUE")
    silent, assigned = silent_members(case), assigned_members(case)
    for row in case.facts("DUMP"):
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


def _is_unanswered(dump: Row) -> bool:
    """The client could not be asked: mqadmin printed an exception, or nothing."""
    return bool(dump["details"].get("error")) or dump["details"].get("rows") == "0"


def _is_cut(dump: Row) -> bool:
    """The answer ends before the client's queues or among them: it may hold others."""
    return bool(dump["details"].get("queues_told") == "false")


def silent_members(case: GroupCase) -> set[str]:
    """Members whose answers leave out the queues that they hold."""
    consumer_type = case.settings.get("consumer_type") or PUSH
    return {
        row["client_id"]
        for row in case.rows("memberships")
        if not tells_queues(consumer_type, row["version"])
    }


def _tables_of_clients(case: GroupCase, kind: str) -> dict[tuple[str, int], set[MessageQueue]]:
    """The queues of these facts by client and time."""
    queues: dict[tuple[str, int], set[MessageQueue]] = {}
    not_ours = _pop_retries(case)
    for row in case.facts(kind):
        if row["details"].get("dropped") != "true" and row["topic"] not in not_ours:
            queues.setdefault((row["client_id"], row["first_ms"]), set()).add(queue_of(row))
    return queues


def _queue_observations(case: GroupCase) -> Iterable[QueueObservation]:
    """Rows of ``consumerProgress -s``; a name that fills its column and no queue bears was cut.

    A queue of nobody may be that of a member that does not tell its queues or did not answer
    (`unheard`), and one that a member says in that round it holds is its: then the row is no
    observation. One that reads the queues that its application names
    (`assigned_members`) is no owner.
    """
    not_ours, silent = _pop_retries(case), silent_members(case)
    ours = {queue_of(row) for row in case.rows("ownership")}
    assigned = {address_of(client_id) for client_id in assigned_members(case)}
    for rows in progress_dumps(case):
        unsure, elsewhere = silent or unheard(case, rows), _read_otherwise(case, rows)
        told = set[MessageQueue]().union(*_answers_near(case, rows[0]["first_ms"]).values())
        for row in rows:
            details = row["details"]
            if details.get("names_cut") == "true" and queue_of(row) not in ours:
                continue
            address = details.get("client_ip", "")
            if row["topic"] in not_ours or address in assigned:
                continue
            if not address and (unsure or row["topic"] in elsewhere or queue_of(row) in told):
                continue
            yield QueueObservation(queue_of(row), row["first_ms"], address, row["source"])


def progress_dumps(case: GroupCase) -> Iterator[list[Row]]:
    """The rows of each ``consumerProgress -s true``, in order of time."""
    rows = [r for r in case.facts("QUEUE_PROGRESS") if r["details"].get("with_clients") == "true"]
    for _, dump in groupby(rows, key=lambda row: row["first_ms"]):
        yield list(dump)


def unheard(case: GroupCase, progress: list[Row]) -> set[str]:
    """Members whose queues a ``consumerProgress -s`` cannot show.

    mqadmin asks the members in turn, and stops at the first that does not answer: the queues of all
    that it has not asked by then are N/A. Who is named as a holder was asked. A member that brokers
    list and the dump does not name was so only if its own ``consumerStatus`` says that it holds
    nothing.

    Args:
        case: the group.
        progress: the rows of the dump.
    """
    at_ms = progress[0]["first_ms"]
    failed = {
        row["client_id"]
        for row in case.facts("DUMP")
        if row["details"]["command"] == "consumerStatus"
        and _is_unanswered(row)
        and abs(row["first_ms"] - at_ms) <= LONGEST_ROUND_MS
    }
    failed |= {
        row["client_id"]
        for row in proxy_answers(case)
        if row["client_id"] and abs(row["observed_ms"] - at_ms) <= LONGEST_ROUND_MS
    }
    asked = _listed_at(case, at_ms)
    named = Counter(address_of(client_id) for client_id in asked)
    holders = {row["details"].get("client_ip", "") for row in progress}
    answers = _answers_near(case, at_ms)
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


def commit_moves(case: GroupCase, look: Row) -> bool:
    """True if the queue's commit moved about the time of the look, or has since."""
    queue, at_ms = queue_of(look), look["first_ms"]
    committed = number(look, "consumer_offset", 0)
    readings = [
        (row["observed_ms"], row["committed_offset"])
        for row in case.rows("committed_offsets")
        if queue_of(row) == queue
    ]
    readings += [
        (row["first_ms"], number(row, "consumer_offset", 0))
        for row in case.facts("QUEUE_PROGRESS")
        if queue_of(row) == queue
    ]
    return any(
        offset > committed if ms > at_ms else offset < committed and ms >= at_ms - MINUTE_MS
        for ms, offset in readings
    )


def _read_otherwise(case: GroupCase, progress: list[Row]) -> set[str]:
    """Topics of which the dump names no holder at all although somebody reads them.

    Of popped queues there is none to name. What tells of POP, where no file names the topic's mode:
    the pop retry topic, or commits that move.
    """
    held = {row["topic"] for row in progress if row["details"].get("client_ip")}
    shown = {row["topic"] for row in progress}
    found = set()
    for topic in shown - held:
        popped = shown & set(pop_retry_topics(case.consumer_group, topic))
        if popped or any(commit_moves(case, row) for row in progress if row["topic"] == topic):
            found.add(topic)
    return found


def _listed_at(case: GroupCase, at_ms: int) -> set[str]:
    """Members as brokers list them in the round of that time, without those that left meanwhile."""
    answers = answers_at(broker_answers(case), at_ms, LONGEST_ROUND_MS)
    found = {row["client_id"] for rows in answers.values() for row in rows} - {None}
    rows = case.rows("memberships")
    there = {row["client_id"] for row in rows if holds(row, at_ms)}
    return found - ({row["client_id"] for row in rows} - there)


def _answers_near(case: GroupCase, at_ms: int) -> dict[str, frozenset[MessageQueue]]:
    """What clients answered in the run of ``consumerStatus`` nearest to that time, in its round."""
    dumps = [
        row
        for row in case.facts("DUMP")
        if row["details"]["command"] == "consumerStatus"
        and row["client_id"]
        and not (_is_unanswered(row) or _is_cut(row))
        and abs(row["first_ms"] - at_ms) <= LONGEST_ROUND_MS
    ]
    runs = each_asked_once(dumps, "client_id", "first_ms")
    run = min(runs, key=lambda rows: abs(rows[0]["first_ms"] - at_ms), default=[])
    held = _tables_of_clients(case, "HELD_QUEUE")
    return {
        row["client_id"]: frozenset(held.get((row["client_id"], row["first_ms"]), ()))
        for row in run
    }


def _pop_retries(case: GroupCase) -> set[str]:
    """Retry topics of POP; members that ask the broker go on reading them in PULL mode."""
    topics = {topic for row in case.rows("memberships") for topic in known_topics(row)}
    return {name for topic in topics for name in pop_retry_topics(case.consumer_group, topic)}


def _bare_observations(rows: Iterable[Row]) -> Iterable[QueueObservation]:
    for row in rows:
        address = address_of(row["client_id"])
        yield QueueObservation(queue_of(row), row["observed_ms"], address, row["source"])


# gRPC clients as proxies list them: the only dump that shows anything of their reach.
#
# ``consumerStatus`` fails for them, and their queues are in no table of the client. By rule each
# reaches every readable queue, whoever else is there (rocketmq.md §14), so what can be compared
# is who is there: a listed client is taken to pop all that the rules give it, one that no list
# has pops nothing.


def proxied_members(case: GroupCase, prediction: Prediction) -> Iterator[ClientObservation]:
    """An observation of each gRPC client that should be listed or is, for every round of dumps.

    A round counts if a proxy was asked, or if a broker lists gRPC clients (proxies in LOCAL mode).
    It lists whom any of the answers lists. A client that only a list has counts where all members
    are gRPC clients: else it may be any other.
    """
    known = {row["client_id"] for row in case.rows("memberships") if is_proxied(row)}
    answers = proxy_answers(case)
    answers += [row for row in broker_answers(case) if row["client_id"] in known]
    for together in member_rounds(answers) if known else ():
        yield from _of_round(case, prediction, together)


def _of_round(
    case: GroupCase, prediction: Prediction, answers: list[Row]
) -> Iterator[ClientObservation]:
    last = max(answers, key=lambda row: row["observed_ms"])
    source = min(answers, key=lambda row: row["observed_ms"])["source"]
    listed = {row["client_id"]: row for row in reversed(answers) if row["client_id"] is not None}
    there = [row for row in case.rows("memberships") if holds(row, last["observed_ms"])]
    expected = {row["client_id"] for row in there if is_proxied(row)}
    counted = listed.keys() if len(expected) == len({r["client_id"] for r in there}) else expected
    for client_id in sorted(expected | (listed.keys() & counted)):
        seen = listed.get(client_id)
        at_ms = (last if seen is None else seen)["observed_ms"]
        popped = frozenset[MessageQueue]()
        if seen is not None:
            own = prediction.popped(client_id, at_ms)
            popped = own if client_id in expected else _everything(case, at_ms)
        yield ClientObservation(client_id, at_ms, frozenset(), source, popped, listed=True)


def _everything(case: GroupCase, at_ms: int) -> frozenset[MessageQueue]:
    """What gRPC clients of the group reach at this time, or reached last before it."""
    rows = [row for row in case.rows("pop_reach") if row["from_ms"] <= at_ms]
    now = [row for row in rows if holds(row, at_ms)]
    last_ms = max((row["to_ms"] for row in rows if row["to_ms"] is not None), default=None)
    return _queues(now or [row for row in rows if row["to_ms"] == last_ms])


def _queues(rows: Iterable[Row]) -> frozenset[MessageQueue]:
    return frozenset(queue_of(row) for row in rows)
