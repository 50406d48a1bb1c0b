"""A group after a change: who is there then, and which queues."""

from __future__ import annotations

from dataclasses import replace

from rebalance_core.model.errors import did_you_mean
from rebalance_core.model.queue import MessageQueue, queue_sort_key
from rebalance_core.planning.strategies.known_strategies import as_planning_strategy
from rebalance_core.planning.what_if.change import Change
from rebalance_core.planning.what_if.new_client_ids import new_client_ids
from rebalance_core.planning.what_if.planned_group import (
    PlannedGroup,
    Process,
    refuse,
    sort_processes,
)
from rebalance_core.planning.what_if.request_modes import check_topics, read_request_modes

Queues = dict[str, tuple[MessageQueue, ...]]


def apply_change(group: PlannedGroup, change: Change) -> PlannedGroup:
    """The group after all of the change, done at once.

    Consumers leave, topics are created (all members read a new one), brokers are lost, consumers
    join and read all topics of the group. New ids also differ from those of members that leave.

    Raises:
        UsageError: Every client id, broker or number that does not fit the group.
    """
    mistakes: list[str] = []
    queues = _queues(group, change, mistakes)
    new_topics = queues.keys() - group.queues.keys()
    staying = _without(group, change, mistakes)
    modes = read_request_modes("request_modes", change.request_modes, mistakes)
    check_topics(modes, queues, mistakes)
    refuse(mistakes)
    topics = group.topics | new_topics
    processes: list[Process] = [(client_id, read | new_topics) for client_id, read in staying]
    joining = new_client_ids(change.add_consumers, set(group.client_ids), change.client_id_template)
    processes += [(client_id, topics) for client_id in joining]
    if processes:
        topics = frozenset[str]().union(*(read for _, read in processes))
    return replace(
        group,
        processes=sort_processes(processes),
        queues=queues,
        strategy=as_planning_strategy(change.strategy or group.strategy),
        topics=topics,
        request_modes={**group.request_modes, **modes},
        rebalance_mode=change.rebalance_mode or group.rebalance_mode,
    )


def _queues(group: PlannedGroup, change: Change, mistakes: list[str]) -> Queues:
    """Scaled, new and lost queues; a topic keeps its place even with none left."""
    queues: Queues = dict(group.queues)
    for topic, numbers in change.queues.items():
        untouched = [q for q in queues.get(topic, ()) if q.broker_name not in numbers]
        scaled = [MessageQueue(topic, b, i) for b, n in numbers.items() for i in range(n)]
        queues[topic] = tuple(sorted(untouched + scaled, key=queue_sort_key))
    brokers = sorted({queue.broker_name for of_topic in queues.values() for queue in of_topic})
    for broker in change.lose_broker:
        if broker not in brokers:
            mistakes.append(
                f"lose_broker: {broker!r} has no queue of the group; brokers:"
                f" {', '.join(brokers) or 'none'}{did_you_mean(broker, brokers)}"
            )
    return {
        topic: tuple(queue for queue in of_topic if queue.broker_name not in change.lose_broker)
        for topic, of_topic in queues.items()
    }


def _without(group: PlannedGroup, change: Change, mistakes: list[str]) -> list[Process]:
    """The processes that stay."""
    leaving, processes = change.remove_consumers, list(group.processes)
    if isinstance(leaving, int):
        if leaving > len(processes):
            mistakes.append(f"remove_consumers = {leaving}: the group has only {len(processes)}")
        return processes[: max(0, len(processes) - leaving)]
    for client_id in leaving:
        place = next((i for i, (present, _) in enumerate(processes) if present == client_id), None)
        if place is None:
            present = group.client_ids
            mistakes.append(
                f"remove_consumers: {client_id!r} is not there (any more); members:"
                f" {', '.join(present) or 'none'}{did_you_mean(client_id, present)}"
            )
        else:
            del processes[place]
    return processes
