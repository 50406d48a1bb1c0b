"""A queue that members share: who may take from it, and why."""

from __future__ import annotations

from collections.abc import Iterable

from rebalance_core.explain.shared.answer import Sharing, Taker
from rebalance_core.explain.shared.candidates import Worked
from rebalance_core.explain.shared.reason import pulls, taker_reason
from rebalance_core.explain.shared.settlement import POP, PROXY, PROXY_FIFO
from rebalance_core.explain.view import Entries, GroupRows, Row, View, covers
from rebalance_core.model.queue import MessageQueue
from rebalance_core.strategies.pop import WHOLE_BROKER

_KEYS = ("cluster", "consumer_group", "epoch", "topic")


def can_ask_about(worked: Worked, queue: MessageQueue) -> bool:
    """False: the queue cannot be one that members read or reach."""
    reached = worked.settled.view.reach.get(queue.topic, {}).values()
    if any(queue in entries for entries in reached):
        return True
    if worked.queues_known and queue.queue_id != WHOLE_BROKER:
        return queue in worked.settled.queues
    if queue.broker_name in worked.known.seen:
        return queue.queue_id < worked.known.most(queue.broker_name)
    return not worked.queues_known and queue.queue_id < worked.known.most(queue.broker_name)


def sharing_of(
    rows: GroupRows, worked: Worked, before: View | None, queue: MessageQueue
) -> Sharing:
    """The sharing of a topic in an epoch, and the clients that may take from a queue of it."""
    settled = worked.settled
    view = settled.view
    outcomes = {settled.outcome(member) for member in view.members}
    shares = worked.shares if POP in outcomes else ()
    exact = shares[0].exact if len(shares) == 1 and worked.mode_known and worked.one_list else None
    since = _since(rows, queue.topic, view.epoch)
    takers = [
        _taker(rows, worked, queue, client_id)
        for client_id, entries in sorted(view.reach.get(queue.topic, {}).items())
        if _naming(entries, queue)
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
        and _naming(frozenset([_entry(row)]), queue)
    ]
    oldest = min(since, key=lambda row: int(row["from_epoch"]))
    return Taker(
        client_id,
        sum(member["client_id"] == client_id for member in view.members),
        view.client_ids.index(client_id) if client_id in view.client_ids else None,
        tuple(_text(entry) for entry in sorted(map(_entry, since))),
        taker_reason(worked, queue, client_id),
        pulls(worked.settled, queue, client_id),
        oldest["from_epoch"],
        oldest["from_ms"],
    )


def _naming(entries: Entries, queue: MessageQueue) -> bool:
    """True if the entries name the queue, its broker, or (of -1) any queue of the broker."""
    if queue.queue_id == WHOLE_BROKER:
        return any(entry.broker_name == queue.broker_name for entry in entries)
    return covers(entries, queue)


def _before(before: View, queue: MessageQueue) -> tuple[str, ...]:
    """Who reached the queue in an epoch, or held it where it was not shared."""
    reached: Iterable[str] = (
        client_id
        for client_id, entries in before.reach.get(queue.topic, {}).items()
        if _naming(entries, queue)
    )
    same = [q for q in before.queues.get(queue.topic, ()) if _naming(frozenset([q]), queue)]
    held = (client_id for q in same for client_id in before.holders[q])
    return tuple(sorted({*reached, *held}))


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
