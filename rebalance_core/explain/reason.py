"""Why a client holds a queue, or why nobody does, in one sentence and the formula behind it."""

from __future__ import annotations

from dataclasses import dataclass

from rebalance_core.explain.formula import Formula
from rebalance_core.explain.settlement import (
    BROADCAST,
    BROKER_MODE,
    COMPUTED,
    KEEPING,
    LISTED,
    NO_QUEUE,
    NOT_SUBSCRIBED,
    OTHER,
    SUSPENDED,
    THROWS,
    Settlement,
)
from rebalance_core.explain.shares import strategy_of
from rebalance_core.explain.view import Row, subscribes
from rebalance_core.model.group_settings import BROADCASTING
from rebalance_core.model.queue import MessageQueue
from rebalance_core.strategies.config import Config

EMPTY, DUPLICATE, LEFT_OUT, MIXED = "EMPTY", "DUPLICATE_ID", "LEFT_OUT", "MIXED_STRATEGIES"
UNKNOWN, NO_MASTER = "UNKNOWN", "NO_MASTER"


@dataclass(frozen=True, slots=True)
class Reason:
    """A code, a sentence, and the formula if one decided.

    ``client_id``: whom the sentence is about.
    """

    code: str
    text: str
    formula: Formula | None = None
    client_id: str | None = None


def owner_reason(settled: Settlement, queue: MessageQueue, client_id: str) -> Reason:
    """Why this client holds the queue."""
    processes = [member for member in settled.view.members if member["client_id"] == client_id]
    if not processes:
        return Reason(UNKNOWN, "it is no member: the ledger contradicts itself", None, client_id)
    taking = [member for member in processes if settled.takes(member, queue)]
    if taking:
        code, text, formula = _taken(settled, queue, taking[0])
    else:
        keeping = [m for m in processes if settled.outcome(m) in (*KEEPING, OTHER)]
        member = (keeping or processes)[0]
        code, text, formula = _kept(settled, member)
    if len(processes) > 1:
        count = len(processes)
        text += f"; {count} processes have this id, and each works with its first place in cidAll"
    return Reason(code, text, formula, client_id)


def _taken(
    settled: Settlement, queue: MessageQueue, member: Row
) -> tuple[str, str, Formula | None]:
    outcome = settled.outcome(member)
    if outcome == BROADCAST:
        return outcome, "BROADCASTING: every member reads every queue of its topics", None
    formula = _formula(settled, member, queue)
    assert formula is not None
    if outcome == LISTED:
        return outcome, f"{formula.strategy}: the queue is in the member's own list", formula
    return outcome, f"{formula.strategy} gives it to this client", formula


def _kept(settled: Settlement, member: Row) -> tuple[str, str, Formula | None]:
    """Of a client whose pass does not take the queue."""
    outcome, topic = settled.outcome(member), settled.topic
    texts = {
        SUSPENDED: "the member is suspended: it runs no pass and keeps what it held; whoever "
        "computes the queue for itself reads it too",
        NO_QUEUE: f"FROZEN: {topic} has no readable queue, so every member keeps what it held",
        THROWS: f"FROZEN: {member['strategy']} throws ({settled.thrown(member)}), so the member "
        "keeps what it held",
        BROKER_MODE: f"FROZEN: the brokers allocate and do not know {member['strategy']}, so the "
        "member keeps what it held",
        OTHER: f"{member['strategy']} is none of RocketMQ's strategies: it is not worked out again",
    }
    if outcome in texts:
        return outcome, texts[outcome], None
    return UNKNOWN, "no rule gives it to this client", None


def nobody_reason(settled: Settlement, queue: MessageQueue) -> Reason:
    """Why nobody holds the queue."""
    members = settled.view.members
    if not members:
        return Reason(EMPTY, "the group has no member")
    if queue.broker_name in settled.lockless:
        return Reason(
            NO_MASTER,
            f"{queue.broker_name} has no master that could give the order lock, so nobody takes "
            "the queue anew",
        )
    passing = [member for member in members if settled.outcome(member) in (COMPUTED, LISTED)]
    for member in members:
        if member["message_model"] == BROADCASTING:
            continue  # it stands in the list that others divide by, and takes no share
        reason = _misses(settled, queue, member)
        if reason is not None:
            return reason
    for member in members:
        if settled.outcome(member) == OTHER and subscribes(member, settled.topic):
            return Reason(OTHER, _kept(settled, member)[1])
    frozen = [member for member in members if settled.outcome(member) in KEEPING]
    if frozen and not passing:
        _, text, _ = _kept(settled, frozen[0])
        return Reason(
            settled.outcome(frozen[0]),
            f"{text}; nobody who is still there held this queue",
        )
    if not any(subscribes(member, settled.topic) for member in members):
        return Reason(NOT_SUBSCRIBED, f"no member subscribes {settled.topic}")
    if not passing:
        return Reason(UNKNOWN, "no member allocates the topic")
    return _left_out(settled, queue, passing)


def _misses(settled: Settlement, queue: MessageQueue, member: Row) -> Reason | None:
    """Why a member to whom the queue falls by its own strategy does not hold it."""
    formula = _formula(settled, member, queue)
    if formula is None or formula.owner != member["client_id"]:
        return None
    client_id, outcome = member["client_id"], settled.outcome(member)
    if outcome == NOT_SUBSCRIBED:
        text = _unsubscribed_text(settled, client_id)
    elif outcome == SUSPENDED:
        text = f"the queue falls to {client_id}, which is suspended and did not hold it before"
    elif outcome == BROKER_MODE:
        text = _kept(settled, member)[1] + "; nobody who is still there held this queue"
    else:
        return None
    return Reason(outcome, text, formula, client_id)


def _left_out(settled: Settlement, queue: MessageQueue, passing: list[Row]) -> Reason:
    """Why no strategy of the members that run a pass gives the queue to its own client."""
    # One text may stand for two strategies: CONSISTENT_HASH has a charset only before 5.0.
    formulas: dict[str, Formula] = {}
    for member in passing:
        formula = _formula(settled, member, queue)
        if formula is not None:
            formulas.setdefault(formula.strategy, formula)
    texts = sorted({member["strategy"] for member in passing})
    if all(settled.outcome(member) == LISTED for member in passing):
        only = next(iter(formulas.values())) if len(texts) == 1 else None
        return Reason(LEFT_OUT, "CONFIG: no member has the queue in its list", only)
    if len(texts) > 1 or len(formulas) > 1:
        claims = "; ".join(
            f"under {name} it falls to {formula.owner or 'no client'}"
            for name, formula in formulas.items()
        )
        names = texts if len(texts) > len(formulas) else formulas
        return Reason(
            MIXED,
            f"members allocate by different strategies ({', '.join(names)}): {claims}, and none of "
            "them takes it by that strategy",
            next(iter(formulas.values()), None),
        )
    formula = next(iter(formulas.values()))
    ids = settled.view.client_ids
    if formula.entry is not None and formula.owner is None:
        duplicate = ids[formula.entry]
        return Reason(
            DUPLICATE,
            f"the queue falls to place {formula.entry} of cidAll, where {duplicate} stands again: "
            f"all {ids.count(duplicate)} processes of that id take the share of its first place, "
            f"{ids.index(duplicate)}",
            formula,
            duplicate,
        )
    if formula.owner is not None:
        return _not_taken(settled, formula)
    return Reason(LEFT_OUT, f"{formula.strategy} gives it to no client", formula)


def _not_taken(settled: Settlement, formula: Formula) -> Reason:
    """The queue falls to a client that does not allocate as the formula's member does."""
    owner = formula.owner or ""
    owners = [m for m in settled.view.members if m["client_id"] == owner]
    keeping = [member for member in owners if settled.outcome(member) in KEEPING]
    if not keeping:
        if any(settled.outcome(member) == NOT_SUBSCRIBED for member in owners):
            return Reason(NOT_SUBSCRIBED, _unsubscribed_text(settled, owner), formula, owner)
        return Reason(UNKNOWN, "no rule leaves it without an owner", formula)
    code, text, _ = _kept(settled, keeping[0])
    text = f"the queue falls to {owner}, which did not hold it before. {text}"
    return Reason(code, text, formula, owner)


def _unsubscribed_text(settled: Settlement, client_id: str) -> str:
    return (
        f"the queue falls to {client_id}, which does not subscribe {settled.topic}: membership is "
        "by group, so it counts all the same and its share has no owner"
    )


def _formula(settled: Settlement, member: Row, queue: MessageQueue) -> Formula | None:
    """The formula of a member's strategy for the queue; None where there is none to ask."""
    strategy = strategy_of(member)
    if strategy is None:
        return None
    listed = isinstance(strategy, Config)
    if not listed and not settled.can_read(queue):
        return None
    taker = member["client_id"] if listed or settled.takes(member, queue) else None
    return settled.formula(strategy, queue, taker)
