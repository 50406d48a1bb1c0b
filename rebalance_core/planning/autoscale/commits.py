"""The age of a queue's last commit while a push consumer reads the queue.

Each pull carries the offset up to which the member has consumed, and a timer persists it
(``DefaultMQPushConsumerImpl.pullMessage``, ``MQClientInstance.startScheduledTask``; the same in 4.9
to 5.5). The next pull of a member that has pulled everything waits for the next message; a member
with a full cache pulls the next batch once it has processed the previous one.
"""

from __future__ import annotations

import numpy as np

from rebalance_core.model.times import OFFSET_PERSIST_MS, SECOND_MS
from rebalance_core.planning.autoscale.hpa import Floats

COMMIT_S = OFFSET_PERSIST_MS / SECOND_MS
PULL_BATCH = 32
"""DefaultMQPushConsumer.pullBatchSize."""
_FEWEST = 1e-6
"""The number of messages per second below which a rate counts as zero."""


def age_of_commit_s(come: Floats) -> Floats:
    """Return the mean age of the last commit, given the rate of randomly arriving messages per
    second.

    It is the time since the last message, or since the timer's last tick if that is less.

    >>> age_of_commit_s(np.array([0.0, 1.0, 100.0])).round(3).tolist()
    [2.5, 0.801, 0.01]
    """
    come = np.maximum(come, _FEWEST)
    ticks = come * COMMIT_S
    return np.where(ticks < 1e-3, COMMIT_S / 2, (1.0 + np.expm1(-ticks) / ticks) / come)


def age_behind_s(pace: Floats) -> Floats:
    """Return the mean age while the cache is full, given the messages read per second.

    >>> age_behind_s(np.array([0.0, 6.4, 320.0])).round(3).tolist()
    [2.5, 1.667, 0.05]
    """
    pulls_s = PULL_BATCH / np.maximum(pace, _FEWEST)
    less, more = np.minimum(pulls_s, COMMIT_S), np.maximum(pulls_s, COMMIT_S)
    return np.asarray(less / 2 - less**2 / (6 * more))
