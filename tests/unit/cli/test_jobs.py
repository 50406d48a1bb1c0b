"""How a job is run, whichever it is."""

import gc
import subprocess
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


@pytest.mark.parametrize("own_process", [True, False])
def test_pandas_is_loaded_by_the_job_that_asks_for_a_frame_alone(own_process: bool) -> None:
    """A job's values do not load it, which would take a third of a second; but in the process of
    someone who passes frames to pyarrow, their missing values stay missing.
    """
    asks = f"""
import sys
from rebalance_core.cli.jobs import JOBS
from rebalance_core.cli.job_options import IngestOptions
try:
    JOBS["ingest"].run(IngestOptions(collection="/nowhere", output="/nowhere"), {own_process})
except Exception as error:
    print(type(error).__name__)
import pyarrow
table = pyarrow.table({{"n": [1]}}).group_by("n").aggregate([])
print("pandas" in sys.modules, pyarrow.scalar(table["n"][0].as_py()))
import pandas
print(pyarrow.array(pandas.Series([None, 2])).null_count)
print(pyarrow.Table.from_pandas(table.to_pandas()).num_rows)
"""
    done = subprocess.run([sys.executable, "-c", asks], capture_output=True, text=True, check=False)
    assert done.stderr == ""
    raised, loaded, nulls, rows = done.stdout.splitlines()
    assert (raised, rows) == ("InputRefused", "1")
    assert (loaded, nulls) == (("False 1", "0") if own_process else ("True 1", "1"))
