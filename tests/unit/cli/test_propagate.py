"""`rebalance propagate` in this process: what it writes, says and refuses."""

import json
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pytest

from rebalance_core.cli.main import main
from rebalance_core.cli.propagate import MOST_ADVICE, advice_on
from rebalance_core.contracts import ALL_TABLES
from tests.unit.process.propagation_inputs import unknown_member, write_tables


@pytest.fixture
def tables(tmp_path: Path) -> Path:
    return write_tables(tmp_path / "tables")


def run(*words: object, code: int = 0) -> None:
    assert main(None, ["propagate", *map(str, words), "--run-on", "process"]) == code


def rows(folder: Path, table: str) -> list[dict[str, Any]]:
    read = ds.dataset(folder / table, format="parquet").to_table()
    assert read.schema == ALL_TABLES[table].arrow_schema()
    return list(read.to_pylist())


def test_a_run(tables: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    run(
        "--input", tables, "--output", out, "--seeds", 6, "--handover-seeds", 2, "--holder-seeds", 3
    )
    record = json.loads((out / "_run.json").read_text())
    assert (record["status"], record["job"], record["seed"]) == ("OK", "propagate", 0)
    written = {"propagation", "propagation_totals", "handovers", "holders", "rejected"}
    assert set(record["outputs"]) == written
    assert {row["seeds"] for row in rows(out, "propagation_totals")} == {6}
    assert len(rows(out, "propagation")) == 5
    assert {row["seed"] for row in rows(out, "handovers")} == {0, 1}
    assert {row["seed"] for row in rows(out, "holders")} == {0, 1, 2}
    printed = capsys.readouterr().out
    assert "6 futures (seeds 0 to 5) of 5 changes in 2 groups" in printed
    assert "hand-overs of the first 2" in printed
    slowest = printed.partition("The slowest changes")[2].splitlines()[2]
    assert "BROKER_DOWN" in slowest
    assert "BROKER_DOWN: Members learn of routes at their next poll" in printed
    assert "groups that broadcast (only their convergence counts): 1" in printed


def test_the_json_object(tables: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run("--input", tables, "--output", tmp_path / "out", "--seeds", 4, "--json")
    facts = json.loads(capsys.readouterr().out)
    assert (facts["job"], facts["seeds"], facts["changes"], facts["groups"]) == (
        "propagate",
        4,
        5,
        2,
    )
    assert facts["slowest"][0]["convergence_ms_p99"] == max(
        row["convergence_ms_p99"] for row in facts["slowest"]
    )
    assert {cause["cause"]: cause["changes"] for cause in facts["causes"]} == {
        "BROKER_DOWN": 2,
        "CONSUMER_JOIN": 1,
        "CONSUMER_LEAVE": 1,
        "CONSUMER_LOST": 1,
    }
    assert facts["rows"]["propagation"] == 5


def test_totals_of_a_time_with_handlers_that_take_theirs(tables: Path, tmp_path: Path) -> None:
    run("--input", tables, "--output", tmp_path / "all", "--seeds", 4)
    everything = rows(tmp_path / "all", "propagation_totals")
    last = max(row["from_ms"] for row in rows(tmp_path / "all", "propagation_totals"))
    run(
        "--input",
        tables,
        "--output",
        tmp_path / "last",
        "--seeds",
        4,
        "--from",
        last,
        "--handler-time",
        "5ms",
        "--start-up-time",
        "100ms",
    )
    assert 0 < len(rows(tmp_path / "last", "propagation_totals")) < len(everything)


@pytest.mark.parametrize("option", ["--handler-time", "--start-up-time"])
@pytest.mark.parametrize("value", ["-5ms", "5", "0.1s", "3kg", "25h"])
def test_a_time_that_is_negative_or_of_another_unit_is_refused(
    option: str, value: str, tables: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run("--input", tables, "--output", tmp_path / "out", f"{option}={value}", code=2)
    assert f"{option} {value}: " in capsys.readouterr().err


def test_the_same_digests_again(
    tables: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In one process and in as many as there are cores."""
    records = []
    for name, cores in (("one", 1), ("two", 2)):
        monkeypatch.setattr("rebalance_core.process.runtime.usable_cores", lambda n=cores: n)
        run("--input", tables, "--output", tmp_path / name, "--seeds", 4)
        records.append(json.loads((tmp_path / name / "_run.json").read_text())["outputs"])
    assert records[0] == records[1]


def test_a_dry_run_writes_nothing(
    tables: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run("--input", tables, "--output", tmp_path / "out", "--dry-run")
    assert not (tmp_path / "out").exists()
    printed = capsys.readouterr().out
    assert "1,000 futures of 5 changes in 2 groups" in printed
    assert "cluster_events" in printed


@pytest.mark.parametrize("dry", [(), ("--dry-run",)], ids=["run", "dry-run"])
def test_bad_rows_are_listed_or_refused(
    dry: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tables = write_tables(tmp_path / "bad", unknown_member())
    words = ("--input", tables, "--output", tmp_path / "out", "--seeds", 2, *dry)
    run(*words, "--on-bad-rows", "fail", code=4)
    assert not (tmp_path / "out" / "propagation").exists()
    said = capsys.readouterr()
    assert "UNKNOWN_MEMBER" in said.out + said.err
    run(*words)
    if not dry:
        assert [row["table_name"] for row in rows(tmp_path / "out", "rejected")] == [
            "cluster_events"
        ]
        assert "UNKNOWN_MEMBER" in capsys.readouterr().out


def test_an_output_that_exists_is_kept(tables: Path, tmp_path: Path) -> None:
    words = ("--input", tables, "--output", tmp_path / "out", "--seeds", 2)
    run(*words)
    run(*words, code=5)
    run(*words, "--overwrite")


def test_every_mistake_is_named_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(
        "--seeds",
        "0",
        "--first-seed",
        "x",
        "--handover-seeds",
        "-1",
        "--phases",
        "logs",
        "--lost-notices",
        "2",
        "--late-name-server",
        "0.5",
        "--group",
        "a b",
        code=2,
    )
    said = capsys.readouterr().err
    for mistake in (
        "pass --input DIR or",
        "--output DIR is missing",
        "--seeds 0: expected a whole number of 1 or more",
        "--first-seed x: expected a whole number of 0 or more",
        "--handover-seeds -1: expected a whole number of 0 or more",
        "--phases logs: one of log, random; did you mean log?",
        "--lost-notices 2: expected a share from 0 to 1",
        "--late-name-server 0.5: expected SHARE:MS",
        "--group a b: group names cannot contain ' '",
    ):
        assert mistake in said


def test_a_folder_without_events_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "empty").mkdir()
    run("--input", tmp_path / "empty", "--output", tmp_path / "out", code=4)
    assert "contains no cluster_events" in capsys.readouterr().err


def test_advice_is_given_once_and_for_the_slowest() -> None:
    found = advice_on(["TOPIC_CONFIG", "REQUEST_MODE", "BROKER_DOWN + CONSUMER_JOIN"])
    assert list(found.values()) == [["TOPIC_CONFIG", "BROKER_DOWN"]]
    kinds = ["TOPIC_CONFIG", "BROKER_UP", "CONSUMER_LOST", "CONSUMER_JOIN", "SUBSCRIBE"]
    assert len(advice_on([*kinds, "BROKER_DOWN"])) == MOST_ADVICE


def test_the_time_of_a_start_is_stated_with_what_it_rests_on(
    tables: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run("--input", tables, "--output", tmp_path / "near", "--seeds", 2)
    near = " ".join(capsys.readouterr().out.split())
    assert "start() takes about 0.4 s with 2 brokers (default, measured on 2 to 4 brokers)" in near
    assert "Extrapolated" not in near
    run("--input", tables, "--output", tmp_path / "far", "--seeds", 2, "--rtt", 500, "--json")
    far = json.loads(capsys.readouterr().out)
    assert far["start_up"]["brokers"] == 2
    assert far["start_up"]["median_ms"] > 2_000
    assert far["start_up"]["basis"].endswith("round trips of 500 ms")


def test_what_exceeds_the_recordings_is_stated(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first_ms = 1_700_000_000_000
    common = {"cluster": "c", "detail": "OBSERVED", "event_ms": first_ms}
    events = [
        common
        | {
            "sequence": n,
            "event_type": "TOPIC_CONFIG",
            "topic": "T",
            "broker_name": f"b{n}",
            "read_queue_nums": 4,
            "write_queue_nums": 4,
        }
        for n in range(9)
    ]
    member = {"event_type": "CONSUMER_JOIN", "consumer_group": "g", "subscriptions": ["T"]}
    events += [common | member | {"sequence": 20, "client_id": "c1"}]
    events += [
        {"cluster": "c", "event_ms": first_ms + 90_123, "sequence": 21, "client_id": "c2"} | member
    ]
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "cluster_events.jsonl").write_text("\n".join(map(json.dumps, events)))
    run("--input", tmp_path / "in", "--output", tmp_path / "out", "--seeds", 2)
    beyond = "9 brokers (measured 2 to 4); 18 queues a member (measured 1 to 16)"
    assert {row["extrapolated"] for row in rows(tmp_path / "out", "propagation")} == {beyond}
    printed = " ".join(capsys.readouterr().out.split())
    assert f"Extrapolated beyond the recordings, in 1 of 1 groups: {beyond}." in printed
    assert "with 9 brokers" in printed


@pytest.mark.parametrize("value", ["-1", "2ms", "1001", "nan", "far"])
def test_a_round_trip_that_is_none_is_refused(
    value: str, tables: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run("--input", tables, "--output", tmp_path / "out", f"--rtt={value}", code=2)
    assert f"--rtt {value}: expected milliseconds from 0 to 1,000" in capsys.readouterr().err
