"""gRPC clients as proxies list them: the only dump that shows anything of their reach.

``consumerStatus`` fails for them, and their queues are in no table of the client. By rule each
reaches every readable queue, whoever else is there (rocketmq.md §14), so what can be compared is
who is there: a listed client is taken to pop all that the rules give it, one that no list has pops
nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rebalance_core.audit.case import GroupCase, Row
from rebalance_core.audit.comparison.observations import ClientObservation
from rebalance_core.audit.comparison.prediction import Prediction, holds
from rebalance_core.audit.evidence.dumps import broker_answers, member_rounds, proxy_answers
from rebalance_core.audit.evidence.queues import queue_of
from rebalance_core.audit.evidence.sharing import is_proxied
from rebalance_core.model.queue import MessageQueue


def proxied_members(case: GroupCase, prediction: Prediction) -> Iterator[ClientObservation]:
    """An observation of each gRPC client that should be listed or is, for every round of dumps.

    A round counts if a proxy was asked, or if a broker lists gRPC clients (proxies in LOCAL mode).
    It lists whom any of the answers lists. A client that only a list has counts where all members
    are gRPC clients: else it may be any other.
    """
    known = {row["client_id"] for row in case.rows("memberships") if is_proxied(row)}
    answers = proxy_answers(case)
    answers += [row for row in broker_answers(case) if row["client_id"] in known]
    for together in member_rounds(answers) if known else ():
        yield from _of_round(case, prediction, together)


def _of_round(
    case: GroupCase, prediction: Prediction, answers: list[Row]
) -> Iterator[ClientObservation]:
    last = max(answers, key=lambda row: row["observed_ms"])
    source = min(answers, key=lambda row: row["observed_ms"])["source"]
    listed = {row["client_id"]: row for row in reversed(answers) if row["client_id"] is not None}
    there = [row for row in case.rows("memberships") if holds(row, last["observed_ms"])]
    expected = {row["client_id"] for row in there if is_proxied(row)}
    counted = listed.keys() if len(expected) == len({r["client_id"] for r in there}) else expected
    for client_id in sorted(expected | (listed.keys() & counted)):
        seen = listed.get(client_id)
        at_ms = (last if seen is None else seen)["observed_ms"]
        popped = frozenset[MessageQueue]()
        if seen is not None:
            own = prediction.popped(client_id, at_ms)
            popped = own if client_id in expected else _everything(case, at_ms)
        yield ClientObservation(client_id, at_ms, frozenset(), source, popped, listed=True)


def _everything(case: GroupCase, at_ms: int) -> frozenset[MessageQueue]:
    """What gRPC clients of the group reach at this time, or reached last before it."""
    rows = [row for row in case.rows("pop_reach") if row["from_ms"] <= at_ms]
    now = [row for row in rows if holds(row, at_ms)]
    last_ms = max((row["to_ms"] for row in rows if row["to_ms"] is not None), default=None)
    return _queues(now or [row for row in rows if row["to_ms"] == last_ms])


def _queues(rows: Iterable[Row]) -> frozenset[MessageQueue]:
    return frozenset(queue_of(row) for row in rows)
