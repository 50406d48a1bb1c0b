"""Offsets of a synthetic cluster: of its queues, and those its groups have committed."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from typing import Any

import numpy as np
import numpy.typing as npt

from rebalance_core.model.group_settings import BROADCASTING, PROXY_REBALANCE, PULL, PUSH
from rebalance_core.model.queue import retry_topic
from rebalance_core.model.times import DAY_MS, HOUR_MS, MINUTE_MS
from rebalance_core.synthetic.clusters import Cluster, Downtime, cluster_of
from rebalance_core.synthetic.draws import Draws, key_of, noise
from rebalance_core.synthetic.fleet import FleetPlan
from rebalance_core.synthetic.groups import FleetGroup, Seats, group_of
from rebalance_core.synthetic.topics import READ_WRITE, Topic, TopicConfig, topic_of

# How many messages came to a queue by an instant: whole numbers only, and never fewer later.
#
# Messages come at the topic's rate, more by day than by night, while the broker is up.

Longs = npt.NDArray[np.int64]

HOUR_WEIGHTS = (
    4, 3, 2, 2, 2, 3, 4, 7, 10, 14, 16, 15,
    14, 13, 15, 16, 15, 14, 13, 15, 16, 13, 9, 5,
)  # fmt: skip
"""Tenths of the mean rate, by local hour; they sum to 240."""

TENTHS = 10
KILOSECOND_MS = 1_000_000

_WEIGHTS = np.array(HOUR_WEIGHTS, np.int64)
_BEFORE = np.array([0, *accumulate(HOUR_WEIGHTS)], np.int64)


def weighted_ms(cluster: Cluster, at_ms: Longs) -> Longs:
    """Milliseconds since 1970, each counted with the weight of its hour at the cluster's place."""
    day, rest = np.divmod(at_ms + cluster.utc_offset_hours * HOUR_MS, DAY_MS)
    hour, ms = np.divmod(rest, HOUR_MS)
    weighted: Longs = (day * _BEFORE[-1] + _BEFORE[hour]) * HOUR_MS + _WEIGHTS[hour] * ms
    return weighted


def away_ms(cluster: Cluster, outages: Sequence[Downtime], at_ms: Longs) -> Longs:
    """Return how much of the `weighted_ms` until then a broker with these outages was away."""
    away = np.zeros_like(at_ms)
    for outage in outages:
        ends = np.clip(at_ms, outage.from_ms, outage.to_ms)
        begin = np.array([outage.from_ms], np.int64)
        away += weighted_ms(cluster, ends) - weighted_ms(cluster, begin)
    return away


def messages(per_kilosecond: Longs, flow_ms: Longs) -> Longs:
    """Messages in that much flow; a negative flow has none. Whole numbers below 2^63 throughout.

    Args:
        per_kilosecond: messages in 1,000 s of a mean hour.
        flow_ms: weighted milliseconds, those of outages taken off.
    """
    count: Longs = per_kilosecond * np.maximum(flow_ms, 0) // (TENTHS * KILOSECOND_MS)
    return count


# The queues of one topic with their message counts at any instant, as arrays.

RETENTION_MS = 72 * HOUR_MS  # fileReservedTime
UNEVEN = 0.1  # a queue's rate is up to this share above or below its topic's


@dataclass(frozen=True, slots=True, eq=False)
class QueueTable:
    """All queues a topic ever had, in the order of (broker, queue id).

    Arrays of one length: ``broker`` (index in the cluster), ``queue_id``, ``born_ms``,
    ``per_kilosecond``.
    """

    cluster: Cluster
    topic: Topic
    broker: Longs
    queue_id: Longs
    born_ms: Longs
    per_kilosecond: Longs

    def written(self, at_ms: Longs) -> Longs:
        """Messages ever written to each queue: the max offset at that instant.

        Args:
            at_ms: instants, one column a queue: of shape (queues,) or (any, queues), or (any, 1)
                for the same of all.
        """
        flow = self._flow(at_ms) - self._flow(self.born_ms)
        return messages(self.per_kilosecond, flow)

    def _flow(self, at_ms: Longs) -> Longs:
        flow = weighted_ms(self.cluster, at_ms)
        for number in set(self.broker.tolist()):
            outages = self.cluster.brokers[number].outages
            if outages:
                flow = flow - (self.broker == number) * away_ms(self.cluster, outages, at_ms)
        return flow

    def shown(self, at_ms: int, *, readable: bool) -> npt.NDArray[np.bool_]:
        """Tell which queues can be looked at: the broker is up and has them.

        Args:
            at_ms: the instant.
            readable: True: those consumers read; False: those that are written or read.
        """
        configs = self.topic.configs(at_ms)
        limits = np.zeros(len(self.cluster.brokers), np.int64)
        for number, config in configs.items():
            if self.cluster.brokers[number].is_up(at_ms):
                limits[number] = config.read if readable else max(config.read, config.write)
        return np.asarray(self.queue_id < limits[self.broker])


@lru_cache(maxsize=2048)
def queue_table(plan: FleetPlan, cluster_number: int, number: int) -> QueueTable:
    """The queues of topic ``number`` of a cluster."""
    cluster = cluster_of(plan, cluster_number)
    topic = topic_of(plan, cluster_number, number)
    born: dict[tuple[int, int], int] = {}
    writable: set[tuple[int, int]] = set()
    for config in topic.history:
        since_ms = topic.born_ms if config.at_ms == plan.start_ms else config.at_ms
        for queue_id in range(max(config.read, config.write)):
            queue = (config.broker, queue_id)
            born.setdefault(queue, since_ms)
            if queue_id < config.write:
                writable.add(queue)
    queues = sorted(born)
    columns = np.array(queues, np.int64).reshape(-1, 2)
    broker, ids = columns[:, 0], columns[:, 1]
    key = key_of(plan.seed, "queue-rates", cluster_number, number)
    uneven = 1.0 + UNEVEN * (2.0 * noise(key, broker, ids) - 1.0)
    written = np.array([queue in writable for queue in queues], np.bool_)
    rates = np.where(written, np.floor(topic.per_kilosecond * uneven), 0.0).astype(np.int64)
    born_ms = np.array([born[queue] for queue in queues], np.int64)
    return QueueTable(cluster, topic, broker, ids, born_ms, rates)


# A group's retry topic: one queue on each broker that has one of its topics (rocketmq.md §3.4).

RETRY_TOPIC_AGE_MS = (1.0 * DAY_MS, 700.0 * DAY_MS)
PER_KILOSECOND = (1.0, 200.0)
NO_FAILURE_CHANCE = 0.3


@lru_cache(maxsize=16)
def retry_table(plan: FleetPlan, group_number: int, group: FleetGroup) -> QueueTable | None:
    """The retry queues; None for groups without a retry topic.

    A broker's retry queue appears with the first of the group's topics on it. One that is there
    since before the trace is as old as the group.
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


# Columns of the offset tables, gathered piece by piece.

OffsetColumns = dict[str, Any]
"""Column name to an array or a list, all of one length; what is not there is null."""


class OffsetRows:
    """Collects pieces of columns; a plain value stands for a whole piece of it."""

    def __init__(self, *names: str) -> None:
        self._pieces: dict[str, list[Any]] = {name: [] for name in names}

    def add(self, length: int, **values: Any) -> None:
        """One more piece of ``length`` rows; every column is named."""
        if length:
            for name, pieces in self._pieces.items():
                value = values[name]
                if not isinstance(value, np.ndarray):
                    value = np.full(length, value, object if _is_text(value) else np.int64)
                pieces.append(value)

    def columns(self) -> OffsetColumns:
        """Everything added so far; no columns at all if there was nothing."""
        if not next(iter(self._pieces.values())):
            return {}
        return {name: np.concatenate(pieces) for name, pieces in self._pieces.items()}


def _is_text(value: Any) -> bool:
    return value is None or isinstance(value, str)


# Rows of queue_offsets: every queue that can be asked, at every moment of the plan.

QUEUE_COLUMNS = (
    "cluster", "topic", "broker_name", "queue_id", "observed_ms", "min_offset", "max_offset",
)  # fmt: skip


def topic_offsets(plan: FleetPlan, topic: int) -> Iterator[OffsetColumns]:
    """Rows about one topic (numbered over all clusters)."""
    yield _offsets(plan, queue_table(plan, *plan.place_of_topic(topic)))


def retry_offsets(plan: FleetPlan, group: int) -> Iterator[OffsetColumns]:
    """Rows about one group's retry topic."""
    table = retry_table(plan, group, group_of(plan, group))
    if table is not None:
        yield _offsets(plan, table)


def _offsets(plan: FleetPlan, table: QueueTable) -> OffsetColumns:
    rows = OffsetRows(*QUEUE_COLUMNS)
    names = np.array([broker.name for broker in table.cluster.brokers], object)
    moments = np.array(plan.moments, np.int64)[:, np.newaxis]
    lowest, highest = table.written(moments - RETENTION_MS), table.written(moments)
    for at_ms, low, high in zip(plan.moments, lowest, highest, strict=True):
        seen = table.shown(at_ms, readable=False)
        rows.add(
            int(seen.sum()),
            cluster=table.cluster.name,
            topic=table.topic.name,
            broker_name=names[table.broker[seen]],
            queue_id=table.queue_id[seen],
            observed_ms=at_ms,
            min_offset=low[seen],
            max_offset=high[seen],
        )
    return rows.columns()


# Rows of committed_offsets: how far each group had read, where and when that could be asked.
#
# A group reads a fixed time behind the newest message of each queue, a nightly batch behind that
# of its last run, so commits never go back and never pass the end. Brokers keep no client id with
# one, so it is null; BROADCASTING clients keep their own offsets, of which those of a few hosts
# were collected.

COMMIT_COLUMNS = (
    "cluster", "consumer_group", "topic", "broker_name", "queue_id", "client_id", "observed_ms",
    "committed_offset",
)  # fmt: skip
LOCAL_STORES = 2  # hosts of a BROADCASTING group whose file was collected
BATCH_BEGUN_MS = 30 * MINUTE_MS  # after its hour a batch has read up to the newest message
STEADY = (0.5, 1.5)  # of the group's lag: the lag of one queue


def committed_offsets(plan: FleetPlan, number: int) -> Iterator[OffsetColumns]:
    """Rows about one group (numbered over all clusters); none if it never committed.

    The last moment of the plan is left out: nothing starts after it.
    """
    group = group_of(plan, number)
    if group.lag_ms is None or group.settings.consumer_type == PULL:
        return
    tables = [queue_table(plan, group.cluster.number, topic) for topic in group.topics]
    retry = retry_table(plan, number, group)
    if retry is not None:
        tables.append(retry)
    rows = OffsetRows(*COMMIT_COLUMNS)
    for i, client_id in enumerate(_committers(plan, number, group)):
        for j, table in enumerate(tables):
            lag_ms = _lag_ms(plan, (number, i, j), group.lag_ms, table)
            _add(rows, plan, group, client_id, table, lag_ms)
    yield rows.columns()


def _add(
    rows: OffsetRows,
    plan: FleetPlan,
    group: FleetGroup,
    client_id: str | None,
    table: QueueTable,
    lag_ms: Longs,
) -> None:
    names = np.array([broker.name for broker in table.cluster.brokers], object)
    moments = plan.moments[:-1]
    reading_ms = _reading_ms(plan, group, np.array(moments, np.int64))
    commits = table.written(reading_ms[:, np.newaxis] - lag_ms)
    for at_ms, committed in zip(moments, commits, strict=True):
        read = table.shown(at_ms, readable=True)
        rows.add(
            int(read.sum()),
            cluster=group.cluster.name,
            consumer_group=group.name,
            topic=table.topic.name,
            broker_name=names[table.broker[read]],
            queue_id=table.queue_id[read],
            client_id=client_id,
            observed_ms=at_ms,
            committed_offset=committed[read],
        )


def _reading_ms(plan: FleetPlan, group: FleetGroup, at_ms: Longs) -> Longs:
    """When the group last read: now, or in the last run of a batch."""
    if group.batch_hour is None:
        return at_ms
    begin_ms = plan.start_ms + group.batch_hour * HOUR_MS + BATCH_BEGUN_MS
    last: Longs = begin_ms + (at_ms - begin_ms) // DAY_MS * DAY_MS
    return last


def _committers(plan: FleetPlan, number: int, group: FleetGroup) -> list[str | None]:
    if group.settings.message_model != BROADCASTING:
        return [None]
    if group.batch_hour is not None:
        return []  # its pods are gone, and their files with them
    # The same draws as the group's life begins with: these are its first members' ids.
    seats = Seats(group, plan.start_ms, Draws(plan.seed, "life", number))
    stores: list[str | None] = []
    for _ in range(min(group.size, LOCAL_STORES)):
        seat = seats.new_seat(plan.start_ms)
        stores.append(seats.new_process(seat, plan.start_ms).client_id)
    return stores


def _lag_ms(plan: FleetPlan, ids: tuple[int, int, int], lag_ms: int, table: QueueTable) -> Longs:
    low, high = STEADY
    key = key_of(plan.seed, "lag", *ids)
    share = low + (high - low) * noise(key, table.broker, table.queue_id)
    return np.floor(lag_ms * share).astype(np.int64)
