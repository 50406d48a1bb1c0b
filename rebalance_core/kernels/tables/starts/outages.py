"""Commits that a broker never kept: sent while it was down, or right before."""

from __future__ import annotations

import numpy as np

from rebalance_core.kernels.codes.event_rows import type_code
from rebalance_core.kernels.ownership.prepared_groups import PreparedGroups
from rebalance_core.kernels.segments import Bools, Ints, bisect, pair, pointers
from rebalance_core.model.events import BROKER_DOWN, BROKER_UP
from rebalance_core.protocol.start_offset import FINAL_COMMIT_STORED_MS


def may_lose(prepared: PreparedGroups, group: Ints, broker: Ints, sent_ms: Ints) -> Bools:
    """`replay.starts.outages.Outages.may_lose` of many commits."""
    events = prepared.coded.events
    down = events.type == type_code(BROKER_DOWN)
    turns = np.flatnonzero(down | (events.type == type_code(BROKER_UP)))
    turns = turns[np.lexsort((turns, events.broker[turns], events.group[turns]))]
    keys, at_ms = pair(events.group[turns], events.broker[turns]), events.at_ms[turns]
    wanted = pair(group, broker)
    first = np.searchsorted(keys, wanted)
    end = np.searchsorted(keys, wanted, side="right")
    since = np.maximum(bisect(at_ms, first, end, sent_ms, right=True) - 1, first)
    until = bisect(at_ms, first, end, sent_ms + FINAL_COMMIT_STORED_MS, right=False)
    downs = pointers(down[turns])
    return downs[np.maximum(until, since)] > downs[since]
