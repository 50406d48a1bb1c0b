"""The windows of the ledger's `diffs` contain every simulated pass (rocketmq.md §6.4, §13)."""

from collections.abc import Iterator

import numpy as np
import pytest
from numpy.typing import NDArray

from rebalance_core.clockwork.batch import play_seeds
from rebalance_core.clockwork.delays import LONGEST_LEAD_MS
from rebalance_core.clockwork.options import ClockOptions
from rebalance_core.clockwork.script import script_of
from rebalance_core.replay.group_replay import replay_group
from rebalance_core.replay.history import GroupHistory
from tests.recordings.tables import Row, derived_tables, histories, strategy_for

SEEDS = 60
RECORDINGS = ("timing", "join-leave", "orderly", "strategies", "broker-loss-4.9")


@pytest.mark.parametrize("name", RECORDINGS)
def test_the_windows_of_diffs_contain_every_simulated_pass(name: str) -> None:
    passes = 0
    for history in histories(derived_tables(name)):
        for row, at_ms in actions_of(history):
            # A join is logged when start() has returned; brokers tell of it before.
            lead_ms = LONGEST_LEAD_MS if row["cause"] == "CONSUMER_JOIN" else 0
            assert row["earliest_ms"] - lead_ms <= at_ms.min(), row
            assert at_ms.max() <= row["latest_ms"], row
            passes += len(at_ms)
    assert passes >= 1_500


def actions_of(history: GroupHistory) -> Iterator[tuple[Row, NDArray[np.float64]]]:
    """Rows of `diffs` with every time at which that member took or gave up that queue.

    In all futures, from the begin of the row's change to that of the next.
    """
    script = script_of(history, ClockOptions())
    log = play_seeds(script, range(SEEDS), ClockOptions())
    begins = np.array([change.begin_us for change in script.changes], np.int64)
    change = np.searchsorted(begins, log.at_us, side="right") - 1
    changes = {each.change_ms: number for number, each in enumerate(script.changes)}
    queues = {(q.topic, q.broker_name, q.queue_id): n for n, q in enumerate(script.queues)}
    clients = np.array([life.client_id for life in script.lives])[log.life]
    for row in replay_group(history, strategy_for)["diffs"]:
        queue = queues.get((row["topic"], row["broker_name"], row["queue_id"]))
        if row["kind"] == "INITIAL" or queue is None:  # a retry topic's is not simulated
            continue
        of_row = (change == changes[row["earliest_ms"]]) & (log.queue == queue)
        of_row &= clients == row["client_id"]
        if of_row.any():
            yield row, log.at_us[of_row] / 1_000
