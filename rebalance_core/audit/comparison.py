"""Compares a group's predicted and observed ownership: EQUAL, DIFFERS, UNSTABLE, UNKNOWN or
OFFLINE.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING

from rebalance_core.audit import dumps, evidence, listings, outsiders, unknowns
from rebalance_core.audit.comparable import (
    NOT_MODELLED,
    depends_on_missing,
    predictable_times,
    unpredictable,
    why_unobserved,
)
from rebalance_core.audit.comparison_gaps import (
    Modes,
    brokers_unshown,
    gaps,
    mode_is_known,
    request_modes,
)
from rebalance_core.audit.difference import UNEXPLAINED, Difference, Unsettled, classified
from rebalance_core.audit.disagreements import disagreements, is_certain, let_go
from rebalance_core.audit.duplicate_ids import ids_seen_twice
from rebalance_core.audit.group_snapshot import Finding, GroupSnapshot, listed
from rebalance_core.audit.observations import (
    COMMAND_MS,
    ClientObservation,
    Observation,
    last_round,
    observations,
)
from rebalance_core.audit.prediction import Prediction
from rebalance_core.audit.proxied_observations import proxied_members
from rebalance_core.audit.rewritten_ids import divides_by_hashes, rewritten
from rebalance_core.audit.subjects import CAUSES, gap_of, logs_gap
from rebalance_core.audit.subscriptions import assigned_members
from rebalance_core.audit.topic_settings import unlogged_deletion, unreadable_topics
from rebalance_core.audit.unasked_brokers import unasked_brokers
from rebalance_core.audit.unowned_queues import (
    UnansweredRound,
    UnownedQueue,
    unanswered_round,
    unowned_queues,
)
from rebalance_core.ingest.hashed_addresses import looks_masked
from rebalance_core.model import verdicts
from rebalance_core.model.queue import MessageQueue
from rebalance_core.model.timeline import Unknown
from rebalance_core.model.times import utc

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import EpochsRow


@dataclass(frozen=True, slots=True)
class ComparisonResult:
    """The result of comparing a group.

    Attributes:
        verdict: one of `model.verdicts.VERDICTS`.
        reason: one of `model.verdicts.REASONS` for UNKNOWN, the event for UNSTABLE, otherwise
            empty.
        observations: the number compared; dumped_ms: the time of the last one, if any.
        last_round_ms: when the last round of dumps began.
        differences: differences outside any window, in all rounds.
        unasked: brokers of the group that no consumerConnection in the last round queried.
        unsettled: the difference in the last round that was seen longest after its change, within
            the window.
        unheld: queues without a holder according to consumerProgress alone, whatever the strategy.
        unanswered_round: members in the last round that did not report their queues; None if all
            did.
        unknown: the missing evidence, if it is the reason for UNKNOWN.
        basis: one of `model.verdicts.BASES`.
    """

    verdict: verdicts.Verdict
    reason: str = ""
    observations: int = 0
    dumped_ms: int | None = None
    last_round_ms: int = 0
    differences: tuple[Difference, ...] = ()
    unasked: tuple[str, ...] = ()
    unsettled: Unsettled | None = None
    unheld: tuple[UnownedQueue, ...] = ()
    unanswered_round: UnansweredRound | None = None
    unknown: Unknown | None = None
    basis: verdicts.Basis = verdicts.LEDGER


def compare(group: GroupSnapshot) -> ComparisonResult:
    """Compare all observations of a group with its ledger."""
    if not group.members:
        return replace(_without_members(group), basis=_basis(group))
    unasked = tuple(sorted(unasked_brokers(group)))
    return replace(_compare_online(group), unasked=unasked, basis=_basis(group))


def _basis(group: GroupSnapshot) -> verdicts.Basis:
    """Return the evidence for the members: DUMPS if no log shows them or a log has gaps."""
    lacking = evidence.unlogged(group) is not None or depends_on_missing(group)
    if lacking and group.members and evidence.listed_now(group):
        return verdicts.DUMPS
    unlogged = group.run.coverage.known and evidence.unlogged_group(group) is not None
    return verdicts.DUMPS if unlogged else verdicts.LEDGER


def _without_members(group: GroupSnapshot) -> ComparisonResult:
    """Return OFFLINE, or UNKNOWN if the group may have members that no file shows."""
    offline = ComparisonResult(verdicts.OFFLINE)
    gap = _unseen_members(group) if group.run.coverage.known else None
    if gap is None:
        return offline
    if dumps.is_system_group(group.consumer_group):
        return ComparisonResult(verdicts.UNKNOWN, verdicts.SYSTEM)
    return unknown(offline, replace(gap, reason=verdicts.NOT_COVERED))


def _unseen_members(group: GroupSnapshot) -> Unknown | None:
    """Return the reason why a group without known members may have one, or None if it has none.

    It may have a member if a member list is later than the last leave; if no broker was queried
    since then and a log lacks that time or other joins and leaves of the group, or no log covers
    the whole collection; if a client's log shows it committing and no broker has denied having
    members since; if clients of some group popped messages, perhaps through a proxy, and no log or
    offset shows whether this one did; or if offsets advanced while a log has a gap.
    """
    since_ms = max((row["to_ms"] or 0 for row in group.tables["memberships"]), default=0)
    listed_by, listed_ms = outsiders.last_listed(group)
    if listed_ms > since_ms:
        since = logs_gap(group, listed_ms, None) or unknowns.MEMBERS_UNLOGGED
        why = f"{listed_by} listed members at {utc(listed_ms)}, and {since.why}"
        return replace(since, why=why)
    known_by, known_ms = outsiders.last_known(group)
    if known_ms > since_ms and not outsiders.is_denied(group, known_ms):
        return unknowns.member_unnamed(known_by, known_ms)
    if not outsiders.is_denied(group, since_ms):
        if since_ms:
            unlogged = logs_gap(group, since_ms, None) or evidence.unlogged(group)
        else:
            unlogged = evidence.unlogged_group(group) or evidence.unlogged_end(group)
        unlogged = unlogged or _gap_of_all(group)  # another member may have joined in it
        if unlogged is not None:
            why = f"no broker was asked for its members, and {unlogged.why}"
            return replace(unlogged, why=why)
    commits = [row for row in group.tables["committed_offsets"] if row["client_id"]]
    if commits and not group.tables["memberships"]:
        last = max(commits, key=lambda row: row["observed_ms"])
        if not outsiders.is_denied(group, last["observed_ms"]):
            return unknowns.client_unseen(last["client_id"] or "", last["observed_ms"])
    popped = {broker: times for broker, times in group.run.popped.items() if times[1] > since_ms}
    own = popped and outsiders.offsets_over_time(group)
    if popped and not own and evidence.unlogged_group(group) is not None:
        broker = min(popped)
        return unknowns.proxy_unseen(broker, *popped[broker])
    read = outsiders.last_reading(group)
    gap = None if read is None else logs_gap(group, *read)
    return None if gap is None else replace(gap, why=f"its offsets advanced, and {gap.why}")


def _gap_of_all(group: GroupSnapshot) -> Unknown | None:
    """Return the gap in the logs of the group's brokers, if none covers the whole collection."""
    first_ms, last_ms = group.run.start_ms, evidence.end_of(group)
    brokers = sorted(evidence.group_brokers(group))
    gaps = [group.run.coverage.of_broker(broker).gap(first_ms, last_ms) for broker in brokers]
    return gaps[0] if gaps and None not in gaps else None


def _compare_online(group: GroupSnapshot) -> ComparisonResult:
    """Compare a group with members, and record the queues that no member holds."""
    if dumps.is_system_group(group.consumer_group):
        return ComparisonResult(verdicts.UNKNOWN, verdicts.SYSTEM)
    if {row["client_id"] for row in group.members} <= assigned_members(group):
        return ComparisonResult(verdicts.UNKNOWN, verdicts.ASSIGNED)
    prediction = Prediction(group)
    observed = observations(group, proxied_members(group, prediction))
    result = _compare_with_ledger(group, prediction, observed)
    result = _unknown_if_uncovered(group, prediction, observed, result)
    held_otherwise = result.differences and result.verdict in (verdicts.DIFFERS, verdicts.UNKNOWN)
    otherwise = held_otherwise or divides_by_hashes(group)
    why = rewritten(group, prediction, observed) if otherwise else None
    if why is not None:
        result = unknown(result, Unknown(verdicts.IDS_REWRITTEN, "", why, ""))
    unheld: Iterable[UnownedQueue] = ()
    # of processes with one masked id, any may be the one that did not answer
    alike = why is not None and any(map(looks_masked, ids_seen_twice(group)))
    # an uncollected broker might show a change
    if not alike and result.reason not in NOT_MODELLED and not depends_on_missing(group):
        unheld = unowned_queues(group, prediction, observed)
    silent = unanswered_round(group, prediction, observed) if why is None else None
    return replace(result, unheld=tuple(unheld), unanswered_round=silent)


def _compare_with_ledger(
    group: GroupSnapshot, prediction: Prediction, observed: list[Observation]
) -> ComparisonResult:
    """Compare the observations with the ledger, regardless of coverage."""
    reason = unpredictable(group)
    if reason is not None:
        return ComparisonResult(verdicts.UNKNOWN, reason)
    predictable = predictable_times(group, (observation.at_ms for observation in observed))
    observed = [observation for observation in observed if observation.at_ms in predictable]
    if not observed:
        return ComparisonResult(verdicts.UNKNOWN, why_unobserved(group))
    newest = observed[-1].at_ms
    if newest < group.run.end_ms - group.run.stale_ms:
        return ComparisonResult(verdicts.UNKNOWN, verdicts.STALE_DUMP, dumped_ms=newest)
    if newest < group.run.members_since_ms:
        return ComparisonResult(verdicts.UNKNOWN, verdicts.NOT_COVERED, dumped_ms=newest)
    # members that are in no row may have held queues before the logs begin
    observed = [seen for seen in observed if seen.at_ms >= group.run.members_since_ms]
    round_ = last_round(observed)
    start_ms = round_[0].at_ms
    agreed_ms = _agreed_ms(group, prediction, round_)
    changes: list[EpochsRow] = []
    unsettled = None
    compared = [observation for observation in observed if observation.at_ms < start_ms]
    if agreed_ms is None:
        changes = list(_changes(group, prediction, observed, round_))
        unsettled, compared = _unsettled(prediction, round_), observed
    modes = request_modes(group, observed)
    differences = list(_differences(group, prediction, compared, modes, start_ms))
    unknown_queues = prediction.unknown(
        (difference.queue, difference.at_ms) for difference in differences
    )
    explained = tuple(
        difference
        for difference in classified(differences, observed, group, prediction)
        if _is_contradiction(group, prediction, difference, unknown_queues)
    )
    still = [difference for difference in explained if difference.at_ms >= start_ms]
    verdict, reason = _verdict(group, still, changes) or _agreement(round_, prediction)
    at_ms = agreed_ms or newest
    return ComparisonResult(
        verdict, reason, len(observed), at_ms, start_ms, explained, unsettled=unsettled
    )


def _differences(
    group: GroupSnapshot,
    prediction: Prediction,
    observed: list[Observation],
    modes: Modes,
    start_ms: int,
) -> Iterator[Difference]:
    """Yield observations that fit no possible state of the ledger at their time.

    An observation counts as fitting if too many states are possible at its time.

    Args:
        group: its snapshot.
        prediction: its ledger.
        observed: the observations, in chronological order.
        modes: the modes of its topics.
        start_ms: when the last round began; before it, topics whose mode is unknown count as
            fitting.
    """
    unreadable, go = unreadable_topics(group), dumps.go_clients(group)
    for observation in observed:
        at_ms = observation.at_ms
        views = prediction.views(at_ms, at_ms + COMMAND_MS)
        if views is None:
            continue
        for difference in disagreements(observation, prediction, views):
            mode_known = at_ms >= start_ms or mode_is_known(difference, modes)
            if mode_known and not let_go(difference, unreadable, go):
                yield difference


def _is_contradiction(
    group: GroupSnapshot,
    prediction: Prediction,
    difference: Difference,
    unknown_queues: set[MessageQueue],
) -> bool:
    """Return whether the difference remains unexplained by any change under way.

    During a change, a lock, a suspension, a duplicate client id or an older view may explain it,
    and so may a state that the ledger lacks because a file is missing, for example if no state
    contains the queue.
    """
    if prediction.changing(difference.at_ms, difference.at_ms + COMMAND_MS) is None:
        return True
    if difference.why != UNEXPLAINED or difference.queue in unknown_queues:
        return False
    then = Finding("", first_ms=difference.at_ms, last_ms=difference.at_ms)
    return gap_of(group, CAUSES, then) is None


def _changes(
    group: GroupSnapshot,
    prediction: Prediction,
    observed: list[Observation],
    round_: list[Observation],
) -> Iterator[EpochsRow]:
    """Yield the changes that began or were in progress during the group's last dumps, unless no
    observed owner depends on them.
    """
    start_ms = round_[0].at_ms
    torn = _torn_before(group, observed, start_ms)
    views = prediction.views(min([start_ms, *torn]), round_[-1].at_ms + COMMAND_MS)
    if views is not None and all(
        is_certain(observation, prediction, views) for observation in round_
    ):
        return
    yield from _changes_between(min([start_ms, *torn]), round_[-1].at_ms, group)
    for at_ms in sorted({*torn, *(observation.at_ms for observation in round_)}):
        change = prediction.changing(at_ms, at_ms + COMMAND_MS)
        if change is not None:
            yield change


def _unsettled(prediction: Prediction, round_: list[Observation]) -> Unsettled | None:
    """Return the difference seen longest after the start of a change in progress, if any."""
    unsettled: list[Unsettled] = []
    for at_ms, at_once in groupby(round_, key=lambda observation: observation.at_ms):
        change = prediction.changing(at_ms, at_ms + COMMAND_MS)
        if change is not None and change["from_ms"] <= at_ms:
            queues = {
                difference.queue
                for observation in at_once
                for difference in disagreements(observation, prediction)
            }
            if queues:
                unsettled.append(Unsettled(change["from_ms"], at_ms, len(queues)))
    return max(unsettled, key=lambda entry: entry.seen_ms - entry.change_ms, default=None)


def _agreed_ms(
    group: GroupSnapshot, prediction: Prediction, round_: list[Observation]
) -> int | None:
    """Return the time from which the last round agrees with the ledger following changes under way.

    Only changes that appear in dumps but not in logs count; None if there were none, or if it does
    not agree. Such a change may have happened at any time since the previous dump, and a member
    that holds the queues of the new state has seen it.
    """
    under_way = prediction.under_way(round_[0].at_ms)
    if not under_way or not all(evidence.shown_by_dumps(group, epoch) for epoch in under_way):
        return None
    end_ms = max(round_[-1].at_ms, under_way[-1]["from_ms"])
    later = (replace(observation, at_ms=end_ms) for observation in round_)
    return (
        None
        if any(any(disagreements(observation, prediction)) for observation in later)
        else end_ms
    )


def _unknown_if_uncovered(
    group: GroupSnapshot,
    prediction: Prediction,
    observed: list[Observation],
    result: ComparisonResult,
) -> ComparisonResult:
    """Return the result, or UNKNOWN if the collected files do not support it."""
    if result.verdict not in (verdicts.EQUAL, verdicts.SHARED, verdicts.DIFFERS):
        return result
    since_ms = result.last_round_ms if result.verdict == verdicts.DIFFERS else None
    all_gaps = gaps(group, prediction, observed, result.differences, since_ms)
    gap = next(all_gaps, None)
    if gap is None:
        return result
    proven = tuple(_certain_differences(group, prediction, observed, result.differences))
    return replace(unknown(result, gap), differences=proven)


def _certain_differences(
    group: GroupSnapshot,
    prediction: Prediction,
    observed: list[Observation],
    differences: Sequence[Difference],
) -> Iterator[Difference]:
    """Yield the differences that could not be explained by any fact unknown at their time."""
    modes = request_modes(group, observed)
    unrouted = {topic for topic, _ in brokers_unshown(group, prediction, observed, differences)}
    last_ms = last_round(observed)[0].at_ms
    known = (
        difference
        for difference in differences
        if difference.queue.topic not in unrouted or difference.at_ms < last_ms
    )
    for at_ms, at_once in groupby(known, key=lambda difference: difference.at_ms):
        if gap_of(group, CAUSES, Finding("", first_ms=at_ms, last_ms=at_ms)) is None:
            yield from (difference for difference in at_once if mode_is_known(difference, modes))


def unknown(result: ComparisonResult, gap: Unknown) -> ComparisonResult:
    """Return the result changed to UNKNOWN because of missing evidence."""
    return ComparisonResult(
        verdicts.UNKNOWN,
        gap.reason,
        result.observations,
        result.dumped_ms,
        result.last_round_ms,
        unknown=gap,
    )


def _torn_before(group: GroupSnapshot, observed: list[Observation], start_ms: int) -> list[int]:
    """Return the times of torn dumps of owners between the last two rounds.

    They may show the state in which the last round began.
    """
    before_ms = max(
        (observation.at_ms for observation in observed if observation.at_ms < start_ms), default=0
    )
    return [
        row["first_ms"]
        for row in group.facts["DUMP"]
        if dumps.flag(row["details"].get("partial"))
        and row["details"]["command"] in ("consumerProgress", "consumerStatus")
        and max(before_ms, start_ms - listings.SAME_ROUND_MS) < row["first_ms"] < start_ms
    ]


def _verdict(
    group: GroupSnapshot, still: list[Difference], changes: list[EpochsRow]
) -> tuple[verdicts.Verdict, str] | None:
    """Return the verdict and reason derived from differences or changes in the last round, or
    None.
    """
    if any(not difference.cause for difference in still):
        return verdicts.DIFFERS, ""
    if still:
        return verdicts.UNSTABLE, still[0].cause
    if changes:
        return verdicts.UNSTABLE, _event(group, min(changes, key=lambda epoch: epoch["from_ms"]))
    return None


def _agreement(round_: list[Observation], prediction: Prediction) -> tuple[verdicts.Verdict, str]:
    """Return the verdict and reason if nothing differs; only clients and proxies show who pops
    what.
    """
    if not prediction.shares(round_[-1].at_ms):
        return verdicts.EQUAL, ""
    if any(isinstance(observation, ClientObservation) for observation in round_):
        return verdicts.SHARED, ""
    return verdicts.UNKNOWN, verdicts.NO_DUMP


def _event(group: GroupSnapshot, epoch: EpochsRow) -> str:
    dated_to_file = any(
        row["event_ms"] == epoch["from_ms"] and unlogged_deletion(row) is not None
        for row in group.tables["topics"]
    )
    at = "by" if dated_to_file else "at"
    return f"{listed(epoch['causes'])} {at} {utc(epoch['from_ms'])}"


def _changes_between(start_ms: int, end_ms: int, group: GroupSnapshot) -> list[EpochsRow]:
    """Return the epochs that began while the group was dumped."""
    return [epoch for epoch in group.epochs if start_ms < epoch["from_ms"] <= end_ms + COMMAND_MS]
