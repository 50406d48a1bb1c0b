"""Sixty trials of a fixed seed; `make degraded TRIALS=5000` runs more."""

import pytest

from tests.degraded.trials import run_trial

FIRST, TRIALS = 1, 60


@pytest.mark.parametrize("seed", range(FIRST, FIRST + TRIALS))
def test_a_damaged_collection_is_judged_honestly_and_not_mute(seed: int) -> None:
    trial = run_trial(seed)
    assert not trial.failed, trial.told()
