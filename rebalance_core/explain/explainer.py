"""Why a queue is with this client at this time: everything a person asks, from the ledger alone."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from rebalance_core.explain.answer import Acquisition, Event, Explanation, Holder, Lists
from rebalance_core.explain.readable import settle_again
from rebalance_core.explain.reason import Reason, nobody_reason, owner_reason
from rebalance_core.explain.settlement import Settlement
from rebalance_core.explain.shared.candidates import Worked, settle_shared_again
from rebalance_core.explain.shared.notes import sharing_notes
from rebalance_core.explain.shared.reason import unreached_reason
from rebalance_core.explain.shared.sharing import can_ask_about, sharing_of
from rebalance_core.explain.start import start_of
from rebalance_core.explain.view import GroupRows, Row, View, refuse_unknown, view_of
from rebalance_core.model.queue import MessageQueue

VIEWS_KEPT = 4


class Explainer:
    """Explains queues of one group; what it works out for an epoch, it keeps for the next queue.

    Args:
        rows: the group's ledger.
    """

    def __init__(self, rows: GroupRows) -> None:
        self.rows = rows
        self._epochs = {row["epoch"]: row for row in rows.epochs}
        self._view = lru_cache(VIEWS_KEPT)(self._make_view)
        self._settled = lru_cache(VIEWS_KEPT * 4)(self._settle)
        self._shared = lru_cache(VIEWS_KEPT * 4)(self._work_out_shared)

    def epoch_at(self, at_ms: int) -> Row | None:
        """The epoch of that instant; None outside the ledger."""
        for row in self.rows.epochs:
            if row["from_ms"] <= at_ms and (row["to_ms"] is None or at_ms < row["to_ms"]):
                return row
        return None

    def explain(self, queue: MessageQueue, at_ms: int) -> Explanation:
        """The explanation of a queue at an instant; of a shared topic, -1 is a whole broker.

        Raises:
            UsageError: nobody knows whether the queue has an owner, nor so which queues there are.
            KeyError: no epoch of the rows covers the instant, or the queue has no row in it and is
                none of a shared topic's.
        """
        row = self.epoch_at(at_ms)
        if row is None:
            raise KeyError(at_ms)
        view, before = self._view(row["epoch"]), self._view(row["epoch"] - 1)
        assert view is not None
        refuse_unknown([*view.members, *(() if before is None else before.members)])
        if queue.topic in view.shared:
            return self._explain_shared(row, view, before, queue, at_ms)
        if queue not in view.holders:
            raise KeyError(queue)
        settled, unique = self._settled(row["epoch"], queue.topic)
        holders = tuple(
            self._holder(settled, queue, client_id, processes)
            for client_id, processes in sorted(view.holders[queue].items())
        )
        nobody = None if holders else nobody_reason(settled, queue)
        earlier = None if before is None else tuple(sorted(before.held_by(queue)))
        shown = {holder.client_id for holder in holders} or _designated(nobody)
        shown |= set(earlier or ())
        return Explanation(
            cluster=row["cluster"],
            consumer_group=row["consumer_group"],
            queue=queue,
            at_ms=at_ms,
            event=self._event(row),
            before=None if before is None else self._lists(before, queue, shown),
            after=self._lists(view, queue, shown),
            holders_before=earlier,
            holders=holders,
            nobody=nobody,
            agrees=settled.agrees(queue),
            expected=settled.expected(queue),
            notes=_notes(settled, unique),
        )

    def _explain_shared(
        self, row: Row, view: View, before: View | None, queue: MessageQueue, at_ms: int
    ) -> Explanation:
        worked = self._shared(row["epoch"], queue.topic)
        if not can_ask_about(worked, queue):
            raise KeyError(queue)
        was_shared = before is not None and queue.topic in before.shared
        earlier_worked = self._shared(row["epoch"] - 1, queue.topic) if was_shared else before
        sharing = sharing_of(self.rows, worked, earlier_worked, queue)
        takers = {taker.client_id for taker in sharing.takers}
        earlier = set(sharing.takers_before or ())
        return Explanation(
            cluster=row["cluster"],
            consumer_group=row["consumer_group"],
            queue=queue,
            at_ms=at_ms,
            event=self._event(row),
            before=None if before is None else self._lists(before, queue, takers | earlier),
            after=self._lists(view, queue, takers | earlier),
            holders_before=None if before is None else () if was_shared else tuple(sorted(earlier)),
            holders=(),
            nobody=None if takers else unreached_reason(worked, queue),
            agrees=worked.agrees,
            expected={},
            notes=sharing_notes(sharing, worked, queue),
            sharing=sharing,
        )

    def _work_out_shared(self, epoch: int, topic: str) -> Worked:
        view = self._view(epoch)
        assert view is not None
        return settle_shared_again(view, self._view(epoch - 1), topic)

    def _readable(self, view: View, topic: str) -> tuple[Sequence[MessageQueue], bool]:
        """What the rows of an epoch say of mqAll, and whether they leave no other list."""
        if topic in view.shared:
            worked = self._shared(view.epoch, topic)
            return worked.settled.queues if worked.queues_known else (), worked.queues_known
        settled, unique = self._settled(view.epoch, topic)
        return settled.queues, unique

    def _make_view(self, epoch: int) -> View | None:
        row = self._epochs.get(epoch)
        return None if row is None else view_of(self.rows, row)

    def _settle(self, epoch: int, topic: str) -> tuple[Settlement, bool]:
        view = self._view(epoch)
        assert view is not None
        return settle_again(view, self._view(epoch - 1), topic)

    def _event(self, row: Row) -> Event:
        latest = [diff["latest_ms"] for diff in self.rows.diffs if diff["epoch"] == row["epoch"]]
        return Event(
            row["epoch"],
            row["from_ms"],
            row["to_ms"],
            tuple(row["causes"]),
            row["status"],
            row["transient"],
            row["members"],
            row["distinct_members"],
            max(latest, default=None),
        )

    def _lists(self, view: View, queue: MessageQueue, clients: set[str]) -> Lists:
        readable, known = self._readable(view, queue.topic)
        return Lists(
            view.epoch,
            tuple(map(queue_text, readable)),
            tuple(view.client_ids),
            readable.index(queue) if queue in readable else None,
            tuple(i for i, client_id in enumerate(view.client_ids) if client_id in clients),
            known,
        )

    def _holder(
        self, settled: Settlement, queue: MessageQueue, client_id: str, processes: int
    ) -> Holder:
        ids = settled.view.client_ids
        taken = self._acquisition(queue, client_id, settled.view.epoch)
        return Holder(
            client_id,
            processes,
            ids.index(client_id) if client_id in ids else None,
            owner_reason(settled, queue, client_id),
            taken,
            None
            if taken is None
            else start_of(self.rows.pull_starts, queue, client_id, taken.epoch),
        )

    def _acquisition(self, queue: MessageQueue, client_id: str, epoch: int) -> Acquisition | None:
        """The client's last ADD of the queue up to the epoch."""
        added = [
            diff
            for diff in self.rows.diffs
            if diff["action"] == "ADD"
            and diff["client_id"] == client_id
            and diff["epoch"] <= epoch
            and (diff["topic"], diff["broker_name"], diff["queue_id"]) == queue
        ]
        if not added:
            return None
        last = max(added, key=lambda diff: int(diff["epoch"]))
        columns = ("epoch", "change_ms", "earliest_ms", "latest_ms", "kind", "cause")
        values: dict[str, Any] = {column: last[column] for column in columns}
        return Acquisition(**values, from_client=last["other_client_id"])


def queue_text(queue: MessageQueue) -> str:
    """``T/broker/id``, as ``--queue`` names it."""
    return f"{queue.topic}/{queue.broker_name}/{queue.queue_id}"


def _designated(nobody: Reason | None) -> set[str]:
    return set() if nobody is None or nobody.client_id is None else {nobody.client_id}


def _notes(settled: Settlement, unique: bool) -> tuple[str, ...]:
    notes = []
    if not unique:
        notes.append(
            "the ledger does not say which of the held queues could be read; mqAll is one of "
            "several lists that give its rows"
        )
    unreadable = len(settled.view.queues[settled.topic]) - len(settled.queues)
    if unreadable:
        notes.append(
            f"{unreadable} queues of the topic are held though they cannot be read: they are not "
            "in mqAll"
        )
    if settled.broker_mode:
        notes.append("only rebalance_mode = BROKER explains the rows: the brokers allocate")
    return tuple(notes)
