"""Each job leaves the same in one process and on Spark: rows, digests, page, metrics, words."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from rebalance_core.cli.main import main
from tests.recordings.tables import DATA

PLACES = ("process", "spark")
OF_THE_RUN = ("arguments", "run_on", "seconds", "started_at", "versions")
"""What of a record may differ."""
TIMES = re.compile(
    r"Made by .* at <time.*?</time>|finished_seconds.*|\d+(\.\d+)? s (in pro|on Sp).*"
)

pytestmark = pytest.mark.usefixtures("session_of_the_run")


def made(folder: Path, *words: object) -> dict[str, Any]:
    """What a job that ends well, or with findings, leaves behind and says."""
    code = main(None, [*map(str, words), "--output", str(folder)])
    assert code in (0, 3)
    record = json.loads((folder / "_run.json").read_text())
    texts = {
        path.name: TIMES.sub("", path.read_text())
        for path in (folder / "report.html", folder / "metrics.prom")
        if path.exists()
    }
    return {k: v for k, v in record.items() if k not in OF_THE_RUN} | texts


@pytest.mark.parametrize(
    "words",
    [
        ("generate", "--groups", "30", "--seed", "3"),
        ("ingest", "--collection", DATA / "pathologies" / "collection"),
        ("audit", "--collection", DATA / "nightly" / "collection"),
    ],
    ids=["generate", "ingest", "audit"],
)
def test_a_job_leaves_the_same(words: tuple[object, ...], tmp_path: Path) -> None:
    process, spark = (made(tmp_path / place, *words, "--run-on", place) for place in PLACES)
    assert process == spark
    assert process["outputs"]


def test_a_second_night_without_client_ids(
    session_of_the_run: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Acceptances, the night before, redaction, bad rows; each place reads what the other wrote."""
    first, known = tmp_path / "first", tmp_path / "known.toml"
    collection = ("--collection", DATA / "pathologies" / "collection")
    made(first, "audit", *collection, "--write-accepted", known,
         "--set", "audit.findings_per_rule=1")  # fmt: skip
    known.write_text(known.read_text().replace('rule_id = "IDLE_MEMBER"', 'rule_id = "POP"'))
    facts = first / "ingested" / "observed_facts.jsonl"
    assert not facts.exists()
    words = ("audit", "--input", first / "ingested", "--previous", first, "--redact-clients",
             "--json")  # fmt: skip
    found = {}
    for place in PLACES:
        capsys.readouterr()
        found[place] = made(tmp_path / place, *words, "--run-on", place)
        said = json.loads(capsys.readouterr().out)
        found[place]["said"] = {
            name: value
            for name, value in said.items()
            if name not in ("seconds", "run_on", "output")
        }
    assert found["process"] == found["spark"]
