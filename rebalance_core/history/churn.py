"""Who came and went in one night, counted by clock hour."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rebalance_core.audit.case import PERSISTENT_MS
from rebalance_core.model.times import HOUR_MS

CHANGES = pa.schema(
    [
        ("cluster", pa.string()),
        ("consumer_group", pa.string()),
        ("host", pa.string()),
        ("epoch", pa.int32()),
        ("at_ms", pa.int64()),
        ("joined", pa.bool_()),
        ("short", pa.bool_()),
    ]
)
"""A process that joined, or ended: in which epoch, when; ``short``: it ended before the group had
surely settled after its join."""
_PROCESS = ("cluster", "consumer_group", "client_id", "channel_id")
_SUBJECT = ["cluster", "consumer_group", "host"]


def comings_and_goings(memberships: pa.Table) -> pa.Table:
    """List the joins and ends of processes after the first epoch, with the columns of `CHANGES`.

    Args:
        memberships: rows of the ledger's table. Stretches of one process that follow each other
            are one stay; settings changed between them.
    """
    order = [(name, "ascending") for name in (*_PROCESS, "from_epoch")]
    rows = memberships.sort_by(order).combine_chunks()
    if not len(rows):
        return CHANGES.empty_table()
    first, ends = (np.asarray(rows[name].to_numpy()) for name in ("from_epoch", "from_ms"))
    follows = np.ones(len(rows), bool)
    for name in _PROCESS:
        codes = rows[name].dictionary_encode().combine_chunks().indices
        codes = np.asarray(pc.fill_null(codes, -1))
        follows[1:] &= codes[1:] == codes[:-1]
    until = np.asarray(pc.fill_null(rows["to_epoch"], -1))
    follows[0] = False
    follows[1:] &= until[:-1] == first[1:]
    begins = np.flatnonzero(~follows)
    last = np.append(begins[1:], len(rows)) - 1
    over = until[last] >= 0
    ended = last[over]
    stay_ms = np.asarray(rows["to_ms"].take(ended)) - ends[begins[over]]
    short = (first[begins[over]] > 0) & (stay_ms <= PERSISTENT_MS)
    joined = begins[first[begins] > 0]
    at = np.concatenate([joined, ended])
    is_join = np.arange(len(at)) < len(joined)
    columns = [
        rows["cluster"].take(at),
        rows["consumer_group"].take(at),
        hosts_of(rows["client_id"].take(at)),
        pa.array(np.where(is_join, first[at], until[at]), pa.int32()),
        pa.array(np.where(is_join, ends[at], np.asarray(pc.fill_null(rows["to_ms"], 0))[at])),
        pa.array(is_join),
        pa.array(np.concatenate([np.zeros(len(joined), bool), short])),
    ]
    return pa.table(columns, schema=CHANGES)


def hosts_of(client_ids: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return what each client id has before its first @."""
    return pc.list_element(pc.split_pattern(client_ids, "@", max_splits=1), 0)


def churn_of(changes: pa.Table) -> pa.Table:
    """Count joins, ends and short stays of each host of a group by clock hour.

    Returns:
        cluster, consumer_group, host, hour_ms, joins, leaves, short, first_ms; one row for each
        hour with a change.
    """
    hour = pc.multiply(pc.divide(changes["at_ms"], HOUR_MS), HOUR_MS)
    rows = changes.append_column("hour_ms", hour)
    numbers = {
        "joins": changes["joined"],
        "leaves": pc.invert(changes["joined"]),
        "short": changes["short"],
    }
    rows = rows.select([*_SUBJECT, "hour_ms", "at_ms"])
    for name, values in numbers.items():
        rows = rows.append_column(name, values.cast(pa.int64()))
    made = rows.group_by([*_SUBJECT, "hour_ms"], use_threads=False).aggregate(
        [*((name, "sum") for name in numbers), ("at_ms", "min")]
    )
    names = {"at_ms_min": "first_ms", **{f"{name}_sum": name for name in numbers}}
    return made.rename_columns([names.get(name, name) for name in made.column_names])
