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
    """The queues that the lists name, sorted by strategy, with a value per queue.

    Queues of topics that no row names are left out.
    """

    allocation: Ints
    """The strategy: index into `encoded_groups.EncodedGroups.strategies`."""
    topic: Ints
    broker: Ints
    queue_id: Ints


def listed_brokers(words: pa.StringArray) -> pa.StringArray:
    """Return the names of the brokers in the CONFIG texts among these words."""
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
    ):  # a group without a member may name one; otherwise resolving it raises an error
        return ()
    return strategy.queues or () if isinstance(strategy, Config) else ()


def read_lists(
    strategies: Iterable[AllocationStrategy], topics: pa.StringArray, brokers: pa.StringArray
) -> ConfigLists:
    """Return the lists of all CONFIG strategies, each queue once.

    Args:
        strategies: the strategies of all members.
        topics: the names that topic codes stand for.
        brokers: the names that broker codes stand for, `listed_brokers` included.
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
