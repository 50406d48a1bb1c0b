"""Every line of the bundled producer vectors (outputs of the released client classes)."""

import json
from pathlib import Path

import pytest

from tests.conformance.producer_vectors import compare, compare_durations
from tests.tree import TREE

VECTORS = TREE / "tests" / "vectors"
FACTS = {"publish": 1200, "select": 8902, "latency": 6772, "retry": 1196}


@pytest.mark.parametrize("kind", FACTS)
def test_every_line_agrees(kind: str) -> None:
    assert compare(VECTORS / f"producer-{kind}-vectors-dev.jsonl") == (FACTS[kind], [])


def test_every_duration_agrees() -> None:
    assert compare_durations(VECTORS / "producer-duration-vectors.tsv") == (1684, [])


@pytest.mark.parametrize(
    ("kind", "version", "field", "value"),
    [
        ("publish", "5.3.3", "publish", [["nobody", 0]]),
        ("publish", "5.3.3", "order_topic", None),
        ("publish", "5.3.3", "subscribe", [["nobody", 0]]),
        ("select", "4.9.7", "results", [["nobody", 0], 1]),
        ("latency", "4.9.7", "results", {"faults": [["nobody", 1, 1, False]]}),
        ("latency", "5.3.3", "results", {"faults": [["nobody", 1, 1, False, True, None]]}),
        ("retry", "4.9.7", "results", {"picks": []}),
        ("retry", "5.3.3", "results", {"picks": []}),
    ],
)
def test_a_corrupted_line_is_one_mismatch(
    tmp_path: Path, kind: str, version: str, field: str, value: object
) -> None:
    lines = (VECTORS / f"producer-{kind}-vectors-dev.jsonl").read_text("utf-8").splitlines()
    scenarios = [json.loads(line) for line in lines]
    scenario = next(s for s in scenarios if version in s.get("versions", [s.get("version")]))
    if field == "results":
        scenario["results"][0] = value
    else:
        scenario[field] = value
    path = tmp_path / "corrupted.jsonl"
    path.write_text(json.dumps(scenario) + "\n", encoding="utf-8")

    facts, mismatches = compare(path)

    assert facts >= 1
    assert len(mismatches) == 1
    assert mismatches[0].startswith("corrupted.jsonl:1: ")


def test_a_wrong_duration_is_a_mismatch(tmp_path: Path) -> None:
    path = tmp_path / "durations.tsv"
    path.write_text("version\tlatency_ms\tnot_available_ms\n5.3.3\t550\t30000\nx\t1\t0\n", "utf-8")
    facts, mismatches = compare_durations(path)
    assert (facts, len(mismatches)) == (2, 2)
    assert mismatches[0] == "durations.tsv:2: expected 30000, got 2000"


def test_other_lines_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.jsonl"
    path.write_text('{"id": 0}\n', "utf-8")
    with pytest.raises(ValueError, match="no producer vectors"):
        compare(path)
