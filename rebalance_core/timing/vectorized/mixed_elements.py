"""Elements of groups whose members' subscriptions differ."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rebalance_core.kernels.segments import Ints
from rebalance_core.model.queue import is_retry_topic
from rebalance_core.timing.timer_periods import Times
from rebalance_core.timing.vectorized.elements import Elements
from rebalance_core.timing.vectorized.futures import Futures
from rebalance_core.timing.vectorized.play_segments import PlaySegment
from rebalance_core.timing.vectorized.subscriptions import SubscriptionsNow


class MixedElements(Elements):
    """`Elements` of members whose subscriptions differ.

    Args:
        futures: the futures of the timeline; `elements.Elements.keep` returns the state to it.
        segment: the part of the timeline.
        lifetimes: numbers of the lifetimes.
        subscriptions: the subscriptions of the lifetimes.
    """

    def __init__(
        self,
        futures: Futures,
        segment: PlaySegment,
        lifetimes: Ints,
        subscriptions: SubscriptionsNow,
    ) -> None:
        super().__init__(futures, segment, lifetimes)
        self._subscriptions = subscriptions
        known_topics = futures.timeline.topics
        lacking = [
            [topic for topic in topics if topic not in known_topics]
            for topics in subscriptions.sets
        ]
        self._lacks = np.array([bool(topics) for topics in lacking])
        self._lacks_more = np.array([not all(map(is_retry_topic, topics)) for topics in lacking])

    def always_notifies(self, who: Ints, begin: Times) -> NDArray[np.bool_]:
        """Return True where a pass visits a topic that never has a route (rocketmq.md §3.3)."""
        codes = self._subscriptions.codes_at(who, begin)
        lacks = np.where(self.broadcasting[who], self._lacks[codes], self._lacks_more[codes])
        return np.asarray(lacks & ~self.is_v4[who], bool)
