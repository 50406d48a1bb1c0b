"""Every answer of the bundled vectors of clients in other languages."""

import json
from pathlib import Path

import pytest

from tests.conformance.languages import compare
from tests.tree import TREE

VECTORS = TREE / "tests" / "vectors"


@pytest.mark.parametrize(
    ("language", "facts"), [("go", 3794), ("rust", 3501), ("cpp", 1169), ("node", 1169)]
)
def test_every_answer_agrees(language: str, facts: int) -> None:
    assert compare(VECTORS / f"language-vectors-{language}.jsonl") == (facts, [])


def test_a_wrong_answer_and_an_unknown_language_are_mismatches(tmp_path: Path) -> None:
    lines = (VECTORS / "language-vectors-go.jsonl").read_text(encoding="utf-8").splitlines()
    case = next(c for c in map(json.loads, lines) if c["answers"][0].get("result"))
    wrong = case | {"answers": [case["answers"][0] | {"result": []}]}
    foreign = case | {"language": "COBOL", "answers": case["answers"][:1]}
    file = tmp_path / "vectors.jsonl"
    file.write_text(f"{json.dumps(wrong)}\n{json.dumps(foreign)}\n", encoding="utf-8")

    facts, mismatches = compare(file)

    assert facts == 2
    assert [text[:15] for text in mismatches] == ["vectors.jsonl:1", "vectors.jsonl:2"]
