"""Who held a queue in the epoch before, as far as the ledger says."""

from __future__ import annotations

from collections import Counter

from rebalance_core.explain.view import Entries, View, covers
from rebalance_core.model.group_settings import CLIENT_REBALANCE, PROXY_REBALANCE
from rebalance_core.model.queue import MessageQueue
from rebalance_core.model.verdicts import FROZEN


def held_before(before: View | None, queue: MessageQueue) -> tuple[Counter[str], Counter[str]]:
    """Client id -> fewest and most of its processes that held, or pulled, the queue before.

    Of a topic that members shared the ledger says whom the queue was open to, and not which of
    them pulled it: what somebody popped, nobody holds after.

    Args:
        before: the epoch before; None: there is none.
        queue: the queue.
    """
    if before is None:
        return Counter(), Counter()
    if queue.topic not in before.shared:
        held = before.held_by(queue)
        return held, held
    fewest, most = Counter[str](), Counter[str]()
    for client_id, entries in before.reach.get(queue.topic, {}).items():
        if covers(entries, queue):
            own = before.processes_of.get(client_id, ())
            # Who is suspended, or gets no answer, may have it from before: pulled or popped.
            keeping = [m["suspended"] or before.row["status"] == FROZEN for m in own]
            modes = [member["rebalance_mode"] for member in own]
            most[client_id] = sum(
                kept or mode != PROXY_REBALANCE for kept, mode in zip(keeping, modes, strict=True)
            )
            pulls = modes == [CLIENT_REBALANCE] and queue in entries and not any(keeping)
            fewest[client_id] = int(pulls)
    return fewest, most


def had_before(before: View, topic: str, client_id: str) -> tuple[Entries, Entries]:
    """What the rows show a client to have of a topic, and what it may have besides.

    Who is suspended, or gets no answer, keeps what it popped when members no longer share the topic
    as well; rows show that no more. It is some of what it reached while they did.
    """
    shown = before.reach.get(topic, {}).get(client_id, frozenset()) | {
        queue for queue in before.queues.get(topic, ()) if before.holders[queue][client_id]
    }
    own = before.processes_of.get(client_id, ())
    if topic in before.shared or not own:
        return shown, frozenset()
    if before.row["status"] != FROZEN and not any(member["suspended"] for member in own):
        return shown, frozenset()
    return shown, before.reached_ever.get(topic, {}).get(client_id, frozenset())
