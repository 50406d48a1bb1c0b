"""Finds the assumptions behind a comparison that no file confirms."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from rebalance_core.audit import dumps, evidence, unknowns
from rebalance_core.audit.difference import Difference
from rebalance_core.audit.group_snapshot import Finding, GroupSnapshot, grouped, listed, plural
from rebalance_core.audit.observations import (
    LONGEST_ROUND_MS,
    ClientObservation,
    Observation,
    QueueObservation,
    address_of,
    last_round,
    progress_dumps,
)
from rebalance_core.audit.prediction import Prediction, holds
from rebalance_core.audit.subjects import CAUSES, MEMBERS, gap_of, logs_gap
from rebalance_core.audit.topic_readers import all_proxied, is_shared
from rebalance_core.model.queue import MessageQueue, is_retry_topic
from rebalance_core.model.request_mode import PULL_MODE
from rebalance_core.model.timeline import Timeline, Unknown
from rebalance_core.model.verdicts import LOG_ENDED

Modes = Mapping[str, Timeline[None]]
"""The times at which the ledger is known to have each topic's request mode."""


def gaps(
    group: GroupSnapshot,
    prediction: Prediction,
    observed: list[Observation],
    differences: Sequence[Difference],
    differs_since_ms: int | None,
) -> Iterator[Unknown]:
    """Yield the evidence that a group's verdict needs but no file contains.

    Args:
        group: its snapshot.
        prediction: its ledger.
        observed: the observations, in chronological order.
        differences: those of the comparison.
        differs_since_ms: when the differing round began; None if the verdict is agreement.
    """
    name, differs = group.consumer_group, differs_since_ms is not None
    if differs_since_ms is None:
        gap = evidence.unlogged_unless_listed(group)
    else:
        ended = logs_gap(group, differs_since_ms, differs_since_ms)
        # no line shows what happened after a log ended
        by_end = ended is not None and ended.reason == LOG_ENDED
        gap = ended if by_end else evidence.unlogged(group)
    if gap is None and differs:
        now = Finding("", first_ms=differs_since_ms)
        then = replace(now, last_ms=differs_since_ms)
        gap = gap_of(group, MEMBERS, now) or gap_of(group, CAUSES, then)
    if gap is None and not differs:
        gap = _masters_unknown(group, observed)
    if gap is not None:
        yield gap
    if client_id := _mode_unstated(group, differences):
        yield unknowns.request_mode_unstated(client_id, name)
    if topic := _mode_unsure(group, observed, differences):
        yield unknowns.request_mode_undated(topic)
    stray = prediction.unknown((d.queue, d.at_ms) for d in differences if d.live)
    if stray := stray | _held_unknown(group, prediction, observed):
        queue = min(stray)
        what = f"no file shows that {queue.topic} has queue {queue.queue_id} on {queue.broker_name}"
        yield unknowns.route_unshown(queue.topic, queue.broker_name, what)
    for topic, broker in brokers_unshown(group, prediction, observed, differences):
        what = f"no dump in the last round shows that {topic} still exists on {broker}"
        yield unknowns.route_unshown(topic, broker, what)
    agrees = group.run.coverage.known and not differs
    if agrees and (unshown := _unshown(group, prediction, observed)):
        names = listed(f"{q.topic} {q.broker_name}:{q.queue_id}" for q in unshown[:3])
        what = (
            f"no complete dump in the last round shows {plural(len(unshown), 'queue')}, e.g. "
            f"{names}"
        )
        yield unknowns.owners_unshown(name, what)


def _held_unknown(
    group: GroupSnapshot, prediction: Prediction, observed: list[Observation]
) -> set[MessageQueue]:
    """Return the queues that a member holds in the last round and the ledger never has."""
    held: set[MessageQueue] = set()
    for observation in last_round(observed):
        if isinstance(observation, ClientObservation):
            held |= observation.held
        elif observation.address:
            held.add(observation.queue)
    return prediction.unknown((queue, group.run.end_ms) for queue in held)


def _masters_unknown(group: GroupSnapshot, observed: list[Observation]) -> Unknown | None:
    """Return the reason why a broker whose queues have no owner in the last round may be up again.

    Only a master grants the order locks that would give them one (rocketmq.md §7).
    """
    at_ms = last_round(observed)[-1].at_ms
    brokers = {
        row["broker_name"]
        for row in group.tables["ownership"]
        if row["client_id"] is None and holds(row, at_ms)
    }
    stops = group.run.stops
    found = (stops[broker].gap(at_ms, at_ms) for broker in sorted(brokers & stops.keys()))
    return next((gap for gap in found if gap is not None), None)


def _mode_unstated(name: GroupSnapshot, differences: Iterable[Difference]) -> str:
    """Return a member that holds a queue that should be popped but did not report its mode, which
    may differ from the group's; empty if there is none.
    """
    dumped = {row["client_id"] for row in name.facts["DUMP"] if row["client_id"]}
    members = {row["client_id"] for row in name.tables["memberships"]}
    silent = members - dumped
    silent |= {address_of(client_id) for client_id in silent} - {
        address_of(client_id) for client_id in dumped
    }
    holders = (
        difference.live
        for difference in differences
        if difference.live
        and not difference.predicted
        and is_shared(name, difference.queue.topic, difference.at_ms)
    )
    return min((live for live in holders if live in silent), default="")


def _mode_unsure(
    name: GroupSnapshot, observed: list[Observation], differences: Iterable[Difference]
) -> str:
    """Return a topic that no member of the last round pops although one should, or vice versa.

    The topic's mode may have changed without a log line. Return an empty string if there is no such
    topic.
    """
    if all_proxied(name.members):
        return ""
    clients = [
        observation
        for observation in last_round(observed)
        if isinstance(observation, ClientObservation)
    ]
    popped = {queue.topic for client in clients for queue in client.popped}
    topics = {
        difference.queue.topic
        for difference in differences
        if difference.live
        and is_shared(name, difference.queue.topic, difference.at_ms)
        != (difference.queue.topic in popped)
    }
    return min(topics, default="")


def _unshown(
    name: GroupSnapshot, prediction: Prediction, observed: list[Observation]
) -> list[MessageQueue]:
    """Return the queues with a predicted owner that neither a dump in the last round nor the owner
    shows.

    A client's own queues in its answer count even if the answer is cut off.
    """
    round_ = last_round(observed)
    begin, at_ms = round_[0].at_ms, round_[-1].at_ms
    shown = {
        observation.queue for observation in round_ if isinstance(observation, QueueObservation)
    }
    for rows in progress_dumps(name):
        if begin <= rows[0]["first_ms"] <= at_ms:
            shown |= {dumps.queue_of(row) for row in rows}
    answered = {
        observation.client_id
        for observation in round_
        if isinstance(observation, ClientObservation)
    }
    held = {
        (row["client_id"], dumps.queue_of(row))
        for row in name.facts["HELD_QUEUE"]
        if abs(row["first_ms"] - at_ms) <= LONGEST_ROUND_MS
        and not dumps.flag(row["details"].get("dropped"))
    }
    return sorted(
        queue
        for row in name.tables["ownership"]
        if row["client_id"] is not None and holds(row, at_ms) and not is_retry_topic(row["topic"])
        if (queue := dumps.queue_of(row)) not in shown
        and any((owner, queue) not in held for owner in prediction.owners(queue, at_ms) - answered)
    )


def brokers_unshown(
    name: GroupSnapshot,
    prediction: Prediction,
    observed: list[Observation],
    differences: Iterable[Difference],
) -> list[tuple[str, str]]:
    """Return the differing topics, each with the brokers on which the last round shows none of its
    queues.

    A topic may vanish from a broker without a log line (a role switch in controller mode).
    """
    kept_ms = name.run.coverage.topic_stores
    differing = {difference.queue.topic for difference in differences}
    if not differing:
        return []
    round_ = last_round(observed)
    rows = (row for row in name.tables["ownership"] if holds(row, round_[-1].at_ms))
    queues = grouped(map(dumps.queue_of, rows), lambda queue: (queue.topic, queue.broker_name))
    unshown = set(_unshown(name, prediction, observed))
    return sorted(
        (topic, broker)
        for (topic, broker), of_broker in queues.items()
        if topic in differing and unshown.issuperset(of_broker)
        if kept_ms.get(broker, 0) < round_[0].at_ms
    )


def request_modes(name: GroupSnapshot, observed: Iterable[Observation]) -> Modes:
    """Return the topics whose mode is unknown for a time because a change is dated only by the
    first later evidence: from the last client seen popping a topic until the topic was pulled
    again.
    """
    clients = [
        observation for observation in observed if isinstance(observation, ClientObservation)
    ]
    modes: dict[str, Timeline[None]] = {}
    changes = (r for r in name.tables["findings"] if r["rule_id"] == "INGEST_REQUEST_MODE_CHANGED")
    for row in changes:
        topic, from_ms, to_ms = row["topic"], row["first_ms"], row["last_ms"]
        if topic is None or from_ms is None or to_ms is None:
            continue
        if dict(row["evidence"])["after"] == str(PULL_MODE):
            popped = (
                client.at_ms for client in clients if topic in {q.topic for q in client.popped}
            )
            from_ms = max((ms for ms in popped if ms < from_ms), default=0)
        mode = modes.get(topic, Timeline[None].always(None))
        modes[topic] = mode.put(from_ms + 1, to_ms, unknowns.request_mode_undated(topic))
    return modes


def mode_is_known(difference: Difference, modes: Modes) -> bool:
    """Return whether the topic has the ledger's request mode at that time."""
    topic = difference.queue.topic
    return topic not in modes or modes[topic].gap(difference.at_ms, difference.at_ms) is None
