"""The examples in the docstrings of the pure half run."""

import doctest
import importlib
import sys

import pytest

MODULES = (
    "bounded_hash", "change", "client_id_form", "movement", "new_client_ids", "queue_numbers",
    "rates", "sizing", "spi", "sticky_balanced", "strategies", "what_if",
)  # fmt: skip


@pytest.mark.parametrize("name", MODULES)
def test_examples_are_true(name: str) -> None:
    path = f"rebalance_core.planning.{name}"
    importlib.import_module(path)
    result = doctest.testmod(sys.modules[path])  # the package's attribute may be the function
    assert result.attempted > 0
    assert result.failed == 0
