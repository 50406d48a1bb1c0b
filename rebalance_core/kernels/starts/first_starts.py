"""Start offsets in queues for which no member of the group ever committed an offset."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from rebalance_core.kernels import segments
from rebalance_core.kernels.group_rows import TYPES
from rebalance_core.kernels.ownership.changes import OwnerChanges
from rebalance_core.kernels.ownership.prepared_groups import PreparedGroups
from rebalance_core.kernels.segments import Bools, Ints
from rebalance_core.kernels.starts.lookups import SeenOffsets, pick
from rebalance_core.kernels.starts.starts import (
    BROKER_ZERO,
    FIRST_ZERO,
    MAX_OFFSET,
    OK,
    RETRY_MAX,
    RETRY_ZERO,
    TIMESTAMP_SEARCH,
    UNKNOWN,
    Starts,
)
from rebalance_core.kernels.topic_runs import profiles_of
from rebalance_core.model.client_profile import NEVER_WITHOUT_COMMIT, ClientProfile
from rebalance_core.model.clients import JAVA_PROFILE
from rebalance_core.model.group_settings import LITE_PULL
from rebalance_core.protocol.start_offset import DEPRECATED_MODES, FIRST_OFFSET, TIMESTAMP


@dataclass(frozen=True, slots=True)
class _Asked:
    """The clients that ask, and the last observation before each, with one value per row."""

    queue: Ints
    earliest_ms: Ints
    latest_ms: Ints
    group: Ints
    retry: Bools
    seen: Bools
    min_offset: Ints
    max_offset: Ints
    zero: Bools
    never_zero: Bools
    """The broker's answer, as in `encoded_groups.Observations`."""
    open: Bools
    """Whether no observation after the window shows if the broker still gives that answer."""


def first_starts(
    prepared: PreparedGroups,
    offsets: SeenOffsets,
    adds: OwnerChanges,
    retry: Bools,
    *,
    asks_broker: bool,
) -> Starts:
    """Return `replay.start_rule.client_start` for many rows.

    Args:
        prepared: the groups.
        offsets: observations of their queues.
        adds: the rows.
        retry: for each row, whether it is a queue of a retry topic.
        asks_broker: False for BROADCASTING, whose offsets are in local files.
    """
    asked = _ask(prepared, offsets, adds, retry)
    starts = _client_starts(prepared, offsets, asked, adds)
    if not asks_broker:
        another = _of_clients(prepared, adds, lambda profile, _: profile is not JAVA_PROFILE)
        _put_unproven(another, offsets, asked, starts)
        return starts
    at_zero = (starts.offset == 0) & (starts.high == 0)
    starts.zero(at_zero & asked.seen & ~asked.never_zero, BROKER_ZERO)
    starts.put(
        ~at_zero & ~asked.seen, segments.NONE, segments.NONE, segments.NONE, segments.NONE, UNKNOWN
    )
    looked = ~at_zero & asked.seen
    rows, zeros, never = offsets.zeros_around(asked.queue, asked.earliest_ms, asked.latest_ms)
    always_zero = asked.zero & (zeros == rows) & ~asked.open
    always_client = asked.never_zero & (never == rows) & ~asked.open
    starts.zero(looked & always_zero, BROKER_ZERO)
    either = looked & ~always_zero & ~always_client
    starts.put(either & ~asked.never_zero, BROKER_ZERO, 0, 0, starts.high)
    np.copyto(starts.low, 0, where=either)
    waiting = _of_clients(prepared, adds, lambda profile, _: profile.start == NEVER_WITHOUT_COMMIT)
    starts.put(waiting, BROKER_ZERO, segments.NONE, 0, 0, UNKNOWN)
    starts.fail(waiting & asked.seen & always_client)
    starts.zero(waiting & asked.seen & always_zero, BROKER_ZERO)
    unproven = _of_clients(prepared, adds, lambda profile, mode: not profile.start_known(mode))
    _put_unproven(unproven, offsets, asked, starts)
    return starts


def _of_clients(
    prepared: PreparedGroups, adds: OwnerChanges, rule: Callable[[ClientProfile, str], bool]
) -> Bools:
    """Return whether the adding client is in another language and its profile satisfies the
    rule.
    """
    runs, encoded = prepared.roster.runs, prepared.encoded
    profiles = profiles_of(encoded, prepared.membership)
    if all(profile is JAVA_PROFILE for profile in profiles):
        return np.zeros(len(adds.queue), np.bool_)
    run = prepared.roster.run[adds.entry]
    words = np.stack([runs.state[run], runs.start_mode[run]])
    distinct, of = np.unique(words, axis=1, return_inverse=True)
    texts = encoded.names.words.to_pylist()
    satisfied = [rule(profiles[state], texts[mode]) for state, mode in distinct.T.tolist()]
    return np.array(satisfied, np.bool_)[of.reshape(-1)]


def _put_unproven(unproven: Bools, offsets: SeenOffsets, asked: _Asked, starts: Starts) -> None:
    """Set rows whose client's rule is unknown or unproven to any offset in the queue.

    A broker that certainly answers 0 gives all clients that answer.
    """
    if not unproven.any():
        return
    zero = (starts.rule == BROKER_ZERO) & (starts.offset == 0) & (starts.high == 0)
    top = offsets.max_by(asked.queue, asked.latest_ms, asked.earliest_ms)
    starts.put(unproven & ~zero, segments.NONE, segments.NONE, 0, top, UNKNOWN)


def _ask(
    prepared: PreparedGroups, offsets: SeenOffsets, adds: OwnerChanges, retry: Bools
) -> _Asked:
    """Return the last observations before the clients ask.

    A retry queue that was never observed was created by the group's own heartbeats, so it is empty.
    """
    epochs, groups = prepared.epochs, prepared.encoded.groups
    earliest_ms, group = epochs.from_ms[adds.epoch], epochs.group[adds.epoch]
    row = offsets.newest(adds.queue, earliest_ms)
    observed = offsets.any(adds.queue)
    created = retry & ~observed
    empty_is_zero = groups.empty_queue_is_zero[group]
    zero, never_zero = (
        np.append(values, False)[row] for values in (offsets.rows.zero, offsets.rows.never_zero)
    )
    min_offset = np.where(created, 0, pick(offsets.rows.min_offset, row))
    after = offsets.first_from(adds.queue, adds.latest_ms, earliest_ms)
    return _Asked(
        adds.queue,
        earliest_ms,
        adds.latest_ms,
        group,
        retry,
        seen=(row >= 0) | created,
        min_offset=min_offset,
        max_offset=np.where(created, 0, pick(offsets.rows.max_offset, row)),
        zero=np.where(created, empty_is_zero, zero),
        never_zero=np.where(created, ~empty_is_zero, never_zero),
        open=(after < 0) & (min_offset <= 0) & observed,
    )


def _client_starts(
    prepared: PreparedGroups, offsets: SeenOffsets, asked: _Asked, adds: OwnerChanges
) -> Starts:
    """Apply the client's own rule, with the bounds of the look-up that it makes."""
    roster, groups = prepared.roster, prepared.encoded.groups
    mode = roster.runs.start_mode[roster.run[adds.entry]]
    first, timestamp, deprecated = (
        np.isin(prepared.encoded.names.words, list(names))[mode]
        for names in ((FIRST_OFFSET,), (TIMESTAMP,), DEPRECATED_MODES)
    )
    starts = Starts.unknown(len(adds.queue))
    newest = offsets.max_by(asked.queue, asked.latest_ms, asked.earliest_ms)
    refused = deprecated & (groups.consumer_type[asked.group] == TYPES.index(LITE_PULL))
    starts.put(
        asked.seen,
        np.where(asked.retry, RETRY_MAX, MAX_OFFSET),
        asked.max_offset,
        asked.max_offset,
        newest,
    )
    starts.fail(asked.seen & refused)
    searching = np.flatnonzero(asked.seen & timestamp & ~asked.retry)
    starts.update(searching, _timestamp_starts(prepared, offsets, asked, newest, searching))
    always_zero = first | (asked.retry & ~timestamp)
    starts.zero(always_zero, np.where(asked.retry, RETRY_ZERO, FIRST_ZERO))
    return starts


def _timestamp_starts(
    prepared: PreparedGroups, offsets: SeenOffsets, asked: _Asked, newest: Ints, rows: Ints
) -> Starts:
    """Return `protocol.timestamp_search.timestamp_search_bounds` for many rows."""
    groups, group, queue = prepared.encoded.groups, asked.group[rows], asked.queue[rows]
    at_ms = groups.timestamp_ms[group]
    seen = offsets.rows
    floor = asked.min_offset[rows]
    before = offsets.last_before(queue, at_ms, asked.earliest_ms[rows])
    low = np.where(before >= 0, pick(seen.max_offset, before), floor)
    low = np.maximum(low - ~groups.exact_search[group], floor)
    earliest_ms, latest_ms = asked.earliest_ms[rows], asked.latest_ms[rows]
    from_ms = np.maximum(at_ms, offsets.emptied_ms(queue, earliest_ms))
    after = offsets.first_from(queue, from_ms, earliest_ms)
    later = offsets.first_from(queue, latest_ms, earliest_ms)
    later = np.where(later >= 0, later, offsets.newest(queue, latest_ms))
    later_floor = pick(seen.min_offset, later)
    high = np.where(
        after >= 0, np.maximum(pick(seen.max_offset, after), later_floor), segments.NONE
    )
    newest = newest[rows]
    most = np.where(high >= 0, np.minimum(high, newest), newest)
    top = np.where(newest >= 0, np.maximum(low, most), segments.NONE)
    starts = Starts.unknown(len(rows))
    starts.put(at_ms >= 0, TIMESTAMP_SEARCH, low, low, top, OK)
    return starts
