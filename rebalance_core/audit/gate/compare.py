"""Predicted against live ownership, queue by queue, each look against the epoch of its moment."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import groupby

from rebalance_core.audit.case import GroupCase, Row
from rebalance_core.audit.evidence.popped import popped_topics
from rebalance_core.audit.evidence.wording import clock, listed
from rebalance_core.audit.gate.difference import Difference, classified
from rebalance_core.audit.gate.observations import (
    LOOK_MS,
    ROUND_MS,
    ClientLook,
    Look,
    address_of,
    last_round,
    looks,
)
from rebalance_core.audit.gate.prediction import Prediction
from rebalance_core.model.queue import is_retry_topic

EQUAL, DIFFERS, UNSTABLE, UNKNOWN, OFFLINE = "EQUAL", "DIFFERS", "UNSTABLE", "UNKNOWN", "OFFLINE"
VERDICTS = {
    EQUAL: "every look of the last round of dumps shows the predicted owners",
    DIFFERS: "a look outside every window shows others",
    UNSTABLE: "the group changed while it was dumped, or had not settled; nothing else differs",
    UNKNOWN: "nothing can be compared; the reason says why",
    OFFLINE: "no member at the end; nothing to compare",
}
NO_DUMP, INCOMPLETE, STRATEGY, STALE = "NO_DUMP", "INCOMPLETE", "STRATEGY", "STALE_DUMP"
POP = "POP"
FAILED = "COMPARISON_FAILED"
REASONS = {
    NO_DUMP: "no dump shows who holds the group's queues",
    STALE: "the newest dump of the group's ownership is not of this night",
    INCOMPLETE: "a broker of the group's topics, or its answer, is missing",
    STRATEGY: "the group's strategy or its parameters are not known",
    POP: "members pop a topic of the group: its queues are shared, nobody owns one alone",
    FAILED: "the comparison itself failed; the group's finding RULE_FAILED says how",
}


@dataclass(frozen=True, slots=True)
class GateResult:
    """What came of comparing one group.

    Attributes:
        verdict: one of `VERDICTS`.
        reason: for UNKNOWN one of `REASONS`, for UNSTABLE the event; else empty.
        looks: looks that were compared; dumped_ms: the last of them, None without one.
        last_round_ms: when the last round of dumps began.
        differences: outside every window, of all rounds.
        unasked: brokers of the group that no consumerConnection of the last round asked.
    """

    verdict: str
    reason: str = ""
    looks: int = 0
    dumped_ms: int | None = None
    last_round_ms: int = 0
    differences: tuple[Difference, ...] = ()
    unasked: tuple[str, ...] = ()


def compare(case: GroupCase) -> GateResult:
    """Compare all looks at a group with its ledger."""
    if not case.members:
        return GateResult(OFFLINE)
    return replace(_compared(case), unasked=tuple(sorted(_unasked(case))))


def _compared(case: GroupCase) -> GateResult:
    if popped_topics(case):
        return GateResult(UNKNOWN, POP)
    found = looks(case)
    night = case.night
    if any(row["rule_id"] == "INGEST_STRATEGY_UNKNOWN" for row in case.rows("findings")):
        return GateResult(UNKNOWN, STRATEGY)
    if _depends_on_missing(case):
        return GateResult(UNKNOWN, INCOMPLETE)
    if not found:
        return GateResult(UNKNOWN, NO_DUMP)
    newest = found[-1].at_ms
    if newest < night.end_ms - night.stale_ms:
        return GateResult(UNKNOWN, STALE, dumped_ms=newest)
    prediction = Prediction(case)
    round_ = last_round(found)
    start_ms = round_[0].at_ms
    differences: list[Difference] = []
    changes = _changes_between(start_ms, newest, case)
    for at_ms, at_once in groupby(found, key=lambda look: look.at_ms):
        change = prediction.changing(at_ms, at_ms + LOOK_MS)
        if change is None:
            differences += (one for look in at_once for one in _differences(look, prediction))
        elif at_ms >= start_ms:
            changes.append(change)
    told = tuple(classified(differences, found, case, prediction))
    verdict, reason = EQUAL, ""
    still = [one for one in told if one.at_ms >= start_ms]
    if any(not one.cause for one in still):
        verdict = DIFFERS
    elif still:
        verdict, reason = UNSTABLE, still[0].cause
    elif changes:
        verdict, reason = UNSTABLE, _event(min(changes, key=lambda epoch: epoch["from_ms"]))
    return GateResult(verdict, reason, len(found), newest, start_ms, told)


def _event(epoch: Row) -> str:
    return f"{listed(epoch['causes'])} at {clock(epoch['from_ms'])}"


def _changes_between(start_ms: int, end_ms: int, case: GroupCase) -> list[Row]:
    """Epochs that began while the group was dumped."""
    return [epoch for epoch in case.epochs if start_ms < epoch["from_ms"] <= end_ms + LOOK_MS]


def _unasked(case: GroupCase) -> set[str]:
    """Brokers with readable queues of the group that were not asked for its members.

    None where the last round of dumps asked no broker by name at all.
    """
    dumps = [row for row in case.facts("DUMP") if row["details"]["command"] == "consumerConnection"]
    last = max((row["first_ms"] for row in dumps), default=0)
    asked = {row["broker_name"] for row in dumps if last - row["first_ms"] <= ROUND_MS}
    brokers = {row["broker_name"] for row in case.owned if not is_retry_topic(row["topic"])}
    return brokers - asked if asked - {None} else set()


def _depends_on_missing(case: GroupCase) -> bool:
    brokers = {row["broker_name"] for row in case.owned}
    brokers |= {row["broker_name"] for row in case.rows("topics")}
    return bool(brokers & case.night.missing)


def _differences(look: Look, prediction: Prediction) -> Iterator[Difference]:
    """What the look shows otherwise than the ledger; queues unknown to the ledger included."""
    if isinstance(look, ClientLook):
        expected = prediction.held(look.client_id, look.at_ms)
        for queue in sorted(expected ^ look.held):
            owners = prediction.owners(queue, look.at_ms)
            holder = look.client_id if queue in look.held else None
            yield Difference(queue, owners, holder, look.client_id, look.at_ms, look.source)
        return
    owners = prediction.owners(look.queue, look.at_ms)
    if not look.address and not owners:
        return
    if look.address in {address_of(owner) for owner in owners}:
        return
    asked = min(owners, default=None)
    yield Difference(look.queue, owners, look.address or None, asked, look.at_ms, look.source)
