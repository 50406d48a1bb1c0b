"""What a terminal gets: names made visible, errors as JSON, and only names in UTF-8."""

import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from rebalance_core.checks.row_counts import Complaint, RowCounts
from rebalance_core.cli import terminal
from rebalance_core.cli.main import main
from rebalance_core.cli.terminal import RowReport, joined, numbers, rejected_rows, say, table
from rebalance_core.engine.options import RowForecast
from rebalance_core.model.errors import InputRefused
from tests.tree import TREE

TABLES = str(TREE / "tests/recordings/data/join-leave/tables")
ESCAPES = TREE / "tests/cases/data/terminal-escapes.jsonl"
RAW = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
NOT_UTF8 = os.fsdecode(b"caf\xe9")


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["simulate"], 0),
        (["simulate", "--dry-run"], 0),
        (["simulate", "--on-bad-rows", "fail"], 4),
        (["plan"], 0),
        (["propagate", "--seeds", "2"], 0),
        (["audit"], 3),
    ],
)
def test_no_job_prints_a_name_raw(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], code: int
) -> None:
    (tmp_path / "tables").mkdir()
    shutil.copy(ESCAPES, tmp_path / "tables" / "cluster_events.jsonl")
    output = str(tmp_path / "out")
    ended = main(None, [*words, "--input", str(tmp_path / "tables"), "--output", output])
    printed = "".join(capsys.readouterr())
    assert ended in (0, code), printed
    assert "RED" in printed
    assert RAW.findall(printed) == []


def test_explain_prints_no_name_raw(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [json.loads(line) for line in ESCAPES.read_text("utf-8").splitlines()]
    for row in rows:  # --group and --queue take no such name, a client chooses its id
        row |= {"cluster": "c", "consumer_group": row.get("consumer_group") and "g"}
        row |= {name: row[name] and name[0] for name in ("topic", "broker_name") if row.get(name)}
        row |= {"subscriptions": ["t"]} if row.get("subscriptions") else {}
    lines = "\n".join(json.dumps(row) for row in rows)
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables" / "cluster_events.jsonl").write_text(lines)
    ledger = str(tmp_path / "ledger")
    assert main("simulate", ["--input", str(tmp_path / "tables"), "--output", ledger]) == 0
    words = ["--ledger", ledger, "--group", "g", "--queue", "t/b/0"]
    assert main("explain", [*words, "--at", "2026-01-05T00:00:30Z"]) == 0
    printed = "".join(capsys.readouterr())
    assert "a@1\\x1b[31mRED" in printed
    assert RAW.findall(printed) == []


def test_a_name_begins_no_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        joined(["two lines:", "a\nOK: nothing is wrong"]) == "two lines:\na\\nOK: nothing is wrong"
    )
    say("first\nsecond\x1b[2J")
    assert capsys.readouterr().err == "rebalance: first\nrebalance: second\\x1b[2J\n"


@pytest.mark.parametrize(
    ("words", "status", "code"),
    [
        (["simulate", "--input", "/no/such/folder", "--output", "x"], "INPUT_REFUSED", 4),
        (["simulate", "--imput", "x"], "USAGE", 2),
        (["simulat"], "USAGE", 2),
    ],
)
def test_json_has_an_error(
    capsys: pytest.CaptureFixture[str], words: list[str], status: str, code: int
) -> None:
    assert main(None, [*words, "--json"]) == code
    printed = capsys.readouterr()
    told = json.loads(printed.out)
    assert (told["status"], told["exit_code"]) == (status, code)
    assert told["job"] == ("simulate" if words[0] == "simulate" else None)
    assert told["error"].splitlines()[0] in printed.err


@pytest.mark.parametrize(("recording", "status", "code"), [
    ("join-leave", "OK", 0), ("pathologies", "DIFFERENCES", 3),
])  # fmt: skip
def test_the_status_of_json_is_that_of_the_exit_code(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], recording: str, status: str, code: int
) -> None:
    collection = str(TREE / "tests/recordings/data" / recording / "collection")
    words = ["--collection", collection, "--output", str(tmp_path / "out"), "--json"]
    for dry in (["--dry-run"], []):
        assert main("audit", [*words, *dry]) == code
        told = json.loads(capsys.readouterr().out)
        assert (told["status"], told["exit_code"]) == (status, code)


@pytest.mark.parametrize("option", ["--output", "--input"])
def test_a_path_that_is_not_utf8_is_refused_at_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], option: str
) -> None:
    paths = {"--input": TABLES, "--output": str(tmp_path / "out")}
    paths[option] = str(tmp_path / NOT_UTF8)
    assert main("simulate", [word for pair in paths.items() for word in pair]) == 2
    assert "is not UTF-8" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_not_utf8_is_refused_as_output(tmp_path: Path) -> None:
    here = tmp_path / NOT_UTF8
    here.mkdir()
    command = [sys.executable, "-m", "rebalance_core.cli.main", "simulate", "--input", TABLES]
    environment = {**os.environ, "PYTHONPATH": str(TREE)}
    ended = subprocess.run(
        [*command, "--output", "out"], cwd=here, env=environment, capture_output=True, check=False
    )
    assert ended.returncode == 2, ended.stderr
    assert list(here.iterdir()) == []


def test_names_and_kinds_of_files_that_are_no_input(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = str(tmp_path / "out")
    table = tmp_path / "in" / "cluster_events"
    table.mkdir(parents=True)
    shutil.copy(Path(TABLES) / "cluster_events.jsonl", table / f"{NOT_UTF8}.jsonl")
    assert main("simulate", ["--input", str(table.parent), "--output", output]) == 4
    assert "its name is not UTF-8" in capsys.readouterr().err
    pipes = tmp_path / "pipes"
    pipes.mkdir()
    os.mkfifo(pipes / "cluster_events.jsonl")
    assert main("simulate", ["--input", str(pipes), "--output", output]) == 4
    assert "not a plain file" in capsys.readouterr().err


def test_links_that_name_each_other_are_no_output(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    words = ["--input", TABLES, "--output", str(tmp_path / "a"), "--overwrite"]
    assert main("simulate", words) == 5


@pytest.mark.parametrize("watched", [False, True])
def test_what_takes_long_is_named_while_it_is_under_way(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], watched: bool
) -> None:
    now = [time.monotonic()]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    progress = terminal.ProgressLine("groups", watched)
    progress(0, 40, "c/quick")
    now[0] += 61
    progress(1, 40, "c/slow\x1b[31m")
    assert capsys.readouterr().err.split("rebalance: ")[1:] == [
        shown("1 of 40 groups (2%)", watched)
    ]
    now[0] += 75
    progress.show()
    progress.show()
    told = "1 of 40 groups (2%), at c/slow\\x1b[31m for 75 s"
    assert capsys.readouterr().err.split("rebalance: ")[1:] == [shown(told, watched)]


def shown(text: str, watched: bool) -> str:
    return text if watched else f"{text}\n"


def test_progress_goes_on_while_nothing_is_done(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("_LOG_SECONDS", "_LOOK_SECONDS", "SLOW_SECONDS"):
        monkeypatch.setattr(terminal, name, 0.01)
    with terminal.progress_of("groups") as progress:
        progress(0, 2, "c/slow")
        until = time.monotonic() + 20
        while "at c/slow" not in (told := capsys.readouterr().err) and time.monotonic() < until:
            time.sleep(0.02)
    assert "0 of 2 groups (0%), at c/slow for 0 s" in told
    assert not [each for each in threading.enumerate() if each.name == "progress"]


COUNTS = {"cluster_events": RowCounts(2, 2)}
COMPLAINTS = (Complaint("cluster_events", "A", 2, "f:1", "why"),)


def test_a_refusal_is_reported_with_its_exit_code_and_the_rows() -> None:
    report = RowReport(RowForecast(COUNTS, COMPLAINTS, InputRefused("2 of 2\n  A 2, first f:1")))
    assert report.exit_code == 4
    assert report.lines() == [
        "",
        "bad rows",
        "  A 2, first f:1: why",
        "",
        "A run would end with exit code 4: 2 of 2",
    ]
    assert report.facts()["rows"] == {"cluster_events": {"rows": 2, "bad": 2}}


def test_rows_that_let_the_run_go_on_end_with_0() -> None:
    report = RowReport(RowForecast(COUNTS, (), None))
    assert (report.exit_code, report.lines(), report.facts()["refused"]) == (0, [], None)


def test_without_rows_a_refusal_still_has_its_number() -> None:
    forecast = RowForecast(COUNTS, COMPLAINTS, InputRefused("2 of 2\n  secret")).without_rows()
    hidden = RowReport(forecast)
    assert (hidden.exit_code, hidden.facts()["complaints"]) == (4, [])
    assert "secret" not in str((hidden.facts(), hidden.lines()))


def test_columns_of_text_stand_left_and_numbers_right() -> None:
    rows = [["a", "1,000", "x"], ["bcd", "7", "yz"]]
    assert list(table(("of", "count", "why"), rows, text=(0, -1))) == [
        "  of   count  why",
        "  a    1,000  x",
        "  bcd      7  yz",
    ]


def test_numbers_stand_below_each_other_with_their_notes() -> None:
    assert numbers({"groups": 1200, "epochs": 7}, {"epochs": "now"}) == [
        "  groups               1,200",
        "  epochs                   7  now",
    ]
    assert (numbers({}), rejected_rows({})) == ([], [])
