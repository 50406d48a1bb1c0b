"""Whatever cites a rule of RocketMQ names a place that docs/rocketmq.md has."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tree import TREE

PAGE = TREE / "docs/rocketmq.md"
TEXTS = {".java", ".md", ".py", ".sh", ".toml"}
RECORDED = TREE / "tests/recordings/data"

PLACE = r"(?:§\d+(?:\.\d+)?(?: no\. \d+(?:(?:, | and )\d+\b)*)?|Appendix [A-Z]\b)"
PLACES = rf"{PLACE}(?:(?:, | and |[-–]){PLACE})*"
CITATION = re.compile(rf"rocketmq\.md {PLACES}")  # on one line; a sign alone is no citation
HEADING = re.compile(r"#+ (Appendix [A-Z]|\d+(?:\.\d+)?)\b")
NUMBERED = re.compile(r"(\d+)\. ")


def places_of_the_page() -> set[str]:
    """Each section as it is cited, and each numbered item of one: `§13 no. 5`."""
    places, section = set(), ""
    for line in PAGE.read_text("utf-8").splitlines():
        if heading := HEADING.match(line):
            section = heading[1] if heading[1].startswith("Appendix") else f"§{heading[1]}"
            places.add(section)
        elif numbered := NUMBERED.match(line):
            places.add(f"{section} no. {numbered[1]}")
    return places


def places_in(text: str) -> Iterator[str]:
    for place in re.findall(PLACE, text):
        section, _, numbers = place.partition(" no. ")
        yield section
        yield from (f"{section} no. {number}" for number in re.findall(r"\d+", numbers))


def texts() -> Iterator[Path]:
    tops = [path for path in TREE.iterdir() if not path.name.startswith(".")]
    for path in sorted({*tops, *(path for top in tops for path in top.rglob("*"))}):
        text = path.suffix in TEXTS and path.is_file()
        if text and path not in (PAGE, Path(__file__)) and RECORDED not in path.parents:
            yield path


@pytest.fixture(scope="module")
def lines() -> list[tuple[str, str]]:
    """Every line of the tree that has a section sign or cites the page, and where it stands."""
    return [
        (f"{path.relative_to(TREE)}:{number}", line)
        for path in texts()
        for number, line in enumerate(path.read_text("utf-8").splitlines(), start=1)
        if "§" in line or CITATION.search(line)
    ]


def test_every_citation_names_the_page(lines: list[tuple[str, str]]) -> None:
    assert lines
    assert [place for place, line in lines if "§" in CITATION.sub("", line)] == []


def test_every_cited_place_exists(lines: list[tuple[str, str]]) -> None:
    there = places_of_the_page()
    cited = {
        place for _, line in lines for text in CITATION.findall(line) for place in places_in(text)
    }
    assert cited - there == set()


def test_the_page_s_own_references_exist() -> None:
    assert set(places_in(PAGE.read_text("utf-8"))) - places_of_the_page() == set()
