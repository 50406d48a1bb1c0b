"""One queue that live ownership shows otherwise than the ledger, and the likely why."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import groupby

from rebalance_core.audit.case import GroupCase, Row
from rebalance_core.audit.evidence.queues import queue_of
from rebalance_core.audit.evidence.wording import clock
from rebalance_core.audit.gate.moment import NEAR_MS, Divisions, Moment
from rebalance_core.audit.gate.observations import Look
from rebalance_core.audit.gate.prediction import Prediction
from rebalance_core.model.queue import MessageQueue

TWIN, LOCK, FOREIGN, STALE, UNEXPLAINED = (
    "TWIN_CLIENT_ID",
    "LOCK_HELD",
    "FOREIGN_STRATEGY",
    "STALE_VIEW",
    "UNEXPLAINED",
)
CLASSES = {
    TWIN: "two processes with one client id answer in turns, or one was just lost",
    LOCK: "the order lock of the queue is still with another client, or not yet granted",
    FOREIGN: "the live owners are those of another strategy than the group's",
    STALE: "the client still holds what it should have had before a change, or by another "
    "broker's list of members",
    UNEXPLAINED: "none of these",
}


@dataclass(frozen=True, slots=True)
class Difference:
    """A queue at one moment: who should hold it, who does.

    Attributes:
        predicted: client ids of the ledger; none: nobody.
        live: the holder, a client id or the part before its ``@``; None: nobody, or not he.
        asked: the client whose answer this is, or the first that should hold the queue.
        why: one of `CLASSES`; told: a few words on it.
        cause: the logged event that explains it for now; empty: none.
    """

    queue: MessageQueue
    predicted: frozenset[str]
    live: str | None
    asked: str | None
    at_ms: int
    source: str
    why: str = UNEXPLAINED
    told: str = ""
    cause: str = ""


def classified(
    differences: Iterable[Difference], found: list[Look], case: GroupCase, prediction: Prediction
) -> Iterator[Difference]:
    """The differences with their class and a few words on it.

    Args:
        differences: of the group's looks, in order of time.
        found: all looks, in order of time.
        case: the group.
        prediction: its ledger.
    """
    refusals: dict[MessageQueue, list[Row]] = {}
    for row in case.facts("LOCK_REFUSED"):
        refusals.setdefault(queue_of(row), []).append(row)
    for moment, ones in _by_moment(differences, found, case, prediction):
        for one in ones:
            reasons = _reasons(one, moment, prediction, refusals)
            why, told = next(reasons, (UNEXPLAINED, ""))
            cause = moment.broker_returned if why == STALE else ""
            yield replace(one, why=why, told=told, cause=cause)


def _by_moment(
    differences: Iterable[Difference], found: list[Look], case: GroupCase, prediction: Prediction
) -> Iterator[tuple[Moment, Iterator[Difference]]]:
    """The differences of each moment; divisions hold for an epoch, as members and queues do."""
    epoch, divisions = None, None
    for at_ms, ones in groupby(differences, key=lambda one: one.at_ms):
        if divisions is None or case.epoch_at(at_ms) is not epoch:
            epoch, divisions = case.epoch_at(at_ms), Divisions(case, prediction, at_ms)
        yield Moment(case, found, divisions, at_ms), ones


def _reasons(
    one: Difference,
    moment: Moment,
    prediction: Prediction,
    refusals: Mapping[MessageQueue, list[Row]],
) -> Iterator[tuple[str, str]]:
    if moment.twins:  # every member's share depends on how often an id is listed
        yield TWIN, f"{min(moment.twins)} is the id of two processes"
    for row in refusals.get(one.queue, ()):
        if row["first_ms"] - NEAR_MS <= one.at_ms <= row["last_ms"] + NEAR_MS:
            yield LOCK, f"{row['details'].get('owner', '')} has its order lock"
    if one.live is not None:
        before = prediction.earlier(one.queue, one.live, one.at_ms)
        if before is not None:
            yield STALE, f"{one.live} should have given it up at {clock(before['to_ms'])}"
    told = moment.other_list(one.queue, one.live)
    if told:
        yield STALE, told
    name = moment.other_strategy(one.queue.topic)
    if name:
        yield FOREIGN, f"the live owners of {one.queue.topic} are those of {name}"
