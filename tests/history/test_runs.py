"""Which runs count, and bad input of the job."""

import itertools
import json
from pathlib import Path
from typing import Any

import pytest

from rebalance_core.cli.main import main
from rebalance_core.contracts import CONTRACT_VERSION
from rebalance_core.history.owners import read_owners
from rebalance_core.history.runs import choose_runs
from rebalance_core.model.errors import UsageError


def record(started: str = "2026-01-01", end_ms: int = 5, run_id: str = "r", rows: int = 1) -> Any:
    return {
        "job": "audit",
        "status": "OK",
        "contract_version": CONTRACT_VERSION,
        "library_version": "0",
        "started_at": started,
        "run_id": run_id,
        "outputs": {"findings": {"rows": rows, "digest": "d"}},
        "audit": {"clusters": {"c": {"end_ms": end_ms}}},
    }


def chosen(found: list[tuple[str, Any]]) -> list[str]:
    return [run.folder for run, _ in choose_runs(found).nights]


def test_a_repeated_night_replaces_itself_in_any_order() -> None:
    runs = [
        ("a", record("2026-01-02")),
        ("b", record("2026-01-03", run_id="again")),
        ("c", record("2026-01-01", end_ms=9, run_id="later")),
    ]
    for order in itertools.permutations(runs):
        assert chosen(list(order)) == ["b", "c"]
    assert choose_runs(runs).left_out == []


def test_a_copy_counts_once() -> None:
    assert chosen([("a", record()), ("copy", record())]) == ["copy"]


@pytest.mark.parametrize("other", [{"run_id": "x"}, {"started": "2026-02-02"}])
def test_runs_that_contradict_each_other_do_not_count(other: dict[str, Any]) -> None:
    runs = choose_runs([("a", record()), ("b", record(**other, rows=2)), ("z", record(end_ms=7))])
    assert [run.folder for run, _ in runs.nights] == ["z"]
    assert len(runs.left_out) == 1
    assert runs.left_out[0].startswith("a, b: these runs audited c up to the same moment")


def test_what_is_no_audit_is_named() -> None:
    nameless = record()
    del nameless["run_id"]
    runs = choose_runs(
        [
            ("failed", record() | {"status": "FAILED", "error": "it broke"}),
            ("half", None),
            ("ledger", record() | {"job": "simulate"}),
            ("nameless", nameless),
            ("newer", record() | {"contract_version": CONTRACT_VERSION + 1}),
            ("older", record() | {"contract_version": CONTRACT_VERSION - 1}),
            ("spread", record() | {"job": "propagate"}),
        ]
    )
    assert not runs.nights
    assert [run.folder for run in runs.propagated] == ["spread"]
    names = [text.partition(":")[0] for text in runs.left_out]
    assert names == ["failed", "half", "ledger", "nameless", "newer", "older"]
    assert "it broke" in runs.left_out[0]


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda _: None, "has no usable audit"),
        (
            lambda runs: (runs / "_run.json").write_text(json.dumps(record())),
            "is a single run; name",
        ),
        (lambda runs: (runs / "half" / "findings").mkdir(parents=True), "half: it holds no"),
    ],
)
def test_without_a_night_it_refuses(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], make: Any, said: str
) -> None:
    runs = tmp_path / "runs"
    runs.mkdir()
    make(runs)
    assert main("history", ["--runs", str(runs), "--output", str(tmp_path / "out")]) == 4
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[[owner]]\npattern = 'a'", "owners.toml:1: team is missing"),
        ("[[owner]]\npatern = 'a'\nteam = 't'", "unknown key patern, did you mean pattern"),
        ("[[owner]]\npattern = 1\nteam = 't'", "pattern = 1 is not a text"),
        ("[owner]\npattern = 'a'", "write each owner as a table [[owner]]"),
        ("owner = [", "not TOML"),
        ("", "no [[owner]] table"),
    ],
)
def test_bad_owners(text: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_owners(text, "owners.toml")
    assert said in str(caught.value).replace("; did", ", did").replace(" (did", ", did")
