"""Each case gives its right answer: tests/cases/expected.toml says which and why."""

import shutil
import tomllib
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pytest

from rebalance_core.cli.main import main
from tests.cases.degraded import DAMAGES, damaged

HERE = Path(__file__).parent
EXPECTED: dict[str, dict[str, Any]] = tomllib.loads((HERE / "expected.toml").read_text("utf-8"))


def stated(output: Path) -> list[tuple[str, str]]:
    """``(SEVERITY RULE GROUP, summary and remedy)`` of each finding of a run."""
    if not (output / "_run.json").exists():
        return []
    rows = ds.dataset(output / "findings", format="parquet").to_table().to_pylist()
    heads = ("severity", "rule_id", "consumer_group")
    return [
        (" ".join(row[name] for name in heads if row[name]), f"{row['summary']} {row['remedy']}")
        for row in rows
    ]


def test_every_case_has_its_answer() -> None:
    cases = {path.name for path in (HERE / "data").iterdir() if path.is_dir()}
    assert set(EXPECTED) == cases | set(DAMAGES)


@pytest.mark.parametrize("case", sorted(EXPECTED))
def test_case(case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    expected = EXPECTED[case]
    folder = damaged(case, tmp_path / "collection") if case in DAMAGES else HERE / "data" / case
    output = tmp_path / "output"
    words = ["--collection", str(folder), "--output", str(output), *expected.get("options", [])]
    code = main("audit", words)
    printed = capsys.readouterr()
    findings = stated(output)
    heads = [head for head, _ in findings]
    text = "\n".join([printed.out, printed.err, *(f"{head}: {said}" for head, said in findings)])
    assert code == expected["exit_code"], text
    for head in expected.get("stands", []):
        assert any(found.startswith(head) for found in heads), f"lacks {head}\n{text}"
    for head in expected.get("never", []):
        assert not any(found.startswith(head) for found in heads), f"has {head}\n{text}"
    for words_said in expected.get("says", []):
        assert words_said in text, f"does not say {words_said!r}\n{text}"
    for words_unsaid in expected.get("unsaid", []):
        assert words_unsaid not in text, f"says {words_unsaid!r}\n{text}"


def test_dledger_is_shown_by_its_own_lines_where_no_answer_has_a_version(tmp_path: Path) -> None:
    listed = shutil.ignore_patterns("*clusterList*", "*topicRoute*")
    shutil.copytree(HERE / "data/19-dledger-leader-returns", tmp_path / "case", ignore=listed)
    output = tmp_path / "output"
    main("audit", ["--collection", str(tmp_path / "case"), "--output", str(output)])
    assert "WARNING OFFSETS_FELL_BACK settle_group" in [head for head, _ in stated(output)]
