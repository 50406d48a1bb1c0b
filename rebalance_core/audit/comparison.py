"""Predicted against observed ownership of one group: EQUAL, DIFFERS, UNSTABLE, UNKNOWN or
OFFLINE.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING

from rebalance_core.audit import dumps, evidence, unknowns
from rebalance_core.audit.case import Finding, GroupCase, grouped, listed, plural
from rebalance_core.audit.difference import Difference, Unsettled, classified
from rebalance_core.audit.observations import (
    COMMAND_MS,
    LONGEST_ROUND_MS,
    ClientObservation,
    Observation,
    QueueObservation,
    UnansweredRound,
    UnownedQueue,
    address_of,
    last_round,
    observations,
    omitted,
    progress_dumps,
    proxied_members,
    silent_members,
    unanswered_round,
    unowned_queues,
)
from rebalance_core.audit.prediction import Prediction, holds
from rebalance_core.audit.rewritten_ids import rewritten
from rebalance_core.audit.subjects import CAUSES, MEMBERS, gap_of, logs_gap
from rebalance_core.audit.subscriptions import (
    all_known,
    all_proxied,
    assigned_members,
    is_proxied,
    is_shared,
    reach,
    reads_lite_topic,
    reads_static_topic,
    shares_known,
    strategy_is_known,
)
from rebalance_core.ingest.fact import file_of
from rebalance_core.model import verdicts
from rebalance_core.model.clients import profile_of_row
from rebalance_core.model.group_settings import BROADCASTING, PULL_MODE
from rebalance_core.model.queue import MessageQueue, is_retry_topic
from rebalance_core.model.timeline import Timeline, Unknown
from rebalance_core.model.times import MINUTE_MS, utc
from rebalance_core.model.verdicts import NOT_TOLD as OWNERS_NOT_TOLD

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import DumpFact, EpochsRow, MembershipsRow

# Predicted against observed ownership and reach, each observation in its own epoch.

Modes = Mapping[str, Timeline[None]]
"""By topic whether it is known at a time that the ledger has its request mode."""


@dataclass(frozen=True, slots=True)
class ComparisonResult:
    """The result of comparing one group.

    Attributes:
        verdict: one of `model.verdicts.VERDICTS`.
        reason: for UNKNOWN one of `REASONS`, for UNSTABLE the event; else empty.
        observations: how many were compared; dumped_ms: the last of them, None without one.
        last_round_ms: when the last round of dumps began.
        differences: outside every window, of all rounds.
        unasked: brokers of the group that no consumerConnection of the last round asked.
        unsettled: what differed in the last round inside a window, the latest after its change.
        unheld: queues that nobody holds, by consumerProgress alone, whatever the strategy.
        untold: members of the last round that did not tell their queues; None: all did.
        unknown: what the comparison rests on and no file shows, where that is why it is UNKNOWN.
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
    untold: UnansweredRound | None = None
    unknown: Unknown | None = None
    basis: verdicts.Basis = verdicts.LEDGER


def compare(case: GroupCase) -> ComparisonResult:
    """Compare all observations of a group with its ledger."""
    if not case.members:
        return replace(_without_members(case), basis=_basis(case))
    unasked = tuple(sorted(_unasked(case)))
    return replace(_judged(case), unasked=unasked, basis=_basis(case))


def _basis(case: GroupCase) -> verdicts.Basis:
    """What shows who the members are: DUMPS where no log does, or one lacks something."""
    lacking = evidence.unlogged(case) is not None or _depends_on_missing(case)
    if lacking and case.members and evidence.listed_now(case):
        return verdicts.DUMPS
    unlogged = case.run.coverage.known and evidence.unlogged_group(case) is not None
    return verdicts.DUMPS if unlogged else verdicts.LEDGER


def _without_members(case: GroupCase) -> ComparisonResult:
    """Return OFFLINE; UNKNOWN where no file shows that, or offsets went on in a time that a log
    lacks.
    """
    offline = ComparisonResult(verdicts.OFFLINE)
    if not case.run.coverage.known:
        return offline
    if not case.tables["memberships"] and not dumps.is_denied(case):
        unlogged = evidence.unlogged_group(case)
        if unlogged is not None and dumps.is_system_group(case.consumer_group):
            return ComparisonResult(verdicts.UNKNOWN, verdicts.SYSTEM)
        if unlogged is not None:
            why = f"no broker was asked for its members, and {unlogged.why}"
            return unknown(offline, replace(unlogged, reason=verdicts.NOT_COVERED, why=why))
    read = dumps.last_reading(case)
    gap = None if read is None else logs_gap(case, *read)
    if gap is None:
        return offline
    why = f"its offsets went on, and {gap.why}"
    return unknown(offline, replace(gap, reason=verdicts.NOT_COVERED, why=why))


def _judged(case: GroupCase) -> ComparisonResult:
    if dumps.is_system_group(case.consumer_group):
        return ComparisonResult(verdicts.UNKNOWN, verdicts.SYSTEM)
    if {row["client_id"] for row in case.members} <= assigned_members(case):
        return ComparisonResult(verdicts.UNKNOWN, verdicts.ASSIGNED)
    prediction = Prediction(case)
    observed = observations(case, proxied_members(case, prediction))
    result = _compared(case, prediction, observed)
    result = _covered(case, prediction, observed, result)
    why = rewritten(case, prediction, observed) if result.verdict == verdicts.DIFFERS else None
    if why is not None:
        return unknown(result, Unknown(verdicts.IDS_REWRITTEN, "", why, ""))
    found: Iterable[UnownedQueue] = ()
    # what a missing broker lacks may be a change
    if result.reason not in _NOT_MODELLED and not _depends_on_missing(case):
        found = unowned_queues(case, prediction, observed)
    silent = unanswered_round(case, prediction, observed)
    return replace(result, unheld=tuple(found), untold=silent)


def _unpredictable(case: GroupCase) -> str | None:
    """Why nobody can say who should own what; None: the ledger does."""
    if reads_static_topic(case):
        return verdicts.STATIC_TOPIC
    if reads_lite_topic(case):
        return verdicts.LITE_TOPIC
    if not strategy_is_known(case):
        return verdicts.STRATEGY
    if not all_known(case.members):
        return verdicts.SUBSCRIPTION
    if not shares_known(case.members) or _doubtful(case.members, dumps.unreadable_topics(case)):
        return verdicts.LANGUAGE
    missing = _depends_on_missing(case) and not evidence.listed_now(case)
    return verdicts.INCOMPLETE if missing else None


_NOT_MODELLED = (verdicts.STATIC_TOPIC, verdicts.LITE_TOPIC)
"""Reasons why the queues that the ledger has are not those that members read."""


def _why_unobserved(case: GroupCase) -> str:
    if all(row["message_model"] == BROADCASTING for row in case.members):
        return verdicts.BROADCASTING
    return OWNERS_NOT_TOLD if _none_told(case) else verdicts.NO_DUMP


def _predictable_times(case: GroupCase, times_ms: Iterable[int]) -> set[int]:
    """Return the times at which the topics and the share of every member are known.

    Cost: the members, and for each time those alone of which something is not known.
    """
    unreadable = dumps.unreadable_topics(case)
    doubted = [
        row
        for row in case.tables["memberships"]
        if not all_known([row]) or not shares_known([row]) or _doubtful([row], unreadable)
    ]

    def is_predictable(at_ms: int) -> bool:
        present = [row for row in doubted if holds(row, at_ms)]
        shut = (topic for topic, since in unreadable.items() if since <= at_ms)
        return all_known(present) and shares_known(present) and not _doubtful(present, shut)

    return {at_ms for at_ms in set(times_ms) if is_predictable(at_ms)}


def _doubtful(members: Iterable[MembershipsRow], unreadable: Iterable[str]) -> bool:
    """True if nobody ran what the client of one of these does with one of these topics, that have
    no readable queue.
    """
    topics = {*unreadable}
    return any(
        not topics.isdisjoint(row["subscriptions"] or ()) and "no_queue" in profile_of_row(row).read
        for row in members
    )


def _compared(
    case: GroupCase, prediction: Prediction, observed: list[Observation]
) -> ComparisonResult:
    reason = _unpredictable(case)
    if reason is not None:
        return ComparisonResult(verdicts.UNKNOWN, reason)
    unreadable = dumps.unreadable_topics(case)
    predictable = _predictable_times(case, (one.at_ms for one in observed))
    observed = [one for one in observed if one.at_ms in predictable]
    run = case.run
    if not observed:
        return ComparisonResult(verdicts.UNKNOWN, _why_unobserved(case))
    newest = observed[-1].at_ms
    if newest < run.end_ms - run.stale_ms:
        return ComparisonResult(verdicts.UNKNOWN, verdicts.STALE_DUMP, dumped_ms=newest)
    round_ = last_round(observed)
    start_ms = round_[0].at_ms
    differences: list[Difference] = []
    unsettled: list[Unsettled] = []
    agreed_ms = _agreed_ms(case, prediction, round_)
    torn = [] if agreed_ms else _torn_before(case, observed, start_ms)
    changes = [] if agreed_ms else _changes_between(min([start_ms, *torn]), newest, case)
    changes += (
        change
        for at_ms in torn
        if (change := prediction.changing(at_ms, at_ms + COMMAND_MS)) is not None
    )
    go = dumps.go_clients(case)
    modes = _modes(case, observed)
    for at_ms, at_once in groupby(observed, key=lambda observation: observation.at_ms):
        if agreed_ms and at_ms >= start_ms:
            break
        change = prediction.changing(at_ms, at_ms + COMMAND_MS)
        if change is None:
            differences += (
                one
                for observation in at_once
                for one in _differences(observation, prediction)
                if not _let_go(one, unreadable, go)
                and (at_ms >= start_ms or _mode_is_known(one, modes))
            )
        elif at_ms >= start_ms:
            changes.append(change)
            found = {one.queue for each in at_once for one in _differences(each, prediction)}
            if found and change["from_ms"] <= at_ms:
                unsettled.append(Unsettled(change["from_ms"], at_ms, len(found)))
    explained = tuple(classified(differences, observed, case, prediction))
    still = [one for one in explained if one.at_ms >= start_ms]
    verdict, reason = _verdict(still, changes) or _agreement(round_, prediction)
    latest = max(unsettled, key=lambda one: one.seen_ms - one.change_ms, default=None)
    at_ms = agreed_ms or newest
    return ComparisonResult(
        verdict, reason, len(observed), at_ms, start_ms, explained, unsettled=latest
    )


def _agreed_ms(case: GroupCase, prediction: Prediction, round_: list[Observation]) -> int | None:
    """From when on all that the last round shows is as the ledger has it, after changes that dumps
    alone show and that were under way; None: there were none, or it is not.

    Such a change happened at any time since the dump before, and who holds what comes of it has
    seen it.
    """
    under_way = prediction.under_way(round_[0].at_ms)
    if not under_way or not all(evidence.shown_by_dumps(case, epoch) for epoch in under_way):
        return None
    end_ms = max(round_[-1].at_ms, under_way[-1]["from_ms"])
    later = (replace(one, at_ms=end_ms) for one in round_)
    return None if any(any(_differences(one, prediction)) for one in later) else end_ms


def _covered(
    case: GroupCase, prediction: Prediction, observed: list[Observation], result: ComparisonResult
) -> ComparisonResult:
    """The result, UNKNOWN where what was collected does not tell enough to say it."""
    if result.verdict not in (verdicts.EQUAL, verdicts.SHARED, verdicts.DIFFERS):
        return result
    gap = next(_gaps(case, prediction, observed, result), None)
    if gap is None:
        return result
    proven = tuple(_proven(case, observed, result.differences))
    return replace(unknown(result, gap), differences=proven)


def _proven(
    case: GroupCase, observed: list[Observation], differences: Iterable[Difference]
) -> Iterator[Difference]:
    """Yield the differences that nothing unknown at their time may explain."""
    modes = _modes(case, observed)
    for at_ms, at_once in groupby(differences, key=lambda one: one.at_ms):
        if gap_of(case, CAUSES, Finding("", first_ms=at_ms, last_ms=at_ms)) is None:
            yield from (one for one in at_once if _mode_is_known(one, modes))


def _gaps(
    case: GroupCase, prediction: Prediction, observed: list[Observation], result: ComparisonResult
) -> Iterator[Unknown]:
    """Yield what the result rests on and no file shows."""
    group, found = case.consumer_group, result.differences
    differs = result.verdict == verdicts.DIFFERS
    gap = evidence.unlogged(case) if differs else evidence.unlogged_unless_listed(case)
    if gap is None and differs:
        begin = result.last_round_ms
        gap = gap_of(case, MEMBERS, Finding("", first_ms=begin)) or gap_of(
            case, CAUSES, Finding("", first_ms=begin, last_ms=begin)
        )
    if gap is not None:
        yield gap
    if client_id := _mode_untold(case, found):
        yield unknowns.request_mode_unstated(client_id, group)
    if topic := _mode_unsure(case, observed, found):
        yield unknowns.request_mode_undated(topic)
    if stray := prediction.unknown((d.queue, d.at_ms) for d in found if d.live):
        queue = min(stray)
        what = f"no file shows that {queue.topic} has queue {queue.queue_id} on {queue.broker_name}"
        yield unknowns.route_unshown(queue.topic, queue.broker_name, what)
    for topic, broker in _brokers_unshown(case, prediction, observed, found):
        what = f"no dump of the last round shows that {topic} is still on {broker}"
        yield unknowns.route_unshown(topic, broker, what)
    agrees = case.run.coverage.known and not differs
    if agrees and (unshown := _unshown(case, prediction, observed)):
        names = listed(f"{q.topic} {q.broker_name}:{q.queue_id}" for q in unshown[:3])
        what = (
            f"no whole dump of the last round shows {plural(len(unshown), 'queue')}, e.g. {names}"
        )
        yield unknowns.owners_unshown(group, what)


def _mode_untold(case: GroupCase, differences: Iterable[Difference]) -> str:
    """Who holds a queue that should be popped, and did not tell its mode: the group's may be not
    its own; empty: nobody.
    """
    dumped = {row["client_id"] for row in case.facts["DUMP"] if row["client_id"]}
    members = {row["client_id"] for row in case.tables["memberships"]}
    untold = members - dumped
    untold |= {address_of(one) for one in untold} - {address_of(one) for one in dumped}
    holders = (
        one.live
        for one in differences
        if one.live and not one.predicted and is_shared(case, one.queue.topic, one.at_ms)
    )
    return min((live for live in holders if live in untold), default="")


def _mode_unsure(
    case: GroupCase, observed: list[Observation], differences: Iterable[Difference]
) -> str:
    """A topic that should be popped, and no member of the last round pops it, or the other way
    round: its mode may have been changed, which no line tells; empty: none is.
    """
    if all_proxied(case.members):
        return ""
    clients = [one for one in last_round(observed) if isinstance(one, ClientObservation)]
    popped = {queue.topic for one in clients for queue in one.popped}
    topics = {
        one.queue.topic
        for one in differences
        if one.live and is_shared(case, one.queue.topic, one.at_ms) != (one.queue.topic in popped)
    }
    return min(topics, default="")


def unknown(result: ComparisonResult, gap: Unknown) -> ComparisonResult:
    """Return the result as UNKNOWN, because of what no file shows."""
    return ComparisonResult(
        verdicts.UNKNOWN,
        gap.reason,
        result.observations,
        result.dumped_ms,
        result.last_round_ms,
        unknown=gap,
    )


def _unshown(
    case: GroupCase, prediction: Prediction, observed: list[Observation]
) -> list[MessageQueue]:
    """Queues with a predicted owner that no dump of the last round has, nor the owner's own.

    What a client's answer shows as its own counts, also where the answer is cut off.
    """
    round_ = last_round(observed)
    begin, at_ms = round_[0].at_ms, round_[-1].at_ms
    shown = {one.queue for one in round_ if isinstance(one, QueueObservation)}
    for rows in progress_dumps(case):
        if begin <= rows[0]["first_ms"] <= at_ms:
            shown |= {dumps.queue_of(row) for row in rows}
    answered = {one.client_id for one in round_ if isinstance(one, ClientObservation)}
    held = {
        (row["client_id"], dumps.queue_of(row))
        for row in case.facts["HELD_QUEUE"]
        if abs(row["first_ms"] - at_ms) <= LONGEST_ROUND_MS
        and not dumps.flag(row["details"].get("dropped"))
    }
    return sorted(
        queue
        for row in case.tables["ownership"]
        if row["client_id"] is not None and holds(row, at_ms) and not is_retry_topic(row["topic"])
        if (queue := dumps.queue_of(row)) not in shown
        and any((one, queue) not in held for one in prediction.owners(queue, at_ms) - answered)
    )


def _brokers_unshown(
    case: GroupCase,
    prediction: Prediction,
    observed: list[Observation],
    found: Iterable[Difference],
) -> list[tuple[str, str]]:
    """Topics that differ, with each broker of which the last round shows no queue of the topic.

    A topic may vanish from a broker without a line (a switch of roles in controller mode).
    """
    kept_ms, differing = case.run.coverage.topic_stores, {one.queue.topic for one in found}
    if not differing:
        return []
    round_ = last_round(observed)
    rows = (row for row in case.tables["ownership"] if holds(row, round_[-1].at_ms))
    queues = grouped(map(dumps.queue_of, rows), lambda queue: (queue.topic, queue.broker_name))
    unshown = set(_unshown(case, prediction, observed))
    return sorted(
        (topic, broker)
        for (topic, broker), of_broker in queues.items()
        if topic in differing and unshown.issuperset(of_broker)
        if kept_ms.get(broker, 0) < round_[0].at_ms
    )


def _torn_before(case: GroupCase, observed: list[Observation], start_ms: int) -> list[int]:
    """When the torn dumps of owners were made that lie between the last two rounds: what the last
    one began with may stand in them.
    """
    before_ms = max((one.at_ms for one in observed if one.at_ms < start_ms), default=0)
    return [
        row["first_ms"]
        for row in case.facts["DUMP"]
        if dumps.flag(row["details"].get("partial"))
        and row["details"]["command"] in ("consumerProgress", "consumerStatus")
        and max(before_ms, start_ms - dumps.SAME_ROUND_MS) < row["first_ms"] < start_ms
    ]


def _none_told(case: GroupCase) -> bool:
    """True if the group was dumped, and none of its members told its queues."""
    return bool(silent_members(case)) or any(omitted(case, one) for one in progress_dumps(case))


def _verdict(
    still: list[Difference], changes: list[EpochsRow]
) -> tuple[verdicts.Verdict, str] | None:
    """Verdict and reason by what differs in the last round or changed in it; None: nothing."""
    if any(not one.cause for one in still):
        return verdicts.DIFFERS, ""
    if still:
        return verdicts.UNSTABLE, still[0].cause
    if changes:
        return verdicts.UNSTABLE, _event(min(changes, key=lambda epoch: epoch["from_ms"]))
    return None


def _agreement(round_: list[Observation], prediction: Prediction) -> tuple[verdicts.Verdict, str]:
    """Verdict and reason where nothing differs; who pops what, only clients and proxies show."""
    if not prediction.shares(round_[-1].at_ms):
        return verdicts.EQUAL, ""
    if any(isinstance(one, ClientObservation) for one in round_):
        return verdicts.SHARED, ""
    return verdicts.UNKNOWN, verdicts.NO_DUMP


def _event(epoch: EpochsRow) -> str:
    return f"{listed(epoch['causes'])} at {utc(epoch['from_ms'])}"


def _changes_between(start_ms: int, end_ms: int, case: GroupCase) -> list[EpochsRow]:
    """Epochs that began while the group was dumped."""
    return [epoch for epoch in case.epochs if start_ms < epoch["from_ms"] <= end_ms + COMMAND_MS]


def _unasked(case: GroupCase) -> set[str]:
    """Brokers with readable queues of the group that gave no answer on its members at the end.

    None where the last round of dumps asked no broker by name at all; nor where the members are
    behind proxies, whose lists have them, while those of brokers do not.
    """
    lists = dumps.fresh(case, dumps.proxy_answers(case), dumps.seen_ms)
    if dumps.is_system_group(case.consumer_group) or any(row["client_id"] for row in lists):
        return set()
    answered = _answered_last(case)
    proxied = {row["client_id"] for row in case.members if is_proxied(row)}
    rows = [*case.owned, *(row for row in reach(case) if row["client_id"] not in proxied)]
    brokers = {row["broker_name"] for row in rows if not is_retry_topic(row["topic"])}
    return brokers - answered if answered else set()


def _answered_last(case: GroupCase) -> set[str]:
    """Return the brokers that answered the last round of consumerConnection."""
    made = [row for row in case.facts["DUMP"] if row["details"]["command"] == "consumerConnection"]
    wordless = dumps.wordless(case)
    return {
        row["broker_name"]
        for row in _last_round(sorted(made, key=lambda one: one["first_ms"]))
        if row["broker_name"] and file_of(row["source"]) not in wordless
    }


def _last_round(made: Sequence[DumpFact]) -> Sequence[DumpFact]:
    """Return the dumps of the last round, which has each broker once; `made` are in order of time.

    A command that is repeated within a minute is of the same round. Two rounds are divided by the
    longest pause between the two dumps of a broker.
    """
    later: dict[str | None, int] = {}
    for index in range(len(made) - 1, -1, -1):
        broker, at_ms = made[index]["broker_name"], made[index]["first_ms"]
        if made[-1]["first_ms"] - at_ms > LONGEST_ROUND_MS:
            return made[index + 1 :]
        again = later.get(broker, index)
        if made[again]["first_ms"] - at_ms > MINUTE_MS:
            ends = range(index + 1, again + 1)
            return made[max(ends, key=lambda n: made[n]["first_ms"] - made[n - 1]["first_ms"]) :]
        later[broker] = index
    return made


def _depends_on_missing(case: GroupCase) -> bool:
    return bool(known_brokers(case) & case.run.missing)


def known_brokers(case: GroupCase) -> set[str]:
    """Brokers that the group's queues, topics or dumps name."""
    owned = {row["broker_name"] for row in case.owned}
    return (
        owned | {row["broker_name"] for row in case.tables["topics"]} | evidence.shown_brokers(case)
    )


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
    topic, at_ms = observation.queue.topic, observation.at_ms
    others = (
        prediction.owners(observation.queue, ms) for ms in prediction.other_moments(topic, at_ms)
    )
    if any(_is_held_by(observation.address, right) for right in (owners, *others)):
        return
    asked = min(owners, default=None)
    yield Difference(
        observation.queue,
        owners,
        observation.address or None,
        asked,
        observation.at_ms,
        observation.source,
        unheld=not observation.address,
    )


def _let_go(one: Difference, unreadable: Mapping[str, int], go: set[str]) -> bool:
    """True if Go clients alone should hold the queue, whose topic nobody can read: they give it up,
    the ledger follows Java's.
    """
    since_ms = unreadable.get(one.queue.topic)
    late = since_ms is not None and since_ms <= one.at_ms
    return late and one.live is None and bool(one.predicted) and one.predicted <= go


def _modes(case: GroupCase, observed: Iterable[Observation]) -> Modes:
    """Return the topics whose mode is unknown for a time: a change is dated by what shows it first.

    From the last client that was seen to pop it on, before it was pulled again.
    """
    clients = [one for one in observed if isinstance(one, ClientObservation)]
    modes: dict[str, Timeline[None]] = {}
    changes = (r for r in case.tables["findings"] if r["rule_id"] == "INGEST_REQUEST_MODE_CHANGED")
    for row in changes:
        topic, from_ms, to_ms = row["topic"], row["first_ms"], row["last_ms"]
        if topic is None or from_ms is None or to_ms is None:
            continue
        if dict(row["evidence"])["after"] == str(PULL_MODE):
            popped = (one.at_ms for one in clients if topic in {q.topic for q in one.popped})
            from_ms = max((ms for ms in popped if ms < from_ms), default=0)
        known = modes.get(topic, Timeline[None].always(None))
        modes[topic] = known.put(from_ms + 1, to_ms, unknowns.request_mode_undated(topic))
    return modes


def _mode_is_known(one: Difference, modes: Modes) -> bool:
    topic = one.queue.topic
    return topic not in modes or modes[topic].gap(one.at_ms, one.at_ms) is None


def _is_held_by(address: str, owners: frozenset[str]) -> bool:
    """True if the address is that of an owner; none is that of a queue without an owner."""
    return address in {address_of(owner) for owner in owners} or not (address or owners)


def _of_client(one: ClientObservation, prediction: Prediction) -> Iterator[Difference]:
    """Queues that the client holds or pops and should not, or the other way round."""
    wrong = prediction.held(one.client_id, one.at_ms) ^ one.held
    shared = prediction.popped(one.client_id, one.at_ms) ^ one.popped
    for queue in sorted(wrong | shared):
        moments = prediction.other_moments(queue.topic, one.at_ms)
        if any(
            (queue in one.held) == (queue in prediction.held(one.client_id, ms)) for ms in moments
        ):
            continue
        if prediction.is_deleted(queue.topic, one.at_ms):
            continue
        owners = prediction.owners(queue, one.at_ms) | prediction.takers(queue, one.at_ms)
        holder = one.client_id if queue in one.held | one.popped else None
        note = ""
        if queue in wrong and queue in shared:
            note = "it is pulled, not popped" if queue in one.held else "it is popped, not pulled"
        yield Difference(queue, owners, holder, one.client_id, one.at_ms, one.source, note=note)
