"""A topic: its brokers, its numbers of queues, and how they change."""

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import accumulate

from rebalance_core.model import events
from rebalance_core.model.times import DAY_MS, HOUR_MS, MINUTE_MS
from rebalance_core.synthetic.clusters import Cluster, cluster_of
from rebalance_core.synthetic.draws import Draws, Mix
from rebalance_core.synthetic.event_rows import FIRST_TOPIC, EventRows, Row
from rebalance_core.synthetic.fleet import FleetPlan
from rebalance_core.synthetic.names import topic_name

READ_WRITE, READ_ONLY = 6, 4  # PermName
QUEUES: Mix[int] = (
    (4, 45), (8, 33), (16, 6), (3, 4), (6, 3), (12, 2), (1, 3), (64, 0.8), (128, 0.2),
)  # fmt: skip
BROKERS: Mix[int] = (
    (1, 8),
    (2, 45),
    (3, 25),
    (4, 12),
    (6, 4),
    (16, 2),
)  # at most the existing brokers
UNEQUAL_CHANCE = 0.04  # write_queue_nums is not read_queue_nums
READ_ONLY_CHANCE = 0.02  # a broker accepts no more messages
CREATED_LATE_CHANCE = 0.03  # on the first day
CHANGES_PER_DAY = 0.012
CHANGES: Mix[str] = (("MORE_QUEUES", 5), ("ONE_MORE_BROKER", 3), ("FEWER_QUEUES", 1), ("DRAIN", 1))
ON_NEW_BROKER_CHANCE = 0.25

POPULARITY = 0.9  # exponent: the topic of rank r is chosen with weight 1 / (r + 1)^0.9
SILENT_CHANCE = 0.05
BUSIEST_PER_SECOND = 900.0
RATE_EXPONENT = 1.1
MOST_PER_KILOSECOND = 2_000_000  # per queue; a 64-bit count then lasts for more than ten years
AGE_MS = (6.0 * HOUR_MS, 700.0 * DAY_MS)


@dataclass(frozen=True, slots=True)
class TopicConfig:
    """Configuration of the topic on a broker (its index in the cluster) from ``at_ms`` on; 0
    queues: deleted.
    """

    at_ms: int
    broker: int
    read: int
    write: int
    perm: int = READ_WRITE


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic with its whole history, oldest first.

    ``born_ms`` is the arrival of its first messages; before the trace except for late topics.
    ``per_kilosecond`` is the number of messages per queue and 1,000 s in an average hour.
    """

    name: str
    number: int
    born_ms: int
    per_kilosecond: int
    history: tuple[TopicConfig, ...]

    def configs(self, at_ms: int) -> dict[int, TopicConfig]:
        """Return the configuration at an instant, by broker."""
        newest: dict[int, TopicConfig] = {}
        for config in self.history:
            if config.at_ms <= at_ms:
                newest[config.broker] = config
        return {broker: config for broker, config in newest.items() if config.write or config.read}


@lru_cache(maxsize=8192)
def topic_of(plan: FleetPlan, cluster_number: int, number: int) -> Topic:
    """Return topic ``number`` of a cluster; its number is its rank by popularity."""
    cluster = cluster_of(plan, cluster_number)
    draws = Draws(plan.seed, "topic", cluster_number, number)
    start_ms, born_ms = plan.start_ms, plan.start_ms - int(draws.scattered(*AGE_MS))
    # A popular topic is not created late, so only the rear half may be created during the trace.
    if draws.chance(CREATED_LATE_CHANCE * 2) and 2 * number >= plan.topics_in(cluster_number):
        start_ms = born_ms = start_ms + draws.between(MINUTE_MS, DAY_MS - HOUR_MS)
    history = _first_configs(draws, cluster, plan.start_ms, start_ms)
    queues = sum(config.write for config in history)
    per_second = BUSIEST_PER_SECOND / (number + 1) ** RATE_EXPONENT * draws.scattered(0.2, 5.0)
    rate = min(max(1, round(1000 * per_second / queues)), MOST_PER_KILOSECOND)
    rate = 0 if draws.chance(SILENT_CHANCE) else rate
    on_new_broker = _late_broker_config(draws, plan, cluster, history)
    for day in range(plan.days):
        history += _changes(plan, cluster, number, day, history)
    history += on_new_broker
    ordered = sorted(history, key=lambda config: config.at_ms)
    name = topic_name(plan.seed, cluster_number, number)
    return Topic(name, number, born_ms, rate, tuple(ordered))


def topic_events(plan: FleetPlan, topic: int) -> Iterator[list[Row]]:
    """Yield the rows of cluster_events about a topic (numbered over all clusters)."""
    cluster_number, number = plan.place_of_topic(topic)
    cluster = cluster_of(plan, cluster_number)
    made = topic_of(plan, cluster_number, number)
    rows = EventRows(cluster.name, FIRST_TOPIC + number)
    for config in made.history:
        where = {"topic": made.name, "broker_name": cluster.brokers[config.broker].name}
        if config.at_ms >= plan.end_ms:
            continue
        if config.read == config.write == 0:
            rows.add(config.at_ms, events.TOPIC_DELETED, **where)
            continue
        rows.add(
            config.at_ms,
            events.TOPIC_CONFIG,
            **where,
            read_queue_nums=config.read,
            write_queue_nums=config.write,
            perm=config.perm,
            detail=events.OBSERVED if config.at_ms == plan.start_ms else None,
        )
    yield rows.take()


@lru_cache(maxsize=64)
def _popularity(topics: int) -> tuple[float, ...]:
    return tuple(accumulate((rank + 1) ** -POPULARITY for rank in range(topics)))


def popular_topics(plan: FleetPlan, cluster: int, draws: Draws, count: int) -> tuple[int, ...]:
    """Return ``count`` distinct topic numbers, or all if there are fewer."""
    weights = _popularity(plan.topics_in(cluster))
    chosen: set[int] = set()
    while len(chosen) < min(count, len(weights)):
        chosen.add(min(bisect_right(weights, draws.random() * weights[-1]), len(weights) - 1))
    return tuple(sorted(chosen))


def _first_configs(
    draws: Draws, cluster: Cluster, trace_start_ms: int, at_ms: int
) -> list[TopicConfig]:
    old = [i for i, broker in enumerate(cluster.brokers) if broker.since_ms == trace_start_ms]
    brokers = sorted(draws.shuffled(old)[: draws.mixed(BROKERS)])
    read = write = draws.mixed(QUEUES)
    if draws.chance(UNEQUAL_CHANCE):
        read, write = draws.pick(((read, 2 * read), (2 * read, read)))
    configs = [TopicConfig(at_ms, broker, read, write) for broker in brokers]
    if len(configs) > 1 and draws.chance(READ_ONLY_CHANCE):
        configs[-1] = replace(configs[-1], perm=READ_ONLY)
    return configs


def _late_broker_config(
    draws: Draws, plan: FleetPlan, cluster: Cluster, history: list[TopicConfig]
) -> list[TopicConfig]:
    """Return the configurations of some topics on a broker added to the cluster."""
    last = len(cluster.brokers) - 1
    since_ms = cluster.brokers[last].since_ms
    later_ms = since_ms + draws.between(MINUTE_MS, 2 * HOUR_MS)
    wanted = draws.chance(ON_NEW_BROKER_CHANCE)
    if since_ms == plan.start_ms or not wanted or history[0].at_ms >= later_ms:
        return []
    return [replace(history[0], at_ms=later_ms, broker=last)]


def _changes(
    plan: FleetPlan, cluster: Cluster, number: int, day: int, history: list[TopicConfig]
) -> list[TopicConfig]:
    """Draw the changes that operators make to the topic on a day; usually none."""
    draws = Draws(plan.seed, "topic-changes", cluster.number, number, day)
    if not draws.chance(CHANGES_PER_DAY):
        return []
    at_ms = plan.start_ms + day * DAY_MS + draws.between(HOUR_MS, 23 * HOUR_MS)
    now = {config.broker: config for config in history if config.at_ms <= at_ms}
    now = {broker: config for broker, config in now.items() if config.read}
    if not now or max(config.at_ms for config in history) > at_ms:
        return []
    kind = draws.mixed(CHANGES)
    any_one = next(iter(now.values()))
    if kind == "ONE_MORE_BROKER":
        free = [i for i, b in enumerate(cluster.brokers) if i not in now and b.since_ms <= at_ms]
        return [replace(any_one, at_ms=at_ms, broker=draws.pick(free))] if free else []
    if kind == "DRAIN" and len(now) > 1:
        leaving = replace(now[max(now)], at_ms=at_ms, perm=READ_ONLY)
        return [leaving, replace(leaving, at_ms=at_ms + 30 * MINUTE_MS, read=0, write=0)]
    if kind == "FEWER_QUEUES" and any_one.read > 1:
        # First, writing stops; then reading.
        half = [replace(c, at_ms=at_ms, write=max(1, c.write // 2)) for c in now.values()]
        later = [replace(c, at_ms=at_ms + 30 * MINUTE_MS, read=c.write) for c in half]
        return half + later
    more = [replace(c, at_ms=at_ms, read=2 * c.read, write=2 * c.write) for c in now.values()]
    return more if any_one.read <= 64 else []
