"""The notebook of the morning after runs, imports from the package's top alone, prints the same."""

import re

import pytest

from tests.jobs.test_notebook import check_copy, notebook, source_of
from tests.tree import TREE

NAME = "the_morning_after"
pytestmark = pytest.mark.unit


def test_it_runs_and_its_executed_copy_printed_the_same(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    printed = notebook(tmp_path_factory.mktemp("morning"), source_of(NAME))
    assert "18 findings, 8 causes" in printed
    assert "DUPLICATE_CLIENT_ID         notify         -> 2 DOUBLE_OWNER, 2 ORPHAN" in printed
    check_copy(NAME, printed)


def test_it_imports_from_the_top_alone() -> None:
    source = (TREE / f"notebooks/{NAME}.py").read_text("utf-8")
    assert set(re.findall(r"^(?:import|from) (rebalance_core\S*)", source, re.MULTILINE)) == {
        "rebalance_core"
    }
