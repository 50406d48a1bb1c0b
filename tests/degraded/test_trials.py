"""Sixty trials of fixed seeds; `make degraded TRIALS=5000` runs more."""

import pytest

from tests.degraded.trials import run_trial


@pytest.mark.parametrize("seed", range(1, 61))
def test_a_damaged_collection_is_judged_honestly_and_not_mute(seed: int) -> None:
    trial = run_trial(seed)
    assert not trial.failed, trial.told()
