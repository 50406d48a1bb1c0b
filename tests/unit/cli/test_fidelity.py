"""`rebalance fidelity`: what it writes and prints, what it refuses, and what it cannot compare."""

import json
from pathlib import Path
from typing import Any

import pytest

from rebalance_core.cli.main import main
from tests.plans import rows_of
from tests.tree import TREE
from tests.unit.timing.known_nights import KNOWN, night

TOPICS = {
    "topicConfigTable": {
        "T": {
            "topicName": "T",
            "readQueueNums": 6,
            "writeQueueNums": 6,
            "perm": 6,
            "order": False,
            "topicSysFlag": 0,
            "topicFilterType": "SINGLE_TAG",
        }
    }
}
RECORDED = TREE / "tests/recordings/data/join-leave/collection"


def run(job: str, *arguments: object, code: int = 0) -> None:
    assert main(None, [job, *map(str, arguments)]) == code


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `ingest` makes of a recording."""
    folder = tmp_path_factory.mktemp("recorded") / "tables"
    run("ingest", "--collection", RECORDED, "--output", folder)
    return folder


def test_changes_beside_their_futures(
    recorded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    out = tmp_path / "out"
    run("fidelity", "--input", recorded, "--output", out, "--seeds", 40, "--json")
    facts: dict[str, Any] = json.loads(capsys.readouterr().out)
    kinds, samples = rows_of(out, "fidelity"), rows_of(out, "fidelity_samples")
    assert sorted(map(str, facts["kinds"])) == sorted(map(str, kinds))
    assert (facts["groups"], facts["changes"], facts["files"]) == (1, 7, ["observed.svg"])
    by_kind = {(row["kind"], row["measure"]): row for row in kinds}
    joins = [row for row in samples if row["kind"] == "CONSUMER_JOIN"]
    for measure, count in (("LAST", 5), ("FIRST_ADD", 7), ("FIRST_DROP", 7), ("GAP", 13)):
        row = by_kind["CONSUMER_JOIN", measure]
        its = [one for one in joins if one["measure"] == measure]
        assert row["samples"] == len(its) == count
        assert row["in_range"] == sum(one["place"] in ("INSIDE", "IN_RANGE") for one in its)
        assert row["inside"] == sum(one["place"] == "INSIDE" for one in its)
        assert (row["verdict"], row["reason"]) == ("UNKNOWN", "fewer than 20 samples")
    for one in samples:
        p5, p95 = one["simulated_ms_p5"], one["simulated_ms_p95"]
        assert (one["place"] == "INSIDE") == (p5 - 1 < one["observed_ms"] < p95 + 1)
        assert (one["queue_id"] is None) == (one["measure"] != "GAP")
    assert (out / "observed.svg").read_text().lstrip().startswith("<?xml")


def test_the_report_for_a_person(
    recorded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    run("fidelity", "--input", recorded, "--output", tmp_path / "out", "--seeds", 20)
    said = " ".join(capsys.readouterr().out.split())
    assert "7 changes of 1 group beside 20 futures of each" in said
    assert "43 times after changes: " in said
    assert "UNKNOWN, fewer than 20 samples: CONSUMER_JOIN LAST, " in said
    assert "Not compared" not in said


@pytest.fixture(scope="module")
def nights(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two nights of a cluster with slow starts; the second is audited."""
    folder = tmp_path_factory.mktemp("nights")
    for number, job in enumerate(("ingest", "audit")):
        collection = folder / f"collection-{number}"
        night(collection, KNOWN, number)
        for broker in (collection / "brokers").iterdir():
            (broker / "config").mkdir()
            (broker / "config" / "topics.json").write_text(json.dumps(TOPICS))
        words = ("--collection", collection, "--output", folder / job)
        assert main(None, [job, *map(str, words)]) in (0, 3)
    return [folder / "ingest", folder / "audit"]


def test_a_night_agrees_with_another_of_its_cluster_and_not_with_ours(
    nights: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    verdicts = {}
    for name, fit in (("default", ()), ("fitted", ("--fit", nights[0]))):
        run("fidelity", "--input", nights[1], "--output", tmp_path / name, *fit)
        rows = [row for row in rows_of(tmp_path / name, "fidelity") if row["samples"]]
        of_requests = [row for row in rows if row["measure"] == "LATENCY"]
        verdicts[name] = {row["kind"]: (row["verdict"], row["delays"]) for row in of_requests}
    kinds = {"START_UP", "REGISTRATION", "QUEUE_TAKEN"}
    assert verdicts["fitted"].keys() == verdicts["default"].keys() == kinds
    assert {verdict for verdict, _ in verdicts["fitted"].values()} == {"AGREES"}
    assert verdicts["fitted"]["START_UP"][1] == "fitted from 40 start-ups of 1 night"
    assert verdicts["default"]["START_UP"] == ("DIFFERS", "default, measured on 2 to 4 brokers")
    assert "longer than in any future: START_UP" in capsys.readouterr().out.replace("\n    ", " ")


def test_what_could_not_be_compared_is_counted(
    nights: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """No broker of these nights logged a leave, and one client's log is away."""
    away = next((nights[0].parent / "collection-0" / "clients").iterdir()) / "rocketmq_client.log"
    kept = away.read_text()
    away.unlink()
    run("ingest", "--collection", nights[0].parent / "collection-0", "--output", tmp_path / "in")
    away.write_text(kept)
    capsys.readouterr()
    run("fidelity", "--input", tmp_path / "in", "--output", tmp_path / "out", "--seeds", 5)
    said = capsys.readouterr().out
    assert "changes after which no client's log shows a move: 1\n" in said
    assert "changes without gaps: the log of some member is missing: " in said
    assert "latencies of clients without a join or leave in the tables: 117\n" in said
    assert "UNKNOWN, no row of latencies shows it: collect more clients' logs: UNREG" in said


def test_logs_without_a_client_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    night(tmp_path / "c", KNOWN, 0)
    for path in [*(tmp_path / "c").glob("clients/*/*"), *(tmp_path / "c").glob("brokers/b?/*")]:
        if path.parent.name != "b0":
            path.unlink()
    run("ingest", "--collection", tmp_path / "c", "--output", tmp_path / "in")
    capsys.readouterr()
    run("fidelity", "--input", tmp_path / "in", "--output", tmp_path / "out", code=4)
    assert "collect rocketmq_client.log of some clients" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_wrong_inputs_are_refused(
    recorded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    tables = TREE / "rebalance_core/bundled/demo/join-leave/tables"
    run("fidelity", "--input", tables, "--output", tmp_path / "out", code=4)
    assert "no latencies in it; name the output of ingest, audit" in capsys.readouterr().err
    run("fidelity", "--output", tmp_path / "out", code=2)
    assert "--input" in capsys.readouterr().err
    words = ("--input", recorded, "--output", tmp_path / "out")
    for same in (recorded, f"{recorded}/", f"{recorded}/../{recorded.name}"):
        run("fidelity", *words, "--fit", same, code=2)
        assert "agree with it trivially" in capsys.readouterr().err
    run("fidelity", *words, "--dry-run")
    assert "fidelity, fidelity_samples, rejected" in capsys.readouterr().out
    assert not (tmp_path / "out").exists()
    run("fidelity", *words, "--group", "none", code=4)
