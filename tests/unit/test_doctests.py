"""Every example in a docstring of the package runs."""

import doctest
import importlib
import re
import sys

import pytest

from tests.tree import TREE

IMPORTS_PYSPARK = re.compile(r"^\s*(?:from|import) pyspark\b", re.MULTILINE)


def modules_with_examples() -> list[object]:
    """Each module as a case; one that imports pyspark belongs to the lane with a session."""
    cases: list[object] = []
    for path in sorted((TREE / "rebalance_core").rglob("*.py")):
        source = path.read_text("utf-8")
        if ">>> " in source:
            names = path.relative_to(TREE).with_suffix("").parts
            lane = pytest.mark.spark if IMPORTS_PYSPARK.search(source) else pytest.mark.unit
            name = ".".join(names).removesuffix(".__init__")
            cases.append(pytest.param(name, marks=lane))
    return cases


@pytest.mark.parametrize("name", modules_with_examples())
def test_examples_are_true(name: str) -> None:
    importlib.import_module(name)
    result = doctest.testmod(sys.modules[name])  # the package's attribute may be the function
    assert result.attempted > 0
    assert result.failed == 0
