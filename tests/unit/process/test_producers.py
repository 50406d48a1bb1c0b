"""`simulate_producers`: the tables of a model in memory, part by part the same."""

import pyarrow as pa
import pytest

from rebalance_core.contracts.producers import PRODUCER_WRITTEN
from rebalance_core.model.versions import parse_version
from rebalance_core.process import producers
from rebalance_core.process.producers import simulate_producers
from rebalance_core.producers.latencies import FixedLatency
from rebalance_core.producers.model import BrownOut
from tests.unit.producers.models import model, variant

SLOW = BrownOut("broker-b", 20_000, 40_000, FixedLatency(700))


def test_parts_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    world = model(SLOW, clients=7)
    whole = simulate_producers(world)
    monkeypatch.setattr(producers, "PRODUCERS_PER_PART", 2)
    parts = simulate_producers(world)
    assert tuple(whole) == PRODUCER_WRITTEN
    for name, rows in whole.items():
        assert parts[name].equals(rows), name


def test_fault_tolerance_holds_fewer_messages_back() -> None:
    outcomes = simulate_producers(model(SLOW, clients=5))["producer_outcomes"].to_pylist()
    back = {
        (row["client_version"], row["fault_tolerance"]): row["held_back"]
        for row in outcomes
        if row["phase"] == "brown-out of broker-b"
    }
    assert back["5.3.3", True] < back["5.3.3", False] / 2
    assert back["4.9.8", True] < back["5.3.3", True]  # avoided for 30 s, not for 2 s


def test_shares_of_a_phase_add_up_to_one() -> None:
    tables = simulate_producers(model(SLOW, clients=2), [parse_version("5.1.3")])
    sums: dict[tuple[object, ...], float] = {}
    for row in tables["producer_shares"].to_pylist():
        key = (row["client_version"], row["fault_tolerance"], row["from_ms"])
        sums[key] = sums.get(key, 0.0) + row["share"]
    assert len(sums) == 3 * 4
    assert all(total == pytest.approx(1) for total in sums.values())


def test_rates_are_those_of_the_groups_as_they_are() -> None:
    world = model(SLOW, clients=2, its=variant("4.9.8", True))
    tables = simulate_producers(world)
    rates: pa.Table = tables["queue_rates"]
    last = [r for r in rates.to_pylist() if r["from_ms"] == world.start_ms + 20_000]
    hot = max(last, key=lambda rate: rate["messages_per_second"])
    assert (hot["broker_name"], hot["queue_id"]) == ("broker-c", 0)  # behind the avoided broker
