"""gRPC clients as proxies list them: the only dump that shows anything of their reach."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from rebalance_core.audit.dumps import queue_of
from rebalance_core.audit.group_snapshot import (
    GroupSnapshot,
)
from rebalance_core.audit.listings import (
    Answer,
    broker_answers,
    member_rounds,
    proxy_answers,
)
from rebalance_core.audit.prediction import Prediction, holds
from rebalance_core.audit.topic_readers import is_proxied
from rebalance_core.model.queue import MessageQueue

if TYPE_CHECKING:
    from rebalance_core.contracts.row_parts import NamesQueue
from rebalance_core.audit.observations import ClientObservation


def proxied_members(group: GroupSnapshot, prediction: Prediction) -> Iterator[ClientObservation]:
    """Yield an observation of each gRPC client, listed or expected, in every round of dumps.

    A round counts if a proxy was asked, or if a broker lists gRPC clients (proxies in LOCAL mode).
    Its members are those that any of the answers lists. A client that only a list contains counts
    if all members are gRPC clients, because otherwise it may be any other client.
    """
    proxied = {row["client_id"] for row in group.tables["memberships"] if is_proxied(row)}
    answers = proxy_answers(group)
    answers += [row for row in broker_answers(group) if row["client_id"] in proxied]
    for together in member_rounds(answers) if proxied else ():
        yield from _of_round(group, prediction, together)


def _of_round(
    group: GroupSnapshot, prediction: Prediction, answers: Sequence[Answer]
) -> Iterator[ClientObservation]:
    last = max(answers, key=lambda row: row["observed_ms"])
    source = min(answers, key=lambda row: row["observed_ms"])["source"]
    listed = {row["client_id"]: row for row in reversed(answers) if row["client_id"] is not None}
    present = [row for row in group.tables["memberships"] if holds(row, last["observed_ms"])]
    expected = {row["client_id"] for row in present if is_proxied(row)}
    counted = listed.keys() if len(expected) == len({r["client_id"] for r in present}) else expected
    for client_id in sorted(expected | (listed.keys() & counted)):
        seen = listed.get(client_id)
        at_ms = (last if seen is None else seen)["observed_ms"]
        popped = frozenset[MessageQueue]()
        if seen is not None:
            reached = prediction.popped(client_id, at_ms)
            popped = reached if client_id in expected else _everything(group, at_ms)
        yield ClientObservation(client_id, at_ms, frozenset(), source, popped, listed=True)


def _everything(group: GroupSnapshot, at_ms: int) -> frozenset[MessageQueue]:
    """Return the queues that the group's gRPC clients reach at this time, or reached last before
    it.
    """
    rows = [row for row in group.tables["pop_reach"] if row["from_ms"] <= at_ms]
    now = [row for row in rows if holds(row, at_ms)]
    last_ms = max((row["to_ms"] for row in rows if row["to_ms"] is not None), default=None)
    return _queues(now or [row for row in rows if row["to_ms"] == last_ms])


def _queues(rows: Iterable[NamesQueue]) -> frozenset[MessageQueue]:
    return frozenset(queue_of(row) for row in rows)
