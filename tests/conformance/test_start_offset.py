"""Every row of the bundled start-offset vectors (outputs of the released client classes)."""

from pathlib import Path

import pytest

from tests.conformance.start_offset import compare
from tests.tree import TREE

VECTORS = TREE / "tests" / "vectors" / "start-offset-vectors.tsv"
ROWS = 1728


def test_every_row_agrees() -> None:
    assert compare(VECTORS) == (ROWS, [])


@pytest.mark.parametrize(
    ("column", "value"), [(-1, "5"), (-2, "5"), (0, "3.2.6"), (3, "dead"), (4, "many"), (1, "pop")]
)
def test_a_corrupted_row_is_a_mismatch(tmp_path: Path, column: int, value: str) -> None:
    lines = VECTORS.read_text(encoding="utf-8").split("\n")[:4]
    cells = lines[2].split("\t")
    cells[column] = value
    lines[2] = "\t".join(cells)
    corrupted = tmp_path / "corrupted.tsv"
    corrupted.write_text("\n".join(lines) + "\n", encoding="utf-8")

    facts, mismatches = compare(corrupted)

    assert facts == 3
    assert len(mismatches) == 1
    assert mismatches[0].startswith("corrupted.tsv:3: ")


def test_another_table_is_refused(tmp_path: Path) -> None:
    other = tmp_path / "other.tsv"
    other.write_text("a\tb\n", encoding="utf-8")
    with pytest.raises(ValueError, match="columns"):
        compare(other)
