"""One damaged night is one night: history leaves it out, and says so; others refuse it."""

import contextlib
import io
import json
import os
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rebalance_core.cli.main import main
from rebalance_core.model.times import DAY_MS
from tests.recordings.tables import DATA

COLLECTION = DATA / "nightly" / "collection"


@pytest.fixture(scope="module")
def audited(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("audited") / "night"
    with contextlib.redirect_stdout(io.StringIO()):
        assert main("audit", ["--collection", str(COLLECTION), "--output", str(folder)]) == 3
    return folder


@pytest.fixture
def runs(audited: Path, tmp_path: Path) -> Path:
    """Two nights, a day apart; the second one is to be damaged."""
    for number in range(2):
        folder = shutil.copytree(audited, tmp_path / "runs" / f"night-{number}")
        rewrite(folder, partial(later, days=number))
    return tmp_path / "runs"


def later(record: Any, *, days: int) -> None:
    record["run_id"] = f"{days}" * 32
    for cluster in record["audit"]["clusters"].values():
        cluster["start_ms"] += days * DAY_MS
        cluster["end_ms"] += days * DAY_MS


def rewrite(folder: Path, change: Callable[[Any], object]) -> None:
    record = json.loads((folder / "_run.json").read_text())
    change(record)
    (folder / "_run.json").write_text(json.dumps(record))


def halve(folder: Path) -> None:
    (file,) = (folder / "findings").glob("*.parquet")
    rows = pq.read_table(file)
    pq.write_table(rows.slice(0, len(rows) // 2), file)


def scramble(folder: Path) -> None:
    """As many rows as before, of columns that nothing can be made of."""
    (file,) = (folder / "epochs").glob("*.parquet")
    rows = len(pq.read_table(file))
    pq.write_table(pa.table({"cluster": pa.array(["x"] * rows), "epoch": ["?"] * rows}), file)


def one_file(folder: Path, table: str) -> Path:
    (file,) = (folder / table).glob("*.parquet")
    return file


DAMAGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "half of a table": (halve, "findings has 13 rows; 26 are recorded"),
    "a table is gone": (lambda night: shutil.rmtree(night / "epochs"), "epochs is missing"),
    "a part of no octet": (
        lambda night: one_file(night, "memberships").write_bytes(b""),
        "is not Parquet",
    ),
    "a stray file": (
        lambda night: (night / "findings" / "notes.txt").write_text("x"),
        "notes.txt is not Parquet",
    ),
    "other columns": (scramble, "its tables cannot be read"),
    "no record, a lock": (
        lambda night: (night / "_run.json").rename(night / "_lock.json"),
        "a run is writing here or died here",
    ),
    "no record": (lambda night: (night / "_run.json").unlink(), "holds no _run.json"),
    "a torn record": (lambda night: os.truncate(night / "_run.json", 500), "holds no _run.json"),
    "a nested record": (
        lambda night: (night / "_run.json").write_text("[" * 20_000),
        "holds no _run.json",
    ),
    "a record of null": (
        lambda night: (night / "_run.json").write_text("null"),
        "holds no _run.json",
    ),
    "a status of its own": (
        lambda night: rewrite(night, lambda record: record.update(status="FINE")),
        "status is 'FINE'",
    ),
    "no outputs": (
        lambda night: rewrite(night, lambda record: record.pop("outputs")),
        "lists no tables",
    ),
    "a time of 30 digits": (
        lambda night: rewrite(night, lambda record: record["audit"].update(end_ms=10**30)),
        "audit.end_ms is",
    ),
    "an error of many lines": (
        lambda night: rewrite(
            night, lambda record: record.update(status="FAILED", error="a\n\ud800" * 10_000)
        ),
        "a run that failed: a\\n",
    ),
    "a name of other octets": (
        lambda night: os.rename(os.fsencode(night), os.fsencode(night) + b"-\xff"),  # noqa: PTH104
        "is not UTF-8",
    ),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_night_takes_no_other_away(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], damage: str
) -> None:
    change, said = DAMAGES[damage]
    change(runs / "night-1")
    words = ["--runs", str(runs), "--output", str(tmp_path / "out"), "--json"]
    assert main("history", words) == 0
    out, err = capsys.readouterr()
    facts = json.loads(out)
    (left_out,) = facts["left_out"]
    assert (facts["nights"], said in left_out, "night-1" in left_out) == (1, True, True), left_out
    assert len(left_out) < 2_000
    assert said in err
    page = (tmp_path / "out" / "history.html").read_text("utf-8")
    assert '<h2>Left out <span class="quiet">1 folder</span></h2>' in page
    metrics = (tmp_path / "out" / "metrics.prom").read_text()
    assert "rebalance_history_left_out 1\n" in metrics
    if damage != "other columns":
        assert main("history", [*words, "--overwrite", "--dry-run"]) == 0
        assert said in json.loads(capsys.readouterr().out)["left_out"][0]


def test_where_every_night_is_damaged_it_refuses(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    halve(runs / "night-0")
    scramble(runs / "night-1")
    assert main("history", ["--runs", str(runs), "--output", str(tmp_path / "out")]) == 4
    err = capsys.readouterr().err
    assert "has no usable audit" in err
    assert "night-0: its tables are not as the run wrote them" in err
    assert "night-1: its tables cannot be read" in err


OF_A_LEDGER = {name for name in DAMAGES if name not in ("no outputs", "a name of other octets")}


@pytest.mark.parametrize("damage", sorted(OF_A_LEDGER - {"other columns"}))
def test_explain_and_previous_refuse_it(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], damage: str
) -> None:
    night = runs / "night-1"
    DAMAGES[damage][0](night)
    asked = ["--group", "order-service", "--queue", "orders/broker-a/1"]
    words = ["--ledger", str(night), *asked, "--at", "2026-11-21T03:51:00Z"]
    assert main("explain", words) == 4
    assert "this is a bug" not in capsys.readouterr().err
    if damage in ("a table is gone", "a part of no octet"):
        return  # only its findings are read
    words = ["--input", str(runs / "night-0" / "ingested"), "--output", str(tmp_path / "out")]
    assert main("audit", [*words, "--previous", str(night)]) == 4
    assert str(night) in capsys.readouterr().err
    assert not (tmp_path / "out" / "findings").exists()


@pytest.mark.parametrize(
    "text",
    ["{", "[]", "3", '{"finding": [], "needs": []}', '{"finding": {}, "needs": []}', "[" * 20_000],
    ids=lambda text: text[:9],
)
def test_what_the_previous_night_carries_may_be_damaged(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    (runs / "night-1" / "not_looked_at.jsonl").write_text(text)
    words = ["--input", str(runs / "night-0" / "ingested"), "--output", str(tmp_path / "out")]
    assert main("audit", [*words, "--previous", str(runs / "night-1")]) == 4
    assert "line 1 of what was not looked at" in capsys.readouterr().err
