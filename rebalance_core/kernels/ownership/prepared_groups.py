"""The topics that members read and share, epoch by epoch, and who takes from their queues how."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rebalance_core.kernels import group_rows, segments
from rebalance_core.kernels.coded_groups import (
    CONSUMER_TYPES,
    NO_SHARE,
    CodedGroups,
    Events,
    Membership,
    follow_members,
    type_code,
)
from rebalance_core.kernels.codes import BEYOND_BMP
from rebalance_core.kernels.epochs import (
    Epochs,
    InstantEffects,
    RouteChanges,
    TopicBrokers,
    build_epochs,
    find_turns,
    follow_routes,
    listed_places,
    retry_configs,
    retry_creations,
    retry_periods,
    topic_configs,
)
from rebalance_core.kernels.grid import Grid, build_grid, spread, spread_values, with_master_windows
from rebalance_core.kernels.group_rows import TYPES, Groups, strategies_of_groups
from rebalance_core.kernels.ownership.asked import Answers, ask_own, unsettled_groups
from rebalance_core.kernels.ownership.by_place import blank_groups
from rebalance_core.kernels.ownership.in_rooms import roomless_groups
from rebalance_core.kernels.ownership.on_ring import Rings, colliding_groups, find_rings
from rebalance_core.kernels.roster import (
    Roster,
    Runs,
    TopicRuns,
    build_roster,
    find_reading,
    find_runs,
    overlapping,
    profiles_of,
    retrying,
)
from rebalance_core.kernels.segments import Bools, Ints
from rebalance_core.kernels.topics import (
    GroupTopics,
    PopModes,
    RetryTopics,
    asking_groups,
    asks,
    behind_proxies,
    count_live,
    find_pops,
    group_topics,
    joined_periods,
    live_periods,
    subscribed_periods,
)
from rebalance_core.model.clients import BYTES, DROP, JAVA_PROFILE, KEPT, ClientProfile
from rebalance_core.model.events import ACTING, MASTER_DOWN, MASTER_MODES, MASTER_UP, SUBSCRIBE
from rebalance_core.model.group_settings import BROADCASTING, DEFAULT_INTERVALS, PUSH

# The topics that members share, epoch by epoch.


@dataclass(frozen=True, slots=True)
class SharedTopics:
    """Topic cells whose queues nobody owns alone."""

    grid: Grid
    """With these cells only."""
    cells: Bools
    """By topic cell, as all that follow."""
    share: Ints
    """Share number; `NO_SHARE` where no member asks a broker to pop the topic."""


def share_topics(
    events: Events, epochs: Epochs, pops: PopModes, whole: Grid
) -> tuple[Grid, SharedTopics | None]:
    """Return what members own of a grid, and what they share; None: nothing."""
    popped, numbers = pops.popped()
    given = (events, epochs, whole.topics, whole.topic_first)
    asked = spread(*given, popped) & spread(*given, pops.asked)
    cells = (asked | spread(*given, pops.proxied)) & whole.active
    if not cells.any():
        return whole, None
    share = np.where(asked, spread_values(*given, popped, numbers), NO_SHARE)
    return whole.only(~cells), SharedTopics(whole.only(cells), cells, share)


def sharing_groups(shared: SharedTopics) -> Ints:
    """Groups with a shared topic."""
    grid = shared.grid
    of = np.repeat(np.arange(len(grid.topics.group)), np.diff(grid.topic_first))
    return np.unique(grid.topics.group[of[shared.cells]])


def unanswered(grid: Grid, shared: SharedTopics) -> tuple[Ints, Ints]:
    """Groups that share a topic without a readable queue, and groups of which a topic has none just
    when sharing begins or ends, so that members keep what they had by other means.

    Args:
        grid: of what members own.
        shared: what they share.
    """
    of = np.repeat(np.arange(len(grid.topics.group)), np.diff(grid.topic_first))
    first = segments.first_of_run(of)

    def after(before: Bools) -> Bools:
        return ~first & np.roll(before, 1)

    across = (shared.grid.frozen & after(grid.read)) | (grid.frozen & after(shared.cells))
    group = grid.topics.group[of]
    return np.unique(group[shared.grid.frozen]), np.unique(group[across])


# Who takes from the queues of shared topics, and how: by pop behind a proxy or from the brokers
# it asks, or by pull.


@dataclass(frozen=True, slots=True)
class Takers:
    """Runs, once for each topic that the member reads, of groups that share some topic."""

    reading: TopicRuns
    proxied: Bools
    """By row, as all that follow: it is behind a proxy."""
    asking: Bools
    """It asks a broker, so it pops where the topic has a share number, and else pulls."""


def find_takers(
    coded: CodedGroups, membership: Membership, runs: Runs, shared: SharedTopics
) -> Takers:
    """The members of groups that share topics, topic by topic."""
    groups = np.isin(np.arange(len(coded.groups)), sharing_groups(shared))
    reading = find_reading(coded, membership, runs, shared.grid.topics, groups)
    state, group = runs.state[reading.run], runs.group[reading.run]
    proxied = behind_proxies(coded, membership)[state]
    asking = asks(coded, membership)[state] & asking_groups(coded)[group] & ~proxied
    return Takers(reading, proxied, asking)


def pulling_groups(
    coded: CodedGroups, membership: Membership, epochs: Epochs, runs: Runs, shared: SharedTopics
) -> Ints:
    """Groups in which some member pulls a topic that others pop."""
    takers, grid = find_takers(coded, membership, runs, shared), shared.grid
    run, group_topic = takers.reading.run, takers.reading.group_topic
    offset = grid.topic_first[group_topic] - epochs.of_group[runs.group[run]]
    begin, end = offset + runs.from_epoch[run], offset + runs.to_epoch[run]
    pulled = segments.pointers(shared.cells)
    unasked = segments.pointers(shared.cells & (shared.share == NO_SHARE))
    pulls = ~takers.proxied & np.where(
        takers.asking, unasked[end] > unasked[begin], pulled[end] > pulled[begin]
    )
    return np.unique(runs.group[run[pulls]])


# Queues whose order locks nobody gives: their broker has no master (rocketmq.md §7, §15).

_ACTING = MASTER_MODES.index(ACTING)


def lock_losers(events: Events, groups: Groups) -> Bools:
    """By group: its members lock queues, and a broker's locks are not given for a while."""
    found = np.zeros(len(groups), np.bool_)
    found[events.group[_lockless(events, np.arange(len(events)))]] = True
    return found & groups.ordered & (groups.consumer_type == TYPES.index(PUSH))


def with_lock_turns(
    turns: InstantEffects,
    events: Events,
    losers: Bools,
    topics: GroupTopics,
    known: TopicBrokers,
    routes: RouteChanges,
) -> InstantEffects:
    """The turns, and the events from which a broker gives locks of readable queues again or no
    more.

    Args:
        turns: of all else.
        events: of all groups.
        losers: see `lock_losers`.
        topics: of the groups.
        known: their topics' brokers.
        routes: what events make of these.
    """
    about = _master_events(events, losers)
    if not len(about):
        return turns
    causing, changed = turns.causing.copy(), turns.changed.copy()
    turned = _turned(events, about)
    causing[turned[_readable(events, turned, turned, topics, known, routes)]] = True
    turned = _turned(events, about[segments.last_of_run(*_instants(events, about))])
    end = np.flatnonzero(segments.last_of_run(events.instant))[events.instant[turned]]
    turned = turned[_readable(events, turned, end, topics, known, routes)]
    changed[events.instant[turned]] = True
    return InstantEffects(causing, changed)


def lockless_cells(events: Events, epochs: Epochs, grid: Grid, losers: Bools) -> Bools:
    """By broker cell: nobody gives its order locks, and members want them."""
    found = np.zeros(int(grid.broker_first[-1]), np.bool_)
    about = _master_events(events, losers)
    if not len(about):
        return found
    keys = segments.pair(events.group[about], events.broker[about])
    brokers = grid.brokers
    wanted = segments.pair(brokers.group, np.maximum(brokers.broker, 0))
    first, end = segments.equal_range(keys, wanted)
    row = np.flatnonzero((end > first) & (brokers.broker >= 0))
    count = np.diff(grid.broker_first)[row]
    cell = segments.ranges(grid.broker_first[row], count)
    epoch = segments.ranges(epochs.of_group[brokers.group[row]], count)
    first, end = np.repeat(first[row], count), np.repeat(end[row], count)
    at = segments.bisect(about, first, end, epochs.last_ordinal[epoch], right=True) - 1
    begun = at >= first
    found[cell[begun]] = _lockless(events, about[at[begun]])
    return found


def _master_events(events: Events, losers: Bools) -> Ints:
    """MASTER events of these groups, by group, broker and ordinal."""
    about = np.isin(events.type, (type_code(MASTER_DOWN), type_code(MASTER_UP)))
    ordinal = np.flatnonzero(about & losers[events.group])
    return ordinal[np.lexsort((ordinal, events.broker[ordinal], events.group[ordinal]))]


def _instants(events: Events, ordinal: Ints) -> tuple[Ints, Ints, Ints]:
    return events.group[ordinal], events.broker[ordinal], events.instant[ordinal]


def _turned(events: Events, ordinal: Ints) -> Ints:
    """Keep the MASTER events after which a broker's locks are given again, or no more."""
    now = _lockless(events, ordinal)
    was = np.roll(now, 1)
    was[segments.first_of_run(*_instants(events, ordinal)[:2])] = False
    return ordinal[now != was]


def _lockless(events: Events, ordinal: Ints) -> Bools:
    """From each of these MASTER events on nobody gives the broker's locks."""
    lost = events.type[ordinal] == type_code(MASTER_DOWN)
    return lost & (events.mode[ordinal] != _ACTING)


def _readable(
    events: Events,
    event: Ints,
    ordinal: Ints,
    topics: GroupTopics,
    known: TopicBrokers,
    routes: RouteChanges,
) -> Bools:
    """The group of each event can read a queue of its broker, right after another ordinal."""
    asker, row = known.of(events.group[event], events.broker[event])
    begin, end = segments.equal_range(routes.topic_broker, row)
    at = segments.bisect(routes.ordinal, begin, end, ordinal[asker], right=True) - 1
    readable = at >= begin
    readable &= np.append(routes.after, 0)[np.where(readable, at, -1)] > 0
    readable &= topics.active(topics.index(known.group, known.topic)[row], ordinal[asker])
    found = np.zeros(len(event), np.bool_)
    found[asker[readable]] = True
    return found


@dataclass(frozen=True, slots=True)
class PreparedGroups:
    """Many groups over time. Groups with a `reason` have no epochs here: the replay takes them."""

    coded: CodedGroups
    membership: Membership
    epochs: Epochs
    roster: Roster
    rings: tuple[Rings, ...]
    """By number of the strategy in its group, as in `layout.Kernels.divided_by`."""
    grid: Grid
    """Of queues that one process at a time may own."""
    lockless: Bools
    """By broker cell: nobody gives the order locks that the members want."""
    popped: SharedTopics | None
    """Of queues that members share; None: there are none."""
    shared: Bools
    """By group: several processes may hold a queue, or one keeps what is given to another."""
    reason: Ints
    """By group: index into `group_rows.REASONS`."""
    asked: tuple[Answers, ...]
    """Of own strategies, by number of the strategy in its group; empty: there is none."""


def prepare_groups(coded: CodedGroups) -> PreparedGroups:
    """Follow the events of all groups.

    A first look at the epochs tells which groups the kernels cannot take; they are left out of
    the second.
    """
    events, groups = coded.events, coded.groups
    membership = follow_members(events, coded.topic_sets)
    live = count_live(membership)
    subscribed = subscribed_periods(membership, coded.topic_sets)
    configs = topic_configs(events)
    of_retry = configs.topic == groups.retry_topic[configs.group]
    configs, stated = configs.where(~of_retry), configs.where(of_retry)
    retries = retrying(coded, membership)
    mixed = np.isin(np.arange(len(groups)), coded.divisions.mixed_models)
    dividing = subscribed
    if mixed.any():
        dividing = subscribed_periods(membership, coded.topic_sets, retries)
    creations = retry_creations(configs, dividing, groups)
    reading = live_periods(membership, retries, groups.has_retry, groups.retry_topic)
    found = retry_creations(stated, reading, groups)
    created = retry_periods(creations.joined(found))
    retry = RetryTopics(
        created.where(~mixed[created.group]),
        live_periods(membership, retries, mixed & groups.has_retry, groups.retry_topic),
        created,
    )
    topics = group_topics(events, subscribed, live, retry)
    listed = listed_places(coded)
    configs = configs.joined(retry_configs(stated, creations))
    brokers, routes = follow_routes(events, configs, topics, listed)
    pops = find_pops(coded, membership)
    turns = find_turns(events, membership, topics, brokers, routes, created, pops)
    losers = lock_losers(events, groups)
    turns = with_lock_turns(turns, events, losers, topics, brokers, routes)
    epochs = build_epochs(events, turns, live, creations, groups)
    runs, unclear = find_runs(events, membership, epochs)
    read = joined_periods(subscribed, retry.since_created(retry.varying))

    def grids(epochs: Epochs) -> tuple[Grid, SharedTopics | None]:
        grid = build_grid(events, epochs, topics, read, retry.constant, brokers, routes)
        return share_topics(events, epochs, pops, grid)

    shared = _held_by_many(coded, membership, overlapping(runs))
    several = shared | pops.groups(len(groups))
    reason = _reasons(coded, brokers, runs, unclear, losers, several)
    if any(profile is not JAVA_PROFILE for profile in profiles_of(coded, membership)):
        _left_for_languages(reason, coded, membership, runs, *grids(epochs))
    asked: tuple[Answers, ...] = ()
    if group_rows.ASKED in group_rows.kinds_of(coded.strategies):
        roster = build_roster(coded, membership, epochs, topics, runs)
        grid, _ = grids(epochs)
        asked = tuple(ask_own(divided, epochs, grid, roster) for divided in _by_strategy(coded))
        for answers in asked:
            unsettled = unsettled_groups(grid, answers)
            reason[unsettled[reason[unsettled] == group_rows.REGULAR]] = group_rows.NO_KERNEL
    if pops.any():
        _left_for_sharing(reason, coded, membership, epochs, runs, *grids(epochs))
    left_out = reason != group_rows.REGULAR
    shared &= ~left_out
    if left_out.any():
        turns = turns.without(left_out[events.group[segments.first_of_run(events.instant)]])
        epochs = build_epochs(events, turns, live, creations, groups)
        runs, _ = find_runs(events, membership, epochs)
    roster = build_roster(coded, membership, epochs, topics, runs)
    grid, popped = grids(epochs)
    epochs = with_master_windows(events, epochs, grid)
    grid = replace(grid, frozen=_frozen(coded, membership, epochs, roster.runs, grid))
    rings = tuple(find_rings(divided, roster.runs) for divided in _by_strategy(coded))
    lockless = lockless_cells(events, epochs, grid, losers)
    return PreparedGroups(
        coded=coded,
        membership=membership,
        epochs=epochs,
        roster=roster,
        rings=rings,
        grid=grid,
        lockless=lockless,
        popped=popped,
        shared=shared,
        reason=reason,
        asked=asked,
    )


def _held_by_many(coded: CodedGroups, membership: Membership, twice: Ints) -> Bools:
    """By group: `PreparedGroups.shared`."""
    shared = np.zeros(len(coded.groups), np.bool_)
    shared[coded.divisions.listing] = shared[coded.divisions.mixed_models] = True
    shared |= strategies_of_groups(coded.divisions, len(coded.groups)) > 1
    shared[twice] = shared[membership.suspended] = True
    return shared


def _left_for_languages(
    reason: Ints,
    coded: CodedGroups,
    membership: Membership,
    runs: Runs,
    grid: Grid,
    popped: SharedTopics | None,
) -> None:
    """Set the reason of groups with members that do not do as Java's; changed in place."""
    profiles, group = profiles_of(coded, membership), runs.group
    strategies = coded.names.words.take(pa.array(membership.states.strategy)).to_pylist()

    def having(rule: Callable[[ClientProfile], bool]) -> Bools:
        """By run: the member's profile is so."""
        return np.array([rule(profile) for profile in profiles], np.bool_)[runs.state]

    known = [one.share_known(text) for one, text in zip(profiles, strategies, strict=True)]
    grids = [grid, *([] if popped is None else [popped.grid])]
    frozen = [np.repeat(g.topics.group, np.diff(g.topic_first))[g.frozen] for g in grids]
    apart = ~np.array(known, np.bool_)[runs.state]
    apart |= having(lambda profile: not (profile.retry and profile.notice_run))
    apart |= having(lambda profile: profile.pass_ms != DEFAULT_INTERVALS.wait_interval_ms)
    own_passes = coded.groups.intervals[group, 0] != DEFAULT_INTERVALS.wait_interval_ms
    apart |= having(lambda profile: profile is not JAVA_PROFILE) & own_passes
    apart |= having(lambda profile: profile.locks == KEPT) & coded.groups.ordered[group]
    dropped = np.isin(group, np.concatenate(frozen))
    apart |= having(lambda profile: profile.no_queue == DROP) & dropped
    apart |= having(lambda profile: profile.order == BYTES) & np.isin(group, _beyond_bmp(coded))
    groups = np.unique(group[apart])
    reason[groups[reason[groups] == group_rows.REGULAR]] = group_rows.LANGUAGE


def _beyond_bmp(coded: CodedGroups) -> Ints:
    """Groups with a name that does not sort by its bytes as it does in Java."""
    names, events = coded.names, coded.events
    unsortable = [
        np.append(pc.match_substring_regex(texts, BEYOND_BMP).to_numpy(zero_copy_only=False), False)
        for texts in (names.clients, names.brokers, names.topics)
    ]
    codes = (events.client, events.broker, events.topic)  # -1: none, at the end
    of = [found[code] for found, code in zip(unsortable, codes, strict=True)]
    return np.unique(events.group[np.logical_or.reduce(of)])


def _left_for_sharing(
    reason: Ints,
    coded: CodedGroups,
    membership: Membership,
    epochs: Epochs,
    runs: Runs,
    grid: Grid,
    shared: SharedTopics | None,
) -> None:
    """Set the reason of groups whose shared topics are too odd; changed in place."""
    if shared is None:
        return
    pulling = pulling_groups(coded, membership, epochs, runs, shared)
    unread, across = unanswered(grid, shared)
    for groups in (
        np.intersect1d(sharing_groups(shared), membership.suspended),
        np.intersect1d(pulling, unread),
        across,
    ):
        reason[groups[reason[groups] == group_rows.REGULAR]] = group_rows.SHARED_AND_KEPT


def _frozen(
    coded: CodedGroups, membership: Membership, epochs: Epochs, runs: Runs, grid: Grid
) -> Bools:
    """`Grid.frozen` without topics that only members with a CONFIG list read."""
    if not len(coded.divisions.listing):
        return grid.frozen
    lists = np.zeros(len(coded.groups), np.bool_)
    lists[coded.divisions.listing] = True
    reading = find_reading(coded, membership, runs, grid.topics, lists)
    states, state = membership.states, runs.state[reading.run]
    allocation = coded.divisions.allocations(states.strategy[state], states.rules[state])
    listed = np.isin(allocation, coded.divisions.listed)
    everyone = np.isin(coded.names.words, [BROADCASTING])[states.message_model[state]]
    dividing = np.flatnonzero(~listed | everyone)
    run, group_topic = reading.run[dividing], reading.group_topic[dividing]
    offset = grid.topic_first[group_topic] - epochs.of_group[runs.group[run]]
    begin, end = offset + runs.from_epoch[run], offset + runs.to_epoch[run]
    dividing_now = segments.covered(begin, end, len(grid.frozen)) > 0
    cell_lists = np.repeat(lists[grid.topics.group], np.diff(grid.topic_first))
    return grid.frozen & (~cell_lists | dividing_now)


def _by_strategy(coded: CodedGroups) -> Iterator[CodedGroups]:
    """The groups once for each strategy of the group that has the most."""
    return map(coded.divided_by, range(coded.divisions.most))


def _reasons(
    coded: CodedGroups,
    brokers: TopicBrokers,
    runs: Runs,
    unclear: Ints,
    losers: Bools,
    several: Bools,
) -> Ints:
    """Why each group is left to the replay; the first reason counts.

    By group: ``losers``, see `lock_losers`; ``several``, several members may take from a queue.
    """
    reason = coded.groups.reason.copy()
    clients = np.flatnonzero(segments.first_of_run(runs.group, runs.client))
    masterless = losers & (several | ~group_rows.divides(coded.groups.kind))
    found: tuple[tuple[int, Ints], ...] = (
        (group_rows.MASTERLESS, np.flatnonzero(masterless)),
        (group_rows.RESTART_AT_ONCE, unclear),
        (group_rows.RETRY_SUBSCRIBED, _retry_subscribed(coded)),
        (group_rows.ONE_BROKER, _seen_by_one_broker(coded)),
    )
    for divided in _by_strategy(coded):
        found += (
            (group_rows.RING_COLLISION, colliding_groups(find_rings(divided, runs))),
            (group_rows.NO_ROOM, roomless_groups(divided, brokers, runs)),
            (
                group_rows.BLANK_CLIENT_ID,
                blank_groups(divided, runs.group[clients], runs.client[clients]),
            ),
        )
    for code, groups in found:
        reason[groups[reason[groups] == group_rows.REGULAR]] = code
    return reason


def _seen_by_one_broker(coded: CodedGroups) -> Ints:
    """Groups with a member that one broker alone saw come or go."""
    events = coded.events
    return np.unique(events.group[(events.type < CONSUMER_TYPES) & (events.broker >= 0)])


def _retry_subscribed(coded: CodedGroups) -> Ints:
    """Groups with a member that subscribes the group's own retry topic at run time."""
    events = coded.events
    of_retry = events.topic == coded.groups.retry_topic[events.group]
    return np.unique(events.group[of_retry & (events.type == type_code(SUBSCRIBE))])
