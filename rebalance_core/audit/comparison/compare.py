"""Predicted against observed ownership and reach, each observation in its own epoch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import groupby

from rebalance_core.audit.case import GroupCase, Row
from rebalance_core.audit.comparison.difference import Difference, classified
from rebalance_core.audit.comparison.observations import (
    COMMAND_MS,
    LONGEST_ROUND_MS,
    ClientObservation,
    Observation,
    address_of,
    last_round,
    observations,
    silent_members,
)
from rebalance_core.audit.comparison.prediction import Prediction, holds
from rebalance_core.audit.comparison.proxied_members import proxied_members
from rebalance_core.audit.comparison.simulated_range import Unsettled
from rebalance_core.audit.completeness import LOG_SILENT_MS
from rebalance_core.audit.evidence.configurations.topic_configs import is_system_group
from rebalance_core.audit.evidence.dumps import fresh, proxy_answers
from rebalance_core.audit.evidence.formatting import listed
from rebalance_core.audit.evidence.sharing import is_proxied, reach
from rebalance_core.audit.evidence.strategy import strategy_is_known
from rebalance_core.audit.evidence.subscriptions import all_known, assigned_members
from rebalance_core.model.queue import is_retry_topic
from rebalance_core.model.time_text import utc
from rebalance_core.model.verdicts import (
    ASSIGNED,
    DIFFERS,
    EQUAL,
    INCOMPLETE,
    LOG_ENDED,
    NO_DUMP,
    NOT_TOLD,
    OFFLINE,
    SHARED,
    STALE_DUMP,
    STRATEGY,
    SUBSCRIPTION,
    SYSTEM,
    UNKNOWN,
    UNSTABLE,
)


@dataclass(frozen=True, slots=True)
class ComparisonResult:
    """What came of comparing one group.

    Attributes:
        verdict: one of `model.verdicts.VERDICTS`.
        reason: for UNKNOWN one of `REASONS`, for UNSTABLE the event; else empty.
        observations: how many were compared; dumped_ms: the last of them, None without one.
        last_round_ms: when the last round of dumps began.
        differences: outside every window, of all rounds.
        unasked: brokers of the group that no consumerConnection of the last round asked.
        unsettled: what differed in the last round inside a window, the latest after its change.
    """

    verdict: str
    reason: str = ""
    observations: int = 0
    dumped_ms: int | None = None
    last_round_ms: int = 0
    differences: tuple[Difference, ...] = ()
    unasked: tuple[str, ...] = ()
    unsettled: Unsettled | None = None


def compare(case: GroupCase) -> ComparisonResult:
    """Compare all observations of a group with its ledger."""
    if not case.members:
        return ComparisonResult(OFFLINE)
    return replace(_compared(case), unasked=tuple(sorted(_unasked(case))))


def _unpredictable(case: GroupCase) -> str | None:
    """Why nobody can say who should own what; None: the ledger does."""
    if is_system_group(case.consumer_group):
        return SYSTEM
    if {row["client_id"] for row in case.members} <= assigned_members(case):
        return ASSIGNED
    if not strategy_is_known(case):
        return STRATEGY
    if not all_known(case.members):
        return SUBSCRIPTION
    return INCOMPLETE if _depends_on_missing(case) else None


def _compared(case: GroupCase) -> ComparisonResult:
    reason = _unpredictable(case)
    if reason is not None:
        return ComparisonResult(UNKNOWN, reason)
    prediction = Prediction(case)
    observed = [
        one
        for one in observations(case, proxied_members(case, prediction))
        if all_known(row for row in case.rows("memberships") if holds(row, one.at_ms))
    ]
    run = case.run
    if not observed:
        return ComparisonResult(UNKNOWN, NOT_TOLD if silent_members(case) else NO_DUMP)
    newest = observed[-1].at_ms
    if newest < run.end_ms - run.stale_ms:
        return ComparisonResult(UNKNOWN, STALE_DUMP, dumped_ms=newest)
    round_ = last_round(observed)
    start_ms = round_[0].at_ms
    differences: list[Difference] = []
    unsettled: list[Unsettled] = []
    changes = _changes_between(start_ms, newest, case)
    for at_ms, at_once in groupby(observed, key=lambda observation: observation.at_ms):
        change = prediction.changing(at_ms, at_ms + COMMAND_MS)
        if change is None:
            differences += (
                one for observation in at_once for one in _differences(observation, prediction)
            )
        elif at_ms >= start_ms:
            changes.append(change)
            found = {one.queue for each in at_once for one in _differences(each, prediction)}
            if found and change["from_ms"] <= at_ms:
                unsettled.append(Unsettled(change["from_ms"], at_ms, len(found)))
    explained = tuple(classified(differences, observed, case, prediction))
    until_ms = _logged_until(case)
    if until_ms is not None and any(one.at_ms > until_ms for one in explained):
        proven = tuple(one for one in explained if one.at_ms <= until_ms)
        return ComparisonResult(UNKNOWN, LOG_ENDED, len(observed), newest, start_ms, proven)
    still = [one for one in explained if one.at_ms >= start_ms]
    verdict, reason = _verdict(still, changes) or _agreement(round_, prediction)
    latest = max(unsettled, key=lambda one: one.seen_ms - one.change_ms, default=None)
    return ComparisonResult(
        verdict, reason, len(observed), newest, start_ms, explained, unsettled=latest
    )


def _verdict(still: list[Difference], changes: list[Row]) -> tuple[str, str] | None:
    """Verdict and reason by what differs in the last round or changed in it; None: nothing."""
    if any(not one.cause for one in still):
        return DIFFERS, ""
    if still:
        return UNSTABLE, still[0].cause
    if changes:
        return UNSTABLE, _event(min(changes, key=lambda epoch: epoch["from_ms"]))
    return None


def _agreement(round_: list[Observation], prediction: Prediction) -> tuple[str, str]:
    """Verdict and reason where nothing differs; who pops what, only clients and proxies show."""
    if not prediction.shares(round_[-1].at_ms):
        return EQUAL, ""
    if any(isinstance(one, ClientObservation) for one in round_):
        return SHARED, ""
    return UNKNOWN, NO_DUMP


def _event(epoch: Row) -> str:
    return f"{listed(epoch['causes'])} at {utc(epoch['from_ms'])}"


def _changes_between(start_ms: int, end_ms: int, case: GroupCase) -> list[Row]:
    """Epochs that began while the group was dumped."""
    return [epoch for epoch in case.epochs if start_ms < epoch["from_ms"] <= end_ms + COMMAND_MS]


def _unasked(case: GroupCase) -> set[str]:
    """Brokers with readable queues of the group that were not asked for its members.

    None where the last round of dumps asked no broker by name at all; nor where the members are
    behind proxies, whose lists have them, while those of brokers do not.
    """
    lists = fresh(case, proxy_answers(case), "observed_ms")
    if is_system_group(case.consumer_group) or any(row["client_id"] for row in lists):
        return set()
    dumps = [row for row in case.facts("DUMP") if row["details"]["command"] == "consumerConnection"]
    last = max((row["first_ms"] for row in dumps), default=0)
    asked = {row["broker_name"] for row in dumps if last - row["first_ms"] <= LONGEST_ROUND_MS}
    proxied = {row["client_id"] for row in case.members if is_proxied(row)}
    rows = [*case.owned, *(row for row in reach(case) if row["client_id"] not in proxied)]
    brokers = {row["broker_name"] for row in rows if not is_retry_topic(row["topic"])}
    return brokers - asked if asked - {None} else set()


def _depends_on_missing(case: GroupCase) -> bool:
    return bool(_brokers(case) & case.run.missing)


def _logged_until(case: GroupCase) -> int | None:
    """Until when a difference proves something: later its cause may be in no log; None: always."""
    ends = [ms for broker, ms in case.run.log_ends.items() if broker in _brokers(case)]
    return min(ends) + LOG_SILENT_MS if ends else None


def _brokers(case: GroupCase) -> set[str]:
    owned = {row["broker_name"] for row in case.owned}
    return owned | {row["broker_name"] for row in case.rows("topics")}


def _differences(observation: Observation, prediction: Prediction) -> Iterator[Difference]:
    """Where the observation disagrees with the ledger; queues unknown to the ledger included."""
    if isinstance(observation, ClientObservation):
        yield from _of_client(observation, prediction)
        return
    owners = prediction.owners(observation.queue, observation.at_ms)
    if not observation.address and not owners:
        return
    if prediction.is_deleted(observation.queue.topic, observation.at_ms):
        return
    if observation.address in {address_of(owner) for owner in owners}:
        return
    asked = min(owners, default=None)
    yield Difference(
        observation.queue,
        owners,
        observation.address or None,
        asked,
        observation.at_ms,
        observation.source,
    )


def _of_client(one: ClientObservation, prediction: Prediction) -> Iterator[Difference]:
    """Queues that the client holds or pops and should not, or the other way round."""
    wrong = prediction.held(one.client_id, one.at_ms) ^ one.held
    shared = prediction.popped(one.client_id, one.at_ms) ^ one.popped
    for queue in sorted(wrong | shared):
        if prediction.is_deleted(queue.topic, one.at_ms):
            continue
        owners = prediction.owners(queue, one.at_ms) | prediction.takers(queue, one.at_ms)
        holder = one.client_id if queue in one.held | one.popped else None
        note = ""
        if queue in wrong and queue in shared:
            note = "it is pulled, not popped" if queue in one.held else "it is popped, not pulled"
        yield Difference(queue, owners, holder, one.client_id, one.at_ms, one.source, note=note)
