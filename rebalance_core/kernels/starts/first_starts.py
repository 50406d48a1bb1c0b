"""The start of many new owners: rule, answer and bounds; those on queues that nobody ever
committed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields

import numpy as np

from rebalance_core.kernels import segments
from rebalance_core.kernels.cells import Queues
from rebalance_core.kernels.grid import OutageSpans, find_outages
from rebalance_core.kernels.group_rows import TYPES
from rebalance_core.kernels.ownership.changes import OwnerChanges
from rebalance_core.kernels.ownership.prepared_groups import PreparedGroups
from rebalance_core.kernels.roster import profiles_of
from rebalance_core.kernels.segments import Bools, Ints
from rebalance_core.kernels.starts.lookups import SeenCommits, SeenOffsets, pick
from rebalance_core.model.clients import JAVA_PROFILE, NEVER_WITHOUT_COMMIT, ClientProfile
from rebalance_core.model.events import MASTER_MODES, REFUSED, SLAVE_READ
from rebalance_core.model.group_settings import LITE_PULL
from rebalance_core.model.times import SLAVE_COPY_MS
from rebalance_core.model.verdicts import START_STATUSES
from rebalance_core.protocol.members import MASTER_BACK_MS
from rebalance_core.protocol.start_offset import DEPRECATED_MODES, FIRST_OFFSET, TIMESTAMP

# The start of many new owners: rule, answer and bounds.

RULES = (
    "STORED",
    "LOCAL_STORE",
    "BROKER_ZERO",
    "MAX_OFFSET",
    "FIRST_ZERO",
    "TIMESTAMP_SEARCH",
    "RETRY_ZERO",
    "RETRY_MAX",
    "QUERY_FAILED",
    "PULL_ALWAYS_ZERO",
)
(
    STORED,
    LOCAL_STORE,
    BROKER_ZERO,
    MAX_OFFSET,
    FIRST_ZERO,
    TIMESTAMP_SEARCH,
    RETRY_ZERO,
    RETRY_MAX,
    QUERY_FAILED,
    PULL_ALWAYS_ZERO,
) = range(len(RULES))
OF_THE_QUEUE = (STORED, BROKER_ZERO, MAX_OFFSET, RETRY_MAX, TIMESTAMP_SEARCH)
"""Rules whose answer is another one when the topic is deleted and made anew."""
OK, FAILED, UNKNOWN = range(len(START_STATUSES))  # codes, in the order of the words


@dataclass(frozen=True, slots=True)
class Starts:
    """One value a row; offsets are `NONE` where nothing is known. Changed in place."""

    rule: Ints
    offset: Ints
    low: Ints
    high: Ints
    status: Ints

    @classmethod
    def unknown(cls, count: int) -> Starts:
        """No rule, no offset, no bounds."""
        columns = np.full((len(fields(cls)), count), segments.NONE)
        columns[-1] = UNKNOWN
        return cls(*columns)

    def put(
        self, mask: Bools, rule: Ints | int, offset: Ints | int, low: Ints | int,
        high: Ints | int, status: int = OK,
    ) -> None:  # fmt: skip
        """Set some rows; arrays have a value for every row."""
        for name, value in zip(
            ("rule", "offset", "low", "high", "status"), (rule, offset, low, high, status),
            strict=True,
        ):  # fmt: skip
            np.copyto(getattr(self, name), value, where=mask)

    def take(self, rows: Ints) -> Starts:
        """Some of the rows."""
        return Starts(*(getattr(self, field.name)[rows] for field in fields(self)))

    def zero(self, mask: Bools, rule: Ints | int) -> None:
        """Rules that give 0 whatever was seen."""
        self.put(mask, rule, 0, 0, 0)

    def fail(self, mask: Bools) -> None:
        """Rows whose owner gets no start."""
        self.put(mask, QUERY_FAILED, segments.NONE, segments.NONE, segments.NONE, FAILED)

    def without_end(self, mask: Bools) -> None:
        """Rows where nobody answers where the queue ends: only a 0 of the broker is one."""
        mask = mask & np.isin(self.rule, (MAX_OFFSET, RETRY_MAX, TIMESTAMP_SEARCH))
        failed = mask & ((self.low < 0) | (self.low == self.offset))
        self.fail(failed)
        self.put(mask & ~failed, BROKER_ZERO, segments.NONE, 0, 0, UNKNOWN)

    def update(self, rows: Ints, other: Starts) -> None:
        """Set rows by number."""
        for field in fields(self):
            getattr(self, field.name)[rows] = getattr(other, field.name)


# Losses and returns of masters that have to do with each queue: `replay.masters.RoleSwitches`.

_WITHOUT_END = [MASTER_MODES.index(mode) for mode in (REFUSED, SLAVE_READ)]


@dataclass(frozen=True, slots=True)
class Switched:
    """By row: the role switches of its queue that began before the end of its window."""

    count: Ints
    kept_ms: Ints
    """What had arrived by then, whoever answers knows; `NEVER`: there is none."""
    settled_ms: Ints
    """By when all are over; `NEVER`: one lasts, `NONE`: there is none."""

    def __len__(self) -> int:
        return len(self.count)

    @property
    def any(self) -> Bools:
        """There is one."""
        return self.count > 0


class RoleSwitchArrays:
    """The outages of masters, for the queues of some groups.

    Args:
        prepared: the groups.
        queues: the queues asked about, by their index.
    """

    def __init__(self, prepared: PreparedGroups, queues: Queues) -> None:
        brokers = prepared.grid.brokers
        readable = (brokers.broker >= 0) & (prepared.grid.most_readable > 0)
        keys = np.unique(segments.pair(brokers.group[readable], brokers.broker[readable]))
        self._outages = outages = find_outages(prepared.coded.events)
        found = segments.find(keys, segments.pair(brokers.group, np.maximum(brokers.broker, 0)))
        self._broker = np.where(brokers.broker >= 0, found, segments.NONE)[queues.topic_broker]
        first, end = outages.of(*segments.halves(keys))
        # a queue that nobody can read, which only CONFIG lists, has none
        self._first_outage, self._last_outage = np.append(first, 0), np.append(end, 0)
        broker, self.began_ms, self.kept_ms, over_ms = _switches(keys, outages)
        first, end = segments.equal_range(broker, np.arange(len(keys)))
        self._first, self._end = np.append(first, 0), np.append(end, 0)
        self._least_kept = segments.running_min(self.kept_ms, broker)
        self._all_over = -segments.running_min(-over_ms, broker)

    def __bool__(self) -> bool:
        return len(self.began_ms) > 0

    def first(self, queue: Ints) -> Ints:
        """Return where the switches of each queue begin."""
        return self._first[self._broker[queue]]

    def until(self, queue: Ints, at_ms: Ints) -> Ints:
        """Count each queue's switches that began not later than a moment."""
        first = self.first(queue)
        end = self._end[self._broker[queue]]
        return segments.bisect(self.began_ms, first, end, at_ms, right=True) - first

    def switched(self, queue: Ints, count: Ints) -> Switched:
        """Combine so many of each queue's first switches."""
        last = np.where(count > 0, self.first(queue) + count - 1, segments.NONE)
        kept_ms = np.append(self._least_kept, segments.NEVER)[last]
        return Switched(count, kept_ms, pick(self._all_over, last))

    def newest(self, commits: SeenCommits, queue: Ints, at_ms: Ints) -> Ints:
        """The newest commit not later than a moment that whoever answers then knows, or `NONE`.

        A master that is back does not know what went to its slaves.
        """
        row, outages = commits.newest(queue, at_ms), self._outages
        first, end = self._outages_of(queue)
        left = np.flatnonzero((row >= 0) & (end > first))
        while len(left):
            sent_ms = commits.at_ms[row[left]]
            outage = (
                segments.bisect(outages.down_ms, first[left], end[left], sent_ms, right=True) - 1
            )
            up_ms = outages.up_ms[outage]
            lost = (outage >= first[left]) & (sent_ms < up_ms) & (up_ms <= at_ms[left])
            left, outage = left[lost], outage[lost]
            row[left] = commits.newest(queue[left], outages.down_ms[outage] - 1)
            left = left[row[left] >= 0]
        return row

    def has_no_end(self, queue: Ints, earliest_ms: Ints, latest_ms: Ints) -> Bools:
        """In all of the window only slaves are there, which do not know the end of a queue."""
        outages = self._outages
        first, end = self._outages_of(queue)
        outage = segments.bisect(outages.down_ms, first, end, earliest_ms, right=True) - 1
        outage = np.where(outage >= first, outage, segments.NONE)
        lasts = pick(outages.up_ms, outage) > latest_ms
        return lasts & np.isin(pick(outages.mode, outage), _WITHOUT_END)

    def _outages_of(self, queue: Ints) -> tuple[Ints, Ints]:
        broker = self._broker[queue]
        return self._first_outage[broker], self._last_outage[broker]


def _switches(keys: Ints, outages: OutageSpans) -> tuple[Ints, Ints, Ints, Ints]:
    """(index of the key, began_ms, kept_ms, settled_ms) by key, began_ms and kept_ms.

    Args:
        keys: (group, broker) with readable queues, as sorted pairs.
        outages: of all groups.
    """
    key_of = segments.find(keys, segments.pair(outages.group, outages.broker))
    mine = np.flatnonzero(key_of >= 0)
    back = mine[outages.up_ms[mine] != segments.NEVER]
    at, other = segments.matching(segments.halves(keys)[0], outages.group[back])
    of = back[at]
    apart = other != key_of[of]
    other, up_ms = other[apart], outages.up_ms[of[apart]]
    down_ms, own_up = outages.down_ms[mine], outages.up_ms[mine]
    broker = np.concatenate([key_of[mine], other])
    began_ms = np.concatenate([down_ms, up_ms])
    kept_ms = np.concatenate([down_ms - SLAVE_COPY_MS, up_ms])
    own_over = np.where(own_up == segments.NEVER, segments.NEVER, own_up + MASTER_BACK_MS)
    over_ms = np.concatenate([own_over, up_ms + MASTER_BACK_MS])
    order = np.lexsort((kept_ms, began_ms, broker))
    return broker[order], began_ms[order], kept_ms[order], over_ms[order]


# Where members start on queues that nobody of their group ever committed.


@dataclass(frozen=True, slots=True)
class _Asked:
    """By row: who asks, and what was seen last before."""

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
    """What the broker answers, as in `coded_groups.Observations`."""
    open: Bools
    """Nothing was seen after the window that says whether the broker still answers so."""


def first_starts(
    prepared: PreparedGroups,
    offsets: SeenOffsets,
    adds: OwnerChanges,
    retry: Bools,
    *,
    asks_broker: bool,
) -> Starts:
    """`replay.start_rule.client_start` of many.

    Args:
        prepared: the groups.
        offsets: what was seen of their queues.
        adds: the rows.
        retry: by row: a queue of a retry topic.
        asks_broker: false for BROADCASTING, whose offsets are in local files.
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
    """By row: whether the client that adds, started in its mode, is of another language and so."""
    runs, coded = prepared.roster.runs, prepared.coded
    profiles = profiles_of(coded, prepared.membership)
    if all(profile is JAVA_PROFILE for profile in profiles):
        return np.zeros(len(adds.queue), np.bool_)
    run = prepared.roster.run[adds.entry]
    words = np.stack([runs.state[run], runs.start_mode[run]])
    distinct, of = np.unique(words, axis=1, return_inverse=True)
    texts = coded.names.words.to_pylist()
    found = [rule(profiles[state], texts[mode]) for state, mode in distinct.T.tolist()]
    return np.array(found, np.bool_)[of.reshape(-1)]


def _put_unproven(unproven: Bools, offsets: SeenOffsets, asked: _Asked, starts: Starts) -> None:
    """Set the rows of clients whose rule is not known, or was only read: any offset of the queue.

    A broker that surely answers 0 answers so to all.
    """
    if not unproven.any():
        return
    zero = (starts.rule == BROKER_ZERO) & (starts.offset == 0) & (starts.high == 0)
    top = offsets.max_by(asked.queue, asked.latest_ms, asked.earliest_ms)
    starts.put(unproven & ~zero, segments.NONE, segments.NONE, 0, top, UNKNOWN)


def _ask(
    prepared: PreparedGroups, offsets: SeenOffsets, adds: OwnerChanges, retry: Bools
) -> _Asked:
    """A retry queue never observed was created by the group's own heartbeats, so it is empty."""
    epochs, groups = prepared.epochs, prepared.coded.groups
    earliest_ms, group = epochs.from_ms[adds.epoch], epochs.group[adds.epoch]
    row = offsets.newest(adds.queue, earliest_ms)
    known = offsets.any(adds.queue)
    created = retry & ~known
    empty_is_zero = groups.empty_queue_is_zero[group]
    zero, never_zero = (
        np.append(values, False)[row] for values in (offsets.rows.zero, offsets.rows.never_zero)
    )
    min_offset = np.where(created, 0, pick(offsets.rows.min_offset, row))
    after = offsets.first_from(adds.queue, adds.latest_ms, earliest_ms)
    return _Asked(
        adds.queue, earliest_ms, adds.latest_ms, group, retry,
        seen=(row >= 0) | created,
        min_offset=min_offset,
        max_offset=np.where(created, 0, pick(offsets.rows.max_offset, row)),
        zero=np.where(created, empty_is_zero, zero),
        never_zero=np.where(created, ~empty_is_zero, never_zero),
        open=(after < 0) & (min_offset <= 0) & known,
    )  # fmt: skip


def _client_starts(
    prepared: PreparedGroups, offsets: SeenOffsets, asked: _Asked, adds: OwnerChanges
) -> Starts:
    """The client's own rule, with the bounds of the look-up it makes."""
    roster, groups = prepared.roster, prepared.coded.groups
    mode = roster.runs.start_mode[roster.run[adds.entry]]
    first, timestamp, deprecated = (
        np.isin(prepared.coded.names.words, list(names))[mode]
        for names in ((FIRST_OFFSET,), (TIMESTAMP,), DEPRECATED_MODES)
    )
    starts = Starts.unknown(len(adds.queue))
    newest = offsets.max_by(asked.queue, asked.latest_ms, asked.earliest_ms)
    refused = deprecated & (groups.consumer_type[asked.group] == TYPES.index(LITE_PULL))
    starts.put(
        asked.seen, np.where(asked.retry, RETRY_MAX, MAX_OFFSET), asked.max_offset,
        asked.max_offset, newest,
    )  # fmt: skip
    starts.fail(asked.seen & refused)
    searching = np.flatnonzero(asked.seen & timestamp & ~asked.retry)
    starts.update(searching, _timestamp_starts(prepared, offsets, asked, newest, searching))
    always_zero = first | (asked.retry & ~timestamp)
    starts.zero(always_zero, np.where(asked.retry, RETRY_ZERO, FIRST_ZERO))
    return starts


def _timestamp_starts(
    prepared: PreparedGroups, offsets: SeenOffsets, asked: _Asked, newest: Ints, rows: Ints
) -> Starts:
    """Return `protocol.start_offset.timestamp_search_bounds` of many."""
    groups, group, queue = prepared.coded.groups, asked.group[rows], asked.queue[rows]
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
