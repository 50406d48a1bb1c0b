"""The id of a run: the same for the same rows, and another for what gives other rows."""

import json
import random
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from rebalance_core.checks.table_reading import read_table
from rebalance_core.cli.main import main
from rebalance_core.contracts import ALL_TABLES
from tests.recordings.tables import DATA

TABLES = DATA / "join-leave" / "tables"
SCENARIO = """
name = "grow"
description = "one more"
[[edit]]
kind = "add_consumers"
at = "end"
count = {count}
group = "order-service"
"""


def record_of(folder: Path, job: str, *words: object) -> dict[str, Any]:
    """The record of a run of that job."""
    output = folder / "out"
    command = [job, *map(str, words), "--output", str(output), "--overwrite"]
    assert main(None, command) == 0
    record: dict[str, Any] = json.loads((output / "_run.json").read_text())
    return record


@pytest.fixture
def events(tmp_path: Path) -> list[str]:
    """The lines of the events, in a folder with the other tables."""
    (tmp_path / "in").mkdir()
    for path in TABLES.iterdir():
        (tmp_path / "in" / path.name).write_bytes(path.read_bytes())
    return (tmp_path / "in" / "cluster_events.jsonl").read_text().splitlines()


def test_whatever_files_hold_the_rows(tmp_path: Path, events: list[str]) -> None:
    expected = record_of(tmp_path, "simulate", "--input", TABLES)
    assert expected["clusters"] == ["DefaultCluster"]
    assert (expected["period_from_ms"], expected["period_to_ms"]) == (1795231709901, 1795231799192)
    assert len(expected["run_id"]) == 32
    random.Random(3).shuffle(events)
    (tmp_path / "in" / "cluster_events.jsonl").write_text("\n".join(events))
    shuffled = record_of(tmp_path, "simulate", "--input", tmp_path / "in")
    table = ALL_TABLES["cluster_events"]
    rows = read_table(table, str(tmp_path / "in" / "cluster_events.jsonl"))[0]
    (tmp_path / "in" / "cluster_events.jsonl").unlink()
    pq.write_table(rows.select(table.column_names), tmp_path / "in" / "cluster_events.parquet")
    packed = record_of(tmp_path, "simulate", "--input", tmp_path / "in", "--engine", "reference")
    for record in (shuffled, packed):
        for name in ("run_id", "input_digests", "clusters", "period_from_ms", "period_to_ms"):
            assert record[name] == expected[name], name


def test_other_rows_are_another_run(tmp_path: Path, events: list[str]) -> None:
    ids = {record_of(tmp_path, "simulate", "--input", TABLES)["run_id"]}
    first = json.loads(events[0])
    changed = [json.dumps(first | {"event_ms": first["event_ms"] - 1}), *events[1:]]
    for lines in (changed, events[:-1]):
        (tmp_path / "in" / "cluster_events.jsonl").write_text("\n".join(lines))
        ids.add(record_of(tmp_path, "simulate", "--input", tmp_path / "in")["run_id"])
    (tmp_path / "in" / "cluster_events.jsonl").write_text("\n".join(events))
    (tmp_path / "in" / "queue_offsets.jsonl").unlink()
    ids.add(record_of(tmp_path, "simulate", "--input", tmp_path / "in")["run_id"])
    assert len(ids) == 4


def test_a_bad_row_is_part_of_it_but_its_time_is_not_of_the_period(
    tmp_path: Path, events: list[str]
) -> None:
    expected = record_of(tmp_path, "simulate", "--input", tmp_path / "in")
    bad = json.loads(events[0]) | {"event_ms": 5, "event_type": "NOTHING"}
    text = "\n".join([*events, json.dumps(bad)])
    (tmp_path / "in" / "cluster_events.jsonl").write_text(text)
    record = record_of(tmp_path, "simulate", "--input", tmp_path / "in")
    assert record["run_id"] != expected["run_id"]
    assert record["period_from_ms"] == expected["period_from_ms"]


def test_what_decides_the_rows_is_part_of_it(tmp_path: Path) -> None:
    words: list[tuple[object, ...]] = [
        (),
        ("--strategy", "AVG_BY_CIRCLE"),
        ("--group", "order-*"),
        ("--from", 1795231715717),
        ("--to", 1795231799000),
        ("--set", "include_retry_topics=false"),
    ]
    records = [record_of(tmp_path, "simulate", "--input", TABLES, *more) for more in words]
    assert len({record["run_id"] for record in records}) == len(words)
    assert records[3]["period_from_ms"] == 1795231715717
    assert records[4]["period_to_ms"] == 1795231799000
    plans = []
    for file, count in (("a.toml", 1), ("b.toml", 1), ("b.toml", 2)):
        (tmp_path / file).write_text(SCENARIO.format(count=count))
        plan = ("plan", "--input", TABLES, "--scenario", tmp_path / file)
        plans.append(record_of(tmp_path, *plan)["run_id"])
    assert plans[0] == plans[1] != plans[2]


def test_how_and_where_it_runs_is_not(tmp_path: Path) -> None:
    expected = record_of(tmp_path, "simulate", "--input", TABLES)["run_id"]
    more = ("--set", "summary.worst_groups=1", "--set", "limits.process_bytes=1", "--json")
    words = ("--input", TABLES, "--run-on", "process", "--max-bad-share", "0.2", *more)
    assert record_of(tmp_path, "simulate", *words)["run_id"] == expected


def test_made_tables_are_what_the_run_is_about(tmp_path: Path) -> None:
    fleets = [record_of(tmp_path, "generate", "--groups", 2, "--seed", s) for s in (1, 1, 2)]
    assert fleets[0]["run_id"] == fleets[1]["run_id"] != fleets[2]["run_id"]
    assert fleets[0]["period_to_ms"] - fleets[0]["period_from_ms"] == 86_400_000
    assert len(fleets[0]["clusters"]) == 1
    ingested = record_of(tmp_path, "ingest", "--collection", DATA / "join-leave" / "collection")
    assert ingested["clusters"] == ["DefaultCluster"]
    times = (ingested["period_from_ms"], ingested["period_to_ms"])
    assert None not in times
    assert times[0] < times[1]
    assert "cluster_events" in ingested["input_digests"]


def test_a_failed_run_has_none(tmp_path: Path) -> None:
    output = tmp_path / "out"
    words = ["simulate", "--input", str(TABLES), "--output", str(output)]
    (tmp_path / "out").mkdir()
    with pytest.MonkeyPatch.context() as patched:

        def fail(*_: object, **__: object) -> None:
            raise OSError(28, "No space left on device")

        patched.setattr("rebalance_core.process.simulate.bucket_pass", fail)
        assert main(None, words) == 2
    record = json.loads((output / "_run.json").read_text())
    assert (record["status"], record["run_id"]) == ("FAILED", None)
