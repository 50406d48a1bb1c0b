"""The queues that CONFIG strategies list."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from rebalance_core.kernels.segments import Ints
from rebalance_core.model.errors import UsageError
from rebalance_core.model.queue import MessageQueue
from rebalance_core.strategies import AllocationStrategy, parse_strategy
from rebalance_core.strategies.config import Config

NAME = Config().name


@dataclass(frozen=True, slots=True)
class ConfigLists:
    """The queues in the lists, sorted by strategy, with one value per queue.

    Queues of topics that no row names are left out.
    """

    allocation: Ints
    """The strategy, as an index into `encoded_groups.EncodedGroups.strategies`."""
    topic: Ints
    broker: Ints
    queue_id: Ints


def listed_brokers(words: pa.StringArray) -> pa.StringArray:
    """Return the broker names in the CONFIG texts among these words."""
    names: set[str] = set()
    for text in words.to_pylist():
        if text.startswith(NAME):
            names.update(queue.broker_name for queue in _queues(text))
    return pa.array(sorted(names), pa.string())


def _queues(text: str) -> Iterable[MessageQueue]:
    try:
        strategy = parse_strategy(text)
    except (
        UsageError
    ):  # a group without members may name one; otherwise, resolving it raises an error
        return ()
    return strategy.queues or () if isinstance(strategy, Config) else ()


def read_lists(
    strategies: Iterable[AllocationStrategy], topics: pa.StringArray, brokers: pa.StringArray
) -> ConfigLists:
    """Return the lists of all CONFIG strategies, each queue once.

    Args:
        strategies: the strategies of all members.
        topics: the names that topic codes stand for.
        brokers: the names that broker codes stand for, including `listed_brokers`.
    """
    lists = [(number, s) for number, s in enumerate(strategies) if isinstance(s, Config)]
    rows: dict[tuple[int, int, int, int], None] = {}
    if any(strategy.queues for _, strategy in lists):
        topic_codes = {name: code for code, name in enumerate(topics.to_pylist())}
        broker_codes = {name: code for code, name in enumerate(brokers.to_pylist())}
        for number, strategy in lists:
            for topic, broker, queue_id in strategy.queues or ():
                if topic in topic_codes:
                    rows[number, topic_codes[topic], broker_codes[broker], queue_id] = None
    columns = np.array(list(rows), np.int64).reshape(-1, 4).T
    return ConfigLists(*columns)
