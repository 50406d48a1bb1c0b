"""Who subscribes what, from when on."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rebalance_core.kernels.segments import Ints
from rebalance_core.timing.group_timeline import Script
from rebalance_core.timing.ticks import Ticks
from rebalance_core.timing.timer_periods import BEFORE_ALL, NEVER, Times


class Subscriptions:
    """Sets of topics by number, and which of them each life has when.

    Args:
        script: what happens.
        ticks: its times.

    Attributes:
        sets: each set of topics that some life subscribes at some time.
        since: (states, lives, S) since when each state of a life holds; `NEVER`: it has none.
        codes: (states, lives) number of the set that it subscribes then.
        has: (sets, topics) True where the set has a topic of the script.
    """

    def __init__(self, script: Script, ticks: Ticks) -> None:
        numbers: dict[frozenset[str], int] = {}
        most = max((len(life.states) for life in script.lives), default=1)
        self.since = np.full((most, len(script.lives), len(ticks.seeds)), NEVER, np.int64)
        self.codes = np.zeros((most, len(script.lives)), np.int64)
        for life in script.lives:
            self.since[: len(life.states), life.index] = ticks.states_us(life)
            self.since[0, life.index] = BEFORE_ALL
            for state, (_, member) in enumerate(life.states):
                topics = frozenset(member.subscriptions)
                self.codes[state:, life.index] = numbers.setdefault(topics, len(numbers))
        self.sets = tuple(numbers)
        self.has = np.array(
            [[topic in topics for topic in script.topics] for topics in self.sets], bool
        ).reshape(len(self.sets), len(script.topics))

    def grows(self, life: int, state: int) -> bool:
        """A life subscribes a topic in a state that it did not before."""
        before, now = self.codes[state - 1, life], self.codes[state, life]
        return not self.sets[now] <= self.sets[before]

    def of(self, lives: Ints) -> SubscriptionsNow:
        """Select the state of some lives."""
        return SubscriptionsNow(self, lives)


class SubscriptionsNow:
    """Subscriptions of the elements of a segment, ordered by life, then by future."""

    def __init__(self, subscriptions: Subscriptions, lives: Ints) -> None:
        self._its = subscriptions
        self.sets = subscriptions.sets
        """By number."""
        self.since: Times = subscriptions.since[:, lives]
        """(states, lives, S)"""
        self.codes = subscriptions.codes[:, lives]
        """(states, lives)"""
        states, _, seeds = self.since.shape
        self._flat = self.since.reshape(states, -1)
        self._codes = np.repeat(self.codes, seeds, axis=1)

    def codes_at(self, elements: Ints, at_us: Times) -> Ints:
        """The number of the set that each element subscribes at a time."""
        found: Ints = self._codes[0][elements]
        for since, codes in zip(self._flat[1:], self._codes[1:], strict=True):
            found = np.where(since[elements] <= at_us, codes[elements], found)
        return found

    def state_has(self, state: int, topic: int) -> NDArray[np.bool_]:
        """(lives, 1) True where a life subscribes a topic in one of its states."""
        found: NDArray[np.bool_] = self._its.has[self.codes[state], topic][:, None]
        return found
