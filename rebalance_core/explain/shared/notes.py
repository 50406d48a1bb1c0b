"""What a person should know of a shared topic beside the rule."""

from __future__ import annotations

from rebalance_core.explain.shared.answer import Sharing
from rebalance_core.explain.shared.candidates import Worked
from rebalance_core.explain.shared.reason import TOO_OPEN
from rebalance_core.model.queue import MessageQueue


def sharing_notes(sharing: Sharing, worked: Worked, queue: MessageQueue) -> tuple[str, ...]:
    """The notes on a queue, the gravest first."""
    notes = []
    readable = worked.can_read(queue)
    if worked.agrees is None:
        notes.append(f"why its clients may take from it is {TOO_OPEN}")
    if readable is False:
        notes.append(
            "the queue cannot be read: it is not in mqAll, and its clients have it from a list or "
            "from before"
        )
    pulling = [taker.client_id for taker in sharing.takers if taker.pulls]
    if pulling:
        notes.append(
            f"{', '.join(pulling)} pulls while others pop: both commit to one offset, so messages "
            "are consumed twice; set clientRebalance=false on every member, restart one to 5.3.1 "
            "that gave up asking, or set the mode to PULL"
        )
    if worked.agrees is not None and not sharing.mq_all_known:
        text = "the ledger has the number of readable queues and not which they are"
        if readable is None:
            text += f"; that {queue.queue_id} is one of {queue.broker_name} is taken for granted"
        notes.append(text)
    if sharing.pops and not sharing.mode_known:
        notes.append(
            "a ledger has no request modes: what those who ask a broker reach fits POP with a "
            f"share_queue_num of {sharing.share_queue_nums}, and PULL as well"
        )
    elif sharing.pops and sharing.share_queue_num is None:
        notes.append(
            f"a ledger has no request modes: its rows fit a share_queue_num of "
            f"{sharing.share_queue_nums}"
        )
    elif sharing.pops:
        notes.append("a ledger has no request modes: share_queue_num is worked out from its rows")
    return tuple(notes)
