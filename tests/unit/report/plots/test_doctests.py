"""The examples in the docstrings of the pictures run."""

import doctest
import importlib
import sys

import pytest


@pytest.mark.parametrize("name", ["league", "style", "marks", "shades", "steps"])
def test_examples_are_true(name: str) -> None:
    path = f"rebalance_core.report.plots.{name}"
    importlib.import_module(path)
    result = doctest.testmod(sys.modules[path])
    assert result.attempted > 0
    assert result.failed == 0
