"""Pages that the site makes: each finding has one, and links that leave docs/ are followed."""

import re

import pytest

from rebalance_core.audit.registry import MEANINGS
from scripts.site_pages import LINK, at_docs, followed, rule_pages
from tests.tree import TREE


def test_every_finding_has_a_page_whose_links_lead_to_pages() -> None:
    pages = rule_pages()
    assert pages.keys() == MEANINGS.keys()
    for rule_id, text in pages.items():
        assert text.startswith(f"# {rule_id}\n")
        for link in re.findall(r"\]\(([^)#]+)", text):
            assert (TREE / "docs/rules" / link).resolve().exists() or link[:-3] in pages, link


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
