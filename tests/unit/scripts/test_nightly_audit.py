"""The script that cron runs, with a stand-in for the audit."""

import os
import subprocess
import time
from pathlib import Path

import pytest

from tests.tree import TREE

SCRIPT = TREE / "scripts" / "nightly_audit.sh"
STAND_IN = """#!/bin/bash
echo "$@" >> "$CALLS"
while [[ $# -gt 0 ]]; do [[ $1 == --output ]] && out=$2; shift; done
[[ $CODE -eq 0 || $CODE -eq 3 ]] || exit "$CODE"
mkdir -p "$out"; echo '{}' > "$out/_run.json"; echo 'm 1' > "$out/metrics.prom"
exit "$CODE"
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    audit = tmp_path / "audit"
    audit.write_text(STAND_IN)
    audit.chmod(0o755)
    for name in ("runs", "textfiles", "collection"):
        (tmp_path / name).mkdir()
    return tmp_path


def run(place: Path, code: int) -> subprocess.CompletedProcess[str]:
    settings = {
        "REBALANCE": str(place / "audit"),
        "CALLS": str(place / "calls"),
        "CODE": str(code),
        "TEXTFILES": str(place / "textfiles"),
    }
    words = [str(SCRIPT), str(place / "collection"), str(place / "runs"), "--fail-on", "WARNING"]
    return subprocess.run(
        words, env=os.environ | settings, capture_output=True, text=True, check=False, timeout=60
    )


def test_without_folders_it_says_how_it_is_used() -> None:
    done = subprocess.run([str(SCRIPT)], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "usage: nightly_audit.sh COLLECTION RESULTS [OPTION…]\n"


@pytest.mark.parametrize("code", [0, 3])
def test_a_night_with_a_verdict_becomes_the_latest(place: Path, code: int) -> None:
    assert run(place, code).returncode == code
    latest = place / "runs" / "latest"
    assert (latest / "_run.json").exists()
    assert (place / "textfiles" / "rebalance_audit.prom").read_text() == "m 1\n"
    call = (place / "calls").read_text()
    assert "--fail-on WARNING" in call
    assert "--previous" not in call
    assert "--accepted" not in call


def test_the_next_night_is_compared_and_accepts(place: Path) -> None:
    run(place, 0)
    (place / "runs" / "known.toml").write_text("")
    time.sleep(1.1)  # a run is named by its second
    run(place, 0)
    second = (place / "calls").read_text().splitlines()[1]
    assert f"--previous {place}/runs/latest/" in second
    assert f"--accepted {place}/runs/known.toml" in second


def test_an_audit_that_fails_leaves_the_last_night(place: Path) -> None:
    run(place, 0)
    before = (place / "runs" / "latest").resolve()
    failed = run(place, 4)
    assert failed.returncode == 4
    assert "no verdict" in failed.stderr
    assert (place / "runs" / "latest").resolve() == before


def test_old_runs_go_and_nothing_else(place: Path) -> None:
    runs = place / "runs"
    month_ago = time.time() - 40 * 86_400
    for name in ("2026-01-01T000000", "2026-01-02T000000", "other"):
        (runs / name).mkdir()
        if name != "2026-01-02T000000":
            os.utime(runs / name, (month_ago, month_ago))
    run(place, 0)
    left = {path.name for path in runs.iterdir()}
    assert "2026-01-01T000000" not in left
    assert {"2026-01-02T000000", "other", "latest"} < left


@pytest.mark.parametrize(("fold", "metrics"), [("0", True), ("4", False)])
def test_history_is_folded_last_and_does_not_change_the_verdict(
    place: Path, fold: str, metrics: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    folding = place / "fold"
    folding.write_text(STAND_IN.replace("$CODE", fold))
    folding.chmod(0o755)
    (place / "runs" / "owners.toml").write_text("")
    monkeypatch.setenv("FOLD", str(folding))
    monkeypatch.setenv("HISTORY", str(place / "history"))
    done = run(place, 3)
    assert done.returncode == 3
    assert (place / "textfiles" / "rebalance_history.prom").exists() is metrics
    assert ("the history ended with 4" in done.stderr) is not metrics
    audit, history = (place / "calls").read_text().splitlines()
    assert "--collection" in audit
    assert history.startswith(f"--runs {place}/runs --output {place}/history --overwrite --owners")
