"""Finds evidence that trouble in clients' logs or dumps is over."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from rebalance_core.audit.coverage import Coverage
from rebalance_core.audit.dumps import queue_of, whole_answers
from rebalance_core.audit.group_snapshot import PERSISTENT_MS, GroupSnapshot
from rebalance_core.audit.listings import broker_answers
from rebalance_core.audit.logged_causes import SEEN_BEFORE_LOGGED_MS
from rebalance_core.audit.topic_settings import is_deleted
from rebalance_core.model.queue import MessageQueue
from rebalance_core.model.times import utc

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import (
        HeldQueueFact,
        MissingRouteFact,
        NoMemberListFact,
        NotInMemberListFact,
        PopTimedOutFact,
        StuckQueueFact,
    )

Trouble: TypeAlias = "NoMemberListFact | NotInMemberListFact | PopTimedOutFact | MissingRouteFact"
"""A client's log entry, with its folder."""

RECOVERED_MS = PERSISTENT_MS
"""Each pass (every 20 s) logs the trouble again. A client may ask a different broker each time, so
a few passes without it prove nothing; this allows for eight."""


@dataclass(frozen=True, slots=True)
class Recovery:
    """The time at which a client's trouble ended, epoch ms, and the evidence."""

    at_ms: int
    shown_by: str


def recovery(
    group: GroupSnapshot, facts: Iterable[Trouble], *, by_lists: bool = False
) -> Recovery | None:
    """Return when the last client recovered from its logged trouble, or None if nothing shows a
    recovery.

    Args:
        group: its snapshot.
        facts: the facts of clients' logs, with the detail ``log``.
        by_lists: whether the trouble also counts as over if all brokers list the client later.
    """
    newest: dict[tuple[str | None, str], Trouble] = {}
    for fact in sorted(facts, key=lambda fact: fact["last_ms"]):
        newest[fact["client_id"], fact["details"]["log"]] = fact
    over = [
        _went(group, fact) or _goes_on(group, fact) or (_listed(group, fact) if by_lists else None)
        for fact in newest.values()
    ]
    return last_of(over)


def last_of(over: Iterable[Recovery | None]) -> Recovery | None:
    """Return the last of several ends; None if one of them is still to come or there are none."""
    ends = list(over)
    reached = [end for end in ends if end is not None]
    return (
        max(reached, key=lambda end: end.at_ms) if reached and len(reached) == len(ends) else None
    )


class ClientAnswers:
    """Later state of queues from a consumerStatus answer, according to later answers and the
    clients' ends. Cost: one pass over the facts.
    """

    def __init__(self, group: GroupSnapshot) -> None:
        self._case = group
        self._answers = whole_answers(group)
        self._held: dict[tuple[str | None, MessageQueue], set[int]] = {}
        for fact in group.facts["HELD_QUEUE"]:
            key = fact["client_id"], queue_of(fact)
            self._held.setdefault(key, set()).add(fact["first_ms"])
        self._went: dict[tuple[str, int], int | None] = {}

    def let_go(self, shown: HeldQueueFact | StuckQueueFact) -> Recovery | None:
        """Return when the client left or its next complete answer lacked the queue, or None.

        Args:
            shown: a fact of a client's dump that names the queue.
        """
        client_id, at_ms = shown["client_id"], shown["last_ms"]
        went = self.went(client_id, at_ms)
        if went is not None:
            return went
        holding = self._held.get((client_id, queue_of(shown)), set())
        later = [ms for ms in self._answers.get(client_id, ()) if ms > at_ms and ms not in holding]
        if not later:
            return None
        next_ms = min(later)
        what = f"{client_id} no longer has the queue in its dump of {utc(next_ms)}"
        return Recovery(next_ms, what)

    def went(self, client_id: str, at_ms: int) -> Recovery | None:
        """Return when the client left, according to `went_after`, computed once."""
        if (client_id, at_ms) not in self._went:
            self._went[client_id, at_ms] = went_after(self._case, client_id, at_ms)
        went_ms = self._went[client_id, at_ms]
        return None if went_ms is None else Recovery(went_ms, f"{client_id} went")


def goes_on_until(covered: Coverage, log: str, last_ms: int) -> int | None:
    """Return the end of a client's log if it continues for `RECOVERED_MS` without a gap, or
    None.
    """
    spans = covered.clients[log].spans if log in covered.clients else ()
    if not spans or spans[-1].to_ms - max(spans[-1].from_ms, last_ms) <= RECOVERED_MS:
        return None
    return spans[-1].to_ms


def went_after(group: GroupSnapshot, client_id: str | None, last_ms: int) -> int | None:
    """Return when the client, or the last client if it is unknown, left after its last sign.

    None if it is still a member, or if nothing shows its end.
    """
    if client_id is None:
        empty = group.emptied
        memberships: list[int | None] = [] if empty is None else [empty["from_ms"]]
    else:
        rows = group.tables["memberships"]
        memberships = [row["to_ms"] for row in rows if row["client_id"] == client_id]
    ends = [ms for ms in memberships if ms is not None]
    if not ends or len(ends) < len(memberships) or max(ends) < last_ms - SEEN_BEFORE_LOGGED_MS:
        return None
    return max(last_ms, *ends)


def _went(group: GroupSnapshot, fact: Trouble) -> Recovery | None:
    at_ms = went_after(group, fact["client_id"], fact["last_ms"])
    return None if at_ms is None else Recovery(at_ms, f"{fact['client_id'] or 'all members'} left")


def _goes_on(group: GroupSnapshot, fact: Trouble) -> Recovery | None:
    """Return whether the client's log continues long after its last line about the trouble."""
    client_id, last_ms, covered = fact["client_id"], fact["last_ms"], group.run.coverage
    log = fact["details"]["log"]
    until_ms = goes_on_until(covered, log, last_ms)
    if until_ms is not None:
        return Recovery(
            last_ms, f"the log in clients/{log} continues until {utc(until_ms)} without it"
        )
    commits = [
        row["observed_ms"]
        for row in group.tables["committed_offsets"]
        if client_id is not None and row["client_id"] == client_id
    ]
    if covered.known or max(commits, default=0) - last_ms <= RECOVERED_MS:
        return None
    return Recovery(last_ms, f"{client_id} commits until {utc(max(commits))} without it")


def _listed(group: GroupSnapshot, fact: Trouble) -> Recovery | None:
    """Return whether each broker of the group's topics lists the client in a newer answer."""
    brokers = {row["broker_name"] for row in group.tables["topics"] if not is_deleted(row)}
    newest: dict[str, int] = {}
    answers = [row for row in broker_answers(group) if row["observed_ms"] > fact["last_ms"]]
    for row in answers:
        broker = row["asked_broker"]
        newest[broker] = max(row["observed_ms"], newest.get(broker, 0))
    listing = {
        row["asked_broker"]
        for row in answers
        if row["client_id"] == fact["client_id"]
        and row["observed_ms"] == newest[row["asked_broker"]]
    }
    if fact["client_id"] is None or not brokers or not brokers <= listing:
        return None
    at_ms = max(newest[broker] for broker in brokers)
    return Recovery(at_ms, f"all brokers of its topics list {fact['client_id']}")
