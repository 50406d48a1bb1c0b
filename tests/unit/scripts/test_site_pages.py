"""Pages that the site makes: each finding has one, and links that leave docs/ are followed."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from rebalance_core.audit.registry import MEANINGS
from scripts.site_pages import LINK, at_docs, followed, rule_pages
from tests.tree import TREE


def test_every_finding_has_a_page_whose_links_lead_to_pages() -> None:
    pages = rule_pages()
    assert pages.keys() == MEANINGS.keys()
    for rule_id, text in pages.items():
        assert text.startswith(f"# {rule_id}\n")
        for link, anchor in re.findall(r"\]\(([^)#]+)#?([^)]*)", text):
            page = (TREE / "docs/rules" / link).resolve()
            assert page.exists() or link[:-3] in pages, link
            assert not anchor or anchor in anchors_of(page), f"{link}#{anchor}"


def anchors_of(page: Path) -> set[str]:
    """The ids of the headings of a page, as the site makes them, and those written in HTML."""
    text = re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    plain = [re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", title) for title in titles]
    ascii_only = [re.sub(r"[^\w\s-]", "", title, flags=re.ASCII).strip().lower() for title in plain]
    return {re.sub(r"[-\s]+", "-", title) for title in ascii_only} | set(
        re.findall(r'(?:id|name)="([^"]+)"', text)
    )


@pytest.mark.parametrize("page", sorted((TREE / "docs").glob("*.md")), ids=lambda page: page.name)
def test_links_within_docs_lead_to_headings(page: Path) -> None:
    """`make site` refuses a link whose heading is gone."""
    text = re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    for link, anchor in re.findall(r"\]\((?!https?:)([^)#\s]*)#([^)\s]+)\)", text):
        target = page.parent / link if link else page
        if target.suffix == ".md":
            assert anchor in anchors_of(target), f"{link}#{anchor}"


def sections(docstring: str) -> Iterator[str]:
    """Yield the entries of a docstring's sections of names and descriptions."""
    inside = False
    for line in docstring.splitlines():
        if line and not line.startswith(" "):
            inside = line in {"Args:", "Attributes:", "Raises:"}
        elif inside and re.match(r" {4}\S", line):
            yield line.strip()


def test_entries_of_docstrings_have_a_name_and_a_description() -> None:
    """`make site` refuses a second line that is not indented below the first."""
    entries = [
        (f"{path.relative_to(TREE)}:{node.lineno}", entry)
        for path in sorted((TREE / "rebalance_core").rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.ClassDef | ast.FunctionDef)
        for entry in sections(ast.get_docstring(node) or "")
    ]
    assert len(entries) > 1_000
    assert not [(at, e) for at, e in entries if not re.match(r"[\w.*]+(, [\w.*]+)*: \S", e)]


@pytest.mark.parametrize(
    ("here", "repository", "link", "expected"),
    [
        ("", "", "[a](spark.md#connect)", "[a](spark.md#connect)"),
        ("", "", "[a](../README.md#install)", "[a](readme.md#install)"),
        ("rules", "", "[a](../../CONTRIBUTING.md)", "[a](../contributing.md)"),
        ("", "", "[`a.py`](../scripts/setup.py)", "`a.py`"),
        (
            "",
            "https://host/x",
            "[a](../scripts/setup.py)",
            "[a](https://host/x/blob/main/scripts/setup.py)",
        ),
        ("", "", "[a](pictures/)", "a"),
    ],
)
def test_links_that_leave_the_folder_are_followed(
    here: str, repository: str, link: str, expected: str
) -> None:
    assert LINK.sub(lambda match: followed(match, here, repository), link) == expected


def test_a_page_of_the_root_reads_as_one_of_docs() -> None:
    text = "[![p](docs/pictures/a.png)](docs/spark.md#connect) [l](LICENSE) [w](https://x.y)"
    assert (
        at_docs(text) == "[![p](pictures/a.png)](spark.md#connect) [l](../LICENSE) [w](https://x.y)"
    )
