"""A search over the six recorded plans chooses one that hardly any other was better than."""

import pytest

from tests.recordings.rollouts.chosen import BUDGETS, Chosen, all_chosen

pytestmark = [pytest.mark.conformance, pytest.mark.timeout(1_200)]

WITHIN = 1.1
HALF_A_MESSAGE = 0.5


@pytest.fixture(scope="module")
def chosen() -> list[Chosen]:
    return list(all_chosen())


def test_what_is_chosen_was_as_good_as_the_best_that_was_measured(chosen: list[Chosen]) -> None:
    assert len(chosen) == 2 * len(BUDGETS)
    worse = [one for one in chosen if one.measured > WITHIN * one.best + HALF_A_MESSAGE]
    assert worse == []
    assert all(one.plan is not None for one in chosen)
