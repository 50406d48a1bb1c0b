"""Answers about a queue's owner at a time, computed only from the ledger."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from rebalance_core.explain import answer, settlement
from rebalance_core.explain.settlement import Settlement, Settlements
from rebalance_core.explain.view import GroupRows, View, covering, queue_of, refuse_unknown
from rebalance_core.model.events import CONSUMER_JOIN, CONSUMER_LEAVE
from rebalance_core.model.group_settings import PROXY_REBALANCE
from rebalance_core.model.languages import JAVA
from rebalance_core.model.queue import MessageQueue, is_retry_topic
from rebalance_core.protocol.receive_waits import GroupWait, group_wait
from rebalance_core.protocol.settling_windows import NOTIFIED_MS
from rebalance_core.strategies.pop import WHOLE_BROKER

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import DiffsRow, EpochsRow

_KEYS = ("cluster", "consumer_group", "epoch", "topic", "share_queue_num", "ordered")
"""Columns of pop_metrics that are not figures."""


class Explainer:
    """Explains the queues of one group; keeps an epoch's results for the next queue.

    Args:
        rows: the group's ledger.
    """

    def __init__(self, rows: GroupRows) -> None:
        self.rows = rows
        self._settlements = Settlements(rows)

    def explain(self, queue: MessageQueue, at_ms: int) -> answer.Explanation:
        """Return the explanation for a queue at an instant; -1 means a whole broker of a shared
        topic.

        Raises:
            UsageError: it is unknown whether the queue has an owner, or which queues exist.
            KeyError: no epoch covers the instant, or the queue has no row in the epoch and does not
                belong to a shared topic.
        """
        row = self.rows.epoch_at(at_ms)
        if row is None:
            raise KeyError(at_ms)
        view, before = (self._settlements.view(row["epoch"] - ago) for ago in (0, 1))
        assert view is not None
        held = queue in view.holders or queue.topic in view.shared
        members = [*view.members, *(() if before is None else before.members)]
        refuse_unknown(members, queue, () if held else view.members)
        if queue.topic in view.shared:
            return self._explain_shared(row, view, before, queue, at_ms)
        if queue not in view.holders:
            raise KeyError(queue)
        settled = self._settlements.of(row["epoch"], queue.topic)
        holders = tuple(
            self._holder(settled, queue, client_id, processes)
            for client_id, processes in sorted(view.holders[queue].items())
        )
        no_owner = None if holders else answer.no_owner_reason(settled, queue)
        earlier = None if before is None else tuple(sorted(before.held_by(queue)))
        shown = {holder.client_id for holder in holders} or _designated(no_owner)
        shown |= set(earlier or ())
        return answer.Explanation(
            cluster=row["cluster"],
            consumer_group=row["consumer_group"],
            queue=queue,
            at_ms=at_ms,
            event=self._event(row),
            before=None if before is None else self._lists(before, queue, shown),
            after=self._lists(view, queue, shown),
            holders_before=earlier,
            holders=holders,
            no_owner=no_owner,
            agrees=settled.agrees(queue) if settled.known else None,
            expected=settled.expected(queue) if settled.known else {},
            notes=_notes(settled),
        )

    def _explain_shared(
        self, row: EpochsRow, view: View, before: View | None, queue: MessageQueue, at_ms: int
    ) -> answer.Explanation:
        settled = self._settlements.of(row["epoch"], queue.topic)
        reached = [
            settled.names(entries, queue) for entries in view.reach.get(queue.topic, {}).values()
        ]
        if not settled.can_read(queue) and not any(reached):
            raise KeyError(queue)
        was_shared = before is not None and queue.topic in before.shared
        sharing = self._sharing(settled, before, queue)
        takers = {taker.client_id for taker in sharing.takers}
        earlier = set(sharing.takers_before or ())
        return answer.Explanation(
            cluster=row["cluster"],
            consumer_group=row["consumer_group"],
            queue=queue,
            at_ms=at_ms,
            event=self._event(row),
            before=None if before is None else self._lists(before, queue, takers | earlier),
            after=self._lists(view, queue, takers | earlier),
            holders_before=None if before is None else () if was_shared else tuple(sorted(earlier)),
            holders=(),
            no_owner=None if takers else answer.unreached_reason(settled, queue),
            agrees=settled.fits,
            expected={},
            notes=_sharing_notes(sharing, settled, queue),
            sharing=sharing,
        )

    def _sharing(
        self, settled: Settlement, before: View | None, queue: MessageQueue
    ) -> answer.Sharers:
        """Return how members share the topic, and the clients that may take from one of its
        queues.
        """
        view = settled.view
        outcomes = {settled.outcome(member) for member in view.members}
        row = view.shared[queue.topic]
        share = row["share_queue_num"] if settlement.POP in outcomes else None
        since = self._since(queue.topic, view.epoch)
        return answer.Sharers(
            since_epoch=since["epoch"],
            since_ms=since["from_ms"],
            pops=settlement.POP in outcomes,
            behind_proxy=bool(outcomes & {settlement.PROXY, settlement.PROXY_FIFO}),
            share_queue_num=share,
            share_queue_nums=None if share is None else str(share),
            strategies=tuple(sorted({member["strategy"] for member in view.members})),
            figures={n: v for n, v in row.items() if n not in _KEYS and isinstance(v, int)},
            receive=_receive_wait(settled, queue),
            takers_before=None if before is None else self._takers_before(before, queue),
            takers=tuple(
                self._taker(settled, queue, client_id)
                for client_id, entries in sorted(view.reach.get(queue.topic, {}).items())
                if settled.names(entries, queue)
            ),
            differs=tuple(sorted(settled.differing)),
            first_pop=answer.first_pop_of(self.rows.pop_starts, queue, view.epoch),
        )

    def _taker(self, settled: Settlement, queue: MessageQueue, client_id: str) -> answer.Taker:
        view = settled.view
        since = [
            row
            for row in covering(self.rows.pop_reach, view.epoch)
            if row["client_id"] == client_id
            and row["topic"] == queue.topic
            and settled.names(frozenset([queue_of(row)]), queue)
        ]
        oldest = min(since, key=lambda row: row["from_epoch"])
        return answer.Taker(
            client_id=client_id,
            processes=sum(member["client_id"] == client_id for member in view.members),
            index=view.client_ids.index(client_id) if client_id in view.client_ids else None,
            entries=tuple(queue_text(entry) for entry in sorted(map(queue_of, since))),
            reason=answer.taker_reason(settled, queue, client_id),
            pulls=answer.pulls(settled, queue, client_id),
            from_epoch=oldest["from_epoch"],
            from_ms=oldest["from_ms"],
        )

    def _takers_before(self, before: View, queue: MessageQueue) -> tuple[str, ...]:
        """Return the clients that reached the queue in an epoch, or held it if it was not
        shared.
        """
        if queue.topic in before.shared:
            settled = self._settlements.of(before.epoch, queue.topic)
            reach = before.reach.get(queue.topic, {})
            return tuple(sorted(c for c, entries in reach.items() if settled.names(entries, queue)))
        whole = queue.queue_id == WHOLE_BROKER
        held = [
            client_id
            for other, holders in before.holders.items()
            if other == (queue._replace(queue_id=other.queue_id) if whole else queue)
            for client_id in holders
        ]
        return tuple(sorted(set(held)))

    def _since(self, topic: str, epoch: int) -> EpochsRow:
        """Return the first epoch, within the rows, of the unbroken run in which the topic is
        shared.
        """
        shared = {row["epoch"] for row in self.rows.pop_metrics if row["topic"] == topic}
        while epoch - 1 in shared:
            epoch -= 1
        return next(row for row in self.rows.epochs if row["epoch"] == epoch)

    def _event(self, row: EpochsRow) -> answer.EpochCause:
        diffs = [diff for diff in self.rows.diffs if diff["epoch"] == row["epoch"]]
        latest = [diff["latest_ms"] for diff in diffs]
        return answer.EpochCause(
            epoch=row["epoch"],
            from_ms=row["from_ms"],
            to_ms=row["to_ms"],
            causes=tuple(row["causes"]),
            status=row["status"],
            transient=row["transient"],
            members=row["members"],
            distinct_members=row["distinct_members"],
            latest_ms=max(latest, default=None),
            untold_ms=self._untold_ms(row, diffs),
        )

    def _untold_ms(self, row: EpochsRow, diffs: list[DiffsRow]) -> int | None:
        """Return the window of an epoch whose members should have been notified by brokers but were
        not.

        Applies only if no earlier window is open and no member was lost, since a loss may be an
        expiry.
        """
        before = [e for e in self.rows.epochs if e["epoch"] == row["epoch"] - 1]
        notified = set(row["causes"]) <= {CONSUMER_JOIN, CONSUMER_LEAVE}
        if not (row["causes"] and notified) or any(e["transient"] for e in before):
            return None
        longest = max(
            (
                diff["latest_ms"] - diff["change_ms"]
                for diff in diffs
                if diff["action"] == "DROP" and not is_retry_topic(diff["topic"])
            ),
            default=0,
        )
        return longest if longest > NOTIFIED_MS else None

    def _lists(self, view: View, queue: MessageQueue, clients: set[str]) -> answer.Lists:
        settled = self._settlements.of(view.epoch, queue.topic)
        readable = settled.queues
        return answer.Lists(
            view.epoch,
            tuple(map(queue_text, readable)),
            tuple(view.client_ids),
            readable.index(queue) if queue in readable else None,
            tuple(i for i, client_id in enumerate(view.client_ids) if client_id in clients),
            settled.known,
        )

    def _holder(
        self, settled: Settlement, queue: MessageQueue, client_id: str, processes: int
    ) -> answer.Holder:
        ids = settled.view.client_ids
        taken = self._acquisition(queue, client_id, settled.view.epoch)
        return answer.Holder(
            client_id,
            processes,
            ids.index(client_id) if client_id in ids else None,
            answer.owner_reason(settled, queue, client_id),
            taken,
            None
            if taken is None
            else answer.start_of(self.rows.pull_starts, queue, client_id, taken.epoch),
        )

    def _acquisition(
        self, queue: MessageQueue, client_id: str, epoch: int
    ) -> answer.Acquisition | None:
        """Return the client's last ADD of the queue up to the epoch."""
        added = [
            diff
            for diff in self.rows.diffs
            if diff["action"] == "ADD"
            and diff["client_id"] == client_id
            and diff["epoch"] <= epoch
            and queue_of(diff) == queue
        ]
        if not added:
            return None
        last = max(added, key=lambda diff: diff["epoch"])
        return answer.Acquisition(
            epoch=last["epoch"],
            change_ms=last["change_ms"],
            earliest_ms=last["earliest_ms"],
            latest_ms=last["latest_ms"],
            kind=last["kind"],
            cause=last["cause"],
            from_client=last["other_client_id"],
        )


def queue_text(queue: MessageQueue) -> str:
    """Return ``T/broker/id``, as ``--queue`` names it."""
    return f"{queue.topic}/{queue.broker_name}/{queue.queue_id}"


def _designated(no_owner: answer.Reason | None) -> set[str]:
    return set() if no_owner is None or no_owner.client_id is None else {no_owner.client_id}


def _notes(settled: Settlement) -> tuple[str, ...]:
    if not settled.known:
        return ("the topic has queues whose holders are unknown, so mqAll is longer",)
    notes = list(_of_languages(settled))
    unreadable = len(settled.view.queues[settled.topic]) - len(settled.queues)
    if unreadable:
        notes.append(
            f"{unreadable} queues of the topic are held although they cannot be read: they are "
            "not in mqAll"
        )
    if not settled.group.settings.ordered and any(
        settled.outcome(member) == settlement.BROKER_MODE for member in settled.view.members
    ):
        notes.append("only rebalance_mode = BROKER, in which brokers allocate, explains the rows")
    return tuple(notes)


def _of_languages(settled: Settlement) -> Iterator[str]:
    """Return notes on members that allocate by the rules of different clients, and those that sort
    unlike Java.
    """
    members = [row for row in settled.view.members if row["rebalance_mode"] != PROXY_REBALANCE]
    languages = {row["language"] or JAVA for row in members}
    if len(languages) > 1:
        yield (
            f"members are clients in {' and '.join(sorted(languages))}: each divides by its own "
            "language's rules"
        )
    java = settled.queues, settled.view.client_ids
    others = {
        str(row["language"])
        for row in members
        if tuple(map(list, settled.lists(row))) != tuple(map(list, java))
    }
    if others:
        yield (
            f"clients in {' and '.join(sorted(others))} sort by bytes: their formula orders mqAll "
            "and cidAll differently from the lists above"
        )


def _receive_wait(settled: Settlement, queue: MessageQueue) -> GroupWait | None:
    """Return the waits for messages on the queue's broker, with one call per client."""
    receivers = [
        member
        for member in settled.view.members
        if settled.outcome(member) in (settlement.PROXY, settlement.PROXY_FIFO)
    ]
    queues = Counter(other.broker_name for other in settled.queues)
    if not receivers or not queues[queue.broker_name]:
        return None
    topics = min(len(member["subscriptions"] or [queue.topic]) for member in receivers)
    languages = {member["client_id"]: member["language"] for member in receivers}
    return group_wait(queues, queue.broker_name, languages, max(1, topics))


def _sharing_notes(
    sharing: answer.Sharers, settled: Settlement, queue: MessageQueue
) -> tuple[str, ...]:
    """Return notes on a shared topic in addition to the rule, most severe first."""
    notes = []
    if not settled.can_read(queue) and queue.queue_id != WHOLE_BROKER:
        notes.append(
            "the queue is not readable, so it is not in mqAll; its clients hold it because of a "
            "list or from before"
        )
    pulling = [taker.client_id for taker in sharing.takers if taker.pulls]
    if pulling:
        notes.append(
            f"{', '.join(pulling)} pulls while others pop: both commit to the same offset, so "
            "messages are consumed twice; set clientRebalance=false on every member, restart "
            "clients up to 5.3.1 that stopped asking, or set the mode to PULL"
        )
    return tuple(notes)
