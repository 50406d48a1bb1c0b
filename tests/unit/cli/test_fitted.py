"""``--fit``: futures with the delays of the cluster's own nights."""

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from rebalance_core.cli.main import main
from tests.unit.timing.known_nights import KNOWN, night

TABLES = Path("rebalance_core/bundled/demo/join-leave/tables")


def run(job: str, *arguments: object, code: int = 0) -> None:
    assert main(None, [job, *map(str, arguments)]) == code


@pytest.fixture(scope="module")
def nights(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The outputs of ``ingest`` and of ``audit``, a night each."""
    folder = tmp_path_factory.mktemp("nights")
    for number, job in enumerate(("ingest", "audit")):
        night(folder / f"collection-{number}", KNOWN, number)
        arguments = ("--collection", folder / f"collection-{number}", "--output", folder / job)
        assert main(None, [job, *map(str, arguments)]) in (0, 3)
    return [folder / "ingest", folder / "audit"]


def test_futures_state_the_nights_they_are_fitted_to(
    nights: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    run("propagate", "--input", TABLES, "--output", tmp_path / "a", "--seeds", 2, "--fit", *nights)
    printed = " ".join(capsys.readouterr().out.split())
    assert "start() takes about 1.5 s with 2 brokers (fitted from 80 start-ups of 2 nights)" in (
        printed.replace("start- up", "start-up")
    )
    assert "medians by night 1,514 to 1,514 ms" in printed
    delays = set(pq.read_table(tmp_path / "a" / "propagation")["delays"].to_pylist())
    assert len(delays) == 1
    assert delays.pop().startswith("fitted from 80 start-ups of 2 nights; fitted from 240")


def test_one_night_with_few_starts_leaves_the_recorded_delays(
    nights: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    join_leave = Path("tests/recordings/data/join-leave/collection")
    run("ingest", "--collection", join_leave, "--output", tmp_path / "few")
    capsys.readouterr()
    arguments = ("--input", TABLES, "--output", tmp_path / "a", "--seeds", 2, "--json", "--fit")
    run("propagate", *arguments, tmp_path / "few")
    facts = json.loads(capsys.readouterr().out)
    assert facts["start_up"]["basis"] == "default, measured on 2 to 4 brokers"
    assert [kind["basis"] for kind in facts["fit"]] == [
        "default: 5 start-ups of 1 night, 20 are needed",
        "default: 5 registrations of 1 night, 20 are needed",
        "default: 2 unregistrations of 1 night, 20 are needed",
        "default: 16 queues taken of 1 night, 20 are needed",
    ]


def test_a_plan_is_fitted_too(
    nights: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    arguments = ("--input", TABLES, "--output", tmp_path / "a", "--json", "--fit", *nights)
    run("plan", *arguments)
    start = json.loads(capsys.readouterr().out)["start_up"]
    assert start["basis"] == "fitted from 80 start-ups of 2 nights"
    assert start["median_ms"] == pytest.approx(1_500, rel=0.1)


@pytest.mark.parametrize("folder", ["", "none"])
def test_a_folder_without_latencies_is_refused(
    folder: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    there = tmp_path / folder
    arguments = ("--input", TABLES, "--output", tmp_path / "out", "--fit", there)
    run("propagate", *arguments, code=4)
    assert f"--fit {there}: no latencies in it" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_table_that_its_run_did_not_write_is_refused(
    nights: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (part,) = (nights[0] / "latencies").iterdir()
    kept = part.read_bytes()
    try:
        part.write_bytes(kept[: len(kept) // 2])
        arguments = ("--input", TABLES, "--output", tmp_path / "out", "--fit", nights[0])
        run("propagate", *arguments, code=4)
    finally:
        part.write_bytes(kept)
    assert "latencies" in capsys.readouterr().err
