"""Rows of ``holders``: when each process holds each queue, in the first futures."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from rebalance_core.contracts.propagation import HOLDERS
from rebalance_core.timing.group_timeline import GroupTimeline
from rebalance_core.timing.holdings import MeasuredHoldings
from rebalance_core.timing.options import MS_US
from rebalance_core.timing.timer_periods import BEFORE_ALL, NEVER

NO_HOLDERS = HOLDERS.arrow_schema().empty_table()


def holder_rows(
    timeline: GroupTimeline, held: MeasuredHoldings, seeds: NDArray[np.int64], before_seed: int
) -> pa.Table:
    """Return the rows of the seeds below ``before_seed``, by seed, queue and start.

    A holding that begins and ends in the same millisecond gets no row.

    Args:
        timeline: the played timeline.
        held: the holdings in all seeds.
        seeds: the seeds that were played.
        before_seed: only smaller seeds get rows.
    """
    from_ms, to_ms = held.start_us // MS_US, held.drop_us // MS_US
    wanted = np.flatnonzero((seeds[held.seed] < before_seed) & (from_ms < to_ms))
    order = np.lexsort(
        (held.lifetime[wanted], from_ms[wanted], held.queue[wanted], held.seed[wanted])
    )
    rows = wanted[order]
    lifetime, queue = pa.array(held.lifetime[rows]), pa.array(held.queue[rows])

    def of_lifetimes(name: str) -> pa.Array:
        values = [getattr(each, name) for each in timeline.lifetimes]
        return pa.array(values, pa.string()).take(lifetime)

    def of_queues(name: str, kind: pa.DataType) -> pa.Array:
        return pa.array([getattr(each, name) for each in timeline.queues], kind).take(queue)

    columns = {
        "cluster": pa.repeat(timeline.cluster, len(rows)),
        "consumer_group": pa.repeat(timeline.consumer_group, len(rows)),
        "seed": pa.array(seeds[held.seed[rows]]),
        "topic": of_queues("topic", pa.string()),
        "broker_name": of_queues("broker_name", pa.string()),
        "queue_id": of_queues("queue_id", pa.int32()),
        "client_id": of_lifetimes("client_id"),
        "channel_id": of_lifetimes("channel_id"),
        "from_ms": pa.array(from_ms[rows], mask=held.start_us[rows] == BEFORE_ALL),
        "to_ms": pa.array(to_ms[rows], mask=held.drop_us[rows] == NEVER),
    }
    schema = HOLDERS.arrow_schema()
    return pa.table([columns[name] for name in schema.names], schema=schema)


def held_from(rows: pa.Table, begin_ms: int) -> pa.Table:
    """Return the holdings that extend beyond a time."""
    return rows.filter(pc.fill_null(pc.greater(rows["to_ms"], begin_ms), True))
