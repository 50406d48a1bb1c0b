"""A stdout or stderr that is closed, full or left by its reader; a process out of memory."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from rebalance_core.cli import generate
from rebalance_core.cli.main import main
from tests.tree import TREE

PROGRAM = f"{sys.executable} -m rebalance_core.cli.main"
INPUT = TREE / "rebalance_core/bundled/demo/join-leave/tables"


@pytest.mark.parametrize(
    ("job", "end", "code"),
    [
        ("simulate --input TABLES --output out", "| head -c 0", 0),
        ("simulate --input TABLES --output out", "2>&1 | head -c 0", 0),
        ("simulate --input TABLES --output out --json", ">&-", 0),
        ("simulate --input TABLES --output out", ">&- 2>&-", 0),
        ("simulate --input TABLES --output out", "2>&-", 0),
        ("simulate --input TABLES --output out", "> /dev/full", 2),
        ("simulate --input nothing --output out", "2>&1 | head -c 0", 4),
        ("simulate --input nothing --output out --json", ">&-", 4),
        ("--help", "| head -c 0", 0),
        ("simulate --help", ">&-", 0),
    ],
)
def test_a_closed_stream_changes_no_code(job: str, end: str, code: int, tmp_path: Path) -> None:
    words = job.replace("TABLES", str(INPUT))
    ended = subprocess.run(
        ["bash", "-c", f"{PROGRAM} {words} {end}; exit ${{PIPESTATUS[0]}}"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(TREE)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == code, ended.stderr
    assert "Traceback" not in ended.stderr
    assert "Exception ignored" not in ended.stderr
    assert not list(tmp_path.glob("*")) or (tmp_path / "out/_run.json").stat().st_size > 100


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (MemoryError(), 2, "ran out of memory"),
        (SystemExit(0), 1, "this is a bug: SystemExit"),
        (SystemExit(7), 1, "this is a bug: SystemExit"),
    ],
)
def test_an_end_of_a_job_that_is_no_answer(
    error: BaseException,
    code: int,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def ends(options: object) -> None:
        raise error

    monkeypatch.setattr(generate, "run", ends)
    assert main(None, ["generate", "--groups", "1", "--output", "x"]) == code
    assert said in capsys.readouterr().err
