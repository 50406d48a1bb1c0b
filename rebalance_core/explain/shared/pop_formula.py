"""Why POP lets a client take from a queue, with the numbers filled in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rebalance_core.explain.formula import Formula, formula_of
from rebalance_core.explain.shared.share_numbers import ShareNumbers
from rebalance_core.model.queue import MessageQueue
from rebalance_core.strategies import AllocationStrategy


def pop_formula(
    inner: AllocationStrategy,
    queue: MessageQueue,
    queues: Sequence[MessageQueue],
    client_ids: Sequence[str],
    client_id: str,
    share: ShareNumbers,
) -> Formula:
    """The line of ``allocate4Pop`` by which a client pops a queue (rocketmq.md §2.8, §14).

    Args:
        inner: the members' strategy: AVG or AVG_BY_CIRCLE.
        queue: one that the client pops.
        queues: mqAll; need not be known where everything is popped.
        client_ids: cidAll.
        client_id: who pops.
        share: the share numbers that fit.
    """
    name = f"POP, {inner.name}"
    if share.is_everything:
        return _everything(name, client_ids, client_id, share)
    if share.is_one_queue:
        return _one(name, queue, queues, client_ids, client_id, share)
    own = client_ids.index(client_id)
    formula = formula_of(inner, queue, queues, client_ids)
    steps = _steps_to(formula.entry, own, client_ids, share.any_of)
    whose = "its own share" if steps == 0 else f"the share of [{formula.entry}] {formula.owner}"
    after = "" if steps == 0 else f", {steps} after its own place, [{own}]"
    head = (
        f"cidAll {len(client_ids)} <= mqAll {len(queues)}: its own share and those of the next "
        f"{share} of cidAll"
    )
    values = formula.values | {"shareQueueNum": share.exact, "clientIndex": own, "steps": steps}
    lines = (head, f"this queue is in {whose}{after}", *formula.lines)
    return replace(formula, strategy=name, lines=lines, values=values)


def _everything(
    name: str, client_ids: Sequence[str], client_id: str, share: ShareNumbers
) -> Formula:
    least = len(client_ids) - 1
    line = (
        f"share_queue_num <= 0, or >= cidAll - 1 = {least}: every client pops every readable "
        "broker whole"
    )
    values = {"cidAll": len(client_ids), "shareQueueNum": share.exact}
    return Formula(name, (line,), values, client_ids.index(client_id), client_id)


def _one(
    name: str,
    queue: MessageQueue,
    queues: Sequence[MessageQueue],
    client_ids: Sequence[str],
    client_id: str,
    share: ShareNumbers,
) -> Formula:
    index, size, members = client_ids.index(client_id), len(queues), len(client_ids)
    place = queues.index(queue)
    lines = (
        f"cidAll {members} > mqAll {size}: one queue each",
        f"index % mqAll = {index} % {size} = {index % size}; this queue is mqAll[{place}]",
    )
    values = {
        "index": index, "mqAll": size, "cidAll": members, "remainder": index % size,
        "queueIndex": place, "shareQueueNum": share.exact,
    }  # fmt: skip
    return Formula(name, lines, values, index, client_id)


def _steps_to(entry: int | None, own: int, client_ids: Sequence[str], most: int) -> int:
    """How many places on from the client's the id stands whose share has the queue.

    An id that stands in cidAll several times has the share of its first place at each.
    """
    for steps in range(most + 1):
        neighbour = client_ids[(own + steps) % len(client_ids)]
        if client_ids.index(neighbour) == entry:
            return steps
    raise ValueError("the client does not pop the queue")
