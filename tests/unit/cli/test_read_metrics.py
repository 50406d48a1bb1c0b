"""`rebalance read-metrics`: from an answer of Prometheus to what `autoscale` reads."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from rebalance_core.cli.main import main
from tests.plans import rows_of
from tests.tree import TREE
from tests.unit.planning.autoscale.answers import BEGIN_S, STEP_S, body, come, lag, pods

STEADY = str(TREE / "rebalance_core/bundled/demo/steady/tables")
OF = {"cluster": "DefaultCluster", "topic": "Checkout"}


def sale() -> str:
    """Half an hour of the demo's group: 600 messages a second, of which it reads 400."""
    parts = []
    for broker in ("broker-a", "broker-b"):
        of = OF | {"node_id": broker}
        parts.append(come([300 * STEP_S * place for place in range(31)], **of))
        waits = [1_000 + 100 * STEP_S * place for place in range(31)]
        parts.append(lag(waits, consumer_group="checkout", **of))
    return body(*parts, pods([2] * 31, deployment="checkout"))


def test_an_answer_becomes_the_tables_that_autoscale_reads(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = tmp_path / "day.json.gz"
    answer.write_bytes(gzip.compress(sale().encode()))
    out = tmp_path / "metrics"
    words = ["read-metrics", "--answer", str(answer), "--output", str(out)]
    assert main(None, words) == 0
    said = capsys.readouterr().out
    assert "Messages that come, 2026-11-21 03:20:00Z to 2026-11-21 03:50:00Z" in said
    assert "DefaultCluster/Checkout/broker-b     300.0      100.0%" in said
    # 400 a second by two members with 20 threads
    assert "DefaultCluster/checkout  100 ms (100 to 100) with 20 threads" in said
    assert len(rows_of(out, "arrivals")) == 2
    assert len(rows_of(out, "recorded_scaling")) == 31
    assert json.loads((out / "_run.json").read_text())["inputs"][0]["path"] == str(answer)
    scaled = tmp_path / "scaled"
    tables = ["--arrivals", str(out / "arrivals"), "--capacity", str(out / "capacity")]
    words = ["autoscale", "--input", STEADY, "--group", "checkout", *tables]
    words += ["--policy", "hpa", "--seeds", "1", "--output", str(scaled)]
    assert main(None, words) == 0
    (row,) = rows_of(scaled, "policy_summary")
    assert row["reason"] is None
    assert row["from_ms"] == BEGIN_S * 1_000
    assert row["steps"] > 0


def test_what_is_unknown_is_printed_with_its_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = tmp_path / "gaps.json"
    answer.write_text(body(come([0, 600, None, 1_800, *range(0, 6_000, 500)], **OF)))
    words = ["read-metrics", "--answer", str(answer), "--output", str(tmp_path / "o")]
    assert main(None, [*words, "--dry-run"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("Dry run: nothing is written.")
    assert "UNKNOWN: 2 gaps" in said
    assert f"  {answer}: rocketmq_messages_in_total{{cluster=" in said
    assert "it went back from 1800 to 0" in said
    assert not (tmp_path / "o").exists()
    assert main(None, [*words, "--json"]) == 0
    facts: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert [each["why"] for each in facts["unknown"]] == [
        "it went back from 1800 to 0",
        "samples are missing, with steps of 60 s",
    ]
    assert facts["rows"]["arrivals"] == 2
    assert facts["rows"]["capacity"] == 0


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (body(come([5])), "no rate of a topic is known: rocketmq_messages_in_total"),
        (body(come([5, 0])), "it went back from 5 to 0"),
        (body(), "needs two samples of it"),
        (body(come([0, -1])), "a counter is 0 or more"),
    ],
)
def test_an_answer_without_a_rate_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, said: str
) -> None:
    answer = tmp_path / "a.json"
    answer.write_text(text)
    words = ["read-metrics", "--answer", str(answer), "--output", str(tmp_path / "o")]
    assert main(None, words) == 4
    assert said in capsys.readouterr().err
    assert not (tmp_path / "o" / "arrivals").exists()
    assert main(None, [*words, "--dry-run"]) == 4


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ((), 2, "--answer FILE is missing"),
        (("--answer", "nowhere.json"), 4, "--answer nowhere.json: no such file"),
        (("--answer", "a.json", "--deployment", "pay"), 2, "expected GROUP=NAME"),
        (("--answer", "a.json", "--threads", "0"), 2, "from 1 to 10,000"),
    ],
)
def test_wrong_options_are_refused(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    words: tuple[str, ...],
    code: int,
    said: str,
) -> None:
    assert main(None, ["read-metrics", *words, "--output", str(tmp_path / "o")]) == code
    assert said in capsys.readouterr().err
