"""First offsets of histories in which clients really commit lie in the bounds of the ledger.

`commit_truth` is a third opinion: replay and kernels share their reading of the rules.
"""

import random
from collections import Counter
from dataclasses import dataclass, field
from statistics import median

import pytest

from tests.unit.replay.commit_truth import Cluster, outside
from tests.unit.replay.histories import ledger

HISTORIES, MANY_HISTORIES = 150, 10_000


@dataclass
class Found:
    """What a run compared."""

    starts: Counter[str] = field(default_factory=Counter)
    """By rule."""
    wrong: list[str] = field(default_factory=list)
    widths: list[int] = field(default_factory=list)

    def __str__(self) -> str:
        closed, exact = len(self.widths), self.widths.count(0)
        return (
            f"{self.starts.total()} starts, {len(self.wrong)} outside; {exact} bounds exact, "
            f"{self.starts.total() - closed} open, median width {median(self.widths)}; "
            f"{dict(self.starts)}"
        )


def compare(histories: int, seed: int) -> Found:
    found = Found()
    for number in range(histories):
        truth = Cluster(random.Random(f"{seed}/{number}")).run()
        for row, offset, wrong in outside(truth, ledger(truth.history)["pull_starts"]):
            found.starts[row["rule"]] += 1
            if row["start_offset_high"] is not None:
                found.widths.append(row["start_offset_high"] - row["start_offset_low"])
            if wrong:
                found.wrong.append(f"history {seed}/{number}: real {offset}, {row}")
    return found


def test_every_real_start_lies_in_its_bounds(seed: int) -> None:
    found = compare(HISTORIES, seed)
    print(f"seed {seed}: {found}")
    assert found.wrong == []
    assert found.starts.keys() >= {"STORED", "BROKER_ZERO", "MAX_OFFSET", "FIRST_ZERO"}
    assert found.starts["STORED"] > 2 * HISTORIES
    # bounds that cover everything say nothing
    assert len(found.widths) > found.starts.total() / 2
    assert found.widths.count(0) > found.starts.total() / 6


@pytest.mark.slow
@pytest.mark.timeout(7_200)
def test_every_real_start_of_ten_thousand_histories_lies_in_its_bounds(seed: int) -> None:
    found = compare(MANY_HISTORIES, seed)
    print(f"seed {seed}: {found}")
    assert found.wrong == []


def test_bounds_that_are_too_tight_are_reported(seed: int) -> None:
    truth = Cluster(random.Random(f"{seed}/0")).run()
    rows = ledger(truth.history)["pull_starts"]
    tight = [row | {"start_offset_low": 2**40, "start_offset_high": 2**40} for row in rows]
    assert any(wrong for _, _, wrong in outside(truth, tight))
