"""Queues by their number on each broker: topic -> broker name -> number of queues."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rebalance_core.model.queue import MessageQueue
from rebalance_core.planning.strategies.planning_strategy import by_topic

MOST_QUEUES = 65_536
"""On one broker; more is taken for a mistake. The same limit as that of the input tables."""


def check_queue_numbers(name: str, numbers: Any, mistakes: list[str]) -> dict[str, dict[str, int]]:
    """The valid part of the mapping; the rest becomes mistakes.

    Args:
        name: How messages call the mapping.
        numbers: Topic -> broker name -> number of queues, 0 or more.
        mistakes: Gets one sentence per mistake.
    """
    example = 'e.g. {"orders": {"broker-a": 8}}'
    if not isinstance(numbers, Mapping) or not numbers:
        mistakes.append(
            f"{name} = {numbers!r}: expected topic -> broker -> number of queues, {example}"
        )
        return {}
    right: dict[str, dict[str, int]] = {}
    for topic, brokers in numbers.items():
        if not isinstance(topic, str) or not topic:
            mistakes.append(f"{name}: {topic!r} is not a topic")
            continue
        right[topic] = {}
        if not isinstance(brokers, Mapping) or not brokers:
            mistakes.append(
                f"{name}.{topic} = {brokers!r}: expected broker -> number of queues, {example}"
            )
            continue
        for broker, number in brokers.items():
            if not isinstance(broker, str) or not broker:
                mistakes.append(f"{name}.{topic}: {broker!r} is not a broker name")
            elif not _is_number_of_queues(number):
                mistakes.append(
                    f"{name}.{topic}.{broker} = {number!r}: expected a whole number from 0 to"
                    f" {MOST_QUEUES:,}"
                )
            else:
                right[topic][broker] = number
    return right


def queues_of_numbers(
    name: str, numbers: Any, mistakes: list[str]
) -> dict[str, tuple[MessageQueue, ...]]:
    """Each topic's queues 0 to n - 1 of each broker, in RocketMQ's order; arguments as above.

    >>> [str(q.queue_id) + q.broker_name
    ...  for q in queues_of_numbers("queues", {"T": {"b": 1, "a": 2}}, [])["T"]]
    ['0a', '1a', '0b']
    """
    right = check_queue_numbers(name, numbers, mistakes)
    queues = [
        MessageQueue(topic, broker, queue_id)
        for topic, brokers in right.items()
        for broker, number in brokers.items()
        for queue_id in range(number)
    ]
    sorted_queues = by_topic(queues)
    return {topic: tuple(sorted_queues.get(topic, ())) for topic in right}


def _is_number_of_queues(number: Any) -> bool:
    return isinstance(number, int) and not isinstance(number, bool) and 0 <= number <= MOST_QUEUES
