"""Starts of pulls and pops through a switch of the request mode, as four clusters recorded them."""

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pytest

from rebalance_core.cli.main import main

HERE = Path(__file__).parent
TRUTH = HERE / "starts_of_pops.tsv"
"""For each queue the offset of the first pop since members began to share it (``POP_CK`` of its
messages; of 5.0.0 and 5.1.4 the lowest offset of the first 3 s), and of each pull's start."""
BEFORE_7117 = "pull-pop-5.0.0"
WITH_METRICS = "pull-pop-5.1.4"
CASES = (BEFORE_7117, WITH_METRICS, "pull-pop-5.3.3", "pull-pop-5.5.0")
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
    of_last = "POP_LAST" if audited.name == BEFORE_7117 else "POP_ZERO"
    assert rules == {
        "first-pop": {"POP_MIN"},
        "last-pop": {of_last},
        "reset-pop": {of_last, "STORED"},
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


def test_metrics_count_what_clients_acknowledged(tmp_path: Path) -> None:
    """The exporter of 5.1.4 prints metrics in any order, with the time of each."""
    words = ["--collection", str(HERE / "data" / WITH_METRICS), "--output", str(tmp_path / "out")]
    assert main("ingest", words) == 0
    rows = ds.dataset(tmp_path / "out" / "observed_facts", format="parquet").to_table()
    counts = {
        (row["consumer_group"], row["broker_name"]): dict(row["details"])
        for row in rows.to_pylist()
        if row["kind"] == "POP_COUNTS"
    }
    assert len(counts) == 10
    of_reset = counts["reset-pop", "broker-a"]
    assert (of_reset["given"], of_reset["acknowledgements"]) == ("5891", "5891")
    assert {counted["in_flight"] for counted in counts.values()} == {""}
