"""Rows of committed_offsets: how far each group had read, where and when it could be queried.

A group reads a fixed time behind the newest message of each queue, and a nightly batch behind the
newest at its last run, so commits never go back or pass the end. Brokers store no client id with a
commit, so it is null; BROADCASTING clients keep their own offsets, collected from a few hosts only.
"""

from collections.abc import Iterator

import numpy as np

from rebalance_core.model.group_settings import BROADCASTING, PULL
from rebalance_core.model.times import DAY_MS, HOUR_MS, MINUTE_MS
from rebalance_core.synthetic.draws import Draws, key_of, noise
from rebalance_core.synthetic.fleet import FleetPlan
from rebalance_core.synthetic.groups import FleetGroup, group_of
from rebalance_core.synthetic.message_counts import Longs
from rebalance_core.synthetic.offset_columns import OffsetColumns, OffsetRows
from rebalance_core.synthetic.queue_table import QueueTable, queue_table
from rebalance_core.synthetic.retry_table import retry_table
from rebalance_core.synthetic.seats import Seats

COMMIT_COLUMNS = (
    "cluster",
    "consumer_group",
    "topic",
    "broker_name",
    "queue_id",
    "client_id",
    "observed_ms",
    "committed_offset",
)
LOCAL_STORES = 2  # hosts of a BROADCASTING group whose file was collected
BATCH_BEGUN_MS = 30 * MINUTE_MS  # after its hour; a batch has then read up to the newest message
STEADY = (0.5, 1.5)  # the lag of a queue, as a multiple of the group's


def committed_offsets(plan: FleetPlan, number: int) -> Iterator[OffsetColumns]:
    """Yield rows about a group (numbered over all clusters); none if it never committed.

    The plan's last moment is left out, because nothing starts after it.
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
    """Return when the group last read: at ``at_ms``, or in the last run of a batch."""
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
    # The group's life begins with the same draws: these are its first members' ids.
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
