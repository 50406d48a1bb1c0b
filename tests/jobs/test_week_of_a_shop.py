"""The notebook of a week of a shop runs: from Prometheus's answer to the YAML and the sentence."""

import pytest

from tests.jobs.test_notebook import check_copy, notebook, source_of

NAME = "a_week_of_a_shop"
pytestmark = pytest.mark.unit


def test_it_runs_and_its_executed_copy_printed_the_same(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    printed = notebook(tmp_path_factory.mktemp("week"), source_of(NAME))
    assert "UNKNOWN: 2 gaps" in printed
    assert "2026-11-26 09:59:00Z to 2026-11-26 10:10:00Z: samples are missing" in printed
    assert "\n  * by-rate " in printed
    assert "kind: HorizontalPodAutoscaler" in printed
    assert "messages a day wait for longer than 30 s" in printed.splitlines()[-1]
    check_copy(NAME, printed)
