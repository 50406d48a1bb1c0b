"""The exit codes that the contract gives to each kind of error, and errors that travel."""

import pickle

import pytest

from rebalance_core.model import errors


@pytest.mark.parametrize(
    ("error", "exit_code"),
    [
        (errors.RebalanceError, 1),
        (errors.UsageError, 2),
        (errors.InputRefused, 4),
        (errors.OutputExists, 5),
    ],
)
def test_the_exit_code_of_each_error(error: type[errors.RebalanceError], exit_code: int) -> None:
    assert error("why").exit_code == exit_code


def test_what_upstream_throws_survives_the_way_from_a_worker() -> None:
    thrown = errors.AllocationError("NullPointerException", None)
    back = pickle.loads(pickle.dumps(thrown))
    assert (back.java_class, back.java_message) == ("NullPointerException", None)
    assert str(back) == "NullPointerException: None"
