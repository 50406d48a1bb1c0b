"""Rows of cluster_events, queue_offsets and committed_offsets as arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rebalance_core.kernels.codes.codes import (
    COMMITS,
    EVENTS,
    OFFSETS,
    Columns,
    Key,
    TopicSets,
    list_pointers,
)
from rebalance_core.kernels.codes.group_rows import OWN_WORDS, Groups
from rebalance_core.kernels.segments import Bools, Ints, first_of_run
from rebalance_core.model import events
from rebalance_core.model.events import EVENT_TYPES, EXPIRED, OBSERVED, Event
from rebalance_core.model.group_settings import parse_request_mode
from rebalance_core.model.queue import RETRY_TOPIC_PREFIX
from rebalance_core.protocol.routes import DEFAULT_PERM, PERM_READ
from rebalance_core.protocol.windows import window_ms

# Rows of cluster_events as arrays, each group's in the order they happened.

CONSUMER_TYPES = len(events.CONSUMER_EVENTS)
"""Types below this are about a consumer."""
NO_SHARE = -(2**40)
"""No number that a REQUEST_MODE may state."""


def type_code(event_type: str) -> int:
    """Index into `EVENT_TYPES`."""
    return EVENT_TYPES.index(event_type)


@dataclass(frozen=True, slots=True)
class Events:
    """One value an event; its index is its ordinal: the order of what happened."""

    row: Ints
    """Which row of the input this is."""
    group: Ints
    at_ms: Ints
    instant: Ints
    """Number of the (group, event_ms)."""
    type: Ints
    client: Ints
    channel: Ints
    topic: Ints
    broker: Ints
    readable: Ints
    """Queues a TOPIC_CONFIG makes readable."""
    subscriptions: Ints
    """Number of the set that a CONSUMER_JOIN subscribes."""
    words: dict[str, Ints]
    """A member's own words after a CONSUMER_JOIN (`OWN_WORDS`)."""
    broker_version: Ints
    """Word of the version that a BROKER_UP names; -1: none."""
    observed: Bools
    window_ms: Ints
    share: Ints
    """What a REQUEST_MODE of POP shares; `NO_SHARE` for one of PULL and all others."""
    mode: Ints
    """What the slaves do from a MASTER_DOWN on: index into `MASTER_MODES`; -1: not known, or
    another event."""

    def __len__(self) -> int:
        return len(self.group)


def read_events(
    given: Columns, group: Ints, codes: Mapping[Key, Ints], groups: Groups, sets: TopicSets
) -> Events:
    """The events, sorted by group, moment and sequence.

    Args:
        given: cluster_events.
        group: the number of each row's group.
        codes: of the names in all columns.
        groups: what a join takes that states nothing.
        sets: gets the joins' subscriptions.
    """
    at_ms, sequence = given.ints("event_ms"), given.ints("sequence")
    order = np.lexsort((sequence, at_ms, group))
    sorted_group = group[order]
    lists = given.lists("subscriptions")
    stated = sets.numbers(
        codes[EVENTS, "subscriptions"], list_pointers(lists), groups.retry_topic[group]
    )
    subscriptions = np.where(
        lists.is_null().to_numpy(zero_copy_only=False), groups.subscriptions[group], stated
    )
    words = {
        name: np.where(codes[EVENTS, name] < 0, getattr(groups, name)[group], codes[EVENTS, name])
        for name in OWN_WORDS
    }
    types = _types(given)
    perm = given.ints("perm", null=DEFAULT_PERM)
    read_queue_nums = given.ints("read_queue_nums", null=0)
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
        observed=given.equal("detail", OBSERVED)[order],
        window_ms=_windows(types, given.equal("detail", EXPIRED))[order],
        share=_shares(given, types)[order],
        mode=_modes(given, types)[order],
    )


def _types(given: Columns) -> Ints:
    encoded = given.strings("event_type").dictionary_encode()
    known = np.array([type_code(name) for name in encoded.dictionary.to_pylist()], np.int64)
    return known[encoded.indices.to_numpy()]


def _shares(given: Columns, types: Ints) -> Ints:
    shares = np.full(len(types), NO_SHARE, np.int64)
    modes = np.flatnonzero(types == type_code(events.REQUEST_MODE))
    if not len(modes):
        return shares
    topic, detail = (given.strings(name).take(pa.array(modes)) for name in ("topic", "detail"))
    encoded = detail.dictionary_encode()
    said = [parse_request_mode(text).share_queue_num for text in encoded.dictionary.to_pylist()]
    share = np.array([NO_SHARE if number is None else number for number in said], np.int64)
    retry = pc.starts_with(topic, RETRY_TOPIC_PREFIX).to_numpy(zero_copy_only=False)
    shares[modes] = np.where(retry, NO_SHARE, share[encoded.indices.to_numpy()])
    return shares


def _modes(given: Columns, types: Ints) -> Ints:
    modes = np.full(len(types), -1, np.int64)
    lost = types == type_code(events.MASTER_DOWN)
    if lost.any():
        for number, mode in enumerate(events.MASTER_MODES):
            modes[lost & given.equal("detail", mode)] = number
    return modes


def _windows(types: Ints, expired: Bools) -> Ints:
    plain = np.array([window_ms(Event(0, 0, name)) for name in EVENT_TYPES], np.int64)
    late = np.array([window_ms(Event(0, 0, name, detail=EXPIRED)) for name in EVENT_TYPES])
    return np.where(expired, late[types], plain[types])


# Rows of queue_offsets and committed_offsets as arrays, sorted for look-ups by moment.


@dataclass(frozen=True, slots=True)
class Observations:
    """One value a row of queue_offsets, by group, topic, broker, queue id and moment."""

    group: Ints
    topic: Ints
    broker: Ints
    queue_id: Ints
    at_ms: Ints
    min_offset: Ints
    max_offset: Ints
    zero: Bools
    never_zero: Bools
    """What the broker answers to a group that never committed (rocketmq.md §5.3): 0, or not 0;
    neither where that depends on whether entry 0 is in memory, and nobody looked."""

    @classmethod
    def none(cls) -> Observations:
        """No row."""
        numbers = np.zeros(0, np.int64)
        return cls(*(numbers,) * 7, numbers > 0, numbers > 0)

    def with_emptied(self, emptied: Observations) -> Observations:
        """These rows and those of queues that were emptied, which count alone at their moment."""
        if not len(emptied.group):
            return self
        rows = [
            np.concatenate([getattr(emptied, f.name), getattr(self, f.name)]) for f in fields(self)
        ]
        is_seen = np.arange(len(rows[0])) >= len(emptied.group)
        group, topic, broker, queue_id, at_ms = rows[:5]
        order = np.lexsort((is_seen, at_ms, queue_id, broker, topic, group))
        moment = np.cumsum(first_of_run(*(row[order] for row in rows[:5])))
        gone = np.isin(moment, moment[~is_seen[order]]) & is_seen[order]
        again = ~is_seen[order] & ~first_of_run(moment)
        return Observations(*(row[order][~gone & ~again] for row in rows))


@dataclass(frozen=True, slots=True)
class Commits:
    """One value a row of committed_offsets, by group, queue, moment and offset."""

    group: Ints
    topic: Ints
    broker: Ints
    queue_id: Ints
    at_ms: Ints
    offset: Ints
    client: Ints


def read_observations(
    given: Columns, group: Ints, codes: Mapping[Key, Ints], groups: Groups
) -> Observations:
    """The observations of the groups' queues."""
    topic, broker = codes[OFFSETS, "topic"], codes[OFFSETS, "broker_name"]
    queue_id, at_ms = given.ints("queue_id"), given.ints("observed_ms")
    low, high = given.ints("min_offset"), given.ints("max_offset")
    empty_is_zero = groups.empty_queue_is_zero[group]
    cached, uncached = (
        given.bools("head_cached", null=False),
        ~given.bools("head_cached", null=True),
    )
    zero = (low <= 0) & np.where(high <= 0, empty_is_zero, cached)
    never_zero = (low > 0) | np.where(high <= 0, ~empty_is_zero, uncached)
    order = np.lexsort((at_ms, queue_id, broker, topic, group))
    return Observations(
        group[order], topic[order], broker[order], queue_id[order], at_ms[order],
        low[order], high[order], zero[order], never_zero[order],
    )  # fmt: skip


def read_commits(given: Columns, group: Ints, codes: Mapping[Key, Ints]) -> Commits:
    """The commits of the groups; of two seen at one moment the higher one is the newer."""
    topic, broker = codes[COMMITS, "topic"], codes[COMMITS, "broker_name"]
    queue_id, at_ms = given.ints("queue_id"), given.ints("observed_ms")
    offset = given.ints("committed_offset")
    order = np.lexsort((offset, at_ms, queue_id, broker, topic, group))
    columns = (group, topic, broker, queue_id, at_ms, offset, codes[COMMITS, "client_id"])
    return Commits(*(column[order] for column in columns))
