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


def run(place: Path, code: int, **more: str) -> subprocess.CompletedProcess[str]:
    settings = {
        "REBALANCE": str(place / "audit"),
        "CALLS": str(place / "calls"),
        "CODE": str(code),
        "TEXTFILES": str(place / "textfiles"),
        **more,
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


def test_a_damaged_last_night_takes_no_later_night_with_it(place: Path) -> None:
    run(place, 0)
    (place / "audit").write_text(
        STAND_IN.replace("while", "[[ $* == *--previous* ]] && exit 4\nwhile", 1)
    )
    time.sleep(1.1)  # a run is named by its second
    done = run(place, 3)
    assert done.returncode == 3
    assert "once more without comparing" in done.stderr
    calls = (place / "calls").read_text().splitlines()
    assert ["--previous" in call for call in calls] == [False, True, False]
    newest = max(path for path in (place / "runs").iterdir() if path.name != "latest")
    assert (place / "runs" / "latest").resolve() == newest


def test_old_runs_go_and_nothing_else(place: Path) -> None:
    runs = place / "runs"
    month_ago = time.time() - 40 * 86_400
    for name in ("2026-01-01T000000", "2026-01-02T000000", "2026-of-mine", "other"):
        (runs / name).mkdir()
        if name != "2026-01-02T000000":
            os.utime(runs / name, (month_ago, month_ago))
    run(place, 0)
    left = {path.name for path in runs.iterdir()}
    assert "2026-01-01T000000" not in left
    assert {"2026-01-02T000000", "2026-of-mine", "other", "latest"} < left


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


COLLECTOR = """#!/bin/bash
echo "$@" >> "$CALLS.collect"
while [[ $# -gt 0 ]]; do [[ $1 == --output ]] && out=$2; shift; done
[[ -e $out ]] && exit 2
[[ $COLLECTED -eq 0 || $COLLECTED -eq 3 ]] || exit "$COLLECTED"
mkdir -p "$out"; echo 'cluster = "C"' > "$out/collection.toml"
exit "$COLLECTED"
"""


def collecting(place: Path, code: str) -> dict[str, str]:
    collector = place / "collector"
    collector.write_text(COLLECTOR)
    collector.chmod(0o755)
    return {"COLLECT": f"{collector} --sources s.txt", "COLLECTED": code}


@pytest.mark.parametrize("collected", ["0", "3"])
def test_every_night_is_collected_into_a_folder_of_its_own_and_audited(
    place: Path, collected: str
) -> None:
    """Also where something could not be collected: the audit names it."""
    old = place / "collection/2026-01-01T000000"
    old.mkdir()
    os.utime(old, (0, 0))
    for code in (3, 0):
        done = run(place, code, **collecting(place, collected))
        assert done.returncode == code, done.stderr
        time.sleep(1.1)
    asked = (place / "calls.collect").read_text().splitlines()
    folders = sorted(path for path in (place / "collection").iterdir())
    assert [f"--sources s.txt --output {path}" for path in folders] == asked
    audits = (place / "calls").read_text().splitlines()
    assert all(f"--collection {path} " in call for path, call in zip(folders, audits, strict=True))


def test_a_night_of_which_nothing_was_collected_has_no_verdict(place: Path) -> None:
    done = run(place, 0, **collecting(place, "2"))
    assert done.returncode == 2
    assert "no verdict, nothing was collected" in done.stderr
    assert not (place / "calls").exists()


def in_the_way(place: Path, what: str) -> dict[str, str]:
    if what == "textfiles":
        return {"TEXTFILES": str(place / "missing")}
    if what == "days":
        return {"KEEP_DAYS": "a month"}
    if what == "history metrics":
        fold = place / "fold"
        fold.write_text("#!/bin/sh\nexit 0\n")
        fold.chmod(0o755)
        return {"FOLD": str(fold), "HISTORY": str(place / "history")}
    tool = place / "bin" / what  # fails as on a full disk: half a copy is there
    tool.parent.mkdir()
    tool.write_text(
        "#!/bin/sh\nfor last; do :; done\n"
        'case $last in *.new) echo half > "$last" ;; esac\nexit 1\n'
    )
    tool.chmod(0o755)
    return {"PATH": f"{tool.parent}:{os.environ['PATH']}"}


@pytest.mark.parametrize("code", [0, 3])
@pytest.mark.parametrize("what", ["textfiles", "days", "history metrics", "cp", "mv", "ln", "find"])
def test_the_verdict_stands_whatever_fails_after_it(place: Path, what: str, code: int) -> None:
    done = run(place, code, **in_the_way(place, what))
    assert done.returncode == code
    assert "the verdict stands" in done.stderr
    metrics = place / "textfiles/rebalance_audit.prom"
    assert not metrics.exists() or metrics.read_text() == "m 1\n"


def test_a_signal_after_the_verdict_does_not_change_it(place: Path) -> None:
    fold = place / "fold"
    fold.write_text("#!/bin/sh\nkill -TERM $PPID\n")
    fold.chmod(0o755)
    done = run(place, 3, FOLD=str(fold), HISTORY=str(place / "history"))
    assert done.returncode == 3
