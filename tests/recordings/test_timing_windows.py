"""The windows of the ledger's `diffs` contain every simulated pass (rocketmq.md §6.4, §13).

As far as the times in the tables allow: docs/fidelity.md counts what lies outside, and says why.
"""

from collections.abc import Callable, Iterator

import numpy as np
import pytest
from numpy.typing import NDArray

from rebalance_core.model import events
from rebalance_core.model.group_settings import LITE_PULL, PULL
from rebalance_core.replay.group_replay import replay_group
from rebalance_core.replay.history import GroupHistory
from rebalance_core.timing.delays import LONGEST_LEAD_MS, TOPIC_VISIBLE
from rebalance_core.timing.options import HALF_SECOND_MS, ClockOptions
from rebalance_core.timing.timeline_builder import build_timeline
from rebalance_core.timing.timer_periods import FIRST_HEARTBEAT_US
from rebalance_core.timing.vectorized import play_seeds
from rebalance_core.timing.windows import windows_of
from tests.recordings.tables import (
    RECORDINGS,
    Row,
    Tables,
    derived_tables,
    histories,
    ingested_recording,
    strategy_for,
)

FEW, MANY, SEEDS_OF_LARGE = 50, 200, {"timing": 20}
SECOND_MS = 1_000
EARLY_MS = {
    # Logged when start() has returned; brokers tell of it before.
    events.CONSUMER_JOIN: LONGEST_LEAD_MS,
    # Logged when the command has ended.
    events.TOPIC_CONFIG: -TOPIC_VISIBLE.shortest // 1_000,
}


def files_tables(name: str) -> Tables:
    """What the operators' files give."""
    return ingested_recording(name).tables


LATE_PASSES = {
    # One of the first passes of a process gives up queues after up to 1.9 s, or takes them after up
    # to 2 s more, as where many start on one host; a member told meanwhile waits 1 s after that.
    # A few futures: what such a pass moves counts queue by queue.
    ("nightly", "derived_tables"): (0, 17),
    ("pathologies", "files_tables"): (8, 8),
    ("scale-out", "derived_tables"): (4, 4),
    ("start-offsets", "derived_tables"): (0, 8),
    ("timing", "derived_tables"): (2, 2),
    ("timing", "files_tables"): (4, 4),
    # broker-a was registered in the second that ends 1.4 s before the first member is told of: in 9
    # of 200 futures that member asked for the route before, and two queues wait for its next poll.
    # No window holds it, as the registration is no event of a group that has no member yet. In
    # others a first pass is slow, as above.
    ("silent-loss", "files_tables"): (10, 24),
}
"""Of few futures, of many."""


@pytest.mark.parametrize("many", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize("tables", [derived_tables, files_tables])
@pytest.mark.parametrize("name", RECORDINGS)
def test_the_windows_of_diffs_contain_every_simulated_pass(
    name: str, tables: Callable[[str], Tables], many: bool
) -> None:
    passes, late, seeds = 0, [], MANY if many else FEW
    for history in histories(tables(name)):
        for row, at_ms in actions_of(history, SEEDS_OF_LARGE.get(name, seeds)):
            assert row["earliest_ms"] - early_ms(row) <= at_ms.min(), row
            latest_ms = row["latest_ms"] + late_ms(history, row)
            late += [(row, each) for each in at_ms[at_ms > latest_ms]]
            passes += len(at_ms)
    assert len(late) == LATE_PASSES.get((name, tables.__name__), (0, 0))[many], late
    assert passes >= 25 * seeds


def early_ms(row: Row) -> int:
    """How much earlier than the tables have it members may hear of a change."""
    logged_ms = HALF_SECOND_MS if row["change_ms"] % HALF_SECOND_MS == 0 else 0
    return max(EARLY_MS.get(row["cause"], 0), logged_ms)


def late_ms(history: GroupHistory, row: Row) -> int:
    """How much later than the tables have it brokers may tell of a change, or a member be gone."""
    if row["cause"] == events.CONSUMER_JOIN and history.settings.consumer_type in (LITE_PULL, PULL):
        return FIRST_HEARTBEAT_US // 1_000  # start() sends none
    ends = row["earliest_ms"] == row["latest_ms"]  # no pass: the process itself is gone
    return SECOND_MS if ends and row["change_ms"] % HALF_SECOND_MS == 0 else 0


def actions_of(history: GroupHistory, seeds: int) -> Iterator[tuple[Row, NDArray[np.float64]]]:
    """Rows of `diffs` with every time at which that member took or gave up that queue.

    In all futures, from when members may see the row's change until they may see the next.
    """
    timeline = build_timeline(history, ClockOptions())
    log = play_seeds(timeline, range(seeds), ClockOptions())
    change = windows_of(timeline).change_of(log.at_us)
    changes = {each.change_ms: number for number, each in enumerate(timeline.changes)}
    queues = {(q.topic, q.broker_name, q.queue_id): n for n, q in enumerate(timeline.queues)}
    clients = np.array([life.client_id for life in timeline.lifetimes])[log.lifetime]
    for row in replay_group(history, strategy_for)["diffs"]:
        queue = queues.get((row["topic"], row["broker_name"], row["queue_id"]))
        if row["kind"] == "INITIAL" or queue is None:  # a retry topic's is not simulated
            continue
        number = changes[row["change_ms"]]
        of_row = (change == number) & (log.queue == queue) & (clients == row["client_id"])
        if of_row.any():
            yield row, log.at_us[of_row] / 1_000
