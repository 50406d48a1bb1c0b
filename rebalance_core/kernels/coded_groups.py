"""The rows of many groups as numbers, and each group's processes over time.

A process is a (client id, channel id) of a group; its state after an event is the number of its
settings (`group_rows`), or `GONE`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rebalance_core.contracts import INPUT_TABLES
from rebalance_core.kernels import group_rows
from rebalance_core.kernels.codes import (
    COMMITS,
    EVENTS,
    GROUPS,
    OFFSETS,
    TABLES,
    Columns,
    Key,
    TopicSets,
    encode_all,
    encode_channels,
    list_pointers,
)
from rebalance_core.kernels.group_rows import Divisions, Groups, StrategyFor
from rebalance_core.kernels.segments import Bools, Ints, first_of_run, last_true, pair
from rebalance_core.model import events
from rebalance_core.model.errors import UsageError
from rebalance_core.model.events import EVENT_TYPES, EXPIRED, OBSERVED, Event
from rebalance_core.model.group_settings import Intervals, parse_request_mode
from rebalance_core.model.queue import RETRY_TOPIC_PREFIX, MessageQueue
from rebalance_core.protocol.members import notices_of, window_ms
from rebalance_core.protocol.routes import DEFAULT_PERM, PERM_READ
from rebalance_core.strategies import AllocationStrategy, parse_strategy
from rebalance_core.strategies.config import Config

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
    """A member's own words after a CONSUMER_JOIN (`OWN_WORDS`), and its language; -1: none."""
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
        for name in group_rows.OWN_WORDS
    }
    words[group_rows.LANGUAGE_WORD] = codes[EVENTS, group_rows.LANGUAGE_WORD]
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
        window_ms=_windows(given, codes, order, group, types, groups),
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


def _windows(
    given: Columns, codes: Mapping[Key, Ints], order: Ints, group: Ints, types: Ints, groups: Groups
) -> Ints:
    """The window of each event, in order."""
    kinds, kind_of = np.unique(groups.intervals, axis=0, return_inverse=True)
    table = np.stack([_window_table(tuple(kind)) for kind in kinds.tolist()] or [_window_table(())])
    expired, group = given.equal("detail", EXPIRED).astype(np.int64)[order], group[order]
    notices = np.zeros(len(order), np.int64)
    rows = np.flatnonzero(types[order] == type_code(events.NOTICES))
    if len(rows):
        detail = given.strings("detail").take(pa.array(order[rows])).to_pylist()
        at = rows, group[rows], codes[EVENTS, "broker_name"][order][rows]
        _follow_notices(notices, group, given.ints("event_ms")[order], *at, detail)
    notified = groups.notified.astype(np.int64)[group]
    return table[kind_of.reshape(-1)[group], notices, notified, types[order], expired]


@lru_cache(maxsize=1024)
def _window_table(intervals: tuple[int, ...]) -> Ints:
    """(`NOTICE_MODES`, notified, `EVENT_TYPES`, expired) the windows, for clients' intervals."""
    spans = Intervals(*intervals)
    about = [[Event(0, 0, name), Event(0, 0, name, detail=EXPIRED)] for name in EVENT_TYPES]
    found = [
        [
            [[window_ms(e, spans, notices_of(e, brokers, notified=on)) for e in both]
             for both in about]
            for on in (False, True)
        ]
        for brokers in events.NOTICE_MODES
    ]  # fmt: skip
    return np.array(found, np.int64)


def _follow_notices(
    notices: Ints, group: Ints, at_ms: Ints, rows: Ints, of: Ints, broker: Ints, detail: list[str]
) -> None:
    """Set how brokers tell members at each event: as the slowest of them, from its instant on."""
    modes: dict[int, dict[int, int]] = {}
    for row, number, name, mode in zip(
        rows.tolist(), of.tolist(), broker.tolist(), detail, strict=True
    ):
        slowest = modes.setdefault(number, {})
        slowest[name] = events.NOTICE_MODES.index(mode)
        begin, end = np.searchsorted(group, (number, number + 1))
        first = begin + np.searchsorted(at_ms[begin:end], at_ms[row])
        notices[first:end] = max(slowest.values())


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
    cached = given.bools("head_cached", null=False)
    uncached = ~given.bools("head_cached", null=True)
    zero = (low <= 0) & np.where(high <= 0, empty_is_zero, cached)
    never_zero = (low > 0) | np.where(high <= 0, ~empty_is_zero, uncached)
    order = np.lexsort((at_ms, queue_id, broker, topic, group))
    return Observations(
        group=group[order],
        topic=topic[order],
        broker=broker[order],
        queue_id=queue_id[order],
        at_ms=at_ms[order],
        min_offset=low[order],
        max_offset=high[order],
        zero=zero[order],
        never_zero=never_zero[order],
    )


def read_commits(given: Columns, group: Ints, codes: Mapping[Key, Ints]) -> Commits:
    """The commits of the groups; of two seen at one moment the higher one is the newer."""
    topic, broker = codes[COMMITS, "topic"], codes[COMMITS, "broker_name"]
    queue_id, at_ms = given.ints("queue_id"), given.ints("observed_ms")
    offset = given.ints("committed_offset")
    order = np.lexsort((offset, at_ms, queue_id, broker, topic, group))
    columns = (group, topic, broker, queue_id, at_ms, offset, codes[COMMITS, "client_id"])
    return Commits(*(column[order] for column in columns))


# The queues that CONFIG strategies list.

NAME = Config().name


@dataclass(frozen=True, slots=True)
class ConfigLists:
    """One value a queue of a list; by strategy. Queues of topics that nobody names are left out."""

    allocation: Ints
    """The strategy: index into the strategies of the coded."""
    topic: Ints
    broker: Ints
    queue_id: Ints


def listed_brokers(words: pa.StringArray) -> pa.StringArray:
    """The brokers that the CONFIG texts among some words list."""
    names: set[str] = set()
    for text in words.to_pylist():
        if text.startswith(NAME):
            names.update(queue.broker_name for queue in _queues(text))
    return pa.array(sorted(names), pa.string())


def _queues(text: str) -> Iterable[MessageQueue]:
    try:
        strategy = parse_strategy(text)
    except UsageError:  # of a group that nobody joins, or else whoever resolves it raises
        return ()
    return strategy.queues or () if isinstance(strategy, Config) else ()


def read_lists(
    strategies: Iterable[AllocationStrategy], topics: pa.StringArray, brokers: pa.StringArray
) -> ConfigLists:
    """The lists of all CONFIG strategies, each queue once.

    Args:
        strategies: of all members.
        topics: what the codes of topics stand for.
        brokers: what those of brokers stand for, `listed_brokers` included.
    """
    lists = [(number, s) for number, s in enumerate(strategies) if isinstance(s, Config)]
    rows: dict[tuple[int, int, int, int], None] = {}
    if any(strategy.queues for _, strategy in lists):
        topic_codes = {name: code for code, name in enumerate(topics.to_pylist())}
        broker_codes = {name: code for code, name in enumerate(brokers.to_pylist())}
        for number, strategy in lists:
            for topic, broker, queue_id in strategy.queues or ():
                if topic in topic_codes:
                    rows[number, topic_codes[topic], broker_codes[broker], queue_id] = None
    columns = np.array(list(rows), np.int64).reshape(-1, 4).T
    return ConfigLists(*columns)


# The input of the kernels: rows of many groups as arrays of codes.
#
# Groups are numbered by kind of strategy, then by name; every array is in the order of groups.


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """Options that the rows alone do not give.

    Attributes:
        queue_offsets_given: there is such a table, so no row means not observed.
        committed_offsets_given: there is such a table, so no row means none.
        include_retry_topics: false leaves retry topics out of everything.
        strategy_override: strategy text that replaces the group's and every member's own.
    """

    queue_offsets_given: bool = False
    committed_offsets_given: bool = False
    include_retry_topics: bool = True
    strategy_override: str | None = None


@dataclass(frozen=True, slots=True)
class Names:
    """The names that codes stand for; clients, topics and brokers in Java's order."""

    clusters: pa.StringArray
    """One a group, as `groups`."""
    groups: pa.StringArray
    clients: pa.StringArray
    channels: pa.StringArray
    topics: pa.StringArray
    brokers: pa.StringArray
    words: pa.StringArray
    """Strategy texts, versions, message models and start modes."""


@dataclass(frozen=True, slots=True)
class CodedGroups:
    """Many groups, each complete."""

    names: Names
    groups: Groups
    strategies: tuple[AllocationStrategy, ...]
    """What `Groups.allocation` counts."""
    divisions: Divisions
    lists: ConfigLists
    events: Events
    topic_sets: TopicSets
    topic_is_retry: Bools
    """By topic code: the retry topic of some group."""
    observations: Observations | None
    """Rows of queue_offsets; None: no such table was given."""
    commits: Commits | None
    """Rows of committed_offsets; None: no such table was given."""

    def divided_by(self, number: int) -> CodedGroups:
        """The groups as if all members divided by their group's strategy of this number.

        Those that have fewer have a kind that divides nothing.
        """
        if number == 0:
            return self  # the kind of a group that divides is that of its first strategy
        allocation = self.divisions.of_number(number, len(self.groups))
        kinds = group_rows.kinds_of(self.strategies)
        unknown = self.groups.kind == group_rows.NO_KIND
        kind = np.where(unknown, group_rows.NO_KIND, kinds[allocation])
        return replace(self, groups=replace(self.groups, kind=kind, allocation=allocation))


def read_coded_groups(
    rows: Mapping[str, pa.Table], options: EngineOptions, strategy_for: StrategyFor
) -> CodedGroups:
    """Rows of whole groups, in any order, as codes.

    Args:
        rows: of the input tables, by name; every group has at least one of cluster_events. A table
            that is not there has no rows; only cluster_events must be.
        options: see `EngineOptions`.
        strategy_for: (strategy text, client version) -> strategy.
    """
    tables = {name: Columns(rows[name] if name in rows else _no_rows(name)) for name in TABLES}
    clusters, group_names, numbers = _number_groups(tables)
    tables[GROUPS] = _one_row_a_group(tables[GROUPS], numbers[GROUPS], len(group_names))
    retry_topics = pc.binary_join_element_wise(RETRY_TOPIC_PREFIX, group_names, "")
    topics, codes = encode_all(
        _all(tables, "topic", EVENTS, OFFSETS, COMMITS)
        | {(t, "subscriptions"): tables[t].lists("subscriptions").flatten() for t in TABLES[:2]}
        | {(GROUPS, "retry"): retry_topics}
    )
    found_words = encode_all(
        group_rows.words_of(tables, numbers[EVENTS], options.strategy_override)
    )
    brokers = _all(tables, "broker_name", EVENTS, OFFSETS, COMMITS)
    brokers[NAME, "broker_name"] = listed_brokers(found_words[0])
    named = {
        "brokers": encode_all(brokers),
        "clients": encode_all(_all(tables, "client_id", EVENTS, COMMITS)),
        "channels": encode_channels(tables[EVENTS]),
        "words": found_words,
    }
    for _, found in named.values():
        codes |= found
    words, sets = named["words"][0], TopicSets()
    retry = options.include_retry_topics
    groups, strategies, divisions = group_rows.divided(
        group_rows.read_groups(tables[GROUPS], codes, words, sets, retry=retry),
        tables, numbers[EVENTS], codes, words, strategy_for,
    )  # fmt: skip
    order = np.lexsort((groups.kind, ~group_rows.divides(groups.kind)))
    groups = groups.take(order)
    renumbered = np.argsort(order)
    numbers = {name: renumbered[number] for name, number in numbers.items()}
    return CodedGroups(
        names=Names(
            clusters.take(pa.array(order)),
            group_names.take(pa.array(order)),
            topics=topics,
            **{name: names for name, (names, _) in named.items()},
        ),
        groups=groups,
        strategies=strategies,
        divisions=divisions.renumbered(renumbered),
        lists=read_lists(strategies, topics, named["brokers"][0]),
        events=read_events(tables[EVENTS], numbers[EVENTS], codes, groups, sets),
        topic_sets=sets,
        topic_is_retry=_retry_topics(topics),
        observations=read_observations(tables[OFFSETS], numbers[OFFSETS], codes, groups)
        if options.queue_offsets_given
        else None,
        commits=read_commits(tables[COMMITS], numbers[COMMITS], codes)
        if options.committed_offsets_given
        else None,
    )


def _no_rows(table: str) -> pa.Table:
    return INPUT_TABLES[table].arrow_schema().empty_table()


def _retry_topics(topics: pa.StringArray) -> Bools:
    found = pc.starts_with(topics, RETRY_TOPIC_PREFIX)
    return found.to_numpy(zero_copy_only=False)


def _all(tables: Mapping[str, Columns], name: str, *of: str) -> dict[Key, pa.StringArray]:
    return {(table, name): tables[table].strings(name) for table in of}


def _number_groups(
    tables: Mapping[str, Columns],
) -> tuple[pa.StringArray, pa.StringArray, dict[str, Ints]]:
    """Cluster and name of each group, and the group's number in every row of every table."""
    cluster_names, clusters = encode_all(_all(tables, "cluster", *TABLES))
    group_names, groups = encode_all(_all(tables, "consumer_group", *TABLES))
    keys = {
        name: clusters[name, "cluster"] * len(group_names) + groups[name, "consumer_group"]
        for name in TABLES
    }
    distinct = np.unique(keys[EVENTS])
    cluster, group = np.divmod(distinct, max(1, len(group_names)))
    numbers = {name: np.searchsorted(distinct, key) for name, key in keys.items()}
    return cluster_names.take(pa.array(cluster)), group_names.take(pa.array(group)), numbers


def _one_row_a_group(given: Columns, group: Ints, count: int) -> Columns:
    """The settings by group number; nulls for a group that has none."""
    row_of = np.full(count, -1, np.int64)
    row_of[group] = np.arange(len(given))
    return Columns(given.rows.take(pa.array(row_of, mask=row_of < 0)))


# Processes of each group over time: who is live after each event, and with what settings.
#
# A process is a (client id, channel id) of a group; its state is the number of its settings
# (`group_rows`), or `GONE`.

GONE = -1
JOIN, LEAVE, LOST, SUBSCRIBES, UNSUBSCRIBES, SUSPENDS, RESUMES = map(
    type_code, events.CONSUMER_EVENTS
)

_WORDS = ("strategy", "version", "message_model", "rebalance_mode", "rules", "language")


@dataclass(frozen=True, slots=True)
class Processes:
    """One value a process, by group, client and channel."""

    group: Ints
    client: Ints
    channel: Ints


@dataclass(frozen=True, slots=True)
class MemberStates:
    """The distinct settings of members: one value a number."""

    subscriptions: Ints
    strategy: Ints
    version: Ints
    message_model: Ints
    rebalance_mode: Ints
    rules: Ints
    """Word of the version whose rules they follow."""
    language: Ints
    """Word; -1: not known."""
    suspended: Bools


@dataclass(frozen=True, slots=True)
class MemberChanges:
    """Consumer events that have an effect, by process and then as they happened."""

    ordinal: Ints
    process: Ints
    before: Ints
    """State, an index into `MemberStates`, or `GONE`."""
    after: Ints
    start_mode: Ints
    """Word of the member's ConsumeFromWhere after the event; -1 when gone."""


@dataclass(frozen=True, slots=True)
class Membership:
    """Who was there, as the events say."""

    processes: Processes
    states: MemberStates
    changes: MemberChanges
    unknown: Ints
    """Ordinals of events about a process that is not in the group."""
    suspended: Ints
    """Groups in which a live member is suspended."""


def follow_members(events: Events, sets: TopicSets) -> Membership:
    """Apply every consumer event to its process.

    Args:
        events: all events, in order.
        sets: gets the sets that SUBSCRIBE and UNSUBSCRIBE make.
    """
    ordinals = np.flatnonzero(events.type < CONSUMER_TYPES)
    order = np.lexsort(
        (ordinals, events.channel[ordinals], events.client[ordinals], events.group[ordinals])
    )
    ordinals = ordinals[order]
    group, client, channel = (a[ordinals] for a in (events.group, events.client, events.channel))
    first = first_of_run(group, client, channel)
    kind = events.type[ordinals]
    live_before = _live_before(kind, first)
    known = (kind == JOIN) | live_before
    suspended = np.unique(group[(kind == SUSPENDS) & live_before])
    processes = Processes(group[first], client[first], channel[first])
    process = (np.cumsum(first) - 1)[known]
    kept, kind = ordinals[known], kind[known]
    states, after = _states(events, sets, kept, process, kind)
    begins = first_of_run(process)
    before = np.where(begins, GONE, np.roll(after, 1))
    return Membership(
        processes,
        states,
        MemberChanges(kept, process, before, after, _start_modes(events, kept, begins, after)),
        unknown=np.sort(ordinals[~known]),
        suspended=suspended,
    )


def _live_before(kind: Ints, first: Bools) -> Bools:
    """Whether the process was live before each of its events: its last coming or going says."""
    decides = (kind == JOIN) | (kind == LEAVE) | (kind == LOST)
    decisive = last_true(decides, first)
    live_after = (decisive >= 0) & (kind[decisive] == JOIN)
    return np.where(first, False, np.roll(live_after, 1))


def _states(
    events: Events, sets: TopicSets, ordinals: Ints, process: Ints, kind: Ints
) -> tuple[MemberStates, Ints]:
    """The distinct settings, and the state of the process after each event."""
    begins = first_of_run(process)
    joined = last_true(kind == JOIN, begins)  # known events follow a join of their process
    at = ordinals[joined]
    subscriptions = _subscriptions(events, sets, ordinals, process, kind, joined)
    words = [events.words[name][at] for name in _WORDS]
    turned = np.isin(kind, (SUSPENDS, RESUMES, LEAVE, LOST))  # a join in place leaves it suspended
    turn = last_true(turned, begins)
    suspended = (turn >= 0) & (kind[turn] == SUSPENDS)
    key = subscriptions
    for word in (*words, suspended.astype(np.int64)):
        key = np.unique(pair(key, word + 1), return_inverse=True)[1]
    _, first, numbers = np.unique(key, return_index=True, return_inverse=True)
    after = np.where((kind == LEAVE) | (kind == LOST), GONE, numbers)
    found = (subscriptions, *words, suspended)
    return MemberStates(*(column[first] for column in found)), after


def _subscriptions(
    events: Events, sets: TopicSets, ordinals: Ints, process: Ints, kind: Ints, joined: Ints
) -> Ints:
    """The set of each process after each event; SUBSCRIBE and UNSUBSCRIBE one after the other."""
    current = events.subscriptions[ordinals[joined]].copy()
    if not ((kind == SUBSCRIBES) | (kind == UNSUBSCRIBES)).any():
        return current
    edited = np.isin(process, process[(kind == SUBSCRIBES) | (kind == UNSUBSCRIBES)])
    for row in np.flatnonzero(edited).tolist():
        if kind[row] == JOIN:
            continue
        held = set(sets.topics(int(current[row - 1])))  # the row before is of the same process
        topic = int(events.topic[ordinals[row]])
        if kind[row] == SUBSCRIBES:
            held.add(topic)
        elif kind[row] == UNSUBSCRIBES:
            held.discard(topic)
        current[row] = sets.number(held)
    return current


def _start_modes(events: Events, ordinals: Ints, begins: Bools, after: Ints) -> Ints:
    mode = events.words["consume_from_where"][ordinals]
    joined = last_true(events.type[ordinals] == JOIN, begins)
    return np.where(after == GONE, -1, mode[joined])
