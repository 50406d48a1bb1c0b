"""What a command costs, its orphans' part included."""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
BURNT = 0.3
# A child that outlives its parent, which does not wait for it, as a JVM may.
ORPHAN = f"""
import time
block = b"x" * 200_000_000
while time.process_time() < {BURNT}:
    pass
"""
PARENT = f"""
import subprocess, sys
subprocess.Popen([sys.executable, "-c", {ORPHAN!r}])
print("started")
sys.exit(7)
"""
# In a process of its own: one that inherits orphans stays so.
MEASURE = f"""
import json, sys, tempfile
from dataclasses import asdict
from pathlib import Path
from tests.bench.process_tree import cost_of
with tempfile.TemporaryDirectory() as folder:
    cost = cost_of([sys.executable, "-c", {PARENT!r}], scratch=Path(folder))
print(json.dumps(asdict(cost)))
"""


def test_an_orphan_counts() -> None:
    told = subprocess.run(
        [sys.executable, "-c", MEASURE], cwd=ROOT, capture_output=True, check=True
    )
    cost = json.loads(told.stdout)
    assert cost["code"] == 7
    assert cost["output"] == "started\n"
    assert cost["processor_seconds"] >= BURNT
    assert cost["peak_mib"]["python"] >= 190
