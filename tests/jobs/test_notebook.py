"""The planning notebook as a plain script: what `make notebook` executes, from a fresh clone."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

TREE = Path(__file__).resolve().parents[2]
MOST_SECONDS = 240  # measured: 14 s of processor time


@pytest.mark.unit
def test_it_runs_and_recommends(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, TREE / "notebooks/capacity_planning.py"],
        cwd=tmp_path,
        env=os.environ | {"MPLBACKEND": "Agg", "PLAN_PICTURES": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=MOST_SECONDS,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    answer = done.stdout[done.stdout.index("RECOMMENDATION:") :]
    assert "start 6 more consumers (9 in all), scale the topic to 16 queues first" in answer
    assert "keep AVG" in answer
    assert "moves 14 queues; no balanced result could do with fewer than 10" in answer
    assert "CONSISTENT_HASH(virtual_nodes=10) does not fit" in answer
    drawn = {path.stem for path in tmp_path.glob("*.png")}
    assert drawn == {
        "moves", "load", "ownership", "bands", "league", "what-if", "producers", "convergence",
        "worst-future",
    }  # fmt: skip
    assert "Switch it on, with clients of 5.1.4 or newer" in done.stdout
    assert "DEPLOY: under AVG as many at once as the rest can carry" in done.stdout
    assert "The order hardly matters" in done.stdout
