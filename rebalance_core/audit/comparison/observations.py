"""Ownership as dumps show it: what one client holds and pops, and who holds one queue.

``consumerStatus`` asks a client, which answers with all that it holds and all that it pops;
``consumerProgress -s true`` lists a group's queues with the address of the holder, the text before
the ``@`` of its client id. Of popped queues it shows no holder.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from rebalance_core.audit.case import GroupCase, Row
from rebalance_core.audit.evidence.dumps import (
    SAME_ROUND_MS,
    broker_answers,
    member_rounds,
    proxy_answers,
)
from rebalance_core.audit.evidence.queues import queue_of
from rebalance_core.audit.evidence.subscriptions import assigned_members
from rebalance_core.model.group_settings import PUSH
from rebalance_core.model.queue import MessageQueue, pop_retry_topics
from rebalance_core.protocol.running_info import tells_queues

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
            yield ClientObservation(*asked, queues, row["source"], frozenset(popped.get(asked, ())))


def _is_unanswered(dump: Row) -> bool:
    """The client could not be asked: mqadmin printed an exception, or nothing."""
    return bool(dump["details"].get("error")) or dump["details"].get("rows") == "0"


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

    A queue of nobody may be that of a member that does not tell its queues, or could not be asked:
    mqadmin asks each member for them, and goes on without a word where that fails. One that reads
    the queues that its application names (`assigned_members`) is no owner.
    """
    not_ours, silent, unasked = _pop_retries(case), silent_members(case), _Unasked(case)
    unanswered = [
        row["first_ms"]
        for row in case.facts("DUMP")
        if row["details"]["command"] == "consumerStatus" and _is_unanswered(row)
    ]
    unanswered += [row["observed_ms"] for row in proxy_answers(case) if row["client_id"]]
    ours = {queue_of(row) for row in case.rows("ownership")}
    assigned = {address_of(client_id) for client_id in assigned_members(case)}
    for row in case.facts("QUEUE_PROGRESS"):
        details = row["details"]
        if details.get("names_cut") == "true" and queue_of(row) not in ours:
            continue
        if details.get("with_clients") == "true" and row["topic"] not in not_ours:
            address = details.get("client_ip", "")
            unsure = silent or any(
                abs(row["first_ms"] - at_ms) <= LONGEST_ROUND_MS for at_ms in unanswered
            )
            if address in assigned or (not address and unsure):
                continue
            if not address and unasked.may_hold(queue_of(row), row["first_ms"]):
                continue
            yield QueueObservation(queue_of(row), row["first_ms"], address, row["source"])


class _Unasked:
    """Where ``N/A`` says nothing: a member was not asked, or says itself that it has the queue.

    mqadmin takes the members from the list of one broker, whichever: whom that one does not list it
    does not ask.
    """

    def __init__(self, case: GroupCase) -> None:
        self._held: dict[MessageQueue, list[int]] = {}
        for row in case.facts("HELD_QUEUE"):
            if row["client_id"] and row["details"].get("dropped") != "true":
                self._held.setdefault(queue_of(row), []).append(row["first_ms"])
        self._short = []
        for together in member_rounds(broker_answers(case)):
            lists: dict[str, set[str]] = {}
            for row in together:
                ids = {row["client_id"]} - {None}
                lists.setdefault(row["asked_broker"], set()).update(ids)
            everybody = set[str]().union(*lists.values())
            if any(ids != everybody for ids in lists.values()):
                self._short.append(together[0]["observed_ms"])

    def may_hold(self, queue: MessageQueue, at_ms: int) -> bool:
        """True if a member that was not asked then may hold it."""
        times = (*self._held.get(queue, ()), *self._short)
        return any(abs(ms - at_ms) <= SAME_ROUND_MS for ms in times)


def _pop_retries(case: GroupCase) -> set[str]:
    """Retry topics of POP; members that ask the broker go on reading them in PULL mode."""
    topics = {topic for row in case.rows("memberships") for topic in row["subscriptions"]}
    return {name for topic in topics for name in pop_retry_topics(case.consumer_group, topic)}


def _bare_observations(rows: Iterable[Row]) -> Iterable[QueueObservation]:
    for row in rows:
        address = address_of(row["client_id"])
        yield QueueObservation(queue_of(row), row["observed_ms"], address, row["source"])
