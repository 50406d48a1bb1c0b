"""The examples in the docstrings of the pure half run."""

import doctest
import importlib
import sys

import pytest

MODULES = (
    "league",
    "movement",
    "rates",
    "scenario.time",
    "sizing",
    "strategies.bounded_hash",
    "strategies.registry",
    "strategies.spi",
    "strategies.sticky_balanced",
    "what_if.change",
    "what_if.client_id_form",
    "what_if.new_client_ids",
    "what_if.queue_numbers",
    "what_if.what_if",
)


@pytest.mark.parametrize("name", MODULES)
def test_examples_are_true(name: str) -> None:
    path = f"rebalance_core.planning.{name}"
    importlib.import_module(path)
    result = doctest.testmod(sys.modules[path])  # the package's attribute may be the function
    assert result.attempted > 0
    assert result.failed == 0
