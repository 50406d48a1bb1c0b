"""`rebalance producers` in this process: what it writes, says and refuses."""

import json
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pytest

from rebalance_core.cli.main import main
from rebalance_core.contracts import ALL_TABLES
from tests.tree import TREE
from tests.unit.producers.recorded import write_input

MODEL = """
name = "small"
description = "two brokers, one slow for a while"
seconds = 60
seed = 3
[[broker]]
name = "a"
queues = 2
latency = { distribution = "fixed", ms = 3 }
[[broker]]
name = "b"
queues = 2
latency = { distribution = "fixed", ms = 3 }
[[brown_out]]
broker = "b"
from_second = 20
to_second = 40
latency = { distribution = "fixed", ms = 800 }
[[producers]]
group = "p"
topic = "t"
clients = 3
sends_per_second = 20
fault_tolerance = true
"""


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "small.toml"
    path.write_text(MODEL)
    return path


def run(*words: object, code: int = 0) -> None:
    assert main(None, ["producers", *map(str, words), "--run-on", "process"]) == code


def rows(folder: Path, table: str) -> list[dict[str, Any]]:
    read = ds.dataset(folder / table, format="parquet").to_table()
    assert read.schema == ALL_TABLES[table].arrow_schema()
    return list(read.to_pylist())


def test_a_model_is_simulated(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    run("--model", model, "--output", out)
    record = json.loads((out / "_run.json").read_text())
    assert (record["status"], record["job"], record["seed"]) == ("OK", "producers", 3)
    choices, outcomes = rows(out, "publish_choices"), rows(out, "producer_outcomes")
    own = [o for o in outcomes if o["client_version"] == "5.3.3" and o["fault_tolerance"]]
    assert [o["phase"] for o in own] == ["healthy", "brown-out of b", "healthy"]
    shares = rows(out, "producer_shares")
    attempts = sum(
        s["attempts"] for s in shares if s["client_version"] == "5.3.3" and s["fault_tolerance"]
    )
    assert sum(c["sends"] for c in choices) == attempts
    assert len(outcomes) == 3 * 4
    assert {i["broker_name"] for i in rows(out, "broker_isolations")} == {"b"}
    rates = rows(out, "queue_rates")
    stored = sum(r["messages_per_second"] * (r["to_ms"] - r["from_ms"]) / 1000 for r in rates)
    assert stored == pytest.approx(sum(o["stored"] for o in own))
    printed = capsys.readouterr().out
    assert "p to t: brown-out of b, 20 s" in printed
    assert "5.3.3 fault tolerance: 3 of 3 producers chose b again" in printed


def test_the_same_model_gives_the_same_digests(model: Path, tmp_path: Path) -> None:
    outputs = []
    for name in ("one", "two"):
        run("--model", model, "--output", tmp_path / name)
        outputs.append(json.loads((tmp_path / name / "_run.json").read_text())["outputs"])
    assert outputs[0] == outputs[1]


def test_versions_are_compared_as_asked_for(model: Path, tmp_path: Path) -> None:
    run("--model", model, "--output", tmp_path / "o", "--client-version", "5.1.3")
    versions = {row["client_version"] for row in rows(tmp_path / "o", "producer_outcomes")}
    assert versions == {"5.1.3", "5.3.3"}


def test_recorded_results_are_replayed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, out = write_input(tmp_path / "in"), tmp_path / "out"
    run("--input", folder, "--output", out)
    record = json.loads((out / "_run.json").read_text())
    assert record["rejected"] == {
        "BAD_ENUM": 1,
        "BAD_LATENCY": 1,
        "TIME_WENT_BACK": 1,
        "UNKNOWN_BROKER": 1,
        "UNPARSABLE": 1,
    }
    assert record["outputs"]["rejected"]["rows"] == 5
    assert {i["table"]: i["rows"] for i in record["inputs"]} == {
        "send_results": 89,
        "cluster_events": 2,
    }
    isolations = rows(out, "broker_isolations")
    assert [(i["client_id"], i["latency_ms"], i["reason"]) for i in isolations] == [
        ("10.0.0.1@1", 800, "LATENCY"),
        ("10.0.0.2@1", 800, "LATENCY"),
    ]
    choices = rows(out, "publish_choices")
    assert sum(c["sends"] for c in choices) == 84
    assert {c["queue_id"] for c in choices} == {None}
    shares = {s["broker_name"]: s for s in rows(out, "producer_shares")}
    assert (shares["a"]["attempts"], shares["a"]["avoided"], shares["a"]["slow"]) == (44, 2, 2)
    assert shares["b"]["share"] == 40 / 84
    bad = {row["issues"][0]["code"]: row["source"] for row in rows(out, "rejected")}
    assert bad["TIME_WENT_BACK"].endswith("send_results.jsonl:85")
    assert bad["BAD_LATENCY"].endswith("send_results.jsonl:87")
    assert "results as recorded" in capsys.readouterr().out


def test_without_events_any_broker_is_known(tmp_path: Path) -> None:
    folder, out = write_input(tmp_path / "in", events=False), tmp_path / "out"
    run("--input", folder, "--output", out)
    record = json.loads((out / "_run.json").read_text())
    assert "UNKNOWN_BROKER" not in record["rejected"]


def test_too_many_bad_rows_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write_input(tmp_path / "in")
    words = ("--input", folder, "--output", tmp_path / "out", "--set", "on_bad_rows=fail")
    run(*words, "--dry-run", code=4)
    assert not (tmp_path / "out").exists()
    run(*words, code=4)
    assert "send_results: 5 of 89 rows are bad" in capsys.readouterr().err
    assert json.loads((tmp_path / "out" / "_run.json").read_text())["status"] == "FAILED"


def test_an_empty_input_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "in").mkdir()
    run("--input", tmp_path / "in", "--output", tmp_path / "out", code=4)
    assert "contains no send_results" in capsys.readouterr().err
    (tmp_path / "in" / "send_results.jsonl").write_text("")
    run("--input", tmp_path / "in", "--output", tmp_path / "out", code=4)
    assert "holds no row" in capsys.readouterr().err


def test_a_dry_run_states_what_would_be_done(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run("--model", model, "--output", tmp_path / "out", "--dry-run", "--json")
    facts = json.loads(capsys.readouterr().out)
    assert (facts["producers"], facts["client_versions"]) == (3, ["4.9.8", "5.3.3"])
    run("--input", write_input(tmp_path / "in"), "--output", tmp_path / "out", "--dry-run")
    assert "send_results" in capsys.readouterr().out
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "--output DIR is missing\npass either --model FILE or --input DIR"),
        (
            ("--output", "o", "--model", "m.toml", "--input", "i"),
            "pass either --model FILE or --input DIR",
        ),
        (("--output", "o", "--model", "m.toml"), "m.toml: no such file"),
        (("--output", "o", "--input", "i", "--client-version", "3.2"), "RocketMQ 3.2 is not"),
        (
            ("--output", "o", "--input", "i", "--client-version", "5.3", "--client-version", "4.9"),
            "with --input, pass only the version",
        ),
        (
            ("--output", "o", "--input", "i", "--input-format", "xml"),
            "--input-format xml: one of json",
        ),
    ],
)
def test_mistakes_of_options(
    words: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    run(*words, code=2)
    assert said in capsys.readouterr().err.replace("rebalance: ", "")


def test_an_earlier_result_is_kept_unless_asked(model: Path, tmp_path: Path) -> None:
    run("--model", model, "--output", tmp_path / "o")
    run("--model", model, "--output", tmp_path / "o", code=5)
    run("--model", model, "--output", tmp_path / "o", "--overwrite")


def test_the_rates_of_a_model_are_what_plan_reads(tmp_path: Path) -> None:
    demo = TREE / "rebalance_core/bundled/demo/join-leave/tables"
    head = json.loads((demo / "cluster_events.jsonl").read_text().splitlines()[0])
    text = MODEL.replace('"t"', '"OrderTopic"').replace("queues = 2", "queues = 4")
    for name in ("a", "b"):
        text = text.replace(f'name = "{name}"', f'name = "broker-{name}"')
    text = text.replace('broker = "b"', 'broker = "broker-b"')
    path = tmp_path / "demo.toml"
    path.write_text(f'cluster = "{head["cluster"]}"\n{text}')
    run("--model", path, "--output", tmp_path / "rates")
    words = ["plan", "--input", demo, "--queue-rates", tmp_path / "rates/queue_rates"]
    words += ["--output", tmp_path / "plan", "--run-on", "process"]
    assert main(None, [str(word) for word in words]) == 0
    (row,) = rows(tmp_path / "plan", "plan_summary")
    # 60 messages a second on 8 queues, of which AVG leaves a consumer three; broker-b is avoided in
    # the first two of the last 20 seconds
    assert row["peak_queues_after"] == 3
    assert 3 * 60 / 8 < row["peak_messages_per_second"] < 1.1 * 3 * 60 / 8
