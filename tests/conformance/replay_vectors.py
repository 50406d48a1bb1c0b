"""Compares the plain rebalance pass with a file of replay vectors: one pass, one fact."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from rebalance_core import rebalance_pass
from rebalance_core.client.broker_answers import BrokerAnswers
from rebalance_core.client.offset_stores import LocalOffsetStore
from rebalance_core.client.one_pass import sentence
from rebalance_core.client.pass_record import PassRecord, PassView
from rebalance_core.client.process import ClientProcess
from rebalance_core.model.errors import RebalanceError
from rebalance_core.model.queue import MessageQueue
from tests.conformance.replay_world import Json, ReplayWorld

KEYS = {"id", "version", "config", "epochs"}
# Recorded per topic, as lists of [broker, queue id, ...]; orders upstream leaves open are sorted.
LISTS = (
    "queues",
    "zombies",
    "added",
    "removed",
    "removal_failed",
    "truncated",
    "persisted",
    "locks",
    "delayed_unlocks",
)
SCALARS: dict[str, Any] = {  # recorded per pass, with what an absent one means
    "balanced": None,
    "pull_threshold_for_queue": None,
    "pull_threshold_size_for_queue": None,
    "heartbeats": 0,
    "rebalance_later_ms": [],
    "first_pull_delay_ms": None,
}


def compare(path: Path) -> tuple[int, list[str]]:
    """(facts, descriptions of the mismatches) of a replay-vectors JSONL.

    Every recorded field of every pass is compared. A scenario that cannot be read or replayed to
    its end is one mismatch more.
    """
    facts, mismatches = 0, []
    with path.open(encoding="utf-8", newline="\n") as lines:
        for number, line in enumerate(lines, start=1):
            try:
                for description in _passes(json.loads(line)):
                    facts += 1
                    if description:
                        mismatches.append(f"{path.name}:{number}: {description}")
            except (RebalanceError, LookupError, ValueError, TypeError, AttributeError) as error:
                problem = f"cannot be replayed: {type(error).__name__}: {error}"
                mismatches.append(f"{path.name}:{number}: {problem}")
    return facts, mismatches


def _passes(scenario: Json) -> Iterator[str]:
    """One text per recorded pass: what differs, empty if nothing does."""
    if KEYS - scenario.keys():
        raise ValueError(f"a scenario needs the keys {sorted(KEYS)}")
    world = ReplayWorld(scenario)
    for epoch in scenario["epochs"]:
        brokers = world.begin_epoch(epoch)
        recorded = epoch["consumers"]
        if recorded.keys() != world.processes.keys():
            odd = sorted(recorded.keys() ^ world.processes.keys())
            raise ValueError(f"epoch {epoch['epoch']}: recorded and live processes differ: {odd}")
        for key, expected in recorded.items():
            topics = [t for t, row in expected["topics"].items() if row.get("subscribed", True)]
            view = world.view(key, epoch, topics)
            process, record = _one_pass(world.processes[key], view, brokers)
            wrong = _differences(_recorded(expected), _computed(process, record))
            if set(topics) != world.subscriptions(key):
                wrong.append(f"subscribed: {sorted(world.subscriptions(key))}, recorded {topics}")
            head = f"{scenario['id']} epoch {epoch['epoch']} {key}: "
            yield head + "; ".join(wrong) if wrong else ""
        world.end_epoch(epoch, brokers)


def _one_pass(
    process: ClientProcess, view: PassView, brokers: BrokerAnswers
) -> tuple[ClientProcess, PassRecord]:
    """The pass through `rebalance_pass`, which gets plain values; what changed is handed back."""
    store = process.store
    done = rebalance_pass(
        process.client_id,
        queues={
            topic: None if its is None else [(q.broker_name, q.queue_id) for q in its]
            for topic, its in view.queues.items()
        },
        members=view.members,
        strategy=process.strategy,
        settings=process.settings,
        table=process.table,
        memory=store.in_memory(),
        local_file=store.file if isinstance(store, LocalOffsetStore) else None,
        offsets={
            queue: replace(its, committed=brokers.committed.get(queue, its.committed))
            for queue, its in brokers.answers.items()
        },
        locks=brokers.locks,
        brokers_down=brokers.brokers_down,
        masters_down=brokers.masters_down,
        thresholds=(process.threshold_for_queue, process.threshold_size_for_queue),
        at_ms=1,
    )
    assert all(map(sentence, done.steps))  # each step has its words
    after = done.process
    if isinstance(store, LocalOffsetStore) and isinstance(after.store, LocalOffsetStore):
        store.file.clear()  # processes of one client id share it
        store.file.update(after.store.file)
        after.store.file = store.file
    process.table, process.store = after.table, after.store
    process.threshold_for_queue = after.threshold_for_queue
    process.threshold_size_for_queue = after.threshold_size_for_queue
    brokers.committed |= done.brokers.committed
    brokers.locks = done.brokers.locks
    return process, done.record


def _differences(expected: Json, actual: Json) -> list[str]:
    return [
        f"{field}: expected {expected.get(field)!r}, got {actual.get(field)!r}"
        for field in sorted(expected.keys() | actual.keys())
        if expected.get(field) != actual.get(field)
    ]


def _recorded(entry: Json) -> Json:
    """A recorded pass, flat: lists over all topics, absent fields filled in."""
    fields: Json = {name: entry.get(name, absent) for name, absent in SCALARS.items()}
    fields |= {name: entry[name] for name in entry.keys() - SCALARS.keys() - {"topics"}}
    for name in LISTS:
        rows = [
            (topic, *row)
            for topic, recorded in entry["topics"].items()
            for row in recorded.get(name, [])
        ]
        fields[name] = sorted(rows)
    fields["changed"] = {}
    for topic, recorded in entry["topics"].items():
        if changed := recorded.get("changed"):
            # A third element is the topic of a foreign queue.
            own = sorted((*(row[2:] or [topic]), *row[:2]) for row in changed["mq_divided"])
            fields["changed"][topic] = (changed["mq_all_size"], own)
        for name in recorded.keys() - set(LISTS) - {"changed", "subscribed"}:
            fields[f"{topic}.{name}"] = recorded[name]  # a field we do not know: a difference
    return fields


def _computed(process: ClientProcess, record: PassRecord) -> Json:
    """Our pass in the shape of `_recorded`."""
    push = process.is_push
    live: list[MessageQueue] = [q for q, state in process.table.items() if not state.dropped]
    return {
        "balanced": record.balanced,
        "pull_threshold_for_queue": process.threshold_for_queue if push else None,
        "pull_threshold_size_for_queue": process.threshold_size_for_queue if push else None,
        "heartbeats": record.heartbeats,
        "rebalance_later_ms": record.rebalance_later_ms,
        "first_pull_delay_ms": record.first_pull_delay_ms,
        "queues": sorted(map(tuple, live)),
        "zombies": sorted(tuple(q) for q, state in process.table.items() if state.dropped),
        "added": sorted((*queue, offset) for queue, offset in record.added.items()),
        "removed": sorted(map(tuple, record.removed)),
        "removal_failed": sorted(map(tuple, record.removal_failed)),
        "truncated": sorted(map(tuple, record.truncated)),
        "persisted": sorted((*queue, offset) for queue, offset in record.persisted.items()),
        "locks": sorted((*queue, granted) for queue, granted in record.locks),
        "delayed_unlocks": sorted((*queue, ms) for queue, ms in record.delayed_unlocks.items()),
        "changed": {
            topic: (changed.mq_all_size, sorted(map(tuple, changed.mq_divided)))
            for topic, changed in record.changed.items()
        },
    }
