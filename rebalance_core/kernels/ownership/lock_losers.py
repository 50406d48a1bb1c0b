"""Queues whose order locks are not granted for lack of a master (rocketmq.md §7, §15)."""

import numpy as np

from rebalance_core.kernels import segments
from rebalance_core.kernels.encoded_events import Events, type_code
from rebalance_core.kernels.epochs import Epochs, InstantEffects
from rebalance_core.kernels.grid import Grid
from rebalance_core.kernels.group_rows import TYPES, Groups
from rebalance_core.kernels.routes import (
    RouteChanges,
    TopicBrokers,
)
from rebalance_core.kernels.segments import Bools, Ints
from rebalance_core.kernels.topic_periods import (
    GroupTopics,
)
from rebalance_core.model.events import ACTING, MASTER_DOWN, MASTER_MODES, MASTER_UP
from rebalance_core.model.group_settings import PUSH

_ACTING = MASTER_MODES.index(ACTING)


def lock_losers(events: Events, groups: Groups) -> Bools:
    """Mark the groups whose members lock queues while a broker grants no locks."""
    losing = np.zeros(len(groups), np.bool_)
    losing[events.group[_lockless(events, np.arange(len(events)))]] = True
    return losing & groups.ordered & (groups.consumer_type == TYPES.index(PUSH))


def with_lock_turns(
    turns: InstantEffects,
    events: Events,
    losers: Bools,
    topics: GroupTopics,
    topic_brokers: TopicBrokers,
    routes: RouteChanges,
) -> InstantEffects:
    """Add to the turns the events after which a broker starts or stops granting order locks.

    Args:
        turns: the turns from all other causes.
        events: the events of all groups.
        losers: see `lock_losers`.
        topics: the topics of the groups.
        topic_brokers: the brokers of these topics.
        routes: the route changes that the events make.
    """
    about = _master_events(events, losers)
    if not len(about):
        return turns
    causing, changed = turns.causing.copy(), turns.changed.copy()
    turned = _turned(events, about)
    causing[turned[_readable(events, turned, turned, topics, topic_brokers, routes)]] = True
    turned = _turned(events, about[segments.last_of_run(*_instants(events, about))])
    end = np.flatnonzero(segments.last_of_run(events.instant))[events.instant[turned]]
    turned = turned[_readable(events, turned, end, topics, topic_brokers, routes)]
    changed[events.instant[turned]] = True
    return InstantEffects(causing, changed)


def lockless_cells(events: Events, epochs: Epochs, grid: Grid, losers: Bools) -> Bools:
    """Mark broker cells for which members want order locks that no process grants."""
    lockless = np.zeros(int(grid.broker_first[-1]), np.bool_)
    about = _master_events(events, losers)
    if not len(about):
        return lockless
    keys = segments.pair(events.group[about], events.broker[about])
    brokers = grid.brokers
    wanted = segments.pair(brokers.group, np.maximum(brokers.broker, 0))
    first, end = segments.equal_range(keys, wanted)
    row = np.flatnonzero((end > first) & (brokers.broker >= 0))
    count = np.diff(grid.broker_first)[row]
    cell = segments.ranges(grid.broker_first[row], count)
    epoch = segments.ranges(epochs.of_group[brokers.group[row]], count)
    first, end = np.repeat(first[row], count), np.repeat(end[row], count)
    last = segments.bisect(about, first, end, epochs.last_ordinal[epoch], right=True) - 1
    begun = last >= first
    lockless[cell[begun]] = _lockless(events, about[last[begun]])
    return lockless


def _master_events(events: Events, losers: Bools) -> Ints:
    """Return the MASTER events of these groups, sorted by group, broker and ordinal."""
    about = np.isin(events.type, (type_code(MASTER_DOWN), type_code(MASTER_UP)))
    ordinal = np.flatnonzero(about & losers[events.group])
    return ordinal[np.lexsort((ordinal, events.broker[ordinal], events.group[ordinal]))]


def _instants(events: Events, ordinal: Ints) -> tuple[Ints, Ints, Ints]:
    return events.group[ordinal], events.broker[ordinal], events.instant[ordinal]


def _turned(events: Events, ordinal: Ints) -> Ints:
    """Keep the MASTER events after which a broker starts or stops granting locks."""
    now = _lockless(events, ordinal)
    was = np.roll(now, 1)
    was[segments.first_of_run(*_instants(events, ordinal)[:2])] = False
    return ordinal[now != was]


def _lockless(events: Events, ordinal: Ints) -> Bools:
    """Return, for each of these MASTER events, whether no process grants the broker's locks
    afterwards.
    """
    lost = events.type[ordinal] == type_code(MASTER_DOWN)
    return lost & (events.mode[ordinal] != _ACTING)


def _readable(
    events: Events,
    event: Ints,
    ordinal: Ints,
    topics: GroupTopics,
    topic_brokers: TopicBrokers,
    routes: RouteChanges,
) -> Bools:
    """Return whether each event's group can read a queue on its broker after ``ordinal``."""
    asker, row = topic_brokers.topics_on(events.group[event], events.broker[event])
    begin, end = segments.equal_range(routes.topic_broker, row)
    route = segments.bisect(routes.ordinal, begin, end, ordinal[asker], right=True) - 1
    readable = route >= begin
    readable &= np.append(routes.after, 0)[np.where(readable, route, -1)] > 0
    readable &= topics.active(
        topics.index(topic_brokers.group, topic_brokers.topic)[row], ordinal[asker]
    )
    reads = np.zeros(len(event), np.bool_)
    reads[asker[readable]] = True
    return reads
