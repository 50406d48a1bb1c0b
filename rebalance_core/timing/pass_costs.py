"""The additional cost of passes with longer round trips, more brokers or more new queues than
recorded.

A pass queries a broker for the members of each topic and looks up the offset of each queue that it
takes; in an orderly group it first requests the queue's lock. A pass that changed something ends
with a heartbeat to one broker after another (``RebalanceImpl``, ``MQClientInstance`` of 4.9.7 to
5.5.0; rocketmq.md §3, §4.4, §6.2). The delays of passes in `timing.delays` were measured on
loopback with up to `RECORDED_BROKERS` brokers and `RECORDED_QUEUES` queues, and include these
requests. This module adds the cost of any beyond those.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rebalance_core.contracts.observed import QUEUE_TAKEN, UNREGISTRATION
from rebalance_core.timing.delays import (
    QUEUE_NEXT,
    RECORDED_BROKERS,
    RECORDED_QUEUES,
    UNREGISTRATION_NEXT,
)
from rebalance_core.timing.group_timeline import GroupTimeline
from rebalance_core.timing.options import ClockOptions
from rebalance_core.timing.timer_periods import Times


def taking_us(
    options: ClockOptions,
    new: NDArray[np.int64],
    locks: NDArray[np.bool_],
    draws: NDArray[np.uint64],
) -> tuple[Times, Times]:
    """Return by how much passes take their new queues later, and by how much they finish later.

    A pass takes one queue after another. The first result is the delay of the middle queue, at
    which all of them count as taken.

    Args:
        options: supply the round trip and the fit.
        new: the number of queues that each pass takes.
        locks: whether it requests locks for them.
        draws: a random draw for each pass.
    """
    fitted = options.fitted(QUEUE_TAKEN)
    further = np.maximum(new - (RECORDED_QUEUES if fitted is None else 1), 0)
    whole = (QUEUE_NEXT if fitted is None else fitted).totals(further, draws)
    if fitted is None:
        whole += new * (1 + locks) * options.rtt_us
    return whole * (new + 1) // np.maximum(2 * new, 1), whole


def round_us(options: ClockOptions, brokers: NDArray[np.int64], draws: NDArray[np.uint64]) -> Times:
    """Return the additional duration of a round of heartbeats.

    Args:
        options: supply the round trip and the fit.
        brokers: the number of answers that it waits for, one after another.
        draws: the clients' random draws.
    """
    further = np.maximum(brokers - RECORDED_BROKERS, 0)
    fitted = options.fitted(UNREGISTRATION)
    if fitted is not None:  # an unregistration is also a request on an open connection
        return fitted.totals(further, draws)
    return UNREGISTRATION_NEXT.totals(further, draws) + brokers * options.rtt_us


def longest_requests_us(timeline: GroupTimeline, options: ClockOptions) -> int:
    """Return an upper bound on what these requests add to a pass."""
    lifetimes = timeline.lifetimes
    topics = max((len(e.states[0][1].subscriptions) for e in lifetimes), default=0)
    brokers = max((len(e.first_brokers) for e in lifetimes), default=0)
    most = np.array([(1 << 32) - 1], np.uint64)
    queues = np.array([len(timeline.queues)], np.int64)
    _, taking = taking_us(options, queues, np.ones(1, bool), most)
    beats = round_us(options, np.array([brokers], np.int64), most)
    return int(taking[0] + beats[0]) + (topics + 1) * options.rtt_us
