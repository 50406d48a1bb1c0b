"""Derives the final state of each topic on each broker."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rebalance_core.kernels.codes import encode
from rebalance_core.kernels.segments import Bools, Ints
from rebalance_core.model import events

_STATE = ("read_queue_nums", "write_queue_nums", "perm", "source")


_NEVER = np.iinfo(np.int64).min


def topic_states(cluster_events: pa.Table) -> pa.Table:
    """Return the last event of every topic on every broker; a cluster-wide deletion counts on each
    broker.

    ``deleted_ms``: when it was deleted there last. ``source``: the source of the last event,
    because a name server may still route a topic that a broker deleted; null for a cluster-wide
    deletion.
    """
    of_topics = pc.is_in(cluster_events["event_type"], pa.array(events.TOPIC_EVENTS))
    rows = cluster_events.filter(of_topics)
    topic, broker = _codes(rows)
    event_ms, sequence = rows["event_ms"].to_numpy(), rows["sequence"].to_numpy()
    order = np.lexsort((sequence, event_ms, broker, topic))
    rows, topic, broker = rows.take(pa.array(order)), topic[order], broker[order]
    event_ms, sequence = event_ms[order], sequence[order]
    new = np.ones(len(order), np.bool_)
    new[1:] = (topic[1:] != topic[:-1]) | (broker[1:] != broker[:-1])
    first, last = np.flatnonzero(new), np.flatnonzero(np.roll(new, -1))
    everywhere = broker[first] < 0
    gone_ms, gone_sequence = _gone(topic, event_ms, sequence, last[everywhere])
    deleted = pc.equal(rows["event_type"], events.TOPIC_DELETED).to_numpy()
    deleted_ms = np.where(deleted, event_ms, _NEVER)
    there_ms = (np.maximum.reduceat(deleted_ms, first) if len(first) else deleted_ms)[~everywhere]
    last = last[~everywhere]
    topic, event_ms, sequence = topic[last], event_ms[last], sequence[last]
    gone_ms, gone_sequence = gone_ms[topic], gone_sequence[topic]
    gone = (gone_ms > event_ms) | ((gone_ms == event_ms) & (gone_sequence > sequence))
    return _states(rows.take(pa.array(last)), gone, gone_ms, np.maximum(there_ms, gone_ms))


def _codes(rows: pa.Table) -> tuple[Ints, Ints]:
    """Return dense codes of (cluster, topic), and codes of brokers, -1 for all brokers."""
    _, (cluster,) = encode(rows["cluster"])
    names, (topic,) = encode(rows["topic"])
    _, (broker,) = encode(rows["broker_name"])
    _, dense = np.unique(cluster * len(names) + topic, return_inverse=True)
    return dense.astype(np.int64), broker


def _gone(topic: Ints, event_ms: Ints, sequence: Ints, last: Ints) -> tuple[Ints, Ints]:
    """Return the time and sequence of the last event of each topic on all brokers at once."""
    topics = int(topic.max(initial=-1)) + 1
    gone_ms = np.full(topics, _NEVER, np.int64)
    gone_sequence = np.full(topics, _NEVER, np.int64)
    gone_ms[topic[last]], gone_sequence[topic[last]] = event_ms[last], sequence[last]
    return gone_ms, gone_sequence


def _states(last: pa.Table, gone: Bools, gone_ms: Ints, deleted_ms: Ints) -> pa.Table:
    kind = pc.if_else(pa.array(gone), events.TOPIC_DELETED, last["event_type"])
    event_ms = pc.if_else(pa.array(gone), pa.array(gone_ms), last["event_ms"])
    columns = {name: last[name] for name in ("cluster", "topic", "broker_name")}
    columns |= {"event_ms": event_ms, "event_type": kind}
    columns |= {name: last[name] for name in _STATE}
    columns["source"] = pc.if_else(pa.array(gone), None, last["source"])
    columns["deleted_ms"] = pa.array(deleted_ms, mask=deleted_ms == _NEVER)
    return pa.table(columns)
