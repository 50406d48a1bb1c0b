"""`rebalance size`: what it writes and prints, and the same from Python."""

import json
from pathlib import Path
from typing import Any

import pytest

import rebalance_core
from rebalance_core.cli.main import main
from tests.plans import rows_of
from tests.tree import TREE

STEADY = str(TREE / "rebalance_core/bundled/demo/steady/tables")


def size(folder: Path, *words: str) -> int:
    return main(None, ["size", "--input", STEADY, "--output", str(folder / "o"), *words])


def test_every_group_has_a_row_and_a_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert size(tmp_path, "--service-time", "5", "--json") == 0
    facts: dict[str, Any] = json.loads(capsys.readouterr().out)
    rows = rows_of(tmp_path / "o", "sizes")
    assert facts["sizes"] == rows
    # 3,200 messages a second; a member reads 4,000, a thread of an orderly one 200 of a queue
    assert {row["consumer_group"]: (row["rate"], row["queues"], row["bound"]) for row in rows} == {
        "checkout": (3_200.0, 32, "SPARE"),
        "ledger": (3_200.0, 64, "ORDERED"),
    }
    assert {(row["members_now"], row["members"]) for row in rows} == {(12, 2)}
    again = rebalance_core.size(STEADY, service_time=5)
    assert again["sizes"].to_pylist() == rows


def test_without_a_service_time_it_is_not_known(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert size(tmp_path, "--group", "checkout") == 0
    said = capsys.readouterr().out
    assert "12 -> -" in said
    assert "the group kept up, so its limit is unknown: state the service time" in said


def test_a_dry_run_writes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert size(tmp_path, "--dry-run") == 0
    assert "sizes, rejected" in capsys.readouterr().out
    assert size(tmp_path, "--dry-run", "--group", "none") == 4
    assert not (tmp_path / "o").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--service-time", "0"), "expected milliseconds above 0"),
        (("--growth", "-1"), "expected a number above 0 and up to 1000"),
        (("--catch-up", "0s"), "expected a time above 0"),
        (("--threads", "0"), "from 1 to 10,000"),
    ],
)
def test_wrong_options_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, str], said: str
) -> None:
    assert size(tmp_path, *words) == 2
    assert said in capsys.readouterr().err
