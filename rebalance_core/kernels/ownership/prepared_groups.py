"""The topics that members read and share, epoch by epoch, and which members take from their
queues.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rebalance_core.kernels import group_kinds, segments
from rebalance_core.kernels.codes import BEYOND_BMP
from rebalance_core.kernels.encoded_events import CONSUMER_TYPES, type_code
from rebalance_core.kernels.encoded_groups import EncodedGroups
from rebalance_core.kernels.epochs import Epochs, build_epochs, find_turns
from rebalance_core.kernels.grid import Grid, build_grid
from rebalance_core.kernels.member_strategies import strategies_of_groups
from rebalance_core.kernels.outages import with_master_windows
from rebalance_core.kernels.ownership.asked import Answers, ask_own, unsettled_groups
from rebalance_core.kernels.ownership.by_place import blank_groups
from rebalance_core.kernels.ownership.in_rooms import roomless_groups
from rebalance_core.kernels.ownership.lock_losers import (
    lock_losers,
    lockless_cells,
    with_lock_turns,
)
from rebalance_core.kernels.ownership.on_ring import Rings, colliding_groups, find_rings
from rebalance_core.kernels.ownership.shared_topics import (
    SharedTopics,
    share_topics,
    sharing_groups,
    unanswered,
)
from rebalance_core.kernels.ownership.takers import pulling_groups
from rebalance_core.kernels.pop_modes import (
    find_pops,
)
from rebalance_core.kernels.processes import Membership, follow_members
from rebalance_core.kernels.roster import Roster, build_roster
from rebalance_core.kernels.routes import (
    TopicBrokers,
    follow_routes,
    listed_places,
    retry_configs,
    retry_creations,
    retry_periods,
    topic_configs,
)
from rebalance_core.kernels.runs import Runs, find_runs, overlapping
from rebalance_core.kernels.segments import Bools, Ints
from rebalance_core.kernels.topic_periods import (
    count_live,
    joined_periods,
    live_periods,
    subscribed_periods,
)
from rebalance_core.kernels.topic_runs import find_reading, profiles_of, retrying
from rebalance_core.kernels.topics import RetryTopics, group_topics
from rebalance_core.model.client_profile import BYTES, DROP, KEPT, ClientProfile
from rebalance_core.model.clients import JAVA_PROFILE
from rebalance_core.model.events import SUBSCRIBE
from rebalance_core.model.group_settings import BROADCASTING
from rebalance_core.model.intervals import DEFAULT_INTERVALS


@dataclass(frozen=True, slots=True)
class PreparedGroups:
    """Many groups over time; groups with a `reason` are left to the replay and have no epochs
    here.
    """

    encoded: EncodedGroups
    membership: Membership
    epochs: Epochs
    roster: Roster
    rings: tuple[Rings, ...]
    """The rings, indexed by the number of the strategy in its group, as in
    `strategy_kernels.Kernels.divided_by`.
    """
    grid: Grid
    """The queues that only one process at a time may own."""
    lockless: Bools
    """For each broker cell, whether no process grants the order locks that the members want."""
    popped: SharedTopics | None
    """The queues that members share; None: there are none."""
    shared: Bools
    """For each group, whether several processes may hold a queue, or a process may keep a queue
    that another gets.
    """
    reason: Ints
    """For each group, an index into `group_kinds.REASONS`."""
    asked: tuple[Answers, ...]
    """The results of custom strategies, by number of the strategy in its group; empty: there are
    none.
    """


def prepare_groups(encoded: EncodedGroups) -> PreparedGroups:
    """Follow the events of all groups.

    The first pass over the epochs shows which groups the kernels cannot process; the second leaves
    them out.
    """
    events, groups = encoded.events, encoded.groups
    membership = follow_members(events, encoded.topic_sets)
    live = count_live(membership)
    subscribed = subscribed_periods(membership, encoded.topic_sets)
    configs = topic_configs(events)
    of_retry = configs.topic == groups.retry_topic[configs.group]
    configs, stated = configs.where(~of_retry), configs.where(of_retry)
    retries = retrying(encoded, membership)
    mixed = np.isin(np.arange(len(groups)), encoded.member_strategies.mixed_models)
    dividing = subscribed
    if mixed.any():
        dividing = subscribed_periods(membership, encoded.topic_sets, retries)
    creations = retry_creations(configs, dividing, groups)
    reading = live_periods(membership, retries, groups.has_retry, groups.retry_topic)
    by_heartbeat = retry_creations(stated, reading, groups)
    created = retry_periods(creations.joined(by_heartbeat))
    retry = RetryTopics(
        created.where(~mixed[created.group]),
        live_periods(membership, retries, mixed & groups.has_retry, groups.retry_topic),
        created,
    )
    topics = group_topics(events, subscribed, live, retry)
    listed = listed_places(encoded)
    configs = configs.joined(retry_configs(stated, creations))
    brokers, routes = follow_routes(events, configs, topics, listed)
    pops = find_pops(encoded, membership)
    turns = find_turns(events, membership, topics, brokers, routes, created, pops)
    losers = lock_losers(events, groups)
    turns = with_lock_turns(turns, events, losers, topics, brokers, routes)
    epochs = build_epochs(events, turns, live, creations, groups)
    runs, unclear = find_runs(events, membership, epochs)
    read = joined_periods(subscribed, retry.since_created(retry.varying))

    def grids(epochs: Epochs) -> tuple[Grid, SharedTopics | None]:
        grid = build_grid(events, epochs, topics, read, retry.constant, brokers, routes)
        return share_topics(events, epochs, pops, grid)

    shared = _held_by_many(encoded, membership, overlapping(runs))
    several = shared | pops.groups(len(groups))
    reason = _reasons(encoded, brokers, runs, unclear, losers, several)
    if any(profile is not JAVA_PROFILE for profile in profiles_of(encoded, membership)):
        _left_for_languages(reason, encoded, membership, runs, *grids(epochs))
    asked: tuple[Answers, ...] = ()
    if group_kinds.ASKED in group_kinds.kinds_of(encoded.strategies):
        roster = build_roster(encoded, membership, epochs, topics, runs)
        grid, _ = grids(epochs)
        asked = tuple(ask_own(divided, epochs, grid, roster) for divided in _by_strategy(encoded))
        for answers in asked:
            unsettled = unsettled_groups(grid, answers)
            reason[unsettled[reason[unsettled] == group_kinds.REGULAR]] = group_kinds.NO_KERNEL
    if pops.any():
        _left_for_sharing(reason, encoded, membership, epochs, runs, *grids(epochs))
    left_out = reason != group_kinds.REGULAR
    shared &= ~left_out
    if left_out.any():
        turns = turns.without(left_out[events.group[segments.first_of_run(events.instant)]])
        epochs = build_epochs(events, turns, live, creations, groups)
        runs, _ = find_runs(events, membership, epochs)
    roster = build_roster(encoded, membership, epochs, topics, runs)
    grid, popped = grids(epochs)
    epochs = with_master_windows(events, epochs, grid)
    grid = replace(grid, frozen=_frozen(encoded, membership, epochs, roster.runs, grid))
    rings = tuple(find_rings(divided, roster.runs) for divided in _by_strategy(encoded))
    lockless = lockless_cells(events, epochs, grid, losers)
    return PreparedGroups(
        encoded=encoded,
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


def _held_by_many(encoded: EncodedGroups, membership: Membership, twice: Ints) -> Bools:
    """Return `PreparedGroups.shared` for each group."""
    shared = np.zeros(len(encoded.groups), np.bool_)
    strategies = encoded.member_strategies
    shared[strategies.listing] = shared[strategies.mixed_models] = True
    shared |= strategies_of_groups(strategies, len(encoded.groups)) > 1
    shared[twice] = shared[membership.suspended] = True
    return shared


def _left_for_languages(
    reason: Ints,
    encoded: EncodedGroups,
    membership: Membership,
    runs: Runs,
    grid: Grid,
    popped: SharedTopics | None,
) -> None:
    """Set, in place, the reason for groups with members that behave unlike Java's."""
    profiles, group = profiles_of(encoded, membership), runs.group
    strategies = encoded.names.words.take(pa.array(membership.states.strategy)).to_pylist()

    def having(rule: Callable[[ClientProfile], bool]) -> Bools:
        """Return, for each run, whether the member's profile satisfies the rule."""
        return np.array([rule(profile) for profile in profiles], np.bool_)[runs.state]

    share_known = [
        profile.share_known(text) for profile, text in zip(profiles, strategies, strict=True)
    ]
    grids = [grid, *([] if popped is None else [popped.grid])]
    frozen = [np.repeat(g.topics.group, np.diff(g.topic_first))[g.frozen] for g in grids]
    apart = ~np.array(share_known, np.bool_)[runs.state]
    apart |= having(lambda profile: not (profile.retry and profile.notice_run))
    apart |= having(lambda profile: profile.pass_ms != DEFAULT_INTERVALS.wait_interval_ms)
    own_passes = encoded.groups.intervals[group, 0] != DEFAULT_INTERVALS.wait_interval_ms
    apart |= having(lambda profile: profile is not JAVA_PROFILE) & own_passes
    apart |= having(lambda profile: profile.locks == KEPT) & encoded.groups.ordered[group]
    dropped = np.isin(group, np.concatenate(frozen))
    apart |= having(lambda profile: profile.no_queue == DROP) & dropped
    apart |= having(lambda profile: profile.order == BYTES) & np.isin(group, _beyond_bmp(encoded))
    groups = segments.distinct(group[apart])
    reason[groups[reason[groups] == group_kinds.REGULAR]] = group_kinds.LANGUAGE


def _beyond_bmp(encoded: EncodedGroups) -> Ints:
    """Return the groups with a name whose byte order differs from Java's order."""
    names, events = encoded.names, encoded.events
    unsortable = [
        np.append(pc.match_substring_regex(texts, BEYOND_BMP).to_numpy(zero_copy_only=False), False)
        for texts in (names.clients, names.brokers, names.topics)
    ]
    codes = (events.client, events.broker, events.topic)  # -1: none, at the end
    of = [beyond[code] for beyond, code in zip(unsortable, codes, strict=True)]
    return segments.distinct(events.group[np.logical_or.reduce(of)])


def _left_for_sharing(
    reason: Ints,
    encoded: EncodedGroups,
    membership: Membership,
    epochs: Epochs,
    runs: Runs,
    grid: Grid,
    shared: SharedTopics | None,
) -> None:
    """Set, in place, the reason for groups whose shared topics the kernels cannot process."""
    if shared is None:
        return
    pulling = pulling_groups(encoded, membership, epochs, runs, shared)
    unread, across = unanswered(grid, shared)
    for groups in (
        np.intersect1d(sharing_groups(shared), membership.suspended),
        np.intersect1d(pulling, unread),
        across,
    ):
        reason[groups[reason[groups] == group_kinds.REGULAR]] = group_kinds.SHARED_AND_KEPT


def _frozen(
    encoded: EncodedGroups, membership: Membership, epochs: Epochs, runs: Runs, grid: Grid
) -> Bools:
    """Return `Grid.frozen` without topics that only members with a CONFIG list read."""
    if not len(encoded.member_strategies.listing):
        return grid.frozen
    lists = np.zeros(len(encoded.groups), np.bool_)
    lists[encoded.member_strategies.listing] = True
    reading = find_reading(encoded, membership, runs, grid.topics, lists)
    states, state = membership.states, runs.state[reading.run]
    allocation = encoded.member_strategies.allocations(states.strategy[state], states.rules[state])
    listed = np.isin(allocation, encoded.member_strategies.listed)
    everyone = np.isin(encoded.names.words, [BROADCASTING])[states.message_model[state]]
    dividing = np.flatnonzero(~listed | everyone)
    run, group_topic = reading.run[dividing], reading.group_topic[dividing]
    offset = grid.topic_first[group_topic] - epochs.of_group[runs.group[run]]
    begin, end = offset + runs.from_epoch[run], offset + runs.to_epoch[run]
    dividing_now = segments.covered(begin, end, len(grid.frozen)) > 0
    cell_lists = np.repeat(lists[grid.topics.group], np.diff(grid.topic_first))
    return grid.frozen & (~cell_lists | dividing_now)


def _by_strategy(encoded: EncodedGroups) -> Iterator[EncodedGroups]:
    """Yield `EncodedGroups.divided_by` for every strategy number that any group has."""
    return map(encoded.divided_by, range(encoded.member_strategies.most))


def _reasons(
    encoded: EncodedGroups,
    brokers: TopicBrokers,
    runs: Runs,
    unclear: Ints,
    losers: Bools,
    several: Bools,
) -> Ints:
    """Return why each group is left to the replay; the first reason that applies is used.

    Each group has a value in ``losers`` (see `lock_losers`) and in ``several``, which is whether
    several members may take from a queue.
    """
    reason = encoded.groups.reason.copy()
    clients = np.flatnonzero(segments.first_of_run(runs.group, runs.client))
    masterless = losers & (several | ~group_kinds.divides(encoded.groups.kind))
    groups_by_reason: tuple[tuple[int, Ints], ...] = (
        (group_kinds.MASTERLESS, np.flatnonzero(masterless)),
        (group_kinds.RESTART_AT_ONCE, unclear),
        (group_kinds.RETRY_SUBSCRIBED, _retry_subscribed(encoded)),
        (group_kinds.ONE_BROKER, _seen_by_one_broker(encoded)),
    )
    for divided in _by_strategy(encoded):
        groups_by_reason += (
            (group_kinds.RING_COLLISION, colliding_groups(find_rings(divided, runs))),
            (group_kinds.NO_ROOM, roomless_groups(divided, brokers, runs)),
            (
                group_kinds.BLANK_CLIENT_ID,
                blank_groups(divided, runs.group[clients], runs.client[clients]),
            ),
        )
    for code, groups in groups_by_reason:
        reason[groups[reason[groups] == group_kinds.REGULAR]] = code
    return reason


def _seen_by_one_broker(encoded: EncodedGroups) -> Ints:
    """Return the groups with a member whose join or departure only one broker saw."""
    events = encoded.events
    return segments.distinct(events.group[(events.type < CONSUMER_TYPES) & (events.broker >= 0)])


def _retry_subscribed(encoded: EncodedGroups) -> Ints:
    """Return the groups with a member that subscribes to the group's own retry topic at run
    time.
    """
    events = encoded.events
    of_retry = events.topic == encoded.groups.retry_topic[events.group]
    return segments.distinct(events.group[of_retry & (events.type == type_code(SUBSCRIBE))])
