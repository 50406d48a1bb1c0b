"""The jobs that run in a process need neither pyspark nor Java."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.tree import TREE

COLLECTION = TREE / "tests/recordings/data/join-leave/collection"
BLOCKED = ("pyspark", "py4j")
RUN = """
from rebalance_core.cli.main import main
for more in (["--dry-run"], []):
    if code := main(None, [*sys.argv[1:], *more]):
        sys.exit(code)
"""


@pytest.mark.parametrize(
    "words",
    [
        ("audit", "--collection", COLLECTION),
        ("audit", "--collection", COLLECTION, "--redact-clients"),
        ("ingest", "--collection", COLLECTION),
        ("generate", "--groups", "2"),
    ],
    ids=["audit", "redacted", "ingest", "generate"],
)
def test_a_job_and_its_dry_run(words: tuple[str | Path, ...], tmp_path: Path) -> None:
    blocked = "; ".join(f"sys.modules[{name!r}] = None" for name in BLOCKED)
    command = [sys.executable, "-c", f"import sys; {blocked}\n{RUN}", *map(str, words)]
    done = subprocess.run(
        [*command, "--output", str(tmp_path / "out")],
        env=os.environ | {"PYTHONPATH": str(TREE), "JAVA_HOME": "/none"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "out/_run.json").read_text())["run_on"] == "process"
