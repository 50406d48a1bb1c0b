"""Times at which each group's topics are popped, derived from request modes, members that query
brokers, and proxies.

All times are ordinals; `ownership.sharing` spreads them over the epochs (rocketmq.md §2.8, §14).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rebalance_core.kernels import segments
from rebalance_core.kernels.encoded_events import NO_SHARE, Events, type_code
from rebalance_core.kernels.encoded_groups import EncodedGroups
from rebalance_core.kernels.group_rows import TYPES
from rebalance_core.kernels.periods import Periods
from rebalance_core.kernels.processes import Membership
from rebalance_core.kernels.segments import Bools, Ints
from rebalance_core.kernels.topic_periods import TopicPeriods, subscribed_periods
from rebalance_core.model.events import REQUEST_MODE
from rebalance_core.model.group_settings import PROXY_REBALANCE, PUSH
from rebalance_core.protocol.query_assignment import asks_broker


@dataclass(frozen=True, slots=True)
class Modes:
    """The mode that each REQUEST_MODE gives a topic, sorted by group, topic and ordinal."""

    group: Ints
    topic: Ints
    ordinal: Ints
    before: Ints
    """The previous share number; `NO_SHARE` while the mode is PULL."""
    after: Ints


@dataclass(frozen=True, slots=True)
class PopModes:
    """The members that pop topics, and when."""

    modes: Modes
    asked: TopicPeriods
    """When some member queries brokers for its queues of a topic."""
    proxied: TopicPeriods
    """When any member behind a proxy subscribes to a topic."""

    def any(self) -> bool:
        """Return whether any member ever pops a topic."""
        return len(self.proxied.group) > 0 or len(self.asked.group) > 0

    def groups(self, count: int) -> Bools:
        """Return, for each of `count` groups, whether any member ever pops a topic."""
        popping = np.zeros(count, np.bool_)
        popping[self.proxied.group] = popping[self.asked.group] = True
        return popping

    def causing(self) -> Ints:
        """Return the ordinals of events that change how a topic is popped."""
        modes = self.modes
        return modes.ordinal[(modes.before != modes.after) & self._is_asked(modes, modes.ordinal)]

    def changed(self, instant: Ints, last: Ints) -> Ints:
        """Return the instants at which the way a topic is popped changes.

        Args:
            instant: the instant of each event.
            last: the last event of each instant.
        """
        modes = self.modes
        mode_instant = instant[modes.ordinal]
        first, end = segments.ends_of_runs(modes.group, modes.topic, mode_instant)
        asked = self._is_asked(modes, last[mode_instant])[end]
        return mode_instant[end][(modes.before[first] != modes.after[end]) & asked]

    def _is_asked(self, modes: Modes, ordinal: Ints) -> Bools:
        asked = Periods(self.asked.group, self.asked.topic, self.asked.start, self.asked.end)
        return asked.at(modes.group, modes.topic, ordinal) >= 0

    def popped(self) -> tuple[TopicPeriods, Ints]:
        """Return the periods in which a topic's mode is POP, and the share number in each."""
        modes = self.modes
        end = np.where(
            segments.last_of_run(modes.group, modes.topic),
            segments.NEVER,
            np.roll(modes.ordinal, -1),
        )
        on = modes.after != NO_SHARE
        periods = TopicPeriods(modes.group, modes.topic, modes.ordinal, end)
        return periods.where(on), modes.after[on]


def find_pops(encoded: EncodedGroups, membership: Membership) -> PopModes:
    """Follow the request modes and the members that pop."""
    modes = _modes(encoded.events)
    no_periods = TopicPeriods(*(np.zeros(0, np.int64) for _ in range(4)))
    asked = proxied = no_periods
    behind = behind_proxies(encoded, membership)
    if behind.any():
        proxied = subscribed_periods(membership, encoded.topic_sets, behind)
    if (modes.after != NO_SHARE).any():
        asked = subscribed_periods(membership, encoded.topic_sets, asks(encoded, membership))
        asked = asked.where(asking_groups(encoded)[asked.group])
    return PopModes(modes, asked, proxied)


def _modes(events: Events) -> Modes:
    ordinal = np.flatnonzero(events.type == type_code(REQUEST_MODE))
    ordinal = ordinal[np.lexsort((ordinal, events.topic[ordinal], events.group[ordinal]))]
    group, topic, after = (a[ordinal] for a in (events.group, events.topic, events.share))
    before = np.where(segments.first_of_run(group, topic), NO_SHARE, np.roll(after, 1))
    return Modes(group, topic, ordinal, before, after)


def behind_proxies(encoded: EncodedGroups, membership: Membership) -> Bools:
    """Mark the states whose members are behind a proxy."""
    proxied = np.isin(encoded.names.words, [PROXY_REBALANCE])
    return proxied[membership.states.rebalance_mode]


def asks(encoded: EncodedGroups, membership: Membership) -> Bools:
    """Mark the states whose members query a broker, in `asking_groups`."""
    states, texts = membership.states, encoded.names.words.to_pylist()
    words = np.stack([states.rebalance_mode, states.message_model, states.rules])
    distinct, of = np.unique(words, axis=1, return_inverse=True)
    asking = [
        asks_broker(texts[mode], PUSH, texts[model], False, texts[version])
        for mode, model, version in distinct.T.tolist()
    ]
    return np.array(asking, np.bool_)[of.reshape(-1)]


def asking_groups(encoded: EncodedGroups) -> Bools:
    """Mark the groups whose members query a broker if they are configured to."""
    groups = encoded.groups
    return (groups.consumer_type == TYPES.index(PUSH)) & ~groups.ordered
