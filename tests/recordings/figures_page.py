"""The parts of docs/fidelity-figures.md that are made of recordings."""

from collections.abc import Iterable

from tests.tree import TREE

PAGE = TREE / "docs" / "fidelity-figures.md"


def write_part(marks: tuple[str, str], lines: Iterable[str]) -> None:
    """Replace what stands between two marks of the page; it must have them."""
    begin, end = marks
    before, found, rest = PAGE.read_text().partition(begin)
    assert found, begin
    _, _, after = rest.partition(end)
    made = "\n".join(lines)
    PAGE.write_text(f"{before}{begin}\n\n{made}\n\n{end}{after}")
