"""How a job is run, whichever it is."""

import gc
import sys
from types import SimpleNamespace

import pytest

from rebalance_core.cli.job_options import SimulateOptions
from rebalance_core.cli.jobs import OBJECTS_A_COLLECTION, Job, JobReport
from rebalance_core.cli.options import JobOptions
from rebalance_core.model.errors import UsageError


def test_garbage_is_collected_rarely_while_a_job_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    before, seen = gc.get_threshold(), list[int]()

    def run(options: JobOptions) -> JobReport:
        seen.append(gc.get_threshold()[0])
        raise UsageError("it fails")

    monkeypatch.setitem(sys.modules, "rebalance_core.cli.made_up", SimpleNamespace(run=run))
    with pytest.raises(UsageError):
        Job("made_up", SimulateOptions, "", ()).run(SimulateOptions())
    assert seen == [OBJECTS_A_COLLECTION]
    assert gc.get_threshold() == before
