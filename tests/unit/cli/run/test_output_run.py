"""Output folders: what is replaced, what stays, and what a failed run leaves."""

import json
import socket
from pathlib import Path
from typing import Any

import pytest

from rebalance_core.checks.digest import TableWritten
from rebalance_core.cli.options import JobOptions
from rebalance_core.cli.run.output_folder import typed_place
from rebalance_core.cli.run.output_run import OutputRun
from rebalance_core.cli.run.run_record import RunOutcome, read_run
from rebalance_core.contracts import CONTRACT_VERSION
from rebalance_core.contracts.run_names import LOCK_NAME
from rebalance_core.model.errors import InputRefused, OutputExists, UsageError

DEAD = {
    "host": "elsewhere",
    "pid": 1,
    "started_at": "2020-01-01T00:00:00+00:00",
    "heartbeat": "2020-01-01T00:00:00+00:00",
    "token": "x",
    "process": None,
}


def new_run(folder: Path, **flags: Any) -> OutputRun:
    options = JobOptions(argv=("simulate", "--output", str(folder)), **flags)
    return OutputRun(typed_place(str(folder)), "simulate", options, {}, ["epochs"], "process")


def write_result(folder: Path, rows: int, **flags: Any) -> None:
    with new_run(folder, **flags) as run:
        run.clear()
        (folder / "epochs").mkdir()
        run.finish(RunOutcome(outputs={"epochs": TableWritten(rows, "d")}))


def rows_in(folder: Path) -> int:
    return int(read_run(typed_place(str(folder)))["outputs"]["epochs"]["rows"])


def test_a_result_is_replaced_only_on_request(tmp_path: Path) -> None:
    write_result(tmp_path, 1)
    with pytest.raises(OutputExists, match="--overwrite replaces it"):
        write_result(tmp_path, 2)
    assert rows_in(tmp_path) == 1
    write_result(tmp_path, 2, overwrite=True)
    assert rows_in(tmp_path) == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["_run.json", "epochs"]


def test_another_job_leaves_no_page_of_the_audit_before(tmp_path: Path) -> None:
    options = JobOptions(argv=("audit", "--output", str(tmp_path)))
    with OutputRun(typed_place(str(tmp_path)), "audit", options, {}, ["epochs"], "process") as run:
        (tmp_path / "ingested" / "cluster_events").mkdir(parents=True)
        (tmp_path / "report.html").write_text("of that audit")
        run.finish(RunOutcome(outputs={}))
    write_result(tmp_path, 1, overwrite=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["_run.json", "epochs"]


def test_a_foreign_folder_is_never_overwritten(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    (tmp_path / "_run.json").write_text("{}")
    with pytest.raises(OutputExists, match="never overwrites"):
        write_result(tmp_path, 1, overwrite=True, break_lock=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["_run.json", "thesis.txt"]


@pytest.mark.parametrize("status", ["FAILED", "DONE", "OK"])
@pytest.mark.parametrize(
    "name", ["..", ".", "", "a\\b", "../beside", "\0", "{beside}", "epochs/.."]
)
def test_a_record_removes_nothing_but_tables(tmp_path: Path, name: str, status: str) -> None:
    """Whatever a record names: what lies above, beside and below by another name stays."""
    folder, beside = tmp_path / "nights" / "out", tmp_path / "nights" / "beside"
    folder.mkdir(parents=True)
    beside.mkdir()
    (beside / "precious.txt").write_text("years of work")
    outputs = {name.format(beside=beside): {"rows": 0, "digest": "d"}}
    content = {
        "job": "simulate",
        "status": status,
        "library_version": "0",
        "contract_version": CONTRACT_VERSION,
    }
    odd: list[object] = [outputs, list(outputs), name, {name: {}}]
    for value in odd:
        (folder / "_run.json").write_text(json.dumps(content | {"outputs": value}))
        before = names(tmp_path)
        with pytest.raises(OutputExists, match=r"is damaged: .* never overwrites"):
            write_result(folder, 1, overwrite=True)
        assert names(tmp_path) == before


def test_tables_that_no_contract_has_stay(tmp_path: Path) -> None:
    write_result(tmp_path / "out", 1)
    record = json.loads((tmp_path / "out" / "_run.json").read_text())
    record["outputs"]["thesis"] = {"rows": 1, "digest": "d"}
    (tmp_path / "out" / "_run.json").write_text(json.dumps(record))
    (tmp_path / "out" / "thesis").mkdir()
    write_result(tmp_path / "out", 2, overwrite=True)
    assert names(tmp_path / "out") == ["_run.json", "epochs", "thesis"]


def test_a_link_goes_and_what_it_leads_to_stays(tmp_path: Path) -> None:
    write_result(tmp_path / "out", 1)
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "part").touch()
    (tmp_path / "out" / "epochs").rmdir()
    (tmp_path / "out" / "epochs").symlink_to(tmp_path / "kept")
    write_result(tmp_path / "out", 2, overwrite=True)
    assert not (tmp_path / "out" / "epochs").is_symlink()
    assert names(tmp_path / "kept") == ["part"]


def test_tables_beside_the_record_of_a_failed_run_are_not_its_own(tmp_path: Path) -> None:
    with pytest.raises(InputRefused):
        fail_half_way(tmp_path)
    (tmp_path / "epochs").mkdir()
    with pytest.raises(OutputExists, match="holds epochs beside the record of a failed run"):
        write_result(tmp_path, 1)
    write_result(tmp_path, 1, overwrite=True)
    assert rows_in(tmp_path) == 1


def test_what_a_killed_run_left_of_its_small_files_goes(tmp_path: Path) -> None:
    token = "0123456789abcdef" * 2
    left = [f".{name}.{token}" for name in ("_run.json", "_lock.json", "report.html")]
    kept = [f".notes.txt.{token}", "._run.json.short", f".metrics.prom.{token}"]
    for name in (*left, *kept[:2]):
        (tmp_path / name).write_text("half")
    (tmp_path / kept[2]).mkdir()
    write_result(tmp_path, 1)
    assert names(tmp_path) == sorted(["_run.json", "epochs", *kept])


@pytest.mark.parametrize(
    "change",
    [
        {"pid": "one"},
        {"pid": 2**70},
        {"pid": None},
        {"heartbeat": "2020-01-01T00:00:00"},
        {"heartbeat": 5},
        {"heartbeat": "0001-01-01T00:00:00+14:00"},
        {"process": 5},
        {"more": 1},
    ],
    ids=repr,
)
def test_an_odd_lock_is_refused_in_words(tmp_path: Path, change: dict[str, Any]) -> None:
    here = {"host": socket.gethostname(), "heartbeat": "2999-01-01T00:00:00+00:00"}
    (tmp_path / LOCK_NAME).write_text(json.dumps(DEAD | here | change))
    with pytest.raises(OutputExists, match=r"cannot be read|a run that died"):
        write_result(tmp_path, 1)


def test_a_failure_before_the_first_table_keeps_the_earlier_result(tmp_path: Path) -> None:
    write_result(tmp_path, 1)
    with pytest.raises(InputRefused), new_run(tmp_path, overwrite=True):
        raise InputRefused("all rows are bad")
    assert rows_in(tmp_path) == 1


def fail_half_way(folder: Path) -> None:
    with new_run(folder) as run:
        run.clear()
        (folder / "epochs").mkdir()
        raise InputRefused("torn file s3a://me:mine@bucket/x")


def test_a_failure_half_way_leaves_no_table_and_is_reported(tmp_path: Path) -> None:
    with pytest.raises(InputRefused):
        fail_half_way(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["_run.json"]
    record = json.loads((tmp_path / "_run.json").read_text())
    assert (record["status"], record["exit_code"]) == ("FAILED", 4)
    assert record["error"] == "InputRefused: torn file s3a://***@bucket/x"
    write_result(tmp_path, 1)  # a failed run is in nobody's way
    assert rows_in(tmp_path) == 1


def test_leftovers_of_a_dead_run_need_both_options(tmp_path: Path) -> None:
    (tmp_path / "epochs").mkdir()
    lock = tmp_path / LOCK_NAME
    lock.write_text(json.dumps(DEAD))
    with pytest.raises(OutputExists, match="--break-lock takes over, together with --overwrite"):
        write_result(tmp_path, 1, overwrite=True)
    with pytest.raises(OutputExists, match="--break-lock together with --overwrite"):
        write_result(tmp_path, 1, break_lock=True)
    assert json.loads(lock.read_text()) == DEAD  # refused runs leave the proof where it was
    write_result(tmp_path, 1, break_lock=True, overwrite=True)
    assert rows_in(tmp_path) == 1


def finish_without_lock(folder: Path) -> None:
    with new_run(folder) as run:
        (folder / LOCK_NAME).write_text(json.dumps(DEAD))
        run.finish(RunOutcome(outputs={}))


def test_a_run_that_lost_its_lock_gives_no_result(tmp_path: Path) -> None:
    with pytest.raises(OutputExists, match="lost its lock"):
        finish_without_lock(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [LOCK_NAME]


def test_places_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OutputExists, match="is a file"), new_run(tmp_path / "file"):
        pass
    with pytest.raises(UsageError, match="cannot be written"), new_run(tmp_path / "file" / "x"):
        pass


def names(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))
