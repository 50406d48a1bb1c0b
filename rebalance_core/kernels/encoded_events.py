"""Rows of cluster_events as arrays, each group's in chronological order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rebalance_core.kernels import group_rows
from rebalance_core.kernels.group_rows import Groups
from rebalance_core.kernels.segments import Bools, Ints, first_of_run
from rebalance_core.kernels.table_columns import (
    EVENTS,
    Columns,
    Key,
    list_pointers,
)
from rebalance_core.kernels.topic_sets import TopicSets
from rebalance_core.model import events
from rebalance_core.model.events import EVENT_TYPES, EXPIRED, OBSERVED, Event
from rebalance_core.model.intervals import Intervals
from rebalance_core.model.queue import RETRY_TOPIC_PREFIX
from rebalance_core.model.request_mode import parse_request_mode
from rebalance_core.protocol.routes import DEFAULT_PERM, PERM_READ
from rebalance_core.protocol.settling_windows import notices_of, window_ms

CONSUMER_TYPES = len(events.CONSUMER_EVENTS)
"""Event types below this concern a consumer."""
NO_SHARE = -(2**40)
"""A number that no REQUEST_MODE can state."""


def type_code(event_type: str) -> int:
    """Return the index into `EVENT_TYPES`."""
    return EVENT_TYPES.index(event_type)


@dataclass(frozen=True, slots=True)
class Events:
    """Events, with one value per event; an event's index is its ordinal in chronological order."""

    row: Ints
    """The row in the input."""
    group: Ints
    at_ms: Ints
    instant: Ints
    """The number of the (group, event_ms)."""
    type: Ints
    client: Ints
    channel: Ints
    topic: Ints
    broker: Ints
    readable: Ints
    """The number of queues that a TOPIC_CONFIG makes readable."""
    subscriptions: Ints
    """The number of the set of topics that a CONSUMER_JOIN subscribes to."""
    words: dict[str, Ints]
    """A member's own words (`OWN_WORDS`) after a CONSUMER_JOIN, and its language; -1: none."""
    broker_version: Ints
    """The word of the version that a BROKER_UP names; -1: none."""
    observed: Bools
    window_ms: Ints
    share: Ints
    """The share number of a REQUEST_MODE of POP; `NO_SHARE` for PULL and for other events."""
    mode: Ints
    """What slaves do after a MASTER_DOWN, as an index into `MASTER_MODES`; -1: unknown, or another
    event.
    """

    def __len__(self) -> int:
        return len(self.group)


def read_events(
    table: Columns, group: Ints, codes: Mapping[Key, Ints], groups: Groups, sets: TopicSets
) -> Events:
    """Return the events, sorted by group, moment and sequence.

    Args:
        table: cluster_events.
        group: the number of each row's group.
        codes: the codes for the names in all columns.
        groups: supplies the fields that a join lacks.
        sets: receives the joins' subscriptions.
    """
    at_ms, sequence = table.ints("event_ms"), table.ints("sequence")
    order = np.lexsort((sequence, at_ms, group))
    sorted_group = group[order]
    lists = table.lists("subscriptions")
    stated = sets.numbers(
        codes[EVENTS, "subscriptions"], list_pointers(lists), groups.retry_topic[group]
    )
    subscriptions = np.where(
        lists.is_null().to_numpy(zero_copy_only=False), groups.subscriptions[group], stated
    )
    words = {
        name: np.where(codes[EVENTS, name] < 0, getattr(groups, name)[group], codes[EVENTS, name])
        for name in group_rows.OWN_WORDS
    }
    words[group_rows.LANGUAGE_WORD] = codes[EVENTS, group_rows.LANGUAGE_WORD]
    types = _types(table)
    perm = table.ints("perm", null=DEFAULT_PERM)
    read_queue_nums = table.ints("read_queue_nums", null=0)
    return Events(
        row=order,
        group=sorted_group,
        at_ms=at_ms[order],
        instant=np.cumsum(first_of_run(sorted_group, at_ms[order])) - 1,
        type=types[order],
        client=codes[EVENTS, "client_id"][order],
        channel=codes[EVENTS, "channel_id"][order],
        topic=codes[EVENTS, "topic"][order],
        broker=codes[EVENTS, "broker_name"][order],
        readable=np.where(perm & PERM_READ, read_queue_nums, 0)[order],
        subscriptions=subscriptions[order],
        words={name: values[order] for name, values in words.items()},
        broker_version=np.where(types == type_code(events.BROKER_UP), codes[EVENTS, "version"], -1)[
            order
        ],
        observed=table.equal("detail", OBSERVED)[order],
        window_ms=_windows(table, codes, order, group, types, groups),
        share=_shares(table, types)[order],
        mode=_modes(table, types)[order],
    )


def _types(table: Columns) -> Ints:
    encoded = table.strings("event_type").dictionary_encode()
    type_codes = np.array([type_code(name) for name in encoded.dictionary.to_pylist()], np.int64)
    return type_codes[encoded.indices.to_numpy()]


def _shares(table: Columns, types: Ints) -> Ints:
    shares = np.full(len(types), NO_SHARE, np.int64)
    modes = np.flatnonzero(types == type_code(events.REQUEST_MODE))
    if not len(modes):
        return shares
    topic, detail = (table.strings(name).take(pa.array(modes)) for name in ("topic", "detail"))
    encoded = detail.dictionary_encode()
    stated = [parse_request_mode(text).share_queue_num for text in encoded.dictionary.to_pylist()]
    share = np.array([NO_SHARE if number is None else number for number in stated], np.int64)
    retry = pc.starts_with(topic, RETRY_TOPIC_PREFIX).to_numpy(zero_copy_only=False)
    shares[modes] = np.where(retry, NO_SHARE, share[encoded.indices.to_numpy()])
    return shares


def _modes(table: Columns, types: Ints) -> Ints:
    modes = np.full(len(types), -1, np.int64)
    lost = types == type_code(events.MASTER_DOWN)
    if lost.any():
        for number, mode in enumerate(events.MASTER_MODES):
            modes[lost & table.equal("detail", mode)] = number
    return modes


def _windows(
    table: Columns, codes: Mapping[Key, Ints], order: Ints, group: Ints, types: Ints, groups: Groups
) -> Ints:
    """Return the window of each event, in order."""
    kinds, kind_of = np.unique(groups.intervals, axis=0, return_inverse=True)
    windows = np.stack(
        [_window_table(tuple(kind)) for kind in kinds.tolist()] or [_window_table(())]
    )
    expired, group = table.equal("detail", EXPIRED).astype(np.int64)[order], group[order]
    notices = np.zeros(len(order), np.int64)
    rows = np.flatnonzero(types[order] == type_code(events.NOTICES))
    if len(rows):
        detail = table.strings("detail").take(pa.array(order[rows])).to_pylist()
        switches = rows, group[rows], codes[EVENTS, "broker_name"][order][rows]
        _follow_notices(notices, group, table.ints("event_ms")[order], *switches, detail)
    notified = groups.notified.astype(np.int64)[group]
    return windows[kind_of.reshape(-1)[group], notices, notified, types[order], expired]


@lru_cache(maxsize=1024)
def _window_table(intervals: tuple[int, ...]) -> Ints:
    """Return the windows for clients' intervals.

    The axes are `NOTICE_MODES`, notified, `EVENT_TYPES` and expired.
    """
    spans = Intervals(*intervals)
    about = [[Event(0, 0, name), Event(0, 0, name, detail=EXPIRED)] for name in EVENT_TYPES]
    windows = [
        [
            [
                [window_ms(e, spans, notices_of(e, brokers, notified=on)) for e in both]
                for both in about
            ]
            for on in (False, True)
        ]
        for brokers in events.NOTICE_MODES
    ]
    return np.array(windows, np.int64)


def _follow_notices(
    notices: Ints, group: Ints, at_ms: Ints, rows: Ints, of: Ints, broker: Ints, detail: list[str]
) -> None:
    """Set how brokers notify members at each event.

    From an event's instant on, the slowest broker counts.
    """
    modes: dict[int, dict[int, int]] = {}
    for row, number, name, mode in zip(
        rows.tolist(), of.tolist(), broker.tolist(), detail, strict=True
    ):
        slowest = modes.setdefault(number, {})
        slowest[name] = events.NOTICE_MODES.index(mode)
        begin, end = np.searchsorted(group, (number, number + 1))
        first = begin + np.searchsorted(at_ms[begin:end], at_ms[row])
        notices[first:end] = max(slowest.values())
