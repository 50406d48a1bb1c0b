"""What a command costs, with the parts of processes that nobody waits for."""

import json
import subprocess
import sys
from typing import Any

from tests.tree import TREE

BURNT = 0.5
BURNING = f"""
import time
block = b"x" * 200_000_000
while time.process_time() < {BURNT}:
    pass
time.sleep(0.5)
"""
# Its child outlives it, and it does not wait for it, as a JVM may.
PARENT_OF_AN_ORPHAN = f"""
import subprocess, sys
subprocess.Popen([sys.executable, "-c", {BURNING!r}])
print("started")
sys.exit(7)
"""
# It lets the kernel reap its children, as Spark's Python daemon does.
DAEMON = f"""
import signal, subprocess, sys
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
subprocess.Popen([sys.executable, "-c", {BURNING!r}]).wait()
"""
# In a process of its own: one that inherits orphans stays so.
MEASURE = """
import json, sys, tempfile
from dataclasses import asdict
from pathlib import Path
from tests.bench.process_tree import cost_of
with tempfile.TemporaryDirectory() as folder:
    cost = cost_of([sys.executable, "-c", sys.argv[1]], scratch=Path(folder))
print(json.dumps(asdict(cost)))
"""


def cost_of(program: str) -> dict[str, Any]:
    told = subprocess.run(
        [sys.executable, "-c", MEASURE, program], cwd=TREE, capture_output=True, check=True
    )
    cost: dict[str, Any] = json.loads(told.stdout)
    return cost


def test_an_orphan_counts() -> None:
    cost = cost_of(PARENT_OF_AN_ORPHAN)
    assert cost["code"] == 7
    assert cost["output"] == "started\n"
    assert cost["processor_seconds"] >= BURNT
    assert cost["peak_mib"]["python"] >= 190


def test_a_child_that_the_kernel_reaps_counts() -> None:
    cost = cost_of(DAEMON)
    assert cost["code"] == 0
    assert cost["processor_seconds"] >= BURNT
