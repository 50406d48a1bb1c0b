"""A group's retry topic: a queue on each broker that has one of its topics (rocketmq.md §3.4)."""

from functools import lru_cache

import numpy as np

from rebalance_core.model.group_settings import BROADCASTING, PROXY_REBALANCE, PUSH
from rebalance_core.model.queue import retry_topic
from rebalance_core.model.times import DAY_MS
from rebalance_core.synthetic.draws import Draws
from rebalance_core.synthetic.fleet import FleetPlan
from rebalance_core.synthetic.groups import FleetGroup
from rebalance_core.synthetic.queue_table import QueueTable
from rebalance_core.synthetic.topics import READ_WRITE, Topic, TopicConfig, topic_of

RETRY_TOPIC_AGE_MS = (1.0 * DAY_MS, 700.0 * DAY_MS)
PER_KILOSECOND = (1.0, 200.0)
NO_FAILURE_CHANCE = 0.3


@lru_cache(maxsize=16)
def retry_table(plan: FleetPlan, group_number: int, group: FleetGroup) -> QueueTable | None:
    """Return the retry queues, or None for groups without a retry topic.

    A broker's retry queue appears with the first of the group's topics on it. A retry queue that
    predates the trace is as old as the group.
    """
    settings = group.settings
    if settings.consumer_type != PUSH or settings.message_model == BROADCASTING:
        return None
    if settings.rebalance_mode == PROXY_REBALANCE:
        return None
    draws = Draws(plan.seed, "retry", group_number)
    born_ms = plan.start_ms - int(draws.scattered(*RETRY_TOPIC_AGE_MS))
    rate = 0 if draws.chance(NO_FAILURE_CHANCE) else int(draws.scattered(*PER_KILOSECOND))
    first: dict[int, int] = {}
    for number in group.topics:
        for config in topic_of(plan, group.cluster.number, number).history:
            first[config.broker] = min(first.get(config.broker, config.at_ms), config.at_ms)
    history = tuple(
        TopicConfig(at_ms, broker, 1, 1, READ_WRITE) for broker, at_ms in sorted(first.items())
    )
    topic = Topic(retry_topic(group.name), -1, born_ms, rate, history)
    count = len(history)
    born = [born_ms if config.at_ms == plan.start_ms else config.at_ms for config in history]
    return QueueTable(
        group.cluster,
        topic,
        np.array([config.broker for config in history], np.int64),
        np.zeros(count, np.int64),
        np.array(born, np.int64),
        np.full(count, rate, np.int64),
    )
