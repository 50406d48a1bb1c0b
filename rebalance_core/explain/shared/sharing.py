"""A queue that members share: who may take from it, and why."""

from __future__ import annotations

from rebalance_core.explain.shared.answer import Sharing, Taker
from rebalance_core.explain.shared.candidates import Worked
from rebalance_core.explain.shared.reason import pulls, taker_reason
from rebalance_core.explain.shared.settlement import POP, PROXY, PROXY_FIFO
from rebalance_core.explain.view import GroupRows, Row, View
from rebalance_core.model.queue import MessageQueue
from rebalance_core.strategies.pop import WHOLE_BROKER

_KEYS = ("cluster", "consumer_group", "epoch", "topic")


def can_ask_about(worked: Worked, queue: MessageQueue) -> bool:
    """False: the queue cannot be one that members read or reach."""
    reached = worked.settled.view.reach.get(queue.topic, {}).values()
    if queue.queue_id != WHOLE_BROKER:
        return worked.can_read(queue) is not False or any(queue in own for own in reached)
    _, most = worked.known.count_range(queue.broker_name)
    return most > 0 or any(worked.names(own, queue) for own in reached)


def sharing_of(
    rows: GroupRows, worked: Worked, before: View | Worked | None, queue: MessageQueue
) -> Sharing:
    """The sharing of a topic in an epoch, and the clients that may take from a queue of it.

    Args:
        rows: the group's ledger.
        worked: the topic, worked out again.
        before: the same in the epoch before, or where members did not share it then, that epoch.
        queue: the queue; with the id -1 any queue of the broker.
    """
    settled = worked.settled
    view = settled.view
    outcomes = {settled.outcome(member) for member in view.members}
    shares = worked.shares if POP in outcomes else ()
    exact = shares[0].exact if len(shares) == 1 and worked.mode_known and worked.one_list else None
    since = _since(rows, queue.topic, view.epoch)
    takers = [
        _taker(rows, worked, queue, client_id)
        for client_id, entries in sorted(view.reach.get(queue.topic, {}).items())
        if worked.names(entries, queue)
    ]
    figures = {n: v for n, v in view.shared[queue.topic].items() if n not in _KEYS}
    return Sharing(
        since_epoch=since["epoch"],
        since_ms=since["from_ms"],
        pops=POP in outcomes,
        behind_proxy=bool(outcomes & {PROXY, PROXY_FIFO}),
        share_queue_num=exact,
        share_queue_nums="; or ".join(map(str, shares)) or None,
        strategies=tuple(sorted({member["strategy"] for member in view.members})),
        figures=figures,
        mq_all_known=worked.queues_known,
        mode_known=worked.mode_known,
        takers_before=None if before is None else _before(before, queue),
        takers=tuple(takers),
        differs=() if worked.agrees is None else tuple(sorted(settled.differing)),
    )


def _taker(rows: GroupRows, worked: Worked, queue: MessageQueue, client_id: str) -> Taker:
    view = worked.settled.view
    since = [
        row
        for row in rows.pop_reach
        if row["client_id"] == client_id
        and row["topic"] == queue.topic
        and row["from_epoch"] <= view.epoch
        and (row["to_epoch"] is None or view.epoch < row["to_epoch"])
        and worked.names(frozenset([_entry(row)]), queue)
    ]
    oldest = min(since, key=lambda row: int(row["from_epoch"]))
    return Taker(
        client_id,
        sum(member["client_id"] == client_id for member in view.members),
        view.client_ids.index(client_id) if client_id in view.client_ids else None,
        tuple(_text(entry) for entry in sorted(map(_entry, since))),
        taker_reason(worked, queue, client_id),
        pulls(worked, queue, client_id),
        oldest["from_epoch"],
        oldest["from_ms"],
    )


def _before(before: View | Worked, queue: MessageQueue) -> tuple[str, ...]:
    """Who reached the queue in an epoch, or held it where it was not shared."""
    if isinstance(before, View):
        whole = queue.queue_id == WHOLE_BROKER
        same = [q for q in before.holders if q == (queue._replace(queue_id=q.queue_id) if whole
                                                   else queue)]  # fmt: skip
        return tuple(sorted({client_id for q in same for client_id in before.holders[q]}))
    reach = before.settled.view.reach.get(queue.topic, {})
    return tuple(sorted(client_id for client_id, own in reach.items() if before.names(own, queue)))


def _since(rows: GroupRows, topic: str, epoch: int) -> Row:
    """The first epoch of the unbroken run in which the topic is shared, as far as rows go."""
    shared = {row["epoch"] for row in rows.pop_metrics if row["topic"] == topic}
    while epoch - 1 in shared:
        epoch -= 1
    return next(row for row in rows.epochs if row["epoch"] == epoch)


def _entry(row: Row) -> MessageQueue:
    return MessageQueue(row["topic"], row["broker_name"], row["queue_id"])


def _text(queue: MessageQueue) -> str:
    return f"{queue.topic}/{queue.broker_name}/{queue.queue_id}"
