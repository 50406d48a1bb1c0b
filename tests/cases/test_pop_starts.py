"""Starts of pulls and pops through a switch of the request mode, as two clusters recorded them."""

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pytest

from rebalance_core.cli.main import main

HERE = Path(__file__).parent
TRUTH = HERE / "starts_of_pops.tsv"
"""For each queue the offset of the first pop (``POP_CK`` of its messages) since members began to
share it, and of each pull's start."""
CASES = ("pull-pop-5.3.3", "pull-pop-5.5.0")
TABLES = {"POP": "pop_starts", "PULL": "pull_starts"}
EARLY_MS = 1_000
"""A client logs its start a little before the event as brokers date it."""
Row = dict[str, Any]


@pytest.fixture(scope="module", params=CASES)
def audited(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp(request.param) / request.param
    words = ["--collection", str(HERE / "data" / request.param), "--output", str(output)]
    assert main("audit", words) == 0
    return output


def recorded(case: str) -> Iterator[dict[str, str]]:
    with TRUTH.open(encoding="utf-8") as file:
        rows = csv.DictReader(file, delimiter="\t")
        yield from (row for row in rows if row["case"] == case)


def predicted(output: Path, row: dict[str, str]) -> list[Row]:
    """Return the rows of the ledger about a recorded start."""
    rows = ds.dataset(output / TABLES[row["by"]], format="parquet").to_table().to_pylist()
    keys = ("consumer_group", "broker_name", "queue_id")
    mine = [r for r in rows if r["topic"] == "SwitchT"]
    of_queue = [r for r in mine if all(str(r[key]) == row[key] for key in keys)]
    at_ms = int(row["at_ms"])
    return [r for r in of_queue if r["earliest_ms"] - EARLY_MS <= at_ms <= r["latest_ms"]]


def test_each_start_is_inside_its_bounds(audited: Path) -> None:
    for row in recorded(audited.name):
        offset = int(row["offset"])
        inside = [
            r
            for r in predicted(audited, row)
            if r["start_offset_low"] <= offset
            and (r["start_offset_high"] is None or offset <= r["start_offset_high"])
        ]
        assert inside, row


def test_the_rules_are_those_of_the_broker(audited: Path) -> None:
    rules: dict[str, set[object]] = {}
    for row in recorded(audited.name):
        if row["by"] == "POP":
            rules.setdefault(row["consumer_group"], set()).update(
                r["rule"] for r in predicted(audited, row)
            )
    assert rules == {
        "first-pop": {"POP_MIN"},
        "last-pop": {"POP_ZERO"},
        "reset-pop": {"POP_ZERO", "STORED"},
        "sw-fast": {"STORED"},
        "sw-slow": {"STORED"},
    }


def test_explain_states_the_first_pop(audited: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pops = (row for row in recorded(audited.name) if row["by"] == "POP")
    row = next(r for r in pops if r["consumer_group"] == "sw-slow")
    queue = f"SwitchT/{row['broker_name']}/{row['queue_id']}"
    words = ["--ledger", str(audited), "--group", "sw-slow", "--queue", queue]
    assert main("explain", [*words, "--at", str(int(row["at_ms"]) + 5_000)]) == 0
    text = capsys.readouterr().out
    assert "Where the first pop started (epoch 2, " in text
    assert "STORED: the group has committed on this queue" in text
