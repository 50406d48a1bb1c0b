"""Synthetic fleets as they are written: every row is read, none is bad."""

from collections import Counter
from pathlib import Path

from rebalance_core.checks.input_tables import read_input_tables
from rebalance_core.process.generate import generate_and_write
from rebalance_core.process.simulate import simulate
from rebalance_core.synthetic.fleet import FleetPlan

PLAN = FleetPlan(40, 1, 11, groups_per_cluster=20)


def test_a_simulation_reads_every_row_and_rejects_none(tmp_path: Path) -> None:
    generate_and_write(PLAN, tmp_path)
    ledger = simulate(read_input_tables(str(tmp_path)))
    assert ledger.rejected.num_rows == 0
    epochs = ledger.epochs.to_pylist()
    assert len({(row["cluster"], row["consumer_group"]) for row in epochs}) == PLAN.groups
    statuses = Counter(row["status"] for row in epochs)
    assert statuses["SETTLED"] > 0.9 * statuses.total()
    known = Counter(ledger.pull_starts["status"].to_pylist())
    assert known["OK"] > 0.9 * known.total()
