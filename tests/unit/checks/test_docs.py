"""The page about bad rows names every issue code."""

import pytest

from rebalance_core.checks.row_issues import ISSUE_CODES
from tests.tree import TREE

SEMANTICS = TREE / "docs/semantics.md"


@pytest.mark.parametrize("code", ISSUE_CODES)
def test_semantics_explains_every_issue_code(code: str) -> None:
    assert f"| `{code}` | " in SEMANTICS.read_text()
