"""One queue that was observed with other owners than predicted, and the likely reason."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import groupby

from rebalance_core.audit.case import GroupCase, Row
from rebalance_core.audit.comparison.explanations import NEAR_MS, Allocations, Explanations
from rebalance_core.audit.comparison.observations import Observation
from rebalance_core.audit.comparison.prediction import Prediction
from rebalance_core.audit.evidence.formatting import listed
from rebalance_core.audit.evidence.queues import queue_of
from rebalance_core.model.queue import MessageQueue
from rebalance_core.model.times import utc

DUPLICATE_ID, LOCK, FOREIGN, STALE, UNEXPLAINED = (
    "TWIN_CLIENT_ID",
    "LOCK_HELD",
    "FOREIGN_STRATEGY",
    "STALE_VIEW",
    "UNEXPLAINED",
)
CLASSES = {
    DUPLICATE_ID: "two processes with one client id answer in turns, or one was just lost",
    LOCK: "the order lock of the queue is still with another client, or not yet granted",
    FOREIGN: "the live owners are those of another strategy than the group's",
    STALE: "the client still holds what it should have had before a change, or by another "
    "broker's list of members",
    UNEXPLAINED: "none of these",
}


@dataclass(frozen=True, slots=True)
class Difference:
    """A queue at one time: who should hold it, who does.

    Attributes:
        predicted: client ids of the ledger; empty: no owner.
        live: the holder, a client id or the part before its ``@``; None: no owner, or not `asked`.
        asked: the client whose answer this is, or the first that should hold the queue.
        unheld: the dump shows that nobody holds it.
        why: one of `CLASSES`; note: a few words on it.
        view: the causes of the earlier epoch whose ownership the live one is; empty: of none.
        cause: the logged event that explains it for now; empty: none.
    """

    queue: MessageQueue
    predicted: frozenset[str]
    live: str | None
    asked: str | None
    at_ms: int
    source: str
    unheld: bool = False
    why: str = UNEXPLAINED
    note: str = ""
    view: tuple[str, ...] = ()
    cause: str = ""


def classified(
    differences: Iterable[Difference],
    observed: list[Observation],
    case: GroupCase,
    prediction: Prediction,
) -> Iterator[Difference]:
    """The differences with their class and a few words on it.

    Args:
        differences: of the group's observations, in order of time.
        observed: all observations, in order of time.
        case: the group.
        prediction: its ledger.
    """
    refusals: dict[MessageQueue, list[Row]] = {}
    for row in case.facts("LOCK_REFUSED"):
        refusals.setdefault(queue_of(row), []).append(row)
    for explanations, same_time in _by_time(differences, observed, case, prediction):
        for one in same_time:
            reasons = _reasons(one, explanations, prediction, refusals)
            why, note = next(reasons, (UNEXPLAINED, one.note))
            cause = explanations.broker_returned if why == STALE else ""
            epoch = explanations.older_view(one.queue.topic) if why == STALE else None
            view = () if epoch is None else tuple(epoch["causes"])
            yield replace(one, why=why, note=note, cause=cause, view=view)


def _by_time(
    differences: Iterable[Difference],
    observed: list[Observation],
    case: GroupCase,
    prediction: Prediction,
) -> Iterator[tuple[Explanations, Iterator[Difference]]]:
    """The differences of each time; allocations hold for an epoch, as members and queues do."""
    epoch, allocations = None, None
    for at_ms, same_time in groupby(differences, key=lambda one: one.at_ms):
        if allocations is None or case.epoch_at(at_ms) is not epoch:
            epoch, allocations = case.epoch_at(at_ms), Allocations(case, prediction, at_ms)
        yield Explanations(case, observed, allocations, at_ms), same_time


def _reasons(
    one: Difference,
    explanations: Explanations,
    prediction: Prediction,
    refusals: Mapping[MessageQueue, list[Row]],
) -> Iterator[tuple[str, str]]:
    if explanations.duplicate_ids:  # every member's share depends on how often an id is listed
        yield DUPLICATE_ID, f"{min(explanations.duplicate_ids)} is the id of two processes"
    for row in refusals.get(one.queue, ()):
        if row["first_ms"] - NEAR_MS <= one.at_ms <= row["last_ms"] + NEAR_MS:
            yield LOCK, f"{row['details'].get('owner', '')} has its order lock"
    epoch = explanations.older_view(one.queue.topic)
    if epoch is not None:
        span = f"{utc(epoch['from_ms'])} to {utc(epoch['to_ms'])}"
        yield STALE, f"as in the epoch of {listed(epoch['causes'])}, {span}"
    if one.live is not None:
        before = prediction.earlier(one.queue, one.live, one.at_ms)
        if before is not None:
            yield STALE, f"{one.live} should have given it up at {utc(before['to_ms'])}"
    note = explanations.other_list(one.queue, one.live)
    if note:
        yield STALE, note
    name = explanations.other_strategy(one.queue.topic)
    if name:
        yield FOREIGN, f"the live owners of {one.queue.topic} are those of {name}"
