"""How long a suspended client goes on reading before it stops."""

from dataclasses import replace

import numpy as np

from rebalance_core.kernels.segments import Ints
from rebalance_core.timing.holdings import MeasuredHoldings
from rebalance_core.timing.message_facts import MessageFacts
from rebalance_core.timing.options import MS_US
from rebalance_core.timing.ticks import Ticks

LONG_POLL_MS = 15_000
"""DefaultMQPushConsumerImpl.BROKER_SUSPEND_MAX_TIME_MILLIS: the time for which a broker holds a
pull.
"""


def until_suspended(held: MeasuredHoldings, ticks: Ticks, facts: MessageFacts) -> MeasuredHoldings:
    """Return the holdings with the time at which reading ends, if it precedes the release.

    ``suspend()`` only stops new pulls: the pull that the broker holds brings one more message, for
    `LONG_POLL_MS` at most, and handlers and commits go on (rocketmq.md §3.2).

    A member that resumes counts as reading throughout. The time of a member that never stops counts
    only if another member takes its queue.

    Args:
        held: holdings that are read until they are released.
        ticks: the ticks of the timeline, for the seeds of the holdings.
        facts: the rates at which messages arrive.
    """
    since_us = ticks.suspended[held.lifetime, held.seed]
    rows = np.flatnonzero(since_us < held.drop_us)
    if not len(rows):
        return held
    since_ms: Ints = since_us[rows] // MS_US
    with np.errstate(divide="ignore"):
        next_ms = 1.0 / facts.rate(held.queue[rows], since_ms)
    next_ms = np.where(np.isnan(next_ms), 0.0, np.minimum(next_ms, LONG_POLL_MS))
    read_until_us = held.drop_us.copy()
    last_us = since_us[rows] + np.rint(next_ms * MS_US).astype(np.int64)
    read_until_us[rows] = np.clip(last_us, held.start_us[rows], held.drop_us[rows])
    return replace(held, read_until_us=read_until_us)
