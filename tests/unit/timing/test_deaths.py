"""Processes that die in one instant: when brokers' lists lose them."""

import numpy as np

from rebalance_core.timing.ticks import Ticks
from tests.unit.timing.futures import EXACT, happens, joins, story, two_brokers


def test_connections_of_a_dead_process_close_together_and_are_handled_in_turn() -> None:
    killed = [happens(50_000, "CONSUMER_LOST", f"c{number}") for number in range(3)]
    members = [joins(0, f"c{number}") for number in range(5)]
    ticks = Ticks(story(*two_brokers(), *members, *killed), np.arange(1_000), EXACT)
    lost = [each.index for each in ticks.timeline.lifetimes if each.ending is not None]
    at_ms = (ticks.unregistered[lost] / 1_000).round(3)
    first, last = at_ms.min(axis=0), at_ms.max(axis=0)
    assert 1 < np.median(last - first) < 10  # each connection takes a broker up to some ms
    orders = {tuple(np.argsort(at_ms[:, 0, seed], kind="stable")) for seed in range(1_000)}
    assert len(orders) == 6
    alone = [happens(50_000 + 7 * number, "CONSUMER_LOST", f"c{number}") for number in range(3)]
    ticks = Ticks(story(*two_brokers(), *members, *alone), np.arange(1_000), EXACT)
    at_ms = ticks.unregistered[lost] / 1_000
    assert np.median(at_ms.max(axis=0) - at_ms.min(axis=0)) > 15  # three deaths of their own
