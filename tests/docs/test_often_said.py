"""docs/often-said.md: every row has a call that shows it; `test_blocks` holds what they print."""

import re
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.docs.pages import Block, blocks_of
from tests.tree import TREE

ROWS = 32
PAGE = TREE / "docs/often-said.md"
NUMBERED = re.compile(r"(\d+): \S")
EACH = pytest.mark.parametrize("name", ["often-said.md", "often-said.zh.md"])


def rows_of(page: Path) -> dict[int, list[str]]:
    rows = re.findall(r"^\| (\d+) \| (.*) \|$", page.read_text("utf-8"), re.MULTILINE)
    return {int(number): rest.split(" | ") for number, rest in rows}


def shown_in(blocks: Iterable[Block]) -> set[int]:
    """Numbers of what blocks that run are shown to print."""
    found = set[int]()
    for block in blocks:
        if block.kind == "console" and block.runs:
            for command, shown in block.calls():
                number = re.search(r"# (\d+)$", command)
                if number and shown:
                    found.add(int(number[1]))
                found |= {int(line[1]) for each in shown if (line := NUMBERED.match(each))}
    return found


@EACH
def test_every_row_states_what_is_so_since_when_and_is_shown(name: str) -> None:
    page = PAGE.with_name(name)
    rows = rows_of(page)
    assert list(rows) == list(range(1, ROWS + 1))
    for said, so, since in rows.values():
        assert said
        assert re.search(r"rocketmq\.md \u00a7\d", so)
        assert re.search(r"all|所有版本|\d\.\d\.\d", since)
    assert shown_in(blocks_of(page)) == set(rows)


def test_rules_and_versions_are_the_same_in_chinese() -> None:
    def figures(name: str) -> dict[int, tuple[list[str], list[str]]]:
        return {
            number: (re.findall(r"\u00a7[\d.]*\d", so), re.findall(r"\d\.\d\.\d", since))
            for number, (_, so, since) in rows_of(PAGE.with_name(name)).items()
        }

    assert figures("often-said.md") == figures("often-said.zh.md")


@pytest.mark.parametrize(
    ("old", "new", "lost"),
    [("\n29: ", "\n", 29), ("   # 7\n", "\n", 7), ("\n5: ", "\nTo see:\n5: ", 0)],
)
def test_a_row_that_nothing_shows_is_found(old: str, new: str, lost: int) -> None:
    text = PAGE.read_text("utf-8")
    assert old in text
    everything = shown_in(blocks_of(PAGE, text))
    without = shown_in(blocks_of(PAGE, text.replace(old, new)))
    assert everything - without == ({lost} if lost else set())
