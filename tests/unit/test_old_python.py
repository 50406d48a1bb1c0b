"""An older Python, as clusters of Spark 3.5 have it, gets one sentence."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from tests.tree import TREE

JOBS = sorted((TREE / "jobs").glob("*.py"))
OLD = "import runpy, sys; sys.version_info = (3, 8, 18, 'final', 0); "


def run_as_old(code: str) -> tuple[int, list[str]]:
    ended = subprocess.run(
        [sys.executable, "-c", OLD + code], cwd=TREE, capture_output=True, text=True, check=False
    )
    return ended.returncode, ended.stderr.splitlines()


@pytest.mark.parametrize("file", [TREE / "rebalance_core/__init__.py", *JOBS], ids=str)
def test_what_an_old_python_reads_first_is_python_3_8(file: Path) -> None:
    ast.parse(file.read_text("utf-8"), feature_version=(3, 8))


def test_the_package_states_what_it_needs() -> None:
    code, lines = run_as_old("import rebalance_core")
    assert code == 1
    assert lines[-1].startswith("ImportError: rebalance-core needs Python 3.11 or newer, but this")
    assert "PYSPARK_PYTHON" in lines[-1]
    assert not any("rebalance_core/cli" in line for line in lines)


@pytest.mark.parametrize("job", JOBS, ids=lambda job: job.stem)
def test_an_entry_script_ends_with_one_sentence(job: Path) -> None:
    code, lines = run_as_old(f"runpy.run_path({str(job)!r}, run_name='__main__')")
    assert code == 2
    assert len(lines) == 1
    assert lines[0].startswith("rebalance: rebalance-core needs Python 3.11 or newer")


def test_a_module_of_the_package_ends_with_one_sentence() -> None:
    code, lines = run_as_old("sys.argv = ['-m']; import rebalance_core")
    assert (code, len(lines)) == (2, 1)
