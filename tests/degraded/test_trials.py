"""Sixty trials of fixed seeds; `make degraded TRIALS=5000` runs more."""

import pytest
from _pytest.mark import ParameterSet

from tests.degraded.trials import run_trial

SEEDS = range(1, 61)
STARTS = {15, 48}
"""Logs that begin late or have a hole: starts whose bounds take what the logs lack for not so."""


def _param(seed: int) -> ParameterSet:
    known = pytest.mark.xfail(reason="bounds of starts do not ask coverage")
    return pytest.param(seed, marks=known if seed in STARTS else ())


@pytest.mark.parametrize("seed", [_param(seed) for seed in SEEDS])
def test_a_damaged_collection_is_judged_honestly_and_not_mute(seed: int) -> None:
    trial = run_trial(seed)
    assert not trial.failed, trial.told()
