"""`night`: one folder for all nights, and one exit code, whatever happens to a night."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from rebalance_core.cli import audit, history
from rebalance_core.cli.job_options import AuditOptions
from rebalance_core.cli.jobs import JobReport
from rebalance_core.cli.main import main
from rebalance_core.cli.run.night_folders import NIGHT_RECORD, NightFolders
from rebalance_core.contracts import LEDGER_TABLES
from rebalance_core.ingest import opening_evidence
from rebalance_core.model.errors import InputRefused, Terminated
from tests.recordings.nights import two_nights
from tests.recordings.tables import DATA
from tests.unit.collect.machines import executable

COLLECTION = DATA / "join-leave/collection"


def night(place: Path, *words: str) -> int:
    return main("night", ["--runs", str(place / "runs"), "--run-on", "process", *words])


def audited(place: Path, *words: str) -> int:
    """A night of a collection that is there already, which takes a second."""
    return night(place, "--collection", str(COLLECTION), *words)


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The output of an audit of the recording."""
    output = tmp_path_factory.mktemp("judged") / "audit"
    words = ["--collection", str(COLLECTION), "--output", str(output), "--run-on", "process"]
    assert main("audit", words) == 0
    return output


@pytest.fixture
def quick(judged: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every audit writes what one wrote before, and ends with 3."""

    def copied(options: AuditOptions) -> JobReport:
        shutil.copytree(judged, options.output)
        return JobReport("judged", {"job": "audit"}, 3)

    monkeypatch.setattr(audit, "run", copied)


def nights(place: Path) -> list[Path]:
    return sorted((place / "runs/nights").iterdir())


def record(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / NIGHT_RECORD).read_text())
    return found


def answer(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(capsys.readouterr().out.splitlines()[-1])
    return found


def sources(place: Path) -> Path:
    """Machines with the logs and stores of a recording, as folders of this host."""
    lines = []
    for broker in sorted((COLLECTION / "brokers").iterdir()):
        machine = place / broker.name
        shutil.copytree(broker, machine)
        lines.append(f"broker {broker.name} {machine} {machine}")
    file = place / "sources.txt"
    file.write_text("\n".join(lines) + "\n")
    return file


def aged(folder: Path, days: int) -> Path:
    """The night as if it had begun some days earlier."""
    name = (datetime.now(UTC) - timedelta(days=days)).strftime("%Y-%m-%dT%H%M%SZ")
    older = folder.rename(folder.with_name(name))
    (older / NIGHT_RECORD).write_text(json.dumps(record(older) | {"night": name}))
    return older


def test_two_nights_are_collected_compared_and_folded(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = sources(tmp_path)
    (tmp_path / "textfiles").mkdir()
    words = ["--sources", str(file), "--no-admin", "--textfiles", str(tmp_path / "textfiles")]
    assert night(tmp_path, *words, "--json") == 3
    first = answer(capsys)
    assert (first["job"], first["compared_with"], first["not_collected"]) == ("night", None, [])
    assert night(tmp_path, *words, "--json", "--fail-on-new", "ERROR") == 3  # no dump: incomplete
    second = answer(capsys)
    assert second["compared_with"] == first["night"]
    assert second["changes"]["new"] == []
    assert second["history"]["nights"] == 2
    assert second["history"]["left_out"] == []
    assert [record(folder)["status"] for folder in nights(tmp_path)] == ["OK", "OK"]
    assert (tmp_path / "runs/history/history.html").is_file()
    written = {path.name for path in (tmp_path / "textfiles").iterdir()}
    assert written == {"rebalance_audit.prom", "rebalance_history.prom"}


def test_a_night_continues_the_one_before(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    divided = two_nights(DATA / "nightly/collection", tmp_path, 1, rotates=False)
    words = ["--run-on", "process", "--since", "2020-01-01T00:00:00Z"]
    words += ["--output", str(tmp_path / "whole")]
    main("audit", ["--collection", str(divided.both), *words])
    assert night(tmp_path, "--collection", str(divided.first)) in (0, 3)
    assert night(tmp_path, "--collection", str(divided.second)) in (0, 3)
    first, second = nights(tmp_path)
    run = json.loads((second / "audit/_run.json").read_text())
    both = json.loads((tmp_path / "whole/_run.json").read_text())
    assert {each["table"]: each["path"] for each in run["inputs"]} == {
        "input": str(divided.second),
        "state": str(first / "audit"),
    }
    for table in LEDGER_TABLES.keys() - {"rejected"}:
        assert run["outputs"][table] == both["outputs"][table], table

    (second / "audit/state/evidence/part-00000.zstd.parquet").unlink()
    capsys.readouterr()
    assert night(tmp_path, "--collection", str(divided.both)) in (0, 3)
    assert f"starts without the evidence of the night {second.name}: " in capsys.readouterr().err
    run = json.loads((nights(tmp_path)[-1] / "audit/_run.json").read_text())
    assert [each["table"] for each in run["inputs"]] == ["input"]


def test_logs_are_copied_from_where_the_last_good_night_ended(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = sources(tmp_path)
    logs = sorted(tmp_path.glob("broker-*/broker.log"))
    whole = {log: log.read_text() for log in logs}
    for log, text in whole.items():
        log.write_text(text[: text.index("\n", len(text) // 2) + 1])
    words = ["--sources", str(file), "--no-admin"]
    assert night(tmp_path, *words) == 3
    assert "collection, logs whole" in capsys.readouterr().err
    first = {log: log.read_text() for log in logs}
    for log, text in whole.items():
        log.write_text(text)
    assert night(tmp_path, *words) == 3
    state = nights(tmp_path)[0] / "audit"
    assert f"logs from where {state} ended" in capsys.readouterr().err
    second = nights(tmp_path)[1]
    for log in logs:
        copy = second / "collection/brokers" / log.parent.name / log.name
        assert copy.read_text() == whole[log].removeprefix(first[log])
    assert night(tmp_path, *words, "--keep-collections", "1") == 3  # nothing grew
    run, again = (
        json.loads((folder / "audit/_run.json").read_text())["outputs"]
        for folder in nights(tmp_path)[1:]
    )
    for table in ("epochs", "ownership", "diffs", "memberships"):
        assert run[table] == again[table], table

    capsys.readouterr()
    audit_alone = ["--collection", str(second / "collection"), "--output", str(tmp_path / "alone")]
    assert main("audit", audit_alone) == 4
    assert f"name that run: --state {state}" in capsys.readouterr().err
    shutil.rmtree(nights(tmp_path)[-1] / "audit/state")
    assert night(tmp_path, *words) == 3
    said = capsys.readouterr().err
    assert f"the night {nights(tmp_path)[2].name} has no evidence to continue from" in said
    assert "collection, logs whole" in said
    copy = nights(tmp_path)[-1] / "collection/brokers" / logs[0].parent.name / "broker.log"
    assert copy.read_text() == whole[logs[0]]


def test_a_state_of_another_version_is_no_beginning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = sources(tmp_path)
    words = ["--sources", str(file), "--no-admin"]
    assert night(tmp_path, *words) == 3
    monkeypatch.setattr(opening_evidence, "FORM", 99)
    assert night(tmp_path, *words) == 3
    assert "another version of rebalance-core wrote it" in capsys.readouterr().err


def test_a_night_begins_at_a_given_time(tmp_path: Path) -> None:
    since = ["--since", "2026-11-21T11:28:00+08:00"]
    assert night(tmp_path, "--collection", str(COLLECTION), *since) in (0, 3)
    (only,) = nights(tmp_path)
    run = json.loads((only / "audit/_run.json").read_text())
    assert run["audit"]["night_ms"] == 1_795_231_680_000


def test_what_could_not_be_collected_is_audited_and_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = sources(tmp_path)
    file.write_text(f"{file.read_text()}client gone {tmp_path}/nowhere\n")
    assert night(tmp_path, "--sources", str(file), "--no-admin") == 3
    printed = capsys.readouterr().out
    assert "Incomplete: 1 part not collected: clients/gone" in printed
    assert "COLLECTION_INCOMPLETE" in printed
    assert "History of 1 night" in printed


def test_a_night_ends_as_its_audit_ends(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    known = str(tmp_path / "known.toml")
    assert audited(tmp_path, "--fail-on", "INFO", "--write-accepted", known) == 3
    assert Path(known).is_file()
    capsys.readouterr()
    words = ["--fail-on", "INFO", "--fail-on-new", "INFO", "--format", "markdown"]
    assert audited(tmp_path, *words) == 0
    assert capsys.readouterr().out.startswith("#")


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["--sources", "{here}/none", "--no-admin"], 2, "cannot be read"),
        (["--collection", "{here}/none"], 4, "no such folder"),
        (["--collection", "c", "--sources", "s"], 2, "exclude each other"),
        (["--collection", "c", "--accepted", "{here}/none"], 2, "--accepted"),
        (["--collection", "c", "--owners", "{here}/none"], 2, "--owners"),
        (["--collection", "c", "--set", "audit.nothing=1"], 2, "unknown key"),
        (["--collection", "c", "--keep", "0"], 2, "from 1 to 10,000"),
        (["--no-admin"], 2, "nothing to collect"),
    ],
)
def test_a_night_of_which_there_is_nothing_leaves_no_night(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], words: list[str], code: int, message: str
) -> None:
    given = [word.replace("{here}", str(tmp_path)) for word in words]
    assert night(tmp_path, *given) == code
    assert message in capfd.readouterr().err
    assert list(tmp_path.glob("runs/nights/*")) == []


def test_a_folder_that_cannot_be_written_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "runs").write_text("")
    assert audited(tmp_path) == 2
    assert f"--runs {tmp_path}/runs cannot be written" in capsys.readouterr().err


def test_a_dry_run_writes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert night(tmp_path, "--sources", "s.txt", "--no-admin", "--dry-run", "--json") == 0
    found = answer(capsys)
    assert (found["compared_with"], found["removed"]) == (None, [])
    assert "s.txt" in found["command"]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("quick")
def test_while_one_runs_a_second_ends_with_5_and_its_death_frees_the_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Killed in the middle of collecting; the next night is not compared with what it left."""
    assert audited(tmp_path) == 3
    good = nights(tmp_path)[0].name
    executable(tmp_path / "ssh", f"touch {tmp_path}/called\nexec sleep 600\n")
    (tmp_path / "sources.txt").write_text("namesrv n1 host:/logs\n")
    words = ["night", "--runs", str(tmp_path / "runs"), "--no-admin"]
    words += ["--sources", str(tmp_path / "sources.txt")]
    with subprocess.Popen(
        [sys.executable, "-m", "rebalance_core.cli.main", *words],
        env=os.environ | {"COLLECT_SSH": str(tmp_path / "ssh")},
        start_new_session=True,
        stderr=subprocess.DEVNULL,
    ) as first:
        try:
            for _ in range(300):
                if (tmp_path / "called").exists():
                    break
                time.sleep(0.1)
            assert audited(tmp_path) == 5
            assert "another night is still running" in capsys.readouterr().err
        finally:
            os.killpg(first.pid, signal.SIGKILL)
    died = nights(tmp_path)[1]
    assert record(died)["status"] == "STARTED"
    assert (died / "collection").exists()
    assert audited(tmp_path, "--json") == 3
    printed = capsys.readouterr()
    assert f"the night {died.name} has no verdict because its process died" in printed.err
    assert json.loads(printed.out.splitlines()[-1])["compared_with"] == good
    assert record(died)["status"] == "FAILED"
    assert not (died / "collection").exists()
    assert len(nights(tmp_path)) == 3


@pytest.mark.usefixtures("quick")
def test_a_night_that_died_in_its_audit_keeps_what_it_collected(tmp_path: Path) -> None:
    folders = NightFolders(tmp_path / "runs")
    folders.nights.mkdir(parents=True)
    died = folders.begin()
    died.collection.mkdir()
    (died.collection / "collection.toml").write_text('cluster = "C"\n')
    (died.audit / "findings").mkdir(parents=True)
    (died.audit / "_lock.json").write_text("{}")
    assert audited(tmp_path) == 3
    assert record(died.folder)["status"] == "FAILED"
    assert died.collection.is_dir()
    assert not died.audit.exists()


@pytest.mark.usefixtures("quick")
def test_a_night_that_died_after_its_verdict_counts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert audited(tmp_path) == 3
    (last,) = nights(tmp_path)
    (last / NIGHT_RECORD).write_text(json.dumps(record(last) | {"status": "STARTED"}))
    assert audited(tmp_path, "--json") == 3
    assert answer(capsys)["compared_with"] == last.name
    assert record(last)["status"] == "OK"


@pytest.mark.usefixtures("quick")
def test_a_damaged_night_is_passed_over_for_the_one_before(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for _ in range(2):
        assert audited(tmp_path) == 3
    first, second = nights(tmp_path)
    shutil.rmtree(second / "audit/findings")
    capsys.readouterr()
    assert audited(tmp_path, "--json") == 3
    printed = capsys.readouterr()
    assert f"not compared with the night {second.name}" in printed.err
    assert json.loads(printed.out.splitlines()[-1])["compared_with"] == first.name


@pytest.mark.usefixtures("quick")
def test_nights_of_another_cluster_are_passed_over(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An audit of two clusters in turns would be refused each night."""
    assert audited(tmp_path) == 3
    other = tmp_path / "other"
    other.mkdir()
    (other / "collection.toml").write_text('cluster = "Other"\n')
    capsys.readouterr()
    assert night(tmp_path, "--collection", str(other), "--json") == 3
    assert answer(capsys)["compared_with"] is None
    assert audited(tmp_path, "--json") == 3
    assert answer(capsys)["compared_with"] is not None


@pytest.mark.usefixtures("quick")
def test_an_audit_that_is_refused_leaves_the_last_good_night(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(options: object) -> None:
        raise InputRefused("too many bad rows")

    assert audited(tmp_path) == 3
    with monkeypatch.context() as patched:
        patched.setattr(audit, "run", refused)
        assert night(tmp_path, "--sources", str(sources(tmp_path)), "--no-admin") == 4
    good, failed = nights(tmp_path)
    assert record(failed)["error"] == "too many bad rows"
    assert (failed / "collection/collection.toml").is_file()
    capsys.readouterr()
    assert audited(tmp_path, "--json") == 3
    found = answer(capsys)
    assert found["compared_with"] == good.name
    (left_out,) = found["history"]["left_out"]
    assert left_out.startswith(f"{failed}/audit: ")


@pytest.mark.usefixtures("quick")
def test_only_old_nights_of_its_own_are_removed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert night(tmp_path, "--sources", str(sources(tmp_path)), "--no-admin") == 3
    (first,) = nights(tmp_path)
    shutil.copytree(first, week := first.with_name("2026-01-01T000000Z"))
    shutil.copytree(first, noted := first.with_name("2026-01-02T000000Z"))
    week, noted, first = aged(week, 10), aged(noted, 41), aged(first, 40)
    (noted / "audit/notes.txt").write_text("mine")
    stranger = first.with_name("2026-02-01T000000Z")  # a name of a night without its record
    (stranger / "collection").mkdir(parents=True)
    for name in ("old", "notes.txt"):
        (tmp_path / "runs" / name).mkdir()
    capsys.readouterr()
    assert audited(tmp_path, "--json") == 3
    printed = capsys.readouterr()
    found = json.loads(printed.out.splitlines()[-1])
    assert found["removed"] == [
        first.name,
        f"collection of {noted.name}",
        f"collection of {week.name}",
    ]
    assert f"{noted}/audit/notes.txt does not come from a night" in printed.err
    assert not first.exists()
    assert (noted / "audit/notes.txt").read_text() == "mine"
    assert (week / "audit/report.html").is_file()
    assert not (week / "audit/state").exists()
    assert (stranger / "collection").is_dir()
    assert (tmp_path / "runs/old").is_dir()


@pytest.mark.usefixtures("quick")
def test_a_link_to_a_night_is_none(tmp_path: Path) -> None:
    assert audited(tmp_path) == 3
    (first,) = nights(tmp_path)
    elsewhere = aged(first, 50).rename(tmp_path / "elsewhere")
    link = first.with_name(record(elsewhere)["night"])
    link.symlink_to(elsewhere)
    assert audited(tmp_path) == 3
    assert link.is_symlink()
    assert (elsewhere / "audit/report.html").is_file()


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("error", [RuntimeError("no"), OSError(28, "full"), Terminated(143)])
def test_the_verdict_stands_whatever_fails_after_it(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    error: BaseException,
) -> None:
    def fail(options: object) -> None:
        raise error

    monkeypatch.setattr(history, "run", fail)
    words = ["--textfiles", str(tmp_path / "none"), "--json"]
    assert audited(tmp_path, *words) == 3
    printed = capsys.readouterr()
    assert printed.err.count("the verdict stands") == 2
    assert f"{tmp_path}/none/rebalance_audit.prom cannot be written" in printed.err
    assert json.loads(printed.out.splitlines()[-1])["history"] is None
    assert record(nights(tmp_path)[0])["exit_code"] == 3


def test_a_run_that_is_terminated_leaves_no_half_written_night(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def end(options: object) -> None:
        raise Terminated(143)

    monkeypatch.setattr(audit, "run", end)
    assert audited(tmp_path) == 143
    assert nights(tmp_path) == []
