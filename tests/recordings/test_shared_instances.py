"""Two groups in the same client instances (recording `shared-later`): one's notices wake both.

`clicks-app` is started in running processes of `orders-app`: p2 and p3 before its second scale-out
has come to them, p1 after it. The host was loaded: delays under 2 s are no evidence.
"""

from functools import cache
from typing import Any

import numpy as np
import pytest

from rebalance_core.contracts import INPUT_TABLES
from rebalance_core.engine.propagation import PropagationOptions
from rebalance_core.process.propagate import propagate
from rebalance_core.timing.moves import GAP
from tests.recordings.recorded_events import SHARED
from tests.recordings.tables import ingested_recording
from tests.recordings.timings import compared as comparison
from tests.recordings.timings.compared import Compared, Given, compared
from tests.unit.engine.test_fan_out import arrow_tables

pytestmark = [pytest.mark.conformance, pytest.mark.timeout(600)]

WOKEN_MS = 33_261
"""p3 acts on the second scale-out when it is told of p1's clicks-app; its own pass is due later."""


@cache
def found() -> list[Compared]:
    return compared(SHARED, 1_000, given=Given.FILES)


def test_every_latency_and_gap_is_inside_the_futures() -> None:
    """Also that of a pass of 862 ms, 700 of them between the retry topic and the other one."""
    assert len([one for one in found() if one.what == GAP]) >= 10
    assert len([one for one in found() if one.what != GAP]) >= 20
    assert not [one for one in found() if not one.is_inside]


def test_a_start_in_the_instance_is_what_makes_a_member_act(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert near(found()) > 0.8
    monkeypatch.setattr(comparison, "with_sharing", iter)  # each group by itself
    assert near(compared(SHARED, 300, given=Given.FILES, groups=["orders-app"])) < 0.2


def near(latencies: list[Compared]) -> float:
    """Share of the futures in which p3 acts within 0.7 s of when it did."""
    (seen,) = (one for one in latencies if one.who == "p3" and one.observed_ms == WOKEN_MS)
    return float(np.mean(np.abs(seen.simulated_ms - WOKEN_MS) < 700))


def test_the_tables_of_one_group_are_the_same_alone_and_among_all() -> None:
    ingested: Any = ingested_recording(SHARED).tables
    tables = arrow_tables({name: ingested[name] for name in INPUT_TABLES if name in ingested})
    everything = propagate(tables, PropagationOptions(seeds=30))
    alone = propagate(tables, PropagationOptions(seeds=30, group="orders-app"))
    for name in ("propagation", "handovers"):
        rows = everything[name].to_pylist()
        its = [row for row in rows if row["consumer_group"] == "orders-app"]
        assert its
        assert alone[name].to_pylist() == its
