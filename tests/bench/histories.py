"""Histories of groups of a wanted size, as input tables: no randomness, nothing but what counts.

Names are numbered so that they sort like their numbers.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from rebalance_core.contracts import INPUT_TABLES
from rebalance_core.kernels.segments import Ints
from rebalance_core.model.events import BROKER_DOWN, CONSUMER_JOIN, CONSUMER_LEAVE, TOPIC_CONFIG

CLUSTER = "bench"
START_MS = 1_795_000_000_000
STEP_MS = 60_000
"""Between two epochs; longer than any window, so that none is transient."""
_SCHEMA = INPUT_TABLES["cluster_events"].arrow_schema()


@dataclass(frozen=True)
class Shape:
    """Groups that look alike: each has its own members, topics are shared by all.

    Attributes:
        groups: How many.
        members: Of each at most; the middle one leaves and comes back, epoch by epoch.
        topics: How many, all subscribed by all.
        brokers: All topics are on all of them.
        queues: Of each topic on each broker.
        epochs: Of each group.
    """

    groups: int
    members: int
    topics: int
    brokers: int
    queues: int
    epochs: int

    @property
    def cells(self) -> int:
        """Queues times epochs, over all groups."""
        return self.groups * self.topics * self.brokers * self.queues * self.epochs


def history(shape: Shape) -> pa.Table:
    """``cluster_events`` of a shape: all members join at once, then one event an epoch."""
    joins = np.arange(shape.members)
    turns = np.arange(shape.epochs - 1)
    leaves = turns % 2 == 0
    member = np.concatenate([joins, np.full(len(turns), shape.members // 2)])
    step = np.concatenate([np.ones(len(joins), np.int64), turns + 2])
    joined = np.concatenate([np.ones(len(joins), np.bool_), ~leaves])
    rows = len(member)
    group = np.repeat(np.arange(shape.groups), rows)
    everybody = consumer_events(
        group,
        np.tile(member, shape.groups),
        np.tile(step, shape.groups),
        np.tile(joined, shape.groups),
        range(shape.topics),
    )
    configured = topic_configs(range(shape.topics), [shape.queues] * shape.brokers, step=0)
    return numbered([configured, everybody])


def joining(members: int, brokers: int, queues: int) -> pa.Table:
    """``cluster_events`` of one group of one topic whose members come one after the other."""
    numbers = np.arange(members)
    group, joined = np.zeros(members, np.int64), np.ones(members, np.bool_)
    configured = topic_configs([0], [queues] * brokers, step=0)
    return numbered([configured, consumer_events(group, numbers, numbers + 1, joined, [0])])


def consumer_events(
    group: Ints, member: Ints, step: Ints, joined: np.ndarray, topics: Iterable[int]
) -> pa.Table:
    """Joins and leaves, one a row.

    Args:
        group: Number of the group.
        member: Number of the member.
        step: When, in steps.
        joined: True for a join, false for a leave.
        topics: What every member subscribes.
    """
    subscribed = pa.array([names("topic", topics)], pa.list_(pa.string()))
    place = pa.array(np.where(joined, 0, -1), mask=~joined)
    clients = named("client", member)
    return _table(
        len(group),
        event_ms=pa.array(START_MS + step * STEP_MS),
        event_type=pa.array([CONSUMER_LEAVE, CONSUMER_JOIN]).take(pa.array(joined.astype(int))),
        consumer_group=named("group", group),
        client_id=clients,
        channel_id=clients,
        subscriptions=subscribed.take(place),
        strategy=pa.array(["AVG"]).take(place),
    )


def topic_configs(topics: Iterable[int], queues: Sequence[int], step: int) -> pa.Table:
    """So many queues on each broker, of every topic."""
    numbers = np.array(list(topics))
    topic = np.repeat(numbers, len(queues))
    per_broker = pa.array(np.tile(np.array(queues, np.int32), len(numbers)))
    return _table(
        len(topic),
        event_ms=pa.array(np.full(len(topic), START_MS + step * STEP_MS)),
        event_type=pa.array([TOPIC_CONFIG] * len(topic)),
        topic=named("topic", topic),
        broker_name=named("broker", np.tile(np.arange(len(queues)), len(numbers))),
        read_queue_nums=per_broker,
        write_queue_nums=per_broker,
        perm=pa.array(np.full(len(topic), 6, np.int32)),
    )


def broker_down(broker: int, step: int) -> pa.Table:
    """One broker is lost."""
    return _table(
        1,
        event_ms=pa.array([START_MS + step * STEP_MS]),
        event_type=pa.array([BROKER_DOWN]),
        broker_name=named("broker", np.array([broker])),
    )


def numbered(parts: Sequence[pa.Table]) -> pa.Table:
    """The parts one after the other, with their order as ``sequence``."""
    rows = pa.concat_tables(parts).combine_chunks()
    place = rows.schema.get_field_index("sequence")
    return rows.set_column(place, _SCHEMA.field("sequence"), pa.array(np.arange(rows.num_rows)))


def names(kind: str, numbers: Iterable[int]) -> list[str]:
    """As `named`, in a list."""
    return [f"{kind}-{number:05d}" for number in numbers]


def named(kind: str, numbers: Ints) -> pa.Array:
    """``client-00017`` and the like, by number."""
    all_names = pa.array(names(kind, range(int(numbers.max(initial=0)) + 1)), pa.string())
    return all_names.take(pa.array(numbers))


def _table(rows: int, **columns: pa.Array) -> pa.Table:
    """Rows of ``cluster_events``; columns that are not given are null."""
    cluster = pa.array([CLUSTER]).take(pa.array(np.zeros(rows, np.int64)))
    given = {"cluster": cluster, "sequence": pa.array(np.zeros(rows, np.int64))} | columns
    arrays = [
        given[field.name] if field.name in given else pa.nulls(rows, field.type)
        for field in _SCHEMA
    ]
    return pa.Table.from_arrays(arrays, schema=_SCHEMA)
