"""Why a client may take from a queue of a shared topic, or why no client may."""

from __future__ import annotations

from rebalance_core.explain.formula import formula_of
from rebalance_core.explain.reason import DUPLICATE, LEFT_OUT, UNKNOWN, Reason, owner_reason
from rebalance_core.explain.settlement import KEEPING, NOT_SUBSCRIBED, OTHER
from rebalance_core.explain.shared.candidates import Worked
from rebalance_core.explain.shared.pop_formula import pop_formula
from rebalance_core.explain.shared.settlement import (
    POP,
    PROXY,
    PROXY_FIFO,
    SharedSettlement,
)
from rebalance_core.explain.shares import strategy_of
from rebalance_core.explain.view import Row
from rebalance_core.model.queue import MessageQueue
from rebalance_core.strategies.pop import WHOLE_BROKER

TOO_OPEN = (
    "not known: the ledger has the number of readable queues and not which they are, and none of "
    "the lists that were tried gives its rows; queues that nobody reaches may be anywhere"
)
PULLED_TOO = "it pulls what others pop: both commit to one offset, so messages are consumed twice"

_TEXTS = {
    PROXY: "behind a proxy: every client takes from every readable broker, whoever else is there",
    PROXY_FIFO: "behind a proxy, in order: every client takes from every queue, whoever else is "
    "there",
}


def taker_reason(worked: Worked, queue: MessageQueue, client_id: str) -> Reason:
    """Why this client, which a row names, may take from the queue.

    Args:
        worked: the topic, worked out again.
        queue: the queue; with the id -1 any queue of the broker.
        client_id: the client.
    """
    settled = worked.settled
    processes = settled.view.processes_of.get(client_id)
    if not processes:
        return Reason(UNKNOWN, "it is no member: the ledger contradicts itself", None, client_id)
    if worked.agrees is None:
        return Reason(UNKNOWN, TOO_OPEN, None, client_id)
    taking = [member for member in processes if _takes(worked, member, queue)]
    if not taking:
        return _kept(settled, queue, processes, client_id)
    member, outcome = taking[0], settled.outcome(taking[0])
    if outcome in _TEXTS:
        return Reason(outcome, _TEXTS[outcome], None, client_id)
    if outcome == POP:
        return _popped(worked, queue, member)
    formula_known = worked.one_list and queue.queue_id != WHOLE_BROKER
    reason = owner_reason(settled.pulling(member), queue, client_id) if formula_known else None
    text = f"{member['strategy']} gives it" if reason is None else reason.text
    formula = None if reason is None else reason.formula
    return Reason(outcome, f"{text}; {PULLED_TOO}", formula, client_id)


def pulls(worked: Worked, queue: MessageQueue, client_id: str) -> bool:
    """True if a process of the client pulls the queue while others pop the topic."""
    return any(
        worked.settled.outcome(member) not in (POP, PROXY, PROXY_FIFO)
        and _takes(worked, member, queue)
        for member in worked.settled.view.processes_of.get(client_id, ())
    )


def unreached_reason(worked: Worked, queue: MessageQueue) -> Reason:
    """Why no client may take from a queue that can be read."""
    settled = worked.settled
    if worked.agrees is None:
        return Reason(UNKNOWN, TOO_OPEN)
    members = [m for m in settled.view.members if settled.outcome(m) == POP]
    if not members or settled.share is None or not worked.one_list or len(worked.shares) > 1:
        return Reason(LEFT_OUT, "no pass of a member takes it")
    strategy = strategy_of(members[0])
    assert strategy is not None
    ids = settled.view.client_ids
    if queue not in settled.queues:
        return Reason(LEFT_OUT, "no pass of a member takes it, if it can be read at all")
    if settled.share.is_one_queue:
        place = settled.queues.index(queue)
        whose = [ids[i] for i in range(place, len(ids), len(settled.queues))]
        text = f"index % mqAll gives it to {', '.join(whose)}, and none of them takes it"
        return Reason(NOT_SUBSCRIBED, text)
    formula = formula_of(strategy, queue, settled.queues, ids)
    assert formula.entry is not None
    who = ids[formula.entry]
    if formula.owner is None:
        text = (
            f"it is in the share of place {formula.entry} of cidAll, where {who} stands again: all "
            f"its processes take the share of its first place, {ids.index(who)}"
        )
        return Reason(DUPLICATE, text, formula, who)
    text = (
        f"it is in the share of {who}, which does not take it, nor does any of the "
        f"{settled.share} before it in cidAll: membership is by group, so members that do not "
        f"subscribe {settled.topic} count all the same"
    )
    return Reason(NOT_SUBSCRIBED, text, formula, who)


def _popped(worked: Worked, queue: MessageQueue, member: Row) -> Reason:
    settled = worked.settled
    share, client_id = settled.share, member["client_id"]
    strategy = strategy_of(member)
    assert share is not None
    assert strategy is not None
    if len(worked.shares) > 1:
        numbers = "; or ".join(map(str, worked.shares))
        text = (
            f"POP: the rows fit a share_queue_num of {numbers}, so how it is divided is not known"
        )
        return Reason(POP, text, None, client_id)
    if share.is_everything:
        text = "POP: everything is popped by every client"
    elif share.is_one_queue:
        text = "POP: there are more members than queues, so it pops one"
    else:
        text = f"POP: it pops its own share under {strategy.name} and those of the next {share}"
    if not share.is_everything and (queue.queue_id == WHOLE_BROKER or not worked.one_list):
        return Reason(POP, text, None, client_id)
    ids = settled.view.client_ids
    formula = pop_formula(strategy, queue, settled.queues, ids, client_id, share)
    return Reason(POP, text, formula, client_id)


def _kept(
    settled: SharedSettlement, queue: MessageQueue, processes: list[Row], client_id: str
) -> Reason:
    """Of a client whose pass does not take the queue."""
    for member in processes:
        outcome = settled.outcome(member)
        if outcome in KEEPING or outcome == OTHER:
            reason = owner_reason(settled.pulling(member), queue, client_id)
            return Reason(outcome, reason.text, None, client_id)
    return Reason(UNKNOWN, "no rule lets this client take from it", None, client_id)


def _takes(worked: Worked, member: Row, queue: MessageQueue) -> bool:
    entries = worked.settled.entries(member)
    return entries is not None and worked.names(entries[1], queue)
